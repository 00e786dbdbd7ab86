"""The tables of a trace's analysis. Shares are printed as percentages, what a trace does not say in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

from headstack._native import format_bytes, format_duration_ns
from headstack.cli.answers import answer_of_trace
from headstack.cli.output import print_notes_of, print_table, say
from headstack.cli.traces.traces import print_remarks, spoken_start
from headstack.io.columns import Column, Figures, Names
from headstack.traces.analysed import cache_size
from headstack.traces.analysis import Analysis
from headstack.traces.analysis_time import PHASES
from headstack.traces.report_times import Percentiles, TimelineBin
from headstack.traces.report_types import Amount, DeviceReport, PowerBin, ProcessReport, SizeCount, TraceReport
from headstack.traces.traces import formats

NOT_RECORDED = "not recorded"
COUNTS: tuple[Literal["requests", "reads", "writes"], ...] = ("requests", "reads", "writes")
ROWS_MAX = 12
"""Rows of the tables of sizes, caches, devices and processes; JSON has all."""

Entry = TypeVar("Entry", DeviceReport, ProcessReport)
Pick = Callable[[TimelineBin], float | None]


def print_analysis(found: Analysis) -> None:
    """Everything that people read; the JSON has more."""
    report, meta = found.report, found.meta
    say(f"{answer_of_trace(report)}\n")
    for origin in meta["origin"]:
        say(f"{origin['file']}: {formats().get(origin['format'], origin['format'])}")
    start = "" if report["first_arrival_ns"] is None else spoken_start(meta, report["first_arrival_ns"])
    long = "times not recorded" if meta["clock"] == "order" else f"{start}{duration(report['duration_ns'])} long"
    say(f"{report['requests']:,} requests, {long}")
    if meta.get("response") is not None:
        say(f"latency: {meta['response'].replace('-', ' ')}")
    for print_part in PARTS:
        print_part(report)
    print()
    print_notes_of(report["notes"])
    print_remarks(meta)


def table(title: str, first: Column, others: list[str], rows: list[list[str]]) -> None:
    """A table under its title; the columns of figures are in order of what they matter."""
    say(f"\n{title}")
    print_table([first, *(Figures(heading, rank) for rank, heading in enumerate(others))], rows)


def print_mix(report: TraceReport) -> None:
    """Operations, and how fast they came."""
    seconds = report["duration_ns"] / 1e9

    def row(name: str, amount: Amount) -> list[str]:
        requests, transferred = amount["requests"], amount["bytes"]
        return [
            name,
            f"{requests:,}",
            percent(requests / report["requests"]),
            format_bytes(transferred),
            format_bytes(round(transferred / requests)),
            figure(requests / seconds) if seconds else "",
            figure(transferred / seconds / 1e6) if seconds else "",
        ]

    rows = [row(name, amount) for name, amount in report["operations"].items()]
    if report["requests"]:
        rows.append(row("all", {"requests": report["requests"], "bytes": report["bytes"]}))
    table("mix", Names(""), ["requests", "%", "bytes", "mean size", "IOPS", "MB/s"], rows)
    if report["flags"]:
        say("flags: " + ", ".join(f"{name} {count:,}" for name, count in report["flags"].items()))


def print_sizes(report: TraceReport) -> None:
    """The most frequent sizes, in order of size."""
    sizes = report["sizes"]
    frequent = sorted(sizes["sizes"], key=lambda size: (-size["requests"], size["length_bytes"]))
    total = sum(size["requests"] for size in frequent)
    if not total:
        return
    shown, others = frequent[:ROWS_MAX], frequent[ROWS_MAX:]

    def row(name: str, of: list[SizeCount]) -> list[str]:
        requests, reads, writes = (sum(size[key] for size in of) for key in COUNTS)
        return [name, f"{requests:,}", percent(requests / total), f"{reads:,}", f"{writes:,}"]

    by_length = sorted(shown, key=lambda size: size["length_bytes"])
    rows = [row(format_bytes(size["length_bytes"]), [size]) for size in by_length]
    if others:
        rows.append(row(f"{len(others):,} others", others))
    table("sizes", Names(""), ["requests", "%", "reads", "writes"], rows)
    quantiles = [
        ("median", sizes["p50_bytes"]),
        ("p90", sizes["p90_bytes"]),
        ("p99", sizes["p99_bytes"]),
        ("greatest", sizes["max_bytes"]),
    ]
    say(f"mean {size(sizes['mean_bytes'])}, " + ", ".join(f"{name} {size(value)}" for name, value in quantiles))


def print_rate(report: TraceReport) -> None:
    """Gaps, peaks at every scale, self-similarity."""
    arrivals = report["arrivals"]
    rows = [
        [
            duration(scale["bin_ns"]),
            figure(scale["mean"] * 1e9 / scale["bin_ns"]),
            figure(scale["mean"] * scale["peak_over_mean"] * 1e9 / scale["bin_ns"]),
            figure(scale["peak_over_mean"]),
            figure(scale["index_of_dispersion"]),
        ]
        for scale in arrivals["scales"]
        if scale["bin_ns"] in SCALES_NS
    ]
    table("rate, in bins of", Names(""), ["mean IOPS", "peak IOPS", "peak/mean", "variance/mean"], rows)
    gaps = arrivals["gaps_ns"]
    if gaps is None:
        say(f"gaps between arrivals: mean {duration(arrivals['mean_gap_ns'])}, the rest {NOT_RECORDED}")
    else:
        say(
            f"gaps between arrivals: mean {duration(gaps['mean'])}, median {duration(gaps['p50'])}, "
            f"p99 {duration(gaps['p99'])}, max {duration(gaps['max'])}; "
            f"coefficient of variation {figure(arrivals['gap_variation'])} (1 is Poisson)"
        )
    hurst = arrivals["hurst"]
    if hurst is None:
        say("Hurst exponent: too few bins to fit")
    else:
        say(
            f"Hurst exponent: {hurst['exponent']:.2f} (0.5 is Poisson), from bins of {duration(hurst['from_ns'])} "
            f"to {duration(hurst['to_ns'])}, R² {hurst['r_squared']:.2f}"
        )


SCALES_NS = (*(10**power for power in range(4, 11)), *(s * 10**9 for s in (60, 600, 3_600, 86_400, 864_000)))


def print_timeline(report: TraceReport) -> None:
    """The course of the figures: between what they stay, and when they are greatest. JSON and pictures have all."""
    timeline = report["timeline"]
    bins = [one for one in timeline["bins"] if one["to_ns"] > one["from_ns"]]
    if len(bins) < 2:
        return

    def rate(key: Literal["requests", "bytes"], factor: float) -> Pick:
        return lambda one: one["all"][key] * factor * 1e9 / (one["to_ns"] - one["from_ns"])

    def response(sort: Literal["read", "write"]) -> Pick:
        return lambda one: None if (times := one[sort]["response"]) is None else times["p99_ns"]

    measures: list[tuple[str, Pick, Callable[[float | None], str]]] = [
        ("IOPS", rate("requests", 1.0), figure),
        ("MB/s", rate("bytes", 1e-6), figure),
        ("reads p99", response("read"), duration),
        ("writes p99", response("write"), duration),
        ("in flight", lambda one: one["mean_depth"], figure),
        ("touched", lambda one: one["all"]["touched_bytes"], size),
        ("re-used in a bin %", lambda one: one["all"]["reused_in_bin"], percent),
        ("re-used %", lambda one: one["all"]["reused"], percent),
    ]
    rows = []
    for name, pick, show in measures:
        found = [(value, one["from_ns"]) for one in bins if (value := pick(one)) is not None]
        if found:
            values = sorted(value for value, _ in found)
            greatest, at_ns = max(found, key=lambda entry: entry[0])
            rows.append([name, *map(show, (values[0], values[len(values) // 2], greatest)), duration(at_ns)])
    headings = ["least", "median", "max", "max at"]
    rate_of_blocks = timeline["sampled_rate"]
    how = "" if rate_of_blocks is None or rate_of_blocks == 1 else f", blocks {exactness(rate_of_blocks)}"
    table(f"over time, {len(bins)} bins of {duration(timeline['bin_ns'])}{how}", Names(""), headings, rows)


def print_phases(report: TraceReport) -> None:
    """Where requests spend their time, by btt's names."""
    phases = report["phases"]
    if phases is None:
        say(f"\nphases: {NOT_RECORDED}")
        return
    rows = []
    shown = [(f"{name.upper()}: {said}", phases["all"].get(name)) for name, said in PHASES]
    shown += [(f"D2C of {sort}s", of.get("d2c")) for sort, of in phases["by_operation"].items()]
    for title, times in shown:
        if times is not None:
            shown_ns = (times["mean_ns"], times["p50_ns"], times["p99_ns"], times["max_ns"])
            rows.append([title, f"{times['count']:,}", *map(duration, shown_ns)])
    table("phases, by the names of btt", Names(""), ["requests", "mean", "p50", "p99", "max"], rows)
    missing = [name.upper() for name in ("q2g", "g2i", "i2d") if name not in phases["all"]]
    if missing:
        say(f"{', '.join(missing)}: {NOT_RECORDED}")


def print_sequence(report: TraceReport) -> None:
    """Runs, streams and seeks."""
    sequence = report["sequence"]
    rows = [
        [
            name,
            percent(runs["share"]),
            f"{runs['runs']:,}",
            figure(runs["mean_requests"]),
            size(runs["mean_bytes"]),
            *(percent(beyond(runs["requests"], least)) for least in (2, 4, 16, 64)),
        ]
        for name, runs in [("strict", sequence["strict"]), ("32 streams", sequence["streams"])]
    ]
    long = [f"% of ≥{least}" for least in (2, 4, 16, 64)]
    headings = ["sequential %", "runs", "requests a run", "bytes a run", *long]
    table("sequential runs", Names(""), headings, rows)
    streams, most = sequence["mean_concurrent_streams"], sequence["max_concurrent_streams"]
    say(f"concurrent streams: mean {figure(streams)}, max {most}")
    seeks = [("forward", sequence["forward_seeks_bytes"]), ("backward", sequence["backward_seeks_bytes"])]
    total = sum(seek["count"] for _, bins in seeks for seek in bins)
    if total:
        bounds = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 4 << 30]
        edges = [0, 1, *bounds]
        rows = [
            [
                name,
                *(
                    percent(within(bins, low, high) / total)
                    for low, high in zip(edges, [*edges[1:], None], strict=True)
                ),
            ]
            for name, bins in seeks
        ]
        headings = ["0", *(f"< {format_bytes(bound)}" for bound in bounds), f"≥ {format_bytes(bounds[-1])}"]
        table("seeks: % from the end of a request to the start of the next", Names(""), headings, rows)
        say(f"mean seek: {size(sequence['mean_seek_bytes'])}")


def print_alignment(report: TraceReport) -> None:
    """Multiples of powers of two, and requests that overlap one in flight."""
    shares = [share for share in report["alignment"]["shares"] if share["align_bytes"] in ALIGNMENTS]
    if shares:
        rows = [[name, *(percent(share[name]) for share in shares)] for name in ALIGNED]
        headings = [format_bytes(share["align_bytes"]) for share in shares]
        table("alignment: % that are a multiple of", Names(""), headings, rows)
        say(f"all are multiples of {size(report['alignment']['common_bytes'])}")
    overlap = None if report["depth"] is None else report["depth"]["overlap_share"]
    met = NOT_RECORDED if overlap is None else f"{percent(overlap)} % of the requests"
    say(f"overlap with a request in flight: {met}")


ALIGNED: tuple[Literal["offset", "length", "both"], ...] = ("offset", "length", "both")
ALIGNMENTS = tuple(1 << power for power in (9, 10, 12, 13, 14, 15, 16, 17, 18, 20))


def print_working_set(report: TraceReport) -> None:
    """What is touched, in all and in windows of time."""
    blocks = report["working_set"]
    if blocks is None or not blocks["references"]:
        return
    rows = [["whole trace", size(blocks["touched_bytes"]), ""]]
    rows += [
        [duration(window["window_ns"]), size(window["mean_bytes"]), size(window["max_bytes"])]
        for window in blocks["windows"]
        if window["window_ns"] < report["duration_ns"]
    ]
    how = exactness(blocks["sampled_rate"])
    table(f"working set, blocks of {format_bytes(blocks['block_bytes'])}, {how}", Names("in"), ["mean", "most"], rows)
    say(f"read {size(blocks['read_bytes'])}, written {size(blocks['written_bytes'])}")
    after = [(key.replace("_", " "), blocks["successions"][key]) for key in SUCCESSIONS]
    total = sum(count for _, count in after)
    if total:
        parts = (f"{name} {percent(count / total)} %" for name, count in after)
        say("blocks touched again: " + ", ".join(parts))


SUCCESSIONS: tuple[Literal["read_after_read", "read_after_write", "write_after_read", "write_after_write"], ...] = (
    "read_after_read",
    "read_after_write",
    "write_after_read",
    "write_after_write",
)


def print_reuse(report: TraceReport) -> None:
    """What LRU caches of a dozen sizes would miss."""
    reuse = report["reuse"]
    if reuse is None or not reuse["references"]:
        return
    curve, unit = reuse["lru_curve"], reuse["block_bytes"]
    banded = reuse["sampled_rate"] < 1
    step = max(1, -(-(len(curve) - 1) // (ROWS_MAX - 1)))
    # From the end, which is the first cache that holds everything.
    points = curve[::-step][::-1]
    rows = []
    for point in points:
        row = [
            f"{point['cache']:,}" if unit is None else format_bytes(cache_size(point)),
            percent(point["miss_ratio"], 2),
        ]
        if banded:
            row += [percent(point["low"], 2), percent(point["high"], 2)]
        rows.append(row)
    what = "requests" if unit is None else f"blocks of {format_bytes(unit)}"
    band = ["95 % from", "to"] if banded else []
    title = f"re-use of {what}, {exactness(reuse['sampled_rate'])}: misses of an LRU cache"
    table(title, Figures("cache", 0), ["miss %", *band], rows)
    say(f"{reuse['references']:,} references to {'' if not banded else 'about '}{reuse['distinct']:,.0f} {what}")


def print_times(report: TraceReport) -> None:
    """Requests in flight, and how long they take."""
    depth, response = report["depth"], report["response"]
    if depth is None:
        say(f"\nrequests in flight: {NOT_RECORDED}\nlatency: {NOT_RECORDED}")
        return
    found = {entry["from"]: entry for entry in response["by_depth"]}
    rows = []
    for low in dict.fromkeys([0, *(1 << power for power in range(11)), *found]):
        high = max(1, 2 * low)
        share = sum(depth["time_shares"][low:high])
        if share or low in found:
            entry = found.get(low)
            name = str(low) if high - low <= 1 else f"{low} to {high - 1}"
            met = ["0", ""] if entry is None else [f"{entry['requests']:,}", duration(entry["mean_ns"])]
            rows.append([name, percent(share), *met])
    table("requests in flight", Names(""), ["% of the time", "arrivals", "mean latency"], rows)
    say(f"mean {figure(depth['mean'])}, at arrivals {figure(depth['mean_at_arrival'])}, max {depth['max']:,}")
    rows = [summary_row(name, summary) for name, summary in response["by_operation_ns"].items()]
    if response["all_ns"] is not None:
        rows.append(summary_row("all", response["all_ns"]))
    if response["wait_ns"] is not None:
        rows.append(summary_row("wait before issue", response["wait_ns"]))
    headings = ["requests", "mean", "p50", "p90", "p99", "p99.9", "greatest"]
    table("latency", Names(""), headings, rows)
    rows = [
        [f"from {format_bytes(entry['from'])}", f"{entry['requests']:,}", duration(entry["mean_ns"])]
        for entry in response["by_size_bytes"]
    ]
    table("latency by size", Names(""), ["requests", "mean"], rows)


PERCENTILES: tuple[Literal["mean", "p50", "p90", "p99", "p999", "max"], ...] = (
    "mean",
    "p50",
    "p90",
    "p99",
    "p999",
    "max",
)


def summary_row(name: str, summary: Percentiles) -> list[str]:
    """A line of times."""
    return [name, f"{summary['count']:,}", *(duration(summary[key]) for key in PERCENTILES)]


def print_devices(report: TraceReport) -> None:
    """A line a device, the busiest ones."""
    if len(report["devices"]) < 2:
        return
    devices = busiest(report["devices"])
    rows = [
        [
            device["name"],
            *mix(device["operations"]),
            percent(device["sequence"]["streams"]["share"]),
            size(device["highest_end_bytes"]),
            duration(device["mean_response_ns"]),
            figure(device["mean_depth"]),
        ]
        for device in devices[:ROWS_MAX]
    ]
    headings = ["requests", "read %", "bytes", "seq. %", "highest end", "mean latency", "depth"]
    table("devices", Names(""), headings, rows)
    if len(devices) > ROWS_MAX:
        say(f"and {len(devices) - ROWS_MAX:,} others")


def print_processes(report: TraceReport) -> None:
    """A line a process, the busiest ones."""
    processes = busiest(report["processes"])
    if not processes:
        say(f"\nprocesses: {NOT_RECORDED}")
        return
    slices = report["latency"]["by_process"] if report["latency"] is not None else []
    times = {(one["of"]["pid"], one["of"]["name"]): one["all"] for one in slices}

    def row(process: ProcessReport) -> list[str]:
        of = times.get((process["pid"], process["name"]))
        p50_ns, p99_ns = (None, None) if of is None else (of["p50_ns"], of["p99_ns"])
        named = [process["name"] or NOT_RECORDED, str(process["pid"])]
        return [*named, *mix(process["operations"]), duration(p50_ns), duration(p99_ns)]

    rows = [row(process) for process in processes[:ROWS_MAX]]
    headings = ["pid", "requests", "read %", "bytes", "p50 latency", "p99"]
    table("processes", Names(""), headings, rows)
    if len(processes) > ROWS_MAX:
        say(f"and {len(processes) - ROWS_MAX:,} others")


def print_environment(report: TraceReport) -> None:
    """The environment as Compaq's predictor asks for it."""
    found = report["environment"]
    reads = found["read_share"]
    if reads is None:
        say(f"\nenvironment: {NOT_RECORDED}, because the trace has no operations")
        return
    rows = []
    for name, share, random in [
        ("read", reads, found["read_random_share"]),
        ("write", 1 - reads, found["write_random_share"]),
        ("all", 1.0, found["random_share"]),
    ]:
        parts: tuple[float | None, float | None] = (None, None)
        if found["random_share"] is not None:
            parts = (0.0, 0.0) if random is None else (share * (1 - random), share * random)
        rows.append([name, *map(percent, parts), percent(share)])
    table("environment: % of the requests", Names(""), ["sequential", "random", "all"], rows)
    depth, rate = found["depth"], found["requests_per_s"]
    span, end = found["random_span_share_90"], report["highest_end_bytes"]
    sizes = sorted(report["sizes"]["sizes"], key=lambda size: -size["requests"])
    total = sum(size["requests"] for size in sizes)
    common = ", ".join(f"{format_bytes(s['length_bytes'])} {percent(s['requests'] / total)} %" for s in sizes[:5])
    say(f"requests in flight: {NOT_RECORDED if depth is None else figure(depth)}; {figure(rate)} IOPS")
    say(f"sizes: {common}{', others' * (len(sizes) > 5)}")
    say(f"length of sequential runs: {figure(found['mean_run_requests'])} requests")
    if span is not None:
        say(f"range of random seeks: 90 % go to {percent(span)} % of the addresses up to {size(end)}")


PARTS = (
    print_mix,
    print_sizes,
    print_rate,
    print_timeline,
    print_sequence,
    print_alignment,
    print_working_set,
    print_reuse,
    print_times,
    print_phases,
    print_devices,
    print_processes,
    print_environment,
)


def mix(operations: Mapping[str, Amount]) -> list[str]:
    """Requests, the share of reads, and bytes."""
    requests = sum(amount["requests"] for amount in operations.values())
    transferred = sum(amount["bytes"] for amount in operations.values())
    reads, writes = (operations[name]["requests"] if name in operations else 0 for name in ("read", "write"))
    known = reads + writes
    return [f"{requests:,}", percent(reads / known) if known else NOT_RECORDED, format_bytes(transferred)]


def busiest(entries: list[Entry]) -> list[Entry]:
    """Devices or processes, those with most requests first."""
    return sorted(entries, key=lambda entry: -sum(a["requests"] for a in entry["operations"].values()))


def within(bins: list[PowerBin], low: int, high: int | None) -> float:
    """Counts of the bins from ``low`` up to ``high``, both powers of two or 0."""
    return sum(entry["count"] for entry in bins if entry["from"] >= low and (high is None or entry["from"] < high))


def beyond(runs: list[PowerBin], least: int) -> float | None:
    """The share of runs of at least so many requests, a power of two."""
    total = sum(entry["count"] for entry in runs)
    return within(runs, least, None) / total if total else None


def exactness(sampled_rate: float) -> str:
    """Whether figures are counts or estimates."""
    return "exact" if sampled_rate == 1 else f"estimated from 1 block in {1 / sampled_rate:,.0f}"


def percent(share: float | None, digits: int = 1) -> str:
    """A share as a percentage."""
    return NOT_RECORDED if share is None else f"{100 * share:.{digits}f}"


def figure(value: float | None) -> str:
    """A number with about three digits that count."""
    if value is None:
        return NOT_RECORDED
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def size(value: float | None) -> str:
    """Bytes."""
    return NOT_RECORDED if value is None else format_bytes(round(value))


def duration(value_ns: float | None) -> str:
    """Nanoseconds."""
    return NOT_RECORDED if value_ns is None else format_duration_ns(round(value_ns))
