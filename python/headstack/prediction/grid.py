"""The grid of low-level tests of a characterization, their runs, and the tables of results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from headstack import _native
from headstack._native import InputError, RunError
from headstack.catalogue.array import Array, disks, ssds
from headstack.catalogue.drive import Drive
from headstack.catalogue.options import Spec
from headstack.catalogue.stack import Stack, base_of, layers_of
from headstack.catalogue.workload import Workload
from headstack.io.json_text import key_of
from headstack.io.values import size_bytes
from headstack.prediction.environment import RANGE_MIN_BYTES
from headstack.prediction.percentiles import LEVELS, OUTMOST
from headstack.prediction.workload_types import HotBands, Line
from headstack.simulation.runs import first_spec

Progress = Callable[[float], object]

KIB = 1024
SECTOR, PAGE = 512, 4096
TEST_BYTES = 256 << 20
"""A test that transfers more than this ends early, but not before its number of requests over ``LARGE_LESS``."""
LARGE_LESS = 6
DEPTH_DOUBLES = 200
"""Queue depth at which a test has twice the length: a queue forgets its start after being served many times."""
CLOSED_SHARE = 0.85
"""Share of the progress before the open loops begin."""


@dataclass(frozen=True)
class Axes:
    """The knots of the grid, and the length of each test."""

    depths: tuple[int, ...] = (1, 2, 4, 8, 16, 64, 256)
    sizes_bytes: tuple[int, ...] = (512, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB)
    range_steps: tuple[float, ...] = (3, 3, 8)
    """Each range is the one before divided by this, from the whole capacity to a few tracks; the last factor
    repeats."""
    streams: tuple[int, ...] = (2, 4, 16)
    switches: tuple[float, ...] = (0.0, 1 / 64, 1 / 16, 1 / 4, 1.0)
    """Switches between streams per request; 0 is one stream."""
    random_shares: tuple[float, ...] = (0.1, 0.3, 0.6, 0.85, 1.0)
    read_shares: tuple[float, ...] = (0.0, 0.3, 0.6, 0.85, 1.0)
    mixed_sizes_bytes: tuple[int, ...] = (4 * KIB, 16 * KIB, 64 * KIB)
    mixed_ranges: tuple[int, ...] = (0, 2)
    """Indices of the ranges, from the whole capacity on."""
    hot_shares: tuple[float, ...] = (0.5, 0.8, 0.95)
    """Shares of the random requests that go to a hot part."""
    hot_ranges: tuple[int, ...] = (1, 3, 5)
    """Indices of the ranges, from the whole capacity on, that are hot parts."""
    open_shares: tuple[int, ...] = (0, 2, 4)
    """Indices of the random shares that are also tested with arrivals."""
    loads: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """Arrival rates as shares of the maximum throughput of closed loops with the same mix."""
    requests: int = 2500
    """Number of requests of each test; fewer if they are large, and more at high queue depth."""
    warm_up: int = 500
    environments: int = 160
    """Number of random environments from which the predictor's error is determined."""


FULL = Axes()
"""The default axes of a characterization."""


@dataclass(frozen=True)
class Axis:
    """One coordinate of a table."""

    name: str
    knots: tuple[float, ...]


class StoppedError(RunError):
    """The tests were interrupted; ``results`` has those of the completed tests."""

    def __init__(self, results: list[RunSummary], why: str, done: int, planned: int) -> None:
        advice = "a characterization needs all tests; repeat the command to resume"
        super().__init__(f"{why} after {done} of {planned} tests; {advice}")
        self.results, self.why = results, why


class RunSummary(NamedTuple):
    """The result of a run."""

    time_ns: float
    """Time per request, the reciprocal of the throughput."""
    mean_ns: float
    """Mean response time."""
    half_width: float
    bottleneck: str
    shape: list[float]
    """Response times at ``LEVELS`` divided by their mean."""

    def percentile_ns(self, level: float) -> float:
        """Returns the response time at one of ``LEVELS``."""
        return self.mean_ns * self.shape[LEVELS.index(level)]


@dataclass(frozen=True)
class Table:
    """Times of one kind of test over its coordinates, the last of which varies fastest."""

    axes: tuple[Axis, ...]
    time_ns: list[float]
    """Time per request, the reciprocal of the throughput; for open loops, mean response time."""
    half_width: list[float]
    """95 % confidence half-width of the mean response time, divided by it."""
    bottleneck: list[str]
    shape: list[list[float]]
    """Response times at ``LEVELS`` divided by their mean."""

    @classmethod
    def of(cls, axes: tuple[Axis, ...], summaries: Sequence[RunSummary], response: bool = False) -> Table:
        """Returns the table of completed tests, with their mean response time if ``response``."""
        time_ns = [summary.mean_ns if response else summary.time_ns for summary in summaries]
        rest = (
            [summary.half_width for summary in summaries],
            [summary.bottleneck for summary in summaries],
            [summary.shape for summary in summaries],
        )
        return cls(axes, time_ns, *rest)

    def knots(self, name: str) -> tuple[float, ...]:
        """Returns the knots of one axis."""
        return next(axis.knots for axis in self.axes if axis.name == name)

    def curve(self, *at: float) -> list[float]:
        """Returns the times over the last coordinate, at knots of all others."""
        place = self.place(*at, self.axes[-1].knots[0])
        return self.time_ns[place : place + len(self.axes[-1].knots)]

    def place(self, *at: float) -> int:
        """Returns the index of the test at these knots."""
        place = 0
        for axis, knot in zip(self.axes, at, strict=True):
            place = place * len(axis.knots) + axis.knots.index(knot)
        return place


RANDOM, SEQUENTIAL, MIXED, OPEN, SKEWED = "random", "sequential", "mixed", "open", "skewed"
CLOSED = (RANDOM, SEQUENTIAL, MIXED, SKEWED)
INTERLEAVED = "interleaved"
"""A kind of environment without a table of its own: random requests between interleaved streams, predicted from tests
of each.
"""


def axes_of(table: str, axes: Axes, bench: Bench) -> tuple[Axis, ...]:
    """Returns the coordinates of a table for one system, without those that it cannot run."""
    sizes = tuple(float(size) for size in axes.sizes_bytes if size >= bench.block_bytes)
    ranges = ranges_of(axes, bench.capacity_bytes)
    depths = Axis("depth", tuple(map(float, axes.depths)))
    operation, align = Axis("read", (0.0, 1.0) if bench.writes else (1.0,)), Axis("align", bench.alignments)
    if table == RANDOM:
        return (align, operation, Axis("size", sizes), Axis("range", ranges), depths)
    if table == SEQUENTIAL:
        streams, switches = Axis("streams", tuple(map(float, axes.streams))), Axis("switch", axes.switches)
        return (operation, Axis("size", sizes), streams, switches, depths)
    if table == SKEWED:
        parts = {ranges[-1 - n] for n in axes.hot_ranges if n < len(ranges) - 1} or {ranges[0]}
        return (operation, Axis("hot", axes.hot_shares), Axis("range", tuple(sorted(parts))), depths)
    mixed_sizes = Axis("size", tuple(map(float, axes.mixed_sizes_bytes)))
    mixed_ranges = Axis("range", tuple(sorted(ranges[-1 - n] for n in axes.mixed_ranges if n < len(ranges))))
    return (
        align,
        Axis("random", axes.random_shares),
        Axis("read", axes.read_shares if bench.writes else (1.0,)),
        mixed_sizes,
        mixed_ranges,
        depths,
    )


def ranges_of(axes: Axes, capacity: int) -> tuple[float, ...]:
    """Returns ranges as shares of the capacity, the smallest first."""
    shares = [1.0]
    steps = [*axes.range_steps]
    while shares[-1] * capacity / steps[0] >= RANGE_MIN_BYTES:
        shares.append(shares[-1] / steps[0])
        steps = steps[1:] or steps
    return tuple(reversed(shares))


@dataclass(frozen=True)
class Bench:
    """The system that tests run on, simulated or real."""

    name: str
    start_byte: int
    capacity_bytes: int
    """Capacity of the part that is used."""
    block_bytes: int
    """The smallest request that every device accepts."""
    alignments: tuple[float, ...]
    """Alignments of random requests that are tested: each sector and each page, if it matters."""
    held_bytes: int
    """Capacity of buffers and caches; 0 if unknown."""
    writes: bool
    """Whether tests may write."""
    spec: Callable[[Workload], Spec]
    """Creates a run of a workload."""
    run: Callable[[Sequence[Spec], Progress | None], list[RunSummary]]
    """Runs specifications."""

    @classmethod
    def of(cls, system: Drive | Array | Stack) -> Bench:
        """Returns a simulated system."""
        start, length = system.span or (0, system.capacity_bytes)
        return cls(
            system.name,
            start,
            length,
            block_bytes(system),
            alignments(system),
            held_bytes(system),
            True,
            partial(first_spec, system),
            run,
        )


def held_bytes(tested: Drive | Array | Stack) -> int:
    """Returns the capacity of buffers and caches in bytes, below a stack those of the system that holds the data."""
    layers = layers_of(tested.system)
    memory = sum(int(layer["layer"].get("page-cache", {}).get("memory_bytes", 0)) for layer in layers)
    system = base_of(tested.system)
    buffers = [disk["buffer"] for disk in disks(system)]
    sectors = [int(buffer["segments"] * buffer["segment_sectors"]) for buffer in buffers]
    drives = len(system["array"]["members"]) if "array" in system else 1
    cache = system["array"]["controller"].get("cache") if "array" in system else None
    return SECTOR * max(sectors, default=0) * drives + (int(cache["data_bytes"]) if cache else 0) + memory


def block_bytes(tested: Drive | Array | Stack) -> int:
    """Returns the smallest request that every device accepts."""
    return max([SECTOR, *(int(disk["geometry"]["logical_block_bytes"]) for disk in disks(tested.system))])


def alignments(tested: Drive | Array | Stack) -> tuple[float, ...]:
    """Returns the alignments that change response times: also 4 KiB, if pages or sectors have that size."""
    system = tested.system
    if block_bytes(tested) >= PAGE:
        return (float(PAGE),)
    sectors = [int(disk["geometry"]["physical_sector_bytes"]) for disk in disks(system)]
    matters = bool(ssds(system)) or max(sectors) > SECTOR
    return (float(SECTOR), float(PAGE)) if matters else (float(SECTOR),)


def run_grid(bench: Bench, axes: Axes, progress: Progress | None) -> dict[str, Table]:
    """Runs all tests on all cores."""
    planned = {name: axes_of(name, axes, bench) for name in CLOSED}
    report = progress or (lambda share: None)
    tables = run_closed_loops(bench, axes, planned, lambda share: report(CLOSED_SHARE * share))
    return tables | {
        OPEN: run_open_loops(
            bench, axes, tables[MIXED], lambda share: report(CLOSED_SHARE + (1 - CLOSED_SHARE) * share)
        )
    }


def run_closed_loops(
    bench: Bench, axes: Axes, planned: dict[str, tuple[Axis, ...]], progress: Progress
) -> dict[str, Table]:
    """Returns the tables of closed loops at the planned coordinates of each."""
    places = [
        (name, point)
        for name, coordinates in planned.items()
        for point in itertools.product(*(a.knots for a in coordinates))
    ]
    specs: dict[str, Spec] = {}
    keys = []
    for name, point in places:
        spec = grid_spec(bench, axes, name, dict(zip((a.name for a in planned[name]), point, strict=True)))
        # Identical tests, such as those of one stream for any number of streams, run once.
        key = key_of([spec["workload"], spec["span"]])
        specs.setdefault(key, spec)
        keys.append(key)
    figures = dict(zip(specs, bench.run(list(specs.values()), progress), strict=True))
    tables: dict[str, Table] = {}
    for name, coordinates in planned.items():
        rows = [figures[key] for key, (table, _) in zip(keys, places, strict=True) if table == name]
        tables[name] = Table.of(coordinates, rows)
    return tables


def run_open_loops(bench: Bench, axes: Axes, mixed: Table, progress: Progress) -> Table:
    """Runs arrivals on the whole system: closed loops cannot show how much a system does while idle, above all for
    writes that it has already accepted."""
    align, _random, read, size, range_, _depth = mixed.axes
    shares = Axis("random", tuple(axes.random_shares[n] for n in axes.open_shares))
    coordinates = (align, shares, read, size, Axis("load", axes.loads))
    specs = []
    for a, f, r, s in itertools.product(*(axis.knots for axis in coordinates[:-1])):
        most = 1e9 / min(mixed.curve(a, f, r, s, range_.knots[-1]))
        for load in axes.loads:
            spec = grid_spec(bench, axes, MIXED, {"align": a, "random": f, "read": r, "size": s, "depth": 1.0})
            specs.append(with_arrivals(spec, axes, load * most, load))
    return Table.of(coordinates, bench.run(specs, progress), response=True)


def with_arrivals(spec: Spec, axes: Axes, rate_per_s: float, load: float) -> Spec:
    """Returns the run in an open loop, long enough for its queue to be empty and full many times."""
    spec["workload"]["arrivals"] = {"open": {"rate_per_s": rate_per_s, "process": "poisson"}}
    spec["workload"]["run_length"] = {"requests": round(axes.requests * max(1.0, 0.6 / (1 - load)))}
    return spec


def grid_spec(bench: Bench, axes: Axes, table: str, at: dict[str, float]) -> Spec:
    """Returns one test as a run."""
    random = {RANDOM: 1.0, SKEWED: 1.0, SEQUENTIAL: 0.0}.get(table, at.get("random", 0.0))
    size = at.get("size", skewed_bytes(axes, bench))
    line: Line = {"size": f"{size:.0f}B", "read_percent": 100 * at["read"], "random_percent": 100 * random}
    if at.get("align", bench.alignments[-1] if table == SKEWED else SECTOR) > SECTOR:
        line["align"] = f"{at.get('align', bench.alignments[-1]):.0f}B"
    several: Mapping[str, object] = {}
    if at.get("switch", 0.0) > 0:
        several = {"streams": int(at["streams"]), "stream_turn": round(1 / at["switch"])}
    if table == SKEWED:
        several = {"addresses": hot_part(at["hot"], at["range"])}
        return closed_loop_spec(bench, axes, [line], at["depth"], 1.0, several)
    return closed_loop_spec(bench, axes, [line], at["depth"], at.get("range", 1.0), several)


def skewed_bytes(axes: Axes, bench: Bench) -> float:
    """Returns the size of requests in tests with a hot part, one of those of random tests."""
    return float(min(size for size in axes.sizes_bytes if size >= max(bench.block_bytes, bench.alignments[-1])))


def hot_part(share: float, part: float) -> HotBands:
    """Returns addresses of which a share is in the first part, and the rest anywhere."""
    bands = ((100 * part, 100 * share), (100.0, 100 - 100 * share))
    return {"hot_bands": [{"from_percent": 0.0, "to_percent": to, "share_percent": of} for to, of in bands if of > 0]}


def closed_loop_spec(
    bench: Bench,
    axes: Axes,
    lines: Sequence[Line],
    depth: float,
    range_share: float,
    several: Mapping[str, object],
) -> Spec:
    """Returns a closed loop of these lines on the first part of a system."""
    queue_depth, enough = round(depth), share_of_requests(axes, lines)
    workload: dict[str, object] = {
        "name": "test",
        "lines": lines,
        "arrivals": {"closed": {"queue_depth": queue_depth}},
        "warm_up": {"requests": max(2 * queue_depth, round((axes.warm_up + 4 * queue_depth) * enough))},
        "run_length": {"requests": round(enough * axes.requests * (1 + queue_depth / DEPTH_DOUBLES))},
        **several,
    }
    spec = bench.spec(Workload(workload))
    length = bench.capacity_bytes
    spec["span"] = (bench.start_byte, int(length * range_share) // PAGE * PAGE if range_share < 1 else length)
    spec["labels"] = []
    return spec


def share_of_requests(axes: Axes, lines: Sequence[Line]) -> float:
    """Returns the share of a test's requests that is sufficient if they are large: these vary little, and soon fill
    caches.
    """
    mean_bytes: float = sum(size_bytes("size", line["size"]) * line.get("share_percent", 100.0) / 100 for line in lines)
    return min(1.0, max(1 / LARGE_LESS, TEST_BYTES / mean_bytes / axes.requests))


def run(specs: Sequence[Spec], _: Progress | None) -> list[RunSummary]:
    """Returns the result of each run, on all cores."""
    results = _native.run(specs, None, None)
    rows = [results[index] for index in range(len(results))]
    for index, row in enumerate(rows):
        if not row["checks_passed"]:
            raise RunError(f"{row['system']}: {results.failed_checks(index)[0]}")
    return [summarize_run(row, partial(results.quantile_ms, index)) for index, row in enumerate(rows)]


def summarize_run(row: Mapping[str, Any], quantile_ms: Callable[[float], float | None]) -> RunSummary:
    """Returns the result of one run from its row of results and its response times."""
    mean_ms = row["mean_ms"]
    # If the run was too short, the error is unknown.
    half = row["half_width_ms"] / mean_ms if row["half_width_ms"] is not None and mean_ms else 1.0
    levels = [min(max(level, OUTMOST), 1 - OUTMOST) for level in LEVELS]
    shape = [(quantile_ms(level) or 0.0) / mean_ms if mean_ms else 1.0 for level in levels]
    return RunSummary(1e9 / row["iops"], mean_ms * 1e6, half, component(row["bottleneck"]), shape)


def component(bottleneck: str | None) -> str:
    """Returns the kind of component: which of several drives was busiest is random."""
    if not bottleneck:
        return ""
    first, _, rest = bottleneck.partition(" ")
    return rest if rest and first[0] == "d" and first[1:].isdecimal() else bottleneck.rstrip("0123456789")


def interpolate(axis: Axis, value: float, is_log: bool, label: str) -> tuple[tuple[int, float], ...]:
    """Returns the knots around a value, with their weights. Raises ``InputError`` outside the range of the axis."""
    knots = axis.knots
    low, high = knots[0], knots[-1]
    if not low * (1 - 1e-9) <= value <= high * (1 + 1e-9):
        raise InputError(f"{label} is outside the tested range, {low:g} to {high:g}")
    for index in range(len(knots) - 1):
        if value <= knots[index + 1]:
            a, b = knots[index], knots[index + 1]
            share = math.log(value / a) / math.log(b / a) if is_log else (value - a) / (b - a)
            share = min(1.0, max(0.0, share))
            if share == 0.0:
                return ((index, 1.0),)
            if share == 1.0:
                return ((index + 1, 1.0),)
            return ((index, 1 - share), (index + 1, share))
    return ((len(knots) - 1, 1.0),)
