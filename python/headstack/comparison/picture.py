"""The picture of a comparison: both curves in one figure, and the errors of each point in a figure below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headstack._native import version
from headstack.comparison.compared import Compared
from headstack.comparison.report import curves, errors
from headstack.report.draw import draw, draw_stacked
from headstack.report.figures import Bars, Lines, Series, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERCENT_MAX = 1e15
"""Maximum error to draw; larger errors would compress the axis."""
BELOW = "below the model by more than the stated error"


def overlaid(comparison: Compared) -> Figure:
    """Draws measured and predicted mean latency over throughput, and below them the error of each point in %."""
    if not len(comparison):
        return draw(Table("points", comparison.title, [], [], note="nothing to compare"))
    return draw_stacked([_curves(comparison), _errors(comparison)], caption=_caption(comparison))


def _curves(comparison: Compared) -> Lines:
    shown = curves(comparison)
    series = [
        replace(
            line, x=_drawable(line.x), y=_drawable(line.y), low=_drawable(line.low), high=_drawable(line.high), p99=()
        )
        for line in shown.series
    ]
    short = [point.measured.figures for point in comparison if point.falls_short]
    if short:
        iops, mean_ms = ([figures[name] for figures in short] for name in ("iops", "mean_ms"))
        series.append(Series(BELOW, _drawable(iops), _drawable(mean_ms), marks=["open"] * len(short)))
    return replace(shown, title=comparison.title, note="", series=series)


def _errors(comparison: Compared) -> Bars:
    shown = errors(comparison)
    return replace(shown, note="", series=[replace(bars, y=_drawable(bars.y, PERCENT_MAX)) for bars in shown.series])


def _drawable(values: Sequence[float | None], most: float = math.inf) -> list[float | None]:
    """Replaces values too large for the axis by ``None``."""
    return [value if value is not None and math.isfinite(value) and abs(value) <= most else None for value in values]


def _caption(comparison: Compared) -> str:
    """Returns the build, the minimum number of requests, and the tolerance."""
    requests = min(point.measured.requests for point in comparison)
    tolerance = f"tolerance of ±{100 * comparison.tolerance:.3g} %"
    return f"headstack {version()}; at least {requests:,} requests a point; {tolerance}"
