"""``headstack measure condition``: a module of devices written and read as one stream, end to end."""

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
from headstack.cli.simulate.runs import listed
from headstack.cli.targets import SHOW_EVERY_S, access_of, code_of, permission_options
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
def condition(targets: tuple[str, ...], log: str | None, resume: bool, report: str | None, **given: Any) -> int:
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
    limit = None if given["require"] is None else rate_bytes_per_s("--require", given["require"]) * 8 / 1e6
    outputs = Outputs(given, Conditioning)
    if report is not None:
        if targets or log is not None or resume:
            raise InputError("--report: reads a log and measures nothing; remove targets, --log and --resume")
        found = Conditioning.read(report)
    else:
        if not targets:
            raise InputError("TARGETs are missing: name the devices of the module, or a log with --report")
        settings = settings_given(given, log if resume else None)
        found = measured(targets, settings, access_of(given), log, resume, given["quiet"])
    found.require_mbit_per_s = limit
    outputs.write(found, partial(print_conditioning, found))
    return ending(found)


def measured(
    targets: tuple[str, ...], settings: Settings, access: Access, log: str | None, resume: bool, quiet: bool
) -> Conditioning:
    """Conditions a module, and shows the course of it."""
    with course(quiet) as show:
        return conditioned(targets, settings, access, log=log, resume=resume, progress=show)


class StatedSettings(TypedDict, total=False):
    """Fields of ``Settings`` that the options of the command state."""

    passes: tuple[str, ...]
    block_bytes: int
    ahead: int
    interval_ns: int
    device_bytes: int


def settings_given(given: Mapping[str, Any], resumed: str | None) -> Settings:
    """The settings that the options state, or those of the log that is resumed."""
    if given["read_only"] and given["passes"] is not None:
        raise InputError("--read-only, --pass: give only one of them")
    stated: StatedSettings = {}
    if given["read_only"] or given["passes"] is not None:
        stated["passes"] = ("read",) if given["read_only"] else tuple(listed(given["passes"]))
    if given["block"] is not None:
        stated["block_bytes"] = size_bytes("--block", given["block"])
    if given["ahead"] is not None:
        stated["ahead"] = whole("--ahead", given["ahead"])
    if given["interval"] is not None:
        stated["interval_ns"] = duration_ns("--interval", given["interval"])
    if given["size"] is not None:
        stated["device_bytes"] = size_bytes("--size", given["size"])
    if resumed is None:
        return Settings(**stated)
    before = settings_of(read_log(resumed).module)
    for name, value in stated.items():
        if value != getattr(before, name):
            option = {"passes": "--pass", "device_bytes": "--size"}.get(name, f"--{name.split('_')[0]}")
            raise InputError(f"{resumed} was started with {getattr(before, name)}; remove the option", key=option)
    return before


def print_conditioning(found: Conditioning) -> None:
    """The rates, each device's block times, and the verdicts."""
    module = found.module
    size = format_decimal(module["module_bytes"])
    say(f"module of {len(module['targets'])} devices, {size}, in blocks of {module['block_bytes'] >> 10:,} KiB")
    for one in found.passes:
        print()
        print_pass(found, one)
    print()
    rows = [
        [str(number + 1), target["path"], serial(target), found.verdict(number)]
        for number, target in enumerate(module["targets"])
    ]
    print_table([Figures("device", 0), Names("path"), Words("serial"), Prose("verdict", 0)], rows)
    print()
    for line in found.judgements():
        print(line)
    for words in found.failures:
        say(f"note: {words}")
    for note in dict.fromkeys(f"{target['path']}: {note}" for target in module["targets"] for note in target["notes"]):
        say(f"note: {note}")
    if found.sessions > 1:
        say(f"note: measured in {found.sessions} sessions; the time between them is not counted")


def print_pass(found: Conditioning, one: Pass) -> None:
    """One pass as a table: a line a device."""
    block_bytes = found.module["block_bytes"]
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
    classes = [name.replace("ms", "\nms").replace("<", "< ").replace(">=", ">= ") for name in class_names(found.module)]
    rows = []
    for device in one.devices:
        quantiles = [device.mean_ms, device.quantile_ms(0.5), device.quantile_ms(0.999), device.max_ms]
        own = device.own_mb_per_s(block_bytes)
        rows.append(
            [
                device.name,
                "" if own is None else f"{own:,.1f}",
                f"{100 * device.held_share:.0f}",
                *("" if ms is None else f"{ms:,.2f}" for ms in quantiles),
                f"{device.errors:,}",
                *(f"{count:,}" for count in device.classes),
            ]
        )
    say(f"{one.kind}: blocks of each device by latency")
    print_table([*columns, *(Figures(heading, 3) for heading in classes)], rows)


def serial(target: LoggedTarget) -> str:
    """A device's serial number, where it has one."""
    return str(target["identity"].get("serial", ""))


def ending(found: Conditioning) -> int:
    """The exit code; one line on stderr where it ended before its time."""
    if found.ended_early is not None:
        print(f"headstack: ended early; results up to then are kept: {found.ended_early}", file=sys.stderr)
        return code_of(found.ended_early)
    return 0 if found.is_kept else EXIT_NOT_KEPT


@contextmanager
def course(quiet: bool) -> Iterator[Callable[[Now], object] | None]:
    """Shows on stderr how far it is: a line that is rewritten on a terminal, else one for each interval."""
    if quiet:
        yield None
        return
    on_terminal = not is_plain(sys.stderr)
    yield _lines(on_terminal)
    if on_terminal:
        clear(sys.stderr)


def _lines(on_terminal: bool) -> Callable[[Now], object]:
    began: tuple[str, int, float] | None = None
    shown, told = 0.0, None

    def show(now: Now) -> None:
        nonlocal began, shown, told
        at = time.monotonic()
        if began is None or began[0] != now.kind:
            began = (now.kind, now.position_bytes, at)
        fresh = now.last is not told
        if (not fresh) if not on_terminal else (at - shown < SHOW_EVERY_S):
            return
        shown, told = at, now.last
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
