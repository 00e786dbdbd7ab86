"""Checks of price files: unknown names, contradictory and old prices."""

from __future__ import annotations

import difflib
import os
import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headstack import _native
from headstack.catalogue.price_list import Price, Rows, read_rows, without_rate
from headstack.catalogue.prices import OLD_DAYS, PriceBook

OTHERS = ("bay", "kWh", "cache-GiB")
"""Items that are not a drive, host, volume or currency: a chassis bay, electricity, controller memory."""
UNMODELLED_TYPES = ("standard", "local-ssd")
"""Volume types with prices but without a model."""


@dataclass(frozen=True)
class Finding:
    """A finding about one line."""

    path: str
    line: int
    item: str
    about: str
    """``unknown``, ``twice``, ``old``, ``estimate``, ``later`` or ``no rate``."""
    text: str


@dataclass(frozen=True)
class Check:
    """A file that was read, with its findings."""

    path: str
    rows: int
    items: int
    first: str
    """The earliest date as written; empty if the file has no rows."""
    last: str
    currencies: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def is_refused(self) -> bool:
        """Whether commands that take prices refuse it."""
        return any(finding.about == "no rate" for finding in self.findings)


def check(paths: Iterable[str | os.PathLike[str]], on: str, old_days: int = OLD_DAYS) -> list[Check]:
    """Reads files and returns the possible faults of each on a day. Raises ``InputError`` for files that are not price
    lists.

    >>> [one.last for one in check([hs.prices.SHIPPED], "2026-11-23")]
    ['2026-02']
    """
    before: dict[tuple[str, str], tuple[str, int, Price]] = {}
    return [_check(read_rows(path), on, old_days, before) for path in paths]


def _check(rows: Rows, on: str, old_days: int, before: dict[tuple[str, str], tuple[str, int, Price]]) -> Check:
    path = rows.path
    lines = dict(zip(rows.prices, rows.lines, strict=True))
    findings = [
        Finding(path, line, currency, "no rate", without_rate(currency, date)) for line, currency, date in rows.unrated
    ]
    names = {price.item: line for price, line in reversed([*lines.items()])}
    for item, line in names.items():
        if (why := _unknown(item, rows.prices, Path(path).parent)) is not None:
            findings.append(Finding(path, line, item, "unknown", why))
    for price, line in lines.items():
        # Samples of a size come from several makers, so their prices may differ.
        if price.is_sample:
            continue
        key = (price.item, price.date)
        if key in before and before[key][2].usd != price.usd:
            other_path, other_line, other = before[key]
            place = f"line {other_line}" if other_path == path else f"{other_path}:{other_line}"
            text = f"{place} has ${other.usd:,.6g} for {price.date}; this row, ${price.usd:,.6g}, is used"
            findings.append(Finding(path, line, price.item, "twice", text))
        before[key] = (path, line, price)
    findings += _findings_on_day(rows, on, old_days)
    dates = sorted(rows.prices, key=lambda price: price.until)
    return Check(
        path,
        len(rows.prices) + len(rows.unrated),
        len(names),
        dates[0].date if dates else "",
        dates[-1].date if dates else "",
        tuple(sorted({price.currency for price in rows.prices} | {currency for _, currency, _ in rows.unrated})),
        tuple(sorted(findings, key=lambda finding: finding.line)),
    )


def _findings_on_day(rows: Rows, on: str, old_days: int) -> list[Finding]:
    """Returns findings about the prices valid on a day; those of samples are checked on their own days."""
    prices = tuple(price for price in rows.prices if not price.is_sample)
    book = PriceBook(prices, on=on)
    findings = []
    for item in dict.fromkeys(price.item for price in prices):
        valid = book.price(item)
        warnings = book.coded_warnings([item], old_days=old_days)
        newest = valid or max((price for price in prices if price.item == item), key=lambda price: price.until)
        line = next(line for price, line in zip(rows.prices, rows.lines, strict=True) if price is newest)
        for warning in warnings:
            # A price that is missing on the day is in the file with a later date.
            about = "later" if warning.code == "missing" else warning.code
            findings.append(Finding(rows.path, line, item, about, warning.text))
    return findings


def _unknown(item: str, prices: Sequence[Price], folder: Path) -> str | None:
    """Returns the reason why an item is unknown, or ``None`` if it is known. A custom drive may be a file next to the
    prices.
    """
    if re.fullmatch("[A-Z]{3}", item) or item in OTHERS or any(p.item == item and p.kind for p in prices):
        return None
    name, separator, unit = item.partition(":")
    if separator:
        units = _native.VOLUME_UNITS
        if unit.partition("-over-")[0] not in units:
            return f"unknown billing unit {unit!r}; allowed: {', '.join(units)}"
        types = [*(sold.name for sold in _native.volume_types()), *UNMODELLED_TYPES]
        return None if name in types or _is_size(name) else f"unknown volume type {name}{_like(name, types)}"
    names = [*_native.drive_ids(), *_native.array_ids(), *_native.volume_ids(), *OTHERS]
    if item in names or (folder / f"{item}.toml").is_file() or Path(f"{item}.toml").is_file():
        return None
    return f"not in the catalogue, and there is no file {item}.toml{_like(item, names)}"


def _is_size(name: str) -> bool:
    """Whether it is the name of a volume type sold by size, such as ``premium-ssd-p10``."""
    series = name.rstrip(string.digits)
    sizes = (f"{sold.name}-{size}" for sold in _native.volume_types() for _, size, _ in sold.sizes)
    return series != name and series in {size.rstrip(string.digits) for size in sizes}


def _like(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, 1, 0.5)
    return f"; did you mean {close[0]}?" if close else ""
