"""What commands print and write: tables, progress, and files that appear whole or not at all."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from typing import Any

import click

from headstack import _native
from headstack._native import InputError
from headstack.atomic_files import write_all
from headstack.cli.files import OUTPUT
from headstack.results import Results

SILENT_S = 2.0
"""Progress in plain lines begins after this long, so that short commands say nothing."""


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], text: Sequence[bool], fold: bool = False
) -> None:
    """Prints a table; columns of text are set to the left, figures to the right.

    ``fold`` breaks long text to the width of a terminal; in a pipe nothing is broken. Not by rich, which takes
    longer to load than most commands take.
    """
    height = 1 + max(heading.count("\n") for heading in headings)
    head = [[""] * (height - 1 - heading.count("\n")) + heading.split("\n") for heading in headings]
    lines = [head, *([cell.split("\n") for cell in row] for row in rows)]
    widths = [max(len(line) for row in lines for line in row[column]) for column in range(len(headings))]
    on_terminal = sys.stdout.isatty()
    if fold and on_terminal:
        lines, widths = _folded(lines, widths, text, shutil.get_terminal_size().columns)
    for number, row in enumerate(lines):
        for line in zip_longest(*row, fillvalue=""):
            cells = (
                cell.ljust(width) if is_text else cell.rjust(width)
                for cell, width, is_text in zip(line, widths, text, strict=True)
            )
            shown = "  ".join(cells).rstrip()
            print(f"\x1b[1m{shown}\x1b[0m" if on_terminal and number == 0 else shown)
        if number == 0:
            print("─" * (sum(widths) + 2 * len(widths) - 1))


def _folded(
    lines: list[list[list[str]]], widths: list[int], text: Sequence[bool], columns: int
) -> tuple[list[list[list[str]]], list[int]]:
    """Text broken so that the table fits so many columns: the widest gives first, none below eight."""
    import textwrap

    widths = list(widths)
    while sum(widths) + 2 * len(widths) - 1 > columns:
        widest = max((c for c, is_text in enumerate(text) if is_text), key=lambda c: widths[c], default=0)
        if not text[widest] or widths[widest] <= 8:
            break
        widths[widest] -= 1

    def broken(cell: list[str], column: int) -> list[str]:
        if not text[column]:
            return cell
        return [part for line in cell for part in textwrap.wrap(line, widths[column]) or [""]]

    return [[broken(cell, column) for column, cell in enumerate(row)] for row in lines], widths


def print_results(results: Results, with_streams: bool = False) -> None:
    """The table of results, that of the streams of scenarios, and what has to be said about them."""
    columns, rows = results.shown()
    print_table([c.heading for c in columns], rows, [c.is_text for c in columns])
    if with_streams:
        columns, rows = results.shown_streams()
        if rows:
            print()
            print_table([c.heading for c in columns], rows, [c.is_text for c in columns])
    for number, row in enumerate(results, 1):
        if row["data_loss"] is not None:
            print(f"\ndata loss in run {number} ({row['system']}): {row['data_loss']}")
    saturated = sum(row["saturated"] for row in results)
    if saturated:
        print(
            f"\nsaturated: {saturated} of {len(results)} runs could not keep up with the rate offered; "
            "their response times grow with the length of the run"
        )
    for note in results.notes:
        print(f"note: {note}")


@contextmanager
def progress(what: str, quiet: bool) -> Iterator[Callable[[float], object] | None]:
    """Shows the share done on stderr: a bar on a terminal, else a line for every tenth."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=1.0)
            yield lambda share: bar.update(task, completed=share)
    else:
        yield _plain_lines(what)


def _plain_lines(what: str) -> Callable[[float], object]:
    started, tenth = time.monotonic(), 0

    def show(share: float) -> None:
        nonlocal tenth
        if int(share * 10) > tenth and time.monotonic() - started > SILENT_S:
            tenth = int(share * 10)
            print(f"headstack: {what}: {10 * tenth} %", file=sys.stderr, flush=True)

    return show


html_option = click.option(
    "--html", "html_path", type=OUTPUT, metavar="FILE.html", help="Write a report, one page to look into."
)
"""Of every command that has a report; its exports hold ``html``."""


TEXTS = ("json", "csv")
"""Exports that give their text where no file is named."""


class Outputs:
    """Where a command's results go beside the terminal: ``exports`` writes each kind to a file.

    That the files can be written was seen when the command line was read: their options are of type ``OUTPUT``.
    """

    def __init__(self, given: Mapping[str, Any], exports: Mapping[str, Callable[..., Any]]) -> None:
        """Raises ``InputError`` for what could not be made: to be known before anything is measured."""
        self._exports = exports
        self._files = {name: given[f"{name}_path"] for name in exports if given.get(f"{name}_path") is not None}
        to_stdout = [name for name, path in self._files.items() if _native.is_stdout(path)]
        if len(to_stdout) > 1:
            raise InputError(f"{', '.join(f'--{name}' for name in to_stdout)}: only one of them can have stdout")
        self.has_stdout = bool(to_stdout)
        """Whether an export has it."""
        if "plot" in self._files:
            from headstack.plots import picture_format

            picture_format(self._files["plot"])
        if "html" in self._files:
            from headstack.report.html import check_built

            check_built()

    def write(self, results: object, show: Callable[[], object] = lambda: None) -> None:
        """Writes what was asked for; ``show`` has stdout unless an export has it, and then too when files fail."""
        printed = [name for name, path in self._files.items() if path == "-" and name in TEXTS]
        sys.stdout.flush()
        is_refused = False
        try:
            write_all(
                (path, partial(self._exports[name], results))
                for name, path in self._files.items()
                if name not in printed
            )
        except InputError:
            # What cannot be is said in one line alone.
            is_refused = True
            raise
        finally:
            if not is_refused:
                for name in printed:
                    print(self._exports[name](results), end="")
                if not self.has_stdout:
                    show()
