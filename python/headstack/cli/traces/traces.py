"""``headstack trace``: files of recorded requests."""

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
from headstack.io.tables import written as to_file
from headstack.io.terminal import clear, rewrite
from headstack.io.values import size_bytes, whole
from headstack.traces.trace_types import Counts, Meta, TraceInfo, Volume
from headstack.traces.traces import Trace, capture, export_formats, format_lines, formats
from headstack.traces.volumes import FIGURES, NAMES

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

STEPS = (
    ("kind=read,write", "only these operations: read, write, trim, flush, other, unknown"),
    ("device=hm.0,hm.1", "only these devices"),
    ("process=fio,4711", "only these processes, by name or number"),
    ("time=10s-20min", "only what arrives in this part of the recording; 20min- is the rest of it"),
    ("first=1000000", "only the first requests"),
    ("clip=0-36GB", "only these addresses; what lies there in part is cut"),
    ("fold=36GB", "addresses modulo the range, also 10GB-46GB"),
    ("shift=-10GiB", "addresses moved"),
    ("stack=1TB", "all devices on one, each so far behind the one before"),
    ("time-scale=0.5", "arrivals times this: half is twice as fast"),
    ("address-scale=2", "addresses times this, down to a multiple of 512"),
    ("sample=0.1", "a share of the requests, by chance; sample=0.1@7 by another seed"),
    ("sample-addresses=0.01", "the requests to a share of the 4 KiB blocks: re-use stays as it is"),
    ("unknown=read", "requests without a recorded operation are taken for these"),
    ("strip-names", "without names, dates and numbers of processes; addresses, gaps and sizes stay recognisable"),
)

COLUMNS = """The columns of any other table are declared with --columns, by header name or number from 1:
  time=ts:us,offset=lba:512,length=size,op=rw,device=vol,response=lat:ms
time and response with their unit (s, ms, us, ns, 100ns), offset and length in bytes or in sectors of so many. Without
time, requests are numbered. key=NAME stands for an offset, block=BYTES for a length. Also separator=; (or tab, blank:
any number of blanks) skip=LINES base=unix|recording read=WORD|WORD write=WORD trim=WORD pid= process= count=. The same
keys, a line each, may be in a file: --columns mine.toml, or in one of a folder, of which the one that fits is taken."""


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
    """Files, and how they are read."""
    decorators: list[Decorator] = [
        click.argument(
            "files",
            nargs=-1,
            required=True,
            metavar="TRACE...",
            type=SOURCE,
            help="Recorded requests, in any format; - for stdin.",
        ),
        *reading_options(),
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


def reading_options() -> list[Decorator]:
    """How a trace is read."""
    return [
        click.option(
            "-s",
            "--step",
            "steps",
            multiple=True,
            metavar="STEP",
            type=Among([f"{step.partition('=')[0]}=" if "=" in step else step for step, _ in STEPS]),
            help="Transform on the way; repeatable.",
        ),
        click.option(
            "--select",
            "where",
            metavar="CONDITION",
            help="Only devices that are so: 'requests>1e6 and read_share<0.2'; see headstack trace volumes.",
        ),
        click.option("--top", metavar="N", help="Only so many devices, those with most of --by."),
        click.option(
            "--by",
            metavar="FIELD",
            default="requests",
            type=Among(FIGURES),
            help="What --top goes by.",
            show_default=True,
        ),
        click.option(
            "--format", "format", metavar="NAME", type=Among(formats), help="The format, where content does not tell."
        ),
        click.option(
            "--columns",
            type=SOURCE,
            metavar="TEXT",
            help='Columns of a table: "time=ts:us,offset=lba:512,length=size,op=rw", or a file that declares them; '
            'see "headstack trace formats".',
        ),
        click.option(
            "--sector",
            metavar="SIZE",
            help="Bytes that addresses count in, where the format leaves it open (spc, blocks, keys, mooncake, "
            "oracle-general, lcs, disksim, mqsim).",
        ),
        click.option(
            "--unit", metavar="UNIT", help="Unit of times, where the format leaves it open (mqsim, mooncake)."
        ),
        click.option(
            "--at",
            metavar="queue|issue",
            type=Among(("queue", "issue")),
            help="Where a Linux block trace counts requests.",
        ),
        click.option("--skip-bad", is_flag=True, help="Count lines that cannot be accepted, instead of refusing."),
        click.option("-q", "--quiet", is_flag=True, help="No progress."),
    ]


def opened(files: tuple[str, ...], given: SourceOptions) -> Trace:
    """The trace that the options of ``source_options`` name."""
    sector = given["sector"]
    trace = Trace(
        *map(read_from, files),
        format=given["format"],
        skip_bad=given["skip_bad"],
        steps=given["steps"],
        columns=given["columns"],
        sector_bytes=None if sector is None else size_bytes("--sector", f"{sector}B" if sector.isdigit() else sector),
        time_unit=given["unit"],
        at=given["at"],
    )
    if given["where"] is None and given["top"] is None:
        return trace
    return trace.select(
        given["where"], top=None if given["top"] is None else whole("--top", given["top"]), by=given["by"]
    )


@contextmanager
def counting(what: str, quiet: bool) -> Iterator[Callable[[int], object] | None]:
    """Shows on stderr how many requests were read, and how fast."""
    if quiet:
        yield None
        return
    started, shown = time.monotonic(), 0.0
    on_terminal = not is_plain(sys.stderr)

    def show(requests: int) -> None:
        nonlocal shown
        elapsed = time.monotonic() - started
        if elapsed < SILENT_S or elapsed - shown < (0.2 if on_terminal else 5.0):
            return
        shown = elapsed
        line = f"headstack: {what}: {requests:,} requests, {requests / elapsed:,.0f}/s"
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
    """Recorded traces: import, export, understand, synthesize, split, capture.

    Every command reads every format (see "headstack trace formats"), compressed or not, told by content, and transforms
    requests on the way with --step (see "headstack trace steps"). Replay a trace with "headstack replay".
    """


@trace.command("formats")
@wide_option
def list_formats() -> None:
    """List the formats that are read and written."""
    written = export_formats()
    rows = [
        [name, title, "read, written" if name in written or name == "parquet" else "read"]
        for name, title in formats().items()
    ]
    rows += [[name, title, "written"] for name, title in written.items() if name not in formats()]
    print_table([Names("name"), Prose("format"), Words("", 0)], rows)
    say("\nA line of each:")
    for name, line in format_lines().items():
        say(f"  {name}: {line.strip()}")
    say(f"\n{COLUMNS}")


@trace.command("steps")
@wide_option
def list_steps() -> None:
    """List the transformations that --step takes.

    They are carried out in the order given, and recorded in the metadata of what is written.
    """
    print_table([Names("step"), Prose("what passes, and how", 0)], STEPS)


@trace.command("import")
@source_options
@click.option("-o", "--output", type=OUTPUT, required=True, metavar="FILE.parquet", help="The stored form.")
def import_(files: tuple[str, ...], output: str, quiet: bool, **given: Unpack[SourceOptions]) -> None:
    """Write a trace in the stored form: Parquet, sorted by arrival, one row a request.

    Several files are merged by time; the CPUs of one blktrace belong together. Any tool that reads Parquet reads the
    result: its columns say their units, and what was not recorded is null.
    """
    with counting("import", quiet) as show:
        written = opened(files, given).to_parquet(output, show)
    with words_beside(output):
        say(f"{output}: {written['requests']:,} requests")
        print_remarks(written["meta"])


@trace.command("export")
@source_options
@click.option("-o", "--output", type=OUTPUT, required=True, metavar="FILE", help="The other program's file.")
@click.option(
    "--to", "to", required=True, metavar="NAME", type=Among(export_formats), help='See "headstack trace formats".'
)
def export(files: tuple[str, ...], output: str, to: str, quiet: bool, **given: Unpack[SourceOptions]) -> None:
    """Write a trace in another program's format, and say what that could not hold."""
    with counting("export", quiet) as show:
        written = opened(files, given).export(output, to, show)
    with words_beside(output):
        say(f"{output}: {written['requests']:,} requests")
        for what, number in written["losses"].items():
            say(f"not held: {number:,} {what}")
        print_remarks(written["meta"])


def words_beside(output: str) -> AbstractContextManager[object]:
    """What is said of a trace goes to stderr where the trace itself has stdout."""
    return redirect_stdout(sys.stderr) if _native.is_stdout(output) else nullcontext()


@trace.command("split")
@source_options
@click.option("-o", "--output", required=True, metavar="FOLDER", type=OUTPUT_FOLDER, help="Gets one file a device.")
def split(files: tuple[str, ...], output: str, quiet: bool, **given: Unpack[SourceOptions]) -> None:
    """Write the requests of each device to a file of its own."""
    check_folder(output)
    with counting("split", quiet) as show:
        for device, path in opened(files, given).split(output, show).items():
            say(f"{path}: {device}")


@trace.command("volumes")
@source_options
@output_options(csv="Write the table (- for stdout).", json="Write the table (- for stdout).")
@wide_option
def volumes(files: tuple[str, ...], quiet: bool, **given: Unpack[SourceOptions]) -> None:
    """List the devices of a trace with what they can be chosen by, most requests first.

    Every command that reads a trace takes --select and --top: --select 'requests>1e6 and read_share<0.2' --top 20 --by
    bytes. Fields are those of the table that --csv writes.
    """
    outputs = Outputs(given, {"csv": volumes_as_csv, "json": volumes_as_json})
    with counting("volumes", quiet) as show:
        found = opened(files, given).volumes(show)
    found.sort(key=lambda volume: volume["requests"], reverse=True)
    outputs.write(found, lambda: print_volumes(found))


def volumes_as_csv(found: list[Volume], path: Path | None = None) -> str:
    """A line a volume."""
    return to_csv(NAMES, found, path)


def volumes_as_json(found: list[Volume], path: Path | None = None) -> str:
    """A list of volumes."""
    return to_file(page_of(found), path)


def print_volumes(found: list[Volume]) -> None:
    """A line a volume."""

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
        for volume in found
    ]
    columns = [
        Names("volume"),
        Figures("requests", 0),
        Figures("read\nshare", 1),
        Figures("bytes", 2),
        Figures("footprint", 3),
        Figures("in ten\nminutes", 5),
        Figures("IO/s", 4),
        Figures("busiest\nsecond", 6),
    ]
    print_table(columns, rows)
    if found and found[0]["sampled_rate"] < 1:
        rate = found[0]["sampled_rate"]
        say(f"note: footprints are estimated from {rate:g} of the blocks, since all do not fit the memory")


@trace.command("info")
@source_options
@output_options(json="Write everything (- for stdout).")
@wide_option
def info(files: tuple[str, ...], json_path: str | None, quiet: bool, **given: Unpack[SourceOptions]) -> None:
    """Say what a trace holds: where it is from, its time, devices, operations."""
    outputs = Outputs({"json_path": json_path}, {"json": info_as_json})
    with counting("info", quiet) as show:
        told = opened(files, given).info(show)
    outputs.write(told, lambda: print_info(told))


def info_as_json(told: TraceInfo, path: Path | None = None) -> str:
    """All of it as JSON."""
    return to_file(page_of(told), path)


def print_info(told: TraceInfo) -> None:
    """Prints the metadata of a trace, and a line a device."""
    meta, summary = told["meta"], told["summary"]
    for origin in meta["origin"]:
        say(f"{origin['file']}: {formats().get(origin['format'], origin['format'])}")
    total = summary["total"]
    if total["arrivals_ns"] is not None:
        first_ns, last_ns = total["arrivals_ns"]
        long = f"{spoken_start(meta, first_ns)}{format_duration_ns(last_ns - first_ns)} long"
        say(f"time: {'not recorded' if meta['clock'] == 'order' else long}")
    if meta.get("response") is not None:
        say(f"response times: {meta['response'].replace('-', ' ')}")
    print()
    names = [device["name"] for device in meta["devices"]]
    has_places = "address_space" not in meta
    rows = [device_row(name, counts, has_places) for name, counts in zip(names, summary["devices"], strict=False)]
    if len(rows) > 1:
        rows.append(device_row("all", total, has_places))
    columns = [
        Names("device"),
        Figures("requests", 0),
        Figures("read"),
        Figures("write"),
        Figures("other", 4),
        Figures("read bytes", 2),
        Figures("written", 2),
        Figures("highest end", 3),
        Figures("mean response", 1),
    ]
    print_table(columns, rows)
    if summary["most_in_flight"]:
        say(f"\nin flight at most: {summary['most_in_flight']:,}")
    print_remarks(meta)


def device_row(name: str, counts: Counts, has_places: bool) -> list[str]:
    """A device's line; offsets of objects have no place on it."""
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
        format_bytes(counts["highest_end_byte"]) if has_places else "not recorded",
        "not recorded" if mean is None else format_duration_ns(mean),
    ]


def spoken_start(meta: Meta, first_ns: int) -> str:
    """When the first request arrived, as far as the trace says."""
    zero_ns = 0 if meta["clock"] == "unix" else meta.get("zero_unix_ns")
    if zero_ns is None:
        return ""
    start = datetime.fromtimestamp((zero_ns + first_ns) / 1e9, UTC)
    return f"from {start:%Y-%m-%d %H:%M:%S} UTC, "


def print_remarks(meta: Meta) -> None:
    """Prints counts of the reading, skipped lines, notes and steps."""
    for what, number in meta.get("counts", {}).items():
        say(f"counted: {number:,} {what}")
    if meta["rejected"]:
        say(f"skipped: {meta['rejected']:,} lines or records that cannot be accepted; the first of them:")
        for reject in meta.get("rejects", []):
            say(f"  {reject}")
    for note in meta.get("notes", []):
        say(f"note: {note}")
    for step in meta.get("steps", []):
        say(f"step: {step}")


@trace.command("capture")
@click.argument("device", metavar="DEVICE", type=SOURCE, help="A block device: /dev/NAME, or MAJOR:MINOR.")
@click.option(
    "-o", "--output", type=OUTPUT, required=True, metavar="FILE.parquet", help="The trace, in the stored form."
)
@click.option("--time", "time_limit", metavar="TIME", help="End after this time.")
@click.option("--requests", type=int, metavar="N", help="End after so many requests.")
@click.option(
    "--at",
    metavar="queue|issue",
    type=Among(("queue", "issue")),
    help="Requests as programs made them (default), or as the device got them.",
)
@click.option(
    "--method",
    metavar="tracepoints|tracer",
    type=Among(("tracepoints", "tracer")),
    help="How the kernel is listened to; the first that works.",
)
@click.option("--buffer", metavar="SIZE", help="What the kernel holds for each processor until it is read (16MiB).")
@click.option("-q", "--quiet", is_flag=True, help="No live rate.")
@signals.held()
def capture_(device: str, output: str, time_limit: str | None, quiet: bool, **given: Any) -> None:
    """Record the requests to a block device of this machine: /dev/NAME, a partition, or MAJOR:MINOR.

    Ends on time, number, Ctrl-C, SIGTERM or SIGHUP, and keeps what was recorded. The device is never opened, and the
    kernel's tracing is left as it was found. Needs root and tracefs (mount -t tracefs nodev /sys/kernel/tracing).
    """
    with live_rate(quiet) as show:
        told = capture(device, output, time=time_limit, progress=show, **given)
    rate = told["requests"] / told["seconds"] if told["seconds"] else 0.0
    counts = {what: number for what, number in told["meta"].get("counts", {}).items() if "lost" not in what}
    with words_beside(output):
        say(f"{output}: {told['requests']:,} requests in {told['seconds']:.1f} s, {rate:,.0f}/s")
        if told["lost"]:
            say(f"LOST: {told['lost']:,} events; a larger --buffer loses fewer")
        print_remarks({**told["meta"], "counts": counts})


@contextmanager
def live_rate(quiet: bool) -> Iterator[Callable[[int, int, float, float, float], object] | None]:
    """Shows on stderr how fast requests come, and how many the kernel lost."""
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
