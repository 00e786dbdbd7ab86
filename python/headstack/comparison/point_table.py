"""Printed tables of comparisons."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headstack.comparison.differences.headline import digits
from headstack.comparison.points import FIGURES
from headstack.io.columns import Column, Figures, Names
from headstack.results.intervals.conformal import format_levels

if TYPE_CHECKING:
    from headstack.comparison.pairs import Point

COLUMNS = (
    Figures("IOPS", 0),
    Figures("MB/s", 3),
    Figures("mean\nms", 0),
    Figures("p50\nms", 5),
    Figures("p95\nms", 4),
    Figures("p99\nms", 1),
)
"""Columns for ``FIGURES``."""


def point_table(points: Iterable[Point], ours: str, theirs: str) -> tuple[list[Column], list[list[str]]]:
    """Returns the columns, and the cells as text with three lines per point: both sides and the error. A fourth line
    has the prediction interval, if known."""
    points = list(points)
    levels = format_levels(point.predicted.model_level for point in points)
    has_model = any(point.predicted.model for point in points)
    rows = [
        [
            point.name,
            f"{ours}\n{theirs}\n{'error' if points[0].predicted.is_prediction_of(points[0].measured) else 'difference'}"
            + f"\n{levels}" * has_model,
            *("\n".join(_cells(point, figure)) for figure in FIGURES),
            _demerit(point),
        ]
        for point in points
    ]
    return [Names("point"), Names(""), *COLUMNS, Figures("demerit\nms", 2)], rows


def _cells(point: Point, figure: str) -> list[str]:
    def shown(value: float | None) -> str:
        if value is None:
            return ""
        return digits(value)

    error = point.error(figure)
    sides = (point.measured.figures[figure], point.predicted.figures[figure])
    change = "" if error is None else f"{100 * error:+.1f} %" if abs(error) < 0.995 else f"{100 * error:+,.0f} %"
    ends = point.predicted.model.get(figure)
    return [*map(shown, sides), change, *([] if ends is None else [f"{digits(ends[0])} to {digits(ends[1])}"])]


def _demerit(point: Point) -> str:
    if point.demerit_ms is None or point.demerit_relative is None:
        return ""
    return f"{digits(point.demerit_ms)}\n\n{100 * point.demerit_relative:.1f} %"
