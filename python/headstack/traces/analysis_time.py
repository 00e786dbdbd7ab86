"""The timeline of a trace's analysis, the phases of requests, and their breakdown by device and process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from headstack._native import format_bytes, format_duration_ns
from headstack.report.figures import Axis, Bars, Figure, Lines, Series, Table
from headstack.results.words import describe_range, time
from headstack.traces.report_times import Slice, TimelineBin, TimelineReport, Times
from headstack.traces.report_types import TraceReport

Pick = Callable[[TimelineBin], float | None]
Sort = Literal["all", "read", "write"]
FigureKey = Literal["touched_bytes", "touched_so_far_bytes", "reused_in_bin", "reused"]
TimesKey = Literal["mean_ns", "p50_ns", "p99_ns"]

SORTS: tuple[tuple[str, Sort], ...] = (("reads", "read"), ("writes", "write"))
PHASES = (
    ("q2g", "queued to got"),
    ("g2i", "got to inserted"),
    ("i2d", "inserted to issued"),
    ("q2d", "queued to issued"),
    ("d2c", "issued to done"),
    ("q2c", "queued to done"),
)
"""Phases with the names of btt: a request is got when the kernel allocates it (G), inserted when it enters the
scheduler's queue (I), and issued when the driver gets it (D). """
QUANTILES: tuple[tuple[str, TimesKey], ...] = (("median", "p50_ns"), ("p99", "p99_ns"))
REUSED: tuple[tuple[str, FigureKey], ...] = (("in the bin", "reused_in_bin"), ("at any time", "reused"))
SLICES_MAX = 12
"""Maximum number of devices and processes in the table; JSON has all."""


def over_time(report: TraceReport, unit: tuple[float, str]) -> Iterable[Figure]:
    """Yields response times, queue depth, working set and re-use by time bin."""
    timeline = report["timeline"]
    bins = timeline["bins"]
    if len(bins) < 2:
        return
    time_ns, time_unit = unit
    middles = [(time_bin["from_ns"] + time_bin["to_ns"]) / 2 / time_ns for time_bin in bins]
    x = Axis(f"Time ({time_unit})", log=False)
    note = f"In bins of {format_duration_ns(timeline['bin_ns'])}."

    def line(name: str, pick: Pick, thing: str = "") -> Series:
        return Series(name, middles, [pick(time_bin) for time_bin in bins], thing=thing)

    def lines(*candidates: Series) -> list[Series]:
        return [series for series in candidates if any(y is not None for y in series.y)]

    times = lines(
        *(line(f"{name}, {label}", _response(sort, key), name) for name, sort in SORTS for label, key in QUANTILES)
    )
    if times:
        says = describe_range([y for y in times[-1].y if y is not None], f"ms ({times[-1].name})")
        title = "Response times over time"
        yield Lines("times-over-time", title, x, Axis("Response time (ms)", log=True), times, note, says=says)
    depth = lines(line("mean in flight", lambda time_bin: time_bin["mean_depth"]))
    if depth:
        says = describe_range([y for y in depth[0].y if y is not None], "requests in flight")
        axis = Axis("Requests in flight", log=False)
        yield Lines("depth-over-time", "Requests in flight over time", x, axis, depth, note, says=says)
    yield from _set_over_time(timeline, x, note, line, lines)
    phases = lines(
        *(line(label, _phase_mean(name), label) for name, label in PHASES if name != "q2c" and _is_shown(report, name))
    )
    if phases:
        axis = Axis("Mean time (ms)", log=True)
        yield Lines("phases-over-time", "Phases over time", x, axis, phases, note, says=_describe_phases(report))


def _set_over_time(
    timeline: TimelineReport, x: Axis, note: str, line: Callable[..., Series], lines: Callable[..., list[Series]]
) -> Iterable[Figure]:
    """Yields the working set and its re-use over time."""
    block_bytes, rate = timeline["block_bytes"], timeline["sampled_rate"]
    if (
        block_bytes is None
        or rate is None
        or not any(time_bin["all"]["touched_bytes"] for time_bin in timeline["bins"])
    ):
        return
    blocks = f"Blocks of {format_bytes(block_bytes)}"
    note = f"{note} {blocks}" + (", exact." if rate == 1 else f", from 1 in {1 / rate:,.0f} of them.")
    touched = lines(
        line("so far", _figure("all", "touched_so_far_bytes", 1e-6)),
        line("in the bin", _figure("all", "touched_bytes", 1e-6)),
        line("reads in the bin", _figure("read", "touched_bytes", 1e-6), "reads"),
        line("writes in the bin", _figure("write", "touched_bytes", 1e-6), "writes"),
    )
    most = [y for y in touched[1].y if y is not None]
    says = f"{describe_range(most, 'MB in a bin')[:-1]}; {touched[0].y[-1]:,.3g} MB in all."
    yield Lines("set-over-time", "Working set over time", x, Axis("Touched (MB)", log=True), touched, note, says=says)
    again = lines(
        *(line(f"{name}, {label}", _figure(sort, key, 100.0), name) for name, sort in SORTS for label, key in REUSED)
    )
    if again:
        axis = Axis("Touched before (%)", log=False)
        says = describe_range([y for y in again[-1].y if y is not None], f"% ({again[-1].name})")
        yield Lines("reuse-over-time", "Re-use over time", x, axis, again, note, says=says)


def _response(sort: Sort, key: TimesKey) -> Pick:
    """Returns a function that returns the latency of a bin in ms; a bin without requests is a gap in the line."""

    def pick(time_bin: TimelineBin) -> float | None:
        times = time_bin[sort]["response"]
        return None if times is None else 1e-6 * times[key]

    return pick


def _figure(sort: Sort, figure: FigureKey, factor: float) -> Pick:
    """Returns a function that returns a figure of a bin; a bin without the figure is a gap in the line."""

    def pick(time_bin: TimelineBin) -> float | None:
        value = time_bin[sort][figure]
        # A logarithmic axis cannot show 0.
        return None if value is None or (value == 0 and figure == "touched_bytes") else factor * value

    return pick


def _phase_mean(name: str) -> Pick:
    return lambda time_bin: time_bin["phases"][name]["mean_ns"] / 1e6 if name in time_bin["phases"] else None


def _is_shown(report: TraceReport, phase: str) -> bool:
    """Whether a phase is shown. A phase whose parts are recorded is not shown, but its parts are."""
    recorded = report["phases"]
    return recorded is not None and phase in recorded["all"] and not (phase == "q2d" and "i2d" in recorded["all"])


def phases(report: TraceReport) -> Iterable[Figure]:
    """Yields the figures of the time in each phase of requests."""
    recorded = report["phases"]
    if recorded is None:
        return
    shown = [(name, label) for name, label in PHASES if name in recorded["all"]]
    series = [
        Series(
            f"{sort}s",
            (),
            [_ms(times.get(name), "mean_ns") for name, _ in shown],
            low=[_ms(times.get(name), "p50_ns") for name, _ in shown],
            high=[_ms(times.get(name), "p99_ns") for name, _ in shown],
        )
        for sort, times in recorded["by_operation"].items()
    ]
    groups = [f"{name.upper()}: {label}" for name, label in shown]
    axis = Axis("Time (ms)", log=True)
    note = "Bars: means; lines: median to 99th percentile. Phases have the names of Linux' btt."
    yield Bars("phases", "Where requests spend their time", axis, groups, series, note, says=_describe_phases(report))


def _ms(times: Times | None, key: TimesKey) -> float | None:
    return None if times is None else times[key] / 1e6


def _describe_phases(report: TraceReport) -> str:
    """Returns a sentence with the device's share of the latency."""
    phases = report["phases"]
    if phases is None or "d2c" not in phases["all"] or "q2c" not in phases["all"]:
        return ""
    device, whole = phases["all"]["d2c"]["mean_ns"], phases["all"]["q2c"]["mean_ns"]
    share = 100 * device / whole if whole else 0.0
    return f"The device takes {share:.0f} % of the mean latency of {time(whole / 1e6)}."


def distribution(report: TraceReport) -> Iterable[Figure]:
    """Yields the distribution of response times."""
    latency = report["latency"]
    if latency is None:
        return
    series = []
    for sort, classes in latency["distribution"].items():
        total, seen, x, y = sum(time_class["count"] for time_class in classes), 0, [], []
        for time_class in classes:
            seen += time_class["count"]
            x.append(time_class["below_ns"] / 1e6)
            y.append(100 * seen / total)
        series.append(Series(f"{sort}s", x, y))
    axes = Axis("Response time (ms)", log=True), Axis("Requests completed within it (%)", log=False)
    title, note = "Distribution of response times", "In classes of 1.6 %."
    yield Lines("distribution", title, *axes, series, note)


def breakdowns(report: TraceReport) -> Iterable[Figure]:
    """Yields response times by size, device and process."""
    latency = report["latency"]
    if latency is None:
        return
    columns = ["reads", "median (ms)", "p99 (ms)", "writes", "median (ms)", "p99 (ms)"]
    processes = [
        (f"{part['of']['name'] or 'not recorded'} ({part['of']['pid']})", part) for part in latency["by_process"]
    ]
    slices: Sequence[tuple[str, Sequence[tuple[str, Slice]]]] = (
        ("size", [(f"from {format_bytes(part['of'])}", part) for part in latency["by_size"]]),
        ("device", _busiest([(part["of"], part) for part in latency["by_device"]])),
        ("process", _busiest(processes)),
    )
    for heading, entries in slices:
        if not entries or (heading == "device" and len(entries) == 1):
            continue
        rows = [
            [name, *_latency_cells(part["read"]), *_latency_cells(part["write"])] for name, part in entries[:SLICES_MAX]
        ]
        note = f"{len(entries) - SLICES_MAX:,} more are not shown." if len(entries) > SLICES_MAX else ""
        yield Table(f"times-by-{heading}", f"Response times by {heading}", [heading, *columns], rows, note)


def _busiest(entries: Sequence[tuple[str, Slice]]) -> list[tuple[str, Slice]]:
    """Returns the named slices, the largest first."""
    return sorted(entries, key=lambda entry: -entry[1]["all"]["count"])


def _latency_cells(times: Times | None) -> list[float | None]:
    if times is None:
        return [0, None, None]
    return [times["count"], *(float(f"{times[key] / 1e6:.3g}") for _, key in QUANTILES)]
