"""``headstack trace``: commands for traces."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any, TypedDict, Unpack

import click

from headstack import _native
from headstack._native import format_bytes, format_duration_ns
from headstack.cli.completing import Among
from headstack.cli.files import OUTPUT, OUTPUT_FOLDER, SOURCE, check_folder, read_from
from headstack.cli.formats import output_options
from headstack.cli.loading import Late
from headstack.cli.output import SILENT_S, Outputs, print_table, say, wide_option
from headstack.io import signals
from headstack.io.columns import Figures, Names, Prose, Words, is_plain
from headstack.io.json_text import page_of
from headstack.io.tables import to_csv
from headstack.io.tables import written as write_text_output
from headstack.io.terminal import clear, rewrite
from headstack.io.values import size_bytes, whole
from headstack.traces.trace_types import Counts, Meta, TraceInfo, Volume
from headstack.traces.traces import Trace, capture, export_formats, format_lines, formats
from headstack.traces.volumes import FIGURES, NAMES

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

STEPS = (
    ("kind=read,write", "keep these operations: read, write, trim, flush, other, unknown"),
    ("device=hm.0,hm.1", "keep these devices"),
    ("process=fio,4711", "keep these processes, by name or number"),
    ("time=10s-20min", "keep this part of the trace; 20min- is the rest of it"),
    ("first=1000000", "keep the first requests"),
    ("clip=0-36GB", "keep these addresses; requests across the border are cut"),
    ("fold=36GB", "wrap addresses into the range, also 10GB-46GB"),
    ("shift=-10GiB", "shift addresses"),
    ("stack=1TB", "put all devices on one, each at an offset from the one before"),
    ("time-scale=0.5", "multiply arrival times; 0.5 is twice as fast"),
    ("address-scale=2", "multiply addresses, rounded down to 512"),
    ("sample=0.1", "keep a random share of the requests; sample=0.1@7 sets the seed"),
    ("sample-addresses=0.01", "keep requests to a share of the 4 KiB blocks, which preserves re-use"),
    ("unknown=read", "treat requests without a recorded operation as these"),
    (
        "strip-names",
        "remove names, dates and process IDs; addresses, interarrival times and sizes may identify the trace",
    ),
)

COLUMNS = """Declare the columns of any other table with --columns, by header name or number from 1:
  time=ts:us,offset=lba:512,length=size,op=rw,device=vol,response=lat:ms
time and response take a unit (s, ms, us, ns, 100ns), offset and length a sector size in bytes. Without time, requests
are numbered. key=NAME stands for an offset, block=BYTES for a length. More keys: separator=; (or tab, blank for any
number of blanks) skip=LINES base=unix|recording read=WORD|WORD write=WORD trim=WORD pid= process= count=. The
same keys can be in a file, one per line (--columns mine.toml), or in files of a folder, of which the one that fits is
used."""


class SourceOptions(TypedDict):
    """Values of ``reading_options``, as typed."""

    steps: tuple[str, ...]
    where: str | None
    """The condition of ``--select``."""
    top: str | None
    by: str
    format: str | None
    columns: str | None
    sector: str | None
    unit: str | None
    at: str | None
    skip_bad: bool


def source_options(command: Command) -> Command:
    """Adds trace files and the options that read them."""
    decorators: list[Decorator] = [
        click.argument(
            "files",
            nargs=-1,
            required=True,
            metavar="TRACE...",
            type=SOURCE,
            help="Trace files in any format; - for stdin.",
        ),
        *reading_options(),
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


def reading_options() -> list[Decorator]:
    """Returns the options that read a trace."""
    return [
        click.option(
            "-s",
            "--step",
            "steps",
            multiple=True,
            metavar="STEP",
            type=Among([f"{step.partition('=')[0]}=" if "=" in step else step for step, _ in STEPS]),
            help="Transform the trace, for example kind=read or clip=0-10GB; may be repeated, see headstack trace "
            "steps.",
        ),
        click.option(
            "--select",
            "where",
            metavar="CONDITION",
            help="SQL condition on devices, for example 'requests>1e6 and read_share<0.2'; see headstack trace "
            "volumes.",
        ),
        click.option("--top", metavar="N", help="Keep only this many devices, those with the largest --by."),
        click.option(
            "--by",
            metavar="FIELD",
            default="requests",
            type=Among(FIGURES),
            help="Column that --top sorts by.",
            show_default=True,
        ),
        click.option(
            "--format", "format", metavar="NAME", type=Among(formats), help="Trace format.  [default: detected]"
        ),
        click.option(
            "--columns",
            type=SOURCE,
            metavar="TEXT",
            help='Columns of a table, for example "time=ts:us,offset=lba:512,length=size,op=rw", or a file of '
            'them; see "headstack trace formats".',
        ),
        click.option(
            "--sector",
            metavar="SIZE",
            help="Block size of addresses, for formats that do not define it (spc, blocks, keys, mooncake, "
            "oracle-general, lcs, disksim, mqsim).",
        ),
        click.option("--unit", metavar="UNIT", help="Time unit, for formats that do not define it (mqsim, mooncake)."),
        click.option(
            "--at",
            metavar="queue|issue",
            type=Among(("queue", "issue")),
            help="Point at which a Linux block trace counts requests.",
        ),
        click.option("--skip-bad", is_flag=True, help="Skip and count invalid lines instead of refusing the trace."),
        click.option("-q", "--quiet", is_flag=True, help="Print no progress."),
    ]


def open_trace(files: tuple[str, ...], options: SourceOptions) -> Trace:
    """Opens the trace that the options of ``source_options`` select."""
    sector = options["sector"]
    trace = Trace(
        *map(read_from, files),
        format=options["format"],
        skip_bad=options["skip_bad"],
        steps=options["steps"],
        columns=options["columns"],
        sector_bytes=None if sector is None else size_bytes("--sector", f"{sector}B" if sector.isdigit() else sector),
        time_unit=options["unit"],
        at=options["at"],
    )
    if options["where"] is None and options["top"] is None:
        return trace
    return trace.select(
        options["where"], top=None if options["top"] is None else whole("--top", options["top"]), by=options["by"]
    )


@contextmanager
def show_progress(label: str, quiet: bool) -> Iterator[Callable[[int], object] | None]:
    """Shows the number and rate of requests read on stderr."""
    if quiet:
        yield None
        return
    started, shown = time.monotonic(), 0.0
    on_terminal = not is_plain(sys.stderr)

    def show(requests: int) -> None:
        nonlocal shown
        elapsed = time.monotonic() - started
        if not requests or elapsed < SILENT_S or elapsed - shown < (0.2 if on_terminal else 5.0):
            return
        shown = elapsed
        line = f"headstack: {label}: {requests:,} requests, {requests / elapsed:,.0f}/s"
        rewrite(sys.stderr, line, on_terminal)

    try:
        yield show
    finally:
        if on_terminal and shown:
            clear(sys.stderr)


@click.group(
    cls=Late,
    late={
        "analyze": "traces.analysis",
        "cache": "traces.caching",
        "synthesize": "traces.synthesizing",
        "replay": "traces.replays",
    },
)
def trace() -> None:
    """Import, export, analyse, synthesize, replay and record traces.

    \b
    headstack trace analyze db.parquet --endurance 1200TB
    headstack trace cache db.parquet --policy lru,arc --size 1GiB..64GiB
    headstack trace replay db.parquet 990-pro-2tb exos-x24-24tb

    All commands read all formats, also compressed (see "headstack trace formats"), and can transform requests with
    --step (see "headstack trace steps").
    """


@trace.command("formats")
@wide_option
def list_formats() -> None:
    """List the trace formats that headstack reads and writes.

    \b
    headstack trace formats
    """
    written = export_formats()
    rows = [
        [name, title, "read, written" if name in written or name == "parquet" else "read"]
        for name, title in formats().items()
    ]
    rows += [[name, title, "written"] for name, title in written.items() if name not in formats()]
    print_table([Names("name"), Prose("format"), Words("", 0)], rows)
    say("\nA line of each format:")
    for name, line in format_lines().items():
        say(f"  {name}: {line.strip()}")
    say(f"\n{COLUMNS}")


@trace.command("steps")
@wide_option
def list_steps() -> None:
    """List the transformations of --step.

    \b
    headstack trace steps
    headstack trace analyze db.parquet --step kind=read --step time=0s-10min

    Steps run in the given order, and are recorded in the metadata of the output.
    """
    print_table([Names("step"), Prose("what it does", 0)], STEPS)


@trace.command("import")
@source_options
@click.option("-o", "--output", type=OUTPUT, required=True, metavar="FILE.parquet", help="Write the trace as Parquet.")
def import_(files: tuple[str, ...], output: str, quiet: bool, **options: Unpack[SourceOptions]) -> None:
    """Import a trace: write it as Parquet.

    \b
    headstack trace import trace.blktrace.* -o db.parquet
    headstack trace import requests.csv --columns time=ts:us,offset=lba:512,length=size,op=rw -o db.parquet

    The table has one row per request, sorted by arrival. Several files are merged by time; all CPUs of one blktrace
    belong together. Any tool that reads Parquet can read the result: the columns state their units, and missing data
    are null.
    """
    with show_progress("import", quiet) as show:
        written = open_trace(files, options).to_parquet(output, show)
    with messages_to_stderr(output):
        say(f"{output}: {written['requests']:,} requests")
        print_remarks(written["meta"])


@trace.command("export")
@source_options
@click.option("-o", "--output", type=OUTPUT, required=True, metavar="FILE", help="Write the trace to this file.")
@click.option(
    "--to",
    "to",
    required=True,
    metavar="NAME",
    type=Among(export_formats),
    help='Format to write; see "headstack trace formats".',
)
def export(files: tuple[str, ...], output: str, to: str, quiet: bool, **options: Unpack[SourceOptions]) -> None:
    """Export a trace in the format of another program.

    \b
    headstack trace export db.parquet --to fio -o db.iolog

    Data that the format cannot hold are counted and reported.
    """
    with show_progress("export", quiet) as show:
        written = open_trace(files, options).export(output, to, show)
    with messages_to_stderr(output):
        say(f"{output}: {written['requests']:,} requests")
        for kind, number in written["losses"].items():
            say(f"lost: {number:,} {kind}")
        print_remarks(written["meta"])


def messages_to_stderr(output: str) -> AbstractContextManager[object]:
    """Redirects messages to stderr if the trace is written to stdout."""
    return redirect_stdout(sys.stderr) if _native.is_stdout(output) else nullcontext()


@trace.command("split")
@source_options
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FOLDER",
    type=OUTPUT_FOLDER,
    help="Folder for the traces, one file per device.",
)
def split(files: tuple[str, ...], output: str, quiet: bool, **options: Unpack[SourceOptions]) -> None:
    """Split a trace into one file per device.

    \b
    headstack trace split db.parquet -o volumes
    """
    check_folder(output)
    with show_progress("split", quiet) as show:
        for device, path in open_trace(files, options).split(output, show).items():
            say(f"{path}: {device}")


@trace.command("volumes")
@source_options
@output_options(csv="Write the table (- for stdout).", json="Write the table (- for stdout).")
@wide_option
def volumes(files: tuple[str, ...], quiet: bool, **options: Unpack[SourceOptions]) -> None:
    """List the devices of a trace with their statistics.

    \b
    headstack trace volumes db.parquet
    headstack trace volumes db.parquet --select 'requests>1e6 and read_share<0.2' --top 20 --by bytes

    All commands that read a trace take --select and --top. The fields are the columns of --csv.
    """
    outputs = Outputs(options, {"csv": write_volumes_csv, "json": write_volumes_json})
    with show_progress("volumes", quiet) as show:
        statistics = open_trace(files, options).volumes(show)
    statistics.sort(key=lambda volume: volume["requests"], reverse=True)
    outputs.write(statistics, lambda: print_volumes(statistics))


def write_volumes_csv(volumes: list[Volume], path: Path | None = None) -> str:
    """Writes one CSV row per volume."""
    return to_csv(NAMES, volumes, path)


def write_volumes_json(volumes: list[Volume], path: Path | None = None) -> str:
    """Writes the volumes as JSON."""
    return write_text_output(page_of(volumes), path)


def print_volumes(volumes: list[Volume]) -> None:
    """Prints one row per volume."""

    def number(value: float | None, decimals: int = 0) -> str:
        return "" if value is None else f"{value:,.{decimals}f}"

    rows = [
        [
            volume["volume"],
            number(volume["requests"]),
            number(volume["read_share"], 2),
            format_bytes(volume["bytes"]),
            format_bytes(round(volume["footprint_bytes"])),
            "" if volume["working_set_bytes"] is None else format_bytes(round(volume["working_set_bytes"])),
            number(volume["requests_per_s"], 1),
            number(volume["busiest_per_s"]),
        ]
        for volume in volumes
    ]
    columns = [
        Names("volume"),
        Figures("requests", 0),
        Figures("read\nshare", 1),
        Figures("bytes", 2),
        Figures("footprint", 3),
        Figures("in ten\nminutes", 5),
        Figures("IOPS", 4),
        Figures("busiest\nsecond", 6),
    ]
    print_table(columns, rows)
    if volumes and volumes[0]["sampled_rate"] < 1:
        rate = volumes[0]["sampled_rate"]
        say(f"note: footprints are estimated from {100 * rate:.3g} % of the blocks to fit into memory")


@trace.command("info")
@source_options
@output_options(json="Write all figures as JSON (- for stdout).")
@wide_option
def info(files: tuple[str, ...], json_path: str | None, quiet: bool, **options: Unpack[SourceOptions]) -> None:
    """Show source, time span, devices and operations of a trace.

    \b
    headstack trace info db.parquet
    """
    outputs = Outputs({"json_path": json_path}, {"json": write_info_json})
    with show_progress("info", quiet) as show:
        info = open_trace(files, options).info(show)
    outputs.write(info, lambda: print_info(info))


def write_info_json(info: TraceInfo, path: Path | None = None) -> str:
    """Writes all figures as JSON."""
    return write_text_output(page_of(info), path)


def print_info(info: TraceInfo) -> None:
    """Prints the metadata of a trace, and one row per device."""
    meta, summary = info["meta"], info["summary"]
    for origin in meta["origin"]:
        say(f"{origin['file']}: {formats().get(origin['format'], origin['format'])}")
    total = summary["total"]
    if total["arrivals_ns"] is not None:
        first_ns, last_ns = total["arrivals_ns"]
        long = f"{format_start(meta, first_ns)}{format_duration_ns(last_ns - first_ns)} long"
        say(f"time: {'not recorded' if meta['clock'] == 'order' else long}")
    if meta.get("response") is not None:
        say(f"latency: {meta['response'].replace('-', ' ')}")
    print()
    names = [device["name"] for device in meta["devices"]]
    has_addresses = "address_space" not in meta
    rows = [device_row(name, counts, has_addresses) for name, counts in zip(names, summary["devices"], strict=False)]
    if len(rows) > 1:
        rows.append(device_row("all", total, has_addresses))
    columns = [
        Names("device"),
        Figures("requests", 0),
        Figures("read"),
        Figures("write"),
        Figures("other", 4),
        Figures("read bytes", 2),
        Figures("written", 2),
        Figures("highest end", 3),
        Figures("mean latency", 1),
    ]
    print_table(columns, rows)
    if summary["most_in_flight"]:
        say(f"\nmost requests in flight: {summary['most_in_flight']:,}")
    print_remarks(meta)


def device_row(name: str, counts: Counts, has_addresses: bool) -> list[str]:
    """Formats the row of a device; a trace of objects has no addresses."""
    requests, sizes = counts["requests"], counts["bytes"]
    others = sum(requests.values()) - requests.get("read", 0) - requests.get("write", 0)
    mean = counts["response_sum_ns"] // counts["responses"] if counts["responses"] else None
    return [
        name,
        f"{sum(requests.values()):,}",
        f"{requests.get('read', 0):,}",
        f"{requests.get('write', 0):,}",
        f"{others:,}",
        format_bytes(sizes.get("read", 0)),
        format_bytes(sizes.get("write", 0)),
        format_bytes(counts["highest_end_byte"]) if has_addresses else "not recorded",
        "not recorded" if mean is None else format_duration_ns(mean),
    ]


def format_start(meta: Meta, first_ns: int) -> str:
    """Formats the time of the first request; returns an empty string if the trace does not record it."""
    zero_ns = 0 if meta["clock"] == "unix" else meta.get("zero_unix_ns")
    if zero_ns is None:
        return ""
    start = datetime.fromtimestamp((zero_ns + first_ns) / 1e9, UTC)
    return f"from {start:%Y-%m-%d %H:%M:%S} UTC, "


def print_remarks(meta: Meta) -> None:
    """Prints counts, skipped lines, notes and steps of a trace."""
    for kind, number in meta.get("counts", {}).items():
        say(f"counted: {number:,} {kind}")
    if meta["rejected"]:
        say(f"skipped: {meta['rejected']:,} invalid lines or records; the first of them:")
        for reject in meta.get("rejects", []):
            say(f"  {reject}")
    for note in meta.get("notes", []):
        say(f"note: {note}")
    for step in meta.get("steps", []):
        say(f"step: {step}")


@trace.command("capture")
@click.argument("device", metavar="DEVICE", type=SOURCE, help="Block device: /dev/NAME, or MAJOR:MINOR.")
@click.option("-o", "--output", type=OUTPUT, required=True, metavar="FILE.parquet", help="Write the trace as Parquet.")
@click.option("--time", "time_limit", metavar="TIME", help="Stop after this time, for example 10min.")
@click.option("--requests", type=int, metavar="N", help="Stop after this number of requests.")
@click.option(
    "--at",
    metavar="queue|issue",
    type=Among(("queue", "issue")),
    help="Record requests as programs issued them (default), or as they reached the device.",
)
@click.option(
    "--method",
    metavar="tracepoints|tracer",
    type=Among(("tracepoints", "tracer")),
    help="Kernel interface.  [default: the first that works]",
)
@click.option("--buffer", metavar="SIZE", help="Size of the kernel's buffer per processor.  [default: 16MiB]")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@signals.held()
def capture_(device: str, output: str, time_limit: str | None, quiet: bool, **options: Any) -> None:
    """Record the requests to a block device of this machine.

    \b
    headstack trace capture /dev/nvme0n1 -o db.parquet --time 10min

    Recording ends after the time or number of requests, or by Ctrl-C, SIGTERM or SIGHUP, and keeps the requests up to
    then. headstack does not open the device, and restores the kernel's tracing settings. It needs root and tracefs
    (mount -t tracefs nodev /sys/kernel/tracing).
    """
    with show_capture_progress(quiet) as show:
        captured = capture(device, output, time=time_limit, progress=show, **options)
    rate = captured["requests"] / captured["seconds"] if captured["seconds"] else 0.0
    counts = {kind: number for kind, number in captured["meta"].get("counts", {}).items() if "lost" not in kind}
    with messages_to_stderr(output):
        say(f"{output}: {captured['requests']:,} requests in {captured['seconds']:.1f} s, {rate:,.0f}/s")
        if captured["lost"]:
            say(f"LOST: {captured['lost']:,} events; use a larger --buffer")
        print_remarks({**captured["meta"], "counts": counts})


@contextmanager
def show_capture_progress(quiet: bool) -> Iterator[Callable[[int, int, float, float, float], object] | None]:
    """Shows the rate of requests and the number of lost kernel events on stderr."""
    if quiet:
        yield None
        return
    shown = -1.0
    on_terminal = not is_plain(sys.stderr)

    def show(requests: int, lost: int, per_s: float, bytes_per_s: float, elapsed: float) -> None:
        nonlocal shown
        if elapsed - shown < (0.2 if on_terminal else 5.0):
            return
        shown = elapsed
        losses = f", LOST {lost:,} events" if lost else ""
        line = (
            f"headstack: {elapsed:.0f} s, {requests:,} requests, {per_s:,.0f}/s, {bytes_per_s / 1e6:,.1f} MB/s{losses}"
        )
        rewrite(sys.stderr, line, on_terminal)

    try:
        yield show
    finally:
        if on_terminal and shown >= 0:
            clear(sys.stderr)
