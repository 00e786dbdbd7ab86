"""Figures of lines and points, drawn by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from headstack.report.drawing import (
    DASHES,
    Canvas,
    LineStyle,
    Look,
    colour_of,
    dress_axis,
    figure_text,
    head_and_foot,
    known_values,
    series_name,
    unit_of,
)
from headstack.report.figures import Axis, Lines, Mark, Series, Shape
from headstack.report.labels import LABEL_SIZE
from headstack.report.plots import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import MarkerType

MARKERS: dict[Shape | None, MarkerType] = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "cross": "P",
    "down": "v",
    "asterisk": (6, 2, 0),
}
"""The same markers as in the page (web/src/looks.ts)."""
MARKS: tuple[Mark, ...] = get_args(Mark)
RULE: LineStyle = (0, (1, 1.6))
THIN = 0.8
"""Line width of a 99th percentile, in points."""
MARKS_MAX = 80
"""A line with more points than this has no markers."""
POINTS_MAX, SMALL = 200, 3.0
"""With more points than this, those without a label are small."""
NINES = (0, 50, 90, 99, 99.9, 99.99, 99.999, 100)


def draw_lines(canvas: Canvas, data: Lines) -> list[tuple[Series, str]]:
    """Draws a figure of lines; returns the series whose points have labels, with their colours. Labels are placed after
    the whole picture is drawn."""
    axes = canvas.add_subplot()
    percents = [x for line in data.series for x in line.x if x is not None]
    labelled = []
    for series in data.series:
        placed = replace(series, x=_nines_of(series.x, percents)) if data.x_is_percentile else series
        _draw_series(axes, data, placed)
        if series.labels and any(y is not None for y in series.y):
            labelled.append((placed, colour_of(series)))
    if data.x_is_percentile:
        _dress_nines(axes, data.x, percents)
    else:
        dress_axis(axes.xaxis, data.x, [*percents, *known_values(data.series, "low_x", "high_x")])
    dress_axis(
        axes.yaxis,
        data.y,
        [*known_values(data.series, "y", "low", "high", "p99"), *(limit.value for limit in data.limits)],
    )
    _draw_limits(axes, data)
    axes.grid(axis="both", zorder=0)
    ours = {series.name for series in data.series if not series.published}
    if any(series.published and series.name in ours for series in data.series):
        published_look = published_marks(data)
        mark: Look = {"marker": "o", "mfc": "white", "mec": FAINT, "mew": 1.3, "ms": 7, "ls": ""}
        rule: Look = {"color": FAINT, "ls": RULE, "lw": 1.6}
        axes.plot(
            [], [], label=f"{published_look}: as published", **(mark if published_look.startswith("open") else rule)
        )
    for kind, meaning in data.key:
        axes.plot([], [], label=meaning, color=FAINT, **_mark_look(kind, "o", FAINT))
    has_names = len(data.series) > 1 or any(series.mark is not None for series in data.series) or bool(data.key)
    head_and_foot(canvas, data.title, data.note, has_names, data.says)
    return labelled


def published_marks(data: Lines) -> str:
    """Describes how published values with the names of our series are drawn."""
    ours = {line.name for line in data.series if not line.published}
    published = [line for line in data.series if line.published and line.name in ours]
    points = any(x is not None and y is not None for line in published for x, y in zip(line.x, line.y, strict=True))
    rules = any(x is None or y is None for line in published for x, y in zip(line.x, line.y, strict=True))
    return " and ".join(["open marks"] * points + ["dotted rules"] * rules)


def _draw_series(axes: Axes, data: Lines, series: Series) -> None:
    colour, marker = colour_of(series), MARKERS[series.shape]
    x, y, lows, highs = (
        [math.nan if value is None else value for value in values]
        for values in (series.x, series.y, series.low, series.high)
    )
    label = series_name(series)
    has_twin = series.published and any(line.name == series.name and not line.published for line in data.series)
    if series.mark is not None:
        at = (f"{figure_text(value)}{unit_of(axis)}" for value, axis in zip(series.mark, (data.x, data.y), strict=True))
        label += f": knee at {'≤ ' if series.mark_at_most else ''}{', '.join(at)}"
    if series.published:
        _rules(axes, series)
        spread = None
        if series.low:
            spread = [
                [v - low for v, low in zip(y, lows, strict=True)],
                [high - v for v, high in zip(y, highs, strict=True)],
            ]
        open_mark: Look = {
            "mfc": "white",
            "mec": colour,
            "mew": 1.3,
            "ms": 7,
            "ecolor": colour,
            "elinewidth": 1.2,
        }
        axes.errorbar(
            x,
            y,
            yerr=spread,
            fmt="none" if not marker else " ",
            marker=marker,
            label="" if has_twin else label,
            zorder=4,
            **open_mark,
        )
        return
    if series.marks:
        _draw_points(axes, series, label, data)
        return
    _band(axes, series, colour)
    shown = marker if sum(not math.isnan(value) for value in y) <= MARKS_MAX else ""
    edge = 1.2 if series.shape == "asterisk" else 0
    dash = DASHES[series.dash or 0]
    axes.plot(x, y, marker=shown, ls=dash, color=colour, lw=1.8, ms=4.5 + edge, mew=edge, label=label, zorder=3)
    if series.p99:
        tail = [math.nan if value is None else value for value in series.p99]
        alone = "_" if sum(not math.isnan(value) for value in tail) == 1 else ""
        axes.plot(x, tail, marker=alone, ls=dash, color=colour, lw=THIN, ms=9, zorder=2.8)
    if series.mark is not None:
        axes.plot(*series.mark, "o", ms=11, mfc="none", mec=colour, mew=1.4, zorder=4)


def _draw_points(axes: Axes, series: Series, label: str, data: Lines) -> None:
    """Draws points without a line, each with its marker and, if known, its interval as a bar. The first series is drawn
    on top.
    """
    colour, marker = colour_of(series), MARKERS[series.shape]
    is_crowd = sum(len(line.marks) for line in data.series) > POINTS_MAX
    depth = 0.3 * [line.name for line in data.series].index(series.name) / len(data.series)
    axes.plot([], [], label=label, color=colour, **_mark_look("full", marker, colour))
    labels = series.labels or [""] * len(series.x)
    for kind in MARKS:
        for is_small in (True, False):
            points = [
                (x, y)
                for x, y, mark, text in zip(series.x, series.y, series.marks, labels, strict=True)
                if mark == kind and (is_crowd and not text) == is_small and x is not None and y is not None
            ]
            if points:
                look = _mark_look(kind, marker, colour) | ({"ms": SMALL, "mew": 0.8} if is_small else {})
                height = (3.5 if kind == "cross" else 4) + (0 if is_small else 0.4) - depth
                axes.plot([x for x, _ in points], [y for _, y in points], zorder=height, **look)
    for x, low, high in zip(series.x, series.low, series.high, strict=False):
        if x is not None and low is not None and high is not None:
            axes.plot([x, x], [low, high], color=colour, lw=1.2, zorder=3.2)


def _mark_look(kind: Mark, marker: MarkerType, colour: str) -> Look:
    if kind == "cross":
        return {"ls": "", "marker": "x", "ms": 5, "mec": colour, "mew": 1.1}
    return {
        "ls": "",
        "marker": marker,
        "ms": 6,
        "mec": colour,
        "mew": 1.2,
        "mfc": colour if kind == "full" else "white",
    }


def _draw_limits(axes: Axes, data: Lines) -> None:
    for limit in data.limits:
        axes.axhline(limit.value, color=INK, ls=DASHES[1], lw=1.1, zorder=2.5)
        axes.text(
            0.995,
            limit.value,
            limit.label,
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="bottom",
            fontsize=LABEL_SIZE,
            color=INK,
            zorder=5,
        )


def _rules(axes: Axes, series: Series) -> None:
    """Draws published values that have only one coordinate as lines across the figure."""
    colour = colour_of(series)
    look: Look = {"color": colour, "ls": RULE, "lw": 1.6, "zorder": 2.5}
    text: Look = {"color": colour, "fontsize": LABEL_SIZE, "zorder": 5}
    labels = series.labels or [""] * len(series.x)
    for x, y, label in zip(series.x, series.y, labels, strict=True):
        if x is None and y is not None:
            axes.axhline(y, **look)
            axes.text(0.99, y, label, transform=axes.get_yaxis_transform(), ha="right", va="bottom", **text)
        elif y is None and x is not None:
            axes.axvline(x, **look)
            axes.text(x, 0.99, label, transform=axes.get_xaxis_transform(), rotation=90, ha="right", va="top", **text)


def _band(axes: Axes, series: Series, colour: str) -> None:
    """Fills the area between the ends of the interval; it is broken where the interval is unknown, and a bar at an
    isolated point.
    """
    for low, high in bands(series):
        edge = [*low, *reversed(high)]
        places = [x for x, _ in edge], [y for _, y in edge]
        if len(low) == 1:
            axes.plot(*places, color=colour, alpha=0.3, lw=6, solid_capstyle="butt", zorder=2.5)
        else:
            axes.fill(*places, color=colour, alpha=0.18, lw=0)


def bands(series: Series) -> list[tuple[list[tuple[float, float]], list[tuple[float, float]]]]:
    """Returns the lower and the upper edge of each stretch of a series with known intervals."""
    stretches: list[tuple[list[tuple[float, float]], list[tuple[float, float]]]] = []
    is_open = False
    ends = zip(series.low_x or series.x, series.low, series.high_x or series.x, series.high, strict=False)
    for low_x, low, high_x, high in ends:
        is_known = None not in (low_x, low, high_x, high)
        if is_known and not is_open:
            stretches.append(([], []))
        is_open = is_known
        if low_x is not None and low is not None and high_x is not None and high is not None:
            stretches[-1][0].append((low_x, low))
            stretches[-1][1].append((high_x, high))
    return stretches


def _nines_of(percents: Sequence[float | None], among: Sequence[float]) -> list[float | None]:
    return [None if percent is None else nines([percent], among)[0] for percent in percents]


def nines(percents: Sequence[float], among: Sequence[float]) -> list[float]:
    """Converts percentiles to their number of nines; 100, which has infinitely many, is placed one above the others."""
    finite = [-math.log10(1 - percent / 100) for percent in among if percent < 100]
    end = 1 + math.ceil(max(finite, default=1) - 1e-9)
    return [end if percent >= 100 else -math.log10(1 - percent / 100) for percent in percents]


def _dress_nines(axes: Axes, axis: Axis, percents: list[float]) -> None:
    axes.set_xlabel(axis.label)
    if not percents:
        return
    within = [tick for tick in NINES if min(percents) <= tick <= max(percents)]
    end = max(nines(percents, percents))
    ticks = [tick for tick in within if tick == 100 or nines([tick], percents)[0] < end - 0.5]
    axes.set_xticks(nines(ticks, percents), [f"{tick:g}" for tick in ticks])
