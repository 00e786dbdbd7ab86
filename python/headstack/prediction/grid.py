"""The low-level tests of a characterization: which, how they are run, and the tables that they fill."""

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
"""A test of more than this ends early, with at least its requests over ``LARGE_LESS``."""
LARGE_LESS = 6
DEPTH_DOUBLES = 200
"""Requests outstanding that take a test of twice the length: a queue forgets its start when it was served often."""
CLOSED_SHARE = 0.85
"""Of the progress, until the open loops begin."""


@dataclass(frozen=True)
class Axes:
    """The knots of the grid, and how long each test is."""

    depths: tuple[int, ...] = (1, 2, 4, 8, 16, 64, 256)
    sizes_bytes: tuple[int, ...] = (512, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB)
    range_steps: tuple[float, ...] = (3, 3, 8)
    """Each range is the one before over this, from the whole capacity to some tracks; the last is repeated."""
    streams: tuple[int, ...] = (2, 4, 16)
    switches: tuple[float, ...] = (0.0, 1 / 64, 1 / 16, 1 / 4, 1.0)
    """Switches between streams for each request; 0 is one stream."""
    random_shares: tuple[float, ...] = (0.1, 0.3, 0.6, 0.85, 1.0)
    read_shares: tuple[float, ...] = (0.0, 0.3, 0.6, 0.85, 1.0)
    mixed_sizes_bytes: tuple[int, ...] = (4 * KIB, 16 * KIB, 64 * KIB)
    mixed_ranges: tuple[int, ...] = (0, 2)
    """Which of the ranges, from the whole on."""
    hot_shares: tuple[float, ...] = (0.5, 0.8, 0.95)
    """Of random requests, those that go to a hot part."""
    hot_ranges: tuple[int, ...] = (1, 3, 5)
    """Which of the ranges, from the whole on, such a part is."""
    open_shares: tuple[int, ...] = (0, 2, 4)
    """Which of the random shares are tested with arrivals, too."""
    loads: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """Arrivals over the most that the closed loops of the same mix do."""
    requests: int = 2500
    """Of each test, but less where they are large, and more where many are outstanding."""
    warm_up: int = 500
    environments: int = 160
    """Environments drawn at random that the predictor's error is found on."""


FULL = Axes()
"""What a characterization is made of unless somebody says otherwise."""


@dataclass(frozen=True)
class Axis:
    """One coordinate of a table."""

    name: str
    knots: tuple[float, ...]


class StoppedError(RunError):
    """Somebody ended the tests; ``found`` is what those that were asked for have come to until then."""

    def __init__(self, found: list[Ran], why: str, done: int, planned: int) -> None:
        told = "a characterization takes all of them, and the same command goes on from there"
        super().__init__(f"{why} after {done} of {planned} tests; {told}")
        self.found, self.why = found, why


class Ran(NamedTuple):
    """What a run came to."""

    time_ns: float
    """Over requests, the reciprocal of the throughput."""
    mean_ns: float
    """Mean response time."""
    half_width: float
    bottleneck: str
    shape: list[float]
    """Response times at ``LEVELS`` over their mean."""

    def percentile_ns(self, level: float) -> float:
        """The response time at one of ``LEVELS``."""
        return self.mean_ns * self.shape[LEVELS.index(level)]


@dataclass(frozen=True)
class Table:
    """Times of one kind of test over its coordinates, the last of which varies fastest."""

    axes: tuple[Axis, ...]
    time_ns: list[float]
    """Time over requests, the reciprocal of the throughput; of open loops, mean response time."""
    half_width: list[float]
    """Half of the 95 % interval of the mean response time, over it."""
    bottleneck: list[str]
    shape: list[list[float]]
    """Response times at ``LEVELS`` over their mean."""

    @classmethod
    def of(cls, axes: tuple[Axis, ...], ran: Sequence[Ran], response: bool = False) -> Table:
        """The table of tests that ran, of their mean response where ``response``."""
        time_ns = [one.mean_ns if response else one.time_ns for one in ran]
        rest = ([one.half_width for one in ran], [one.bottleneck for one in ran], [one.shape for one in ran])
        return cls(axes, time_ns, *rest)

    def knots(self, name: str) -> tuple[float, ...]:
        """The knots of one axis."""
        return next(axis.knots for axis in self.axes if axis.name == name)

    def curve(self, *at: float) -> list[float]:
        """The times over the last coordinate, at knots of all others."""
        place = self.place(*at, self.axes[-1].knots[0])
        return self.time_ns[place : place + len(self.axes[-1].knots)]

    def place(self, *at: float) -> int:
        """Where the test at these knots is."""
        place = 0
        for axis, knot in zip(self.axes, at, strict=True):
            place = place * len(axis.knots) + axis.knots.index(knot)
        return place


RANDOM, SEQUENTIAL, MIXED, OPEN, SKEWED = "random", "sequential", "mixed", "open", "skewed"
CLOSED = (RANDOM, SEQUENTIAL, MIXED, SKEWED)
INTERLEAVED = "interleaved"
"""No table, but a kind of environment: random requests between streams that take turns, told from tests of each."""


def axes_of(table: str, axes: Axes, bench: Bench) -> tuple[Axis, ...]:
    """The coordinates of a table for one system: what it cannot do is left out."""
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
    """Ranges as shares of the capacity, the smallest first."""
    shares = [1.0]
    steps = [*axes.range_steps]
    while shares[-1] * capacity / steps[0] >= RANGE_MIN_BYTES:
        shares.append(shares[-1] / steps[0])
        steps = steps[1:] or steps
    return tuple(reversed(shares))


@dataclass(frozen=True)
class Bench:
    """What tests run on: a simulated system, or a real one."""

    name: str
    start_byte: int
    capacity_bytes: int
    """Of what is used."""
    block_bytes: int
    """The smallest request that every device takes."""
    alignments: tuple[float, ...]
    """Multiples of which random requests are tested at: where it matters, each sector and each page."""
    held_bytes: int
    """What buffers and caches hold; 0 where nobody knows."""
    writes: bool
    """Tests may write."""
    spec: Callable[[Workload], Spec]
    """A run of a workload."""
    run: Callable[[Sequence[Spec], Progress | None], list[Ran]]
    """Carries runs out."""

    @classmethod
    def of(cls, system: Drive | Array) -> Bench:
        """A simulated one."""
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


def held_bytes(tested: Drive | Array) -> int:
    """Bytes that buffers and caches hold."""
    system = tested.system
    buffers = [disk["buffer"] for disk in disks(system)]
    sectors = [int(buffer["segments"] * buffer["segment_sectors"]) for buffer in buffers]
    drives = len(system["array"]["members"]) if "array" in system else 1
    cache = system["array"]["controller"].get("cache") if "array" in system else None
    return SECTOR * max(sectors, default=0) * drives + (int(cache["data_bytes"]) if cache else 0)


def block_bytes(tested: Drive | Array) -> int:
    """The smallest request that every device takes."""
    return max([SECTOR, *(int(disk["geometry"]["logical_block_bytes"]) for disk in disks(tested.system))])


def alignments(tested: Drive | Array) -> tuple[float, ...]:
    """Alignments that change response times: to 4 KiB as well, where pages or sectors have that size."""
    system = tested.system
    if block_bytes(tested) >= PAGE:
        return (float(PAGE),)
    sectors = [int(disk["geometry"]["physical_sector_bytes"]) for disk in disks(system)]
    matters = bool(ssds(system)) or max(sectors) > SECTOR
    return (float(SECTOR), float(PAGE)) if matters else (float(SECTOR),)


def characterized(bench: Bench, axes: Axes, progress: Progress | None) -> dict[str, Table]:
    """Runs all tests on all cores."""
    planned = {name: axes_of(name, axes, bench) for name in CLOSED}
    told = progress or (lambda share: None)
    tables = tested(bench, axes, planned, lambda share: told(CLOSED_SHARE * share))
    return tables | {
        OPEN: open_loops(bench, axes, tables[MIXED], lambda share: told(CLOSED_SHARE + (1 - CLOSED_SHARE) * share))
    }


def tested(bench: Bench, axes: Axes, planned: dict[str, tuple[Axis, ...]], progress: Progress) -> dict[str, Table]:
    """The tables of closed loops at the coordinates that are planned for each."""
    places = [(name, point) for name, of in planned.items() for point in itertools.product(*(a.knots for a in of))]
    specs: dict[str, Spec] = {}
    keys = []
    for name, point in places:
        spec = test(bench, axes, name, dict(zip((a.name for a in planned[name]), point, strict=True)))
        # Tests that are the same, as those of one stream are for any number of streams, are run once.
        key = key_of([spec["workload"], spec["span"]])
        specs.setdefault(key, spec)
        keys.append(key)
    figures = dict(zip(specs, bench.run(list(specs.values()), progress), strict=True))
    tables: dict[str, Table] = {}
    for name, of in planned.items():
        rows = [figures[key] for key, (table, _) in zip(keys, places, strict=True) if table == name]
        tables[name] = Table.of(of, rows)
    return tables


def open_loops(bench: Bench, axes: Axes, mixed: Table, progress: Progress) -> Table:
    """Arrivals on the whole system: what closed loops cannot tell is how much a system does where it is let be, above
    all for writes that it has taken already."""
    align, _random, read, size, range_, _depth = mixed.axes
    shares = Axis("random", tuple(axes.random_shares[n] for n in axes.open_shares))
    of = (align, shares, read, size, Axis("load", axes.loads))
    specs = []
    for a, f, r, s in itertools.product(*(axis.knots for axis in of[:-1])):
        most = 1e9 / min(mixed.curve(a, f, r, s, range_.knots[-1]))
        for load in axes.loads:
            spec = test(bench, axes, MIXED, {"align": a, "random": f, "read": r, "size": s, "depth": 1.0})
            specs.append(with_arrivals(spec, axes, load * most, load))
    return Table.of(of, bench.run(specs, progress), response=True)


def with_arrivals(spec: Spec, axes: Axes, rate_per_s: float, load: float) -> Spec:
    """The run in an open loop, so long that its queue has been empty and full many times."""
    spec["workload"]["arrivals"] = {"open": {"rate_per_s": rate_per_s, "process": "poisson"}}
    spec["workload"]["run_length"] = {"requests": round(axes.requests * max(1.0, 0.6 / (1 - load)))}
    return spec


def test(bench: Bench, axes: Axes, table: str, at: dict[str, float]) -> Spec:
    """One test, as a run."""
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
        return as_run(bench, axes, [line], at["depth"], 1.0, several)
    return as_run(bench, axes, [line], at["depth"], at.get("range", 1.0), several)


def skewed_bytes(axes: Axes, bench: Bench) -> float:
    """The size of requests of tests with a hot part, one of those at random."""
    return float(min(size for size in axes.sizes_bytes if size >= max(bench.block_bytes, bench.alignments[-1])))


def hot_part(share: float, part: float) -> HotBands:
    """Addresses of which a share is in the first part, and the rest anywhere."""
    bands = ((100 * part, 100 * share), (100.0, 100 - 100 * share))
    return {"hot_bands": [{"from_percent": 0.0, "to_percent": to, "share_percent": of} for to, of in bands if of > 0]}


def as_run(
    bench: Bench,
    axes: Axes,
    lines: Sequence[Line],
    depth: float,
    range_share: float,
    several: Mapping[str, object],
) -> Spec:
    """A closed loop of these lines on the first part of a system."""
    outstanding, enough = round(depth), share_of_requests(axes, lines)
    workload: dict[str, object] = {
        "name": "test",
        "lines": lines,
        "arrivals": {"closed": {"outstanding": outstanding}},
        "warm_up": {"requests": max(2 * outstanding, round((axes.warm_up + 4 * outstanding) * enough))},
        "run_length": {"requests": round(enough * axes.requests * (1 + outstanding / DEPTH_DOUBLES))},
        **several,
    }
    spec = bench.spec(Workload(workload))
    length = bench.capacity_bytes
    spec["span"] = (bench.start_byte, int(length * range_share) // PAGE * PAGE if range_share < 1 else length)
    spec["labels"] = []
    return spec


def share_of_requests(axes: Axes, lines: Sequence[Line]) -> float:
    """Of the requests of a test, those that are enough where they are large: such vary little, and fill caches soon."""
    mean_bytes: float = sum(size_bytes("size", line["size"]) * line.get("share_percent", 100.0) / 100 for line in lines)
    return min(1.0, max(1 / LARGE_LESS, TEST_BYTES / mean_bytes / axes.requests))


def run(specs: Sequence[Spec], _: Progress | None) -> list[Ran]:
    """What each run came to, on all cores."""
    results = _native.run(specs, None, None)
    rows = [results[index] for index in range(len(results))]
    for index, row in enumerate(rows):
        if not row["checks_passed"]:
            raise RunError(f"{row['system']}: {results.failed_checks(index)[0]}")
    return [ran(row, partial(results.quantile_ms, index)) for index, row in enumerate(rows)]


def ran(row: Mapping[str, Any], quantile_ms: Callable[[float], float | None]) -> Ran:
    """What one run came to, from its row of results and its response times."""
    mean_ms = row["mean_ms"]
    # Where the run was too short to tell, nothing is known.
    half = row["half_width_ms"] / mean_ms if row["half_width_ms"] is not None and mean_ms else 1.0
    levels = [min(max(level, OUTMOST), 1 - OUTMOST) for level in LEVELS]
    shape = [(quantile_ms(level) or 0.0) / mean_ms if mean_ms else 1.0 for level in levels]
    return Ran(1e9 / row["iops"], mean_ms * 1e6, half, component(row["bottleneck"]), shape)


def component(bottleneck: str | None) -> str:
    """The kind of component: which of several drives was busiest is chance."""
    if not bottleneck:
        return ""
    first, _, rest = bottleneck.partition(" ")
    return rest if rest and first[0] == "d" and first[1:].isdecimal() else bottleneck.rstrip("0123456789")


def between(axis: Axis, value: float, is_log: bool, what: str) -> tuple[tuple[int, float], ...]:
    """The knots around a value, with their weights. Raises ``InputError`` outside the range of the axis."""
    knots = axis.knots
    low, high = knots[0], knots[-1]
    if not low * (1 - 1e-9) <= value <= high * (1 + 1e-9):
        raise InputError(f"{what} is outside the tests, which have {low:g} to {high:g}")
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
