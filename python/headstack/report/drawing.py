"""Shared parts of all matplotlib pictures: titles, notes, axes and colours."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from headstack.report.figures import Axis, Series
from headstack.report.looks import COLOURS as NAMES

# This import prints one line if matplotlib is missing.
from headstack.report.plots import COLOURS, FAINT  # isort: skip

from matplotlib.figure import Figure, SubFigure  # isort: skip
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator  # isort: skip

if TYPE_CHECKING:
    from matplotlib.axis import Axis as Drawn
    from matplotlib.typing import MarkerType

Canvas: TypeAlias = Figure | SubFigure
"""A picture, or the part of one into which a figure is drawn."""
LineStyle: TypeAlias = str | tuple[float, tuple[float, ...]]
"""The style of a line: its name, or an offset and the lengths of dashes and gaps, in points."""


class Look(TypedDict, total=False):
    """Keyword arguments of matplotlib shared by lines, bars and texts of one kind; lengths are in points."""

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
NOTE, TITLE, SAYS = 118, 9.5, 13
"""Characters per line of a note, per inch of a title, and per inch of a figure's headline."""


def colour_of(series: Series) -> str:
    return COLOURS[NAMES.index(series.colour or NAMES[0])]


def known_values(series: Sequence[Series], *keys: str) -> list[float]:
    return [value for each in series for key in keys for value in getattr(each, key) if value is not None]


def series_name(series: Series) -> str:
    """Returns the name of a series in a legend, which marks published figures as such."""
    is_marked = series.published and "published" not in series.name.lower()
    return f"{series.name} (published)" if is_marked else series.name


def dress_axis(drawn: Drawn, axis: Axis, values: list[float]) -> None:
    """Draws an axis with its label and round ticks, and includes 0 if that is near the values."""
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


def head_and_foot(canvas: Canvas, title: str, note: str, has_legend: bool, says: str) -> None:
    """Draws the title on top, the legend and the headline below it, and the note at the foot."""
    bold = {"weight": "bold", "size": 12}
    title = "\n".join(textwrap.wrap(title, int(TITLE * canvas.figure.get_figwidth())))
    if has_legend:
        canvas.legend(
            loc="outside upper left",
            title=title,
            title_fontproperties=bold,
            alignment="left",
            frameon=False,
            fontsize=9,
            ncols=2 if len(canvas.axes[0].get_legend_handles_labels()[1]) > 6 else 1,
            handlelength=2.2,
        )
    else:
        canvas.suptitle(title, x=0.012, ha="left", **bold)
    if says:
        headline = "\n".join(textwrap.wrap(says, int(SAYS * canvas.figure.get_figwidth())))
        canvas.axes[0].set_title(headline, loc="left", fontsize=9)
    if note:
        wrapped = "\n".join(textwrap.wrap(note, NOTE))
        canvas.supxlabel(wrapped, x=0.012, ha="left", fontsize=7.5, color=FAINT)


def legend_rows(series: Sequence[Series]) -> int:
    return len(series) if len(series) <= 6 else -(-len(series) // 2)


def unit_of(axis: Axis) -> str:
    """Returns the unit of an axis, which is in parentheses at the end of its label."""
    _, opened, rest = axis.label.rpartition("(")
    return f" {rest[:-1]}" if opened and rest.endswith(")") else ""


def figure_text(value: float) -> str:
    """Formats a number with about four significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def tint(colour: str, share: float = 0.65) -> str:
    """Blends the colour with white."""
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(255 + share * (part - 255)):02x}" for part in parts)
