"""Checks of the cells of a set of fio results: whether an SSD was in one state, for example before its SLC cache was
used up, and whether the requests of a job were independent.

In one state, a greater queue depth does not lower the rate of random requests, and it raises the rate at most in
proportion, because a request is not served faster by adding others. A cell below one of these bounds was measured in a
slower state than the others.

Independent requests have the same rate in one job as in several with the same number outstanding. With fio's default
``randrepeat=1``, one job reads addresses in the order in which an earlier run wrote them: neighbours in time are then
neighbours in the flash, and wait for the same die.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headstack.twin.fio_results import Point

BELOW: Final = 1.7
"""Factor below the expected rate at which the state is another one: between that of SATA SSDs in one state (at most 1.5
in 17 sets of fio-systems.csv) and that of a Sabrent Rocket 4 Plus when its cache was used up (2.4 and more)."""
DEPENDENT: Final = 1.37
"""Factor between the rates of reads of several jobs and of one at which the latter were not independent: between those
of SATA SSDs (at most 1.33, with randrepeat=1; the same drive with randrepeat=0: 1.0) and of the Sabrent (1.42 to 1.9).
"""
LEVELS_APART: Final = 3.0
"""Factor between the rates of two phases of a run; the Sabrent's slow phases have 4 to 15 % of its fast rate."""
REPEATS_APART: Final = 1.15
"""Factor between repeats of one cell at which the state is another one."""
REST: Final = (
    "measure writes in random order, with the same rest before each run, or longer than two cycles of the cache"
)


@dataclass(frozen=True)
class Levels:
    """The rates of the two phases of a run, in requests per second."""

    fast: float
    slow: float
    slow_share: float
    """Share of the time in the slow phase."""


@dataclass(frozen=True)
class StateChange:
    """A cell that was measured in a slower state than others."""

    point: Point
    neighbours: tuple[Point, ...]
    """The faster cells with which it does not agree, the nearest first."""
    written_bytes: float | None
    """Data written by earlier runs of the set; ``None`` if their order is unknown."""

    def describe(self) -> str:
        """Returns the cell, those it does not agree with, and what to measure instead."""
        point = self.point
        others = " and ".join(f"{_cell(other, point)} did {other.rate:,.0f}/s" for other in self.neighbours)
        text = (
            f"{point.kind}, depth {point.depth}, {point.jobs} job{'s' if point.jobs > 1 else ''}: {point.rate:,.0f}/s "
            f"where {others}: the drive's state changed within the set"
        )
        if (levels := levels_of(point)) is not None:
            text += (
                f" (within the run, {levels.fast:,.0f}/s and {levels.slow:,.0f}/s for {levels.slow_share:.0%} of the "
                "time)"
            )
        if self.written_bytes is not None:
            text += f"; the set had written {self.written_bytes / 1e9:,.0f} GB before"
        return f"{text}; {REST}"


@dataclass(frozen=True)
class Dependent:
    """Reads of one job that were not independent of each other."""

    point: Point
    instead: Point
    """The fastest cell with as many requests outstanding from several jobs."""

    def describe(self) -> str:
        """Returns the cell, the one that is used instead, and how to measure it."""
        point, other = self.point, self.instead
        return (
            f"read, depth {point.depth}, 1 job: {point.rate:,.0f}/s where depth {other.depth} of {other.jobs} jobs did "
            f"{other.rate:,.0f}/s, which is used instead: requests of the job were not independent, for example "
            "because it read addresses in the order of an earlier write; measure with randrepeat=0"
        )


def dependent_reads(points: Sequence[Point]) -> list[Dependent]:
    """Returns the reads of one job that are slower than as many outstanding reads of several jobs."""
    cells = []
    for point in points:
        if point.kind != "read" or point.jobs != 1:
            continue
        others = [
            other
            for other in points
            if other.kind == "read"
            and other.jobs > 1
            and (other.outstanding, other.size_bytes) == (point.depth, point.size_bytes)
        ]
        fastest = max(others, key=lambda other: other.rate, default=None)
        if fastest is not None and fastest.rate > DEPENDENT * point.rate:
            cells.append(Dependent(point, fastest))
    return sorted(cells, key=lambda cell: cell.point.depth)


def _cell(other: Point, than: Point) -> str:
    if (other.depth, other.jobs) == (than.depth, than.jobs):
        return "a repeat"
    jobs = "" if other.jobs == than.jobs else f" of {other.jobs} job{'s' if other.jobs > 1 else ''}"
    return f"depth {other.depth}{jobs}"


def levels_of(point: Point) -> Levels | None:
    """Returns the two rates of a run in a closed loop; ``None`` if it had only one.

    By Little's law, half of the requests ran at the queue depth over p50 or faster, and the slowest 5 % at the queue
    depth over p95 or less.
    """
    fast, slow = point.outstanding / point.p50_s, point.outstanding / point.p95_s
    if fast < LEVELS_APART * slow or not slow < point.rate < fast / BELOW:
        return None
    return Levels(fast, slow, (fast - point.rate) / (fast - slow))


def state_changes(points: Sequence[Point]) -> list[StateChange]:
    """Returns the write cells of an SSD that were measured in a slower state, by increasing queue depth.

    Cells of several jobs are compared by the number of outstanding requests, and only with cells of no more jobs, since
    one job can be limited by its CPU. Reads are not checked: their rate hardly depends on the cache.
    """
    changes = []
    writes = [point for point in points if point.kind == "write"]
    for point in writes:
        faster = [other for other in writes if other.size_bytes == point.size_bytes and _is_slower(point, other)]
        if faster:
            faster.sort(key=lambda other: _distance(point, other))
            below = [other for other in faster if other.outstanding <= point.outstanding][:1]
            above = [other for other in faster if other.outstanding > point.outstanding][:1]
            changes.append(StateChange(point, (*below, *above), _written_before(point, points)))
    return sorted(changes, key=lambda change: (change.point.depth, change.point.jobs))


def _is_slower(point: Point, other: Point) -> bool:
    """Whether a cell is below the bound that another sets."""
    if (point.depth, point.jobs) == (other.depth, other.jobs):
        return other.rate > REPEATS_APART * point.rate
    share = min(1.0, point.outstanding / other.outstanding)
    return other.jobs <= point.jobs and other.rate * share > BELOW * point.rate


def _distance(point: Point, other: Point) -> tuple[int, float]:
    ratio = other.outstanding / point.outstanding
    return (abs(other.jobs - point.jobs), max(ratio, 1 / ratio))


def _written_before(point: Point, points: Sequence[Point]) -> float | None:
    """Returns the bytes that earlier runs had written, if the time of each run is known."""
    times = [other.ended_s for other in points]
    if point.ended_s is None or None in times:
        return None
    earlier = [other for other in points if other.ended_s is not None and other.ended_s < point.ended_s]
    return sum(other.rate * other.runtime_s * other.size_bytes for other in earlier if other.kind == "write")
