"""Finds the drive in the catalogue that matches a device, and determines whether it uses shingled recording."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache

from headstack import _native
from headstack.diagnosis.inspection.model import Identity, Inspection

PART_NUMBER_LEAST = 6
"""Minimum length of a part number, such as WD40EFAX; shorter words, such as 4TB, do not name a model."""

SHINGLED_FAMILY = re.compile(r"\bSMR\b")
"""Mark of shingled families in smartctl's database: "Western Digital Red (SMR)"."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A drive of the catalogue."""

    id: str
    name: str
    part_numbers: frozenset[str]
    is_shingled: bool


@cache
def entries() -> tuple[Entry, ...]:
    """Returns all drives of the catalogue."""
    drives = []
    for name in _native.drive_ids():
        described = tomllib.loads(_native.drive_toml(name))
        words = f"{described['name']} {described.get('model', '')}".split()
        numbers = frozenset(word.upper() for word in words if is_part_number(word))
        drives.append(Entry(name, described["name"], numbers, "shingles" in described))
    return tuple(drives)


def is_part_number(word: str) -> bool:
    """Whether a word is a part number, which has letters, digits and a minimum length."""
    plain = re.sub(r"[^A-Za-z0-9]", "", word)
    return (
        len(plain) >= PART_NUMBER_LEAST
        and re.search(r"[A-Za-z]", plain) is not None
        and re.search(r"\d\d", plain) is not None
    )


def entry_of(identity: Identity) -> Entry | None:
    """Returns the drive in the catalogue that matches a device by part number or complete name; ``None`` if no drive or
    several drives match."""
    if not identity.model:
        return None
    words = [word.upper() for word in identity.model.split()]
    # Makers append letters and digits to a part number: WD40EFAX-68JH4N0.
    by_number = [
        entry for entry in entries() if any(_begins(word, number) for word in words for number in entry.part_numbers)
    ]
    if by_number:
        return by_number[0] if len(by_number) == 1 else None
    name = _plain(identity.model)
    by_name = [entry for entry in entries() if _plain(entry.name) == name]
    return by_name[0] if len(by_name) == 1 else None


def _begins(word: str, number: str) -> bool:
    behind = word.removeprefix(number)
    return behind != word and not behind[:1].isalnum()


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def recording_of(inspection: Inspection) -> str | None:
    """Returns a sentence on the recording of a disk, shingled (SMR) or not; ``None`` for other devices."""
    if (why := shingled(inspection)) is not None:
        return f"shingled (SMR): {why}"
    identity = inspection.identity
    if not identity.rpm:
        return None
    if (entry := entry_of(identity)) is not None:
        return f"not described as shingled (SMR) in the catalogue ({entry.id})"
    return "no sign of shingling (SMR), but drive-managed SMR disks may not report it"


def shingled(inspection: Inspection) -> str | None:
    """Returns the evidence that a device uses shingled recording (SMR); ``None`` if there is none."""
    identity = inspection.identity
    if identity.family and SHINGLED_FAMILY.search(identity.family):
        return f"smartctl's database calls the family {identity.family}"
    entry = entry_of(identity)
    if entry is not None and entry.is_shingled:
        return f"the catalogue describes it as shingled ({entry.id})"
    zoned = inspection.capabilities.get("zoned")
    if zoned is not None and not inspection.is_solid_state and re.search(r"(?i)device.managed|host", str(zoned.value)):
        return f"it reports its zones: {zoned.value}"
    return None
