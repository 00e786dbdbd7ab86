"""``headstack measure condition``: writes and reads a module of devices as one stream."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypedDict

import click

from headstack._native import InputError
from headstack.cli.command import Brief
from headstack.cli.completing import Among
from headstack.cli.files import KEPT, SOURCE, TARGET
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_table, say, wide_option
from headstack.cli.simulate.runs import split_list
from headstack.cli.targets import SHOW_EVERY_S, access_of, exit_code_of_reason, permission_options
from headstack.io import signals
from headstack.io.columns import Figures, Names, Prose, Words, is_plain
from headstack.io.terminal import clear, rewrite
from headstack.io.values import duration_ns, rate_bytes_per_s, size_bytes, whole
from headstack.measurement.access import Access
from headstack.measurement.tests.conditioning.log import read_log, settings_of
from headstack.measurement.tests.conditioning.logged import class_names
from headstack.measurement.tests.conditioning.records import LoggedTarget
from headstack.measurement.tests.conditioning.report import Pass, format_decimal
from headstack.measurement.tests.conditioning.session import Conditioning, Now, Settings
from headstack.measurement.tests.conditioning.session import condition as conditioned

EXIT_NOT_KEPT = 1


@click.command(cls=Brief)
@click.argument("targets", nargs=-1, type=TARGET, metavar="TARGET...", help="Devices of the module, in order.")
@click.option(
    "--pass",
    "passes",
    metavar="write,read",
    type=Among(("write", "read")),
    help="Passes to run, in order.  [default: write,read]",
)
@click.option("--read-only", is_flag=True, help="Same as --pass read; needs no permission.")
@click.option(
    "--block", metavar="SIZE", help="Block size: data that go to a device before the next one.  [default: 64KiB]"
)
@click.option("--ahead", metavar="N", help="Blocks that a device may be ahead of the slowest.  [default: 4]")
@click.option("--interval", metavar="TIME", help="Length of the reported intervals.  [default: 10s]")
@click.option("--size", metavar="SIZE", help="Use only this much of each device, from its start, for example 100GB.")
@click.option("--require", metavar="RATE", help="Required minimum rate of the module, for example 2050Mb/s or 256MB/s.")
@click.option("--log", type=KEPT, metavar="FILE", help="Log of all intervals, for --resume and --report.")
@click.option("--resume", is_flag=True, help="Resume the interrupted run of --log.")
@click.option("--report", type=SOURCE, metavar="FILE", help="Print the report of this log without measuring.")
@permission_options
@output_options(
    Conditioning,
    json="Write all figures as JSON (- for stdout).",
    csv="Write each interval of each device (- for stdout).",
    parquet="Write each interval of each device as Parquet.",
    plot="Draw rates and block times over the module.",
)
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@signals.held()
def condition(targets: tuple[str, ...], log: str | None, resume: bool, report: str | None, **options: Any) -> int:
    """Write, then read several devices as one stream.

    \b
    headstack measure condition /dev/sd[b-i] --read-only --require 2050Mb/s
    headstack measure condition /dev/sdb /dev/sdc --destroy sdb --destroy sdc --log module.log
    headstack measure condition --report module.log --plot module.png

    The TARGETs (eight in a module of Mark5 recorders) form one address space in blocks of 64 KiB, one device after the
    other. A device may be only a few blocks ahead, so that the slowest device limits the stream. The report shows the
    rate over the module, its minimum with position and limiting device, and a histogram of block times for each device
    in the classes of Mark5 recorders.

    Writing destroys the data: name each device or its serial number with --destroy (--overwrite for files, --create for
    new ones). With --log, conditioning survives Ctrl-C, crashes and power losses: --resume checks that the devices are
    the same, and resumes after the last logged interval.

    Exit code 1 means that the required rate is not met, or that blocks failed.
    """
    limit = None if options["require"] is None else rate_bytes_per_s("--require", options["require"]) * 8 / 1e6
    outputs = Outputs(options, Conditioning)
    if report is not None:
        if targets or log is not None or resume:
            raise InputError("--report: reads a log and measures nothing; remove targets, --log and --resume")
        conditioning = Conditioning.read(report)
    else:
        if not targets:
            raise InputError("TARGETs are missing: name the devices of the module, or a log with --report")
        settings = read_settings(options, log if resume else None)
        conditioning = run_conditioning(targets, settings, access_of(options), log, resume, options["quiet"])
    conditioning.require_mbit_per_s = limit
    outputs.write(conditioning, partial(print_conditioning, conditioning))
    return exit_code_of(conditioning)


def run_conditioning(
    targets: tuple[str, ...], settings: Settings, access: Access, log: str | None, resume: bool, quiet: bool
) -> Conditioning:
    """Conditions a module and shows progress."""
    with show_progress(quiet) as show:
        return conditioned(targets, settings, access, log=log, resume=resume, progress=show)


class StatedSettings(TypedDict, total=False):
    """Fields of ``Settings`` that are set by command-line options."""

    passes: tuple[str, ...]
    block_bytes: int
    ahead: int
    interval_ns: int
    device_bytes: int


def read_settings(options: Mapping[str, Any], resumed_log: str | None) -> Settings:
    """Returns the settings of the options, or those of the log to resume."""
    if options["read_only"] and options["passes"] is not None:
        raise InputError("--read-only, --pass: give only one of them")
    stated: StatedSettings = {}
    if options["read_only"] or options["passes"] is not None:
        stated["passes"] = ("read",) if options["read_only"] else tuple(split_list(options["passes"]))
    if options["block"] is not None:
        stated["block_bytes"] = size_bytes("--block", options["block"])
    if options["ahead"] is not None:
        stated["ahead"] = whole("--ahead", options["ahead"])
    if options["interval"] is not None:
        stated["interval_ns"] = duration_ns("--interval", options["interval"])
    if options["size"] is not None:
        stated["device_bytes"] = size_bytes("--size", options["size"])
    if resumed_log is None:
        return Settings(**stated)
    logged = settings_of(read_log(resumed_log).module)
    for name, value in stated.items():
        if value != getattr(logged, name):
            option = {"passes": "--pass", "device_bytes": "--size"}.get(name, f"--{name.split('_')[0]}")
            raise InputError(f"{resumed_log} was started with {getattr(logged, name)}; remove the option", key=option)
    return logged


def print_conditioning(conditioning: Conditioning) -> None:
    """Prints the rates, the block times of each device, and the verdicts."""
    module = conditioning.module
    size = format_decimal(module["module_bytes"])
    say(f"module of {len(module['targets'])} devices, {size}, in blocks of {module['block_bytes'] >> 10:,} KiB")
    for run in conditioning.passes:
        print()
        print_pass(conditioning, run)
    print()
    rows = [
        [str(number + 1), target["path"], serial_of(target), conditioning.verdict(number)]
        for number, target in enumerate(module["targets"])
    ]
    print_table([Figures("device", 0), Names("path"), Words("serial"), Prose("verdict", 0)], rows)
    print()
    for line in conditioning.judgements():
        print(line)
    for failure in conditioning.failures:
        say(f"note: {failure}")
    for note in dict.fromkeys(f"{target['path']}: {note}" for target in module["targets"] for note in target["notes"]):
        say(f"note: {note}")
    if conditioning.sessions > 1:
        say(f"note: measured in {conditioning.sessions} sessions; the time between them is not counted")


def print_pass(conditioning: Conditioning, run: Pass) -> None:
    """Prints one pass as a table with one row per device."""
    block_bytes = conditioning.module["block_bytes"]
    columns = [
        Names("device"),
        Figures("MB/s\nalone", 0),
        Figures("limits\n%", 0),
        Figures("mean\nms", 1),
        Figures("p50\nms", 4),
        Figures("p99.9\nms", 4),
        Figures("max\nms", 2),
        Figures("failed", 0),
    ]
    classes = [
        name.replace("ms", "\nms").replace("<", "< ").replace(">=", ">= ") for name in class_names(conditioning.module)
    ]
    rows = []
    for device in run.devices:
        quantiles = [device.mean_ms, device.quantile_ms(0.5), device.quantile_ms(0.999), device.max_ms]
        alone_mb_per_s = device.own_mb_per_s(block_bytes)
        rows.append(
            [
                device.name,
                "" if alone_mb_per_s is None else f"{alone_mb_per_s:,.1f}",
                f"{100 * device.held_share:.0f}",
                *("" if ms is None else f"{ms:,.2f}" for ms in quantiles),
                f"{device.errors:,}",
                *(f"{count:,}" for count in device.classes),
            ]
        )
    say(f"{run.kind}: blocks of each device by latency")
    print_table([*columns, *(Figures(heading, 3) for heading in classes)], rows)


def serial_of(target: LoggedTarget) -> str:
    """Returns the serial number of a device, or an empty string."""
    return str(target["identity"].get("serial", ""))


def exit_code_of(conditioning: Conditioning) -> int:
    """Returns the exit code; reports an early end on stderr."""
    if conditioning.ended_early is not None:
        print(f"headstack: ended early; results up to then are kept: {conditioning.ended_early}", file=sys.stderr)
        return exit_code_of_reason(conditioning.ended_early)
    return 0 if conditioning.is_kept else EXIT_NOT_KEPT


@contextmanager
def show_progress(quiet: bool) -> Iterator[Callable[[Now], object] | None]:
    """Shows progress on stderr: one rewritten line on a terminal, otherwise one line per interval."""
    if quiet:
        yield None
        return
    on_terminal = not is_plain(sys.stderr)
    yield _progress_printer(on_terminal)
    if on_terminal:
        clear(sys.stderr)


def _progress_printer(on_terminal: bool) -> Callable[[Now], object]:
    began: tuple[str, int, float] | None = None
    shown_at, reported = 0.0, None

    def show(now: Now) -> None:
        nonlocal began, shown_at, reported
        at = time.monotonic()
        if began is None or began[0] != now.kind:
            began = (now.kind, now.position_bytes, at)
        is_new = now.last is not reported
        if (not is_new) if not on_terminal else (at - shown_at < SHOW_EVERY_S):
            return
        shown_at, reported = at, now.last
        passed_bytes, passed_s = now.position_bytes - began[1], at - began[2]
        parts = [
            f"{now.kind} {100 * now.position_bytes / now.module_bytes:.1f} % at {format_decimal(now.position_bytes)}"
        ]
        if now.last is not None:
            parts.append(f"{now.last['bytes'] * 8e3 / now.last['duration_ns']:,.0f} Mb/s")
        if passed_bytes > 0:
            left_s = (now.module_bytes - now.position_bytes) / passed_bytes * passed_s
            parts.append(f"{left_s:,.0f} s left of this pass")
        rewrite(sys.stderr, f"headstack: {', '.join(parts)}", on_terminal)

    return show
