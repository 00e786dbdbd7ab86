"""``Outcomes``, the data of PTS tests: their rounds and figures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from headstack._native import Field
from headstack.io import tables
from headstack.io.stored import Stored
from headstack.io.tables import Tabular
from headstack.measurement.tests.pts.plans import PLANS, ROUNDS, Plan, Point, Row
from headstack.measurement.tests.pts.steady import Window, last_window, steady_state

STORED = Stored("test report")

ROUND_NS = 60_000_000_000
"""Duration of a measurement by the specification."""

ACTIVE_RANGES = (100.0, 75.0)
"""Active ranges of the specification in percent: for enterprise and for client drives."""

DEPTH = 32

FIGURES = ("iops", "mb_per_s", "mean_ms", "p50_ms", "p99_ms", "p999_ms", "max_ms", "requests", "errors")
"""Columns of the table of results to keep for each measurement."""

FIELDS = (
    Field("test", "text", "", "name of the test in the specification"),
    Field("round", "count", "", "round of the test, from 1"),
    Field("in_window", "flag", "", "whether the round belongs to the measurement window"),
    Field("block_bytes", "count", "bytes", "length of the requests"),
    Field("read_percent", "count", "%", "share of reads"),
    Field("random", "flag", "", "whether requests are random"),
    Field("iops", "figure", "1/s", "completed requests per second"),
    Field("mb_per_s", "figure", "10^6 bytes/s", "throughput"),
    Field("mean_ms", "figure", "ms", "mean latency"),
    Field("p50_ms", "figure", "ms", "median latency"),
    Field("p99_ms", "figure", "ms", "99th percentile of the latency"),
    Field("p999_ms", "figure", "ms", "99.9th percentile of the latency"),
    Field("max_ms", "figure", "ms", "maximum latency"),
    Field("requests", "count", "requests", "completed requests, without failed ones"),
    Field("errors", "count", "requests", "requests that failed"),
)
"""Columns of the rows; the columns of a measurement have the names in ``FIGURES``."""

COLUMNS = tuple(field.name for field in FIELDS)


@dataclass(frozen=True)
class Settings:
    """Settings of the tests; the defaults conform to the specification."""

    tests: tuple[str, ...] = tuple(PLANS)
    purge: str = "blkdiscard"
    """Method of removing all data before each test."""
    active_range_percent: float = 100.0
    """Percentage of the capacity, from its start, that rounds access."""
    capacity_percent: float = 100.0
    """Percentage of the device that counts as its capacity."""
    round_ns: int = ROUND_NS
    """Duration of each measurement of a round."""
    rounds_max: int | None = None
    """Maximum number of rounds of each test; ``None`` for the number in the specification."""
    depth: int = DEPTH
    """Queue depth of tests that do not set their own."""

    def deviations(self) -> list[str]:
        """Returns the differences from the specification."""
        deviations = []
        if self.purge == "none":
            deviations.append("the device was not purged")
        if self.capacity_percent < 100:
            deviations.append(f"only {self.capacity_percent:g} % of the capacity is used")
        if self.active_range_percent not in ACTIVE_RANGES:
            deviations.append(f"an active range of {self.active_range_percent:g} %, not 100 % or 75 %")
        if self.round_ns != ROUND_NS:
            deviations.append(f"measurements of {self.round_ns / 1e9:g} s, not 60 s")
        if self.rounds_max is not None and self.rounds_max != ROUNDS:
            deviations.append(f"at most {self.rounds_max} rounds")
        return deviations


@dataclass
class Outcome:
    """The rounds of a test."""

    plan: Plan
    rounds: list[list[Row]] = field(default_factory=list)
    """The figures of each point in each complete round."""
    preconditioning_s: float | None = None
    """Duration of the preconditioning."""
    written_bytes: int = 0
    """Bytes written in the rounds of the test."""

    @property
    def values(self) -> list[float]:
        """The values of the tracked variable."""
        return self.plan.tracked_values(self.rounds)

    @property
    def steady(self) -> Window | None:
        """The first steady window."""
        return steady_state(self.values)

    @property
    def window(self) -> Window | None:
        """The first steady window, or otherwise the last window."""
        return self.steady or last_window(self.values)

    def window_rounds(self) -> list[list[Row]]:
        """The rounds to average: the rounds of the window, or all rounds if there are too few for a window."""
        window, group = self.window, self.plan.group
        if window is None:
            return self.rounds
        return self.rounds[(window.first - 1) * group : window.last * group]

    def mean(self, point: Point, column: str) -> float | None:
        """Returns the average of a point's figure over these rounds."""
        index = self.plan.points.index(point)
        values = [points[index][column] for points in self.window_rounds()]
        measured = [float(value) for value in values if value is not None]
        return sum(measured) / len(measured) if measured else None

    def largest(self, point: Point, column: str) -> float | None:
        """Returns the largest value of a point's figure in these rounds."""
        index = self.plan.points.index(point)
        return max((float(points[index][column] or 0) for points in self.window_rounds()), default=None)


@dataclass
class Outcomes(Tabular):
    """The outcomes of tests of the PTS, with their figures. ``Report`` adds pictures and files."""

    target: str
    description: Mapping[str, Any]
    """Properties of the target, as stored in results."""
    settings: Settings
    capacity_bytes: int
    """Number of bytes that count as the capacity."""
    outcomes: list[Outcome] = field(default_factory=list)
    deviations: list[str] = field(default_factory=list)
    """Reasons why the run does not conform to the specification."""
    notes: list[str] = field(default_factory=list)
    ended_early: str | None = None

    fields = FIELDS

    def table_rows(self) -> Sequence[Mapping[str, Any]]:
        """Returns a row for each measurement of each round."""
        return self.rows()

    def figures(self) -> Mapping[str, object]:
        """All values as JSON."""
        return {
            **STORED.head,
            "target": self.target,
            "description": self.description,
            "capacity_bytes": self.capacity_bytes,
            "conforms": not self.deviations,
            "deviations": self.deviations,
            "notes": self.notes,
            "ended_early": self.ended_early,
            "settings": {
                "purge": self.settings.purge,
                "active_range_percent": self.settings.active_range_percent,
                "capacity_percent": self.settings.capacity_percent,
                "round_s": self.settings.round_ns / 1e9,
                "depth": self.settings.depth,
            },
            "tests": [_figures_of(outcome) for outcome in self.outcomes],
        }

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns all values as JSON text, and writes the text if ``path`` is given."""
        return tables.to_json(self.figures(), path)

    def rows(self) -> list[Mapping[str, object]]:
        """Returns a row for each measurement of each round."""
        rows: list[Mapping[str, object]] = []
        for outcome in self.outcomes:
            used = {id(points) for points in outcome.window_rounds()}
            for number, points in enumerate(outcome.rounds, 1):
                for point, figures in zip(outcome.plan.points, points, strict=True):
                    place = (number, id(points) in used, point.block_bytes, point.read_percent, point.is_random)
                    rows.append({**dict(zip(COLUMNS, (outcome.plan.name, *place), strict=False)), **figures})
        return rows


def _figures_of(outcome: Outcome) -> Mapping[str, object]:
    plan, window = outcome.plan, outcome.window
    judged = None
    if window is not None:
        judged = {
            "first": window.first,
            "last": window.last,
            "mean": window.mean,
            "range_share": window.range_share,
            "slope_share": window.slope_share,
            "slope": window.slope,
            "intercept": window.intercept,
        }
    averages = [
        {
            **_place(point),
            **{name: outcome.mean(point, name) for name in FIGURES if name != "max_ms"},
            "max_ms": outcome.largest(point, "max_ms"),
        }
        for point in plan.points
    ]
    return {
        "name": plan.name,
        "variable": plan.variable.column,
        "tracked": _place(plan.tracked),
        "is_steady": outcome.steady is not None,
        "window": judged,
        "values": outcome.values,
        "preconditioning_s": outcome.preconditioning_s,
        "written_bytes": outcome.written_bytes,
        "averages": averages,
        "rounds": [
            [{**_place(point), **row} for point, row in zip(plan.points, points, strict=True)]
            for points in outcome.rounds
        ],
    }


class Place(TypedDict):
    """A point as JSON."""

    block_bytes: int
    read_percent: int
    random: bool


def _place(point: Point) -> Place:
    return {"block_bytes": point.block_bytes, "read_percent": point.read_percent, "random": point.is_random}
