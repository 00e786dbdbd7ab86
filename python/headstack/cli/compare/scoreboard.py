"""``headstack lab scoreboard``: errors of predictions on measured devices."""

from __future__ import annotations

from typing import Any

import click

import headstack as hs
from headstack.cli.files import SOURCE_FOLDER
from headstack.cli.formats import output_options
from headstack.cli.output import Outputs, print_table, progress, say, wide_option
from headstack.comparison.scoreboard.board import Scoreboard
from headstack.comparison.scoreboard.tables import Rows, device_table, headline, summary_table
from headstack.io.columns import Column, Figures, Names, Words


@click.command()
@click.argument(
    "folders",
    nargs=-1,
    metavar="[FOLDER]...",
    type=SOURCE_FOLDER,
    help="Folders of measured devices, NAME.toml and NAME.csv each.  [default: the shipped errors]",
)
@click.option("--alone", is_flag=True, help="Learn intervals only from these folders, not from the shipped devices.")
@output_options(
    Scoreboard,
    json="Write summaries, coverage and all errors as JSON (- for stdout).",
    csv="Write all errors as CSV (- for stdout).",
    parquet=None,
    markdown=None,
)
@wide_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def scoreboard(folders: tuple[str, ...], alone: bool, quiet: bool, **options: Any) -> int:
    """Show the errors of predictions on measured devices.

    \b
    headstack lab scoreboard
    headstack lab scoreboard my-devices/ --csv errors.csv
    headstack lab scoreboard my-devices/ --html errors.html

    Without a folder, shows the devices whose errors ship with headstack. With folders, simulates the measurements in
    them. "Inside" counts the measurements inside prediction intervals, which are learned from all other models.

    "headstack measure DEV --for scoreboard" writes both files of a device; docs/scoreboard.md explains the format.
    """
    outputs = Outputs(options, Scoreboard)
    with progress("scoreboard", quiet) as tell:
        board = hs.scoreboard(folders, alone=alone, progress=tell)
    outputs.write(board, lambda: print_board(board))
    return 0


def print_board(board: Scoreboard) -> None:
    """Prints the headline, the errors by class, and those by device."""
    say(headline(board))
    for table in (summary_table(board), device_table(board)):
        print()
        print_table(_columns(table), table.rows)


def _columns(table: Rows) -> list[Column]:
    """Returns the columns of a table; those to the right are left out first."""
    return [
        Names(head.replace(": ", "\n"))
        if number == 0
        else Words(head.replace(": ", "\n"), number)
        if number < table.words or head == "fitted"
        else Figures(head.replace(": ", "\n"), number)
        for number, head in enumerate(table.heads)
    ]
