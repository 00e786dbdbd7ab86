"""The answer of a comparison of points in one sentence: the error of a model, or which side is better."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from headstack.comparison.differences.cells import share_text
from headstack.io.counts import agreed, counted
from headstack.results.words import UNDECIDED

if TYPE_CHECKING:
    from headstack.comparison.compared import Compared
    from headstack.comparison.pairs import Point

POINTS_MAX = 2
"""Maximum number of points that the sentence names."""


class Change(NamedTuple):
    """The change of a point from the first side to the second."""

    point: Point
    figure: str
    """Name of the figure: throughput, or mean latency if arrivals set the rate."""
    share: float
    """Second side over first side, minus 1."""
    half_width: float | None
    """95 % confidence half-width of the ratio; ``None`` if neither side has an interval."""
    is_undecided: bool

    @property
    def is_better(self) -> bool:
        """Whether the second side is better."""
        return (self.share > 0) == (self.figure == "iops")

    def describe(self, has_several: bool, with_level: bool = False) -> str:
        """Formats the change with its interval: ``throughput 12 % higher (10 to 14 %) at depth 32``."""
        name, words = {"iops": ("throughput", ("higher", "lower"))}.get(
            self.figure, ("mean latency", ("longer", "shorter"))
        )
        size = f"{name} {share_text(abs(self.share))} {words[self.share < 0]}"
        level = "95 % interval " if with_level else ""
        interval = "no interval" if self.half_width is None else "deterministic"
        if self.half_width:
            ends = sorted(math.copysign(1, self.share) * (self.share + sign * self.half_width) for sign in (-1, 1))
            interval = f"{level}{_percent(ends[0])} to {_percent(ends[1])} %"
        at = f" at {self.point.name}" if has_several and self.point.name else ""
        return f"{size}{at} ({interval})"


def _percent(share: float) -> str:
    return f"{100 * share:,.0f}" if abs(share) >= 0.995 else f"{100 * share:.2g}"


def is_check_of_model(comparison: Compared) -> bool:
    """Whether the first side was measured and the second one predicted."""
    return any(point.predicted.is_prediction_of(point.measured) for point in comparison.points)


def headline_of(comparison: Compared, names: tuple[str, str] | None = None) -> str:
    """Returns the answer: the error of a model, or the better of two sides, which are called ``names``."""
    if is_check_of_model(comparison):
        return _of_model(comparison)
    ours, theirs = names or comparison.sides
    all_changes = changes(comparison)
    if not all_changes:
        return f"{UNDECIDED}: {ours} and {theirs} have no figure in common"
    has_several = len(comparison.points) > 1
    if all(change.share == 0 for change in all_changes):
        return f"{theirs} and {ours} have the same results at {counted(len(all_changes), 'point')}"
    decided = [change for change in all_changes if not change.is_undecided]
    better = [change for change in decided if change.is_better]
    worse = [change for change in decided if not change.is_better]
    if not decided:
        largest = max(all_changes, key=lambda change: abs(change.share))
        return f"{UNDECIDED}: {theirs} has {largest.describe(has_several, True)} compared with {ours}{_why(comparison)}"
    named = sorted(decided, key=lambda change: -abs(change.share))[:POINTS_MAX]
    where = f" at {len(better or worse)} of {counted(len(comparison.points), 'point')}" if has_several else ""
    also = f" and slower at {len(worse)}" if better and worse else ""
    verb = "faster" if better else "slower"
    described = ", ".join(change.describe(has_several, number == 0) for number, change in enumerate(named))
    return f"{theirs} is {verb} than {ours}{where}{also}: {described}"


def _why(comparison: Compared) -> str:
    alike = [point for point in comparison.points if point.is_indistinguishable]
    if alike and comparison.measured != comparison.predicted:
        return "; the prediction intervals of both models overlap"
    return ""


def _of_model(comparison: Compared) -> str:
    errors = [error for point in comparison.points if (error := point.error("iops")) is not None]
    if not errors:
        return f"{UNDECIDED}: no throughput is known on both sides"
    if len(errors) > 1:
        mean = math.fsum(map(abs, errors)) / len(errors)
        size = (
            f"differs by {share_text(mean)} on average ({_signed(min(errors))} to {_signed(max(errors))} % at "
            f"{counted(len(errors), 'point')})"
        )
    else:
        point = comparison.points[0]
        half = point.stated_error("iops") - point.tolerance
        interval = f" (95 % interval {_signed(errors[0] - half)} to {_signed(errors[0] + half)} %)" if half else ""
        size = f"differs by {_signed(errors[0])} %{interval}"
    short = [point.name for point in comparison.points if point.falls_short]
    device = f"; {comparison.measured} is slower than predicted at {len(short)} of {len(comparison.points)}" * bool(
        short
    )
    return f"predicted throughput of {comparison.predicted} {size} from {comparison.measured} as measured{device}"


def _signed(share: float) -> str:
    percent = 100 * share
    return f"{percent:+,.0f}" if abs(percent) >= 99.5 else f"{percent:+.2g}"


def changes(comparison: Compared) -> list[Change]:
    """Returns the change of each point from the first side to the second, with its significance."""
    is_of_models = comparison.measured != comparison.predicted
    with_figures = []
    for point in comparison.points:
        figure = "mean_ms" if point.measured.is_open else "iops"
        share = point.error(figure)
        if share is None:
            continue
        is_known = None not in (point.measured.half_width_ms, point.predicted.half_width_ms)
        half = (1 + share) * (point.stated_error(figure) - point.tolerance) if is_known else None
        is_undecided = half is None or abs(share) <= half or (is_of_models and point.is_indistinguishable)
        with_figures.append(Change(point, figure, share, half, is_undecided))
    return with_figures


def notes_of(comparison: Compared, names: tuple[str, str] | None = None) -> list[str]:
    """Returns notes on a comparison of points; notes that require action come first."""
    ours, theirs = names or comparison.sides
    notes = _shortfalls(comparison) if is_check_of_model(comparison) else []
    kinds = {side.kind for point in comparison.points for side in (point.measured, point.predicted)}
    if not is_check_of_model(comparison):
        if any(change.half_width is None for change in changes(comparison)):
            notes.append("a side has no confidence interval: use results in JSON of longer runs (--time)")
        if "measured" in kinds:
            notes.append(
                "one run of each does not show how much runs vary: repeat both, then run headstack compare NEW*.json "
                "--against OLD*.json"
            )
    for points, side in ((comparison.alone_measured, ours), (comparison.alone_predicted, theirs)):
        if points:
            verb = agreed(len(points), "is", "are")
            notes.append(f"{'; '.join(points[:3])}{' and more' * (len(points) > 3)} {verb} only in {side}")
    return [*notes, *comparison.model_errors()]


def _shortfalls(comparison: Compared) -> list[str]:
    """Returns notes on the points and the periods in which the device is slower than predicted."""
    short = [point for point in comparison.points if point.falls_short]
    notes = []
    if short:
        worst = max(short, key=lambda point: max(map(point.shortfall, point.falls_short)))
        others = [point.name for point in short if point is not worst]
        also = f"; also at {'; '.join(others[:3])}{' and more' * (len(others) > 3)}" if others else ""
        share = share_text(1 - worst.share)
        notes.append(f"most below its prediction at {worst.name}: {share} slower{also}" if worst.name else "")
    whole = [line for line in comparison.shortfalls() if ": from " in line]
    return [note for note in notes if note] + whole


def legend_of(comparison: Compared) -> list[str]:
    """Returns standing explanations of the figures."""
    errors = comparison.mean_absolute_errors()
    named = zip(("throughput", "bytes", "mean", "p50", "p95", "p99", "demerit"), errors.values(), strict=True)
    shown = [f"{name} {error:.1%}" for name, error in named if error is not None and name != "bytes"]
    better = [point.name for point in comparison.points if point.is_better]
    legend = [f"mean absolute error: {', '.join(shown)}"] if shown else []
    return legend + (
        [f"better than predicted: {'; '.join(better)}"] if better and is_check_of_model(comparison) else []
    )
