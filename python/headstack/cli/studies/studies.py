"""`headstack study`: lists and runs studies, and shows their results."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import click

import headstack as hs
from headstack._native import InputError
from headstack.cli.completing import EXECUTOR, FOLDER, STUDY
from headstack.cli.files import OUTPUT, OUTPUT_FOLDER, SOURCE, check_folder
from headstack.cli.formats.page import check_page, chosen_simulator, simulator_option
from headstack.cli.loading import Commands
from headstack.cli.output import print_table, progress, say, wide_option
from headstack.io import signals
from headstack.io.atomic_files import write_all, write_text
from headstack.io.columns import Column, Figures, Names, Prose
from headstack.io.json_text import read_json
from headstack.io.tables import to_csv
from headstack.report.figures import Cell
from headstack.studies.outcome import STORED
from headstack.studies.scorecard import first_difference, scorecard

EXIT_MISSED = 1


def output_folder_option(folder: str) -> Callable[..., Any]:
    """Returns the option of commands that write a folder of results."""
    return click.option(
        "-o",
        "--output",
        metavar="DIR",
        type=OUTPUT_FOLDER,
        default=folder,
        show_default=True,
        help="Folder for the results.",
    )


output_option = output_folder_option("studies-out")


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of commands that run studies."""
    store = click.option(
        "--store", metavar="DIR", type=FOLDER, help="Folder of finished runs.  [default: ~/.cache/headstack/chunks]"
    )
    executor = click.option(
        "--executor",
        default="local",
        metavar="local|dask://HOST:PORT",
        type=EXECUTOR,
        help="Where to run: local, or a Dask cluster.",
    )
    quiet = click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
    return store(executor(quiet(command)))


@click.group(cls=Commands)
def study() -> None:
    """List, run and show studies of published figures.

    \b
    headstack lab study list
    headstack lab study run compaq
    headstack lab study show compaq
    """


@study.command("list")
@wide_option
def list_studies() -> None:
    """List the studies that ship with headstack."""
    shipped = [hs.studies.load(name) for name in hs.studies.listed()]
    rows = [[each.name, each.title, str(len(each.claims))] for each in shipped]
    print_table([Names("name"), Prose("title"), Figures("claims")], rows)


@study.command("run")
@click.argument(
    "names",
    nargs=-1,
    metavar="NAME|FOLDER...",
    type=STUDY,
    help="Studies that ship with headstack, or folders of others.",
)
@click.option("--all", "every", is_flag=True, help="Run all studies that ship with headstack.")
@output_option
@simulator_option
@click.option("--pictures", metavar="SUFFIX", help="Also write each figure as a picture: png, svg or pdf.")
@run_options
@wide_option
def run_studies(names: tuple[str, ...], every: bool, output: str, pictures: str | None, **executor_options: Any) -> int:
    """Run studies, and print the verdict of each claim.

    \b
    headstack lab study run compaq
    headstack lab study run --all --pictures svg

    The folder DIR/NAME gets report.html, outcome.json with claims and figures, and a CSV file for each table. Finished
    runs are kept: after an interruption, repeat the command to resume. Exit code 1 means that a claim is missed and the
    study gives no reason.
    """
    if every == bool(names):
        raise InputError("name the studies to run, or give --all (not both)")
    if pictures is not None:
        from headstack.report.plots import picture_format  # start-up time

        picture_format(f"figure.{pictures}")
    chosen = [hs.studies.load(name) for name in (hs.studies.listed() if every else names)]
    if len({each.name for each in chosen}) < len(chosen):
        raise InputError("two studies have the same name; run them with different -o")
    for each in chosen:
        check_folder(Path(output) / each.name, "outcome.json", "report.html")
    missed = 0
    for each in chosen:
        outcome = run_study(each, **executor_options)
        write_outcome(Path(output) / each.name, outcome, pictures)
        print_outcome(StoredOutcome.from_json(json.loads(outcome.to_json())))
        missed += len(outcome.unexplained())
    return EXIT_MISSED if missed else 0


def run_study(study: hs.studies.Study, store: str | None, executor: str, quiet: bool) -> hs.studies.Outcome:
    """Runs a study and shows its progress."""
    try:
        with progress(study.name, quiet) as tell:
            return hs.studies.run(study, store=store, executor=executor, progress=tell)
    except KeyboardInterrupt:
        message = "interrupted; finished runs are kept: repeat the command to resume"
        print(f"headstack: {message}", file=sys.stderr)
        raise click.exceptions.Exit(signals.exit_code()) from None


def write_outcome(folder: Path, outcome: hs.studies.Outcome, pictures: str | None) -> None:
    """Writes the files of an outcome: all of them, or none."""
    folder.mkdir(parents=True, exist_ok=True)
    write_all((folder / name, put) for name, put in outcome_files(outcome, pictures))


def outcome_files(outcome: hs.studies.Outcome, pictures: str | None) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Yields the name of each file of an outcome and the function that writes it."""
    from headstack.report import html  # start-up time

    texts = {"outcome.json": outcome.to_json()}
    texts |= {f"{name}.csv": to_csv(table.columns, table.dicts()) for name, table in outcome.data.items()}
    try:
        check_page()
    except InputError as error:
        print(f"headstack: skipped report.html: {error}", file=sys.stderr)
    else:
        texts["report.html"] = html.to_html(outcome.report(), chosen_simulator())
    for name, text in texts.items():
        yield name, partial(Path.write_text, data=text, encoding="utf-8")
    if pictures is not None:
        from headstack.report.draw import draw  # start-up time

        for figure in outcome.figures:
            yield f"{figure.name}.{pictures}", partial(draw, figure)


@study.command("show")
@click.argument("name", metavar="NAME", type=STUDY, help="Study that was run before.")
@output_option
@click.option("--claim", "only", metavar="ID", help="Show the evidence of one claim.")
@wide_option
def show_study(name: str, output: str, only: str | None) -> None:
    """Show the results of a study that was run before.

    \b
    headstack lab study show compaq
    """
    file = Path(output) / name / "outcome.json"
    if not file.is_file():
        raise InputError(f"{file} does not exist; run the study first: headstack lab study run {name} -o {output}")
    outcome = StoredOutcome.from_json(STORED.upgraded(str(file), read_json(file)))
    if only is None:
        print_outcome(outcome)
        return
    matching = [claim for claim in outcome.claims if claim.id == only]
    if not matching:
        raise InputError(f"no claim {only!r} in {name}; allowed: {', '.join(c.id for c in outcome.claims)}")
    print_claim(matching[0])


@study.command("scorecard")
@click.option("-o", "--output", type=OUTPUT, metavar="FILE.md", help="Write the scorecard to a file.")
@click.option(
    "--check", "written", type=SOURCE, metavar="FILE.md", help="Exit with code 1 unless this file is up to date."
)
@run_options
def write_scorecard(output: str | None, written: str | None, **executor_options: Any) -> int:
    """Run the studies of published tables, and print a scorecard.

    \b
    headstack lab study scorecard -o scorecard.md
    """
    if written is not None and not Path(written).is_file():
        raise InputError(f"{written} does not exist; write it with: headstack lab study scorecard -o {written}")
    shipped = [hs.studies.load(name) for name in hs.studies.listed()]
    text = scorecard([run_study(each, **executor_options) for each in shipped if each.table_names()])
    if written is not None:
        difference = first_difference(Path(written), text)
        if difference is not None:
            print(difference)
            return EXIT_MISSED
        say(f"{written} is up to date")
    elif output is not None:
        write_text(output, text)
    else:
        print(text, end="")
    return 0


@dataclass(frozen=True)
class StoredClaim:
    """A claim of a stored outcome, with its evidence."""

    id: str
    says: str
    verdict: str
    evidence: str
    within: Sequence[bool]
    """Whether each row of evidence agrees."""
    backing: Sequence[Sequence[str]]
    """Pairs of the name of a fact and its text."""
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> StoredClaim:
        """Reads the claim from a file, except fields that are not shown."""
        return StoredClaim(**{field.name: plain[field.name] for field in fields(StoredClaim)})


@dataclass(frozen=True)
class StoredOutcome:
    """The parts of a stored outcome that are shown."""

    title: str
    question: str
    summary: str
    claims: Sequence[StoredClaim]

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> StoredOutcome:
        """Reads the outcome from a file, except parts that are not shown."""
        claims = [StoredClaim.from_json(claim) for claim in plain["claims"]]
        return StoredOutcome(plain["title"], plain["question"], plain["summary"], claims)

    def counts(self) -> dict[str, int]:
        """Returns the number of claims with each verdict that occurs."""
        return Counter(claim.verdict for claim in self.claims)


def print_outcome(outcome: StoredOutcome) -> None:
    """Prints the claims of a study, one per line, and the number of claims of each verdict."""
    say(f"\n{outcome.title}\n{outcome.question}\n")
    rows = [[claim.id, claim.says, claim.verdict, claim.evidence] for claim in outcome.claims]
    if rows:
        print_table([Names("id"), Prose("published", 2), Names("verdict"), Prose("evidence")], rows)
        verdict_counts = ", ".join(f"{count} {verdict}" for verdict, count in outcome.counts().items())
        within = [row for claim in outcome.claims for row in claim.within]
        say(f"\n{len(rows)} claims: {verdict_counts}; {sum(within)} of {len(within)} rows of evidence agree")
    if outcome.summary:
        say(f"\n{outcome.summary}")


def print_claim(claim: StoredClaim) -> None:
    """Prints one claim with its evidence, row by row."""
    say(f"{claim.id}: {claim.says}\n{claim.verdict}: {claim.evidence}")
    for fact, text in claim.backing:
        if text not in claim.evidence:
            say(f"{fact}: {text}")
    say("")
    if claim.rows:
        rows = [[format_cell(value) for value in row] for row in claim.rows]
        columns = [
            Column(heading, is_text=all(isinstance(row[n], str | None) for row in claim.rows), rank=min(n, 1))
            for n, heading in enumerate(claim.columns)
        ]
        print_table(columns, rows)


def format_cell(value: Cell) -> str:
    """Formats a cell."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "" if value is None else str(value)
