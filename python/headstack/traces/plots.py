"""The picture of a trace's analysis: addresses over time, rates, sizes, re-use and response times."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headstack._native import format_bytes, format_duration_ns
from headstack.report.draw import DASHES
from headstack.report.figures import Lines
from headstack.report.looks import COLOURS as NAMES
from headstack.report.looks import with_looks

# This import prints one line if matplotlib is missing.
from headstack.report.plots import COLOURS, FAINT, INK, STYLE
from headstack.traces.analysed import cache_size
from headstack.traces.analysis_report import (
    BYTES,
    DURATIONS,
    PERCENTS,
    SIZES_MAX,
    SPANS,
    Kind,
    band_of,
    caption,
    depth_classes,
    figures,
    is_exact,
    kinds,
    map_of,
    map_title,
    size_classes,
    summary,
    unit,
)
from headstack.traces.analysis_report import KINDS as MAPPED
from headstack.traces.analysis_time import over_time

import matplotlib as mpl  # isort: skip
from matplotlib.colors import LinearSegmentedColormap, LogNorm  # isort: skip
from matplotlib.figure import Figure  # isort: skip
from matplotlib.layout_engine import ConstrainedLayoutEngine  # isort: skip
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter  # isort: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headstack.traces.analysed import Analysed
    from headstack.traces.report_types import TraceReport


READ, WRITE, OTHER = COLOURS[0], COLOURS[1], "#bbbbbb"
KINDS = (READ, WRITE, OTHER)
"""Colours of the kinds that ``kinds`` distinguishes."""


def overview(analysis: Analysed) -> Figure:
    """Draws addresses over time, rate, sizes, gaps, miss ratios and mix; queue depth and response times if recorded."""
    report = analysis.report
    maps = [kind for kind in MAPPED if report["heat"] is not None and report["heat"][kind]]
    # Reads have the same colour in all panels.
    looked = with_looks(list(over_time(report, unit(report["duration_ns"], SPANS))))
    times = {lines.name: lines for lines in looked if isinstance(lines, Lines)}
    rows: list[Any] = [
        maps if len(maps) == 2 else 2 * (maps or ["reads"]),
        ["rate", "rate"],
        ["sizes", "gaps"],
        ["reuse", "mix"],
    ]
    heights = [3.2, 2.1, 2.4, 2.4]
    if report["depth"] is not None:
        rows.append(["depth", "response"])
        heights.append(2.4)
    # Draws as many as fit, in the style of the page.
    named = list(times)
    for pair in (named[at : at + 2] for at in range(0, len(named), 2)):
        rows.append(pair if len(pair) == 2 else 2 * pair)
        heights.append(2.4)
    with mpl.rc_context(STYLE | {"font.size": 8.5, "axes.titlesize": 9.5, "axes.titleweight": "bold"}):
        figure = Figure(figsize=(10.4, 1.1 + sum(heights)), layout=ConstrainedLayoutEngine(hspace=0.04, wspace=0.03))
        axes = figure.subplot_mosaic(rows, height_ratios=heights)
        for name, panel in axes.items():
            if name in times:
                _draw_lines(panel, times[name])
            else:
                PANELS[name](panel, report)
            panel.set_title(panel.get_title(loc="center"), loc="left")
            panel.set_title("", loc="center")
        figure.suptitle(f"{analysis.name}\n\n", x=0.012, ha="left", weight="bold", size=13)
        figure.text(0.012, 1 - 0.44 / figure.get_figheight(), summary(report), color=FAINT, size=9, va="center")
        figure.supxlabel(caption(analysis), x=0.012, ha="left", fontsize=7.5, color=FAINT)
    return figure


def _draw_map(axes: Axes, report: TraceReport, kind: Kind, colour: str) -> None:
    """Draws requests by time and address; darker means more."""
    heat, end_bytes = report["heat"], report["highest_end_bytes"]
    if heat is None or end_bytes is None or not heat[kind]:
        _draw_message(axes, "Addresses over time", "no requests with a time and an address")
        return
    cells, cell_ns, cell_bytes = map_of(heat, kind)
    columns, rows = len(cells[0]), len(cells)
    span_ns, (time_ns, time_unit) = columns * cell_ns, unit(report["duration_ns"], SPANS)
    bytes_end, (place_bytes, place_unit) = rows * cell_bytes, unit(end_bytes, BYTES)
    most = max(map(max, cells))
    # The colour map starts from a tint, so that a single request is visible.
    shades = LinearSegmentedColormap.from_list(kind, [tinted(colour, 0.45), colour, tinted(colour, 0.55, "#000000")])
    image = axes.imshow(
        [[count or math.nan for count in row] for row in cells],
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        extent=(0, span_ns / time_ns, 0, bytes_end / place_bytes),
        norm=LogNorm(1, max(2, most)),
        cmap=shades,
    )
    axes.set_xlim(0, (report["duration_ns"] or span_ns) / time_ns)
    axes.set_title(f"Addresses over time: {map_title(report, kind)}")
    axes.set_xlabel(f"Time ({time_unit})")
    several = ", all devices in one map" * (len(report["devices"]) > 1)
    axes.set_ylabel(f"Address ({place_unit}){several}")
    bar = axes.figure.colorbar(image, ax=axes, pad=0.01, aspect=30)
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if most < 100 else (1,)))
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.set_label(f"requests in {format_duration_ns(cell_ns)} × {format_bytes(cell_bytes)}", fontsize=7.5)
    bar.outline.set_visible(False)


def _draw_rate(axes: Axes, report: TraceReport) -> None:
    """Draws requests per second, with writes stacked on reads."""
    rate = report["rate"]
    bins, width_ns = rate["bins"], rate["bin_ns"]
    # The last bin is shorter, so it is left out unless it is the only one.
    complete = bins[: report["duration_ns"] // width_ns] or bins
    if not complete:
        _draw_message(axes, "Rate", "no requests")
        return
    time_ns, time_unit = unit(report["duration_ns"], SPANS)
    edges = [index * width_ns / time_ns for index in range(len(complete) + 1)]
    base = [0.0] * len(complete)
    for colour, (name, count) in zip(KINDS, kinds(report), strict=True):
        top = [low + count(entry) * 1e9 / width_ns for low, entry in zip(base, complete, strict=True)]
        if top != base:
            axes.stairs(top, edges, baseline=base, fill=True, color=colour, lw=0, label=name)
        base = top
    axes.set_title("Rate")
    axes.set_xlabel(f"Time ({time_unit})")
    axes.set_ylabel(f"IOPS in bins of {format_duration_ns(width_ns)}")
    axes.set_xlim(0, edges[-1] if edges[-1] > 0 else 1)
    axes.set_ylim(0, 1.05 * max(base) or 1)
    if report["requests_per_s"] is not None:
        mean = report["requests_per_s"]
        axes.axhline(mean, color=INK, lw=0.9, ls="--", label=f"mean {figures(mean)}")
    _thousands(axes)
    _legend(axes)


def _draw_sizes(axes: Axes, report: TraceReport) -> None:
    """Draws the share of each size, or of ranges if there are many sizes."""
    sizes = report["sizes"]["sizes"]
    if not sizes:
        _draw_message(axes, "Sizes", "no requests with a size")
        return
    classes = size_classes(report)
    total = sum(entry["requests"] for entry in sizes)
    base = [0.0] * len(classes)
    for colour, (name, count) in zip(KINDS, kinds(report), strict=True):
        top = [low + 100 * sum(map(count, of)) / total for low, of in zip(base, classes.values(), strict=True)]
        if top != base:
            heights = [high - low for high, low in zip(top, base, strict=True)]
            axes.bar(range(len(classes)), heights, bottom=base, color=colour, width=0.82, label=name)
        base = top
    step = -(-len(classes) // SIZES_MAX)
    names = [format_bytes(length) for length in list(classes)[::step]]
    axes.set_xticks(range(0, len(classes), step), names, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_title(f"Sizes: mean {format_bytes(round(report['sizes']['mean_bytes'] or 0))}")
    axes.set_xlabel("Size" if is_exact(report) else "Size, from this value up to twice as much")
    axes.set_ylabel("% of the requests")
    axes.grid(axis="y", zorder=0)
    axes.set_axisbelow(True)
    _legend(axes)


def _draw_gaps(axes: Axes, report: TraceReport) -> None:
    """Draws times between arrivals."""
    arrivals = report["arrivals"]
    bins, gaps, variation = arrivals["gap_histogram_ns"], arrivals["gaps_ns"], arrivals["gap_variation"]
    if not bins or gaps is None or variation is None:
        _draw_message(axes, "Time between arrivals", "not recorded: below the clock's resolution, or a single request")
        return
    total = sum(entry["count"] for entry in bins)
    least = min((entry["from"] for entry in bins if entry["from"]), default=1)
    for entry in bins:
        start = entry["from"] or least / 4
        axes.bar(start, 100 * entry["count"] / total, width=start * 0.94, align="edge", color=COLOURS[2])
        if not entry["from"]:
            axes.annotate("0", (start * 1.5, 100 * entry["count"] / total), ha="center", va="bottom", fontsize=7.5)
    _log_time(axes)
    axes.axvline(max(gaps["mean"], least / 4), color=INK, lw=0.9, ls="--")
    axes.set_title(
        f"Time between arrivals: mean {format_duration_ns(round(gaps['mean']))}, variation {figures(variation)}"
    )
    axes.set_xlabel("Time from a request to the next; dashed: mean")
    axes.set_ylabel("% of the gaps")
    axes.grid(axis="y")
    axes.set_axisbelow(True)


def _draw_reuse(axes: Axes, report: TraceReport) -> None:
    """Draws miss ratios of LRU caches of every size."""
    reuse = report["reuse"]
    if reuse is None or not reuse["references"]:
        _draw_message(axes, "Miss ratio", "re-use was not counted" if reuse is None else "no references")
        return
    curve, block_bytes = reuse["lru_curve"], reuse["block_bytes"]
    caches = [cache_size(point) for point in curve]
    method = "exact"
    if reuse["sampled_rate"] < 1:
        method = f"from 1 in {1 / reuse['sampled_rate']:,.0f}, 95 % band"
        axes.fill_between(caches, *band_of(curve), color=COLOURS[3], alpha=0.22, lw=0)
    axes.plot(caches, [100 * point["miss_ratio"] for point in curve], color=COLOURS[3], lw=1.8)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=7))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:,.0f}" if block_bytes is None else format_bytes(round(value)))
    )
    axes.set_ylim(0, 102)
    axes.set_title(f"Misses of an LRU cache ({method})")
    unit_name = "requests" if block_bytes is None else f"blocks of {format_bytes(block_bytes)}"
    axes.set_xlabel(f"Cache, of {unit_name}")
    axes.set_ylabel("Miss ratio (%)")
    axes.grid(axis="both")


def _draw_mix(axes: Axes, report: TraceReport) -> None:
    """Draws the shares of sequential and random reads and writes."""
    environment = report["environment"]
    if environment["read_share"] is None:
        _draw_message(axes, "Sequential and random", "not recorded: the trace has no kinds of requests")
        return
    if environment["random_share"] is None:
        _draw_message(axes, "Sequential and random", "not recorded: requests name objects")
        return
    shares = [("reads", environment["read_share"], environment["read_random_share"], READ)]
    shares.append(("writes", 1 - environment["read_share"], environment["write_random_share"], WRITE))
    for place, (_, share, random, colour) in enumerate(shares):
        left = 0.0
        for name, part in (("sequential", 1 - (random or 0)), ("random", random or 0)):
            width = 100 * share * part
            light = name == "random"
            axes.barh(-place, width, left=left, color=tinted(colour, 0.45) if light else colour, height=0.62)
            if width >= 18 * max(share for _, share, *_ in shares):
                ink = INK if light else "white"
                text = f"{name}\n{width:.1f} %"
                axes.text(left + width / 2, -place, text, ha="center", va="center", fontsize=8, color=ink)
            left += width
        if not share:
            axes.text(1, -place, "none", va="center", color=FAINT)
    axes.set_yticks([0, -1], [name for name, *_ in shares])
    axes.set_ylim(-1.55, 0.55)
    axes.set_xlim(0, 105 * max(share for _, share, *_ in shares))
    axes.set_title(f"Sequential (dark) and random (light): {100 * (1 - environment['random_share']):.1f} % sequential")
    axes.set_xlabel("% of the reads and writes")
    axes.tick_params(axis="y", length=0)


def _draw_depth(axes: Axes, report: TraceReport) -> None:
    """Draws the share of time by queue depth."""
    depth = report["depth"]
    if depth is None:
        _draw_message(axes, "Requests in flight", "not recorded")
        return
    names, heights = zip(*depth_classes(depth), strict=True)
    axes.bar(range(len(names)), heights, color=COLOURS[4], width=0.82)
    axes.set_xticks(range(len(names)), names)
    axes.set_title(f"Requests in flight: mean {figures(depth['mean'])}, maximum {depth['max']:,}")
    axes.set_xlabel("Requests in flight")
    axes.set_ylabel("% of the time")
    axes.grid(axis="y")
    axes.set_axisbelow(True)


def _draw_response(axes: Axes, report: TraceReport) -> None:
    """Draws percentiles of response times by operation."""
    colours = {"read": READ, "write": WRITE}
    for name, entry in report["response"]["by_operation_ns"].items():
        label = f"{name}, mean {format_duration_ns(round(entry['mean']))}"
        times = [max(1, entry[key]) for key in PERCENTS]
        axes.plot(range(len(PERCENTS)), times, "-o", color=colours.get(name, FAINT), lw=1.8, ms=4.5, mew=0, label=label)
    axes.set_xticks(range(len(PERCENTS)), ["p50", "p90", "p95", "p99", "p99.9", "max"])
    _log_time(axes, axes.yaxis)
    axes.set_title("Response time")
    axes.set_xlabel("Percentile")
    axes.grid(axis="y")
    axes.legend(frameon=False, fontsize=8, loc="upper left")


def _draw_lines(axes: Axes, data: Lines) -> None:
    """Draws a figure of the page."""
    for series in data.series:
        y = [math.nan if value is None else value for value in series.y]
        colour = COLOURS[NAMES.index(series.colour or NAMES[0])]
        x = [math.nan if value is None else value for value in series.x]
        axes.plot(x, y, color=colour, ls=DASHES[series.dash or 0], lw=1.3, label=series.name)
    axes.set_title(data.title)
    axes.set_xlabel(data.x.label)
    axes.set_ylabel(data.y.label)
    if data.y.log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    if len(data.series) > 1:
        axes.legend(framealpha=0.75, edgecolor="none", fontsize=7.5, loc="best")


PANELS: dict[str, Callable[[Axes, TraceReport], None]] = {
    "reads": lambda axes, report: _draw_map(axes, report, "reads", READ),
    "writes": lambda axes, report: _draw_map(axes, report, "writes", WRITE),
    "rate": _draw_rate,
    "sizes": _draw_sizes,
    "gaps": _draw_gaps,
    "reuse": _draw_reuse,
    "mix": _draw_mix,
    "depth": _draw_depth,
    "response": _draw_response,
}


def tinted(colour: str, share: float, towards: str = "#ffffff") -> str:
    """Blends the colour with another."""
    mixed = (
        round((1 - share) * int(colour[at : at + 2], 16) + share * int(towards[at : at + 2], 16)) for at in (1, 3, 5)
    )
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _draw_message(axes: Axes, title: str, why: str) -> None:
    """Draws a message in a panel without data."""
    axes.set_title(title)
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color=FAINT)
    axes.set_xticks([])
    axes.set_yticks([])


def _log_time(axes: Axes, axis: Any = None) -> None:
    """Formats a logarithmic axis of ns, in decades."""
    axis = axes.xaxis if axis is None else axis
    (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")

    def shown(value: float, _: int) -> str:
        factor, name = next((entry for entry in DURATIONS if value >= 0.999 * entry[0]), DURATIONS[-1])
        return f"{value / factor:g}{name}"

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=9))
    axis.set_major_formatter(FuncFormatter(shown))
    axis.set_minor_formatter(NullFormatter())


def _thousands(axes: Axes) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _legend(axes: Axes) -> None:
    axes.legend(
        frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=4, borderpad=0, handlelength=1.2
    )
