"""``Disk``: the known values of a disk, and the description made from them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict

import numpy as np

from headstack.catalogue.system import parse_system
from headstack.twin import disk_types
from headstack.twin.device import Floats
from headstack.twin.learnt import System
from headstack.twin.probes.seeks import Distances
from headstack.twin.probes.tracks import Tracks
from headstack.twin.probes.zones import Rates

SECTOR = 512
ZONES = 16
CYLINDERS = 500_000
"""Maximum number of cylinders of current disks."""
ERAS = ((13e6, 1995), (75e6, 2001), (150e6, 2007), (float("inf"), 2016))
"""Years by upper limits of the outer rate, in bytes/s; invisible values are taken as usual for the year."""
USUAL = {
    1995: ("scsi", "20MB/s", 512),
    2001: ("scsi", "160MB/s", 4 << 10),
    2007: ("sata", "300MB/s", 16 << 10),
    2016: ("sata", "600MB/s", 128 << 10),
}
"""Interface and buffer by year. Heads and the seek curve of a base are replaced by measured ones or do not matter:
cylinders are chosen to hold the capacity, for any number of surfaces."""


LosesTurn = Literal["nowhere", "at cylinders", "at tracks"]


class QueueChange(TypedDict, total=False):
    """Values of a queue."""

    policy: str
    depth: int


class BufferChange(TypedDict, total=False):
    """Values of a buffer."""

    segments: int
    segment_sectors: int
    read_ahead: str
    read_ahead_max_sectors: int
    read_ahead_min_sectors: int
    read_ahead_on_hit: bool
    keep_passing_sectors: bool
    read_hits_on_arriving: bool
    read_hits_on_writes: bool
    write_cache: str
    dirty_extents_max: int
    dirty_sectors_max: int
    separate_write_segment: bool
    read_watermark: float
    write_watermark: float


@dataclass(frozen=True)
class Disk:
    """The known values of a disk; ``system`` returns its description."""

    base: disk_types.Disk
    """A drive of the same capacity, speed and rates, and otherwise usual for its year."""
    capacity: int
    tracks: Tracks
    distances: Distances
    seek_ns: Floats
    """Seek time at each distance, including all command time before the arm moves that cannot be separated."""
    command_ns: float
    read_hit_ns: float
    write_hit_ns: float
    write_settle_ns: float
    committed: float = 0.0
    rotation_margin_ns: float = 0.0
    age_weight: float = 0.0
    strength: float = 1.0
    read_ns_per_byte: float = 0.0
    write_ns_per_byte: float = 0.0
    queue: QueueChange = field(default_factory=QueueChange)
    """Replaces keys of the base's queue."""
    on_arrival: bool = False
    """Whether accesses begin with the first requested sector that passes."""
    loses_turn: LosesTurn = "nowhere"
    """Cases in which sequential writes miss the beginning of the next track, since the skew is too small for them."""
    host_elevator: str = "fcfs"
    """Order of the commands that wait in the host."""
    buffer: BufferChange = field(default_factory=BufferChange)
    """Replaces keys of the base's buffer."""

    def with_(self, **changes: Any) -> Disk:
        """Returns the disk with other values."""
        return replace(self, **changes)

    @property
    def system(self) -> System:
        """The system description for runs."""
        disk = copy.deepcopy(self.base)
        mechanics = disk["mechanics"]
        disk["geometry"]["zones"] = self._zones()
        cylinders = disk["geometry"]["zones"][-1]["last_cylinder"] + 1
        disk["geometry"]["cylinders"] = cylinders
        mechanics["seek"] = {"points": self._points(cylinders)}
        mechanics["write_settle_ns"] = round(self.write_settle_ns)
        mechanics["read_on_arrival"] = mechanics["write_on_arrival"] = self.on_arrival
        mechanics["head_switch_ns"] = self._next_track_ns(self.loses_turn == "at tracks")
        overheads = disk["overheads"]
        overheads["read_miss_ns"] = _after_both(self.command_ns)
        overheads["write_miss_ns"] = _after_both(self.command_ns)
        overheads["read_hit_ns"] = _after_both(self.read_hit_ns)
        overheads["write_hit_ns"] = _after_both(self.write_hit_ns)
        disk["interface"]["read_ns_per_byte"] = self.read_ns_per_byte
        disk["interface"]["write_ns_per_byte"] = self.write_ns_per_byte
        queue = disk["queue"]
        queue["committed"] = float(np.clip(self.committed, 0, 16))
        queue["rotation_margin_ns"] = round(max(0.0, self.rotation_margin_ns))
        queue["age_weight"] = float(np.clip(self.age_weight, 0, 1))
        queue["reordering_strength"] = float(np.clip(self.strength, 0.02, 1))
        if "policy" in self.queue:
            queue["policy"] = self.queue["policy"]
        disk["interface"]["host_elevator"] = self.host_elevator
        if "depth" in self.queue:
            queue["depth"] = disk["interface"]["host_tags"] = self.queue["depth"]
        disk["buffer"] |= self.buffer
        return {"drive": {"disk": disk}}

    def _next_track_ns(self, loses_turn: bool) -> int:
        """Returns the seek time to the next track: within the skew, if neither reads nor sequential writes lose a
        revolution, for which the skew is chosen; otherwise slightly above the limit for writes."""
        turn_ns = 60e9 / float(self.base["mechanics"]["rpm"])
        sector_ns = turn_ns * SECTOR / float(self.tracks.bytes.min())
        skews = self.tracks.skew_turns
        skew_ns = float(skews.max() if loses_turn else skews.min()) * turn_ns
        covered_ns = skew_ns - max(0.0, self.write_settle_ns) + (2 if loses_turn else -2) * sector_ns
        return max(1000, round(covered_ns))

    def _zones(self) -> list[disk_types.Zone]:
        """Returns zones between the measured positions, with the tracks measured there."""
        pattern = self.base["geometry"]["zones"][0]
        heads = self.base["geometry"]["heads"]
        edges = np.linspace(0, self.capacity // SECTOR, ZONES + 1)
        middles = (edges[1:] + edges[:-1]) / 2 * SECTOR
        sizes = np.interp(middles, self.tracks.at_bytes, self.tracks.bytes)
        skews = np.interp(middles, self.tracks.at_bytes, self.tracks.skew_turns)
        zones: list[disk_types.Zone] = []
        first = 0
        for size, skew, low, high in zip(sizes, skews, edges[:-1], edges[1:], strict=True):
            sectors = max(4, round(size / SECTOR))
            cylinders = max(1, -(-round(high - low) // (sectors * heads)))
            zones.append(
                {
                    **pattern,
                    "first_cylinder": first,
                    "last_cylinder": first + cylinders - 1,
                    "sectors_per_track": sectors,
                    "track_skew_turns": float(skew),
                    "cylinder_skew_turns": float(skew),
                }
            )
            first += cylinders
        return zones

    def _points(self, cylinders: int) -> list[list[int]]:
        """Returns the curve at its distances in cylinders. The next track is reached within the skew."""
        times = rising(np.maximum(1000.0, self.seek_ns))
        at = np.maximum(1, np.round(self.distances.shares * cylinders)).astype(int)
        end = cylinders - 1
        slope = (times[-1] - times[-2]) / max(1, at[-1] - at[-2])
        points: list[list[int]] = []
        next_ns = self._next_track_ns(self.loses_turn != "nowhere")
        points.append([1, min(int(times[0]), next_ns)])
        for cylinder, time in [*zip(at, times, strict=True), (end, times[-1] + slope * (end - at[-1]))]:
            if cylinder > points[-1][0]:
                points.append([int(cylinder), max(int(time), points[-1][1])])
        return points


def _after_both(ns: float) -> disk_types.AfterReadWrite:
    """Returns the same overhead after reads and after writes."""
    return {"after_read": round(ns), "after_write": round(ns)}


def rising(times: Floats) -> Floats:
    """Returns the nearest non-decreasing times (pool adjacent violators)."""
    blocks: list[list[float]] = []
    for time in times:
        blocks.append([float(time), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (before, count), (after, more) = blocks[-2], blocks.pop()
            blocks[-1] = [(before * count + after * more) / (count + more), count + more]
    return np.concatenate([np.full(int(count), value) for value, count in blocks])


def base_of(capacity: int, rpm: float, rates: Rates) -> disk_types.Disk:
    """Returns a drive with these values that is otherwise usual for the years with such rates."""
    outer, inner = float(rates.bytes_per_s.max()), float(rates.bytes_per_s[-1])
    year = next(year for limit, year in ERAS if outer < limit)
    kind, rate, buffer_kib = USUAL[year]
    tracks = capacity / (outer * 60 / rpm)
    # The number of surfaces is not visible; it is chosen for a usual number of cylinders.
    heads = max(4, -(-int(tracks) // CYLINDERS))
    text = (
        f'name = "twin"\nyear = {year}\n'
        f'[capacity]\nlogical_blocks = {capacity // SECTOR}\nlogical_block = "{SECTOR}B"\n'
        f'physical_sector = "{SECTOR}B"\n'
        f'[media]\nsustained_outer_rate = "{outer / 1e6:.3f}MB/s"\n'
        f'sustained_inner_rate = "{min(inner, outer) / 1e6:.3f}MB/s"\n'
        f'[spindle]\nspeed = "{rpm:.4f}rpm"\n'
        f"[geometry]\nheads = {heads}\n"
        f'[seek]\nread_average = "{8.5 * (7200 / rpm) ** 0.5:.2f}ms"\n'
        f'[buffer]\nsize = "{buffer_kib}KiB"\n'
        f'[interface]\nkind = "{kind}"\nrate = "{rate}"\n'
    )
    base: disk_types.Disk = parse_system(text).system["drive"]["disk"]
    # The measured speed has more digits than a data sheet's.
    base["mechanics"]["rpm"] = rpm
    return base
