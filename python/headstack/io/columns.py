"""Tables as text, as wide as there is room: where a terminal is too narrow, whole columns are left out, by rank."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TextIO

from headstack.io.terminal import visible

Cell = list[str]
"""The lines of a cell."""


@dataclass(frozen=True)
class Column:
    """A column as people see it."""

    heading: str
    """With its unit on a line of its own, which saves width."""
    is_text: bool = False
    """Set to the left; figures are set to the right."""
    rank: int = 1
    """0 is always shown. Of the others those of least rank have the room first; of equals, the one to the left."""
    least: int = 0
    """Prose is broken between its words, to lines of this length at least; 0 for what stays whole."""

    @property
    def title(self) -> str:
        """The heading in one line."""
        return " ".join(self.heading.split()) or "remarks"


class Names(Column):
    """What tells rows apart: always shown, and whole."""

    def __init__(self, heading: str) -> None:
        super().__init__(heading, is_text=True, rank=0)


class Words(Column):
    """Words that belong together."""

    def __init__(self, heading: str, rank: int = 1) -> None:
        super().__init__(heading, is_text=True, rank=rank)


class Prose(Column):
    """Words that may be broken between."""

    def __init__(self, heading: str, rank: int = 1, least: int = 24) -> None:
        super().__init__(heading, is_text=True, rank=rank, least=least)


class Figures(Column):
    """What is counted or measured."""

    def __init__(self, heading: str, rank: int = 1) -> None:
        super().__init__(heading, rank=rank)


def width_of(stream: TextIO) -> int | None:
    """The columns of a terminal, or what ``COLUMNS`` says; ``None`` in a pipe or a file, where nothing needs to fit."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def is_plain(stream: TextIO) -> bool:
    """Whether a stream takes text alone: no terminal, or one that cannot go back in a line."""
    return not stream.isatty() or os.environ.get("TERM") == "dumb"


def drawn(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], width: int | None = None, bold: bool = False
) -> tuple[str, list[str]]:
    """A table within so many columns, as far as what is always shown allows, and the titles of what was left out.

    Not by rich, which takes longer to load than most commands take.
    """
    height = 1 + max(column.heading.count("\n") for column in columns)
    head = [[""] * (height - 1 - column.heading.count("\n")) + column.heading.split("\n") for column in columns]
    cells: list[list[Cell]] = [head, *([visible(cell).split("\n") for cell in row] for row in rows)]
    widths = _fitted(columns, cells, width)
    lines = []
    for number, row in enumerate(cells):
        shown = [
            [part for line in row[c] for part in (folded(line, room) if len(line) > room else [line])]
            for c, room in widths.items()
        ]
        for line in zip_longest(*shown, fillvalue=""):
            parts = (
                part.ljust(room) if columns[c].is_text else part.rjust(room)
                for part, (c, room) in zip(line, widths.items(), strict=True)
            )
            joined = "  ".join(parts).rstrip()
            lines.append(f"\x1b[1m{joined}\x1b[0m" if bold and number == 0 else joined)
        if number == 0:
            lines.append("─" * _total(widths))
    return "\n".join(lines), [column.title for c, column in enumerate(columns) if c not in widths]


def told(columns: Sequence[Column], rows: Iterable[Sequence[str]], last: str, where: str) -> str:
    """A table as the ``repr`` of an object, and a last line; ``where`` says what has the columns left out."""
    table, left_out = drawn(columns, rows, width_of(sys.stdout))
    return "\n".join([table, last, *([not_shown(left_out, where)] if left_out else [])])


def not_shown(left_out: Sequence[str], where: str) -> str:
    """A line on what a table leaves out, and where that is."""
    return f"not shown: {', '.join(left_out)} ({where})"


def _fitted(columns: Sequence[Column], cells: list[list[Cell]], width: int | None) -> dict[int, int]:
    """The columns to show, each with its width: as many as there is room for, with prose folded."""
    whole = {c: max(len(line) for row in cells for line in row[c]) for c in range(len(columns))}
    if width is None:
        return whole
    least = {
        c: min(room, max(columns[c].least, _longest_word(cells, c))) if columns[c].least else room
        for c, room in whole.items()
    }
    kept = [c for c in whole if columns[c].rank == 0]
    for c in sorted(set(whole) - set(kept), key=lambda c: (columns[c].rank, c)):
        if _total({k: least[k] for k in (*kept, c)}) <= width:
            kept.append(c)
    widths = {c: whole[c] for c in sorted(kept)}
    while _total(widths) > width and (gives := [c for c in widths if widths[c] > least[c]]):
        # The widest gives first.
        widths[max(gives, key=widths.__getitem__)] -= 1
    return widths


def _longest_word(cells: list[list[Cell]], column: int) -> int:
    return max((len(word) for row in cells for line in row[column] for word in line.split()), default=0)


def _total(widths: dict[int, int]) -> int:
    """The width of a table's rule, which is a little longer than its lines."""
    return sum(widths.values()) + 2 * len(widths) - 1


def folded(line: str, width: int) -> list[str]:
    """A line as lines of so many columns, broken between words alone, each as far in as the first."""
    indent = line[: len(line) - len(line.lstrip())]
    wrapped = textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return wrapped or [""]
