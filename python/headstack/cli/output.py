"""Output of commands: tables, progress, and files that are written completely or not at all."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from headstack import _native
from headstack._native import InputError
from headstack.cli.formats import FORMATS, writers_of
from headstack.cli.formats.format import Writer
from headstack.cli.formats.page import HTML, refuse_simulator_without_page
from headstack.io.atomic_files import write_all
from headstack.io.columns import Column, Prose, drawn, folded, is_plain, not_shown, width_of
from headstack.io.counts import counted
from headstack.io.terminal import drawable, send, visible
from headstack.results.words import headline

if TYPE_CHECKING:
    from headstack.results.results import Results

NAMED_MAX = 8
"""Maximum number of saturated runs to list by name."""

SILENT_S = 2.0
"""Time in seconds before the first plain line of progress, so that short commands print none."""
LINE_EVERY_S = 10.0
"""Maximum time in seconds between two plain lines of slow progress."""


SOURCES = (Prose("key", 0, least=12), Prose("value", 0, least=12), Prose("source", least=16))
"""Columns of a table of values with their sources."""

WIDE = f"{__name__}.wide"
"""Key in the command's context; true if ``--wide`` was set."""


def _remember_wide(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.meta[WIDE] = value


wide_option = click.option(
    "--wide",
    is_flag=True,
    expose_value=False,
    callback=_remember_wide,
    help="Print all columns, even if they exceed the width of the terminal.",
)
"""The option ``--wide`` of commands that print tables."""


VERBOSE = f"{__name__}.verbose"
"""Key in the command's context; true if all notes are printed."""
NOTES_MAX = 3
"""Maximum number of notes under a result without ``--verbose``."""


def _remember_verbose(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.meta[VERBOSE] = value


verbose_option = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=_remember_verbose,
    help="Print all notes, and explain the columns.",
)
"""The option ``--verbose`` of commands that print results of runs."""


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table that fits the width of the terminal; in a pipe or with ``--wide``, prints all columns unbroken."""
    context = click.get_current_context(silent=True)
    width = None if context is not None and context.meta.get(WIDE) else width_of(sys.stdout)
    is_bold = not is_plain(sys.stdout) and not os.environ.get("NO_COLOR")
    table, left_out = drawn(columns, rows, width, is_bold)
    send(sys.stdout, f"{table}\n")
    if left_out:
        has_csv = context is not None and any(p.name == "csv_path" for p in context.command.params)
        say(not_shown(left_out, "add --wide or --csv" if has_csv else "add --wide"))


def say(sentences: str) -> None:
    """Prints sentences wrapped to the width of the terminal.

    A line with a headstack command is not wrapped, so that it can be copied.
    """
    width = width_of(sys.stdout)
    for line in visible(sentences).split("\n"):
        is_whole = width is None or len(line) <= width or line.lstrip().startswith("headstack ")
        print(line if is_whole or width is None else "\n".join(folded(line, width)))


def print_results(
    results: Results, with_streams: bool = False, limit: str | None = None, answer: str | None = None
) -> None:
    """Prints a headline (or the ``answer``), the table of results, the streams of scenarios, and notes.

    With a ``limit`` on latency, also prints the smallest number of drives that meets it.
    """
    say(headline(results) if answer is None else answer)
    print()
    operations, operation_rows = results.shown_operations()
    if operation_rows:
        print_table(operations, operation_rows)
    else:
        print_table(*results.shown(limit))
    if with_streams:
        columns, rows = results.shown_streams()
        if rows:
            print()
            print_table(columns, rows)
    for number, row in enumerate(results, 1):
        if row["data_loss"] is not None:
            print()
            say(f"data loss in run {number} ({row['system']}): {row['data_loss']}")
    saturated = results.overloaded()
    if saturated and len(results) > 1:
        print()
        say(f"saturated: {len(saturated)} of {counted(len(results), 'run')}; their latency grows with time")
        for run in saturated if len(saturated) <= NAMED_MAX else []:
            say(f"saturated: {run}")
    if limit is not None:
        for fewest in results.fewest_drives(limit):
            print()
            say(fewest.format_answer(limit))
    print_notes(results)


def print_notes(results: Results) -> None:
    """Prints up to three notes on results, the most important first, or with ``--verbose`` all notes and the legend."""
    print_notes_of([*results.flash_states, *results.warnings], results.legend)


def print_notes_of(notes: Sequence[str], legend: Sequence[str] = ()) -> None:
    """Prints up to three notes, or with ``--verbose`` all notes and the legend."""
    context = click.get_current_context(silent=True)
    is_verbose = context is not None and context.meta.get(VERBOSE)
    for note in [*notes, *legend] if is_verbose else notes[:NOTES_MAX]:
        say(f"note: {note}")
    if not is_verbose and len(notes) > NOTES_MAX:
        more = len(notes) - NOTES_MAX
        say(f"{counted(more, 'more note')}: add --verbose")


@contextmanager
def progress(label: str, quiet: bool) -> Iterator[Callable[[float], object] | None]:
    """Shows progress on stderr: a bar on a terminal, otherwise a line for every 10 % and at least every ten seconds."""
    if quiet:
        yield None
    elif not is_plain(sys.stderr):
        from rich.console import Console  # start-up time
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # start-up time

        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(file=drawable(sys.stderr)), transient=True) as bar:
            task = bar.add_task(visible(label), total=1.0)
            yield lambda share: bar.update(task, completed=share)
    else:
        yield _plain_lines(label)


def _plain_lines(label: str) -> Callable[[float], object]:
    started = last = time.monotonic()
    tenth = 0

    def show(share: float) -> None:
        nonlocal tenth, last
        now = time.monotonic()
        if int(share * 10) > tenth and now - started > SILENT_S:
            tenth, last = int(share * 10), now
            print(f"headstack: {label}: {10 * tenth} %", file=sys.stderr, flush=True)
        elif now - last > LINE_EVERY_S:
            last = now
            print(f"headstack: {label}: {100 * share:.2g} %", file=sys.stderr, flush=True)

    return show


class Outputs:
    """The output files of a command: one for each format of the result's class, or for each writer passed in.

    ``more`` are writers of this command only. The options are of type ``OUTPUT``, which checks that the files are
    writable when the command line is parsed.
    """

    def __init__(self, options: Mapping[str, Any], result: type | Mapping[str, Writer], **more: Writer) -> None:
        """Raises ``InputError`` for an output that cannot be written. Called before any measurement."""
        self._writers = writers_of(result) if isinstance(result, type) else dict(result)
        self._writers |= more
        self._files = {
            name: options[f"{name}_path"] for name in self._writers if options.get(f"{name}_path") is not None
        }
        to_stdout = [name for name, path in self._files.items() if _native.is_stdout(path)]
        if len(to_stdout) > 1:
            raise InputError(f"{', '.join(f'--{name}' for name in to_stdout)}: only one output can be stdout")
        self.has_stdout = bool(to_stdout)
        """Whether an output is stdout."""
        for name in self._files.keys() & FORMATS.keys():
            FORMATS[name].check(self._files[name])
        if HTML.name not in self._files:
            refuse_simulator_without_page()

    def write(self, results: object, show: Callable[[], object] = lambda: None) -> None:
        """Writes the requested files, then calls ``show`` unless one of them is stdout, even if a file fails."""
        printed = [
            name for name, path in self._files.items() if path == "-" and name in FORMATS and FORMATS[name].is_text
        ]
        sys.stdout.flush()
        is_refused = False
        files = [
            (path, partial(self._writers[name], results)) for name, path in self._files.items() if name not in printed
        ]
        try:
            # Without a file to write, no temporary folder is created either.
            if files:
                write_all(files)
        except InputError:
            # Print only the error line.
            is_refused = True
            raise
        finally:
            if not is_refused:
                for name in printed:
                    print(self._writers[name](results), end="")
                if not self.has_stdout:
                    show()
