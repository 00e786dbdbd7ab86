"""The report of a trace's analysis: addresses over time, rates, sizes, re-use and response times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from headstack._native import format_bytes, format_duration_ns, version
from headstack.report.figures import Axis, Bars, Figure, Grid, Heat, Lines, Report, Section, Series
from headstack.results.words import describe_percentiles, describe_range
from headstack.traces.analysed import Analysed, cache_size
from headstack.traces.analysis_time import breakdowns, distribution, over_time, phases
from headstack.traces.report_times import DepthReport
from headstack.traces.report_types import CurvePoint, HeatReport, RateBin, SizeCount, TraceReport

Kind = Literal["reads", "writes"]
KINDS: tuple[Kind, ...] = ("reads", "writes")
"""Kinds of requests that a map shows."""
PERCENTS: dict[Literal["p50", "p90", "p95", "p99", "p999", "max"], float] = {
    "p50": 50,
    "p90": 90,
    "p95": 95,
    "p99": 99,
    "p999": 99.9,
    "max": 100,
}
"""Percentiles of latency to draw."""

RATES_MAX = 300
"""Maximum number of points of a rate over time; more would be illegible."""
SIZES_MAX = 14
"""Maximum number of sizes to draw individually; more sizes are grouped by powers of two."""
DEPTH_MAX = 1_024
"""Maximum queue depth counted separately; it includes all greater depths."""
DURATIONS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))
SPANS = ((86_400e9, "days"), (3_600e9, "h"), (60e9, "min"), *DURATIONS)
BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))


def report_of(analysis: Analysed) -> Report:
    """Returns all figures of the analysis as a report."""
    report = analysis.report
    sections = [
        Section("Addresses over time", "", list(_maps(report))),
        Section("Arrivals", "", [*_rate(report), *_gaps(report)]),
        Section("Over time", "", list(over_time(report, unit(report["duration_ns"], SPANS)))),
        Section("Sizes and operations", "", [*_sizes(report), *_mix(report)]),
        Section("Re-use", "", list(_reuse(report))),
        Section(
            "Requests in flight and response times",
            "",
            [*_depth(report), *_response(report), *distribution(report), *phases(report), *breakdowns(report)],
        ),
    ]
    remarks = [*(f"{note[:1].upper()}{note[1:]}." for note in report["notes"]), f"{caption(analysis)}."]
    shown = [section for section in sections if section.figures]
    return Report(analysis.name, "", f"{summary(report)}.", shown, version=version(), remarks="\n\n".join(remarks))


# Figures.


def _maps(report: TraceReport) -> Iterable[Figure]:
    for kind in KINDS:
        heat, end_bytes = report["heat"], report["highest_end_bytes"]
        if heat is None or end_bytes is None or not heat[kind]:
            continue
        cells, cell_ns, cell_bytes = map_of(heat, kind)
        time_ns, time_unit = unit(report["duration_ns"], SPANS)
        place_bytes, place_unit = unit(end_bytes, BYTES)
        several = ", all devices in one map" * (len(report["devices"]) > 1)
        yield Heat(
            f"map-{kind}",
            f"Addresses over time: {map_title(report, kind)}",
            Axis(f"Time ({time_unit})"),
            (0, len(cells[0]) * cell_ns / time_ns),
            Axis(f"Address ({place_unit}){several}"),
            (0, len(cells) * cell_bytes / place_bytes),
            cells,
            f"requests in {format_duration_ns(cell_ns)} × {format_bytes(cell_bytes)}",
            says=_describe_map(cells, map_title(report, kind)),
        )


def _describe_map(cells: Sequence[Sequence[int]], requests: str) -> str:
    """Returns a sentence with the share of the requests to the busiest 10 % of the addresses."""
    counts = sorted(map(sum, cells), reverse=True)
    busiest = sum(counts[: max(1, round(len(counts) / 10))])
    never = sum(count == 0 for count in counts)
    idle = f"; {100 * never / len(counts):.0f} % get no requests" if never else ""
    share = 100 * busiest / (sum(counts) or 1)
    return f"The busiest 10 % of the addresses get {share:.0f} % of the {requests}{idle}."


def _rate(report: TraceReport) -> Iterable[Figure]:
    bins, width_ns = report["rate"]["bins"], report["rate"]["bin_ns"]
    # The last bin is shorter, so it is left out unless it is the only one.
    complete = bins[: report["duration_ns"] // width_ns] or bins
    if not complete:
        return
    time_ns, time_unit = unit(report["duration_ns"], SPANS)
    fold = -(-len(complete) // RATES_MAX)
    parts = [complete[start : start + fold] for start in range(0, len(complete) - len(complete) % fold, fold)]
    width_ns *= fold
    middles = [(index + 0.5) * width_ns / time_ns for index in range(len(parts))]
    series = [
        Series(name, middles, [sum(map(count, part)) * 1e9 / width_ns for part in parts])
        for name, count in kinds(report)
    ]
    series = [line for line in series if any(line.y)]
    width = format_duration_ns(width_ns)
    totals = [sum(entry["requests"] for entry in part) * 1e9 / width_ns for part in parts]
    axes, note = (Axis(f"Time ({time_unit})", log=False), Axis("Rate (IOPS)")), f"In bins of {width}."
    yield Lines("rate", "Rate", *axes, series, note, says=describe_range(totals, "IOPS in all"))


def _gaps(report: TraceReport) -> Iterable[Figure]:
    arrivals = report["arrivals"]
    bins, gaps, variation = arrivals["gap_histogram_ns"], arrivals["gaps_ns"], arrivals["gap_variation"]
    if not bins or gaps is None or variation is None:
        return
    total = sum(entry["count"] for entry in bins)
    groups = [f"from {format_duration_ns(entry['from'])}" for entry in bins]
    shares = Series("gaps", (), [100 * entry["count"] / total for entry in bins])
    note = f"Mean {format_duration_ns(round(gaps['mean']))}, coefficient of variation {figures(variation)}."
    axis = Axis("Share of the gaps (%)", log=False)
    p50, p99 = format_duration_ns(gaps["p50"]), format_duration_ns(gaps["p99"])
    says = f"Median {p50}, p99 {p99}."
    yield Bars("gaps", "Time from a request to the next", axis, groups, [shares], note, says=says)


def _sizes(report: TraceReport) -> Iterable[Figure]:
    classes = size_classes(report)
    if not classes:
        return
    total = sum(entry["requests"] for entries in classes.values() for entry in entries)
    groups = [format_bytes(length) for length in classes]
    series = [
        Series(name, (), [100 * sum(map(count, entries)) / total for entries in classes.values()])
        for name, count in kinds(report)
    ]
    exact = is_exact(report)
    note = f"Mean {format_bytes(round(report['sizes']['mean_bytes'] or 0))}."
    note += "" if exact else " Each class covers sizes from its value up to twice that."
    shown = [bar for bar in series if any(bar.y)]
    axis = Axis("Share of the requests (%)", log=False)
    counts = [sum(entry["requests"] for entry in entries) for entries in classes.values()]
    at_least = "" if exact else "from "
    most, group = max(counts), groups[counts.index(max(counts))]
    says = f"Most frequent: {at_least}{group}, {100 * most / total:.0f} % of the requests."
    yield Bars("sizes", "Sizes", axis, groups, shown, note, says=says)


def _mix(report: TraceReport) -> Iterable[Figure]:
    environment = report["environment"]
    if environment["read_share"] is None:
        return
    shares = (
        (environment["read_share"], environment["read_random_share"]),
        (1 - environment["read_share"], environment["write_random_share"]),
    )
    if environment["random_share"] is None:
        reads, writes = 100 * environment["read_share"], 100 * (1 - environment["read_share"])
        says = f"{reads:.0f} % reads; {writes:.0f} % writes."
        yield Grid(
            "mix", "Reads and writes", ("reads", "writes"), "", ("requests",), "", [[reads], [writes]], "%", says=says
        )
        return
    values = [[100 * share * (1 - (random or 0)), 100 * share * (random or 0)] for share, random in shares]
    rows, columns = ("reads", "writes"), ("sequential", "random")
    descriptions = [
        f"{100 * share:.0f} % {kind}" + (f", {100 * random:.0f} % of them random" if random is not None else "")
        for kind, (share, random) in zip(rows, shares, strict=True)
    ]
    title, unit_of_all, says = "Sequential and random", "% of the reads and writes", f"{'; '.join(descriptions)}."
    yield Grid("mix", title, rows, "", columns, "", values, unit_of_all, says=says)


def _reuse(report: TraceReport) -> Iterable[Figure]:
    reuse = report["reuse"]
    if reuse is None or not reuse["references"]:
        return
    curve, by_block = reuse["lru_curve"], reuse["block_bytes"] is not None
    low: list[float] = []
    high: list[float] = []
    note = "Exact."
    if reuse["sampled_rate"] < 1:
        low, high = band_of(curve)
        note = f"Sampled from 1 in {1 / reuse['sampled_rate']:,.0f} blocks; the band is a 95 % confidence interval."
    sizes = [cache_size(point) for point in curve]
    factor, name = unit(max(sizes), BYTES) if by_block else (1, "requests")
    caches = [size / factor if by_block else size for size in sizes]
    misses = Series("misses", caches, [100 * point["miss_ratio"] for point in curve], low=low, high=high)
    axes = Axis(f"Cache ({name})", log=True), Axis("Misses (%)", log=False)
    yield Lines("misses", "Misses of an LRU cache", *axes, [misses], note, says=_describe_misses(misses, name))


def _describe_misses(misses: Series, unit_of_caches: str) -> str:
    """Returns a sentence with the hit ratio of the largest cache, its interval, and the size with half of this hit
    ratio."""

    def hits(n: int) -> float:
        return 100 - (misses.y[n] or 0.0)

    last = len(misses.x) - 1
    if hits(last) < 0.05:
        return f"A cache of up to {figures(misses.x[last] or 0.0)} {unit_of_caches} gets no hits."
    half = next(n for n in range(len(misses.x)) if hits(n) >= hits(last) / 2)
    caches = [f"{figures(misses.x[n] or 0.0)} {unit_of_caches}" for n in (last, half)]
    low, high = (100 - (ends[last] or 0.0) if ends else None for ends in (misses.high, misses.low))
    between = f" ({low:.1f} to {high:.1f})" if low is not None and high is not None else ""
    return (
        f"A cache of {caches[0]} has a hit ratio of {hits(last):.1f} %{between}, a cache of {caches[1]} half as much."
    )


def _depth(report: TraceReport) -> Iterable[Figure]:
    depth = report["depth"]
    if depth is None:
        return
    groups, shares = zip(*depth_classes(depth), strict=True)
    note = f"Mean {figures(depth['mean'])}, maximum {depth['max']:,}."
    axis, most = Axis("Share of the time (%)", log=False), shares.index(max(shares))
    says = f"Most frequent: {groups[most]} in flight, {shares[most]:.0f} % of the time."
    yield Bars("depth", "Requests in flight", axis, groups, [Series("time", (), shares)], note, says=says)


def _response(report: TraceReport) -> Iterable[Figure]:
    if report["depth"] is None:
        return
    # Reads have the same colour in all figures.
    series = [
        Series(name, list(PERCENTS.values()), [entry[key] / 1e6 for key in PERCENTS], thing=f"{name}s")
        for name, entry in report["response"]["by_operation_ns"].items()
    ]
    axes = Axis("Percentile (%)"), Axis("Response time (ms)")
    percentiles: dict[str, dict[float, float]] = {
        name: {50: entry["p50"] / 1e6, 99: entry["p99"] / 1e6}
        for name, entry in report["response"]["by_operation_ns"].items()
    }
    title, says = "Response times by percentile", describe_percentiles(percentiles)
    yield Lines("response", title, *axes, series, x_is_percentile=True, says=says)


# Texts shared by pictures and reports.


def summary(report: TraceReport) -> str:
    """Summarizes the trace in one line."""
    long = "" if report["first_arrival_ns"] is None else f" in {format_duration_ns(report['duration_ns'])}"
    parts = [f"{report['requests']:,} requests{long}"]
    if report["requests_per_s"] is not None and report["bytes_per_s"] is not None:
        parts.append(f"{figures(report['requests_per_s'])} IOPS, {figures(report['bytes_per_s'] / 1e6)} MB/s")
    parts.append(f"{format_bytes(report['bytes'])} moved")
    if report["highest_end_bytes"] is not None:
        parts.append(f"addresses up to {format_bytes(report['highest_end_bytes'])}")
    devices = len(report["devices"])
    parts.append(f"{devices} device{'s' * (devices != 1)}")
    return "; ".join(parts)


def caption(analysis: Analysed) -> str:
    """Returns the information needed to reproduce the figure."""
    origin = ", ".join(dict.fromkeys(entry["format"] for entry in analysis.meta["origin"]))
    steps = "; ".join(analysis.meta.get("steps", []))
    return f"Analysed by headstack {version()}; format {origin}" + bool(steps) * f"; steps: {steps}"


def map_title(report: TraceReport, kind: Kind) -> str:
    """Returns a map's title; the map of reads includes requests of unknown kind."""
    reads = report["operations"].get("read", {"requests": 0})["requests"]
    unknown = report["operations"].get("unknown", {"requests": 0})["requests"]
    return kind if kind == "writes" or not unknown else "reads and requests of unknown kind" if reads else "requests"


def map_of(heat: HeatReport, kind: Kind) -> tuple[list[list[int]], int, int]:
    """Returns requests by address (lowest first) and by time, with the size of a cell in ns and in bytes."""
    columns = max(len(heat["reads"]), len(heat["writes"]))
    rows = max(len(column) for column in (*heat["reads"], *heat["writes"]))
    fold = coarseness(heat, columns * rows)
    columns, rows = -(-columns // fold), -(-rows // fold)
    cells = [[0] * columns for _ in range(rows)]
    for place, column in enumerate(heat[kind]):
        for row, count in enumerate(column):
            cells[row // fold][place // fold] += count
    return cells, fold * heat["column_ns"], fold * heat["row_bytes"]


def band_of(curve: Sequence[CurvePoint]) -> tuple[list[float], list[float]]:
    """Returns the lower and the upper bounds of a sampled curve's 95 % band, in percent."""
    ends = [(point["low"] or 0.0, point["high"] or 0.0) for point in curve]
    return [100 * low for low, _ in ends], [100 * high for _, high in ends]


def coarseness(heat: HeatReport, cells: int) -> int:
    """Returns the number of cells to merge along each axis, so that the few requests of a sparse map are visible."""
    touched = max(sum(count > 0 for column in heat[kind] for count in column) for kind in KINDS)
    return 1 if touched > 0.08 * cells else 2 if touched > 0.01 * cells else 4


def is_exact(report: TraceReport) -> bool:
    """Whether each size is listed individually."""
    return len(report["sizes"]["sizes"]) <= SIZES_MAX


def size_classes(report: TraceReport) -> dict[int, list[SizeCount]]:
    """Returns entries by size in bytes, individually if there are few sizes, otherwise by powers of two."""
    classes: dict[int, list[SizeCount]] = {}
    for entry in report["sizes"]["sizes"]:
        length = entry["length_bytes"]
        lowest = length if is_exact(report) or not length else 1 << (length.bit_length() - 1)
        classes.setdefault(lowest, []).append(entry)
    return classes


def depth_classes(depth: DepthReport) -> list[tuple[str, float]]:
    """Returns the percentage of time by queue depth, in ranges between powers of two."""
    shares = depth["time_shares"]
    lows = [0, *(1 << power for power in range(11) if 1 << power < max(2, len(shares)))]
    return [(depths(low, depth["max"]), 100 * sum(shares[low : max(1, 2 * low)])) for low in lows]


def depths(low: int, most: int) -> str:
    """Formats the depths from a power of two up to the next, or to the maximum."""
    high = min(2 * low - 1, most)
    if low == DEPTH_MAX < most:
        return f"≥{low:,}"
    return str(low) if high <= low else f"{low}–{high}"


def kinds(report: TraceReport) -> list[tuple[str, Callable[[SizeCount | RateBin], int]]]:
    """Returns the kinds of requests, each with a function that counts the requests of this kind in an entry."""
    return [
        ("reads", lambda entry: entry["reads"]),
        ("writes", lambda entry: entry["writes"]),
        (
            "kind not recorded" if "unknown" in report["operations"] else "others",
            lambda entry: entry["requests"] - entry["reads"] - entry["writes"],
        ),
    ]


def figures(value: float) -> str:
    """Formats a number with about three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def unit(value: float, units: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    """Returns the largest unit in which the value is at least 2, with its factor."""
    return next((entry for entry in units if value >= 2 * entry[0]), units[-1])
