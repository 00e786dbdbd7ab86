"""What a trace's analysis shows over time, of the phases of requests, and of whose they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headstack._native import format_bytes, format_duration_ns
from headstack.report.figures import Axis, Bars, Figure, Lines, Series, Table
from headstack.results.words import of_course, time

Found = dict[str, Any]
Pick = Callable[[Found], float | None]

SORTS = (("reads", "read"), ("writes", "write"))
PHASES = (
    ("q2g", "queued to got"),
    ("g2i", "got to inserted"),
    ("i2d", "inserted to issued"),
    ("q2d", "queued to issued"),
    ("d2c", "issued to done"),
    ("q2c", "queued to done"),
)
"""By btt's names: got is the kernel's request (G), inserted is the scheduler's queue (I), issued is the driver (D)."""
SLICES_MAX = 12
"""Devices and processes of the table; JSON has all."""


def over_time(report: Found, unit: tuple[float, str]) -> Iterable[Figure]:
    """Response times, requests in flight, working set and re-use from bin to bin."""
    timeline = report["timeline"]
    bins = timeline["bins"]
    if len(bins) < 2:
        return
    time_ns, time_unit = unit
    middles = [(one["from_ns"] + one["to_ns"]) / 2 / time_ns for one in bins]
    x = Axis(f"Time ({time_unit})", log=False)
    note = f"In bins of {format_duration_ns(timeline['bin_ns'])}."

    def line(name: str, pick: Pick, thing: str = "") -> Series:
        return Series(name, middles, [pick(one) for one in bins], thing=thing)

    def lines(*candidates: Series) -> list[Series]:
        return [one for one in candidates if any(y is not None for y in one.y)]

    times = lines(
        *(
            line(f"{name}, {said}", _of(sort, "response", key, 1e-6), name)
            for name, sort in SORTS
            for said, key in (("median", "p50_ns"), ("p99", "p99_ns"))
        )
    )
    if times:
        says = of_course([y for y in times[-1].y if y is not None], f"ms ({times[-1].name})")
        title = "Response times over time"
        yield Lines("times-over-time", title, x, Axis("Response time (ms)", log=True), times, note, says=says)
    depth = lines(line("mean in flight", lambda one: one["mean_depth"]))
    if depth:
        says = of_course([y for y in depth[0].y if y is not None], "requests in flight")
        axis = Axis("Requests in flight", log=False)
        yield Lines("depth-over-time", "Requests in flight over time", x, axis, depth, note, says=says)
    yield from _set_over_time(timeline, x, note, line, lines)
    phases = lines(
        *(line(said, _of_phase(name), said) for name, said in PHASES if name != "q2c" and _is_shown(report, name))
    )
    if phases:
        axis = Axis("Mean time (ms)", log=True)
        yield Lines("phases-over-time", "Phases over time", x, axis, phases, note, says=_of_phases(report))


def _set_over_time(
    timeline: Found, x: Axis, note: str, line: Callable[..., Series], lines: Callable[..., list[Series]]
) -> Iterable[Figure]:
    """What is touched, and how much of it again."""
    if timeline["block_bytes"] is None or not any(one["all"]["touched_bytes"] for one in timeline["bins"]):
        return
    blocks = f"Blocks of {format_bytes(timeline['block_bytes'])}"
    rate = timeline["sampled_rate"]
    note = f"{note} {blocks}" + (", exact." if rate == 1 else f", from 1 in {1 / rate:,.0f} of them.")
    touched = lines(
        line("so far", _of("all", "touched_so_far_bytes", "", 1e-6)),
        line("in the bin", _of("all", "touched_bytes", "", 1e-6)),
        line("reads in the bin", _of("read", "touched_bytes", "", 1e-6), "reads"),
        line("writes in the bin", _of("write", "touched_bytes", "", 1e-6), "writes"),
    )
    most = [y for y in touched[1].y if y is not None]
    says = f"{of_course(most, 'MB in a bin')[:-1]}; {touched[0].y[-1]:,.3g} MB in all."
    yield Lines("set-over-time", "Working set over time", x, Axis("Touched (MB)", log=True), touched, note, says=says)
    again = lines(
        *(
            line(f"{name}, {said}", _of(sort, key, "", 100.0), name)
            for name, sort in SORTS
            for said, key in (("in the bin", "reused_in_bin"), ("at any time", "reused"))
        )
    )
    if again:
        axis = Axis("Touched before (%)", log=False)
        says = of_course([y for y in again[-1].y if y is not None], f"% ({again[-1].name})")
        yield Lines("reuse-over-time", "Re-use over time", x, axis, again, note, says=says)


def _of(sort: str, figure: str, key: str, factor: float) -> Pick:
    """A figure of a bin; a bin without one has none, and is a gap in the line."""

    def pick(one: Found) -> float | None:
        value = one[sort][figure]
        value = value[key] if key and value is not None else value
        # Nothing is below all of a logarithmic axis.
        return None if value is None or (value == 0 and figure == "touched_bytes") else factor * value

    return pick


def _of_phase(name: str) -> Pick:
    return lambda one: one["phases"][name]["mean_ns"] / 1e6 if name in one["phases"] else None


def _is_shown(report: Found, phase: str) -> bool:
    """Its parts stand for a phase where they are recorded."""
    known = report["phases"]
    return known is not None and phase in known["all"] and not (phase == "q2d" and "i2d" in known["all"])


def phases(report: Found) -> Iterable[Figure]:
    """Where requests spend their time."""
    known = report["phases"]
    if known is None:
        return
    shown = [(name, said) for name, said in PHASES if name in known["all"]]
    series = [
        Series(
            f"{sort}s",
            (),
            [_ms(of.get(name), "mean_ns") for name, _ in shown],
            low=[_ms(of.get(name), "p50_ns") for name, _ in shown],
            high=[_ms(of.get(name), "p99_ns") for name, _ in shown],
        )
        for sort, of in known["by_operation"].items()
    ]
    groups = [f"{name.upper()}: {said}" for name, said in shown]
    axis = Axis("Time (ms)", log=True)
    note = "Means, and from the median to the 99th percentile. By the names of Linux' btt."
    yield Bars("phases", "Where requests spend their time", axis, groups, series, note, says=_of_phases(report))


def _ms(times: Found | None, key: str) -> float | None:
    return None if times is None else times[key] / 1e6


def _of_phases(report: Found) -> str:
    """What of the way is the device's."""
    told = report["phases"]["all"]
    if "d2c" not in told or "q2c" not in told:
        return ""
    device, whole = told["d2c"]["mean_ns"], told["q2c"]["mean_ns"]
    share = 100 * device / whole if whole else 0.0
    return f"Of {time(whole / 1e6)} in the mean, the device takes {share:.0f} %."


def distribution(report: Found) -> Iterable[Figure]:
    """How many requests are answered within which time."""
    latency = report["latency"]
    if latency is None:
        return
    series = []
    for sort, classes in latency["distribution"].items():
        total, seen, x, y = sum(one["count"] for one in classes), 0, [], []
        for one in classes:
            seen += one["count"]
            x.append(one["below_ns"] / 1e6)
            y.append(100 * seen / total)
        series.append(Series(f"{sort}s", x, y))
    axes = Axis("Response time (ms)", log=True), Axis("Requests that are answered within it (%)", log=False)
    title, note = "Distribution of response times", "In classes of 1.6 %."
    yield Lines("distribution", title, *axes, series, note)


def whose(report: Found) -> Iterable[Figure]:
    """Response times by size, device and process."""
    latency = report["latency"]
    if latency is None:
        return
    columns = ["reads", "median (ms)", "p99 (ms)", "writes", "median (ms)", "p99 (ms)"]
    slices: Sequence[tuple[str, str, Callable[[Any], str]]] = (
        ("by_size", "size", lambda of: f"from {format_bytes(of)}"),
        ("by_device", "device", str),
        ("by_process", "process", lambda of: f"{of['name'] or 'not recorded'} ({of['pid']})"),
    )
    for key, heading, name in slices:
        entries = sorted(latency[key], key=lambda one: -one["all"]["count"]) if key != "by_size" else latency[key]
        if not entries or (key == "by_device" and len(entries) == 1):
            continue
        rows = [[name(one["of"]), *_sort(one["read"]), *_sort(one["write"])] for one in entries[:SLICES_MAX]]
        note = f"And {len(entries) - SLICES_MAX:,} others." if len(entries) > SLICES_MAX else ""
        yield Table(f"times-by-{heading}", f"Response times by {heading}", [heading, *columns], rows, note)


def _sort(times: Found | None) -> list[float | None]:
    if times is None:
        return [0, None, None]
    return [times["count"], *(float(f"{times[key] / 1e6:.3g}") for key in ("p50_ns", "p99_ns"))]
