"""Labels beside points, where they cover the least."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from headstack.report.figures import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABEL_SIZE = 7.5
# Where a point's label may begin (or end), in points (1/72 inch) from it; best first.
PLACES = ((6, -9, "left"), (-6, 4, "right"), (6, 4, "left"), (-6, -9, "right"))


def label_points(figure: Figure, drawn: Sequence[tuple[Series, str]]) -> None:
    """Writes what stands beside each point of series that are drawn in a colour, where it covers the least of lines and
    of other labels."""
    from matplotlib.patheffects import Normal, Stroke

    figure.draw_without_rendering()  # from here on, places on the paper are known
    axes = figure.axes[0]
    known = [
        [(x, y, label) for x, y, label in zip(one.x, one.y, one.labels, strict=True) if x is not None and y is not None]
        for one, _ in drawn
    ]
    places: list[Any] = [
        axes.transData.transform([point[:2] for point in points]) * 72 / figure.dpi if points else []
        for points in known
    ]
    inked = [
        start + (end - start) * step / 20
        for points, (one, _) in zip(places, drawn, strict=True)
        if len(points)
        for start, end in (zip(points, points, strict=True) if one.marks else pairwise([points[0], *points]))
        for step in range(21)
    ]
    halo = [Stroke(linewidth=2, foreground="white"), Normal()]
    for (one, colour), labelled, points in zip(drawn, known, places, strict=True):
        for (x, y, label), point in zip(labelled, points, strict=True):
            if not label:
                continue
            (right, up, side), middle = _best_place(label, point, inked)
            inked += 20 * [middle]
            axes.annotate(
                label,
                (x, y),
                xytext=(right, up),
                textcoords="offset points",
                ha=side,
                fontsize=LABEL_SIZE,
                color=colour,
                zorder=5,
                path_effects=halo if one.marks else None,
            )


def _best_place(label: str, point: Any, inked: list[Any]) -> tuple[tuple[int, int, str], Any]:
    """The place for a label that covers the least ink, and the middle of the label there."""
    width, height = 0.6 * LABEL_SIZE * len(label), 0.9 * LABEL_SIZE

    def middle(place: tuple[int, int, str]) -> Any:
        right, up, side = place
        x, y = point
        return x + right + (width / 2 if side == "left" else -width / 2), y + up + height / 2

    def covered(place: tuple[int, int, str]) -> int:
        reach = (width / 2 + 2, height / 2 + 2)
        x, y = middle(place)
        return sum(abs(ink[0] - x) < reach[0] and abs(ink[1] - y) < reach[1] for ink in inked)

    best = min(PLACES, key=covered)
    return best, middle(best)
