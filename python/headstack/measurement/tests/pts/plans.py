"""``Plan``: the tests of the specification, with the points of a round, the tracked variable, and the end condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

KIB, MIB = 1 << 10, 1 << 20

Row = Mapping[str, float | None]
"""The figures of a measurement by the names of ``FIGURES``; ``None`` if no request completed."""


@dataclass(frozen=True)
class Point:
    """One measurement of a round."""

    block_bytes: int
    read_percent: int
    is_random: bool

    @property
    def block(self) -> str:
        """Request size in words."""
        return "0.5 KiB" if self.block_bytes == 512 else f"{self.block_bytes // KIB} KiB"

    @property
    def mix(self) -> str:
        """Percentages of reads and writes, in the form of the specification."""
        return f"{self.read_percent}/{100 - self.read_percent}"


@dataclass(frozen=True)
class Variable:
    """A figure of a point that is tracked or shown."""

    column: str
    """Column of the figure in the table of results."""
    name: str
    unit: str

    def __str__(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


IOPS = Variable("iops", "IOPS", "")
THROUGHPUT = Variable("mb_per_s", "throughput", "MB/s")
LATENCY = Variable("mean_ms", "average latency", "ms")


@dataclass(frozen=True)
class Plan:
    """A test."""

    name: str
    points: tuple[Point, ...]
    """The points of a round, in the order in which they are measured."""
    tracked: Point
    """The point whose variable determines the steady state."""
    variable: Variable
    rounds_max: int
    """Maximum number of rounds, whether steady or not."""
    depth: int | None = None
    """Queue depth; ``None`` for the queue depth in the settings."""
    group: int = 1
    """Number of rounds that are averaged into one value of the tracked variable."""
    preconditioned: bool = True
    """Whether the test is preconditioned by sequential writes of twice the capacity."""
    capacities_max: float | None = None
    """Multiple of the capacity; the test also ends when this amount was written."""

    def tracked_values(self, rounds: Sequence[Sequence[Row]]) -> list[float]:
        """Returns the values of the tracked variable, one for each group of rounds."""
        index = self.points.index(self.tracked)
        each = [float(points[index][self.variable.column] or 0.0) for points in rounds]
        whole = len(each) // self.group * self.group
        return [sum(each[at : at + self.group]) / self.group for at in range(0, whole, self.group)]


MIXES = (100, 95, 65, 50, 35, 5, 0)
SIZES = (MIB, 128 * KIB, 64 * KIB, 32 * KIB, 16 * KIB, 8 * KIB, 4 * KIB, 512)
LATENCY_MIXES, LATENCY_SIZES = (100, 65, 0), (8 * KIB, 4 * KIB, 512)
ROUNDS = 25
WSAT_ROUNDS, WSAT_GROUP, WSAT_CAPACITIES = 24 * 60, 30, 4.0
"""Limits of the write saturation test: 1440 rounds of a minute, averages of 30 rounds, four times the capacity."""

WRITE_4K = Point(4 * KIB, 0, True)


def _random(sizes: Sequence[int], mixes: Sequence[int]) -> tuple[Point, ...]:
    return tuple(Point(size, mix, True) for mix in mixes for size in sizes)


def _throughput(name: str, size: int) -> Plan:
    read, write = Point(size, 100, False), Point(size, 0, False)
    return Plan(name, (read, write), write, THROUGHPUT, ROUNDS)


PLANS = {
    "iops": (Plan("iops", _random(SIZES, MIXES), WRITE_4K, IOPS, ROUNDS),),
    "throughput": (_throughput("throughput 1024 KiB", MIB), _throughput("throughput 128 KiB", 128 * KIB)),
    "latency": (Plan("latency", _random(LATENCY_SIZES, LATENCY_MIXES), WRITE_4K, LATENCY, ROUNDS, depth=1),),
    "wsat": (
        Plan(
            "wsat",
            (WRITE_4K,),
            WRITE_4K,
            IOPS,
            WSAT_ROUNDS,
            group=WSAT_GROUP,
            preconditioned=False,
            capacities_max=WSAT_CAPACITIES,
        ),
    ),
}
"""Tests by user-visible name; throughput consists of one test for each block size."""
