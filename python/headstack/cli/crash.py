"""``headstack crash``: which states a crash may leave, and which of them an application does not survive."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headstack._native import InputError, RunError, format_bytes, format_duration_ns
from headstack.cli.command import Brief
from headstack.cli.completing import Among
from headstack.cli.files import KEPT, OUTPUT, OUTPUT_FOLDER, SOURCE
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_table, progress, say, wide_option
from headstack.crash.findings import Exploration
from headstack.crash.recorded import FORMS, TEARS
from headstack.crash.recording import Recording
from headstack.crash.recording import open as opened
from headstack.crash.replaying import replayed
from headstack.crash.showing import WAYS
from headstack.io import signals
from headstack.io.columns import Figures, is_plain
from headstack.io.counts import counted
from headstack.io.tables import to_json
from headstack.io.terminal import drawable
from headstack.io.values import whole

if TYPE_CHECKING:
    from headstack.crash.states import Moment

FOUND = 1
CHECKS = ("ext4", "btrfs", "sqlite:/", "postgres:/")
"""Checks that come along, for whoever completes a word."""
SHOWN = 10
"""Windows of the table of ``show``: the largest."""

journal_argument = click.argument(
    "journal", type=SOURCE, metavar="JOURNAL", help="A journal of serve --journal, or a log of dm-log-writes."
)
base_option = click.option(
    "--base", type=SOURCE, metavar="IMAGE", help="What the device held when it began.  [default: what the journal says]"
)
tear_option = click.option(
    "--tear",
    default="none",
    type=Among(TEARS),
    metavar="none|prefix|any",
    show_default=True,
    help="Where writes may stop.",
)
atom_option = click.option(
    "--atom", metavar="SIZE", help="What is written as a whole or not at all.  [default: a block of the device]"
)


def start_option(default: str) -> Callable[..., Any]:
    """From where on crashes are tried."""
    return click.option(
        "--start",
        default=default,
        type=Among(("mark", "begin")),
        metavar="mark|begin|TEXT",
        show_default=True,
        help="From the first mark on, from the beginning, or from the mark of this text.",
    )


@click.group()
def crash() -> None:
    """What a crash may leave of what was written, and what does not survive it."""


@crash.command(cls=Brief)
@journal_argument
@click.option(
    "--check",
    required=True,
    type=Among(CHECKS),
    metavar="COMMAND|ext4|btrfs|sqlite:/PATH|postgres:/PATH",
    help="What looks at {device} after a crash; exit code 0 means that all is well.",
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
    help="When it is enough.",
)
@tear_option
@atom_option
@start_option("mark")
@click.option(
    "--regions", multiple=True, metavar="OFFSET", help="The device keeps order within each region that begins here."
)
@click.option("--jobs", metavar="N", help="Processes that look at states.  [default: one for each processor]")
@click.option("--seed", default="0", metavar="N", show_default=True, help="Of the states that are drawn.")
@click.option(
    "--check-timeout", default="60s", metavar="TIME", show_default=True, help="A check that takes longer has failed."
)
@click.option("--findings", default="8", metavar="N", show_default=True, help="Reduce so many; count the others.")
@click.option("--state", type=KEPT, metavar="FILE", help="Keep what was done, and go on from there the next time.")
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FOLDER,
    metavar="DIR",
    help="Reproducers of what is found.  [default: JOURNAL.crashes]",
)
@output_options(json="Write what was found (- for stdout).")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@signals.held()
def explore(journal: str, check: str, base: str | None, quiet: bool, **given: Any) -> int:
    """Look at states that a crash may leave of a recorded device, and reduce what fails to the least.

    \b
    headstack crash explore run.journal --check './check.sh {device}' --budget 60s
    headstack crash explore run.journal --check ext4 --tear any --atom 4KiB
    headstack crash explore run.journal --check 'sqlite:/app.db?SELECT id FROM t'

    A state has all that a flush or FUA made durable, and any of the other writes. The check finds the image as
    {device} (with --over nbd its address), may write to it, and finds the marks that were made before the crash in
    the file $HEADSTACK_MARKS, one a line. ext4 has e2fsck look for what it would not repair by itself, btrfs has
    btrfs check; sqlite: and postgres: check a database in an ext4 file system, and with a QUERY that all marks are in
    its first column.

    Exit code 0: nothing was found; 1: something was; 2: it could not be carried out.
    """
    outputs = Outputs(given, {"json": as_json})
    recording = opened(journal)
    if recording.described["left_bytes"]:
        say(f"note: {journal} ends within a record; {recording.described['left_bytes']:,} bytes are left out")
    with told(quiet) as show, unable():
        found = recording.explore(
            check,
            base=base,
            over=given["over"],
            budget=None if given["budget"] == "all" else given["budget"],
            tear=given["tear"],
            atom=given["atom"],
            start=given["start"],
            regions=given["regions"],
            jobs=None if given["jobs"] is None else whole("--jobs", given["jobs"]),
            seed=whole("--seed", given["seed"]),
            findings=whole("--findings", given["findings"]),
            state=given["state"],
            reproducers=given["output"] or f"{journal}.crashes",
            check_timeout=given["check_timeout"],
            progress=show,
        )
    outputs.write(found, lambda: say(str(found)))
    if found.ended_by == "interrupted":
        return signals.exit_code()
    return FOUND if found else 0


@crash.command()
@click.argument("reproducer", type=SOURCE, metavar="REPRODUCER", help="A file that explore has written.")
@click.option(
    "--check",
    type=Among(CHECKS),
    metavar="COMMAND|ext4|btrfs|sqlite:/PATH|postgres:/PATH",
    help="Another check than the one that failed.",
)
@click.option("-o", "--output", type=OUTPUT, metavar="IMAGE", help="Write the image, as the crash leaves it.")
def replay(reproducer: str, check: str | None, output: str | None) -> int:
    """Bring an image into the state of a finding, and check it.

    \b
    headstack crash replay run.journal.crashes/crash-1a2b3c4d.journal
    headstack crash replay crash-1a2b3c4d.journal -o broken.img

    Exit code 0: the check finds nothing; 1: it does; 2: it could not be carried out.
    """
    with unable():
        message = replayed(opened(reproducer), check, output)
    say("nothing is wrong" if message is None else message)
    return 0 if message is None else FOUND


@crash.command()
@journal_argument
@tear_option
@atom_option
@start_option("begin")
@click.option("--digest", is_flag=True, help="Show only a hash of all but the times: equal runs have the same.")
@output_options(json="Write it, with all windows (- for stdout).")
@wide_option
def show(journal: str, tear: str, atom: str | None, start: str, digest: bool, **given: Any) -> None:
    """Show what a journal holds, and how many states a crash may leave of it.

    \b
    headstack crash show run.journal
    headstack crash show run.journal --tear any --atom 4KiB
    headstack crash show run.journal --digest

    A window is a moment before something becomes durable or is promised. What is open then may be there or not.
    """
    recording = opened(journal)
    if digest:
        if given["json_path"] is not None:
            raise InputError("is one line of text; without --json it is shown", key="digest")
        say(recording.digest())
        return
    moments = recording.moments(tear, atom, start)
    what = {**recording.described, "windows": moments}
    Outputs(given, {"json": shown_as_json}).write(what, lambda: show_words(recording, moments))


@crash.command()
@click.argument("source", type=SOURCE, metavar="JOURNAL", help="A journal or a log of dm-log-writes.")
@click.option("-o", "--output", "target", type=OUTPUT, required=True, metavar="FILE", help="What is written.")
@click.option("--to", "form", type=Among(FORMS), metavar="|".join(FORMS), help="[default: the other one]")
def convert(source: str, target: str, form: str | None) -> None:
    """Write a journal as a log of dm-log-writes, or such a log as a journal.

    \b
    headstack crash convert run.journal -o run.log
    headstack crash convert kernel.log -o kernel.journal

    A log has no times and no requests under way, and lacks what failed.
    """
    recording = opened(source)
    other = FORMS[1] if is_journal(source) else FORMS[0]
    left_out = recording.convert(target, form or other)
    if left_out:
        say(f"note: {left_out:,} changes that failed are left out")


def is_journal(path: str) -> bool:
    """Whether a file is a journal of ours."""
    with Path(path).open("rb") as file:
        return file.read(8) == b"hs-crash"


def as_json(found: Exploration, path: Path | None = None) -> str:
    """The result of an exploration as JSON."""
    return to_json(asdict(found), path)


def shown_as_json(what: Mapping[str, object], path: Path | None = None) -> str:
    """The contents of a journal as JSON."""
    return to_json(what, path)


def show_words(recording: Recording, moments: list[Moment]) -> None:
    """Prints the contents of a journal: its counts, and a table of its largest windows."""
    d = recording.described
    cache = "a volatile cache" if d["has_volatile_cache"] else "no volatile cache"
    say(f"a device of {format_bytes(d['capacity_bytes'])} in blocks of {format_bytes(d['block_bytes'])}, with {cache}")
    say(
        f"{d['changes']:,} changes ({d['trims']:,} trims, {d['forced']:,} forced) of {format_bytes(d['data_bytes'])}, "
        f"{d['flushes']:,} flushes, {d['marks']:,} marks in {format_duration_ns(d['span_ns'])}"
    )
    if d["failed"]:
        say(f"{counted(d['failed'], 'request')} failed")
    if d["power_cuts"]:
        say(f"power failed {d['power_cuts']:,} times")
    if d["left_bytes"]:
        say(f"it ends within a record: {d['left_bytes']:,} bytes are left out")
    elif not d["is_finished"]:
        say("it was not finished")
    possible = sum(moment["possible"] for moment in moments)
    amount = f"{possible:,.0f}" if possible < 1e9 else f"{possible:.2g}"
    say(f"{len(moments):,} windows, {amount} subsets of what is open; the largest windows:")
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
def unable() -> Iterator[None]:
    """A check that cannot be carried out is none that found something."""
    try:
        yield
    except RunError as error:
        raise InputError(str(error)) from None


@contextmanager
def told(quiet: bool) -> Iterator[Callable[[int, float, int], object] | None]:
    """Shows states, their rate, findings and the time left."""
    if quiet or is_plain(sys.stderr):
        with progress("crash states", quiet) as bar:
            yield None if bar is None else lambda _, share, __: bar(share)
        return
    from rich.console import Console  # start-up time
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # start-up time

    began_s = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=drawable(sys.stderr)), transient=True) as shown:
        task = shown.add_task("crash states", total=1.0)

        def show(states: int, share: float, findings: int) -> None:
            rate = states / max(time.monotonic() - began_s, 1e-3)
            words = f"{states:,} states, {rate:,.0f}/s, {findings} found"
            shown.update(task, completed=share, description=words)

        yield show
