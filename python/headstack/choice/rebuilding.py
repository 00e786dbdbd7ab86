"""Times of rebuilds and scrubs by simulation, and fault schedules that keep an array rebuilding or scrubbing."""

from __future__ import annotations

import copy
import math
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypedDict, Unpack

from headstack import _native
from headstack._native import InputError, Level, Redundancy, RunError
from headstack.catalogue.array import Array
from headstack.catalogue.stack import Stack, base_of, layers_of
from headstack.io.atomic_files import write_text
from headstack.io.json_text import quoted
from headstack.simulation.runs import Demand, Swept, run

FIRST_TIME_S = 4
"""Duration of the shortest run: hundreds of steps of a rebuild."""
STEADY = 0.03
"""A rate is steady if a run twice as long changes it by at most this share."""
DOUBLINGS = 8
"""Maximum number of doublings of the run until its rate is steady: to 17 minutes of simulated time."""
PLACES = 5
"""Number of positions at which a disk's rebuild is timed, from its outermost zone to its innermost."""
IDLE_RATE_PER_S = 2
"""Requests per second of a practically idle array. Without any, all drives stay in the same rotational phase, which
makes a rebuild up to 50 % faster or slower than from another start."""
SCHEDULE_S = 3600.0
"""Time for which a schedule keeps an array rebuilding."""
RESTARTS = 200
"""Maximum number of restarts of a rebuild in one schedule."""
FULL_CACHE_BYTES = 256_000_000
"""Single-bit cells of a drive whose larger SLC cache is full: a rebuild fills this many in a second or two."""
FLASH_MAX_BYTES_PER_S = 14e9
"""Maximum rate at which a spare is filled: four lanes of PCIe 5."""


Rebuildable: TypeAlias = Array | Stack
"""An array, or a stack of layers over one."""


SCAN_MEMORY_BYTES = 16 << 20
"""Queue of a resilver in simulated parts of one. With a real one, gigabytes, a resilver first walks metadata for
minutes; with a small one, walking and restoring alternate, in the same proportion."""


class Load(TypedDict, total=False):
    """The load of an array while it rebuilds, as options of runs."""

    rate: Swept
    depth: Swept
    range: Swept
    size: Swept
    read: Swept
    random: Swept
    think: Swept
    arrivals: Swept
    seed: Swept


def rebuild_h(system: Rebuildable, demand: Demand | None = None, **load: Unpack[Load]) -> tuple[float, str]:
    """Returns the hours until the first failed drive of the array, or of the array below the layers of a stack, is
    rebuilt on a spare, and how they were determined.

    Simulated: the drive fails when the run begins, the array fills a spare (or spare room of dRAID) under this load,
    and the run lasts until the rate is steady, for disks in five zones, since the inner ones are slower. Without a load
    the array is idle. Thus a part of a rebuild is simulated, and the rest follows from its rate. Under ZFS, this is
    the resilver of what is allocated, or the sequential rebuild without the scrub that follows. Raises ``InputError``
    for an array without rebuilds, and ``RunError`` if a rebuild makes no progress.

    >>> hours, source = rebuild_h(Array.load("md-raid5-8x2tb"))
    >>> 5 < hours < 7
    True
    """
    group = _first_group(system)
    under = "under load" if demand is not None or load else "idle"
    rebuild = _Rebuild(system, group.index, demand, load if under != "idle" else {"rate": IDLE_RATE_PER_S})
    time_s, before, rate = rebuild.steady()
    if not rate:
        return before, f"simulated {under}: the whole rebuild"
    cached = group.cached_bytes
    if FULL_CACHE_BYTES < cached < rebuild.size_bytes:
        beyond = _Rebuild(_with_small_caches(system), group.index, demand, rebuild.load)
        beyond_s, took_h, slower = beyond.steady(FULL_CACHE_BYTES)
        slower = slower or rebuild.size_bytes / (3600 * took_h)
        hours = (cached / rate + (rebuild.size_bytes - cached) / slower) / 3600
        timed = f"{time_s:g} s into the SLC cache, {beyond_s:g} s after it"
        return hours, f"simulated {under}: {timed}, the rest at these rates"
    return _from_a_part(rebuild, group, under, (time_s, before, rate))


def scrub_h(system: Rebuildable, demand: Demand | None = None, **load: Unpack[Load]) -> tuple[float, str]:
    """Returns the hours of a scrub of the array, or of the array below the layers of a stack, and how they were
    determined, as ``rebuild_h`` does for a rebuild.

    An array scrubs its first redundant RAID group: it reads every member and compares. Under ZFS, this is the scrub of
    what is allocated. Raises ``InputError`` for an array without redundancy, and ``RunError`` if a scrub makes no
    progress.
    """
    group = _scrubbed_group(system)
    under = "under load" if demand is not None or load else "idle"
    scrub = _Scrub(system, group, demand, load if under != "idle" else {"rate": IDLE_RATE_PER_S})
    steady = scrub.steady()
    if not steady[2]:
        return steady[1], f"simulated {under}: the whole scrub"
    return _from_a_part(scrub, group, under, steady)


def _from_a_part(work: _Work, group: _Group, under: str, steady: tuple[float, float, float]) -> tuple[float, str]:
    """Returns the hours of the whole, from a part whose rate is steady, and how they were determined."""
    time_s, before, rate = steady
    sizes = group.zone_sectors
    if not sizes:
        hours = (time_s / 2 + (work.size_bytes - before) / rate) / 3600
        return hours, f"simulated {under}: {time_s:g} s, the rest at the rate of the second half"
    count = min(PLACES, len(sizes))
    last = (len(sizes) - 1) / max(1, group.zones - 1)
    places = [last * number / (count - 1) for number in range(count)] if count > 1 else [0.0]
    slow = [time_s / _headway(work, time_s, place) for place in places]
    hours = _mean(slow, sizes) * work.size_bytes / 3600
    return hours, f"simulated {under}: {time_s:g} s in each of {count} zones, interpolated between them"


def _headway(work: _Work, time_s: float, place: float) -> float:
    bytes_done, _ = work.done(time_s, place)
    if not bytes_done:
        raise RunError(f"{work.system.name}: the {work.noun} makes no progress in {time_s:g} s under this load")
    return bytes_done


def array_below(system: Rebuildable, done: str = "rebuilt") -> dict[str, Any]:
    """Returns the description of the array itself, or of the one below all layers. Raises ``InputError`` if the layers
    are over a single drive, which cannot be ``done``."""
    base = base_of(system.system)
    if "array" not in base:
        raise InputError(f"{system.name}: its layers are over a single drive, which cannot be {done}; name an array")
    array: dict[str, Any] = base["array"]
    return array


def resilvering(system: Rebuildable) -> dict[str, Any] | None:
    """Returns the layer of ZFS that fills a replaced drive of the array; ``None`` if the array does that itself."""
    zfs = _zfs_above(system)
    level = array_below(system)["groups"][0]["level"]
    return zfs if level in ("raid1", "raid10") or level.startswith(("raidz", "draid")) else None


def _zfs_above(system: Rebuildable) -> dict[str, Any] | None:
    """Returns the layer of ZFS right above the array."""
    layers = list(layers_of(system.system))
    zfs: dict[str, Any] | None = layers[-1]["layer"].get("zfs") if layers else None
    return zfs


def with_small_scan_memory(system: dict[str, Any]) -> None:
    """Lets a resilver of a system's description walk and restore in turns from its beginning on."""
    for layer in layers_of(system):
        if "zfs" in layer["layer"]:
            layer["layer"]["zfs"]["scan_memory_bytes"] = SCAN_MEMORY_BYTES


def copied(system: Rebuildable) -> tuple[Rebuildable, dict[str, Any]]:
    """Returns a copy of a system whose description may be changed, and its array."""
    own = replace(system, description=copy.deepcopy(system.description))
    return own, array_below(own)


def _with_small_caches(system: Rebuildable) -> Rebuildable:
    """Returns the array with small SLC caches in its drives: filling gigabytes takes minutes to simulate."""
    smaller, array = copied(system)
    for device in array["devices"]:
        if cache := device.get("ssd", {}).get("slc_cache"):
            share = min(1.0, FULL_CACHE_BYTES / max(1, cache["static_bytes"] + cache["dynamic_bytes"]))
            for part in ("static_bytes", "dynamic_bytes"):
                cache[part] = int(cache[part] * share)
    return smaller


def _mean(values: Sequence[float], sizes: Sequence[float]) -> float:
    """Returns the mean over parts of these sizes; the values are evenly spaced from the first part to the last, and
    interpolated linearly."""
    interpolated = []
    for part in range(len(sizes)):
        at = part * (len(values) - 1) / max(1, len(sizes) - 1)
        below = min(int(at), max(0, len(values) - 2))
        above = min(below + 1, len(values) - 1)
        interpolated.append(values[below] + (values[above] - values[below]) * (at - below))
    return math.fsum(value * size for value, size in zip(interpolated, sizes, strict=True)) / math.fsum(sizes)


def schedule_while_rebuilding(system: Rebuildable, failures: int = 1, lasting_s: float = SCHEDULE_S) -> str:
    """Returns a fault schedule, as a file, under which the array rebuilds from the beginning of a run on.

    This many drives fail at once, and a spare is added unless there is one, or spare room in dRAID. Before the rebuild
    can end, the spare fails and another is added, so that it restarts: for ``lasting_s``, or 200 times. dRAID has only
    one rebuild. Raises ``InputError`` for failures that it does not survive.

    >>> print(schedule_while_rebuilding(Array.load("nearline-12-raid6")).splitlines()[3])
    member = "d0"
    """
    array = array_below(system)
    group = _first_group(system)
    filled_bytes = group.member_bytes * _allocated_share(system)
    redundancy = group.redundancy
    if not 1 <= failures <= redundancy.survives:
        raise InputError(f"{failures}; {group.level} rebuilds after 1 to {redundancy.survives}", key="failures")
    names = [member["name"] for member in array["members"]]
    fails = [(0.0, "member-fails", "member", names[member]) for member in group.members[:failures]]
    if redundancy.spares and not group.spares:
        return _schedule(fails)
    adds = "spare-added", "group", group.name
    # An added device is named by the number of members.
    filled, added = (names[group.spares[0]], 0) if group.spares else (f"d{len(names)}", 1)
    events = [*fails, *([(0.0, *adds)] if added else [])]
    every_s = 0.9 * filled_bytes / group.fastest_bytes_per_s
    for number in range(1, min(RESTARTS, math.ceil(lasting_s / every_s) - 1) + 1):
        events += [(number * every_s, "member-fails", "member", filled), (number * every_s, *adds)]
        filled, added = f"d{len(names) + added}", added + 1
    return _schedule(events)


def schedule_while_scrubbing(system: Rebuildable) -> str:
    """Returns a fault schedule, as a file, under which the array, or the pool above it, is scrubbed from the beginning
    of a run on. Raises ``InputError`` for an array without redundancy.

    >>> print(schedule_while_scrubbing(Array.load("md-raid5-8x2tb")).splitlines()[2])
    what = "scrub"
    """
    return _schedule([(0.0, "scrub", "group", _scrubbed_group(system).name)])


def _scrubbed_group(system: Rebuildable) -> _Group:
    """Returns the RAID group that is scrubbed."""
    array_below(system, "scrubbed")
    group = _first_group(system, "scrub")
    if group.level.startswith(("raidz", "draid")) and _zfs_above(system) is None:
        raise InputError(f"{system.name}: ZFS scrubs its pools; name a stack with the layer zfs over it")
    return group


def _schedule(events: Sequence[tuple[float, str, str, str]]) -> str:
    return "\n".join(
        f'[[fault]]\nat = "{round(at_s * 1000)}ms"\nwhat = "{fault}"\n{key} = {quoted(name)}\n'
        for at_s, fault, key, name in events
    )


@dataclass(frozen=True)
class _Group:
    """A RAID group of an array, and its member devices."""

    index: int
    name: str
    level: str
    redundancy: Redundancy
    members: tuple[int, ...]
    """Numbers of its members in the array."""
    spares: tuple[int, ...]
    """Numbers of its spares in the array."""
    member_bytes: int
    """Bytes of each member that it uses."""
    fastest_bytes_per_s: float
    """The highest rate at which a spare is filled."""
    cached_bytes: int
    """The largest SLC cache of a member; 0 if none has one."""
    zone_sectors: tuple[int, ...]
    """Sectors per surface in each zone of the disk with most zones, to the last zone that is rebuilt; empty without
    disks."""
    zones: int
    """Number of all zones of that disk."""


def _allocated_share(system: Rebuildable) -> float:
    """Returns the part of a group that a rebuild writes: all of it, or what ZFS has allocated."""
    zfs = resilvering(system)
    return (
        1.0
        if zfs is None
        else float(zfs["capacity_bytes"]) / _native.system_size(base_of(system.system)).capacity_bytes
    )


def _first_part(sizes: Sequence[int], share: float) -> tuple[int, ...]:
    """Returns the first sizes, up to this share of their sum."""
    left = share * sum(sizes)
    part = []
    for size in sizes:
        if left <= 0:
            break
        part.append(min(size, math.ceil(left)))
        left -= size
    return tuple(part)


def _group(array: dict[str, Any], index: int, share: float) -> _Group:
    group = array["groups"][index]
    members = tuple(group["members"])
    numbers = sorted({array["members"][member]["device"] for member in members})
    devices = [array["devices"][number] for number in numbers]
    caches = [cache for device in devices if "ssd" in device and (cache := device["ssd"].get("slc_cache"))]
    zones = [device["disk"]["geometry"]["zones"] for device in devices if "disk" in device]
    # Upper bounds of the rate: the links of flash, the outer zone of disks, and the limit of the array.
    rates = [FLASH_MAX_BYTES_PER_S]
    if len(zones) == len(devices):
        rates.append(max(_outer_bytes_per_s(device["disk"]) for device in devices))
    if limit := group["rebuild"]["rate_limit_bytes_per_s"]:
        rates.append(limit)
    sectors = [
        zone["sectors_per_track"] * (1 + zone["last_cylinder"] - zone["first_cylinder"])
        for zone in max(zones, key=len, default=())
    ]
    return _Group(
        index=index,
        name=group["name"],
        level=group["level"],
        redundancy=Level(group["level"]).redundancy(len(members), group["spans"]),
        members=members,
        spares=tuple(group["spares"]),
        member_bytes=group["member_bytes"],
        fastest_bytes_per_s=min(rates),
        cached_bytes=max((cache["static_bytes"] + cache["dynamic_bytes"] for cache in caches), default=0),
        zone_sectors=_first_part(sectors, share),
        zones=len(sectors),
    )


def _first_group(system: Rebuildable, work: str = "rebuild") -> _Group:
    """Returns the first RAID group that survives a failure."""
    array = array_below(system)
    share = _allocated_share(system)
    groups = (_group(array, index, share) for index in range(len(array["groups"])))
    redundant = next((group for group in groups if group.redundancy.survives), None)
    if redundant is None:
        raise InputError(f"{system.name}: none of its RAID groups survives a failure, so there is no {work}")
    return redundant


def _outer_bytes_per_s(disk: Mapping[str, Any]) -> float:
    """Returns the rate of a disk's outermost zone."""
    geometry = disk["geometry"]
    sectors = max(zone["sectors_per_track"] for zone in geometry["zones"])
    bytes_a_turn: float = sectors * geometry["physical_sector_bytes"]
    return bytes_a_turn * float(disk["mechanics"]["rpm"]) / 60


class _Work(ABC):
    """Work of an array in the background that is timed under one load."""

    noun: str

    def __init__(self, system: Rebuildable, demand: Demand | None, load: Load, size_bytes: float) -> None:
        self.system, self.demand, self.load, self.size_bytes = system, demand, load, size_bytes

    def done(self, time_s: float, place: float = 0.0) -> tuple[float, float]:
        """Returns the bytes done after this time, and the hours of the whole if it ended; ``place`` is 0 for work that
        begins at the outermost zone of the disks, 1 for the innermost."""
        system, array = copied(self.system)
        for device in array["devices"]:
            if "disk" in device:
                geometry = device["disk"]["geometry"]
                geometry["zones"] = _begun_at(geometry["zones"], place)
        with_small_scan_memory(system.system)
        result = self._run(system, array, time_s)
        if result["data_loss"]:
            raise RunError(f"{self.system.name}: {result['data_loss']}")
        return self._progress({counter["name"]: counter["value"] for counter in result["counters"]})

    @abstractmethod
    def _run(self, system: Rebuildable, array: dict[str, Any], time_s: float) -> Mapping[str, Any]:
        """Runs the system, whose array may be changed, with this work; returns the result."""

    @abstractmethod
    def _progress(self, counters: Mapping[str, int]) -> tuple[float, float]:
        """Returns the bytes done, and the hours of the whole if it ended."""

    def steady(self, least_bytes: float = 0.0) -> tuple[float, float, float]:
        """Returns the duration of the run whose rate is steady after this many bytes, the bytes of its first half, and
        the rate after that in bytes per second; if the work ended, a rate of 0, and the hours it took in place of
        bytes."""
        time_s = FIRST_TIME_S
        before, hours = self.done(time_s)
        rate = before / time_s
        for _ in range(DOUBLINGS):
            if hours:
                return time_s, hours, 0.0
            bytes_done, hours = self.done(2 * time_s)
            later = (bytes_done - before) / time_s
            if not hours and before >= least_bytes and rate and abs(later / rate - 1) <= STEADY:
                return 2 * time_s, before, later
            time_s, before, rate = 2 * time_s, bytes_done, later
        if hours:
            return time_s, hours, 0.0
        if rate <= 0:
            raise RunError(f"{self.system.name}: the {self.noun} makes no progress in {time_s:g} s under this load")
        # Not steady within the longest run: use it as the first half of a run twice as long.
        return 2 * time_s, before, rate


class _Rebuild(_Work):
    """A rebuild of the first failed drive."""

    noun = "rebuild"

    def __init__(self, system: Rebuildable, group: int, demand: Demand | None, load: Load) -> None:
        rebuilt = _group(array_below(system), group, _allocated_share(system))
        super().__init__(system, demand, load, float(rebuilt.member_bytes))
        self.is_resilver = resilvering(system) is not None
        faults = [{"member-fails": {"member": rebuilt.members[0]}}]
        if not rebuilt.spares and not rebuilt.redundancy.spares:
            faults.append({"spare-added": {"group": group}})
        self.incidents = [{"at_ns": 0, "what": fault} for fault in faults]

    def _run(self, system: Rebuildable, array: dict[str, Any], time_s: float) -> Mapping[str, Any]:
        array["incidents"] = self.incidents
        return run(system, self.demand, time=f"{time_s:g}s", warm_up=0, **self.load).whole(0)

    def _progress(self, counters: Mapping[str, int]) -> tuple[float, float]:
        if self.is_resilver and counters.get("zfs_scan_issued_bytes"):
            # Blocks of all records are issued alike; what is written shows the part of the replaced drive in them.
            share = counters["rebuilt_bytes"] / counters["zfs_scan_issued_bytes"]
            self.size_bytes = share * counters["zfs_scan_total_bytes"]
        took_ns = counters["rebuild_ns"] if counters["rebuilds"] else 0
        return float(counters["rebuilt_bytes"]), took_ns / 3.6e12


class _Scrub(_Work):
    """A scrub of a group by the array, or of the pool by ZFS."""

    noun = "scrub"

    def __init__(self, system: Rebuildable, group: _Group, demand: Demand | None, load: Load) -> None:
        super().__init__(system, demand, load, float(group.member_bytes))
        self.is_zfs = _zfs_above(system) is not None
        self.schedule = schedule_while_scrubbing(system)

    def _run(self, system: Rebuildable, array: dict[str, Any], time_s: float) -> Mapping[str, Any]:
        with tempfile.TemporaryDirectory(prefix="headstack-") as folder:
            path = os.path.join(folder, "scrubbing.toml")
            write_text(path, self.schedule)
            return run(system, self.demand, time=f"{time_s:g}s", warm_up=0, faults=path, **self.load).whole(0)

    def _progress(self, counters: Mapping[str, int]) -> tuple[float, float]:
        if not self.is_zfs:
            return float(counters["scrubbed_bytes"]), counters["scrub_ns"] / 3.6e12
        self.size_bytes = float(counters["zfs_scan_total_bytes"])
        return float(counters["zfs_scan_issued_bytes"]), counters["zfs_scan_ns"] / 3.6e12


def _begun_at(zones: Sequence[Mapping[str, Any]], place: float) -> list[Mapping[str, Any]]:
    """Returns the zones of a disk starting from an inner zone, with the outer zones last."""
    first = round(place * (len(zones) - 1))
    turned: list[Mapping[str, Any]] = []
    at = 0
    for zone in (*zones[first:], *zones[:first]):
        last = at + zone["last_cylinder"] - zone["first_cylinder"]
        turned.append({**zone, "first_cylinder": at, "last_cylinder": last})
        at = last + 1
    return turned
