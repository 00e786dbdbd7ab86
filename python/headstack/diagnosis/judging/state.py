"""Types of a judgement's state as plain data, from which the next judgement continues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypeAlias, TypedDict

LaneState: TypeAlias = Mapping[str, float | list[float]]
"""The values of one lane of ``Evidence``, by its fields; lists have a value for each test, or for each change."""


class HealthState(TypedDict):
    """The residuals of healthy disks; residuals are differences of logarithms of latency."""

    pool: list[float]
    time: float
    """Correlation time in steps."""
    hours: list[float]
    """Deviation of levels of two hours, and its degrees of freedom."""
    days: list[float]
    """Deviation of means of days, and its degrees of freedom."""
    change: float


class PeersState(HealthState):
    """A group of disks and one kind of request."""

    offsets: list[float]
    """By member, a logarithm of latency."""
    slopes: list[float]
    """Slopes of the logarithm of latency over rate, size and share of reads."""
    known: int
    steps: list[list[Any]]
    """Number, latencies and features of each step; null where nothing was seen."""


class PastState(HealthState):
    """One disk and one kind of request."""

    weights: list[float]
    busy_weights: list[float]
    covariance: list[list[float]]
    centre: list[float]
    rates: list[float]
    middle: list[float]
    spells: list[list[float]]
    young: list[list[float]]
    deepest: float
    by_busy: bool
    deviation: float
    anchor: float
    known: bool


class RecordState(TypedDict):
    """The last intervals of a disk."""

    levels: list[list[list[float | None]]]
    """Rows of ``record.COLUMNS`` by level."""
    last: list[float | None] | None
    """End of the last interval, and the logarithms of its rates."""


class DiskState(TypedDict):
    """One disk, without its tests."""

    host: str
    disk: str
    model: str | None
    group: str | None
    course: list[tuple[float, float]]
    """Start of a step in seconds since 1970, and the slowdown of the disk."""
    every: int
    steps: int
    first_s: float
    last_s: float
    usual_spread: list[float | None]
    unsteady: float
    seen: list[int]
    compared: list[list[int]]
    pasts: dict[str, PastState]
    """Past by the number of the stream, as text."""
    recent: list[list[float | None]]
    record: NotRequired[RecordState]
    """The last intervals; missing in states of November 2026 and before."""


class TestedDiskState(DiskState):
    """One disk with the tests of its lanes."""

    tests: list[LaneState]


class FleetState(TypedDict):
    """All disks."""

    disks: list[TestedDiskState]
    peers: list[list[Any]]
    """The group, the number of the stream, and a ``PeersState``."""
    judged_s: float
    """Seconds since 1970."""
    late: int
    clock: list[int]


class State(FleetState):
    """Everything from which the next judgement continues."""

    version: int
    waiting: dict[str, list[Any]]
    """Rows of observations that are judged when later data arrive, by column."""
