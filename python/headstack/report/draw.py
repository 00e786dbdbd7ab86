"""Figures of reports drawn by matplotlib, as PNG, SVG or PDF: the data of the page in the style of the plots."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypedDict, get_args

from headstack.report.axes import with_axes
from headstack.report.figures import Axis, Bars, Cell, Grid, Heat, Lines, Mark, Series, Shape, Table
from headstack.report.figures import Figure as Data
from headstack.report.looks import COLOURS as NAMES
from headstack.report.looks import with_looks
from headstack.report.stills import is_alone

# Says in one line what is missing where matplotlib is.
from headstack.report.plots import COLOURS, FAINT, INK, STYLE, save  # isort: skip
from headstack.report.labels import LABEL_SIZE, label_points  # isort: skip

import matplotlib as mpl  # isort: skip
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize, TwoSlopeNorm  # isort: skip
from matplotlib.figure import Figure  # isort: skip
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator  # isort: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as Drawn
    from matplotlib.typing import MarkerType

LineStyle: TypeAlias = str | tuple[float, tuple[float, ...]]
"""A line's style: its name, or an offset and the lengths of dashes and gaps, in points."""


class Look(TypedDict, total=False):
    """Keyword arguments of matplotlib that lines, bars and texts of a kind share; lengths are in points."""

    color: str
    facecolor: str
    edgecolor: str
    hatch: str
    ls: LineStyle
    lw: float
    marker: MarkerType
    mfc: str
    mec: str
    mew: float
    ms: float
    ecolor: str
    elinewidth: float
    fontsize: float
    zorder: float


DASHES: tuple[LineStyle, ...] = ("-", (0, (5, 2)), (0, (1.5, 2)), (0, (6, 2, 1.5, 2)))
MARKERS: dict[Shape | None, MarkerType] = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "cross": "P",
    "down": "v",
    "asterisk": (6, 2, 0),
}
"""As in the page (web/src/looks.ts)."""
MARKS: tuple[Mark, ...] = get_args(Mark)
RULE: LineStyle = (0, (1, 1.6))
THIN = 0.8
"""The line of a 99th percentile."""
MARKS_MAX = 80
"""More points than this have no marks of their own."""
POINTS_MAX, SMALL = 200, 3.0
"""Of more points than this, those without a label are small."""
NINES = (0, 50, 90, 99, 99.9, 99.99, 99.999, 100)
MANY = 30
"""A map is logarithmic where its greatest value is so many times its least."""
NOTE, TITLE, SAYS = 118, 9.5, 13
"""Characters on a line of a note, and on an inch of a title and of what a figure says."""


def draw(data: Data, path: str | os.PathLike[str] | None = None) -> Figure:
    """The picture of a figure; written where a path is given, in the format of its suffix: png, svg or pdf."""
    (data,) = with_looks([with_axes(data)])
    with mpl.rc_context(STYLE):
        match data:
            case Lines():
                figure = _lines(data)
            case Bars():
                figure = _bars(data)
            case Grid():
                figure = _grid(data)
            case Heat():
                figure = _heat(data)
            case Table():
                figure = _table(data)
    if path is not None:
        save(figure, path)
    return figure


# Lines.


def _lines(data: Lines) -> Figure:
    figure = Figure(figsize=(8.4, 5.0 + 0.2 * _legend_rows(data.series)), layout="constrained")
    axes = figure.add_subplot()
    percents = [x for one in data.series for x in one.x if x is not None]
    labelled = []
    for series in data.series:
        placed = replace(series, x=_nines_of(series.x, percents)) if data.x_is_percentile else series
        _draw_series(axes, data, placed)
        if series.labels and any(y is not None for y in series.y):
            labelled.append((placed, _colour(series)))
    if data.x_is_percentile:
        _dress_nines(axes, data.x, percents)
    else:
        _dress(axes.xaxis, data.x, [*percents, *_known(data.series, "low_x", "high_x")])
    _dress(
        axes.yaxis, data.y, [*_known(data.series, "y", "low", "high", "p99"), *(limit.value for limit in data.limits)]
    )
    _draw_limits(axes, data)
    axes.grid(axis="both", zorder=0)
    ours = {series.name for series in data.series if not series.published}
    if any(series.published and series.name in ours for series in data.series):
        said = published_marks(data)
        mark: Look = {"marker": "o", "mfc": "white", "mec": FAINT, "mew": 1.3, "ms": 7, "ls": ""}
        rule: Look = {"color": FAINT, "ls": RULE, "lw": 1.6}
        axes.plot([], [], label=f"{said}: as published", **(mark if said.startswith("open") else rule))
    for kind, says in data.key:
        axes.plot([], [], label=says, color=FAINT, **_mark_look(kind, "o", FAINT))
    has_names = len(data.series) > 1 or any(series.mark is not None for series in data.series) or bool(data.key)
    _head_and_foot(figure, data.title, data.note, has_names, data.says)
    if labelled:
        label_points(figure, labelled)
    return figure


def _colour(series: Series) -> str:
    return COLOURS[NAMES.index(series.colour or NAMES[0])]


def _known(series: Sequence[Series], *keys: str) -> list[float]:
    return [value for one in series for key in keys for value in getattr(one, key) if value is not None]


def published_marks(data: Lines) -> str:
    """How what was published under the names of ours is drawn."""
    ours = {one.name for one in data.series if not one.published}
    twins = [one for one in data.series if one.published and one.name in ours]
    points = any(x is not None and y is not None for one in twins for x, y in zip(one.x, one.y, strict=True))
    rules = any(x is None or y is None for one in twins for x, y in zip(one.x, one.y, strict=True))
    return " and ".join(["open marks"] * points + ["dotted rules"] * rules)


def _draw_series(axes: Axes, data: Lines, series: Series) -> None:
    colour, marker = _colour(series), MARKERS[series.shape]
    x, y, lows, highs = (
        [math.nan if value is None else value for value in values]
        for values in (series.x, series.y, series.low, series.high)
    )
    label = series_name(series)
    has_twin = series.published and any(one.name == series.name and not one.published for one in data.series)
    if series.mark is not None:
        at = (f"{_figure(value)}{_unit(axis)}" for value, axis in zip(series.mark, (data.x, data.y), strict=True))
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
    """Points alone, each with its mark; where the interval is known, it is a bar. The first series is the nearest."""
    colour, marker = _colour(series), MARKERS[series.shape]
    is_crowd = sum(len(one.marks) for one in data.series) > POINTS_MAX
    depth = 0.3 * [one.name for one in data.series].index(series.name) / len(data.series)
    axes.plot([], [], label=label, color=colour, **_mark_look("full", marker, colour))
    labels = series.labels or [""] * len(series.x)
    for kind in MARKS:
        for is_small in (True, False):
            points = [
                (x, y)
                for x, y, of, text in zip(series.x, series.y, series.marks, labels, strict=True)
                if of == kind and (is_crowd and not text) == is_small and x is not None and y is not None
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
    """Published values of one axis alone, as lines across."""
    colour = _colour(series)
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
    """Between the ends of the interval; broken where it is not known, and a bar where that is of one point alone."""
    for low, high in bands(series):
        edge = [*low, *reversed(high)]
        places = [x for x, _ in edge], [y for _, y in edge]
        if len(low) == 1:
            axes.plot(*places, color=colour, alpha=0.3, lw=6, solid_capstyle="butt", zorder=2.5)
        else:
            axes.fill(*places, color=colour, alpha=0.18, lw=0)


def bands(series: Series) -> list[tuple[list[tuple[float, float]], list[tuple[float, float]]]]:
    """The low and the high edge of each stretch of a series whose intervals are known."""
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


def series_name(series: Series) -> str:
    """The name of a series in a legend: it says of published figures that they are."""
    said = series.published and "published" not in series.name.lower()
    return f"{series.name} (published)" if said else series.name


def _nines_of(percents: Sequence[float | None], among: Sequence[float]) -> list[float | None]:
    return [None if percent is None else nines([percent], among)[0] for percent in percents]


def nines(percents: Sequence[float], among: Sequence[float]) -> list[float]:
    """How many nines percentiles have; 100, which has no end of them, lies one beyond the others."""
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


def _dress(drawn: Drawn, axis: Axis, values: list[float]) -> None:
    """An axis with its label, round ticks, and 0 where there is no long way to it."""
    drawn.set_label_text(axis.label)
    set_limits = drawn.axes.set_xlim if drawn is drawn.axes.xaxis else drawn.axes.set_ylim
    low, high = min(values, default=0.0), max(values, default=1.0)
    if axis.log:
        positive = [value for value in values if value > 0] or [1.0]
        drawn._set_axes_scale("log")  # type: ignore[attr-defined]
        low, high = 0.75 * min(positive), 1.3 * max(positive)
        factors = (1, 2, 5) if high < 1000 * low else (1,)
        steps = [step * 10.0**power for power in range(-12, 16) for step in factors]
        set_limits(low, high)
        drawn.set_major_locator(FixedLocator([step for step in steps if low <= step <= high]))
        drawn.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        drawn.set_minor_locator(NullLocator())
        drawn.set_minor_formatter(NullFormatter())
    else:
        is_near = 0 <= low < 0.4 * high or low == high
        bottom = min(0.0, low) if is_near else low - 0.12 * (high - low)
        set_limits(bottom, high + 0.08 * (high - bottom) or 1.0)
        drawn.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


# Bars.


def _bars(data: Bars) -> Figure:
    beside_each_other = 1 if data.stacked or is_alone(data) else len(data.series)
    count = len(data.groups) * beside_each_other
    figure = Figure(figsize=(max(8.4, 0.28 * count + 1.5), 4.8 + 0.2 * _legend_rows(data.series)), layout="constrained")
    axes = figure.add_subplot()
    width = 0.62 if beside_each_other == 1 else 0.82 / beside_each_other
    tops = [0.0] * len(data.groups)
    for number, series in enumerate(data.series):
        colour = _colour(series)
        beside = 0.0 if beside_each_other == 1 else (number + 0.5 - len(data.series) / 2) * width
        places = [group + beside for group in range(len(data.groups))]
        heights = [math.nan if value is None else value for value in series.y]
        face: Look = {"color": colour, "lw": 0}
        if series.published:
            face = {"facecolor": "white", "edgecolor": colour, "hatch": "////", "lw": 1}
        axes.bar(places, heights, width=0.94 * width, bottom=tops, label=series_name(series), zorder=3, **face)
        if data.stacked:
            tops = [top + (value or 0.0) for top, value in zip(tops, series.y, strict=True)]
        for place, low, high in zip(places, series.low, series.high, strict=False):
            if low is not None and high is not None:
                axes.plot([place, place], [low, high], color=INK, lw=1.2, zorder=4)
    axes.axhline(0, color=FAINT, lw=0.8)
    axes.set_xticks(range(len(data.groups)), data.groups)
    axes.tick_params(axis="x", length=0)
    if sum(map(len, data.groups)) > 80 or max(map(len, data.groups), default=0) > 100 / max(1, len(data.groups)):
        for name in axes.get_xticklabels():
            name.set(rotation=30, ha="right", rotation_mode="anchor")
    axes.set_ylabel(data.y.label)
    if data.y.log:
        known = _known(data.series, "y", "low", "high")
        _dress(axes.yaxis, data.y, known)
        axes.set_ylim(bottom=10 ** math.floor(math.log10(0.75 * min(known, default=1.0))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.grid(axis="y", zorder=0)
    _head_and_foot(figure, data.title, data.note, len(data.series) > 1 and not is_alone(data), data.says)
    return figure


# Grids, maps and tables.


def _grid(data: Grid) -> Figure:
    if not data.rows or not data.columns:
        return _nothing(data)
    values = [[math.nan if value is None else value for value in row] for row in data.values]
    known = [value for row in values for value in row if not math.isnan(value)] or [0.0]
    wide = 2.2 + max((len(name) for name in data.rows), default=0) * 0.075 + 0.95 * len(data.columns)
    figure = Figure(figsize=(max(5.0, wide), 1.7 + 0.45 * len(data.rows)), layout="constrained")
    axes = figure.add_subplot()
    norm: Normalize = Normalize(min(known), max(known) or 1.0)
    shades = LinearSegmentedColormap.from_list("more", ["#ffffff", _tinted(COLOURS[0])])
    if data.signed:
        most = max(map(abs, known)) or 1.0
        norm = TwoSlopeNorm(0, -most, most)
        shades = LinearSegmentedColormap.from_list("both", [_tinted(COLOURS[1]), "#ffffff", _tinted(COLOURS[0])])
    axes.imshow(values, aspect="auto", cmap=shades, norm=norm)
    of_ours, of_others = _decimals(known), _decimals([v for row in data.published for v in row if v is not None])
    for row, cells in enumerate(values):
        for column, value in enumerate(cells):
            published = data.published[row][column] if data.published else None
            said = "" if math.isnan(value) else f"{value:,.{of_ours}f}"
            below = "" if published is None else f"\n({published:,.{of_others}f})"
            axes.text(column, row, said + below, ha="center", va="center", fontsize=8.5, linespacing=1.1)
    axes.set_xticks(range(len(data.columns)), data.columns)
    axes.set_yticks(range(len(data.rows)), data.rows)
    axes.tick_params(length=0, top=False, bottom=False, labeltop=True, labelbottom=False)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel(data.column_label)
    axes.set_ylabel(data.row_label)
    axes.spines[:].set_visible(False)
    _head_and_foot(figure, f"{data.title} ({data.unit})", _published_note(data), False, data.says)
    return figure


def _nothing(data: Grid | Table) -> Figure:
    """A figure that has no cells."""
    figure = Figure(figsize=(5.0, 1.7), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.text(0.5, 0.5, "nothing to show", ha="center", va="center", color=FAINT)
    _head_and_foot(figure, data.title, data.note, False, data.says)
    return figure


def _decimals(values: Sequence[float]) -> int:
    """How many decimals show four digits of the largest; none of whole numbers."""
    if all(value == round(value) for value in values):
        return 0
    return max(0, 3 - math.floor(math.log10(max(map(abs, values)))))


def _published_note(data: Grid) -> str:
    return f"{data.note} In parentheses: as published.".strip() if data.published else data.note


def _heat(data: Heat) -> Figure:
    figure = Figure(figsize=(8.4, 5.0), layout="constrained")
    axes = figure.add_subplot()
    known = [value for row in data.values for value in row if value] or [1.0]
    is_log = min(known) > 0 and max(known) > MANY * min(known)
    low = min(known) if is_log else min(0.0, *known)
    scale = LogNorm if is_log else Normalize
    # From a tint on: a single request must be seen.
    shades = LinearSegmentedColormap.from_list("heat", [_tinted(COLOURS[0], 0.3), COLOURS[0], "#0c1f33"])
    cells = [[value or math.nan for value in row] for row in data.values]
    edges = [
        _edges(axis, reach, count)
        for axis, reach, count in (
            (data.x, data.x_range, len(data.values[0]) if data.values else 0),
            (data.y, data.y_range, len(data.values)),
        )
    ]
    norm = scale(low, max(known) if max(known) > low else low + 1)
    image = axes.pcolormesh(*edges, cells, cmap=shades, norm=norm, rasterized=True)
    for axis, set_scale, label in (
        (data.x, axes.set_xscale, axes.set_xlabel),
        (data.y, axes.set_yscale, axes.set_ylabel),
    ):
        label(axis.label)
        if axis.log:
            set_scale("log")
    bar = figure.colorbar(image, ax=axes, pad=0.01, aspect=30)
    bar.set_label(data.unit)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    _head_and_foot(figure, data.title, data.note, False, data.says)
    return figure


def _edges(axis: Axis, reach: tuple[float, float], count: int) -> list[float]:
    low, high = reach
    if axis.log:
        return [low * (high / low) ** (step / count) for step in range(count + 1)]
    return [low + (high - low) * step / count for step in range(count + 1)]


def _table(data: Table) -> Figure:
    if not data.columns:
        return _nothing(data)
    texts = [[_cell(value) for value in row] for row in data.rows]
    widths = [2 + max(map(len, cells)) for cells in zip(data.columns, *texts, strict=True)]
    figure = Figure(figsize=(max(4.0, 0.085 * sum(widths) + 0.3 * len(widths)), 1.0 + 0.24 * len(texts)))
    figure.set_layout_engine("constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    shares = [width / sum(widths) for width in widths]
    drawn = axes.table(texts or [[""] * len(widths)], colLabels=list(data.columns), colWidths=shares, loc="upper left")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(8.5)
    for (row, column), cell in drawn.get_celld().items():
        cell.visible_edges = "B"
        cell.set_edgecolor("#dddddd")
        is_figure = all(type(value[column]) in (int, float, type(None)) for value in data.rows)
        cell.set_text_props(ha="right" if is_figure else "left", weight="bold" if row == 0 else "normal")
        cell.PAD = 0.04
    _head_and_foot(figure, data.title, data.note, False, data.says)
    return figure


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    # Years and seeds have no comma in them.
    if isinstance(value, int) and abs(value) < 10_000:
        return str(value)
    return value if isinstance(value, str) else _figure(value)


# What they have in common.


def _head_and_foot(figure: Figure, title: str, note: str, has_legend: bool, says: str) -> None:
    """The title over all, with the names of series below it, then what the figure says; the note at the foot."""
    bold = {"weight": "bold", "size": 12}
    title = "\n".join(textwrap.wrap(title, int(TITLE * figure.get_figwidth())))
    if has_legend:
        figure.legend(
            loc="outside upper left",
            title=title,
            title_fontproperties=bold,
            alignment="left",
            frameon=False,
            fontsize=9,
            ncols=2 if len(figure.axes[0].get_legend_handles_labels()[1]) > 6 else 1,
            handlelength=2.2,
        )
    else:
        figure.suptitle(title, x=0.012, ha="left", **bold)
    if says:
        said = "\n".join(textwrap.wrap(says, int(SAYS * figure.get_figwidth())))
        figure.axes[0].set_title(said, loc="left", fontsize=9)
    if note:
        folded = "\n".join(textwrap.wrap(note, NOTE))
        figure.supxlabel(folded, x=0.012, ha="left", fontsize=7.5, color=FAINT)


def _legend_rows(series: Sequence[Series]) -> int:
    return len(series) if len(series) <= 6 else -(-len(series) // 2)


def _unit(axis: Axis) -> str:
    """The unit of an axis, which stands in parentheses at the end of its label."""
    _, opened, rest = axis.label.rpartition("(")
    return f" {rest[:-1]}" if opened and rest.endswith(")") else ""


def _figure(value: float) -> str:
    """A number with about four digits that count."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _tinted(colour: str, share: float = 0.65) -> str:
    """The colour on its way from white."""
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(255 + share * (part - 255)):02x}" for part in parts)
