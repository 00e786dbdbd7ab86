"""Charts of results with matplotlib: results in, figure out."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from headstack._native import InputError

try:
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator
except ImportError as error:
    raise InputError("plots need matplotlib: pip install 'headstack[plot]'") from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headstack.results import Knee, Results, Row

# Bright scheme of Paul Tol (SRON/EPS/TN/09-002): distinct for the colour-blind, on paper and on screen.
COLOURS = ("#4477aa", "#ee6677", "#228833", "#aa3377", "#ccbb44", "#66ccee")
INK, FAINT = "#222222", "#777777"
DPI = 160

STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#999999",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
}


def saturation(results: Results) -> Figure:
    """Mean response time over throughput, one curve for all runs that differ in load alone.

    Points of a closed loop carry their load; a ring marks the knee. Runs of a saturated open loop are left out: their
    response time is that of the queue at the end, however long the run.
    """
    with mpl.rc_context(STYLE):
        knees = {knee.curve: knee for knee in results.knees()}
        curves = drawn(results)
        figure = Figure(figsize=(8.4, 5.0 + 0.2 * len(curves)), layout="constrained")
        axes = figure.add_subplot()
        axes.set_yscale("log")
        for number, (name, runs) in enumerate(curves.items()):
            _draw_curve(axes, results, runs, knees.get(name), COLOURS[number % len(COLOURS)], name)
        _dress(axes, [results[run] for runs in curves.values() for run in runs])
        if results[0]["depth"] is not None:
            load = "clients" if results.streams_of(0) else "requests outstanding"
            axes.set_xlabel(f"{axes.get_xlabel()}; numbers at points: {load}")
        if knees:
            axes.plot([], [], "o", ms=10, mfc="none", mec=FAINT, mew=1.4, label=KNEE)
        figure.legend(
            loc="outside upper left",
            title=_title(results),
            title_fontproperties={"weight": "bold", "size": 12},
            alignment="left",
            frameon=False,
            fontsize=9,
            handlelength=2.2,
        )
        figure.supxlabel(_caption(results), x=0.012, ha="left", fontsize=7.5, color=FAINT)
        if results[0]["depth"] is not None:
            _label_points(figure, results, curves)
    return figure


def drawn(results: Results) -> dict[str, list[int]]:
    """The curves without their saturated runs, unless they have no others."""
    curves = results.curves()
    unsaturated = {name: [run for run in runs if not results[run]["saturated"]] for name, runs in curves.items()}
    return {name: unsaturated[name] or runs for name, runs in curves.items()}


KNEE = "knee: from here on, 1 % more IO/s costs more than 1 % more response time"


FORMATS = ("png", "svg", "pdf")


def picture_format(path: str | os.PathLike[str]) -> str:
    """The format that the path's suffix names. Raises ``InputError`` for others."""
    suffix = os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
    if suffix not in FORMATS:
        raise InputError(f"{os.fspath(path)}: no picture has this suffix; allowed: {', '.join(FORMATS)}")
    return suffix


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Writes the figure in the format that the path's suffix names. Equal figures give equal PNG files."""
    figure.savefig(path, dpi=DPI, format=picture_format(path))


def _draw_curve(axes: Axes, results: Results, runs: list[int], knee: Knee | None, colour: str, name: str) -> None:
    iops = [results[run]["iops"] for run in runs]
    response_ms = [results[run]["mean_ms"] for run in runs]
    label = name
    if knee is not None:
        at_most = "≤ " if knee.at_first_point else ""
        label += f": knee at {at_most}{knee.iops:,.0f} IO/s, {knee.mean_ms:.3g} ms"
    axes.plot(iops, response_ms, "-o", color=colour, lw=1.8, ms=4.5, mew=0, label=label, zorder=3)
    if knee is not None:
        axes.plot(knee.iops, knee.mean_ms, "o", ms=11, mfc="none", mec=colour, mew=1.4, zorder=4)


LABEL_SIZE = 7.5
# Where a point's label may begin (or end), in points (1/72 inch) from it; best first.
PLACES = ((6, -9, "left"), (-6, 4, "right"), (6, 4, "left"), (-6, -9, "right"))


def _label_points(figure: Figure, results: Results, curves: dict[str, list[int]]) -> None:
    """Writes the load beside each point, where it covers the least of lines and of other labels."""
    figure.draw_without_rendering()  # from here on, places on the paper are known
    axes = figure.axes[0]
    places = [
        axes.transData.transform([(results[run]["iops"], results[run]["mean_ms"]) for run in runs]) * 72 / figure.dpi
        for runs in curves.values()
    ]
    inked = [
        start + (end - start) * step / 20
        for points in places
        for start, end in pairwise([points[0], *points])
        for step in range(21)
    ]
    for number, (runs, points) in enumerate(zip(curves.values(), places, strict=True)):
        for run, point in zip(runs, points, strict=True):
            label = f"{results.load(run):.4g}"
            place, middle = _best_place(label, point, inked)
            inked += 20 * [middle]
            axes.annotate(
                label,
                (results[run]["iops"], results[run]["mean_ms"]),
                xytext=place[:2],
                textcoords="offset points",
                ha=place[2],
                fontsize=LABEL_SIZE,
                color=COLOURS[number % len(COLOURS)],
                zorder=5,
            )


def _best_place(label: str, point: Any, inked: list[Any]) -> tuple[tuple[int, int, str], Any]:
    """The place for a label that covers the least ink, and the middle of the label there."""
    width, height = 0.6 * LABEL_SIZE * len(label), 0.9 * LABEL_SIZE

    def middle(place: tuple[int, int, str]) -> Any:
        right, up, side = place
        x, y = point
        return x + right + (width / 2 if side == "left" else -width / 2), y + up + height / 2

    def covered(place: tuple[int, int, str]) -> int:
        reach = (width / 2 + 2, height / 2 + 2)
        x, y = middle(place)
        return sum(abs(ink[0] - x) < reach[0] and abs(ink[1] - y) < reach[1] for ink in inked)

    best = min(PLACES, key=covered)
    return best, middle(best)


def _dress(axes: Axes, rows: list[Row]) -> None:
    """Axes with units, round ticks and room for the labels."""
    axes.set_xlabel("Throughput (IO/s)")
    axes.set_ylabel("Mean response time (ms)")
    slowest, fastest = (bound(row["iops"] for row in rows) for bound in (min, max))
    # Zero where there is no long way to it: lengths are compared then, not places alone.
    is_near = slowest < 0.4 * fastest or slowest == fastest
    left = 0 if is_near else slowest - 0.15 * (fastest - slowest)
    axes.set_xlim(left, fastest + 0.08 * (fastest - left) or 1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    low = 0.75 * min(row["mean_ms"] for row in rows)
    high = 1.3 * max(row["mean_ms"] for row in rows)
    ticks = [step * 10.0**power for power in range(-3, 6) for step in (1, 2, 5)]
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="both", zorder=0)


def _title(results: Results) -> str:
    """What is shown, and what all curves have in common."""
    common = [results[0][key] for key in ("system", "workload") if len({row[key] for row in results}) == 1]
    return "Response time over throughput" + bool(common) * ": " + ", ".join(common)


def _caption(results: Results) -> str:
    """What the figure needs to be made again."""
    first = results[0]
    seeds = ", ".join(dict.fromkeys(str(row["seed"]) for row in results))
    requests = min(row["requests"] for row in results)
    left_out = len(results) - sum(map(len, drawn(results).values()))
    return (
        f"Simulated by headstack {first['version']}; at least {requests:,} requests a point; "
        f"seed {seeds} ({first['generator']})" + bool(left_out) * f"; {left_out} saturated runs are not shown"
    )
