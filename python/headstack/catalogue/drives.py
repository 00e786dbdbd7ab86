"""The drives of the catalogue."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import ge, le
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.catalogue import listings
from headstack.catalogue.drive import Drive
from headstack.catalogue.price_list import CLASSES, Price
from headstack.io.values import choice, number, size_bytes, spread, whole

KINDS = ("disk", "ssd", "hdd", "volume", "instance")
"""Values of ``kind``; ``hdd`` is a synonym of ``disk``. Cloud volumes and the local disks of cloud instances are only
listed on request."""
INTERFACES = ("ata", "sata", "scsi", "fc", "sas", "nvme")
PRICES = tuple(CLASSES)
SORTS = {
    "name": "id",
    "year": "year",
    "capacity": "capacity_bytes",
    "price": "price_usd",
    "usd-per-gb": "usd_per_gb",
    "rpm": "rpm",
    "speed": "sequential_read_bytes_per_s",
    "iops": "random_read_iops",
}
"""Values of ``sort``, with the key in each drive's summary."""


def list(
    kind: str | None = None,
    family: str | None = None,
    year: str | int | None = None,
    rpm: str | int | None = None,
    capacity: str | None = None,
    interface: str | None = None,
    since: str | int | None = None,
    until: str | int | None = None,
    min_capacity: str | None = None,
    max_capacity: str | None = None,
    vendor: str | None = None,
    price: str | None = None,
    prices: Sequence[Price] = (),
    sort: str | None = None,
    reverse: bool = False,
) -> tuple[str, ...]:
    """Returns the ids of all drives, or of those that match: ``hs.drives.list(kind="ssd", since=2018,
    min_capacity="4TB")``.

    ``year``, ``rpm`` and ``capacity`` are ranges: ``LOW..HIGH`` (inclusive), ``LOW..`` or ``..HIGH``; a single speed or
    capacity matches within 1 %. ``since`` and ``until`` are years, ``min_capacity`` and ``max_capacity`` sizes, the
    ends of such ranges. ``interface``, ``vendor`` and ``price`` (a class of ``PRICES``) are one value or a
    comma-separated list; a vendor is a full name or its initials. ``family`` is one family of cloud instances, such as
    ``i4g``, or a list, and implies ``kind="instance"``. Your own ``prices`` (``hs.prices.read("mine.csv")``)
    take precedence over headstack's. ``sort`` is one of ``SORTS``, ascending unless ``reverse``; drives without that
    value come last. Raises ``InputError`` for invalid values.

    >>> hs.drives.list(kind="ssd", max_capacity="500GB", sort="capacity")[0]
    'dc-s3700-400gb'
    """
    wanted: builtins.list[tuple[str, Callable[[Any], bool]]] = []
    if family is not None:
        if kind not in (None, "instance"):
            raise InputError(f"only instances have a family; remove it or kind {kind}", key="family")
        kind = "instance"
        allowed = families()
        wanted.append(("family", {choice("family", name.strip(), allowed) for name in family.split(",")}.__contains__))
    if kind is not None:
        wanted.append(("kind", {choice("kind", kind, KINDS).replace("hdd", "disk")}.__contains__))
    for key, name, text, allowed in (
        ("interface", "interface", interface, INTERFACES),
        ("price_class", "price", price, PRICES),
    ):
        if text is not None:
            wanted.append((key, {choice(name, item.strip(), allowed) for item in text.lower().split(",")}.__contains__))
    for key, name, span, parse, about in (
        ("year", "year", year, whole, 0.0),
        ("rpm", "rpm", rpm, _rpm, 0.01),
        ("capacity_bytes", "capacity", capacity, _capacity, 0.01),
    ):
        if span is not None:
            wanted.append((key, spread(name, str(span), parse, about)))
    for key, name, end, parse, fits in (
        ("year", "since", since, whole, ge),
        ("year", "until", until, whole, le),
        ("capacity_bytes", "min_capacity", min_capacity, _capacity, ge),
        ("capacity_bytes", "max_capacity", max_capacity, _capacity, le),
    ):
        if end is not None:
            wanted.append((key, partial(_beyond, fits, parse(name, str(end)))))
    table = listings.instances if kind == "instance" else partial(listings.drives, prices=prices)
    listed = {"volume": _native.volume_ids, "instance": _native.instance_ids}.get(kind or "", _native.drive_ids)
    ids = listings.Listing.of(listed(), table)
    if sort is not None:
        choice("sort", sort, tuple(SORTS))
    if not wanted and vendor is None and sort is None:
        return listings.Listing.of(ids[::-1], table) if reverse else ids
    summaries = {drive_id: Drive.load(drive_id).summary_with(prices) for drive_id in ids}
    if vendor is not None:
        vendors = {summary["vendor"] for summary in summaries.values()}
        wanted.append(("vendor", {_vendor(part.strip(), vendors) for part in vendor.split(",")}.__contains__))
    fitting = [
        drive_id
        for drive_id in ids
        if all(summaries[drive_id].get(key) is not None and fits(summaries[drive_id][key]) for key, fits in wanted)
    ]
    # The catalogue's order is by name; of instances, by size.
    ranked = _sorted(fitting, summaries, SORTS[sort], reverse) if sort else fitting[:: -1 if reverse else 1]
    return listings.Listing.of(ranked, table)


def vendors() -> tuple[str, ...]:
    """Returns the makers of the drives.

    >>> "Seagate" in hs.drives.vendors()
    True
    """
    return tuple(
        sorted({vendor for drive_id in _native.drive_ids() if (vendor := Drive.load(drive_id).summary["vendor"])})
    )


def families() -> tuple[str, ...]:
    """Returns the families of cloud instances with local disks.

    >>> "i4g" in hs.drives.families()
    True
    """
    return tuple(dict.fromkeys(Drive.load(name).summary["family"] for name in _native.instance_ids()))


def _beyond(fits: Callable[[float, float], bool], end: float, value: float) -> bool:
    return fits(value, end)


def _vendor(text: str, vendors: Iterable[str]) -> str:
    """Returns the vendor with this name or these initials."""
    for name in sorted(vendors):
        initials = "".join(word[0] for word in name.split())
        if text.lower() in (name.lower(), initials.lower() if " " in name else None):
            return name
    return choice("vendor", text, tuple(sorted(vendors)))


def _sorted(
    ids: Sequence[str], summaries: Mapping[str, Mapping[str, Any]], key: str, reverse: bool
) -> builtins.list[str]:
    ranked = [drive_id for drive_id in ids if summaries[drive_id].get(key) is not None]
    ranked.sort(key=lambda drive_id: summaries[drive_id][key], reverse=reverse)
    return [*ranked, *(drive_id for drive_id in ids if summaries[drive_id].get(key) is None)]


def _capacity(name: str, text: str) -> float:
    # A number without a unit would be bytes, which no user means.
    if text[-1:].isdecimal():
        raise InputError(f"{text!r} is not a capacity; add a unit, for example {text}TB", key=name)
    return size_bytes(name, text)


def _rpm(name: str, text: str) -> float:
    return number(name, text.removesuffix("rpm").rstrip())


def show(name: str) -> Drive:
    """Loads the drive with this id or from this file, with the sources of its values."""
    return Drive.load(name)
