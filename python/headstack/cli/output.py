"""What commands print and write: tables, progress, and files that appear whole or not at all."""

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
"""Saturated runs that are named one by one."""

SILENT_S = 2.0
"""Progress in plain lines begins after this long, so that short commands say nothing."""
LINE_EVERY_S = 10.0
"""Where progress is slow, a plain line comes at least so often."""


SOURCES = (Prose("key", 0, least=12), Prose("value", 0, least=12), Prose("source", least=16))
"""Of tables of values and where they are from."""

WIDE = f"{__name__}.wide"
"""Where a command's context has that it was asked for."""


def _remember_wide(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.meta[WIDE] = value


wide_option = click.option(
    "--wide",
    is_flag=True,
    expose_value=False,
    callback=_remember_wide,
    help="Print all columns, even if they exceed the width of the terminal.",
)
"""Of every command that prints tables."""


VERBOSE = f"{__name__}.verbose"
"""The entry of a command's context that says whether it prints every note."""
NOTES_MAX = 3
"""Notes under a result without ``--verbose``."""


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
"""Of every command that prints results of runs."""


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table, as wide as the terminal is; in a pipe, or with ``--wide``, nothing is left out or broken."""
    context = click.get_current_context(silent=True)
    width = None if context is not None and context.meta.get(WIDE) else width_of(sys.stdout)
    is_bold = not is_plain(sys.stdout) and not os.environ.get("NO_COLOR")
    table, left_out = drawn(columns, rows, width, is_bold)
    send(sys.stdout, f"{table}\n")
    if left_out:
        has_csv = context is not None and any(p.name == "csv_path" for p in context.command.params)
        say(not_shown(left_out, "add --wide or --csv" if has_csv else "add --wide"))


def say(sentences: str) -> None:
    """Prints sentences, broken between words where a line is longer than the terminal is wide; a line that is a command
    of this program stays whole, to be copied."""
    width = width_of(sys.stdout)
    for line in visible(sentences).split("\n"):
        is_whole = width is None or len(line) <= width or line.lstrip().startswith("headstack ")
        print(line if is_whole or width is None else "\n".join(folded(line, width)))


def print_results(results: Results, with_streams: bool = False, limit: str | None = None) -> None:
    """Prints the answer in a sentence, the table of results and that of the streams of scenarios, then notes; with a
    ``limit`` on latency also how many drives meet it."""
    say(headline(results))
    print()
    operations, done = results.shown_operations()
    if done:
        print_table(operations, done)
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
        for one in saturated if len(saturated) <= NAMED_MAX else []:
            say(f"saturated: {one}")
    if limit is not None:
        for answer in results.fewest_drives(limit):
            print()
            say(answer.told(limit))
    print_notes(results)


def print_notes(results: Results) -> None:
    """Prints three notes on results, the most important first, or with ``--verbose`` all of them and the legend."""
    print_notes_of([*results.flash_states, *results.warnings], results.legend)


def print_notes_of(notes: Sequence[str], legend: Sequence[str] = ()) -> None:
    """Prints three of the notes, or with ``--verbose`` all of them and the legend."""
    context = click.get_current_context(silent=True)
    is_verbose = context is not None and context.meta.get(VERBOSE)
    for note in [*notes, *legend] if is_verbose else notes[:NOTES_MAX]:
        say(f"note: {note}")
    if not is_verbose and len(notes) > NOTES_MAX:
        more = len(notes) - NOTES_MAX
        say(f"{counted(more, 'more note')}: add --verbose")


@contextmanager
def progress(what: str, quiet: bool) -> Iterator[Callable[[float], object] | None]:
    """Shows the share done on stderr: a bar on a terminal, else a line for every tenth, and one every ten seconds."""
    if quiet:
        yield None
    elif not is_plain(sys.stderr):
        from rich.console import Console  # start-up time
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # start-up time

        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(file=drawable(sys.stderr)), transient=True) as bar:
            task = bar.add_task(visible(what), total=1.0)
            yield lambda share: bar.update(task, completed=share)
    else:
        yield _plain_lines(what)


def _plain_lines(what: str) -> Callable[[float], object]:
    started = last = time.monotonic()
    tenth = 0

    def show(share: float) -> None:
        nonlocal tenth, last
        now = time.monotonic()
        if int(share * 10) > tenth and now - started > SILENT_S:
            tenth, last = int(share * 10), now
            print(f"headstack: {what}: {10 * tenth} %", file=sys.stderr, flush=True)
        elif now - last > LINE_EVERY_S:
            last = now
            print(f"headstack: {what}: {100 * share:.2g} %", file=sys.stderr, flush=True)

    return show


class Outputs:
    """The files that a command writes beside what it prints: those of all formats of its result's class, or those that
    writers are given for; ``more`` are writers of this command alone.

    That the files can be written was seen when the command line was read: their options are of type ``OUTPUT``.
    """

    def __init__(self, given: Mapping[str, Any], result: type | Mapping[str, Writer], **more: Writer) -> None:
        """Raises ``InputError`` for what could not be made: to be known before anything is measured."""
        self._writers = writers_of(result) if isinstance(result, type) else dict(result)
        self._writers |= more
        self._files = {name: given[f"{name}_path"] for name in self._writers if given.get(f"{name}_path") is not None}
        to_stdout = [name for name, path in self._files.items() if _native.is_stdout(path)]
        if len(to_stdout) > 1:
            raise InputError(f"{', '.join(f'--{name}' for name in to_stdout)}: only one output can be stdout")
        self.has_stdout = bool(to_stdout)
        """Whether one of the files is stdout."""
        for name in self._files.keys() & FORMATS.keys():
            FORMATS[name].check(self._files[name])
        if HTML.name not in self._files:
            refuse_simulator_without_page()

    def write(self, results: object, show: Callable[[], object] = lambda: None) -> None:
        """Writes what was asked for; ``show`` has stdout unless a file of text has it, and then too when files fail."""
        printed = [
            name for name, path in self._files.items() if path == "-" and name in FORMATS and FORMATS[name].is_text
        ]
        sys.stdout.flush()
        is_refused = False
        try:
            write_all(
                (path, partial(self._writers[name], results))
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
                    print(self._writers[name](results), end="")
                if not self.has_stdout:
                    show()
