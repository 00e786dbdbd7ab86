"""Removal of values that cannot be drawn: non-finite ones, and those of 0 or less on a logarithmic axis. The note of a
figure says how many values it lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from headstack.report.figures import Axis, Bars, Cell, Figure, Grid, Heat, Lines, Series, Table

Some = TypeVar("Some", Lines, Bars, Grid, Heat, Table)

PARALLEL = ("x", "y", "labels", "low", "high", "low_x", "high_x", "p99", "marks", "names")
"""Fields of a series that are either empty or have one value per point."""
ALONG = ("x", "low_x", "high_x")
UP = ("y", "low", "high", "p99")


def finite(figure: Figure) -> Figure:
    """Returns the figure without non-finite values."""
    match figure:
        case Lines():
            limits = [limit for limit in figure.limits if math.isfinite(limit.value)]
            missing = sum(map(_count_non_finite, figure.series)) + len(figure.limits) - len(limits)
            series = [_finite_series(line) for line in figure.series]
            return _with_note(replace(figure, series=series, limits=limits), missing)
        case Bars():
            series = [_finite_series(bars) for bars in figure.series]
            return _with_note(replace(figure, series=series), sum(map(_count_non_finite, figure.series)))
        case Grid():
            missing = sum(_is_non_finite(value) for row in (*figure.values, *figure.published) for value in row)
            values, published = (
                [[_finite_or_none(v) for v in row] for row in rows] for rows in (figure.values, figure.published)
            )
            return _with_note(replace(figure, values=values, published=published), missing)
        case Heat():
            missing = sum(_is_non_finite(value) for row in figure.values for value in row)
            cells = [[0.0 if _is_non_finite(value) else value for value in row] for row in figure.values]
            x, y = _widen_range(figure.x_range), _widen_range(figure.y_range)
            cells = cells if cells and cells[0] else [[0.0]]
            return _with_note(replace(figure, values=cells, x_range=x, y_range=y), missing)
        case Table():
            missing = sum(_is_non_finite(cell) for row in figure.rows for cell in row)
            return _with_note(
                replace(figure, rows=[[_finite_cell(cell) for cell in row] for row in figure.rows]), missing
            )


def _with_note(figure: Some, missing: int) -> Some:
    if not missing:
        return figure
    sentence = f"{missing:,} {'value is' if missing == 1 else 'values are'} not finite and left out."
    return replace(figure, note=f"{figure.note} {sentence}".strip())


def _is_non_finite(value: Cell) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _finite_or_none(value: float | None) -> float | None:
    return None if _is_non_finite(value) else value


def _finite_cell(value: Cell) -> Cell:
    return None if _is_non_finite(value) else value


def _count_non_finite(series: Series) -> int:
    values = [value for name in (*ALONG, *UP) for value in getattr(series, name)]
    return sum(map(_is_non_finite, values)) + sum(map(_is_non_finite, series.mark or ()))


def _finite_series(series: Series) -> Series:
    # A published point with one of x and y is a rule across the figure: that it is not.
    dropped = {n for n, x in enumerate(series.x) if _is_non_finite(x)}
    dropped |= {n for n, y in enumerate(series.y) if series.published and series.x and _is_non_finite(y)}
    mark = None if series.mark is not None and any(map(_is_non_finite, series.mark)) else series.mark
    series = without(replace(series, mark=mark), dropped)
    kept = {name: [_finite_or_none(value) for value in getattr(series, name)] for name in (*ALONG, *UP)}
    return replace(series, **kept)  # type: ignore[arg-type]


def without(series: Series, points: set[int]) -> Series:
    """Returns the series without some of its points."""
    if not points:
        return series
    kept = {name: [value for n, value in enumerate(getattr(series, name)) if n not in points] for name in PARALLEL}
    return replace(series, **kept)  # type: ignore[arg-type]


def _widen_range(ends: tuple[float, float]) -> tuple[float, float]:
    """Widens ends that are equal."""
    low, high = ends
    if not (math.isfinite(low) and math.isfinite(high)):
        return 0.0, 1.0
    return (low, high) if high > low else (low, low + 1.0)


def positive_axis(axis: Axis, values: Sequence[float]) -> Axis:
    """Returns the axis, made linear if nothing could be drawn on a logarithmic one."""
    return replace(axis, log=False, switch=False) if axis.log and not any(value > 0 for value in values) else axis


def on_log_axes(series: Series, *, x: bool, y: bool) -> Series:
    """Returns the series without the values that logarithmic axes cannot show."""
    if x:
        series = without(series, {n for n, value in enumerate(series.x) if value is not None and value <= 0})
        series = replace(series, **{name: _drop_non_positive(getattr(series, name)) for name in ("low_x", "high_x")})  # type: ignore[arg-type]
    if y:
        if series.published and series.x:
            series = without(series, {n for n, value in enumerate(series.y) if value is not None and value <= 0})
        series = replace(series, **{name: _drop_non_positive(getattr(series, name)) for name in UP})  # type: ignore[arg-type]
    is_off = series.mark is not None and ((x and series.mark[0] <= 0) or (y and series.mark[1] <= 0))
    return replace(series, mark=None) if is_off else series


def _drop_non_positive(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is not None and value <= 0 else value for value in values]
