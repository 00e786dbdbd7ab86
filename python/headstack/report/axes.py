"""Axes chosen by their data: logarithmic if the values span more than a decade, in microseconds if milliseconds are too
long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from headstack.report.drawable import ALONG, UP, finite, on_log_axes, positive_axis
from headstack.report.figures import Axis, Bars, Figure, Grid, Heat, Lines, Series, Table

DECADE = 10
"""An axis is logarithmic if its largest value is more than this many times its smallest."""
SWITCHED = 2
"""The page offers the other scale if the largest value is this many times the smallest; below that both look alike."""
SHORT_MS = 2.0
"""An axis whose values are all at most this long is in microseconds."""


def with_axes(figure: Figure) -> Figure:
    """Returns the figure with a scale and a unit for each axis that leaves them to the data (``log=None``).

    An axis has one unit: if any time exceeds 2 ms, all are in milliseconds. Values that cannot be drawn are left out:
    non-finite ones, and those of 0 or less on a logarithmic axis.
    """
    figure = finite(figure)
    match figure:
        case Lines():
            limits = [limit.value for limit in figure.limits]
            x, x_factor = _decide_scale(figure.x, _values(figure.series, ALONG, 0), figure.x_is_percentile)
            y, y_factor = _decide_scale(figure.y, [*_values(figure.series, UP, 1), *limits])
            series = [_scale(_scale(line, ALONG, x_factor, 0), UP, y_factor, 1) for line in figure.series]
            limited = [replace(limit, value=_multiply(limit.value, y_factor)) for limit in figure.limits]
            x = positive_axis(x, list(_values(series, ALONG, 0)))
            y = positive_axis(y, list(_values(series, UP, 1)))
            series = [on_log_axes(line, x=bool(x.log), y=bool(y.log)) for line in series]
            limited = [limit for limit in limited if limit.value > 0 or not y.log]
            return replace(figure, x=x, y=y, series=series, limits=limited)
        case Bars():
            # Stacked parts add up only on a linear axis.
            y, y_factor = _decide_scale(figure.y, list(_values(figure.series, UP, 1)), figure.stacked)
            series = [_scale(bars, UP, y_factor, 1) for bars in figure.series]
            y = positive_axis(y, list(_values(series, UP, 1)))
            return replace(figure, y=y, series=[on_log_axes(bars, x=False, y=bool(y.log)) for bars in series])
        case Heat():
            x = positive_axis(_default_to_linear(figure.x), figure.x_range[:1])
            return replace(figure, x=x, y=positive_axis(_default_to_linear(figure.y), figure.y_range[:1]))
        case Grid() | Table():
            return figure


def _decide_scale(axis: Axis, values: Sequence[float], is_linear: bool = False) -> tuple[Axis, float]:
    """Returns the axis and the factor to multiply its values by."""
    if axis.log is not None:
        return axis, 1
    if is_linear or not values or min(values) <= 0:
        axis = _default_to_linear(axis)
    else:
        spread = max(values) / min(values)
        axis = replace(axis, log=spread > DECADE, switch=spread > SWITCHED)
    is_short = axis.label.endswith("(ms)") and 0 < max(values, default=0) <= SHORT_MS
    return (replace(axis, label=f"{axis.label[:-4]}(µs)"), 1000) if is_short else (axis, 1)


def _default_to_linear(axis: Axis) -> Axis:
    return axis if axis.log is not None else replace(axis, log=False)


def _values(series: Iterable[Series], names: Sequence[str], place: int) -> list[float]:
    """Returns the values of series along an axis; ``place`` is the axis's index in a knee's pair."""
    values = [value for each in series for name in names for value in getattr(each, name) if value is not None]
    return [*values, *(each.mark[place] for each in series if each.mark is not None)]


def _scale(series: Series, names: Sequence[str], factor: float, place: int) -> Series:
    if factor == 1:
        return series
    scaled = {name: [None if v is None else _multiply(v, factor) for v in getattr(series, name)] for name in names}
    mark = series.mark
    if mark is not None:
        mark = (_multiply(mark[0], factor), mark[1]) if place == 0 else (mark[0], _multiply(mark[1], factor))
    return replace(series, **scaled, mark=mark)  # type: ignore[arg-type]


def _multiply(value: float, factor: float) -> float:
    """Multiplies and removes the rounding residue of binary fractions."""
    return value if factor == 1 else float(f"{value * factor:.12g}")
