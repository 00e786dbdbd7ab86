"""What commands print and write: tables, progress, and files that appear whole or not at all."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from headstack._native import InputError
from headstack.results import Results

SILENT_S = 2.0
"""Progress in plain lines begins after this long, so that short commands say nothing."""


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], text: Sequence[bool], fold: bool = False
) -> None:
    """Prints a table; columns of text are set to the left, figures to the right.

    ``fold`` breaks long text to the width of a terminal; in a pipe nothing is broken.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading, is_text in zip(headings, text, strict=True):
        side: Literal["left", "right"] = "left" if is_text else "right"
        table.add_column(heading, justify=side, vertical="top", overflow="fold", no_wrap=not is_text)
    for row in rows:
        table.add_row(*row)
    width = None if fold and sys.stdout.isatty() else 10_000
    console = Console(file=sys.stdout, width=width, highlight=False, markup=False)
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        print(line.rstrip())


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


def check_writable(paths: Iterable[str]) -> None:
    """Raises ``InputError`` when one of the files could not be written: to be known before anything is run."""
    checked: set[Path] = set()
    for path in map(Path, paths):
        if path.is_dir():
            raise InputError(f"{path}: this is a folder; name a file in it")
        if not path.parent.is_dir():
            raise InputError(f"{path}: the folder {path.parent} does not exist")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InputError(f"{path}: no permission to write")
        if path in checked:
            raise InputError(f"{path}: named twice; each output needs a file of its own")
        checked.add(path)


def write_all(files: Iterable[tuple[str | Path, Callable[[Path], object]]]) -> None:
    """Writes files beside their places, then moves them there: each appears whole, or none at all."""
    unfinished: list[tuple[Path, Path]] = []
    try:
        for path, write in files:
            path = Path(path)
            # The suffix stays: it names the format of a picture.
            unfinished.append((path.with_name(f".{os.getpid()}.{path.name}"), path))
            write(unfinished[-1][0])
        for written, path in unfinished:
            os.replace(written, path)
    finally:
        for written, _ in unfinished:
            written.unlink(missing_ok=True)
