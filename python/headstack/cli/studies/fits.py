"""`headstack fit`: searches for settings that reproduce all figures of a document."""

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
from headstack.cli.studies.studies import output_folder_option, run_options
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
@output_folder_option("fits-out")
@run_options
@wide_option
def fit(names: tuple[str, ...], every: bool, settings: int, seed: int, output: str, **executor_options: Any) -> int:
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
    stated = hs.studies.fits.listed() if every else [fit for name in names for fit in hs.studies.fits.of_study(name)]
    chosen = [hs.studies.fits.load(name) for name in dict.fromkeys(stated)]
    if len({each.name for each in chosen}) < len(chosen):
        raise InputError("two inverse studies have the same name; run them with different -o")
    for each in chosen:
        check_folder(Path(output) / each.name, *FILES)
    for each in chosen:
        fitted = run_fit(each, settings, seed, **executor_options)
        write_fit(Path(output) / each.name, fitted)
        print_fit(fitted)
    return 0


def list_fits() -> None:
    """Prints the inverse studies that ship with headstack."""
    shipped = [hs.studies.fits.load(name) for name in hs.studies.fits.listed()]
    rows = [[each.name, each.question, str(len(each.unknowns)), str(len(each.held_out))] for each in shipped]
    print_table([Names("name"), Prose("question"), Figures("unknowns"), Figures("held out")], rows)


def run_fit(
    inverse_study: hs.studies.fits.Fit, settings: int, seed: int, store: str | None, executor: str, quiet: bool
) -> Fitted:
    """Runs an inverse study and shows its progress."""
    try:
        with progress(inverse_study.name, quiet) as tell:
            return hs.studies.fit(
                inverse_study, settings=settings, seed=seed, store=store, executor=executor, progress=tell
            )
    except KeyboardInterrupt:
        message = "interrupted; finished runs are kept: repeat the command to resume"
        print(f"headstack: {message}", file=sys.stderr)
        raise click.exceptions.Exit(signals.exit_code()) from None


def write_fit(folder: Path, fitted: Fitted) -> None:
    """Writes the files of a fit: all of them, or none."""
    folder.mkdir(parents=True, exist_ok=True)
    write_all((folder / name, put) for name, put in fit_files(fitted))


def fit_files(fitted: Fitted) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Yields the name of each file of a fit and the function that writes it."""
    from headstack.report import html  # start-up time

    texts = {"fit.json": fitted.to_json(), "settings.csv": fitted.to_csv()}
    try:
        html.check_built()
    except InputError as error:
        print(f"headstack: skipped report.html: {error}", file=sys.stderr)
    else:
        texts["report.html"] = html.to_html(fitted.report())
    for name, text in texts.items():
        yield name, partial(Path.write_text, data=text, encoding="utf-8")


def print_fit(fitted: Fitted) -> None:
    """Prints the finding, the figures, and the remaining range of each unknown."""
    say(f"\n{fitted.title}\n{fitted.question}\n")
    columns, rows = rows_table(fitted)
    print_table([Names(columns[0]), Words(columns[1]), *map(Figures, columns[2:])], rows)
    say("")
    columns, rows = unknowns_table(fitted)
    print_table([Names(columns[0]), *map(Prose, columns[1:4])], [row[:4] for row in rows])
    say(f"\n{finding(fitted)}")
    if fitted.summary:
        say(f"\n{fitted.summary}")
