"""`headstack fit`: seeks the settings that reproduce all figures of a document at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

import headstack as hs
from headstack._native import InputError
from headstack.cli.completing import FIT
from headstack.cli.files import check_folder
from headstack.cli.output import print_table, progress, say, wide_option
from headstack.cli.studies.studies import carrying_out, into
from headstack.io import signals
from headstack.io.atomic_files import write_all
from headstack.io.columns import Figures, Names, Prose, Words
from headstack.studies.fits import SETTINGS, Fitted, finding
from headstack.studies.fits.render import rows_table, unknowns_table

FILES = ("fit.json", "settings.csv", "report.html")


@click.command()
@click.argument(
    "names",
    nargs=-1,
    metavar="[STUDY|STUDY/NAME|FOLDER]...",
    type=FIT,
    help="Inverse studies that ship with headstack, or folders of others.  [default: list them]",
)
@click.option("--all", "every", is_flag=True, help="Run all inverse studies that ship with headstack.")
@click.option("--settings", default=SETTINGS, show_default=True, metavar="N", help="Maximum number of settings to try.")
@click.option("--seed", default=1, show_default=True, metavar="N", help="Random seed of the settings.")
@into("fits-out")
@carrying_out
@wide_option
def fit(names: tuple[str, ...], every: bool, settings: int, seed: int, output: str, **how: Any) -> int:
    """Find settings that reproduce the figures of a document.

    \b
    headstack lab fit
    headstack lab fit --all --settings 500

    A document leaves settings out, for example a queue depth. The command tries settings until enough of them reproduce
    the fitted figures, and uses these to predict the held-out figures. "No setting does" is a valid finding.
    DIR/STUDY/NAME/ gets fit.json, settings.csv and report.html. Finished runs are kept: after an interruption, repeat
    the command to resume.
    """
    if every and names:
        raise InputError("name the inverse studies, or give --all (not both)")
    if not every and not names:
        list_fits()
        return 0
    called = hs.studies.fits.listed() if every else [one for name in names for one in hs.studies.fits.of_study(name)]
    chosen = [hs.studies.fits.load(name) for name in dict.fromkeys(called)]
    if len({one.name for one in chosen}) < len(chosen):
        raise InputError("two inverse studies have the same name; run them with different -o")
    for one in chosen:
        check_folder(Path(output) / one.name, *FILES)
    for one in chosen:
        found = carried_out(one, settings, seed, **how)
        write(Path(output) / one.name, found)
        show(found)
    return 0


def list_fits() -> None:
    """Prints those that ship with headstack."""
    known = [hs.studies.fits.load(name) for name in hs.studies.fits.listed()]
    rows = [[one.name, one.question, str(len(one.unknowns)), str(len(one.held_out))] for one in known]
    print_table([Names("name"), Prose("question"), Figures("unknowns"), Figures("held out")], rows)


def carried_out(
    one: hs.studies.fits.Fit, settings: int, seed: int, store: str | None, executor: str, quiet: bool
) -> Fitted:
    """Carries out an inverse study and shows its progress."""
    try:
        with progress(one.name, quiet) as tell:
            return hs.studies.fit(one, settings=settings, seed=seed, store=store, executor=executor, progress=tell)
    except KeyboardInterrupt:
        message = "interrupted; finished runs are kept: repeat the command to resume"
        print(f"headstack: {message}", file=sys.stderr)
        raise click.exceptions.Exit(signals.exit_code()) from None


def write(folder: Path, found: Fitted) -> None:
    """Writes the files of what came of it: all of them, or none."""
    folder.mkdir(parents=True, exist_ok=True)
    write_all((folder / name, put) for name, put in files(found))


def files(found: Fitted) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """The files, each with what writes it."""
    from headstack.report import html  # start-up time

    texts = {"fit.json": found.to_json(), "settings.csv": found.to_csv()}
    try:
        html.check_built()
    except InputError as error:
        print(f"headstack: skipped report.html: {error}", file=sys.stderr)
    else:
        texts["report.html"] = html.to_html(found.report())
    for name, text in texts.items():
        yield name, partial(Path.write_text, data=text, encoding="utf-8")


def show(found: Fitted) -> None:
    """Prints the finding, the figures, and what is left of each unknown."""
    say(f"\n{found.title}\n{found.question}\n")
    columns, rows = rows_table(found)
    print_table([Names(columns[0]), Words(columns[1]), *map(Figures, columns[2:])], rows)
    say("")
    columns, rows = unknowns_table(found)
    print_table([Names(columns[0]), *map(Prose, columns[1:4])], [row[:4] for row in rows])
    say(f"\n{finding(found)}")
    if found.summary:
        say(f"\n{found.summary}")
