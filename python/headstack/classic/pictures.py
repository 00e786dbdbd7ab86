"""Pictures of the classic tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from headstack._native import version

# Says in one line what is missing where matplotlib is.
from headstack.plots import COLOURS, FAINT, STYLE, save

import matplotlib as mpl  # isort: skip
from matplotlib.figure import Figure  # isort: skip
from matplotlib.ticker import FuncFormatter, MaxNLocator  # isort: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headstack.classic.zones import Zones

T = TypeVar("T")

UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
DOTS_MAX = 20_000
"""More dots than this on a panel are thinned out evenly."""


def drawn(figure: Figure, path: str | os.PathLike[str] | None) -> Figure:
    """The figure, written where a path is given."""
    if path is not None:
        save(figure, path)
    return figure


def zones(test: Zones) -> Figure:
    """Transfer rates as lines from the outer to the inner edge, access times as dots with an axis of their own."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 5.0 + 0.2 * len(test.profiles)), layout="constrained")
        axes = figure.add_subplot()
        times = axes.twinx()
        axes.set_zorder(times.get_zorder() + 1)
        axes.patch.set_visible(False)
        first = min(profile.start_bytes for profile in test.profiles)
        end = max(profile.start_bytes + profile.length_bytes for profile in test.profiles)
        lengths = [profile.length_bytes for profile in test.profiles]
        # Beside a much larger one, a small system is compared from edge to edge rather than byte by byte.
        by_share = max(lengths) > 1.5 * min(lengths)
        scale, unit = (end / 100, "% of each system") if by_share else _unit(end)
        for profile, colour in zip(test.profiles, _cycled(len(test.profiles)), strict=True):
            rates = [rate for _, rate in profile.rates]
            label = f"{profile.system} ({profile.mode})"
            if rates:
                label += f": {max(rates):,.1f} to {min(rates):,.1f} MB/s"
            part = profile.length_bytes / 100 if by_share else scale
            start = profile.start_bytes if by_share else 0
            dots = _thinned(profile.accesses)
            if dots:
                mean_ms = sum(ms for _, ms in profile.accesses) / len(profile.accesses)
                label += f", access {mean_ms:.3g} ms"
                places = [(at - start) / part for at, _ in dots]
                times.plot(places, [ms for _, ms in dots], ".", color=colour, ms=3, alpha=0.45, mew=0)
            line = "-" if profile.mode == "measured" else "--"
            axes.plot([(at - start) / part for at, _ in profile.rates], rates, line, color=colour, lw=1.8, label=label)
        _from_zero(axes, max((rate for p in test.profiles for _, rate in p.rates), default=1.0), "Transfer rate (MB/s)")
        axes.set_xlabel(f"Position ({unit})")
        axes.set_xlim(*((0, 100) if by_share else (first / scale, end / scale)))
        axes.grid(axis="both")
        accesses = sorted(ms for profile in test.profiles for _, ms in profile.accesses)
        if accesses:
            # A few retries must not press all others onto the axis.
            _from_zero(times, 1.25 * accesses[int(0.995 * (len(accesses) - 1))], "Access time (ms), dots")
            times.spines["right"].set_visible(True)
        else:
            times.set_axis_off()
        kind = test.profiles[0].kind
        _head(figure, f"Transfer rate and access time over position: {kind}s")
        _foot(figure, test.results[0]["seed"])
    return figure


def _cycled(count: int) -> list[str]:
    return [COLOURS[number % len(COLOURS)] for number in range(count)]


def _thinned(points: list[T]) -> list[T]:
    return points[:: max(1, -(-len(points) // DOTS_MAX))]


def _unit(largest_bytes: float) -> tuple[float, str]:
    return next(unit for unit in UNITS if largest_bytes >= 2 * unit[0] or unit[0] == 1)


def _from_zero(axes: Axes, highest: float, label: str) -> None:
    """A linear axis that begins at nothing, so that lengths can be compared."""
    axes.set_ylim(0, 1.08 * highest or 1)
    axes.yaxis.set_major_locator(MaxNLocator(8))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.set_ylabel(label)


def _head(figure: Figure, title: str) -> None:
    """The title above what the lines are, at the upper left."""
    figure.legend(
        loc="outside upper left",
        title=title,
        title_fontproperties={"weight": "bold", "size": 12},
        alignment="left",
        frameon=False,
        fontsize=9,
        handlelength=2.2,
    )


def _foot(figure: Figure, seed: int) -> None:
    figure.supxlabel(f"headstack {version()}; seed {seed}", x=0.012, ha="left", fontsize=7.5, color=FAINT)
