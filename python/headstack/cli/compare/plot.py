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
    help="fio's JSON, its logs, or folders of them, such as bench-fio leaves.",
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
def plot(sources: tuple[str, ...], folder: str | None, **given: Any) -> None:
    """Draw what fio measured: its JSON of any version, and its logs.

    Results are drawn over depth and number of jobs, as maps where both vary, by percentile and as histograms, and
    folders side by side with their deviation; logs over time, job by job. --html writes all of them as one page, -o a
    PNG each. Of a folder, files that cannot be read are named and left out.

    Copies of a job that fio tells one by one are joined; their percentiles are known of json+ or with group_reporting.
    """
    if folder is not None:
        check_folder(folder)
        try:
            import matplotlib  # noqa: F401  # start-up time
        except ImportError:
            raise InputError("--output: pictures need matplotlib; install headstack[plot]") from None
    outputs = Outputs(given, Collected)
    found = fio_results(*sources)
    outputs.write(found, lambda: show(found))
    if folder is not None:
        drawn = found.pictures(folder)
        if not outputs.has_stdout:
            say(f"{len(drawn)} pictures are in {folder}")


def show(found: Collected) -> None:
    """The results, how many, and what could not be read."""
    if found.loads:
        print_table(*found.shown())
        say("")
    say(found.headline)
    for bad in found.bad:
        say(f"could not be read, and left out: {bad}")
