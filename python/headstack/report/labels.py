"""Placement of labels next to points, where they cover the least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from headstack.report.figures import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL_SIZE = 7.5
# Offsets of a label's start (or end) from its point, in points (1/72 inch); best first.
PLACES = ((6, -9, "left"), (-6, 4, "right"), (6, 4, "left"), (-6, -9, "right"), (8, -3, "left"), (-8, -3, "right"))
BEYOND = 16.0
"""Points by which a label may extend above or to the right of the axes."""
Rectangle: TypeAlias = tuple[float, float, float, float]
"""Left, bottom, right, top, in points."""


def label_points(axes: Axes, drawn: Sequence[tuple[Series, str]]) -> None:
    """Writes the label of each point of the drawn series where it covers the fewest lines and other labels."""
    from matplotlib.patheffects import Normal, Stroke  # start-up time

    figure = axes.figure.figure
    figure.draw_without_rendering()  # from here on, positions on the page are known
    labelled_points = [
        [
            (x, y, label)
            for x, y, label in zip(series.x, series.y, series.labels, strict=True)
            if x is not None and y is not None
        ]
        for series, _ in drawn
    ]
    places: list[Any] = [
        axes.transData.transform([point[:2] for point in points]) * 72 / figure.dpi if points else []
        for points in labelled_points
    ]
    inked = [
        start + (end - start) * step / 20
        for line, is_line in _lines(axes, [series for series, _ in drawn], places)
        for start, end in (pairwise([line[0], *line]) if is_line else zip(line, line, strict=True))
        for step in range(21)
    ]
    frame: Any = axes.get_window_extent().extents
    frame = frame * 72 / figure.dpi
    room = (frame[0] + 1, frame[1] + 1, frame[2] + BEYOND, frame[3] + BEYOND)
    taken: list[Rectangle] = []
    halo = [Stroke(linewidth=2, foreground="white"), Normal()]
    for (series, colour), labelled, points in zip(drawn, labelled_points, places, strict=True):
        for (x, y, label), point in zip(labelled, points, strict=True):
            best = place_label(label, point, inked, taken, room) if label else None
            if best is None:
                continue
            (right, up, side), rectangle = best
            taken.append(rectangle)
            axes.annotate(
                label,
                (x, y),
                xytext=(right, up),
                textcoords="offset points",
                ha=side,
                fontsize=LABEL_SIZE,
                color=colour,
                zorder=5,
                path_effects=halo if series.marks else None,
            )


def _lines(axes: Any, drawn: Sequence[Series], places: Sequence[Any]) -> Iterator[tuple[Any, bool]]:
    """Returns the positions of ink, in points: along lines and thin lines, otherwise at the points."""
    for series, points in zip(drawn, places, strict=True):
        if len(points):
            yield points, not series.marks
        tail = [(x, y) for x, y in zip(series.x, series.p99, strict=False) if x is not None and y is not None]
        if tail:
            yield axes.transData.transform(tail) * 72 / axes.figure.dpi, True


def place_label(
    label: str, point: Any, inked: list[Any], taken: list[Rectangle], room: Rectangle
) -> tuple[tuple[int, int, str], Rectangle] | None:
    """Returns the position of a label that covers the least ink, and its rectangle; ``None`` if every position overlaps
    another label or leaves the available space."""
    width, height, below = 0.66 * LABEL_SIZE * len(label), 1.25 * LABEL_SIZE, 0.25 * LABEL_SIZE

    def rectangle(place: tuple[int, int, str]) -> Rectangle:
        right, up, side = place
        left = point[0] + right - (0 if side == "left" else width)
        bottom = point[1] + up - below
        return left, bottom, left + width, bottom + height

    def is_free(box: Rectangle) -> bool:
        left, bottom, right, top = box
        within = left >= room[0] and bottom >= room[1] and right <= room[2] and top <= room[3]
        return within and not any(_overlap(box, other) for other in taken)

    def count_covered(box: Rectangle) -> int:
        left, bottom, right, top = box
        return sum(left - 2 < x < right + 2 and bottom - 2 < y < top + 2 for x, y in inked)

    free = [(place, box) for place in PLACES if is_free(box := rectangle(place))]
    return min(free, key=lambda candidate: count_covered(candidate[1]), default=None)


def _overlap(first: Rectangle, second: Rectangle) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
