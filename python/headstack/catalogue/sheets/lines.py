"""The lines of a data sheet as it is pasted: a label and a value each, however the two are kept apart."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headstack._native import InputError

MARKS = str.maketrans("", "", "®™©¹²³⁴⁵⁶⁷⁸⁹⁰†‡*\u200b")
"""Signs of trade marks and footnotes."""
APART = (re.compile(r"\t+|\s*\|\s*"), re.compile(r"\s*:(?:\s+|$)|\s+=\s+|(?<=\w)=(?=\w)|：\s*"), re.compile(r"\s{2,}"))
"""What keeps a label from its value, and values of several models from each other; the first that a line has."""


@dataclass(frozen=True)
class Line:
    """What a sheet states in one line."""

    number: int
    label: str
    value: str

    @property
    def told(self) -> str:
        """As messages and comments quote it."""
        return f"line {self.number}: {self.label}: {self.value}"


def lines_of(text: str, form: str = "", column: int | None = None) -> list[Line]:
    """The lines of a sheet that have a label and a value; ``form`` is ``csv``, ``toml`` or none of them.

    ``column`` is the model, from 1, where lines have a value for each of several. Raises ``InputError`` for a line with
    several and no column, and for TOML that is none.

    >>> [(line.label, line.value) for line in lines_of("Spindle speed (RPM): 7200")]
    [('Spindle speed (RPM)', '7200')]
    """
    if form == "toml":
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"the sheet is no TOML: {error}") from None
        return [Line(number, label, str(value)) for number, (label, value) in enumerate(_flat(table), 1)]
    found = []
    for number, raw in enumerate(text.splitlines(), 1):
        cells = _cells(raw.translate(MARKS), form)
        if cells is not None:
            found.append(Line(number, cells[0], _of(cells[1:], number, column)))
    return found


def _flat(table: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{parent}{key}.")
        else:
            yield f"{parent}{key}", value


def _cells(raw: str, form: str) -> list[str] | None:
    """Label and values; ``None`` for what has no value."""
    text = raw.strip().strip("|").strip()
    if not text or text.startswith("#"):
        return None
    if form == "csv":
        cells = next(csv.reader([text], skipinitialspace=True))
    else:
        apart = next((apart for apart in APART if apart.search(text)), None)
        if apart is None:
            # Pasted from a page, a value follows its label after one blank.
            match = re.fullmatch(r"(.*?[A-Za-z)]\)?)\s+((?:up to\s+|[<>~≤±$]\s*)?\d.*)", text, re.IGNORECASE)
            cells = [*match.groups()] if match else []
        else:
            cells = apart.split(text, maxsplit=1 if apart is APART[1] else 0)
    cells = [cell.strip() for cell in cells]
    return cells if len(cells) > 1 and cells[0] and any(cells[1:]) else None


def _of(values: list[str], number: int, column: int | None) -> str:
    """The value of the model that is wanted."""
    if len(values) == 1:
        return values[0]
    if column is None:
        raise InputError(
            f"line {number}: the sheet has {len(values)} models; choose one with --column 1 to {len(values)}"
        )
    if not 1 <= column <= len(values):
        raise InputError(f"line {number}: column {column}; 1 to {len(values)} are allowed")
    return values[column - 1]
