"""``headstack plot``."""

from __future__ import annotations

from typing import Any

import click

from headstack._native import InputError
from headstack.cli.files import OUTPUT_FOLDER, SOURCE, check_folder
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_table, say, wide_option
from headstack.measurement.fio.collected import Collected, fio_results


@click.command()
@click.argument(
    "sources",
    nargs=-1,
    required=True,
    type=SOURCE,
    metavar="FIO...",
    help="fio JSON, fio logs, or folders of them, such as those of bench-fio.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=OUTPUT_FOLDER,
    metavar="DIR",
    help="Write a picture of each figure into this folder.",
)
@output_options(Collected, csv="Write a row for each result (- for stdout).")
@wide_option
def plot(sources: tuple[str, ...], folder: str | None, **paths: Any) -> None:
    """Draw fio results: its JSON (of any version) and its logs.

    \b
    headstack compare plot fio.json -o pictures
    headstack compare plot before/ after/ --html fio.html

    Results are drawn over queue depth and number of jobs (as maps if both vary), by percentile and as histograms;
    folders side by side with their difference; logs over time, for each job. --html writes one page, -o a PNG for each
    figure. Unreadable files of a folder are listed and skipped.

    Copies of a job that fio reports separately are joined; their percentiles need json+ or group_reporting.
    """
    if folder is not None:
        check_folder(folder)
        try:
            import matplotlib  # noqa: F401  # start-up time
        except ImportError:
            raise InputError("--output: pictures need matplotlib; install headstack[plot]") from None
    outputs = Outputs(paths, Collected)
    collected = fio_results(*sources)
    outputs.write(collected, lambda: print_collected(collected))
    if folder is not None:
        drawn = collected.pictures(folder)
        if not outputs.has_stdout:
            say(f"wrote {len(drawn)} pictures to {folder}")


def print_collected(collected: Collected) -> None:
    """Prints the results, their number, and unreadable files."""
    if collected.loads:
        print_table(*collected.shown())
        say("")
    say(collected.headline)
    for bad in collected.bad:
        say(f"skipped unreadable file: {bad}")
