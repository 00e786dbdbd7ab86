"""The picture of a conditioning: rates over the module, the device that limited it, and block times by device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

# This import reports a missing matplotlib in one line.
from headstack.report.plots import COLOURS, FAINT, INK, STYLE

import matplotlib as mpl  # isort: skip
from matplotlib.colors import LinearSegmentedColormap, LogNorm  # isort: skip
from matplotlib.figure import Figure  # isort: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headstack.measurement.tests.conditioning.logged import ConditioningData
    from headstack.measurement.tests.conditioning.report import Pass

COLOUR = {"read": COLOURS[0], "write": COLOURS[1]}
DARK = {COLOURS[0]: "#1d3a5c", COLOURS[1]: "#7d1f2c"}
"""Darkest shade of each colour."""
PATH_MAX = 24
"""Maximum length of a path in characters; a longer path loses its start, because paths differ at the end."""
UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def overview(data: ConditioningData) -> Figure:
    """Draws rates over the position in the module, and below them, for each pass, the device that limited the rate at
    each position, and the block times."""
    passes, count = data.passes, len(data.module["targets"])
    names = [str(number) for number in range(len(passes))]
    rows: list[Any] = [["rate"] * max(len(names), 1)]
    heights = [3.3]
    if names:
        rows += [[f"held{name}" for name in names], [f"classes{name}" for name in names]]
        heights += 2 * [max(1.5, 0.75 + 0.2 * count)]
    with mpl.rc_context(STYLE | {"font.size": 8.5, "axes.titlesize": 9.5, "axes.titleweight": "bold"}):
        figure = Figure(figsize=(10.4, 1.2 + sum(heights)), layout="constrained")
        axes = figure.subplot_mosaic(rows, height_ratios=heights)
        _draw_rates(axes["rate"], data)
        for name, pass_ in zip(names, passes, strict=True):
            first = name == "0"
            _draw_held(axes[f"held{name}"], pass_, first)
            _draw_classes(axes[f"classes{name}"], data, pass_, first)
        figure.suptitle(f"{_title(data)}\n\n{chr(10) * (len(passes) - 1)}", x=0.012, ha="left", weight="bold", size=13)
        figure.text(0.012, 1 - 0.36 / figure.get_figheight(), _summary(data), color=FAINT, size=8.5, va="top")
        figure.supxlabel(_caption(data), x=0.012, ha="left", fontsize=7.5, color=FAINT)
    return figure


def _title(data: ConditioningData) -> str:
    targets = data.module["targets"]
    return f"Conditioning of a module of {len(targets)} device{'s' * (len(targets) > 1)}"


def _summary(data: ConditioningData) -> str:
    limit = data.require_mbit_per_s
    parts = []
    for pass_ in data.passes:
        holder = pass_.devices[pass_.lowest.holder]
        words = f"{pass_.kind}: lowest {pass_.lowest.mbit_per_s:,.0f} Mb/s, limited by device {holder.name}"
        if limit is not None:
            below = pass_.below(limit)
            words += (
                f", below {limit:,.0f} Mb/s in {len(below)} of {len(pass_.judged)} intervals"
                if below
                else ", requirement met"
            )
        parts.append(words)
    return "\n".join(parts) or "nothing was measured"


def _caption(data: ConditioningData) -> str:
    module = data.module
    interval_s = module["interval_ns"] / 1e9
    text = (
        f"Measured by headstack {module['headstack']}, started {module['began']}; "
        f"blocks of {module['block_bytes'] >> 10} KiB, {module['ahead']} ahead; intervals of {interval_s:g} s"
    )
    if data.sessions > 1:
        text += f"; {data.sessions} sessions"
    return text


def _unit(module_bytes: int) -> tuple[float, str]:
    return next(((size, name) for size, name in UNITS if module_bytes >= size), (1.0, "B"))


def _edges(pass_: Pass, unit: float) -> list[float]:
    ends = [interval.position_bytes + interval.bytes for interval in pass_.judged]
    return [pass_.judged[0].position_bytes / unit, *(end / unit for end in ends)]


def _draw_rates(axes: Axes, data: ConditioningData) -> None:
    """Draws the rate of each interval as a step from its first to its last position."""
    unit, name = _unit(data.module["module_bytes"])
    highest = data.require_mbit_per_s or 0.0
    for pass_ in data.passes:
        rates, edges = [interval.mbit_per_s for interval in pass_.judged], _edges(pass_, unit)
        highest = max(highest, *rates)
        colour, lowest = COLOUR[pass_.kind], pass_.lowest
        label = f"{pass_.kind}: mean {pass_.mean_mbit_per_s:,.0f} Mb/s"
        axes.stairs(rates, edges, baseline=None, color=colour, lw=1.5, label=label)
        middle = (lowest.position_bytes + lowest.bytes / 2) / unit
        axes.plot(middle, lowest.mbit_per_s, "o", ms=9, mfc="none", mec=colour, mew=1.4, clip_on=False, zorder=4)
    if data.require_mbit_per_s is not None:
        label = f"required: {data.require_mbit_per_s:,.0f} Mb/s"
        axes.axhline(data.require_mbit_per_s, color=INK, lw=1.1, ls=(0, (5, 3)), label=label)
    axes.set_xlim(0, data.module["module_bytes"] / unit)
    axes.set_ylim(0, 1.08 * highest or 1)
    axes.set_title("Rate over the module (ring: lowest)", loc="left")
    axes.set_xlabel(f"Position in the module ({name})")
    axes.set_ylabel("Rate (Mb/s)")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(axis="both", zorder=0)
    if data.passes:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 0.985), ncols=3, frameon=False, fontsize=8.5)


def _shades(colour: str) -> LinearSegmentedColormap:
    """Returns a colour map from a light tint to the dark shade of a colour."""
    return LinearSegmentedColormap.from_list(colour, ["#f4f4f4", colour, DARK[colour]])


def _name_devices(axes: Axes, pass_: Pass, shown: bool) -> None:
    axes.set_yticks(range(len(pass_.devices)))
    axes.set_yticklabels([_label(device.name) for device in pass_.devices] if shown else [])
    axes.set_ylim(len(pass_.devices) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "bottom"]].set_visible(False)


def _label(name: str) -> str:
    """Returns the name of a device; shortens a long name to its end, where names differ."""
    number, _, path = name.partition(" ")
    return f"{number} {path}" if len(path) <= PATH_MAX else f"{number} …{path[1 - PATH_MAX :]}"


def _draw_held(axes: Axes, pass_: Pass, first: bool) -> None:
    """Draws the share of time in which each device limited the stream, over the position in the module."""
    unit, name = _unit(pass_.module_bytes)
    stretches = [interval for interval in pass_.judged if interval.bytes]
    edges = [stretches[0].position_bytes / unit if stretches else 0.0]
    edges += [(interval.position_bytes + interval.bytes) / unit for interval in stretches]
    if stretches:
        shares = [[interval.held_share(device.number) for interval in stretches] for device in pass_.devices]
        rows = [number - 0.5 for number in range(len(pass_.devices) + 1)]
        image = axes.pcolormesh(edges, rows, shares, cmap=_shades(COLOUR[pass_.kind]), vmin=0, vmax=1, rasterized=True)
        bar = axes.figure.colorbar(image, ax=axes, pad=0.015, aspect=12, ticks=[0, 0.5, 1])
        bar.ax.set_yticklabels(["0", "50 %", "100 %"])
        bar.outline.set_visible(False)
    axes.set_xlim(0, pass_.module_bytes / unit)
    axes.set_title(f"{pass_.kind}: share of time in which a device limited the stream", loc="left")
    axes.set_xlabel(f"Position in the module ({name})")
    _name_devices(axes, pass_, first)


def _draw_classes(axes: Axes, data: ConditioningData, pass_: Pass, first: bool) -> None:
    """Draws the distribution of block times, with a row for each device."""
    counts = [device.classes for device in pass_.devices]
    most = max(map(max, counts))
    cells: list[list[Any]] = [[count or math.nan for count in row] for row in counts]
    if most:
        axes.imshow(cells, aspect="auto", cmap=_shades(COLOUR[pass_.kind]), norm=LogNorm(1, 30 * max(most, 2)))
    for row, line in enumerate(counts):
        for column, count in enumerate(line):
            if count:
                dark = math.log(max(count, 1)) > 0.62 * math.log(30 * max(most, 2))
                axes.text(column, row, short(count), ha="center", va="center", size=7, color="white" if dark else INK)
    limits = [f"{limit / 1e6:g}" for limit in data.module["class_limits_ns"]]
    axes.set_xticks([index + 0.5 for index in range(len(limits))], limits)
    axes.set_xlim(-0.5, len(limits) + 0.5)
    axes.set_title(f"{pass_.kind}: blocks by block time", loc="left")
    axes.set_xlabel("Block time (ms)")
    _name_devices(axes, pass_, first)


def short(count: int) -> str:
    """Formats a count with at most four characters."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            value = count / size
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return str(count)
