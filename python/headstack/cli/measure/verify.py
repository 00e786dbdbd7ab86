"""``headstack measure verify``, and the verification options of measurements."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import reduce
from typing import Any

import click

from headstack import _native
from headstack._native import InputError
from headstack.cli.completing import Among
from headstack.cli.files import KEPT, TARGET, check_kept
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_table, say, wide_option
from headstack.cli.targets import Command, exit_code_of_runs, measurement_progress
from headstack.io import signals
from headstack.io.columns import Figures, Names, Prose
from headstack.io.counts import agreed, counted
from headstack.measurement.access import ENGINES
from headstack.measurement.jobfiles.trees import verify_files
from headstack.measurement.measurement import verify as verify_target
from headstack.measurement.verifying import Verifying, ledger_of
from headstack.results.integrity import BlockClass, Integrity
from headstack.results.results import Results

EXIT_FAULTS = 1
SHOWN = 20
"""Maximum number of printed findings; JSON contains the first 100."""

CLASSES: tuple[tuple[BlockClass, str], ...] = (
    ("intact", "as written"),
    ("mixed", "from overlapping or never acknowledged writes"),
    ("trimmed", "zeros after a trim"),
    ("unwritten", "never written, or never acknowledged: any content is allowed"),
    ("unsettled", "changed during the read"),
    ("ahead", "newer than the ledger, whose end was lost when the host went down"),
    ("stale", "old data, although a newer write was acknowledged"),
    ("torn", "parts of several writes, some of which must be overwritten"),
    ("misplaced", "data of another address"),
    ("corrupt", "bits differ from those written"),
    ("zeros", "zeros, although data were written"),
    ("foreign", "no stamp, or one of another run, although data were written"),
    ("unreadable", "read failed"),
)
FAULTY = ("stale", "torn", "misplaced", "corrupt", "zeros", "foreign", "unreadable")


def verify_options(command: Command) -> Command:
    """Adds the options of verification and its ledger."""
    decorators = [
        click.option("--verify", "verify", flag_value="stamp", help="Stamp writes, and check reads."),
        click.option(
            "--verify-after",
            "verify",
            flag_value="stamp_and_read",
            help="Like --verify, and read everything again at the end.",
        ),
        click.option(
            "--check",
            "verify",
            flag_value="check",
            help="Check reads against the data of an earlier run with --verify.",
        ),
        click.option(
            "--ledger",
            type=KEPT,
            metavar="FILE",
            help="Ledger: file that records the writes.  [default: TARGETNAME.ledger]",
        ),
        click.option("--resume", is_flag=True, help="Resume with the ledger of an earlier run."),
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


def take_verification(options: Mapping[str, Any], target: str) -> Verifying:
    """Returns the requested verification. By default the ledger is a file, which survives a crash."""
    kind, ledger, resume = options["verify"] or "no", options["ledger"], options["resume"]
    default = ledger_of(target)
    if ledger is None and (kind in ("stamp", "stamp_and_read") or (kind == "check" and default.exists())):
        ledger = str(default)
    if kind != "no" and ledger == str(default):
        check_kept(default)
    return Verifying(kind, ledger, resume)


@click.command()
@click.argument(
    "target", type=TARGET, metavar="TARGET", help="File, block device or folder written by a measurement with --verify."
)
@click.option(
    "--ledger", type=KEPT, metavar="FILE", help="Ledger of the run.  [default: TARGETNAME.ledger, if it exists]"
)
@click.option("--stamps", is_flag=True, help="Use only the stamps, without a ledger.")
@click.option(
    "--power-loss", is_flag=True, help="The device lost power: accept the loss of data that no flush covered."
)
@click.option("--buffered", is_flag=True, help="Use the page cache instead of direct I/O.")
@click.option("--engine", metavar="|".join(ENGINES), type=Among(ENGINES), default="auto", help="I/O engine.")
@output_options(json="Write the complete result as JSON (- for stdout).")
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@signals.held()
def verify(
    target: str,
    ledger: str | None,
    stamps: bool,
    power_loss: bool,
    buffered: bool,
    engine: str,
    json_path: str | None,
    quiet: bool,
) -> int:
    """Read the data of a run with --verify, and print lost blocks.

    \b
    headstack measure verify /dev/sdb
    headstack measure verify test.bin --ledger test.ledger --power-loss
    headstack measure verify /mnt/data/tree --ledger tree.ledger

    TARGET is only read. The ledger records the expected data, also after a crash or a power loss of the run. Without a
    ledger, headstack finds damaged and misplaced data from the stamps, but not lost updates.

    Exit code 1 means that data are damaged or lost. With --power-loss, acknowledged data that no flush covered may be
    lost: a volatile cache can lose them.
    """
    if stamps and ledger is not None:
        raise InputError("excludes --ledger; give only one of them", key="stamps")
    if ledger is None and not stamps and ledger_of(target).exists():
        ledger = str(ledger_of(target))
    outputs = Outputs({"json_path": json_path}, {"json": Results.to_json})
    if os.path.isdir(target):
        return verify_folder(target, ledger, power_loss, outputs, quiet)
    with measurement_progress(quiet) as show:
        results = verify_target(target, ledger=ledger, buffered=buffered, engine=engine, progress=show)
    outputs.write(results, lambda: print_pass(results, target, ledger))
    return exit_code_of(results, power_loss)


def verify_folder(target: str, ledger: str | None, power_loss: bool, outputs: Outputs, quiet: bool) -> int:
    """Verifies a tree of files by the ledger of its run, which is required."""
    if ledger is None:
        raise InputError(f"{target}: a folder needs the ledger of its run; add --ledger FILE")
    with measurement_progress(quiet) as show:
        results = verify_files(target, ledger, power_loss=power_loss, progress=show)
    outputs.write(results, lambda: print_pass(results, target, ledger))
    return exit_code_of(results, power_loss)


def print_pass(results: Results, target: str, ledger: str | None) -> None:
    """Prints the classes of blocks, the findings, and undecided blocks."""
    integrity = results.integrity(0)
    [row] = results
    if integrity is None:
        raise InputError(f"{target}: nothing was verified")
    block = integrity["block_bytes"]
    source = f"by the ledger {ledger}" if ledger is not None else "by the stamps only"
    print(f"{target} {source}: {integrity['checked']:,} blocks of {_native.format_bytes(block)} read, ", end="")
    say(f"{row['mb_per_s']:,.0f} MB/s\n")
    rows = [
        (name, f"{integrity[name]:,}", f"{integrity[name] * block:,}", meaning)
        for name, meaning in CLASSES
        if integrity[name] or name == "intact" or name in FAULTY
    ]
    print_table([Names("class"), Figures("blocks", 0), Figures("bytes"), Prose("content", 2)], rows)
    if integrity["torn_requests"]:
        say(f"\ntorn requests: {integrity['torn_requests']:,}, with new data in one part and older data in another")
    print_findings(integrity)
    for note in results.notes:
        say(f"note: {note}")


def print_findings(integrity: Integrity) -> None:
    """Prints the number of blocks at fault by kind, the first findings, and undecided blocks."""
    kinds = (
        (integrity["damaged"], "damaged: changed, misplaced or unreadable"),
        (integrity["lost"], "lost although flushed, or not at risk"),
        (integrity["unflushed"], "lost: acknowledged, but not flushed"),
        (integrity["undecided"], "undecided: not enough information to report a fault"),
    )
    faults = [f"{count:,} {kind}" for count, kind in kinds if count]
    if faults:
        say(f"\nblocks at fault: {'; '.join(faults)}")
    elif integrity["checked"]:
        say("\nno block is at fault")
    findings = integrity["findings"]
    for finding in findings[:SHOWN]:
        say(f"  {finding}")
    if len(findings) > SHOWN:
        say(f"  and more; --json has the first {len(findings)}")
    for text in integrity["cannot_tell"]:
        say(f"undecided: {text}")


def print_verified(results: Results, verifying: Verifying) -> None:
    """Prints the findings of each verified run and the path of the ledger."""
    for number in range(len(results)):
        integrity = results.integrity(number)
        if integrity is None:
            continue
        run_label = f"run {number + 1}: " if len(results) > 1 else ""
        classes = ", ".join(f"{integrity[name]:,} {name}" for name, _ in CLASSES if integrity[name])
        print(f"\n{run_label}verified: {integrity['checked']:,} blocks read: {classes or 'none'}", end="")
        print_findings(integrity)
    if verifying.ledger is not None:
        say(f"ledger: {verifying.ledger}")


def exit_code_of(results: Results, power_loss: bool = False, continue_on_error: bool = False) -> int:
    """Returns the exit code: an early end, failed requests, or damaged or lost data."""
    code = exit_code_of_runs(results, continue_on_error)
    verified = [integrity for number in range(len(results)) if (integrity := results.integrity(number)) is not None]
    faults = sum(run["damaged"] + run["lost"] + (0 if power_loss else run["unflushed"]) for run in verified)
    if faults:
        blocks = f"{counted(faults, 'block')} {agreed(faults, 'is', 'are')}"
        print(f"headstack: {blocks} damaged or lost", file=sys.stderr)
    return code or (EXIT_FAULTS if faults else 0)
