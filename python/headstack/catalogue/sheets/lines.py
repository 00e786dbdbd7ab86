"""Lines of a pasted data sheet: a label and a value each, in any usual separation."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headstack._native import InputError
from headstack.catalogue.sheets.text import has_decimal_commas, plain, with_points

SEPARATORS = (
    re.compile(r"\t+|\s*\|\s*"),
    re.compile(r"\s*:-?(?:\s+|$)|\s+=\s+|(?<=\w)=(?=\w)"),
    re.compile(r"\s{2,}"),
)
"""Separators between a label and its value, and between values of several models; the first one that a line contains
outside of brackets is used.
"""
SPACED = (
    re.compile(
        r"(interface(?: options?)?|nand|brand|vendor|manufacturer|model(?: number| name| no\.?)?)\s+(\S.*)",
        re.IGNORECASE,
    ),
    re.compile(r"(.*?(?:[A-Za-z)]\s+|\)))((?:up to\s+|[<>~≤±$]\s*)?\d.*)", re.IGNORECASE),
)
"""Lines of text pasted from a page, in which a single space separates label and value."""
DIRECTIONS = (["read", "write"], ["write", "read"])
"""Heads of tables that have a column of reads and one of writes."""
CAPACITY = re.compile(r"^(formatted |user |drive )?capacit")


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
        return [Line(number, plain(label), plain(str(value))) for number, (label, value) in enumerate(_flat(table), 1)]
    plain_text = plain(text)
    decimal_commas = form != "csv" and has_decimal_commas(plain_text)
    lines = []
    columns: list[str] = []
    directions: list[str] = []
    for number, raw in enumerate(plain_text.splitlines(), 1):
        cells = _cells(raw, form)
        if cells is None:
            continue
        label, values = cells[0], [with_points(cells[0], value, decimal_commas) for value in cells[1:]]
        if (heads := [value.lower() for value in values]) in DIRECTIONS:
            directions = heads
            continue
        if directions and len(values) == 2 and all(re.search(r"\d", value) for value in values):
            values = [" / ".join(f"{head} {value}" for head, value in zip(directions, values, strict=True))]
        if not columns and len(values) == 1 and CAPACITY.search(label.lower()):
            values = _listed(values[0])
        columns = columns or (values if len(values) > 1 else [])
        lines.append(Line(number, label, _select_value(values, number, column, columns)))
    return lines


def _listed(value: str) -> list[str]:
    """Returns the capacities of a list, such as `960GB, 1.92TB`; otherwise the value."""
    parts = re.split(r"\s*[,;/]\s+|\s*/\s*|,(?=\d+(?:\.\d+)?\s?[GT]B)", value)
    sizes = [part for part in parts if re.fullmatch(r"\d+(?:\.\d+)?\s*[GT]B", part.strip())]
    return parts if len(parts) > 1 and len(sizes) == len(parts) else [value]


def _flat(table: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{parent}{key}.")
        else:
            yield f"{parent}{key}", value


def _cells(raw: str, form: str) -> list[str] | None:
    """Returns label and values, or ``None`` for a line without a value."""
    text = raw.strip().removeprefix("|").removesuffix("|").strip()
    if not text or text.startswith("#"):
        return None
    if form == "csv":
        cells = next(csv.reader([text], skipinitialspace=True))
    else:
        apart = next((apart for apart in SEPARATORS if _place(apart, text)), None)
        if apart is None:
            match = next(filter(None, (spaced.fullmatch(text) for spaced in SPACED)), None)
            cells = [*match.groups()] if match else []
        else:
            place = _place(apart, text)
            cells = (
                apart.split(text)
                if apart is not SEPARATORS[1] or place is None
                else [text[: place[0]], text[place[1] :]]
            )
    cells = [cell.strip() for cell in cells]
    if [cell.lower() for cell in cells if cell] in DIRECTIONS:
        return ["", *filter(None, cells)]
    return cells if len(cells) > 1 and cells[0] and any(cells[1:]) else None


def _place(separator: re.Pattern[str], text: str) -> tuple[int, int] | None:
    """Returns the place of the first separator outside of brackets, as in `Latency (QD = 1): 80 µs`."""
    places = (match.span() for match in separator.finditer(text))
    return next((place for place in places if text.count("(", 0, place[0]) <= text.count(")", 0, place[0])), None)


def _select_value(values: list[str], number: int, column: int | None, columns: list[str]) -> str:
    """Returns the value of the selected model."""
    if len(values) == 1:
        return values[0]
    if column is None:
        raise InputError(
            f"line {number}: the sheet has {len(values)} models ({', '.join(columns)}); choose one with --column 1 to "
            f"{len(values)}"
        )
    if not 1 <= column <= len(values):
        raise InputError(f"line {number}: column {column} is out of range; must be 1 to {len(values)}")
    return values[column - 1]
