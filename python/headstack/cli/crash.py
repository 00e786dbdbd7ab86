"""``headstack crash``: explores the states that a crash may leave, and finds the states that an application does not
survive."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headstack._native import InputError, RunError, format_bytes, format_duration_ns
from headstack.cli.answers import answer_of_exploration, answer_of_journal
from headstack.cli.command import Brief
from headstack.cli.completing import Among
from headstack.cli.files import KEPT, OUTPUT, OUTPUT_FOLDER, SOURCE
from headstack.cli.formats import output_options
from headstack.cli.loading import Commands
from headstack.cli.output import Outputs, print_table, progress, say, wide_option
from headstack.crash.findings import Exploration
from headstack.crash.recorded import FORMS, TEARS
from headstack.crash.recording import Recording
from headstack.crash.recording import open as open_journal
from headstack.crash.replaying import replay_finding
from headstack.crash.showing import WAYS
from headstack.io import signals
from headstack.io.columns import Figures, is_plain
from headstack.io.counts import counted
from headstack.io.tables import to_json
from headstack.io.terminal import drawable
from headstack.io.values import whole

if TYPE_CHECKING:
    from headstack.crash.states import Moment

EXIT_FOUND = 1
CHECKS = ("ext4", "btrfs", "sqlite:/", "postgres:/")
"""Shipped checks, for shell completion."""
SHOWN = 10
"""Maximum number of windows in the table of ``show``."""

journal_argument = click.argument(
    "journal", type=SOURCE, metavar="JOURNAL", help="Journal of serve --journal, or a dm-log-writes log."
)
base_option = click.option(
    "--base",
    type=SOURCE,
    metavar="IMAGE",
    help="Contents of the device before the first record.  [default: as the journal states]",
)
tear_option = click.option(
    "--tear",
    default="none",
    type=Among(TEARS),
    metavar="none|prefix|any",
    show_default=True,
    help="How a crash may tear writes: not at all, keep a prefix, or keep any part.",
)
atom_option = click.option(
    "--atom",
    metavar="SIZE",
    help="Unit that is written completely or not at all, for example 4KiB.  [default: a block of the device]",
)


def start_option(default: str) -> Callable[..., Any]:
    """Adds the option that sets the first crash to test."""
    return click.option(
        "--start",
        default=default,
        type=Among(("mark", "begin")),
        metavar="mark|begin|TEXT",
        show_default=True,
        help="Where to start testing crashes: at the first mark, at the beginning, or at the mark with this text.",
    )


@click.group(cls=Commands)
def crash() -> None:
    """Find crash states that your application does not survive.

    \b
    headstack serve 990-pro-2tb@1GiB --fuse /mnt/sim --loop --journal run.journal --run './app.sh $device'
    headstack crash show run.journal
    headstack crash explore run.journal --check ext4 --budget 60s
    """


@crash.command(cls=Brief)
@journal_argument
@click.option(
    "--check",
    required=True,
    type=Among(CHECKS),
    metavar="COMMAND|ext4|btrfs|sqlite:/PATH|postgres:/PATH",
    help="Check to run on {device} in each state; exit code 0 means the state is sound.",
)
@base_option
@click.option(
    "--over",
    default="file",
    type=Among(WAYS),
    metavar="|".join(WAYS),
    show_default=True,
    help="What {device} is: a file, the address of an NBD server, or a file of a FUSE mount.",
)
@click.option(
    "--budget",
    default="60s",
    type=Among(("all",)),
    metavar="TIME|STATES|all",
    show_default=True,
    help="When to stop: a time, for example 60s, a number of states, or all.",
)
@tear_option
@atom_option
@start_option("mark")
@click.option(
    "--regions",
    multiple=True,
    metavar="OFFSET",
    help="Start of a region within which the device keeps writes in order, for example 1GiB; may be repeated.",
)
@click.option("--jobs", metavar="N", help="Number of parallel checks.  [default: one for each processor]")
@click.option("--seed", default="0", metavar="N", show_default=True, help="Random seed of the sampled states.")
@click.option(
    "--check-timeout",
    default="60s",
    metavar="TIME",
    show_default=True,
    help="Time limit of a check, for example 60s; a check that exceeds it has failed.",
)
@click.option(
    "--findings",
    default="8",
    metavar="N",
    show_default=True,
    help="Number of findings to reduce; further ones are counted.",
)
@click.option("--state", type=KEPT, metavar="FILE", help="Progress file: resume from it, and keep progress in it.")
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FOLDER,
    metavar="DIR",
    help="Folder for reproducers of the findings.  [default: JOURNAL.crashes]",
)
@output_options(json="Write the findings as JSON (- for stdout).")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@signals.held()
def explore(journal: str, check: str, base: str | None, quiet: bool, **options: Any) -> int:
    """Check the states a crash may leave, and reduce each failure.

    \b
    headstack crash explore run.journal --check './check.sh {device}' --budget 60s
    headstack crash explore run.journal --check ext4 --tear any --atom 4KiB
    headstack crash explore run.journal --check 'sqlite:/app.db?SELECT id FROM t'

    Each failure is reduced to a minimal reproducer. A state contains all data that a flush or FUA made durable, and any
    subset of the other writes. COMMAND gets the image as {device} (with --over nbd: its address) and may write to it.
    The file $HEADSTACK_MARKS lists the marks before the crash, one per line. ext4 runs e2fsck, btrfs runs btrfs check;
    sqlite: and postgres: check a database in an ext4 file system, and with a QUERY that its first column contains all
    marks.

    Exit codes: 0 no failure found, 1 failures found, 2 a check could not run.
    """
    outputs = Outputs(options, {"json": write_exploration_json})
    if not os.path.exists(journal):
        raise InputError(
            f"{journal}: no such file; record one with headstack serve SYSTEM --journal {journal} --run COMMAND"
        )
    recording = open_journal(journal)
    if recording.described["left_bytes"]:
        say(f"note: {journal} ends within a record; the last {recording.described['left_bytes']:,} bytes are ignored")
    with show_exploration(quiet) as show, refuse_unrunnable_check():
        exploration = recording.explore(
            check,
            base=base,
            over=options["over"],
            budget=None if options["budget"] == "all" else options["budget"],
            tear=options["tear"],
            atom=options["atom"],
            start=options["start"],
            regions=options["regions"],
            jobs=None if options["jobs"] is None else whole("--jobs", options["jobs"]),
            seed=whole("--seed", options["seed"]),
            findings=whole("--findings", options["findings"]),
            state=options["state"],
            reproducers=options["output"] or f"{journal}.crashes",
            check_timeout=options["check_timeout"],
            progress=show,
        )
    outputs.write(exploration, lambda: say(f"{answer_of_exploration(exploration)}\n\n{exploration}"))
    if exploration.ended_by == "interrupted":
        return signals.exit_code()
    return EXIT_FOUND if exploration else 0


@crash.command()
@click.argument("reproducer", type=SOURCE, metavar="REPRODUCER", help="Reproducer written by crash explore.")
@click.option(
    "--check",
    type=Among(CHECKS),
    metavar="COMMAND|ext4|btrfs|sqlite:/PATH|postgres:/PATH",
    help="Check to run instead of the one that failed.",
)
@click.option("-o", "--output", type=OUTPUT, metavar="IMAGE", help="Write the image in the state after the crash.")
def replay(reproducer: str, check: str | None, output: str | None) -> int:
    """Restore the state of a finding in an image, and check it.

    \b
    headstack crash replay run.journal.crashes/crash-1a2b3c4d.journal
    headstack crash replay crash-1a2b3c4d.journal -o broken.img

    Exit codes: 0 the check passes, 1 it fails, 2 it could not run.
    """
    with refuse_unrunnable_check():
        message = replay_finding(open_journal(reproducer), check, output)
    say("the check passes" if message is None else message)
    return 0 if message is None else EXIT_FOUND


@crash.command()
@journal_argument
@tear_option
@atom_option
@start_option("begin")
@click.option(
    "--digest", is_flag=True, help="Print only a hash of the contents without times; identical runs have the same hash."
)
@output_options(json="Write the contents and all windows as JSON (- for stdout).")
@wide_option
def show(journal: str, tear: str, atom: str | None, start: str, digest: bool, **options: Any) -> None:
    """Show the contents of a journal, and count its crash states.

    \b
    headstack crash show run.journal
    headstack crash show run.journal --tear any --atom 4KiB
    headstack crash show run.journal --digest

    A window is a moment before data become durable or are acknowledged as such. Each change that is open in a window
    may survive a crash or be lost.
    """
    recording = open_journal(journal)
    if digest:
        if options["json_path"] is not None:
            raise InputError("prints only one line of text; remove --json", key="digest")
        say(recording.digest())
        return
    moments = recording.moments(tear, atom, start)
    contents = {**recording.described, "windows": moments}
    Outputs(options, {"json": write_contents_json}).write(contents, lambda: print_contents(recording, moments))


@crash.command()
@click.argument("source", type=SOURCE, metavar="JOURNAL", help="Journal, or dm-log-writes log.")
@click.option("-o", "--output", "target", type=OUTPUT, required=True, metavar="FILE", help="Write the converted file.")
@click.option(
    "--to", "form", type=Among(FORMS), metavar="|".join(FORMS), help="Format to write.  [default: the other one]"
)
def convert(source: str, target: str, form: str | None) -> None:
    """Convert a journal to a dm-log-writes log, or a log to a journal.

    \b
    headstack crash convert run.journal -o run.log
    headstack crash convert kernel.log -o kernel.journal

    A log has no times, no requests in flight, and no failed requests.
    """
    recording = open_journal(source)
    other = FORMS[1] if is_journal(source) else FORMS[0]
    left_out = recording.convert(target, form or other)
    if left_out:
        say(f"note: {left_out:,} failed changes are not in the log")


def is_journal(path: str) -> bool:
    """Whether a file is a headstack journal."""
    with Path(path).open("rb") as file:
        return file.read(8) == b"hs-crash"


def write_exploration_json(exploration: Exploration, path: Path | None = None) -> str:
    """Writes the result of an exploration as JSON."""
    return to_json(asdict(exploration), path)


def write_contents_json(contents: Mapping[str, object], path: Path | None = None) -> str:
    """Writes the contents of a journal as JSON."""
    return to_json(contents, path)


def print_contents(recording: Recording, moments: list[Moment]) -> None:
    """Prints the contents of a journal: its counts, and a table of its largest windows."""
    described = recording.described
    say(f"{answer_of_journal(moments, described)}\n")
    cache = "a volatile cache" if described["has_volatile_cache"] else "no volatile cache"
    say(
        f"a device of {format_bytes(described['capacity_bytes'])} in blocks of "
        f"{format_bytes(described['block_bytes'])}, with {cache}"
    )
    say(
        f"{described['changes']:,} changes ({described['trims']:,} trims, {described['forced']:,} forced) of "
        f"{format_bytes(described['data_bytes'])}, "
        f"{described['flushes']:,} flushes, {described['marks']:,} marks in {format_duration_ns(described['span_ns'])}"
    )
    if described["failed"]:
        say(f"{counted(described['failed'], 'request')} failed")
    if described["power_cuts"]:
        say(f"power failed {described['power_cuts']:,} times")
    if described["left_bytes"]:
        say(f"the journal ends within a record; the last {described['left_bytes']:,} bytes are ignored")
    elif not described["is_finished"]:
        say("the journal was not closed")
    say("the largest windows:")
    largest = sorted(moments, key=lambda moment: (-moment["open"], moment["events"]))[:SHOWN]
    columns = (Figures("at\nms"), Figures("after\nmarks"), Figures("open\nchanges"), Figures("subsets"))
    rows = [
        (
            f"{moment['at_ns'] / 1e6:,.3f}",
            f"{moment['marks']:,}",
            f"{moment['open']:,}",
            f"{moment['possible']:,.0f}" if moment["possible"] < 1e9 else f"{moment['possible']:.2g}",
        )
        for moment in sorted(largest, key=lambda moment: moment["events"])
    ]
    print_table(columns, rows)


@contextmanager
def refuse_unrunnable_check() -> Iterator[None]:
    """Raises an input error, not a finding, for a check that cannot run."""
    try:
        yield
    except RunError as error:
        raise InputError(str(error)) from None


@contextmanager
def show_exploration(quiet: bool) -> Iterator[Callable[[int, float, int], object] | None]:
    """Shows states, their rate, findings and the remaining time."""
    if quiet or is_plain(sys.stderr):
        with progress("crash states", quiet) as bar:
            yield None if bar is None else lambda _, share, __: bar(share)
        return
    from rich.console import Console  # start-up time
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # start-up time

    began_s = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=drawable(sys.stderr)), transient=True) as display:
        task = display.add_task("crash states", total=1.0)

        def show(states: int, share: float, findings: int) -> None:
            rate = states / max(time.monotonic() - began_s, 1e-3)
            description = f"{states:,} states, {rate:,.0f}/s, {findings} found"
            display.update(task, completed=share, description=description)

        yield show
