"""Tests of solid-state drives by SNIA's Solid State Storage Performance Test Specification (PTS)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headstack import tables
from headstack._native import Field, InputError, RunError
from headstack.measurement import BY_HAND, Access, Opened, Progress, Step
from headstack.pts.plans import KIB, PLANS, ROUNDS, Plan, Point
from headstack.pts.steady import WINDOW, Window, last_window, steady_state
from headstack.stored import Stored
from headstack.values import choice
from headstack.workload import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PURGES", "Outcome", "Report", "Settings", "Window", "pts", "steady_state"]

STORED = Stored("test report")
PURGES = ("blkdiscard", "format", "none")
ROUND_NS = 60_000_000_000
"""What the specification gives a measurement."""
ACTIVE_RANGES = (100.0, 75.0)
"""Of the specification: drives of enterprises, and of clients."""
DEPTH = 32
PRECONDITIONING, PASSES = Point(128 * KIB, 0, False), 2
FIGURES = ("iops", "mb_per_s", "mean_ms", "p50_ms", "p99_ms", "p999_ms", "max_ms", "requests", "errors")
"""What is kept of each measurement."""
FIELDS = (
    Field("test", "text", "", "the test of the specification"),
    Field("round", "count", "", "round of the test, from 1"),
    Field("in_window", "flag", "", "whether the round belongs to the measurement window"),
    Field("block_bytes", "count", "bytes", "length of the requests"),
    Field("read_percent", "count", "%", "share of reads"),
    Field("random", "flag", "", "whether requests go to random places"),
    Field("iops", "figure", "1/s", "requests completed a second"),
    Field("mb_per_s", "figure", "10^6 bytes/s", "bytes moved a second"),
    Field("mean_ms", "figure", "ms", "mean response time"),
    Field("p50_ms", "figure", "ms", "median of the response times"),
    Field("p99_ms", "figure", "ms", "99th percentile of the response times"),
    Field("p999_ms", "figure", "ms", "99.9th percentile of the response times"),
    Field("max_ms", "figure", "ms", "longest response time"),
    Field("requests", "count", "requests", "requests that completed without error"),
    Field("errors", "count", "requests", "requests that failed"),
)
"""The columns of the rows; those of a measurement are named as in ``FIGURES``."""
COLUMNS = tuple(field.name for field in FIELDS)


@dataclass(frozen=True)
class Settings:
    """How the tests are carried out; the defaults are the specification's."""

    tests: tuple[str, ...] = tuple(PLANS)
    purge: str = "blkdiscard"
    """How all data are taken away before each test."""
    active_range_percent: float = 100.0
    """The share of the capacity, from its start, that rounds go to."""
    capacity_percent: float = 100.0
    """The share of the device that counts as its capacity."""
    round_ns: int = ROUND_NS
    """Length of each measurement of a round."""
    rounds_max: int | None = None
    """At most so many rounds of each test; the specification's number where absent."""
    depth: int = DEPTH
    """Requests outstanding, where the test does not state them."""

    def deviations(self) -> list[str]:
        """In what they are not the specification's."""
        told = []
        if self.purge == "none":
            told.append("the device was not purged")
        if self.capacity_percent < 100:
            told.append(f"only {self.capacity_percent:g} % of the capacity are used")
        if self.active_range_percent not in ACTIVE_RANGES:
            told.append(f"an active range of {self.active_range_percent:g} %, not 100 % or 75 %")
        if self.round_ns != ROUND_NS:
            told.append(f"measurements of {self.round_ns / 1e9:g} s, not 60 s")
        if self.rounds_max is not None and self.rounds_max != ROUNDS:
            told.append(f"at most {self.rounds_max} rounds")
        return told


@dataclass
class Outcome:
    """What a test came to."""

    plan: Plan
    rounds: list[list[dict[str, Any]]] = field(default_factory=list)
    """The figures of each point of each whole round."""
    preconditioning_s: float | None = None
    """How long the writing before it took."""
    written_bytes: int = 0
    """In its rounds."""

    @property
    def values(self) -> list[float]:
        """The tracked variable."""
        return self.plan.tracked_values(self.rounds)

    @property
    def steady(self) -> Window | None:
        """The first window that is steady."""
        return steady_state(self.values)

    @property
    def window(self) -> Window | None:
        """That one, or else the last."""
        return self.steady or last_window(self.values)

    def window_rounds(self) -> list[list[dict[str, Any]]]:
        """The rounds whose average is told: those of the window, or all where there are too few for one."""
        window, group = self.window, self.plan.group
        if window is None:
            return self.rounds
        return self.rounds[(window.first - 1) * group : window.last * group]

    def mean(self, point: Point, column: str) -> float | None:
        """The average of a point's figure over these rounds."""
        index = self.plan.points.index(point)
        values = [points[index][column] for points in self.window_rounds()]
        known = [float(value) for value in values if value is not None]
        return sum(known) / len(known) if known else None

    def largest(self, point: Point, column: str) -> float | None:
        """The largest value of a point's figure in these rounds."""
        index = self.plan.points.index(point)
        return max((float(points[index][column] or 0) for points in self.window_rounds()), default=None)


@dataclass
class Report:
    """The tests of one device."""

    target: str
    description: dict[str, Any]
    settings: Settings
    capacity_bytes: int
    """What counts as the capacity."""
    outcomes: list[Outcome] = field(default_factory=list)
    deviations: list[str] = field(default_factory=list)
    """Why the run is none that conforms to the specification."""
    notes: list[str] = field(default_factory=list)
    ended_early: str | None = None

    def figures(self) -> dict[str, Any]:
        """All of it as JSON values."""
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
        """All of it."""
        return tables.written(json.dumps(self.figures(), indent=1) + "\n", path)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """A row for each measurement of each round."""
        return tables.to_csv(COLUMNS, self.rows(), path)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """The same as Parquet."""
        tables.to_parquet(FIELDS, self.rows(), path)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each measurement of each round."""
        rows = []
        for outcome in self.outcomes:
            used = {id(points) for points in outcome.window_rounds()}
            for number, points in enumerate(outcome.rounds, 1):
                for point, figures in zip(outcome.plan.points, points, strict=True):
                    place = (number, id(points) in used, point.block_bytes, point.read_percent, point.is_random)
                    rows.append(dict(zip(COLUMNS, (outcome.plan.name, *place), strict=False)) | figures)
        return rows

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Convergence, measurement window and figures of each test. Written to ``path`` where one is given. Needs the
        extra ``headstack[plot]``."""
        from headstack import plots
        from headstack.pts.picture import overview

        figure = overview(self)
        if path is not None:
            plots.save(figure, path)
        return figure


def _figures_of(outcome: Outcome) -> dict[str, Any]:
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
        _place(point)
        | {name: outcome.mean(point, name) for name in FIGURES if name != "max_ms"}
        | {"max_ms": outcome.largest(point, "max_ms")}
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
            [_place(point) | row for point, row in zip(plan.points, points, strict=True)] for points in outcome.rounds
        ],
    }


def _place(point: Point) -> dict[str, Any]:
    return {"block_bytes": point.block_bytes, "read_percent": point.read_percent, "random": point.is_random}


def pts(
    target: str | os.PathLike[str],
    settings: Settings | None = None,
    access: Access | None = None,
    progress: Progress | None = None,
    tell: Callable[[str], object] | None = None,
) -> Report:
    """Carries out tests of the specification: purge, preconditioning, rounds until the steady state.

    All of them write: a device takes ``access`` with its name or serial number, a file the word to be overwritten.
    Ctrl-C and a device that vanishes end it; the rounds that are whole are kept. ``tell`` hears in words what is begun.
    """
    path, settings, access = os.fspath(target), settings or Settings(), access or Access()
    _check(settings, access)
    device = _Device(path, settings, access, progress, tell or (lambda words: None))
    report = Report(path, device.described["description"], settings, device.capacity_bytes)
    report.deviations = settings.deviations()
    if device.described["kind"] != "block device":
        told = (
            "stores nothing"
            if device.described["kind"] == "null"
            else f"is not a device but a {device.described['kind']}"
        )
        report.deviations.append(f"the target {told}")
    if access.buffered:
        report.deviations.append("requests go through the page cache")
    try:
        for name in settings.tests:
            for plan in PLANS[name]:
                device.test(plan, report)
    except KeyboardInterrupt:
        report.ended_early = BY_HAND
    except _EndedEarlyError as ended:
        report.ended_early = str(ended)
    return report


def _check(settings: Settings, access: Access) -> None:
    for name in settings.tests:
        choice("test", name, tuple(PLANS))
    choice("purge", settings.purge, PURGES)
    for name, percent in (("active-range", settings.active_range_percent), ("capacity", settings.capacity_percent)):
        if not 0 < percent <= 100:
            raise InputError(f"{name}: {percent:g} % is not allowed; more than 0 and at most 100 are")
    if settings.round_ns <= 0 or settings.rounds_max == 0:
        raise InputError("round-time, rounds: values above 0 are allowed")
    if not 1 <= access.threads <= settings.depth:
        raise InputError(
            f"threads: {access.threads} threads cannot share {settings.depth} requests; one each is needed"
        )


class _EndedEarlyError(Exception):
    """A measurement ended before its time."""


class _Device:
    """The target, open, with what is done to it."""

    def __init__(
        self, path: str, settings: Settings, access: Access, progress: Progress | None, tell: Callable[[str], object]
    ) -> None:
        self.path, self.settings, self.access, self.progress, self.tell = path, settings, access, progress, tell
        self._open()
        block_bytes = self.described["block_bytes"]
        used = int(self.described["capacity_bytes"] * settings.capacity_percent / 100)
        self.capacity_bytes = used // MIB_STEP * MIB_STEP
        if self.capacity_bytes == 0:
            raise InputError(f"{path}: {used} bytes are too few; 1 MiB at least is needed")
        self.smallest_bytes = max(512, block_bytes)
        if settings.purge == "format" and not os.path.basename(os.path.realpath(path)).startswith("nvme"):
            raise InputError(f"{path}: format is for NVMe devices; blkdiscard and none are allowed")

    def _open(self) -> None:
        self.opened = Opened([self.path], self.access, writing=True)
        [self.described] = self.opened.described

    def test(self, plan: Plan, report: Report) -> None:
        """Carries out a test, and books it."""
        plan = self._fitted(plan, report)
        self.purge(report)
        outcome = Outcome(plan)
        report.outcomes.append(outcome)
        if plan.preconditioned:
            self.tell(f"{plan.name}: preconditioning, twice the capacity written in blocks of 128 KiB")
            twice = {"bytes": PASSES * self.capacity_bytes}
            [row] = self._measure([self._step(PRECONDITIONING, self.capacity_bytes, self.settings.depth, twice)])
            outcome.preconditioning_s = float(row["duration_s"])
        length_bytes, depth = self._active_bytes(), plan.depth or self.settings.depth
        steps = [self._step(point, length_bytes, depth, {"time_ns": self.settings.round_ns}) for point in plan.points]
        while len(outcome.rounds) < plan.rounds_max and not self._is_over(outcome):
            self.tell(f"{plan.name}: round {len(outcome.rounds) + 1} of at most {plan.rounds_max}{_so_far(outcome)}")
            rows = self._measure(steps)
            outcome.rounds.append([{name: row[name] for name in FIGURES} for row in rows])
            for point, row in zip(plan.points, rows, strict=True):
                outcome.written_bytes += round(row["requests"] * (100 - point.read_percent) / 100) * point.block_bytes
            errors = sum(row["errors"] for row in rows)
            if errors:
                report.notes.append(f"{plan.name}: {errors:,} requests of round {len(outcome.rounds)} failed")

    def _fitted(self, plan: Plan, report: Report) -> Plan:
        """Without blocks that the device does not have."""
        points = tuple(point for point in plan.points if point.block_bytes >= self.smallest_bytes)
        if len(points) < len(plan.points):
            note = f"blocks below {self.smallest_bytes} bytes are left out: the device has none"
            if note not in report.notes:
                report.notes.append(note)
        if plan.tracked not in points:
            raise InputError(f"{self.path}: has blocks of {self.smallest_bytes} bytes; {plan.name} tracks 4 KiB")
        return replace(plan, points=points, rounds_max=self.settings.rounds_max or plan.rounds_max)

    def _is_over(self, outcome: Outcome) -> bool:
        limit = outcome.plan.capacities_max
        written = limit is not None and outcome.written_bytes >= limit * self.capacity_bytes
        return written or outcome.steady is not None

    def _active_bytes(self) -> int:
        share = self.settings.active_range_percent / 100
        return max(MIB_STEP, int(self.capacity_bytes * share) // MIB_STEP * MIB_STEP)

    def purge(self, report: Report) -> None:
        """Takes all data away, as far as that can be done; what cannot is told."""
        if self.settings.purge == "none":
            return
        self.tell(f"purge by {self.settings.purge}")
        if self.settings.purge == "format":
            self._format()
            return
        try:
            self.opened.discard()
        except (InputError, RunError) as error:
            # Of this run it is known before what would be measured: a drive that is not fresh.
            told = f"the device was not purged: {error}"
            if told not in report.deviations:
                report.deviations.append(told)

    def _format(self) -> None:
        """Has an NVMe device erase all user data (Format NVM, secure erase 1), by nvme-cli."""
        program = shutil.which("nvme")
        if program is None:
            raise InputError("purge: format needs nvme-cli, which is not installed")
        # The device was opened as somebody permits, and nobody else uses it; it is free for the moment of its format.
        del self.opened
        done = subprocess.run([program, "format", self.path, "--ses=1", "--force"], capture_output=True, text=True)
        if done.returncode != 0:
            raise RunError(f"{self.path}: nvme format: {' '.join((done.stderr or done.stdout).split())}")
        self._open()

    def _step(self, point: Point, length_bytes: int, depth: int, limits: dict[str, int]) -> Step:
        """A measurement of a point on the first ``length_bytes``."""
        random = "100" if point.is_random else "0"
        workload = Workload.uniform(f"{point.block_bytes}B", str(point.read_percent), random).copy()
        workload |= {
            "arrivals": {"closed": {"outstanding": depth, "think": "none"}},
            "warm_up": {"requests": 0, "time": "0ns"},
        }
        return Step(workload, (0, length_bytes), limits, threads=min(self.access.threads, depth))

    def _measure(self, steps: Sequence[Step]) -> list[dict[str, Any]]:
        rows = list(self.opened.measure(steps, self.progress))
        if self.opened.ended is not None:
            raise _EndedEarlyError(self.opened.ended)
        return rows


MIB_STEP = 1 << 20
"""Ranges are whole numbers of the largest block."""


def _so_far(outcome: Outcome) -> str:
    window = last_window(outcome.values)
    if window is None:
        return ""
    return f" (of the last {WINDOW}: range {100 * window.range_share:.1f} %, slope {100 * window.slope_share:.1f} %)"
