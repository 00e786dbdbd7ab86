"""Calibrated models of devices with published fio results at a few depths, starting from the data sheet.

Since few results are known, only a few values of the data sheet are changed: for a disk its seek curve, its queue's
firmware and its write cache; for an SSD command time, command interval, read time and the number of dies. They are
fitted in the order in which they can be separated: reads at queue depth 1 do not depend on the queue, and reads do not
depend on the write cache.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.system import parse_system
from headstack.twin.device import READ, WRITE, Floats, Requests, SimulatedDevice
from headstack.twin.fio_results import SHARES, Point
from headstack.twin.fitting import Range, evolve
from headstack.twin.learnt import Residual, System
from headstack.twin.session import places

COUNT = 2700
"""Requests of each point: errors of 0.5 % of a rate, and 5 % of a 99th percentile."""
WARM, WARM_DISK_WRITES = 300, 3000
"""Requests of the warm-up: a disk's write cache with a thousand extents is full by then."""
WEIGHTS = np.array([4.0, 0.5, 0.5, 1.0, 0.0])
"""Weights of the rate, p50, p95, p99 and minimum: a rate is known to 0.5 %, percentiles to fio's bins and the model's
lack of sources of variation."""
QUEUED = np.array([4.0, 0.5, 0.5, 1.0, 0.5])
"""Weights for reads queued in a disk: the minimum shows the number of committed commands."""
CACHED = np.array([8.0, 0.25, 0.25, 0.5, 0.0])
"""Weights for writes into a disk's cache: its bursts differ from the model's, so percentiles matter less."""

PARTS, BLOCKS_LEAST = 32, 24
"""Part of an SSD that is simulated, of which each plane keeps at least this number of blocks."""

BENT_AT = (0.001, 0.03, 0.3, 1.0)
"""Shares of the way from rim to rim at which the data sheet's seek curve is adjusted."""
SEEK = tuple(Range(f"seek at {at}", -0.5, 0.5) for at in BENT_AT)
FIRMWARE = (
    Range("committed", 0, 8, 0),
    Range("rotation_margin_ns", 0, 5e6, 0),
    Range("age_weight", 0, 0.05, 0),
)
"""Ranges of firmware parameters. A window narrower than the queue acts almost like commitment, and results do not
separate them, so it keeps the data sheet's value."""
WRITES = (Range("settle", 0, 2e6), Range("log2 extents", 0, 10.5))
CACHES = ("on", "off", "appending")

FLASH_READS = (
    Range("command", 1e3, 80e3),
    Range("interval", 1e3, 60e3),
    Range("log read", math.log(3e3), math.log(250e3)),
    Range("log2 dies", 1.5, 6.5),
)
FLASH_WRITES = (Range("write command", 1e3, 150e3), Range("write interval", 1e3, 60e3))


@dataclass(frozen=True)
class Published:
    """The model learned from fio's results."""

    system: System
    host: str
    """The host to which the device was attached, from ``headstack._native.HOSTS``."""
    residuals: dict[tuple[str, int], Residual]
    """Logarithm of measured over predicted values for each point used."""

    def between(self, kind: str, depth: int) -> Residual | None:
        """Returns the expected residual at a depth: that of the neighbouring depths used; ``None`` outside of them."""
        depths = sorted(at for of, at in self.residuals if of == kind)
        if not depths or not depths[0] <= depth <= depths[-1]:
            return None
        at = np.log(depths)
        mean, p50, p99 = (
            float(
                np.interp(
                    math.log(depth), at, [getattr(self.residuals[kind, other_depth], name) for other_depth in depths]
                )
            )
            for name in ("mean", "p50", "p99")
        )
        return Residual(mean, p50, p99, COUNT)


def on_host(system: System, host: str) -> System:
    """Returns the drive on a host, one of ``headstack._native.HOSTS``; unchanged if the host takes no time."""
    if host == "direct":
        return system
    text = _native.drive_to_toml(system["drive"], {"default": "I the sheet"})
    return parse_system(text.replace("[interface]", f'[interface]\nhost = "{host}"')).system


def simulated(system: System, kind: str, depth: int, size_bytes: int, seed: int = 1) -> Point:
    """Returns a simulated point of a system."""
    device = SimulatedDevice(small(system), seed)
    random = np.random.default_rng(seed)
    warm = WARM_DISK_WRITES if kind == "write" and "disk" in system["drive"] else WARM
    offsets = places(random, warm + COUNT, device.capacity_bytes, size_bytes)
    answers = device.ask(Requests.of(READ if kind == "read" else WRITE, offsets, size_bytes, depth=depth))
    done = np.sort(answers.completed_ns)
    rate = COUNT * 1e9 / float(done[-1] - done[warm - 1])
    p50_s, p95_s, p99_s, least_s = np.quantile(answers.response_ns[warm:], (*SHARES, 0.0)) / 1e9
    return Point(kind, depth, size_bytes, rate, float(p50_s), float(p95_s), float(p99_s), float(least_s))


def small(system: System) -> System:
    """Returns an SSD with a part of its blocks, which has the same response times for random requests and takes less
    memory. Half of the blocks are spare: so few requests cause no collection, and some blocks of each die are always
    open."""
    if "ssd" not in system["drive"]:
        return system
    ssd = system["drive"]["ssd"]
    parts = max(1, min(PARTS, ssd["flash"]["blocks_per_plane"] // BLOCKS_LEAST))
    unit = ssd["capacity"]["mapping_unit_bytes"]
    capacity = ssd["capacity"] | {"logical_bytes": ssd["capacity"]["logical_bytes"] // (2 * parts) // unit * unit}
    flash = ssd["flash"] | {"blocks_per_plane": -(-ssd["flash"]["blocks_per_plane"] // parts)}
    return {"drive": {"ssd": ssd | {"capacity": capacity, "flash": flash}}}


def model_error(system: System, points: Sequence[Point]) -> float:
    """Returns the mean error of a system over all known figures."""
    total = 0.0
    for point in points:
        model = simulated(system, point.kind, point.outstanding, point.size_bytes)
        weights = WEIGHTS
        if "disk" in system["drive"] and point.kind == "write":
            weights = CACHED
        elif "disk" in system["drive"] and point.outstanding > 1:
            weights = QUEUED
        total += float(np.abs(model.logarithms - point.logarithms) @ weights) / float(weights.sum())
    return total / max(1, len(points))


Values = dict[str, float]
Build = Callable[[Values], System]


def _search(
    build: Build, values: Values, ranges: Sequence[Range], results: Sequence[Point], seed: int, population: int
) -> tuple[float, Values]:
    """Returns the values, with those of ``ranges`` fitted to the known results, and their error."""
    if not results:
        return 0.0, values

    def named(theta: Floats) -> Values:
        return values | dict(zip([parameter.name for parameter in ranges], map(float, theta), strict=True))

    low, high = np.array([parameter.low for parameter in ranges]), np.array([parameter.high for parameter in ranges])
    points = evolve(
        ranges,
        lambda theta: model_error(build(named(theta)), results),
        np.random.default_rng(seed),
        [np.clip(np.array([values[parameter.name] for parameter in ranges]), low, high)],
        population,
        8,
    )
    return points[0][0], named(points[0][1])


def learn(sheets: dict[str, System], results: Sequence[Point], seed: int = 1) -> Published:
    """Fits the data sheet's device to the results; ``sheets`` has the device on each possible host, the plainest
    first."""
    reads, writes = ([point for point in results if point.kind == kind] for kind in ("read", "write"))
    if not reads:
        raise InputError("results of random reads are required")
    best: tuple[tuple[float, float], str, System] | None = None
    for host, sheet in sheets.items():
        (device,) = sheet["drive"].keys()
        scores, system = (_disk if device == "disk" else _flash)(sheet, reads, writes, seed)
        # A host has the same effect on the commands of reads and of writes.
        if best is None or (scores[0] < best[0][0] and scores[1] <= best[0][1]):
            best = scores, host, system
    assert best is not None, "there is a host"
    residuals = {}
    for point in results:
        model = simulated(best[2], point.kind, point.outstanding, point.size_bytes)
        rate, p50, _, p99, _ = point.logarithms - model.logarithms
        residuals[point.kind, point.outstanding] = Residual(-float(rate), float(p50), float(p99), COUNT)
    return Published(best[2], best[1], residuals)


def _disk(
    sheet: System, reads: Sequence[Point], writes: Sequence[Point], seed: int
) -> tuple[tuple[float, float], System]:
    values: Values = dict.fromkeys([parameter.name for parameter in SEEK], 0.0)
    values |= {"committed": 0.0, "rotation_margin_ns": 0.0, "age_weight": 0.0}
    values |= {"settle": 4e5, "log2 extents": 6.0}

    def build(cache: str) -> Build:
        return lambda of: _disk_with(sheet, of, cache)

    _, values = _search(build("on"), values, SEEK, [reads[0]], seed, 32)
    score, values = _search(build("on"), values, FIRMWARE, reads[1:], seed, 40)
    score, values = _search(build("on"), values, (*SEEK, *FIRMWARE), reads, seed, 40)
    ways = [(*_search(build(cache), values, WRITES, writes, seed, 16), cache) for cache in CACHES]
    off, values, cache = min(ways, key=lambda way: way[0])
    return (score, off), _disk_with(sheet, values, cache)


def _flash(
    sheet: System, reads: Sequence[Point], writes: Sequence[Point], seed: int
) -> tuple[tuple[float, float], System]:
    ssd = sheet["drive"]["ssd"]
    values: Values = {
        "command": ssd["controller"]["command_ns"],
        "interval": ssd["controller"]["command_interval_ns"],
        "log read": math.log(ssd["timing"]["read_ns"]),
        "log2 dies": math.log2(ssd["flash"]["channels"] * ssd["flash"]["dies_per_channel"]),
        "write command": ssd["controller"]["write_command_ns"],
        "write interval": ssd["controller"]["write_interval_ns"],
    }

    def build(of: Values) -> System:
        return _flash_with(sheet, of)

    score, values = _search(build, values, FLASH_READS, reads, seed, 32)
    off, values = _search(build, values, FLASH_WRITES, writes, seed, 16)
    return (score, off), build(values)


def _disk_with(sheet: System, values: Values, cache: str) -> System:
    """Returns the disk with these values."""
    disk = copy.deepcopy(sheet["drive"]["disk"])
    points = disk["mechanics"]["seek"]["points"]
    shares = np.log(np.array([max(1, at) for at, _ in points]) / points[-1][0])
    bends = np.interp(shares, np.log(BENT_AT), [values[f"seek at {at}"] for at in BENT_AT])
    times = np.maximum.accumulate(np.array([time for _, time in points]) * np.exp(bends))
    disk["mechanics"]["seek"]["points"] = [[at, int(time)] for (at, _), time in zip(points, times, strict=True)]
    disk["mechanics"]["write_settle_ns"] = round(values["settle"])
    disk["queue"] |= {
        "policy": "sptf",
        "committed": values["committed"],
        "rotation_margin_ns": round(values["rotation_margin_ns"]),
        "age_weight": values["age_weight"],
    }
    disk["buffer"] |= {"write_cache": cache, "dirty_extents_max": max(1, round(2 ** values["log2 extents"]))}
    return {"drive": {"disk": disk}}


def _flash_with(sheet: System, values: Values) -> System:
    """Returns the SSD with these values; with fewer dies each programs proportionally faster, so that the data sheet's
    steady write rate is kept."""
    ssd = copy.deepcopy(sheet["drive"]["ssd"])
    flash, timing = ssd["flash"], ssd["timing"]
    was, dies = flash["channels"] * flash["dies_per_channel"], 2 ** round(values["log2 dies"])
    blocks = was * flash["blocks_per_plane"]
    flash["channels"] = min(flash["channels"], dies)
    flash["dies_per_channel"] = dies // flash["channels"]
    flash["blocks_per_plane"] = blocks // (flash["channels"] * flash["dies_per_channel"])
    timing["program_ns"] = max(1, round(timing["program_ns"] * dies / was))
    timing["read_ns"] = round(math.exp(values["log read"]))
    # Each die has rows that wait for a whole program.
    rows = 2 + flash["channels"] * flash["dies_per_channel"] * (flash["pages_per_program"] - 1)
    row_bytes = flash["page_bytes"] * flash["planes_per_die"]
    ssd["buffer"]["bytes"] = max(ssd["buffer"]["bytes"], rows * row_bytes)
    ssd["controller"] |= {
        "command_ns": round(values["command"]),
        "command_interval_ns": round(values["interval"]),
        "write_command_ns": round(values["write command"]),
        "write_interval_ns": round(values["write interval"]),
    }
    return {"drive": {"ssd": ssd}}
