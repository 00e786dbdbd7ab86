"""Tables of the analysis of a trace. Shares are percentages; missing data are reported in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

from headstack._native import format_bytes, format_duration_ns
from headstack.cli.answers import answer_of_trace
from headstack.cli.output import print_notes_of, print_table, say
from headstack.cli.traces.traces import format_start, print_remarks
from headstack.io.columns import Column, Figures, Names
from headstack.traces.analysed import cache_size
from headstack.traces.analysis import Analysis
from headstack.traces.analysis_time import PHASES
from headstack.traces.endurance import Endurance
from headstack.traces.report_times import Percentiles, TimelineBin
from headstack.traces.report_types import Amount, DeviceReport, PowerBin, ProcessReport, SizeCount, TraceReport
from headstack.traces.traces import formats

NOT_RECORDED = "not recorded"
COUNTS: tuple[Literal["requests", "reads", "writes"], ...] = ("requests", "reads", "writes")
ROWS_MAX = 12
"""Maximum number of rows of the tables of sizes, caches, devices and processes; JSON has all."""

Entry = TypeVar("Entry", DeviceReport, ProcessReport)
Pick = Callable[[TimelineBin], float | None]


def print_analysis(analysis: Analysis, endurance: Endurance | None = None) -> None:
    """Prints all tables of an analysis, and first how long an SSD lasts, if requested; JSON has more figures."""
    report, meta = analysis.report, analysis.meta
    if endurance is not None:
        say(f"{endurance}.")
        say(f"note: {endurance.assumptions}\n")
    say(f"{answer_of_trace(report)}\n")
    for origin in meta["origin"]:
        say(f"{origin['file']}: {formats().get(origin['format'], origin['format'])}")
    start = "" if report["first_arrival_ns"] is None else format_start(meta, report["first_arrival_ns"])
    long = "times not recorded" if meta["clock"] == "order" else f"{start}{format_duration(report['duration_ns'])} long"
    say(f"{report['requests']:,} requests, {long}")
    if meta.get("response") is not None:
        say(f"latency: {meta['response'].replace('-', ' ')}")
    for print_part in PARTS:
        print_part(report)
    print()
    print_notes_of(report["notes"])
    print_remarks(meta)


def print_titled_table(title: str, first: Column, others: list[str], rows: list[list[str]]) -> None:
    """Prints a table under its title; its columns are ordered by importance."""
    say(f"\n{title}")
    print_table([first, *(Figures(heading, rank) for rank, heading in enumerate(others))], rows)


def print_mix(report: TraceReport) -> None:
    """Prints operations and their rates."""
    seconds = report["duration_ns"] / 1e9

    def row(name: str, amount: Amount) -> list[str]:
        requests, transferred = amount["requests"], amount["bytes"]
        return [
            name,
            f"{requests:,}",
            format_percent(requests / report["requests"]),
            format_bytes(transferred),
            format_bytes(round(transferred / requests)),
            format_figure(requests / seconds) if seconds else "",
            format_figure(transferred / seconds / 1e6) if seconds else "",
        ]

    rows = [row(name, amount) for name, amount in report["operations"].items()]
    if report["requests"]:
        rows.append(row("all", {"requests": report["requests"], "bytes": report["bytes"]}))
    print_titled_table("mix", Names(""), ["requests", "%", "bytes", "mean size", "IOPS", "MB/s"], rows)
    if report["flags"]:
        say("flags: " + ", ".join(f"{name} {count:,}" for name, count in report["flags"].items()))


def print_sizes(report: TraceReport) -> None:
    """Prints the most frequent request sizes, in order of size."""
    sizes = report["sizes"]
    frequent = sorted(sizes["sizes"], key=lambda entry: (-entry["requests"], entry["length_bytes"]))
    total = sum(entry["requests"] for entry in frequent)
    if not total:
        return
    shown, others = frequent[:ROWS_MAX], frequent[ROWS_MAX:]

    def row(name: str, of: list[SizeCount]) -> list[str]:
        requests, reads, writes = (sum(entry[key] for entry in of) for key in COUNTS)
        return [name, f"{requests:,}", format_percent(requests / total), f"{reads:,}", f"{writes:,}"]

    by_length = sorted(shown, key=lambda entry: entry["length_bytes"])
    rows = [row(format_bytes(entry["length_bytes"]), [entry]) for entry in by_length]
    if others:
        rows.append(row(f"{len(others):,} others", others))
    print_titled_table("sizes", Names(""), ["requests", "%", "reads", "writes"], rows)
    quantiles = [
        ("median", sizes["p50_bytes"]),
        ("p90", sizes["p90_bytes"]),
        ("p99", sizes["p99_bytes"]),
        ("greatest", sizes["max_bytes"]),
    ]
    say(
        f"mean {format_size(sizes['mean_bytes'])}, "
        + ", ".join(f"{name} {format_size(value)}" for name, value in quantiles)
    )


def print_rate(report: TraceReport) -> None:
    """Prints gaps, peak rates at several time scales, and self-similarity."""
    arrivals = report["arrivals"]
    rows = [
        [
            format_duration(scale["bin_ns"]),
            format_figure(scale["mean"] * 1e9 / scale["bin_ns"]),
            format_figure(scale["mean"] * scale["peak_over_mean"] * 1e9 / scale["bin_ns"]),
            format_figure(scale["peak_over_mean"]),
            format_figure(scale["index_of_dispersion"]),
        ]
        for scale in arrivals["scales"]
        if scale["bin_ns"] in SCALES_NS
    ]
    print_titled_table("rate, in bins of", Names(""), ["mean IOPS", "peak IOPS", "peak/mean", "variance/mean"], rows)
    gaps = arrivals["gaps_ns"]
    if gaps is None:
        say(f"gaps between arrivals: mean {format_duration(arrivals['mean_gap_ns'])}, the rest {NOT_RECORDED}")
    else:
        say(
            f"gaps between arrivals: mean {format_duration(gaps['mean'])}, median {format_duration(gaps['p50'])}, "
            f"p99 {format_duration(gaps['p99'])}, max {format_duration(gaps['max'])}; "
            f"coefficient of variation {format_figure(arrivals['gap_variation'])} (1 is Poisson)"
        )
    hurst = arrivals["hurst"]
    if hurst is None:
        say("Hurst exponent: too few bins to fit")
    else:
        say(
            f"Hurst exponent: {hurst['exponent']:.2f} (0.5 is Poisson), from bins of "
            f"{format_duration(hurst['from_ns'])} to {format_duration(hurst['to_ns'])}, R² {hurst['r_squared']:.2f}"
        )


SCALES_NS = (*(10**power for power in range(4, 11)), *(s * 10**9 for s in (60, 600, 3_600, 86_400, 864_000)))


def print_timeline(report: TraceReport) -> None:
    """Prints range, median and time of the maximum of each figure; JSON and pictures show all bins."""
    timeline = report["timeline"]
    bins = [entry for entry in timeline["bins"] if entry["to_ns"] > entry["from_ns"]]
    if len(bins) < 2:
        return

    def rate(key: Literal["requests", "bytes"], factor: float) -> Pick:
        return lambda entry: entry["all"][key] * factor * 1e9 / (entry["to_ns"] - entry["from_ns"])

    def response(kind: Literal["read", "write"]) -> Pick:
        return lambda entry: None if (times := entry[kind]["response"]) is None else times["p99_ns"]

    measures: list[tuple[str, Pick, Callable[[float | None], str]]] = [
        ("IOPS", rate("requests", 1.0), format_figure),
        ("MB/s", rate("bytes", 1e-6), format_figure),
        ("reads p99", response("read"), format_duration),
        ("writes p99", response("write"), format_duration),
        ("in flight", lambda entry: entry["mean_depth"], format_figure),
        ("touched", lambda entry: entry["all"]["touched_bytes"], format_size),
        ("re-used in a bin %", lambda entry: entry["all"]["reused_in_bin"], format_percent),
        ("re-used %", lambda entry: entry["all"]["reused"], format_percent),
    ]
    rows = []
    for name, pick, show in measures:
        timed = [(value, entry["from_ns"]) for entry in bins if (value := pick(entry)) is not None]
        if timed:
            values = sorted(value for value, _ in timed)
            greatest, at_ns = max(timed, key=lambda pair: pair[0])
            rows.append([name, *map(show, (values[0], values[len(values) // 2], greatest)), format_duration(at_ns)])
    headings = ["least", "median", "max", "max at"]
    rate_of_blocks = timeline["sampled_rate"]
    how = "" if rate_of_blocks is None or rate_of_blocks == 1 else f", blocks {describe_exactness(rate_of_blocks)}"
    print_titled_table(
        f"over time, {len(bins)} bins of {format_duration(timeline['bin_ns'])}{how}", Names(""), headings, rows
    )


def print_phases(report: TraceReport) -> None:
    """Prints the time that requests spend in each phase, by btt's names."""
    phases = report["phases"]
    if phases is None:
        say(f"\nphases: {NOT_RECORDED}")
        return
    rows = []
    titled = [(f"{name.upper()}: {meaning}", phases["all"].get(name)) for name, meaning in PHASES]
    titled += [
        (f"D2C of {kind}s", phases_of_kind.get("d2c")) for kind, phases_of_kind in phases["by_operation"].items()
    ]
    for title, times in titled:
        if times is not None:
            shown_ns = (times["mean_ns"], times["p50_ns"], times["p99_ns"], times["max_ns"])
            rows.append([title, f"{times['count']:,}", *map(format_duration, shown_ns)])
    print_titled_table("phases, named as in btt", Names(""), ["requests", "mean", "p50", "p99", "max"], rows)
    missing = [name.upper() for name in ("q2g", "g2i", "i2d") if name not in phases["all"]]
    if missing:
        say(f"{', '.join(missing)}: {NOT_RECORDED}")


def print_sequence(report: TraceReport) -> None:
    """Prints sequential runs, streams and seeks."""
    sequence = report["sequence"]
    rows = [
        [
            name,
            format_percent(runs["share"]),
            f"{runs['runs']:,}",
            format_figure(runs["mean_requests"]),
            format_size(runs["mean_bytes"]),
            *(format_percent(share_of_at_least(runs["requests"], least)) for least in (2, 4, 16, 64)),
        ]
        for name, runs in [("strict", sequence["strict"]), ("32 streams", sequence["streams"])]
    ]
    long = [f"% of ≥{least}" for least in (2, 4, 16, 64)]
    headings = ["sequential %", "runs", "requests a run", "bytes a run", *long]
    print_titled_table("sequential runs", Names(""), headings, rows)
    streams, most = sequence["mean_concurrent_streams"], sequence["max_concurrent_streams"]
    say(f"concurrent streams: mean {format_figure(streams)}, max {most}")
    seeks = [("forward", sequence["forward_seeks_bytes"]), ("backward", sequence["backward_seeks_bytes"])]
    total = sum(seek["count"] for _, bins in seeks for seek in bins)
    if total:
        bounds = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 4 << 30]
        edges = [0, 1, *bounds]
        rows = [
            [
                name,
                *(
                    format_percent(count_within(bins, low, high) / total)
                    for low, high in zip(edges, [*edges[1:], None], strict=True)
                ),
            ]
            for name, bins in seeks
        ]
        headings = ["0", *(f"< {format_bytes(bound)}" for bound in bounds), f"≥ {format_bytes(bounds[-1])}"]
        print_titled_table("seeks: % from the end of a request to the start of the next", Names(""), headings, rows)
        say(f"mean seek: {format_size(sequence['mean_seek_bytes'])}")


def print_alignment(report: TraceReport) -> None:
    """Prints the alignment of requests, and overlaps with requests in flight."""
    shares = [share for share in report["alignment"]["shares"] if share["align_bytes"] in ALIGNMENTS]
    if shares:
        rows = [[name, *(format_percent(share[name]) for share in shares)] for name in ALIGNED]
        headings = [format_bytes(share["align_bytes"]) for share in shares]
        print_titled_table("alignment: % that are a multiple of", Names(""), headings, rows)
        say(f"all are multiples of {format_size(report['alignment']['common_bytes'])}")
    overlap = None if report["depth"] is None else report["depth"]["overlap_share"]
    overlapping = NOT_RECORDED if overlap is None else f"{format_percent(overlap)} % of the requests"
    say(f"overlap with a request in flight: {overlapping}")


ALIGNED: tuple[Literal["offset", "length", "both"], ...] = ("offset", "length", "both")
ALIGNMENTS = tuple(1 << power for power in (9, 10, 12, 13, 14, 15, 16, 17, 18, 20))


def print_working_set(report: TraceReport) -> None:
    """Prints the working set of the whole trace and of time windows."""
    blocks = report["working_set"]
    if blocks is None or not blocks["references"]:
        return
    rows = [["whole trace", format_size(blocks["touched_bytes"]), ""]]
    rows += [
        [format_duration(window["window_ns"]), format_size(window["mean_bytes"]), format_size(window["max_bytes"])]
        for window in blocks["windows"]
        if window["window_ns"] < report["duration_ns"]
    ]
    how = describe_exactness(blocks["sampled_rate"])
    print_titled_table(
        f"working set, blocks of {format_bytes(blocks['block_bytes'])}, {how}", Names("in"), ["mean", "most"], rows
    )
    say(f"read {format_size(blocks['read_bytes'])}, written {format_size(blocks['written_bytes'])}")
    after = [(key.replace("_", " "), blocks["successions"][key]) for key in SUCCESSIONS]
    total = sum(count for _, count in after)
    if total:
        parts = (f"{name} {format_percent(count / total)} %" for name, count in after)
        say("blocks touched again: " + ", ".join(parts))


SUCCESSIONS: tuple[Literal["read_after_read", "read_after_write", "write_after_read", "write_after_write"], ...] = (
    "read_after_read",
    "read_after_write",
    "write_after_read",
    "write_after_write",
)


def print_reuse(report: TraceReport) -> None:
    """Prints the miss ratio of LRU caches of up to twelve sizes."""
    reuse = report["reuse"]
    if reuse is None or not reuse["references"]:
        return
    curve, unit = reuse["lru_curve"], reuse["block_bytes"]
    banded = reuse["sampled_rate"] < 1
    step = max(1, -(-(len(curve) - 1) // (ROWS_MAX - 1)))
    # Search from the end for the smallest cache that holds all blocks.
    points = curve[::-step][::-1]
    rows = []
    for point in points:
        row = [
            f"{point['cache']:,}" if unit is None else format_bytes(cache_size(point)),
            format_percent(point["miss_ratio"], 2),
        ]
        if banded:
            row += [format_percent(point["low"], 2), format_percent(point["high"], 2)]
        rows.append(row)
    unit_name = "requests" if unit is None else f"blocks of {format_bytes(unit)}"
    band = ["95 % from", "to"] if banded else []
    title = f"re-use of {unit_name}, {describe_exactness(reuse['sampled_rate'])}: misses of an LRU cache"
    print_titled_table(title, Figures("cache", 0), ["miss %", *band], rows)
    say(f"{reuse['references']:,} references to {'' if not banded else 'about '}{reuse['distinct']:,.0f} {unit_name}")


def print_times(report: TraceReport) -> None:
    """Prints requests in flight and latencies."""
    depth, response = report["depth"], report["response"]
    if depth is None:
        say(f"\nrequests in flight: {NOT_RECORDED}\nlatency: {NOT_RECORDED}")
        return
    by_depth = {entry["from"]: entry for entry in response["by_depth"]}
    rows = []
    for low in dict.fromkeys([0, *(1 << power for power in range(11)), *by_depth]):
        high = max(1, 2 * low)
        share = sum(depth["time_shares"][low:high])
        if share or low in by_depth:
            entry = by_depth.get(low)
            name = str(low) if high - low <= 1 else f"{low} to {high - 1}"
            arrivals = ["0", ""] if entry is None else [f"{entry['requests']:,}", format_duration(entry["mean_ns"])]
            rows.append([name, format_percent(share), *arrivals])
    print_titled_table("requests in flight", Names(""), ["% of the time", "arrivals", "mean latency"], rows)
    say(
        f"mean {format_figure(depth['mean'])}, at arrivals {format_figure(depth['mean_at_arrival'])}, "
        f"max {depth['max']:,}"
    )
    rows = [summary_row(name, summary) for name, summary in response["by_operation_ns"].items()]
    if response["all_ns"] is not None:
        rows.append(summary_row("all", response["all_ns"]))
    if response["wait_ns"] is not None:
        rows.append(summary_row("wait before issue", response["wait_ns"]))
    headings = ["requests", "mean", "p50", "p90", "p99", "p99.9", "greatest"]
    print_titled_table("latency", Names(""), headings, rows)
    rows = [
        [f"from {format_bytes(entry['from'])}", f"{entry['requests']:,}", format_duration(entry["mean_ns"])]
        for entry in response["by_size_bytes"]
    ]
    print_titled_table("latency by size", Names(""), ["requests", "mean"], rows)


PERCENTILES: tuple[Literal["mean", "p50", "p90", "p99", "p999", "max"], ...] = (
    "mean",
    "p50",
    "p90",
    "p99",
    "p999",
    "max",
)


def summary_row(name: str, summary: Percentiles) -> list[str]:
    """Formats a row of latencies."""
    return [name, f"{summary['count']:,}", *(format_duration(summary[key]) for key in PERCENTILES)]


def print_devices(report: TraceReport) -> None:
    """Prints one row for each of the busiest devices."""
    if len(report["devices"]) < 2:
        return
    devices = busiest(report["devices"])
    rows = [
        [
            device["name"],
            *format_mix(device["operations"]),
            format_percent(device["sequence"]["streams"]["share"]),
            format_size(device["highest_end_bytes"]),
            format_duration(device["mean_latency_ns"]),
            format_figure(device["mean_depth"]),
        ]
        for device in devices[:ROWS_MAX]
    ]
    headings = ["requests", "read %", "bytes", "seq. %", "highest end", "mean latency", "depth"]
    print_titled_table("devices", Names(""), headings, rows)
    if len(devices) > ROWS_MAX:
        say(f"and {len(devices) - ROWS_MAX:,} others")


def print_processes(report: TraceReport) -> None:
    """Prints one row for each of the busiest processes."""
    processes = busiest(report["processes"])
    if not processes:
        say(f"\nprocesses: {NOT_RECORDED}")
        return
    slices = report["latency"]["by_process"] if report["latency"] is not None else []
    times = {(part["of"]["pid"], part["of"]["name"]): part["all"] for part in slices}

    def row(process: ProcessReport) -> list[str]:
        latencies = times.get((process["pid"], process["name"]))
        p50_ns, p99_ns = (None, None) if latencies is None else (latencies["p50_ns"], latencies["p99_ns"])
        names = [process["name"] or NOT_RECORDED, str(process["pid"])]
        return [*names, *format_mix(process["operations"]), format_duration(p50_ns), format_duration(p99_ns)]

    rows = [row(process) for process in processes[:ROWS_MAX]]
    headings = ["pid", "requests", "read %", "bytes", "p50 latency", "p99"]
    print_titled_table("processes", Names(""), headings, rows)
    if len(processes) > ROWS_MAX:
        say(f"and {len(processes) - ROWS_MAX:,} others")


def print_environment(report: TraceReport) -> None:
    """Prints the environment in the form that Compaq's predictor used."""
    environment = report["environment"]
    reads = environment["read_share"]
    if reads is None:
        say(f"\nenvironment: {NOT_RECORDED}, because the trace has no operations")
        return
    rows = []
    for name, share, random in [
        ("read", reads, environment["read_random_share"]),
        ("write", 1 - reads, environment["write_random_share"]),
        ("all", 1.0, environment["random_share"]),
    ]:
        parts: tuple[float | None, float | None] = (None, None)
        if environment["random_share"] is not None:
            parts = (0.0, 0.0) if random is None else (share * (1 - random), share * random)
        rows.append([name, *map(format_percent, parts), format_percent(share)])
    print_titled_table("environment: % of the requests", Names(""), ["sequential", "random", "all"], rows)
    depth, rate = environment["depth"], environment["requests_per_s"]
    span, end = environment["random_span_share_90"], report["highest_end_bytes"]
    sizes = sorted(report["sizes"]["sizes"], key=lambda entry: -entry["requests"])
    total = sum(entry["requests"] for entry in sizes)
    common = ", ".join(
        f"{format_bytes(s['length_bytes'])} {format_percent(s['requests'] / total)} %" for s in sizes[:5]
    )
    say(f"requests in flight: {NOT_RECORDED if depth is None else format_figure(depth)}; {format_figure(rate)} IOPS")
    say(f"sizes: {common}{', others' * (len(sizes) > 5)}")
    say(f"length of sequential runs: {format_figure(environment['mean_run_requests'])} requests")
    if span is not None:
        say(f"range of random seeks: 90 % go to {format_percent(span)} % of the addresses up to {format_size(end)}")


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


def format_mix(operations: Mapping[str, Amount]) -> list[str]:
    """Formats requests, the share of reads, and bytes."""
    requests = sum(amount["requests"] for amount in operations.values())
    transferred = sum(amount["bytes"] for amount in operations.values())
    reads, writes = (operations[name]["requests"] if name in operations else 0 for name in ("read", "write"))
    reads_and_writes = reads + writes
    return [
        f"{requests:,}",
        format_percent(reads / reads_and_writes) if reads_and_writes else NOT_RECORDED,
        format_bytes(transferred),
    ]


def busiest(entries: list[Entry]) -> list[Entry]:
    """Sorts devices or processes by their number of requests, largest first."""
    return sorted(entries, key=lambda entry: -sum(a["requests"] for a in entry["operations"].values()))


def count_within(bins: list[PowerBin], low: int, high: int | None) -> float:
    """Sums the bins from ``low`` up to ``high``, both powers of two or 0."""
    return sum(entry["count"] for entry in bins if entry["from"] >= low and (high is None or entry["from"] < high))


def share_of_at_least(runs: list[PowerBin], least: int) -> float | None:
    """Returns the share of runs of at least this many requests, a power of two."""
    total = sum(entry["count"] for entry in runs)
    return count_within(runs, least, None) / total if total else None


def describe_exactness(sampled_rate: float) -> str:
    """Describes whether figures are exact or estimated."""
    return "exact" if sampled_rate == 1 else f"estimated from 1 block in {1 / sampled_rate:,.0f}"


def format_percent(share: float | None, digits: int = 1) -> str:
    """Formats a share as a percentage."""
    return NOT_RECORDED if share is None else f"{100 * share:.{digits}f}"


def format_figure(value: float | None) -> str:
    """Formats a number with about three significant digits."""
    if value is None:
        return NOT_RECORDED
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def format_size(value: float | None) -> str:
    """Formats a number of bytes."""
    return NOT_RECORDED if value is None else format_bytes(round(value))


def format_duration(value_ns: float | None) -> str:
    """Formats a duration."""
    return NOT_RECORDED if value_ns is None else format_duration_ns(round(value_ns))
