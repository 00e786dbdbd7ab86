"""Prices of drives, hosts, cloud volumes and power, each with its day, currency and source.

A price is a row of a CSV file: ``item``, ``price``, ``currency``, ``date`` (``2019``, ``2019-06`` or ``2019-06-04``),
``confidence`` (A read in the named source, S stated by a study's document, M read at second hand or in part, B and C
general knowledge, D an estimate, I inferred) and ``source``, in any order; ``notes``, ``kind`` and ``capacity`` are
optional. An item is a drive (its id, or the name of a custom file), an array of the catalogue (its host without
drives), ``bay``, ``kWh``, ``cache-GiB``, a billing unit of a cloud (``gp3:GiB-month``), or a currency, whose price in
dollars is its exchange rate on that date. A row with ``kind`` and ``capacity`` is also a sample of its kind, from which
the prices of others are estimated. An item may have several prices: flash prices double within a year, so a price is
only meaningful with its day. No model uses prices.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from statistics import geometric_mean
from typing import Literal

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.drive import Drive
from headstack.catalogue.price_list import (
    SHIPPED,
    Price,
    last_day,
    newest,
    newest_by_item,
    price_class,
    read,
    read_rows,
    shipped_prices,
    without_rate,
)

__all__ = [
    "SHIPPED",
    "Price",
    "PriceBook",
    "kind_of_drive",
    "last_day",
    "newest",
    "price_class",
    "read",
    "read_rows",
    "samples",
    "shipped_prices",
    "without_rate",
]

SAMPLES = Path(__file__).with_name("prices-by-class.csv")
"""Prices of similar drives by year, from which estimates are computed."""

ESTIMATED = "estimated from"
"""Prefix of the source of an estimated price."""

OLD_DAYS, OLD_FLASH_DAYS = 365, 180
"""Minimum age in days of an old price. For example, a 30 TB SSD rose from $3,062 to $10,950 in the nine months to
2026-Q1 (vdura.com).
"""

NEAR_DAYS = 548
"""Maximum time between a day and a sample for an estimate: a year and a half, in which disks lose 33 % of their price.
"""

ALIKE_DAYS = 183
"""Maximum additional distance in time of a sample compared with the nearest sample; farther samples are left out."""

EXTRAPOLATION_MAX = 8.0
"""Maximum ratio of a capacity to the largest sample, or of the smallest sample to the capacity, for an estimate."""

RELATED = {
    "ssd-sata-tlc-ent": ("ssd-nvme-tlc-ent", "ssd-nvme-tlc"),
    "ssd-sas-tlc-ent": ("ssd-nvme-tlc-ent", "ssd-nvme-tlc"),
    "ssd-nvme-tlc-ent": ("ssd-nvme-tlc",),
    "ssd-nvme-qlc-ent": ("ssd-nvme-tlc-ent", "ssd-nvme-qlc"),
    "ssd-sata-mlc-ent": ("ssd-nvme-mlc-ent",),
    "ssd-sas-mlc-ent": ("ssd-nvme-mlc-ent", "ssd-sata-mlc-ent"),
    "ssd-nvme-mlc-ent": ("ssd-sata-mlc-ent",),
    "ssd-sata-tlc": ("ssd-nvme-tlc",),
    "ssd-sata-qlc": ("ssd-sata-tlc", "ssd-nvme-qlc"),
    "ssd-nvme-qlc": ("ssd-nvme-tlc",),
    "ssd-nvme-mlc": ("ssd-sata-mlc",),
    "hdd-7k2-nas": ("nearline",),
    "hdd-7k2-desktop": ("hdd-desktop",),
    "hdd-5k4-desktop": ("hdd-7k2-desktop", "hdd-desktop"),
}
"""Kinds whose samples are used, in this order, if a kind has none near: the same flash with another interface or for
consumers, or a similar class of disk. The estimate names them."""

GROUPS = ("drives", "flash", "disks", "hosts", "cloud")
"""Groups that ``PriceBook.changed`` accepts in addition to items and kinds."""

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@cache
def samples() -> tuple[Price, ...]:
    """Returns prices of similar drives, by year.

    >>> {"nearline", "hdd-15k"} <= {price.kind for price in hs.prices.samples()}
    True
    """
    return read(SAMPLES)


def kind_of_drive(drive: Drive) -> str:
    """Returns the kind by which a drive's price is estimated, from its speed, interface, cells and rated workload.
    Volumes have none.

    >>> hs.prices.kind_of_drive(hs.Drive.load("man3735"))
    'hdd-10k'
    """
    stated = {value["key"]: value["value"] for value in drive.stated}
    if drive.kind == "volume":
        return ""
    if drive.kind == "ssd":
        # Consumer drives lose unwritten data on power loss.
        protected = "-ent" if stated.get("buffer.power_loss_protected") == "true" else ""
        return f"ssd-{stated['interface.kind']}-{stated['flash.cells']}{protected}"
    rpm, link = drive.description["mechanics"]["rpm"], stated["interface.kind"]
    if rpm > 9_000:
        return "hdd-15k" if rpm > 13_000 else "hdd-10k"
    if link == "scsi":
        return "hdd-7k2-scsi"
    name = drive.description["name"]
    # Data sheets of desktop drives state up to 1,000,000 h, those of nearline drives 1,200,000 to 2,500,000.
    is_rated = float(stated.get("reliability.mtbf_h", 0)) >= 1_200_000
    if link in ("sas", "fc") or is_rated or "Ultrastar" in name:
        return "nearline"
    if any(word in name for word in ("IronWolf", "Red", "N300")):
        return "hdd-7k2-nas"
    return "hdd-7k2-desktop" if rpm > 6_500 else "hdd-5k4-desktop"


@dataclass(frozen=True)
class PriceWarning:
    """A warning on the price of an item."""

    code: Literal["missing", "old", "later", "estimate"]
    item: str
    text: str


@dataclass(frozen=True)
class PriceBook:
    """Prices of several files merged: for each item, the one valid on a day.

    The newest price that is not after ``on`` is used; if the month or year of its date has not ended by then, its first
    day counts. Prices from your own files take precedence over headstack's, even if older; for equal days the later
    file is used, and within a file the later row.
    """

    ours: tuple[Price, ...]
    """Prices from your own files, in their order."""
    shipped: tuple[Price, ...] = ()
    """Prices shipped with headstack."""
    samples: tuple[Price, ...] = ()
    """Samples of similar drives shipped with headstack, used only for estimates."""
    on: str | None = None
    """The day of the query; ``None`` for the newest prices. The clock is never read here."""

    @classmethod
    def load(cls, paths: Paths | None = None, on: str | None = None, shipped: bool = True) -> PriceBook:
        """Loads the prices of these files with headstack's prices, or without them.

        Raises ``InputError`` for an invalid price, and if there is nothing to read.

        >>> PriceBook.load(on="2012-06").usd("re4-2tb")
        246.0
        """
        some = [] if paths is None else [paths] if isinstance(paths, str | os.PathLike) else [*paths]
        if not some and not shipped:
            raise InputError("needs a file if headstack's own prices are excluded", key="prices")
        if on is not None:
            last_day(on)
        ours = tuple(price for path in some for price in read(path))
        return cls(ours, shipped_prices(), samples(), on) if shipped else cls(ours, on=on)

    def at(self, on: str) -> PriceBook:
        """Returns the same prices on another day.

        >>> PriceBook.load().at("2019-07").usd("exos-x16-16tb")
        610.0
        """
        last_day(on)
        return replace(self, on=on)

    @cached_property
    def _valid_prices(self) -> dict[str, Price]:
        """The price of each item."""
        return newest_by_item(self.shipped, self.on) | newest_by_item(self.ours, self.on)

    @cached_property
    def _sampled(self) -> dict[str, str]:
        """The kind of each sample shipped with headstack."""
        return {price.item: price.kind for price in (*self.shipped, *self.samples)}

    def __iter__(self) -> Iterator[Price]:
        """Yields the valid prices, by item."""
        return iter(sorted(self._valid_prices.values(), key=lambda price: price.item))

    def price(self, item: str) -> Price | None:
        """Returns the price of an item, or ``None`` if it is unknown on the day.

        >>> PriceBook.load(on="2026-06").price("kWh").confidence
        'M'
        """
        return self._valid_prices.get(item)

    def usd(self, item: str) -> float:
        """Returns the price of an item in dollars. Raises ``InputError`` if it is unknown on the day.

        >>> PriceBook.load(on="2026-06").usd("gp3:GiB-month")
        0.08
        """
        price = self.price(item)
        if price is None:
            raise InputError(f"{self._missing(item)}", key="prices")
        return price.usd

    def age_days(self, item: str, on: str | None = None) -> int:
        """Returns the minimum age of an item's price in days, on the book's day unless another is given.

        >>> PriceBook.load(on="2012-06-07").age_days("re4-2tb")
        30
        """
        day = self._day(on)
        book = self if on is None else self.at(on)
        price = book.price(item)
        if price is None:
            raise InputError(f"{book._missing(item)}", key="prices")
        return price.age_days(day)

    def warnings(self, items: Iterable[str], on: str | None = None, old_days: int = OLD_DAYS) -> list[str]:
        """Returns a warning line for each of these items whose price is old (half a year for flash, otherwise a year),
        is an estimate, or is missing on the day.

        >>> PriceBook.load(on="2026-03").warnings(["exos-x16-16tb"])
        ['exos-x16-16tb: the price is from 2019, at least 2,282 days old on 2026-03']
        """
        return [f"{warning.item}: {warning.text}" for warning in self.coded_warnings(items, on, old_days)]

    def coded_warnings(
        self, items: Iterable[str], on: str | None = None, old_days: int = OLD_DAYS
    ) -> list[PriceWarning]:
        """Returns the warnings of ``warnings``, each with its code.

        >>> PriceBook.load(on="2026-03").coded_warnings(["exos-x16-16tb"])[0].code
        'old'
        """
        day = self._day(on)
        book = self if on is None else self.at(on)
        coded: list[PriceWarning] = []
        for item in dict.fromkeys(items):
            price = book.price(item)
            if price is None:
                coded.append(PriceWarning("missing", item, book._missing(item).removeprefix(f"{item}: ")))
                continue
            limit = min(old_days, OLD_FLASH_DAYS) if book.kind_of(item).startswith("ssd") else old_days
            age = price.age_days(day)
            if age > limit:
                text = f"the price is from {price.date}, at least {age:,} days old on {day}"
                coded.append(PriceWarning("old", item, text))
            if "-" not in price.date and price.until > last_day(day):
                text = f"the price is from {price.date}, which may be after {day}"
                coded.append(PriceWarning("later", item, text))
            if price.is_estimate:
                text = f"the price is an estimate ({price.confidence}): {price.source}"
                coded.append(PriceWarning("estimate", item, text))
        return coded

    def kind_of(self, item: str) -> str:
        """Returns the kind of a drive, from a price file or else from the catalogue; empty for an unknown drive.

        >>> PriceBook.load().kind_of("870-evo-1tb")
        'ssd-sata-tlc'
        """
        for price in reversed(self.ours):
            if price.item == item and price.kind:
                return price.kind
        return _kind_in_catalogue(item) or self._sampled.get(item, "")

    def changed(self, items: str | Collection[str], factor: float) -> PriceBook:
        """Returns a book in which these cost ``factor`` times as much: items, kinds (``nearline``, or prefixes of
        kinds: ``ssd-nvme``), or ``drives``, ``flash``, ``disks``, ``hosts`` and ``cloud``.

        Raises ``InputError`` for names without a price here.

        >>> round(PriceBook.load().changed("disks", 1.1).usd("re4-2tb"), 2)
        270.6
        """
        if not (math.isfinite(factor) and factor > 0):
            raise InputError(f"factor {factor:g} is out of range; must be above 0", key="prices")
        names = [items] if isinstance(items, str) else [*items]
        chosen = {name: self.items_of(name) for name in names}
        for name, some in chosen.items():
            if not some:
                raise InputError(
                    f"no price matches {name!r}; allowed: an item, a kind, {', '.join(GROUPS)}", key="prices"
                )
        scaled = set[str]().union(*chosen.values())

        def change(price: Price) -> Price:
            if price.item not in scaled:
                return price
            notes = "; ".join(filter(None, (price.notes, f"times {factor:g}")))
            return replace(price, usd=price.usd * factor, stated=None, currency="USD", notes=notes)

        ours, shipped, sampled = (tuple(map(change, part)) for part in (self.ours, self.shipped, self.samples))
        return PriceBook(ours, shipped, sampled, self.on)

    def estimate(self, kind: str, capacity_bytes: int, item: str = "") -> Price | None:
        """Estimates the price of a drive of a kind and capacity on the book's day from dated samples of its kind;
        ``None`` if there are none near that day and capacity. Use it only on request, and mark it as an estimate.

        Of the samples within a year and a half the nearest by day are used for each capacity; if several are equally
        near, their geometric mean. Dollars per byte are interpolated in the logarithm of capacity, and are constant
        below the smallest and above the largest.

        >>> PriceBook.load(on="2001").estimate("hdd-10k", 73_400_000_000).usd
        745.0
        """
        day = self._day(None)
        if capacity_bytes <= 0:
            raise InputError(f"capacity of {capacity_bytes} bytes is out of range; must be above 0", key="prices")
        for taken in (kind, *RELATED.get(kind, ())):
            some = self._near(taken, capacity_bytes, day)
            if some:
                usd = _interpolated(some, capacity_bytes) * capacity_bytes
                source = _estimated_from(kind, taken, some, capacity_bytes)
                name = item or f"{kind} of {_native.format_bytes(capacity_bytes)}"
                return Price(name, usd, day, "D", source, kind=kind, capacity_bytes=capacity_bytes)
        return None

    def _near(self, kind: str, capacity_bytes: int, day: str) -> list[Price]:
        """Returns the nearest samples of a kind by day, one day per capacity, sorted by capacity."""
        by_capacity: dict[int, dict[tuple[int, bool], list[Price]]] = {}
        for price in (*self.samples, *self.shipped, *self.ours):
            size = price.capacity_bytes
            if (
                price.kind == kind
                and size is not None
                and 1 / EXTRAPOLATION_MAX <= capacity_bytes / size <= EXTRAPOLATION_MAX
            ):
                # If two are equally near, use the earlier one: its price was already known on that day.
                apart = (price.apart_days(day), price.since > last_day(day))
                by_capacity.setdefault(size, {}).setdefault(apart, []).append(price)
        nearest = {size: min(some) for size, some in by_capacity.items()}
        limit = min(NEAR_DAYS, ALIKE_DAYS + min((days for days, _ in nearest.values()), default=0))
        return [
            price for size in sorted(nearest) if nearest[size][0] <= limit for price in by_capacity[size][nearest[size]]
        ]

    def items_of(self, name: str) -> set[str]:
        """Returns the items that a name stands for: itself, or those of a kind or group; empty if it is unknown.

        >>> PriceBook.load().items_of("kWh")
        {'kWh'}
        """
        items = {price.item for price in (*self.shipped, *self.ours, *self.samples)}
        if name in items:
            return {name}
        if name == "cloud":
            return {item for item in items if ":" in item}
        if name == "hosts":
            return items & {*_native.array_ids()}
        kinds = {item: kind for item in items if (kind := self.kind_of(item))}
        begins = {"flash": ("ssd",), "disks": ("hdd", "nearline"), "drives": ("",)}.get(name, (name,))
        return {item for item, kind in kinds.items() if kind.startswith(begins)}

    def _missing(self, item: str) -> str:
        """Returns the reason why an item has no price."""
        later = [price for price in (*self.shipped, *self.ours) if price.item == item]
        if later:
            first = min(later, key=lambda price: price.since).date
            return f"{item}: no price on or before {self.on}; the first is from {first}"
        return f"{item}: no price"

    def _day(self, on: str | None) -> str:
        day = self.on if on is None else on
        if day is None:
            raise InputError("needs a day, for example 2026-11-23", key="on")
        last_day(day)
        return day


def _interpolated(some: Sequence[Price], capacity_bytes: int) -> float:
    """Interpolates dollars per byte at a capacity from samples sorted by capacity; samples of equal capacity contribute
    their geometric mean.
    """
    sizes: dict[int, list[float]] = {}
    for price in some:
        if price.capacity_bytes is not None:
            sizes.setdefault(price.capacity_bytes, []).append(price.usd)
    points = [(math.log(size), (geometric_mean(usd) if len(usd) > 1 else usd[0]) / size) for size, usd in sizes.items()]
    x = math.log(capacity_bytes)
    if x <= points[0][0]:
        return points[0][1]
    for (low, below), (high, above) in pairwise(points):
        if x <= high:
            return below + (above - below) * (x - low) / (high - low)
    return points[-1][1]


def _estimated_from(kind: str, taken: str, some: Sequence[Price], capacity_bytes: int) -> str:
    """Describes the samples of an estimate."""
    dates = sorted({price.date for price in some})
    sizes = [price.capacity_bytes for price in some if price.capacity_bytes]
    sampled_kind = taken if taken == kind else f"{taken} ({kind} has no sample of similar size)"
    source = f"{ESTIMATED} {len(some)} {'sample' if len(some) == 1 else 'samples'} of {sampled_kind}, {_span(dates)}, "
    source += _span(list(dict.fromkeys(map(_native.format_bytes, sizes))))
    # Drives of the same nominal size differ by this much.
    is_within = 0.97 * sizes[0] <= capacity_bytes <= 1.03 * sizes[-1]
    return source if is_within else f"{source}, extrapolated at a constant price per byte"


def _span(ends: Sequence[str]) -> str:
    return ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"


@cache
def _kind_in_catalogue(item: str) -> str:
    return kind_of_drive(Drive.load(item)) if item in _native.drive_ids() else ""
