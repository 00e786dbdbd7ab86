"""Tables of comparisons for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headstack.comparison.points import FIGURES
from headstack.io.columns import Column, Figures, Names

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
    """Returns the columns, and the cells as text: three lines per point, for both sides and the error; a fourth for the
    prediction interval if known."""
    points = list(points)
    has_model = any(point.predicted.model for point in points)
    rows = [
        [
            point.name,
            f"{ours}\n{theirs}\nerror" + "\n90 %" * has_model,
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
        return f"{value:,.1f}" if figure in ("iops", "mb_per_s") else f"{value:,.3f}"

    error = point.error(figure)
    sides = (point.measured.figures[figure], point.predicted.figures[figure])
    error_text = "" if error is None else f"{error:+.1%}" if abs(error) < 10 else f"{error:+,.0%}"
    ends = point.predicted.model.get(figure)
    return [*map(shown, sides), error_text, *([] if ends is None else [f"{ends[0]:,.4g} to {ends[1]:,.4g}"])]


def _demerit(point: Point) -> str:
    if point.demerit_ms is None or point.demerit_relative is None:
        return ""
    return f"{point.demerit_ms:,.3f}\n\n{point.demerit_relative:.1%}"
