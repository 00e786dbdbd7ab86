"""``Comparison``: compares measurements with predictions point by point, and finds where the device is worse than its
model.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from headstack._native import InputError
from headstack.comparison.fio_points import is_fio, points_of_fio, simulate_points
from headstack.comparison.points import SidePoint, points_of_side
from headstack.comparison.simulated_again import simulated_again
from headstack.io.values import percent
from headstack.results.results import Results
from headstack.simulation.runs import Progress, System

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headstack.report.figures import Report
from headstack.comparison.compared import Compared
from headstack.comparison.pairs import MANY_TRIALS, Point, Stretch

TOLERANCE = "5%"
"""Tolerated model error, in addition to the statistical error of both sides."""


class Comparison(Compared):
    """Measurements and predictions of the same points."""

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plots both curves with the errors below, and writes the figure if ``path`` is given.

        Needs the extra ``headstack[plot]``.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> _ = compared.plot("compared.png")
        """
        from headstack.comparison import picture  # start-up time
        from headstack.report import plots  # start-up time

        figure = picture.overlaid(self)
        if path is not None:
            plots.save(figure, path)
        return figure

    def report(self) -> Report:
        """Returns all results as a report, which notebooks show.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> len(compared.report().runs)
        4
        """
        from headstack.comparison.report import report_of  # start-up time

        return report_of(self)

    def to_html(self, path: str | os.PathLike[str], with_simulator: bool = False) -> None:
        """Writes ``report`` as one HTML file. With ``with_simulator``, readers can vary its curves. Needs the page,
        which every built package contains.

        >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
        >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
        >>> compared = hs.compare(results, again)
        >>> compared.to_html("compared.html")
        """
        from headstack.report.html import write_html  # start-up time
        from headstack.results.explorer import simulator  # start-up time

        write_html(self.report(), path, simulator if with_simulator else None)


def compare(
    measured: Results | str | os.PathLike[str],
    predicted: Results | System,
    *,
    tolerance: str | float = TOLERANCE,
    progress: Progress | None = None,
) -> Comparison:
    """Compares measured results with predicted results. Each argument is a ``Results`` object or a file of results
    (JSON, CSV or Parquet, or fio's JSON).

    ``predicted`` may also be a system; the measured points are then simulated on it with the workloads, ranges, lengths
    and seeds in the measured results. Points with equal loads are compared. ``shortfalls`` describes differences above
    ``tolerance`` and the confidence intervals of both sides. Errors are predicted over measured, minus 1.
    ``progress`` is called during the simulation.

    Raises ``InputError`` if a file cannot be read or has several systems, or if no point is on both sides.

    >>> results = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0)
    >>> again = hs.run("cheetah-x15-36lp", "file-server", depth=[1, 4], requests=300, warm_up=0, seed=2)
    >>> compared = hs.compare(results, again)
    >>> [point.name for point in compared.points]
    ['depth 1', 'depth 4']
    """
    share = percent("tolerance", str(tolerance)) / 100
    if share < 0:
        raise InputError(f"{tolerance} is negative; must be 0% or more", key="tolerance")
    ours = _side(measured, "measured")
    if isinstance(predicted, Results) or is_file(predicted):
        theirs = _side(predicted, "simulated")  # type: ignore[arg-type]
    elif isinstance(measured, str | os.PathLike) and is_fio(measured):
        theirs = points_of_side(simulate_points(ours, predicted, progress), "simulated")
    else:
        theirs = points_of_side(simulated_again(ours, predicted, progress), "simulated")
    return _matched(ours, theirs, share)


def _side(source: Results | str | os.PathLike[str], mode: str) -> list[SidePoint]:
    return points_of_fio(source) if not isinstance(source, Results) and is_fio(source) else points_of_side(source, mode)


def is_file(predicted: object) -> bool:
    """Whether a source is a file of results, not a system."""
    return isinstance(predicted, str | os.PathLike) and os.fspath(predicted).endswith((".json", ".csv", ".parquet"))


def _matched(ours: list[SidePoint], theirs: list[SidePoint], tolerance: float) -> Comparison:
    left = list(theirs)
    points, alone = [], []
    for name, measured in zip(_names(ours, theirs), ours, strict=True):
        matches = [other for other in left if measured.is_load_of(other)]
        if not matches:
            alone.append(name)
            continue
        # If several points have this load, prefer the point with equal part and seed.
        best = max(matches, key=lambda other: (measured.part == other.part, measured.seed == other.seed))
        left.remove(best)
        points.append(
            Point(name, measured, best, measured.demerit_ms(best), tolerance, _stretches(measured, best, tolerance))
        )
    theirs_by_name = zip(_names(theirs, ours), theirs, strict=True)
    remaining = [name for name, other in theirs_by_name if other in left]
    if not points:
        only = f"measured {_listed(alone)}; predicted {_listed(remaining)}"
        raise InputError(f"no point was both measured and predicted: {only}")
    return Comparison(ours[0].system, theirs[0].system, tuple(points), tuple(alone), tuple(remaining), tolerance)


def _names(side: list[SidePoint], other: list[SidePoint]) -> list[str]:
    """Returns the name of each point of a side, made of the values that distinguish the point from others."""
    several = {name for name in ("part", "seed") if len({getattr(point, name) for point in side}) > 1}
    workloads = {point.workload for point in (*side, *other)}
    varied = {name for point in side for name in point.labels if len({o.labels.get(name) for o in side}) > 1}
    names: list[str] = []
    for point in side:
        parts = [point.workload if len(workloads) > 1 or not point.load else "", point.load]
        parts += [
            point.part or "all of it" if "part" in several else "",
            f"seed {point.seed}" if "seed" in several else "",
        ]
        parts += [f"{label} {text}" for label, text in point.labels.items() if label in varied]
        name = ", ".join(part for part in parts if part)
        again = sum(earlier == name or earlier.startswith(f"{name}, again ") for earlier in names)
        names.append(f"{name}, again {again}" if again else name)
    return names


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    return "; ".join(listed[:4]) + (f" and {len(listed) - 4} more" if len(listed) > 4 else "")


def _stretches(measured: SidePoint, predicted: SidePoint, tolerance: float) -> tuple[Stretch, ...]:
    """Returns the periods in which the mean latency was above the predicted mean by more than the tolerance and
    chance."""
    late = [_late(measured, predicted, index, tolerance) for index in range(len(measured.intervals))]
    stretches: list[Stretch] = []
    for before, now in zip([None, *late], late, strict=False):
        if now is None:
            continue
        stretches.append(now if before is None else _joined(stretches.pop(), now))
    return tuple(stretches)


def _late(measured: SidePoint, predicted: SidePoint, index: int, tolerance: float) -> Stretch | None:
    mine = measured.intervals[index]
    is_alike = index < len(predicted.intervals) and predicted.intervals[index]["duration_s"] == mine["duration_s"]
    model: Mapping[str, float | None] = predicted.intervals[index] if is_alike else predicted.figures
    predicted_ms, count = model["mean_ms"], mine["requests"]
    expected = (model["iops"] or 0) * mine["duration_s"]
    start_s = mine["start_s"] - measured.intervals[0]["start_s"]
    stretch = Stretch(
        start_s,
        start_s + mine["duration_s"],
        mine["iops"] or 0.0,
        mine["mean_ms"] if count else None,
        predicted_ms or 0.0,
    )
    if not predicted_ms:
        return None
    if count == 0:
        return stretch if expected >= MANY_TRIALS**2 else None
    chance = math.hypot(measured.interval_deviation, predicted.interval_deviation if is_alike else 0.0)
    margin = tolerance + MANY_TRIALS * chance
    return stretch if mine["mean_ms"] > predicted_ms * (1 + margin) else None


def _joined(before: Stretch, now: Stretch) -> Stretch:
    """Merges two adjacent periods."""
    lengths = (before.end_s - before.start_s, now.end_s - now.start_s)
    counts = (before.measured_iops * lengths[0], now.measured_iops * lengths[1])

    def weighted(values: tuple[float | None, float | None]) -> float | None:
        weights = [(value, count) for value, count in zip(values, counts, strict=True) if value is not None and count]
        return sum(value * count for value, count in weights) / sum(count for _, count in weights) if weights else None

    predicted_ms = (before.predicted_ms * lengths[0] + now.predicted_ms * lengths[1]) / sum(lengths)
    mean_ms = weighted((before.mean_ms, now.mean_ms))
    return Stretch(before.start_s, now.end_s, sum(counts) / sum(lengths), mean_ms, predicted_ms)
