"""The picture of a comparison: both curves over each other, and the errors below."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headstack._native import version
from headstack.comparison.compared import Compared
from headstack.comparison.pairs import Point
from headstack.comparison.report import by_curve

# Says in one line what is missing where matplotlib is.
from headstack.report.plots import COLOURS, FAINT, INK, STYLE

import matplotlib as mpl  # isort: skip
from matplotlib.figure import Figure  # isort: skip
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter  # isort: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ERRORS = (("iops", "throughput", "o"), ("mean_ms", "mean response", "s"), ("p99_ms", "p99 response", "^"))
"""Which errors are drawn, what they are called, and how they are marked."""
TOLERATED = "#eeeeee"
PERCENT_MAX = 1e15
"""Errors above this are not drawn: no axis shows them beside others."""


def overlaid(comparison: Compared) -> Figure:
    """Mean response time over throughput, measured and predicted; below, the error of each point in %."""
    curves = by_curve(comparison)
    if not curves:
        return _nothing(comparison)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.8, 7.4 + 0.16 * len(curves)), layout="constrained")
        above, below = figure.subplots(2, 1, height_ratios=(3, 2))
        for number, (name, points) in enumerate(curves.items()):
            _draw_curve(above, name, points, comparison.sides, COLOURS[number % len(COLOURS)])
        _dress_curves(above)
        _draw_errors(below, curves, comparison)
        figure.legend(
            *above.get_legend_handles_labels(),
            loc="outside upper left",
            title=comparison.title,
            title_fontproperties={"weight": "bold", "size": 12},
            alignment="left",
            frameon=False,
            fontsize=9,
            ncols=1 if len(curves) == 1 else 2,
            handlelength=2.6,
        )
        figure.supxlabel(_caption(comparison), x=0.012, ha="left", fontsize=7.5, color=FAINT)
    return figure


def _nothing(comparison: Compared) -> Figure:
    """Words in place of a picture that has no points."""
    figure = Figure(figsize=(8.8, 2.0))
    figure.text(0.5, 0.5, f"{comparison.title}: nothing to compare", ha="center", va="center", color=FAINT)
    return figure


def _drawable(value: float | None) -> float:
    """A figure as far as it can be drawn: NaN, which is not drawn, where it is not known or not finite."""
    return value if value is not None and math.isfinite(value) else math.nan


def _draw_curve(axes: Axes, name: str, points: list[Point], words: tuple[str, str], colour: str) -> None:
    sides = (("measured", words[0], "-", colour), ("predicted", words[1], "--", "white"))
    for side, word, line, face in sides:
        seen = [getattr(point, side) for point in points]
        shown = [one.figures for one in seen]
        iops = [_drawable(figures["iops"] or 0.0) for figures in shown]
        ends = [tuple(map(_drawable, one.model.get("mean_ms", (None, None)))) for one in seen]
        if any(one.model for one in seen):
            lows, highs = zip(*ends, strict=True)
            axes.fill_between(iops, lows, highs, color=colour, alpha=0.18, lw=0)
        axes.plot(
            iops,
            [_drawable(figures["mean_ms"] or 0.0) for figures in shown],
            line,
            marker="o",
            color=colour,
            mfc=face,
            mec=colour,
            ms=5,
            lw=1.6,
            label=f"{name}, {word}",
            zorder=4 if side == "measured" else 3,
        )
    for point in points:
        if point.falls_short:
            figures = point.measured.figures
            at = (_drawable(figures[name] or 0.0) for name in ("iops", "mean_ms"))
            axes.plot(*at, "o", ms=12, mfc="none", mec=INK, mew=1.1, zorder=5)


def _dress_curves(axes: Axes) -> None:
    axes.set_xlabel("Throughput (IO/s)")
    axes.set_ylabel("Mean response time (ms)")
    axes.set_yscale("log")
    axes.margins(0.06, 0.1)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.grid(axis="both", zorder=0)


def _draw_errors(axes: Axes, curves: dict[str, list[Point]], comparison: Compared) -> None:
    """A place for each point, curve after curve: what their errors are, and what is tolerated."""
    axes.axhline(0, color=INK, lw=0.8, zorder=2)
    axes.axhspan(-100 * comparison.tolerance, 100 * comparison.tolerance, color=TOLERATED, zorder=0, lw=0)
    place, ticks, labels = 0, [], []
    for number, points in enumerate(curves.values()):
        places = list(range(place, place + len(points)))
        for figure, _, marker in ERRORS:
            errors = [point.error(figure) for point in points]
            drawable = ((at, 100 * _drawable(error)) for at, error in zip(places, errors, strict=True))
            shown = [(at, percent) for at, percent in drawable if abs(percent) <= PERCENT_MAX]
            colour = COLOURS[number % len(COLOURS)]
            is_mean = figure == "mean_ms"
            axes.plot(
                [at for at, _ in shown],
                [error for _, error in shown],
                marker=marker,
                color=colour,
                mfc=colour if is_mean else "white",
                mec=colour,
                ms=5.5,
                lw=1.2 if is_mean else 0.6,
                zorder=4 if is_mean else 3,
            )
        ticks += places
        labels += [point.measured.load.removeprefix("depth ") for point in points]
        place += len(points) + 1
    for _, name, marker in ERRORS:
        face = FAINT if name == "mean response" else "white"
        axes.plot([], [], marker, color=FAINT, mfc=face, mec=FAINT, ms=5.5, label=name)
    axes.legend(frameon=False, fontsize=8.5, ncols=len(ERRORS), loc="lower left", bbox_to_anchor=(-0.01, 0.98))
    axes.set_xticks(ticks, labels)
    if sum(map(len, labels)) > 60:
        axes.tick_params(axis="x", labelrotation=90)
    axes.set_xlim(-0.6, place - 1.4)
    ours, theirs = comparison.sides
    axes.set_ylabel(f"{theirs[:1].upper()}{theirs[1:]} / {ours} − 1 (%)")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    is_depth = all(point.measured.load.startswith("depth ") for point in comparison)
    axes.set_xlabel("Requests outstanding" if is_depth else "Load")
    axes.grid(axis="y", zorder=0)


def _caption(comparison: Compared) -> str:
    """What the picture needs to be understood."""
    requests = min(point.measured.requests for point in comparison)
    short = sum(bool(point.falls_short) for point in comparison)
    ringed = f"; ringed: {short} below the model by more than the stated error" if short else ""
    tolerance = f"grey: tolerance of ±{100 * comparison.tolerance:.3g} %"
    return f"headstack {version()}; at least {requests:,} requests a point; {tolerance}{ringed}"
