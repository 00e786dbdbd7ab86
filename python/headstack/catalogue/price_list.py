"""Prices as listed: drives, bays, ports and power, each with its date and source."""

from __future__ import annotations

import calendar
import csv
import datetime
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from headstack import _native
from headstack._native import InputError

SHIPPED = Path(__file__).with_name("prices.csv")
"""The prices shipped with headstack."""

COLUMNS = ("item", "price", "currency", "date", "confidence", "source")

OPTIONAL = ("notes", "kind", "capacity")

CONFIDENCES = ("A", "S", "M", "B", "C", "D", "I")

ESTIMATED = ("D", "I")
"""Confidence classes of prices that were estimated or inferred, not read."""

CLASSES = {"under-100": 100.0, "100-to-300": 300.0, "300-to-1000": 1000.0, "over-1000": math.inf}
"""Price classes with their upper bounds, in dollars of the day."""

RATE_DAYS = 366
"""Maximum time between the dates of a price and an exchange rate that converts it."""


def price_class(usd: float) -> str:
    """Returns the class of a price.

    >>> hs.prices.price_class(610)
    '300-to-1000'
    """
    return next(name for name, below in CLASSES.items() if usd < below)


@dataclass(frozen=True)
class Price:
    """The price of one item on a day."""

    item: str
    usd: float
    """US dollars of that day."""
    date: str
    """A year, a month or a day."""
    confidence: str
    source: str
    stated: float | None = None
    """Amount in ``currency`` as stated by the source; ``None`` if the source states dollars."""
    currency: str = "USD"
    notes: str = ""
    kind: str = ""
    """The kind of a drive, such as ``nearline`` or ``ssd-nvme-tlc``; empty if the file does not state it."""
    capacity_bytes: int | None = None

    @property
    def until(self) -> str:
        """Last day that the date can stand for; the price was valid by this day."""
        return last_day(self.date)

    @property
    def since(self) -> str:
        """First day that the date can stand for."""
        return self.date + "-01-01"[3 * self.date.count("-") :]

    @property
    def is_sample(self) -> bool:
        """Whether the price is a sample from which prices of its kind may be estimated."""
        return bool(self.kind) and self.capacity_bytes is not None

    @property
    def is_estimate(self) -> bool:
        """Whether the price was estimated or inferred, not read."""
        return self.confidence in ESTIMATED

    def usd_per_gb(self, capacity_bytes: int) -> float:
        """Returns the price per GB of a drive of that capacity, or of the part that is used.

        >>> Price("mine", 200, "2024", "I", "a quote").usd_per_gb(1_000_000_000_000)
        0.2
        """
        return self.usd * 1e9 / capacity_bytes

    def age_days(self, on: str) -> int:
        """Returns its minimum age on a day, in days: counted from the last day that its date may mean, or 0 if that day
        is still to come.

        >>> Price("mine", 200, "2024", "I", "a quote").age_days("2025-12-31")
        365
        """
        return max(0, _days(self.until, last_day(on)))

    def apart_days(self, day: str) -> int:
        """Returns its minimum distance from a day, before or after, in days.

        >>> [Price("mine", 200, "2024", "I", "").apart_days(day) for day in ("2023-12-30", "2024-05", "2025-01-01")]
        [2, 0, 1]
        """
        last = last_day(day)
        return max(0, _days(self.until, last), _days(last, self.since))


@dataclass(frozen=True)
class Rows:
    """The rows of a price file; those without an exchange rate are not converted to dollars."""

    path: str
    prices: tuple[Price, ...]
    lines: tuple[int, ...]
    """Line numbers of the rows."""
    unrated: tuple[tuple[int, str, str], ...]
    """Line, currency and date of the rows that cannot be converted to dollars."""


@cache
def shipped_prices() -> tuple[Price, ...]:
    """Returns the prices shipped with headstack, all of them read for the item itself.

    >>> len(hs.prices.shipped_prices()) > 15
    True
    """
    return read(SHIPPED)


def read(path: str | os.PathLike[str]) -> tuple[Price, ...]:
    """Reads the prices of a file. Raises ``InputError`` with the line of an invalid one.

    >>> hs.prices.read(hs.prices.SHIPPED) == hs.prices.shipped_prices()
    True
    """
    rows = read_rows(path)
    for line, currency, date in rows.unrated:
        raise InputError(f"{rows.path}:{line}: {without_rate(currency, date)}")
    return rows.prices


def without_rate(currency: str, date: str) -> str:
    """Returns the message for a currency without an exchange rate in its file.

    >>> hs.prices.without_rate("EUR", "2024-05")
    "currency: 'EUR' has no exchange rate within a year of 2024-05; add a row with item EUR and its price in USD"
    """
    return (
        f"currency: {currency!r} has no exchange rate within a year of {date}; "
        f"add a row with item {currency} and its price in USD"
    )


def read_rows(path: str | os.PathLike[str]) -> Rows:
    """Reads the rows of a file, those without an exchange rate separately. Raises ``InputError`` for all other faults.

    >>> hs.prices.read_rows(hs.prices.SHIPPED).unrated
    ()
    """
    name = os.fspath(path)
    try:
        _native.note_input(os.fspath(path))
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            head = [cell.strip() for cell in next(rows, [])]
            if set(head) - {*OPTIONAL} != {*COLUMNS} or len(set(head)) < len(head):
                raise InputError(
                    f"{name}:1: has the columns {','.join(head)}; required: {','.join(COLUMNS)}; "
                    f"optional: {','.join(OPTIONAL)}"
                )
            parsed = [
                (rows.line_num, *_price(f"{name}:{rows.line_num}", head, row))
                for row in rows
                if any(map(str.strip, row))
            ]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=name) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"not a CSV file: {error}", file=name) from None
    rates = [price for _, price, _ in parsed if _is_currency(price.item)]
    prices, lines, unrated = [], [], []
    for line, price, stated in parsed:
        rate = 1.0 if price.currency == "USD" else _rate(price, rates)
        if rate is None:
            unrated.append((line, price.currency, price.date))
            continue
        prices.append(replace(price, usd=stated * rate, stated=None if price.currency == "USD" else stated))
        lines.append(line)
    return Rows(name, tuple(prices), tuple(lines), tuple(unrated))


def newest(item: str, prices: Iterable[Price], on: str | None = None) -> Price | None:
    """Returns the newest price of an item, or the newest as of a day; ``None`` if there is none. For equal days the
    later row is used. If the month or year of a date has not ended by the day, its first day counts.

    >>> hs.prices.newest("exos-x16-16tb", hs.prices.shipped_prices(), on="2019-07").usd
    610.0
    """
    return newest_by_item((price for price in prices if price.item == item), on).get(item)


def newest_by_item(prices: Iterable[Price], on: str | None) -> dict[str, Price]:
    """Returns the newest price of each item that is not after a day."""
    last = "9999-12-31" if on is None else last_day(on)
    newest: dict[str, tuple[str, Price]] = {}
    for price in prices:
        day = price.until if price.until <= last else price.since
        if day <= last and (price.item not in newest or day >= newest[price.item][0]):
            newest[price.item] = (day, price)
    return {item: price for item, (_, price) in newest.items()}


def last_day(date: str, name: str = "on") -> str:
    """Returns the last day of a year, a month or a day.

    >>> hs.prices.last_day("2024-02")
    '2024-02-29'
    """
    if not re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?", date) or date < "0001":
        raise InputError(f'{date!r} is not a date; use a year, a month or a day, for example "2019-06"', key=name)
    parts = [int(part) for part in date.split("-")]
    year, month = parts[0], parts[1] if len(parts) > 1 else 12
    days = calendar.monthrange(year, month)[1]
    day = parts[2] if len(parts) > 2 else days
    if day > days:
        raise InputError(f"{date!r} is not a date; the month has {days} days", key=name)
    return f"{year:04}-{month:02}-{day:02}"


def _price(place: str, head: Sequence[str], row: Sequence[str]) -> tuple[Price, float]:
    """Parses a row, in its own currency."""
    if len(row) > len(head):
        raise InputError(f"{place}: {len(row)} cells for {len(head)} columns; quote text that contains a comma")
    cells = dict.fromkeys((*COLUMNS, *OPTIONAL), "") | {key: cell.strip() for key, cell in zip(head, row, strict=False)}
    for key in ("item", "source"):
        if not cells[key]:
            raise InputError(f"{place}: {key} is missing")
    try:
        stated = float(cells["price"])
    except ValueError:
        stated = math.nan
    if not (math.isfinite(stated) and stated > 0):
        raise InputError(f"{place}: price: {cells['price']!r} is not a number above 0")
    if not _is_currency(cells["currency"]):
        raise InputError(f"{place}: currency: {cells['currency']!r} is not a currency code, for example USD")
    if _is_currency(cells["item"]) and (cells["currency"] != "USD" or cells["item"] == "USD"):
        raise InputError(f"{place}: currency: an exchange rate is the price of another currency in USD")
    if cells["confidence"] not in CONFIDENCES:
        raise InputError(f"{place}: confidence: {cells['confidence']!r}; allowed: {', '.join(CONFIDENCES)}")
    last_day(cells["date"], f"{place}: date")
    capacity: int | None = None
    if cells["capacity"]:
        try:
            capacity = _native.parse_bytes(cells["capacity"])
        except InputError as error:
            raise InputError(f"{place}: capacity: {error}") from None
        if not cells["kind"] or capacity <= 0:
            raise InputError(f"{place}: capacity: must be above 0, and needs a kind")
    price = Price(
        cells["item"],
        stated,
        cells["date"],
        cells["confidence"],
        cells["source"],
        currency=cells["currency"],
        notes=cells["notes"],
        kind=cells["kind"],
        capacity_bytes=capacity,
    )
    return price, stated


def _rate(price: Price, rates: Iterable[Price]) -> float | None:
    """Returns the exchange rate nearest to a price's day, or ``None`` if there is none within a year."""
    near = [
        ((days, abs(_days(rate.until, price.until))), rate.usd)
        for rate in rates
        if rate.item == price.currency
        and (days := max(_days(rate.until, price.since), _days(price.until, rate.since))) <= RATE_DAYS
    ]
    return min(near)[1] if near else None


def _days(earlier: str, later: str) -> int:
    """Returns the number of days between two days."""
    return (datetime.date.fromisoformat(later) - datetime.date.fromisoformat(earlier)).days


def _is_currency(text: str) -> bool:
    return re.fullmatch(r"[A-Z]{3}", text) is not None
