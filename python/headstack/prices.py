"""What drives cost: each price with its day and its source.

A price is a row of a CSV file: ``drive`` (an id of the catalogue, or the name of a file of one's own), ``usd``,
``date`` (``2019``, ``2019-06`` or ``2019-06-04``), ``confidence`` (A read in the named source, S stated by a study's
document, B and C general knowledge, D an estimate, I inferred) and ``source``. A drive has as many as were found:
prices of flash double within a year, so that one without its day says little. No model uses them.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from headstack._native import InputError

SHIPPED = Path(__file__).with_name("prices.csv")
"""The prices that headstack knows."""
COLUMNS = ("drive", "usd", "date", "confidence", "source")
CONFIDENCES = ("A", "S", "B", "C", "D", "I")

CLASSES = {"under-100": 100.0, "100-to-300": 300.0, "300-to-1000": 1000.0, "over-1000": math.inf}
"""What a drive costs, in dollars of that day: below so many."""


def price_class(usd: float) -> str:
    """The class of a price.

    >>> hs.prices.price_class(610)
    '300-to-1000'
    """
    return next(name for name, below in CLASSES.items() if usd < below)


@dataclass(frozen=True)
class Price:
    """What one drive cost on a day."""

    drive: str
    usd: float
    """Dollars of the United States, of that day."""
    date: str
    """A year, a month or a day."""
    confidence: str
    source: str

    @property
    def until(self) -> str:
        """The last day that the date may mean: by then it was the price."""
        return self.date + "-12-31"[3 * self.date.count("-") :]

    def usd_per_gb(self, capacity_bytes: int) -> float:
        """Of a drive of that capacity, or of the part of it that is used."""
        return self.usd * 1e9 / capacity_bytes


@cache
def known() -> tuple[Price, ...]:
    """The prices that headstack knows."""
    return read(SHIPPED)


def read(path: str | os.PathLike[str]) -> tuple[Price, ...]:
    """The prices of a file. Raises ``InputError`` with the line of what cannot be one.

    >>> hs.prices.read(hs.prices.SHIPPED) == hs.prices.known()
    True
    """
    name = os.fspath(path)
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = csv.reader(file)
            head = next(rows, [])
            if sorted(head) != sorted(COLUMNS):
                raise InputError(f"{name}:1: the columns are {','.join(head)}; {','.join(COLUMNS)} are needed")
            return tuple(_price(f"{name}:{rows.line_num}", dict(zip(head, row, strict=False))) for row in rows if row)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{name}: is no CSV: {error}") from None


def newest(drive: str, prices: Iterable[Price], on: str | None = None) -> Price | None:
    """The newest price of a drive, or the newest that was one on a day; ``None`` where none is known.

    >>> hs.prices.newest("exos-x16-16tb", hs.prices.known(), on="2019-07").usd
    610.0
    """
    last = None if on is None else Price("", 0, _date("on", on), "", "").until
    found = [price for price in prices if price.drive == drive and (last is None or price.until <= last)]
    return max(found, key=lambda price: price.until, default=None)


def _price(place: str, row: dict[str, str]) -> Price:
    cells = {key: row.get(key, "").strip() for key in COLUMNS}
    for key in ("drive", "source"):
        if not cells[key]:
            raise InputError(f"{place}: {key}: is missing")
    try:
        usd = float(cells["usd"])
    except ValueError:
        usd = math.nan
    if not (math.isfinite(usd) and usd > 0):
        raise InputError(f"{place}: usd: {cells['usd']!r}; a figure above 0 is allowed")
    if cells["confidence"] not in CONFIDENCES:
        raise InputError(f"{place}: confidence: {cells['confidence']!r}; allowed: {', '.join(CONFIDENCES)}")
    return Price(cells["drive"], usd, _date(f"{place}: date", cells["date"]), cells["confidence"], cells["source"])


def _date(place: str, text: str) -> str:
    if not re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?", text):
        raise InputError(f'{place}: {text!r}; a year, a month or a day is allowed, such as "2019-06"')
    return text
