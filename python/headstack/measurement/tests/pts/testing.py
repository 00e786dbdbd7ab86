"""Runs the tests of SNIA's Solid State Storage Performance Test Specification (PTS) on SSDs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headstack._native import InputError, RunError
from headstack.catalogue.workload import Workload
from headstack.io.counts import counted
from headstack.io.values import choice
from headstack.measurement.access import Access, Progress
from headstack.measurement.measurement import BY_HAND, Opened, Step
from headstack.measurement.tests.pts.plans import KIB, PLANS, Plan, Point
from headstack.measurement.tests.pts.steady import WINDOW, Window, last_window, steady_state
from headstack.results.table import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from headstack.measurement.tests.pts.outcomes import FIGURES, Outcome, Outcomes, Settings

__all__ = ["PURGES", "Outcome", "Report", "Settings", "Window", "pts", "steady_state"]

PURGES = ("blkdiscard", "format", "none")

PRECONDITIONING, PASSES = Point(128 * KIB, 0, False), 2


class Report(Outcomes):
    """The tests of one device."""

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plots convergence, measurement window and figures of each test, and writes the picture if ``path`` is given.
        Needs the extra ``headstack[plot]``."""
        from headstack.measurement.tests.pts.picture import overview  # start-up time
        from headstack.report import plots  # start-up time

        figure = overview(self)
        if path is not None:
            plots.save(figure, path)
        return figure


def pts(
    target: str | os.PathLike[str],
    settings: Settings | None = None,
    access: Access | None = None,
    progress: Progress | None = None,
    tell: Callable[[str], object] | None = None,
) -> Report:
    """Runs tests of the specification: purge, preconditioning, rounds until the steady state.

    All tests write. A device needs ``access`` with its name or serial number; a file needs the permission to be
    overwritten. Ctrl-C or a lost device end the test; complete rounds are kept. The last argument is called with a
    message at each step.
    """
    path, settings, access = os.fspath(target), settings or Settings(), access or Access()
    _check(settings, access)
    device = _Device(path, settings, access, progress, tell or (lambda words: None))
    report = Report(path, device.described["description"], settings, device.capacity_bytes)
    report.deviations = settings.deviations()
    if device.described["kind"] != "block device":
        reason = (
            "stores nothing" if device.described["kind"] == "null" else f"is a {device.described['kind']}, not a device"
        )
        report.deviations.append(f"the target {reason}")
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
            raise InputError(f"{percent:g} % is out of range; must be above 0 and at most 100", key=name)
    if settings.round_ns <= 0 or settings.rounds_max == 0:
        raise InputError("round-time, rounds: must be above 0")
    if not 1 <= access.threads <= settings.depth:
        raise InputError(
            f"{access.threads} threads cannot share queue depth {settings.depth}; use fewer threads", key="threads"
        )


class _EndedEarlyError(Exception):
    """A measurement ended early."""


class _Device:
    """The open target with its operations."""

    def __init__(
        self, path: str, settings: Settings, access: Access, progress: Progress | None, tell: Callable[[str], object]
    ) -> None:
        self.path, self.settings, self.access, self.progress, self.tell = path, settings, access, progress, tell
        self._open()
        block_bytes = self.described["block_bytes"]
        used = int(self.described["capacity_bytes"] * settings.capacity_percent / 100)
        self.capacity_bytes = used // MIB_STEP * MIB_STEP
        if self.capacity_bytes == 0:
            raise InputError(f"{path}: {used} bytes are too few; at least 1 MiB is required")
        self.smallest_bytes = max(512, block_bytes)
        if settings.purge == "format" and not os.path.basename(os.path.realpath(path)).startswith("nvme"):
            raise InputError(f"{path}: format needs an NVMe device; use blkdiscard or none")

    def _open(self) -> None:
        self.opened = Opened([self.path], self.access, writing=True)
        [self.described] = self.opened.described

    def test(self, plan: Plan, report: Report) -> None:
        """Runs a test, and adds its outcome to the report."""
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
                report.notes.append(f"{plan.name}: {counted(errors, 'request')} of round {len(outcome.rounds)} failed")

    def _fitted(self, plan: Plan, report: Report) -> Plan:
        """Removes points with block sizes that the device does not support."""
        points = tuple(point for point in plan.points if point.block_bytes >= self.smallest_bytes)
        if len(points) < len(plan.points):
            note = f"block sizes below {self.smallest_bytes} bytes are left out: the device does not support them"
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
        """Removes all data as far as possible; failures are reported."""
        if self.settings.purge == "none":
            return
        self.tell(f"purge by {self.settings.purge}")
        if self.settings.purge == "format":
            self._format()
            return
        try:
            self.opened.discard()
        except (InputError, RunError) as error:
            # The run continues, and reports that the drive is not fresh.
            deviation = f"the device was not purged: {error}"
            if deviation not in report.deviations:
                report.deviations.append(deviation)

    def _format(self) -> None:
        """Makes an NVMe device erase all user data (Format NVM, secure erase 1), by nvme-cli."""
        program = shutil.which("nvme")
        if program is None:
            raise InputError("format needs nvme-cli, which is not installed", key="purge")
        # The device is closed during the format, and opened again with equal permissions; no other program uses it.
        del self.opened
        done = subprocess.run([program, "format", self.path, "--ses=1", "--force"], capture_output=True, text=True)
        if done.returncode != 0:
            raise RunError(f"{self.path}: nvme format: {' '.join((done.stderr or done.stdout).split())}")
        self._open()

    def _step(self, point: Point, length_bytes: int, depth: int, limits: dict[str, int]) -> Step:
        """Returns a measurement of a point on the first ``length_bytes``."""
        random = "100" if point.is_random else "0"
        workload = Workload.uniform(f"{point.block_bytes}B", str(point.read_percent), random).copy()
        workload |= {
            "arrivals": {"closed": {"queue_depth": depth, "think": "none"}},
            "warm_up": {"requests": 0, "time": "0ns"},
        }
        return Step(workload, (0, length_bytes), limits, threads=min(self.access.threads, depth))

    def _measure(self, steps: Sequence[Step]) -> list[Row]:
        rows = list(self.opened.measure(steps, self.progress))
        if self.opened.ended is not None:
            raise _EndedEarlyError(self.opened.ended)
        return rows


MIB_STEP = 1 << 20
"""Unit of ranges in bytes: the largest block size."""


def _so_far(outcome: Outcome) -> str:
    window = last_window(outcome.values)
    if window is None:
        return ""
    if not window.is_measured:
        return " (no request completed in the last five)"
    return f" (of the last {WINDOW}: range {100 * window.range_share:.1f} %, slope {100 * window.slope_share:.1f} %)"
