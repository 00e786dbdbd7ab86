"""The picture of a PTS run: the convergence of each test, the measurement window, and the figures of the steady
state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headstack._native import format_bytes, version
from headstack.measurement.tests.pts.plans import Point
from headstack.measurement.tests.pts.steady import RANGE_MAX

# This import reports a missing matplotlib in one line.
from headstack.report.plots import COLOURS, FAINT, INK, STYLE

import matplotlib as mpl  # isort: skip
from matplotlib.colors import LinearSegmentedColormap, LogNorm  # isort: skip
from matplotlib.figure import Figure  # isort: skip
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter  # isort: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headstack.measurement.tests.pts.outcomes import Outcome, Outcomes

SHADES = LinearSegmentedColormap.from_list("iops", ["#eef3f8", COLOURS[0], "#1d3a5c"])
MORE_COLOURS = (*COLOURS, "#bbbbbb", INK)
"""A colour for each of the eight block sizes."""


def overview(report: Outcomes) -> Figure:
    """Draws a row for each test: convergence, measurement window, figures."""
    outcomes = [outcome for outcome in report.outcomes if outcome.rounds]
    rows = max(len(outcomes), 1)
    with mpl.rc_context(STYLE | {"font.size": 8, "axes.titlesize": 9, "axes.titleweight": "bold"}):
        figure = Figure(figsize=(12.6, 1.3 + 2.9 * rows), layout="constrained")
        panels = figure.subplots(rows, 3, squeeze=False, width_ratios=(1.15, 0.9, 1.15))
        for line, outcome in zip(panels, outcomes, strict=False):
            test = outcome.plan.name.split()[0]
            CONVERGENCE[test](line[0], outcome)
            _draw_window(line[1], outcome)
            FIGURES[test](line[2], outcome)
        if not outcomes:
            for axes, words in zip(panels[0], ("", "nothing was measured", ""), strict=True):
                _draw_message(axes, words)
        figure.suptitle(f"PTS: {report.target}\n\n", x=0.012, ha="left", weight="bold", size=13)
        words = "conforms to the specification" if not report.deviations else "does not conform to the specification: "
        summary = f"{format_bytes(report.capacity_bytes)}; {words}{'; '.join(report.deviations)}"
        figure.text(0.012, 1 - 0.4 / figure.get_figheight(), _cut(summary, 200), color=FAINT, size=8.5, va="top")
        caption = (
            f"Measured by headstack {version()}; measurements of {report.settings.round_ns / 1e9:g} s; "
            f"active range {report.settings.active_range_percent:g} %; purge: {report.settings.purge}"
        )
        figure.supxlabel(caption, x=0.012, ha="left", fontsize=7.5, color=FAINT)
    return figure


def _draw_message(axes: Axes, words: str) -> None:
    """Draws a message in a panel without data."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=FAINT)


def _values(outcome: Outcome, index: int, column: str) -> list[float]:
    """Returns a figure of a point in each round; NaN, which is not drawn, if a round lacks the figure."""
    values = (float(row[index][column] or math.nan) for row in outcome.rounds)
    return [value if math.isfinite(value) else math.nan for value in values]


def _highest(values: list[float]) -> float:
    """Returns the end of an axis from 0 with room for these values."""
    return 1.1 * max((value for value in values if value > 0), default=0.0) or 1.0


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _number(value: float, _: object = None) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _rounds_axis(axes: Axes, label: str) -> None:
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.grid(axis="both", zorder=0)


def _log_axis(axes: Axes, values: list[float]) -> None:
    """Sets a logarithmic axis with labelled ticks, or a linear axis from 0 if the values are close together."""
    positive = [value for value in values if value > 0]
    axes.yaxis.set_major_formatter(FuncFormatter(_number))
    if not positive or max(positive) < 4 * min(positive):
        axes.set_ylim(0, _highest(positive))
        return
    axes.set_yscale("log")
    low, high = min(positive) / 1.3, max(positive) * 1.3
    steps = (1, 2, 5) if high / low < 1000 else (1,)
    ticks = [step * 10.0**power for power in range(-6, 10) for step in steps]
    axes.set_yticks([tick for tick in ticks if low <= tick <= high])
    axes.set_ylim(low, high)
    axes.yaxis.set_major_formatter(FuncFormatter(_number))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _draw_series(axes: Axes, outcome: Outcome, points: list[Point], column: str, names: list[str]) -> None:
    numbers = range(1, len(outcome.rounds) + 1)
    drawn = []
    for point, name, colour in zip(points, names, MORE_COLOURS, strict=False):
        index = outcome.plan.points.index(point)
        values = _values(outcome, index, column)
        width = 2.0 if point == outcome.plan.tracked else 1.1
        axes.plot(numbers, values, "-o", color=colour, lw=width, ms=3, mew=0, label=name, zorder=3)
        drawn += values
    _rounds_axis(axes, "Round")
    _log_axis(axes, drawn)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=7, handlelength=1.4)


def _converging_iops(axes: Axes, outcome: Outcome) -> None:
    points = sorted((p for p in outcome.plan.points if p.read_percent == 0), key=lambda point: point.block_bytes)
    axes.set_title(f"{outcome.plan.name}: random writes of all sizes", loc="left")
    axes.set_ylabel("IOPS")
    _draw_series(axes, outcome, points, "iops", [point.block for point in points])


def _converging_throughput(axes: Axes, outcome: Outcome) -> None:
    points = list(outcome.plan.points)
    axes.set_title(f"{outcome.plan.name}: sequential", loc="left")
    axes.set_ylabel("MB/s")
    _draw_series(axes, outcome, points, "mb_per_s", ["read" if point.read_percent else "write" for point in points])


def _converging_latency(axes: Axes, outcome: Outcome) -> None:
    points = sorted((p for p in outcome.plan.points if p.read_percent == 0), key=lambda point: point.block_bytes)
    axes.set_title(f"{outcome.plan.name}: random writes", loc="left")
    axes.set_ylabel("Average latency (ms)")
    _draw_series(axes, outcome, points, "mean_ms", [point.block for point in points])


def _saturating(axes: Axes, outcome: Outcome) -> None:
    """Draws IOPS of each round."""
    axes.set_title("wsat: random writes of 4 KiB", loc="left")
    axes.set_ylabel("IOPS")
    values = _values(outcome, 0, "iops")
    axes.plot(range(1, len(values) + 1), values, "-", color=COLOURS[0], lw=1.3, zorder=3)
    axes.set_ylim(0, _highest(values))
    axes.yaxis.set_major_formatter(FuncFormatter(_number))
    _rounds_axis(axes, f"Round; {format_bytes(outcome.written_bytes)} written")


def _draw_window(axes: Axes, outcome: Outcome) -> None:
    """Draws the five rounds, the band of 10 % around their average, and their regression line."""
    window, plan = outcome.window, outcome.plan
    if window is None or not window.is_measured:
        axes.set_title("Measurement window", loc="left")
        rounds = f"{5 * plan.group} rounds needed; {len(outcome.rounds)} done"
        return _draw_message(axes, rounds if window is None else "no request completed in it")
    numbers = range(window.first, window.last + 1)
    half, line = RANGE_MAX / 2 * window.mean, [window.slope * number + window.intercept for number in numbers]
    axes.axhspan(window.mean - half, window.mean + half, color="#edf2f7", zorder=0)
    axes.axhline(window.mean, color=FAINT, lw=1, label=f"average {_number(window.mean)}, band ± 10 %")
    axes.plot(
        numbers, line, "--", color=COLOURS[1], lw=1.4, label=f"best line: {100 * window.slope_share:.1f} % (≤ 10 %)"
    )
    label = f"{plan.tracked.block} {plan.tracked.mix}: range {100 * window.range_share:.1f} % (≤ 20 %)"
    axes.plot(numbers, window.values, "o-", color=COLOURS[0], lw=1.4, ms=5, mew=0, label=label, zorder=3)
    reach = max(1.6 * half, *(1.1 * abs(value - window.mean) for value in window.values))
    axes.set_ylim(window.mean - reach, window.mean + 1.9 * reach)
    axes.set_xlim(window.first - 0.4, window.last + 0.4)
    axes.set_ylabel(str(plan.variable)[0].upper() + str(plan.variable)[1:])
    axes.set_title("Steady state" if outcome.steady else "No steady state: the last five", loc="left")
    axes.yaxis.set_major_formatter(FuncFormatter(_number))
    _rounds_axis(axes, "Round" if plan.group == 1 else f"Averages of {plan.group} rounds")
    axes.legend(loc="upper left", frameon=False, fontsize=7)


def _draw_matrix(axes: Axes, outcome: Outcome, column: str, title: str) -> None:
    """Draws figures by size and mix as a heat map; darker means larger."""
    points = outcome.plan.points
    sizes, mixes = sorted({p.block_bytes for p in points}), sorted({p.read_percent for p in points})
    cells = [[_mean(outcome, Point(size, mix, points[0].is_random), column) for mix in mixes] for size in sizes]
    positive = [value for row in cells for value in row if value > 0]
    axes.set_title(title, loc="left")
    axes.set_xticks(range(len(mixes)), [Point(512, mix, True).mix for mix in mixes])
    axes.set_yticks(range(len(sizes)), [Point(size, 0, True).block for size in sizes])
    axes.set_xlabel("Reads/writes (%)")
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    if not positive:
        return _draw_message(axes, "no request completed in it")
    low, high = min(positive), max(positive)
    axes.imshow(cells, aspect="auto", cmap=SHADES, norm=LogNorm(low / 1.2, high * 1.2))
    for row, line in enumerate(cells):
        for place, value in enumerate(line):
            share = math.log(value * 1.2 / low) / math.log(1.44 * high / low) if value > 0 else 0
            colour = "white" if share > 0.3 else INK
            label = _number(value) if value > 0 else "none"
            axes.text(place, row, label, ha="center", va="center", size=7, color=colour)


def _mean(outcome: Outcome, point: Point, column: str) -> float:
    """Returns the average of a figure of a point; NaN, which is not drawn, without a value."""
    mean = outcome.mean(point, column)
    return mean if mean is not None and 0 < mean < math.inf else math.nan


def _iops_figures(axes: Axes, outcome: Outcome) -> None:
    _draw_matrix(axes, outcome, "iops", "IOPS in the window")


def _latency_figures(axes: Axes, outcome: Outcome) -> None:
    _draw_matrix(axes, outcome, "mean_ms", "Average latency in the window (ms)")


def _throughput_figures(axes: Axes, outcome: Outcome) -> None:
    names = ["read" if point.read_percent else "write" for point in outcome.plan.points]
    values = [_mean(outcome, point, "mb_per_s") for point in outcome.plan.points]
    values = [0.0 if math.isnan(value) else value for value in values]
    bars = axes.barh(names, values, color=[COLOURS[0], COLOURS[1]], height=0.55, zorder=3)
    axes.bar_label(bars, [f"{_number(value)} MB/s" for value in values], padding=4, size=8)
    axes.set_xlim(0, 1.2 * _highest(values))
    axes.invert_yaxis()
    axes.set_title("Throughput in the window", loc="left")
    axes.set_xlabel("MB/s")
    axes.xaxis.set_major_formatter(FuncFormatter(_number))
    axes.grid(axis="x", zorder=0)
    axes.tick_params(axis="y", length=0)


def _saturation_figures(axes: Axes, outcome: Outcome) -> None:
    """Draws response times of each round."""
    numbers = range(1, len(outcome.rounds) + 1)
    drawn: list[float] = []
    for column, name, colour in (("mean_ms", "mean", 0), ("p999_ms", "99.9 %", 4), ("max_ms", "largest", 1)):
        values = _values(outcome, 0, column)
        axes.plot(numbers, values, "-", color=COLOURS[colour], lw=1.2, label=name, zorder=3)
        drawn += values
    _rounds_axis(axes, "Round")
    _log_axis(axes, drawn)
    axes.set_ylabel("Response time (ms)")
    axes.set_title("Response times", loc="left")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=7, handlelength=1.4)


Draw = Callable[[Any, Any], None]
CONVERGENCE: dict[str, Draw] = {
    "iops": _converging_iops,
    "throughput": _converging_throughput,
    "latency": _converging_latency,
    "wsat": _saturating,
}
FIGURES: dict[str, Draw] = {
    "iops": _iops_figures,
    "throughput": _throughput_figures,
    "latency": _latency_figures,
    "wsat": _saturation_figures,
}
