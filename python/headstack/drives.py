"""The drives of the catalogue."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from headstack import _native, listings
from headstack._native import InputError
from headstack.drive import Drive
from headstack.values import choice, number, size_bytes, spread, whole

KINDS = ("disk", "ssd")
INTERFACES = ("ata", "sata", "scsi", "fc", "sas", "nvme")


def list(
    kind: str | None = None,
    year: str | int | None = None,
    rpm: str | int | None = None,
    capacity: str | None = None,
    interface: str | None = None,
) -> tuple[str, ...]:
    """Their ids, or of those that are as wanted: ``hs.drives.list(kind="ssd", year="2010..2020", capacity="1TB..")``.

    ``year``, ``rpm`` and ``capacity`` are ranges: ``LOW..HIGH`` with both ends, ``LOW..`` or ``..HIGH``; a speed or a
    capacity alone is taken to 1 %. ``interface`` is one or a comma list. Raises ``InputError`` for what is none of it.
    """
    wanted: builtins.list[tuple[str, Callable[[Any], bool]]] = []
    if kind is not None:
        wanted.append(("kind", (choice("kind", kind, KINDS),).__contains__))
    if interface is not None:
        kinds = [choice("interface", one.strip(), INTERFACES) for one in interface.lower().split(",")]
        wanted.append(("interface", kinds.__contains__))
    for key, name, text, parse, about in (
        ("year", "year", year, whole, 0.0),
        ("rpm", "rpm", rpm, _rpm, 0.01),
        ("capacity_bytes", "capacity", capacity, _capacity, 0.01),
    ):
        if text is not None:
            wanted.append((key, spread(name, str(text), parse, about)))
    ids = listings.Listing.of(_native.drive_ids(), listings.drives)
    if not wanted:
        return ids
    told = {one: Drive.load(one).summary for one in ids}
    fitting = (
        one for one in ids if all(told[one].get(key) is not None and fits(told[one][key]) for key, fits in wanted)
    )
    return listings.Listing.of(fitting, listings.drives)


def _capacity(name: str, text: str) -> float:
    # Nobody means bytes.
    if text[-1:].isdecimal():
        raise InputError(f"{name}: {text!r} is not a capacity; write it with its unit, such as {text}TB")
    return size_bytes(name, text)


def _rpm(name: str, text: str) -> float:
    return number(name, text.removesuffix("rpm").rstrip())


def show(name: str) -> Drive:
    """The drive of that id or file, with the sources of its values."""
    return Drive.load(name)
