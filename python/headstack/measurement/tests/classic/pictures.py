"""Pictures of the classic tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from headstack._native import format_bytes, version

# This import reports a missing matplotlib in one line.
from headstack.report.plots import COLOURS, FAINT, STYLE, save

import matplotlib as mpl  # isort: skip
from matplotlib.figure import Figure  # isort: skip
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator  # isort: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

from headstack.measurement.tests.classic.figures import LatencyStatistics, Lun, Pairs, Profile, Sample, Score

T = TypeVar("T")

UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
NS_MS = 1e-6
"""Minimum of a logarithmic axis: 1 ns, in ms."""
DOTS_MAX = 20_000
"""Maximum number of dots per panel; more are thinned evenly."""


def drawn(figure: Figure, path: str | os.PathLike[str] | None) -> Figure:
    """Returns the figure, and writes it if a path is given."""
    if path is not None:
        save(figure, path)
    return figure


def zones(profiles: Sequence[Profile], by_share: bool, seed: int) -> Figure:
    """Draws transfer rates as lines from the outer to the inner edge, and access times as dots with a separate axis."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 5.0 + 0.2 * len(profiles)), layout="constrained")
        axes = figure.add_subplot()
        times = axes.twinx()
        axes.set_zorder(times.get_zorder() + 1)
        axes.patch.set_visible(False)
        first = min(profile.start_bytes for profile in profiles)
        end = max(profile.start_bytes + profile.length_bytes for profile in profiles)
        scale, unit = (end / 100, "% of each system") if by_share else _unit(end)
        for profile, colour in zip(profiles, _cycled(len(profiles)), strict=True):
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
        _from_zero(axes, max((rate for p in profiles for _, rate in p.rates), default=1.0), "Transfer rate (MB/s)")
        axes.set_xlabel(f"Position ({unit})")
        axes.set_xlim(*((0, 100) if by_share else (first / scale, end / scale)))
        axes.grid(axis="both")
        accesses = sorted(ms for profile in profiles for _, ms in profile.accesses)
        if accesses:
            # A few retries must not compress all other dots onto the axis.
            _from_zero(times, 1.25 * accesses[int(0.995 * (len(accesses) - 1))], "Access time (ms), dots")
            times.spines["right"].set_visible(True)
        else:
            times.set_axis_off()
        kind = profiles[0].kind
        _head(figure, f"Transfer rate and access time over position: {kind}s")
        _foot(figure, seed)
    return figure


def latency(
    target: str, kind: str, size_bytes: int, samples: Sequence[Sample], numbers: LatencyStatistics, seed: int
) -> Figure:
    """Draws each request over time, and next to it the distribution of latency, on a shared axis."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 4.8), layout="constrained")
        axes, side = figure.subplots(1, 2, sharey=True, width_ratios=(4, 1))
        good = [sample for sample in samples if not sample.failed]
        label = f"{target}: {numbers['requests']:,} {kind}s of {format_bytes(size_bytes)}"
        dots = _thinned(good)
        size = 5 if len(dots) < 200 else 3 if len(dots) < 2_000 else 1.5
        dot = {"color": COLOURS[0], "ms": size, "mew": 0, "alpha": 0.9 if len(dots) < 200 else 0.5}
        axes.plot([sample.at_s for sample in dots], [max(sample.ms, NS_MS) for sample in dots], "o", **dot)
        axes.plot([], [], "o", color=COLOURS[0], ms=5, mew=0, label=label)
        axes.set_xlabel("Time (s)")
        axes.set_ylabel("Response time (ms)")
        axes.set_yscale("log")
        if good:
            times = [max(sample.ms, NS_MS) for sample in good]
            _log_ticks(axes.yaxis, 0.8 * min(times), 1.25 * max(times))
            low, high = axes.get_ylim()
            edges = [low * (high / low) ** (step / 48) for step in range(49)]
            side.hist(times, bins=edges, orientation="horizontal", color=COLOURS[0], alpha=0.75)
        for name, value, colour in (("p50", numbers["p50_ms"], COLOURS[2]), ("p99", numbers["p99_ms"], COLOURS[1])):
            if value is not None:
                for panel in (axes, side):
                    panel.axhline(value, color=colour, lw=1.1, ls="--", zorder=1)
                axes.plot([], [], "--", color=colour, label=f"{name} {value:,.4g} ms")
        side.set_xlabel("Requests")
        side.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.grid(axis="both")
        side.grid(axis="both")
        _head(figure, "Latency of single requests", columns=3)
        _foot(figure, seed)
    return figure


def fsync(target: str, pairs_by_size: Sequence[Pairs], limit_ms: float, is_kept: bool, seed: int) -> Figure:
    """Draws the share of pairs that took longer than each time, because a log waits for the tail."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 5.0 + 0.2 * len(pairs_by_size)), layout="constrained")
        axes = figure.add_subplot()
        bounds = [limit_ms]
        for pairs, colour in zip(pairs_by_size, _cycled(len(pairs_by_size)), strict=True):
            ordered = sorted(max(ns / 1e6, NS_MS) for ns in pairs.response_ns)
            if not ordered:
                continue
            label = f"{format_bytes(pairs.size_bytes)}: p99 {pairs.percentile_ms(99):,.4g} ms"
            shares = [100 * (len(ordered) - place) / len(ordered) for place in range(len(ordered))]
            axes.step(ordered, shares, color=colour, lw=1.8, where="pre", label=label)
            bounds += [ordered[0], ordered[-1]]
        kept = "kept" if is_kept else "not kept"
        axes.axvline(limit_ms, color=FAINT, lw=1.2, ls="--", label=f"limit {limit_ms:g} ms: {kept}")
        axes.axhline(1, color=FAINT, lw=0.8, ls=":")
        axes.annotate("99 %", (1, 1), xycoords=("axes fraction", "data"), ha="right", va="bottom", color=FAINT, size=8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        _log_ticks(axes.xaxis, 0.8 * min(bounds), 1.25 * max(bounds))
        most = max((len(pairs.response_ns) for pairs in pairs_by_size), default=1)
        axes.set_ylim(min(0.5, 50 / max(most, 1)), 130)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("Write and flush (ms)")
        axes.set_ylabel("Pairs that took longer (%)")
        axes.grid(axis="both")
        _head(figure, f"Writes with flushes: {target}")
        _foot(figure, seed)
    return figure


KIND_COLOURS = {"read": COLOURS[0], "write": COLOURS[1], "mix": COLOURS[2]}


def crystal(target: str, used_bytes: int, scores_of_all: Sequence[Score], seed: int) -> Figure:
    """Draws a panel with its own scale for each test; on a common scale, random rates would be invisible."""
    by_test: dict[str, list[Score]] = {}
    for score in scores_of_all:
        by_test.setdefault(score.test.name, []).append(score)
    kinds = list(dict.fromkeys(score.kind for score in scores_of_all))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 1.4 + len(by_test) * (0.35 + 0.32 * len(kinds))), layout="constrained")
        panels = figure.subplots(max(1, len(by_test)), 1, squeeze=False)[:, 0]
        for panel, (name, scores) in zip(panels, by_test.items(), strict=False):
            most = max(score.best_mb_per_s for score in scores) or 1.0
            for place, score in enumerate(scores):
                rate, numbers = score.best_mb_per_s, score.figures()
                panel.barh(place, rate, height=0.72, color=KIND_COLOURS[score.kind])
                text = f" {rate:,.1f} MB/s, {numbers['iops']:,.0f} IOPS, {numbers['latency_us'] or 0:,.0f} us"
                panel.annotate(text, (rate, place), va="center", fontsize=8.5)
            panel.set_xlim(0, 1.75 * most)
            panel.set_ylim(len(kinds) - 0.4, -0.6)
            panel.set_yticks([])
            panel.set_xticks([])
            panel.spines["bottom"].set_visible(False)
            panel.set_ylabel(name.replace(" ", "\n"), rotation=0, ha="right", va="center", weight="bold")
        for kind in kinds:
            panels[0].barh(0, 0, color=KIND_COLOURS[kind], label=kind)
        used = format_bytes(used_bytes)
        _head(figure, f"{target}: best run of each test on {used}, each with a scale of its own", columns=3)
        _foot(figure, seed)
    return figure


def prefill(
    luns: Sequence[Lun],
    order: str,
    mb_per_s: float | None,
    since_start_s: Callable[[int | None], float | None],
    seed: int,
) -> Figure:
    """Draws the rate over the position in each LUN, and below it the rate over the time of the test."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 6.4 + 0.2 * len(luns)), layout="constrained")
        over_position, over_time = figure.subplots(2, 1)
        scale, unit = _unit(max(lun.length_bytes for lun in luns))
        highest = 1.0
        for lun, colour in zip(luns, _cycled(len(luns)), strict=True):
            sections = lun.sections()
            rates = [rate for *_, rate in sections]
            highest = max([highest, *rates])
            mean = "" if lun.mb_per_s is None else f", {lun.mb_per_s:,.1f} MB/s"
            label = f"{lun.name}: {format_bytes(lun.written_bytes)}{mean}"
            places = [(at - lun.start_bytes) / scale for at, *_ in sections]
            over_position.plot(places, rates, color=colour, lw=1.5, label=label)
            ends_s = [since_start_s(end_ns) for _, _, end_ns, _ in sections]
            over_time.plot(ends_s, rates, color=colour, lw=1.5)
        for axes in (over_position, over_time):
            _from_zero(axes, highest, "MB/s")
            axes.grid(axis="both")
        over_position.set_xlabel(f"Position in the LUN ({unit})" if len(luns) > 1 else f"Position ({unit})")
        over_position.set_xlim(left=0)
        over_time.set_xlabel("Time (s)")
        over_time.set_xlim(left=0)
        together = "one after the other" if order == "serial" else "at the same time"
        subject = f"{len(luns)} LUNs {together}" if len(luns) > 1 else luns[0].name
        mean = "" if mb_per_s is None else f", {mb_per_s:,.1f} MB/s in all"
        _head(figure, f"Prefill of {subject}{mean}")
        _foot(figure, seed)
    return figure


def _cycled(count: int) -> list[str]:
    return [COLOURS[number % len(COLOURS)] for number in range(count)]


def _thinned(points: list[T]) -> list[T]:
    return points[:: max(1, -(-len(points) // DOTS_MAX))]


def _unit(largest_bytes: float) -> tuple[float, str]:
    return next(unit for unit in UNITS if largest_bytes >= 2 * unit[0] or unit[0] == 1)


def _from_zero(axes: Axes, highest: float, label: str) -> None:
    """Sets a linear axis that begins at 0, so that lengths can be compared."""
    axes.set_ylim(0, 1.08 * highest or 1)
    axes.yaxis.set_major_locator(MaxNLocator(8))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.set_ylabel(label)


def _log_ticks(axis: Axis, low: float, high: float) -> None:
    """Sets ticks at 1, 2, 5 in each decade between two bounds."""
    steps = [step * 10.0**power for power in range(-7, 7) for step in (1, 2, 5)]
    ticks = [step for step in steps if low <= step <= high]
    if len(ticks) < 2:
        below = max(step for step in steps if step <= low)
        low, ticks = min(low, below), [step for step in steps if below <= step <= 5 * high][:3]
        high = max(high, ticks[1])
    axis.set_view_interval(low, high, ignore=True)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _head(figure: Figure, title: str, columns: int = 1) -> None:
    """Draws the title above the legend, at the upper left."""
    figure.legend(
        loc="outside upper left",
        title=title,
        title_fontproperties={"weight": "bold", "size": 12},
        alignment="left",
        frameon=False,
        fontsize=9,
        handlelength=2.2,
        ncols=columns,
    )


def _foot(figure: Figure, seed: int) -> None:
    figure.supxlabel(f"headstack {version()}; seed {seed}", x=0.012, ha="left", fontsize=7.5, color=FAINT)
