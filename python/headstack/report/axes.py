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
            x, of_x = _decided(figure.x, _values(figure.series, ALONG, 0), figure.x_is_percentile)
            y, of_y = _decided(figure.y, [*_values(figure.series, UP, 1), *limits])
            series = [_scaled(_scaled(one, ALONG, of_x, 0), UP, of_y, 1) for one in figure.series]
            limited = [replace(limit, value=_times(limit.value, of_y)) for limit in figure.limits]
            x = positive_axis(x, list(_values(series, ALONG, 0)))
            y = positive_axis(y, list(_values(series, UP, 1)))
            series = [on_log_axes(one, x=bool(x.log), y=bool(y.log)) for one in series]
            limited = [limit for limit in limited if limit.value > 0 or not y.log]
            return replace(figure, x=x, y=y, series=series, limits=limited)
        case Bars():
            # Stacked parts add up only on a linear axis.
            y, of_y = _decided(figure.y, list(_values(figure.series, UP, 1)), figure.stacked)
            series = [_scaled(one, UP, of_y, 1) for one in figure.series]
            y = positive_axis(y, list(_values(series, UP, 1)))
            return replace(figure, y=y, series=[on_log_axes(one, x=False, y=bool(y.log)) for one in series])
        case Heat():
            x = positive_axis(_stated(figure.x), figure.x_range[:1])
            return replace(figure, x=x, y=positive_axis(_stated(figure.y), figure.y_range[:1]))
        case Grid() | Table():
            return figure


def _decided(axis: Axis, values: Sequence[float], is_linear: bool = False) -> tuple[Axis, float]:
    """Returns the axis and the factor to multiply its values by."""
    if axis.log is not None:
        return axis, 1
    if is_linear or not values or min(values) <= 0:
        axis = _stated(axis)
    else:
        spread = max(values) / min(values)
        axis = replace(axis, log=spread > DECADE, switch=spread > SWITCHED)
    is_short = axis.label.endswith("(ms)") and 0 < max(values, default=0) <= SHORT_MS
    return (replace(axis, label=f"{axis.label[:-4]}(µs)"), 1000) if is_short else (axis, 1)


def _stated(axis: Axis) -> Axis:
    return axis if axis.log is not None else replace(axis, log=False)


def _values(series: Iterable[Series], names: Sequence[str], place: int) -> list[float]:
    """Returns the values of series along an axis; ``place`` is the axis's index in a knee's pair."""
    found = [value for one in series for name in names for value in getattr(one, name) if value is not None]
    return [*found, *(one.mark[place] for one in series if one.mark is not None)]


def _scaled(one: Series, names: Sequence[str], factor: float, place: int) -> Series:
    if factor == 1:
        return one
    scaled = {name: [None if v is None else _times(v, factor) for v in getattr(one, name)] for name in names}
    mark = one.mark
    if mark is not None:
        mark = (_times(mark[0], factor), mark[1]) if place == 0 else (mark[0], _times(mark[1], factor))
    return replace(one, **scaled, mark=mark)  # type: ignore[arg-type]


def _times(value: float, factor: float) -> float:
    """Multiplies and removes the rounding residue of binary fractions."""
    return value if factor == 1 else float(f"{value * factor:.12g}")
