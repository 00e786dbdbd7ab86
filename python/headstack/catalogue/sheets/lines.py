"""Lines of a pasted data sheet: a label and a value each, in any usual separation."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headstack._native import InputError

MARKS = str.maketrans("", "", "®™©¹²³⁴⁵⁶⁷⁸⁹⁰†‡*\u200b")
"""Trade marks and footnote signs."""
SEPARATORS = (
    re.compile(r"\t+|\s*\|\s*"),
    re.compile(r"\s*:(?:\s+|$)|\s+=\s+|(?<=\w)=(?=\w)|：\s*"),
    re.compile(r"\s{2,}"),
)
"""Separators between a label and its value, and between values of several models; the first one that a line contains is
used.
"""


@dataclass(frozen=True)
class Line:
    """One line of a data sheet."""

    number: int
    label: str
    value: str

    @property
    def quoted(self) -> str:
        """Quotes the line in messages and comments."""
        return f"line {self.number}: {self.label}: {self.value}"


def lines_of(text: str, form: str = "", column: int | None = None) -> list[Line]:
    """Returns the lines of a data sheet that have a label and a value; ``form`` is ``csv``, ``toml`` or empty.

    ``column`` selects the model, from 1, if lines have values for several. Raises ``InputError`` for a line with
    several values and no column, and for invalid TOML.

    >>> [(line.label, line.value) for line in lines_of("Spindle speed (RPM): 7200")]
    [('Spindle speed (RPM)', '7200')]
    """
    if form == "toml":
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"the sheet is not valid TOML: {error}") from None
        return [Line(number, label, str(value)) for number, (label, value) in enumerate(_flat(table), 1)]
    lines = []
    for number, raw in enumerate(text.splitlines(), 1):
        cells = _cells(raw.translate(MARKS), form)
        if cells is not None:
            lines.append(Line(number, cells[0], _select_value(cells[1:], number, column)))
    return lines


def _flat(table: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{parent}{key}.")
        else:
            yield f"{parent}{key}", value


def _cells(raw: str, form: str) -> list[str] | None:
    """Returns label and values, or ``None`` for a line without a value."""
    text = raw.strip().strip("|").strip()
    if not text or text.startswith("#"):
        return None
    if form == "csv":
        cells = next(csv.reader([text], skipinitialspace=True))
    else:
        apart = next((apart for apart in SEPARATORS if apart.search(text)), None)
        if apart is None:
            # In text pasted from a page, a single space separates value and label.
            match = re.fullmatch(r"(.*?[A-Za-z)]\)?)\s+((?:up to\s+|[<>~≤±$]\s*)?\d.*)", text, re.IGNORECASE)
            cells = [*match.groups()] if match else []
        else:
            cells = apart.split(text, maxsplit=1 if apart is SEPARATORS[1] else 0)
    cells = [cell.strip() for cell in cells]
    return cells if len(cells) > 1 and cells[0] and any(cells[1:]) else None


def _select_value(values: list[str], number: int, column: int | None) -> str:
    """Returns the value of the selected model."""
    if len(values) == 1:
        return values[0]
    if column is None:
        raise InputError(
            f"line {number}: the sheet has {len(values)} models; choose one with --column 1 to {len(values)}"
        )
    if not 1 <= column <= len(values):
        raise InputError(f"line {number}: column {column} is out of range; must be 1 to {len(values)}")
    return values[column - 1]
