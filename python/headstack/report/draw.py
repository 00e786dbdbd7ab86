"""Figures of reports drawn by matplotlib as PNG, SVG or PDF, with the data of the page in the style of ``plots``."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from headstack.report.axes import with_axes
from headstack.report.draw_lines import draw_lines
from headstack.report.drawing import DASHES as DASHES
from headstack.report.drawing import (
    Canvas,
    Look,
    colour_of,
    dress_axis,
    figure_text,
    head_and_foot,
    known_values,
    legend_rows,
    series_name,
    tint,
)
from headstack.report.figures import Axis, Bars, Cell, Grid, Heat, Lines, Series, Table
from headstack.report.figures import Figure as Data
from headstack.report.looks import with_looks
from headstack.report.stills import is_alone

# This import prints one line if matplotlib is missing.
from headstack.report.plots import COLOURS, FAINT, INK, STYLE, save  # isort: skip
from headstack.report.labels import label_points  # isort: skip

import matplotlib as mpl  # isort: skip
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize, TwoSlopeNorm  # isort: skip
from matplotlib.figure import Figure  # isort: skip
from matplotlib.ticker import FuncFormatter, NullFormatter  # isort: skip

LOG_MAP_RATIO = 30
"""A map is logarithmic if its largest value is this many times its smallest."""


def draw(data: Data, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draws a figure and, if a path is given, writes it in the format of its suffix: png, svg or pdf."""
    (data,) = with_looks([with_axes(data)])
    with mpl.rc_context(STYLE):
        match data:
            case Lines() | Bars():
                figure = Figure(figsize=_size(data), layout="constrained")
                labelled = _draw_into(figure, data)
                if labelled:
                    label_points(figure.axes[0], labelled)
            case Grid():
                figure = _draw_grid(data)
            case Heat():
                figure = _draw_heat(data)
            case Table():
                figure = _draw_table(data)
    if path is not None:
        save(figure, path)
    return figure


def draw_stacked(
    figures: Sequence[Lines | Bars], path: str | os.PathLike[str] | None = None, caption: str = ""
) -> Figure:
    """Draws several figures in one picture, the first on top, above a caption; writes it if a path is given."""
    prepared = with_looks([with_axes(figure) for figure in figures])
    shown = [data for data in prepared if isinstance(data, Lines | Bars)]
    sizes = [_size(data) for data in shown]
    with mpl.rc_context(STYLE):
        size = max(width for width, _ in sizes), sum(height for _, height in sizes)
        figure = Figure(figsize=size, layout="constrained")
        parts = figure.subfigures(len(shown), 1, squeeze=False, height_ratios=[height for _, height in sizes])
        labelled = [_draw_into(part, data) for part, data in zip(parts[:, 0], shown, strict=True)]
        if caption:
            figure.supxlabel(caption, x=0.012, ha="left", fontsize=7.5, color=FAINT)
        for part, drawn in zip(parts[:, 0], labelled, strict=True):
            if drawn:
                label_points(part.axes[0], drawn)
    if path is not None:
        save(figure, path)
    return figure


def _size(data: Lines | Bars) -> tuple[float, float]:
    """Returns the width and height of a picture, in inches."""
    rows = 0.2 * legend_rows(data.series)
    if isinstance(data, Lines):
        return 8.4, 5.0 + rows
    return max(8.4, 0.28 * len(data.groups) * _side_by_side(data) + 1.5), 4.8 + rows


def _draw_into(canvas: Canvas, data: Lines | Bars) -> list[tuple[Series, str]]:
    """Draws a figure; returns the series whose points are to be labelled, with their colours."""
    if isinstance(data, Lines):
        return draw_lines(canvas, data)
    _draw_bars(canvas, data)
    return []


# Bars.


def _side_by_side(data: Bars) -> int:
    """Returns the number of bars next to each other in a group."""
    return 1 if data.stacked or is_alone(data) else len(data.series)


def _draw_bars(canvas: Canvas, data: Bars) -> None:
    beside_each_other = _side_by_side(data)
    axes = canvas.add_subplot()
    width = 0.62 if beside_each_other == 1 else 0.82 / beside_each_other
    tops = [0.0] * len(data.groups)
    for number, series in enumerate(data.series):
        colour = colour_of(series)
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
        values = known_values(data.series, "y", "low", "high")
        dress_axis(axes.yaxis, data.y, values)
        axes.set_ylim(bottom=10 ** math.floor(math.log10(0.75 * min(values, default=1.0))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.grid(axis="y", zorder=0)
    head_and_foot(canvas, data.title, data.note, len(data.series) > 1 and not is_alone(data), data.says)


# Grids, maps and tables.


def _draw_grid(data: Grid) -> Figure:
    if not data.rows or not data.columns:
        return _draw_empty(data)
    values = [[math.nan if value is None else value for value in row] for row in data.values]
    present = [value for row in values for value in row if not math.isnan(value)] or [0.0]
    wide = 2.2 + max((len(name) for name in data.rows), default=0) * 0.075 + 0.95 * len(data.columns)
    figure = Figure(figsize=(max(5.0, wide), 1.7 + 0.45 * len(data.rows)), layout="constrained")
    axes = figure.add_subplot()
    norm: Normalize = Normalize(min(present), max(present) or 1.0)
    shades = LinearSegmentedColormap.from_list("more", ["#ffffff", tint(COLOURS[0])])
    if data.signed:
        most = max(map(abs, present)) or 1.0
        norm = TwoSlopeNorm(0, -most, most)
        shades = LinearSegmentedColormap.from_list("both", [tint(COLOURS[1]), "#ffffff", tint(COLOURS[0])])
    axes.imshow(values, aspect="auto", cmap=shades, norm=norm)
    decimals, published_decimals = (
        _decimals(present),
        _decimals([v for row in data.published for v in row if v is not None]),
    )
    for row, cells in enumerate(values):
        for column, value in enumerate(cells):
            published = data.published[row][column] if data.published else None
            text = "" if math.isnan(value) else f"{value:,.{decimals}f}"
            below = "" if published is None else f"\n({published:,.{published_decimals}f})"
            axes.text(column, row, text + below, ha="center", va="center", fontsize=8.5, linespacing=1.1)
    axes.set_xticks(range(len(data.columns)), data.columns)
    axes.set_yticks(range(len(data.rows)), data.rows)
    axes.tick_params(length=0, top=False, bottom=False, labeltop=True, labelbottom=False)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel(data.column_label)
    axes.set_ylabel(data.row_label)
    axes.spines[:].set_visible(False)
    head_and_foot(figure, f"{data.title} ({data.unit})", _published_note(data), False, data.says)
    return figure


def _draw_empty(data: Grid | Table) -> Figure:
    """Draws a figure that has no cells."""
    figure = Figure(figsize=(5.0, 1.7), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.text(0.5, 0.5, "nothing to show", ha="center", va="center", color=FAINT)
    head_and_foot(figure, data.title, data.note, False, data.says)
    return figure


def _decimals(values: Sequence[float]) -> int:
    """Returns the number of decimals that show four digits of the largest value; 0 for whole numbers."""
    if all(value == round(value) for value in values):
        return 0
    return max(0, 3 - math.floor(math.log10(max(map(abs, values)))))


def _published_note(data: Grid) -> str:
    return f"{data.note} In parentheses: as published.".strip() if data.published else data.note


def _draw_heat(data: Heat) -> Figure:
    figure = Figure(figsize=(8.4, 5.0), layout="constrained")
    axes = figure.add_subplot()
    present = [value for row in data.values for value in row if value] or [1.0]
    is_log = min(present) > 0 and max(present) > LOG_MAP_RATIO * min(present)
    low = min(present) if is_log else min(0.0, *present)
    scale = LogNorm if is_log else Normalize
    # Starts from a tint, so that a single request is visible.
    shades = LinearSegmentedColormap.from_list("heat", [tint(COLOURS[0], 0.3), COLOURS[0], "#0c1f33"])
    cells = [[value or math.nan for value in row] for row in data.values]
    edges = [
        _edges(axis, reach, count)
        for axis, reach, count in (
            (data.x, data.x_range, len(data.values[0]) if data.values else 0),
            (data.y, data.y_range, len(data.values)),
        )
    ]
    norm = scale(low, max(present) if max(present) > low else low + 1)
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
    head_and_foot(figure, data.title, data.note, False, data.says)
    return figure


def _edges(axis: Axis, reach: tuple[float, float], count: int) -> list[float]:
    low, high = reach
    if axis.log:
        return [low * (high / low) ** (step / count) for step in range(count + 1)]
    return [low + (high - low) * step / count for step in range(count + 1)]


def _draw_table(data: Table) -> Figure:
    if not data.columns:
        return _draw_empty(data)
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
    head_and_foot(figure, data.title, data.note, False, data.says)
    return figure


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    # Years and seeds are written without a comma.
    if isinstance(value, int) and abs(value) < 10_000:
        return str(value)
    return value if isinstance(value, str) else figure_text(value)
