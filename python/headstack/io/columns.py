"""Text tables that fit the terminal: if it is too narrow, whole columns are left out by rank."""

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
    """A column of a text table."""

    heading: str
    """The unit is on a line of its own, which saves width."""
    is_text: bool = False
    """Text is aligned left, figures right."""
    rank: int = 1
    """Columns of rank 0 are always shown; among the others, lower ranks get space first, and at equal rank the
    leftmost.
    """
    least: int = 0
    """Minimum width to which prose is wrapped between words; 0 if the cell must not be wrapped."""

    @property
    def title(self) -> str:
        """The heading on one line."""
        return " ".join(self.heading.split()) or "remarks"


class Names(Column):
    """A column that identifies rows: always shown and never wrapped."""

    def __init__(self, heading: str) -> None:
        super().__init__(heading, is_text=True, rank=0)


class Words(Column):
    """A text column that is not wrapped."""

    def __init__(self, heading: str, rank: int = 1) -> None:
        super().__init__(heading, is_text=True, rank=rank)


class Prose(Column):
    """A text column that may be wrapped between words."""

    def __init__(self, heading: str, rank: int = 1, least: int = 24) -> None:
        super().__init__(heading, is_text=True, rank=rank, least=least)


class Figures(Column):
    """A column of counts or measured values."""

    def __init__(self, heading: str, rank: int = 1) -> None:
        super().__init__(heading, rank=rank)


def width_of(stream: TextIO) -> int | None:
    """Returns the width of a terminal, or ``COLUMNS`` if set; ``None`` for a pipe or a file, which needs no fitting."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def is_plain(stream: TextIO) -> bool:
    """Whether a stream takes plain text only: it is no terminal, or one that cannot move back within a line."""
    return not stream.isatty() or os.environ.get("TERM") == "dumb"


def drawn(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], width: int | None = None, bold: bool = False
) -> tuple[str, list[str]]:
    """Returns a table that fits a width as far as the columns of rank 0 allow, and the titles of the columns left out.

    This does not use rich, which takes longer to load than most commands run.
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


def format_repr(columns: Sequence[Column], rows: Iterable[Sequence[str]], last: str, where: str) -> str:
    """Formats a table as the ``repr`` of an object, with a last line; ``where`` says where to find the columns left
    out.
    """
    table, left_out = drawn(columns, rows, width_of(sys.stdout))
    return "\n".join([table, last, *([not_shown(left_out, where)] if left_out else [])])


def not_shown(left_out: Sequence[str], where: str) -> str:
    """Returns a line that names the columns left out and where to find them."""
    return f"not shown: {', '.join(left_out)} ({where})"


def _fitted(columns: Sequence[Column], cells: list[list[Cell]], width: int | None) -> dict[int, int]:
    """Returns the columns to show with their widths: as many as fit, with prose wrapped."""
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
        # Shrink the widest column first.
        widths[max(gives, key=widths.__getitem__)] -= 1
    return widths


def _longest_word(cells: list[list[Cell]], column: int) -> int:
    return max((len(word) for row in cells for line in row[column] for word in line.split()), default=0)


def _total(widths: dict[int, int]) -> int:
    """Returns the width of a table's rule, which is slightly longer than its lines."""
    return sum(widths.values()) + 2 * len(widths) - 1


def folded(line: str, width: int) -> list[str]:
    """Wraps a line between words to a width and keeps its indentation."""
    indent = line[: len(line) - len(line.lstrip())]
    wrapped = textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return wrapped or [""]
