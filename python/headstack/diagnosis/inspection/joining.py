"""Joins outputs of one device at one time.

A device is identified by its serial number, if model, WWN and protocol do not contradict it. Placeholders for a serial
number, from programs, bridges or people, are ignored, because two failing drives must not be joined with a good drive.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace

from headstack.diagnosis.inspection.model import PROTOCOLS, SOURCES, Identity, Inspection, joined, program_of, same_text

SAME_SNAPSHOT_S = 600
"""Maximum time in seconds between two outputs of one program that belong to one snapshot."""

NO_NAME = re.compile(
    r"\W*(redacted|removed|hidden|masked|censored|anonymi[sz]ed|unknown|none|null|nil|n/?a|empty|(default )?string"
    r"|not (specified|available|applicable|set)|no serial( number)?|unspecified|undefined|invalid"
    r"|serial ?(number|no\.?)?|s/?n|to be filled( by o\.?e\.?m\.?)?)\W*",
    re.IGNORECASE,
)
"""Placeholders that people and firmware use for a serial number or a WWN."""

REPEATED = re.compile(
    r"dd5641988\w*|db98765432\w*|152d\w{8}|0{6,}\w{0,3}|0+123ada|20150331\w{4,5}|50{8,}\w?|50{6}123456789"
)
"""Serial numbers and WWNs that USB bridges (JMicron, ASMedia, Sabrent) and cheap drives share."""

COUNTED_UP = (
    "0123456789abcdef0123456789abcdef",
    "1234567890abcdef1234567890",
    "12345678901234567890",
    "abcdefghijklmnopqrst",
)
COUNTED_UP_LEAST = 5
"""Minimum length of a part of these sequences to count as an invented serial number."""


def names_a_device(text: str | None) -> bool:
    """Whether a serial number or WWN distinguishes a device from others of its kind."""
    plain = re.sub(r"[\s_:.-]", "", text or "").lower()
    if len(set(plain)) < 2 or NO_NAME.fullmatch((text or "").strip()) or REPEATED.fullmatch(plain):
        return False
    return len(plain) < COUNTED_UP_LEAST or not any(plain in run for run in COUNTED_UP)


def contradicts(first: Inspection, second: Inspection) -> bool:
    """Whether two outputs cannot be from one device, because of different models, serial numbers, WWNs or protocols."""
    first_identity, second_identity = first.identity, second.identity
    cut = "sysfs" in {program_of(text) for text in (*first.read_from, *second.read_from)}
    for key in ("serial", "wwn"):
        name, stranger = getattr(first_identity, key), getattr(second_identity, key)
        if names_a_device(name) and names_a_device(stranger) and not same_text(name, stranger):
            return True
    if (
        first_identity.model
        and second_identity.model
        and not same_text(first_identity.model, second_identity.model, cut)
    ):
        return True
    protocols = {identity.protocol for identity in (first_identity, second_identity)}
    # The kernel calls every drive behind a bridge or a host adapter SCSI.
    return len(protocols & set(PROTOCOLS)) > 1 and not (cut and "SCSI" in protocols)


def same_device(first: Inspection, second: Inspection) -> bool:
    """Whether two outputs are from one device, according to their data."""
    serial = first.identity.serial
    return names_a_device(serial) and same_text(serial, second.identity.serial) and not contradicts(first, second)


def by_device(inspections: Iterable[Inspection]) -> list[list[Inspection]]:
    """Returns the snapshots of each device, in their order."""
    devices: list[list[Inspection]] = []
    of_serial: dict[str, list[list[Inspection]]] = {}
    for inspection in inspections:
        candidates = of_serial.setdefault((inspection.identity.serial or "").lower(), [])
        device = next(
            (device for device in candidates if all(same_device(inspection, member) for member in device)), None
        )
        if device is None:
            device = []
            devices.append(device)
            candidates.append(device)
        device.append(inspection)
    return devices


def join_by_device(parts: Iterable[Inspection]) -> list[Inspection]:
    """Joins parts of one device at one time. Parts of uncertain origin stay separate, with a note.

    An output without a serial number belongs to the device that its file name names, up to the first dot, or to the
    only device.
    """
    parts = list(parts)
    named = [part for part in parts if names_a_device(part.identity.serial)]
    devices = by_device(named)
    for part in parts:
        if not names_a_device(part.identity.serial):
            home = _home(part, devices)
            if home is None:
                devices.append([part])
            else:
                home.append(part)
    whole = []
    for device in devices:
        notes = tuple(_joining_notes(device, devices))
        for snapshot in _snapshots(device):
            inspection = joined(snapshot)
            whole.append(replace(inspection, notes=(*inspection.notes, *notes)))
    return whole


def _home(part: Inspection, devices: list[list[Inspection]]) -> list[Inspection] | None:
    """Returns the device of an output without a serial number, if exactly one device is possible."""
    fitting = [device for device in devices if not any(contradicts(part, other) for other in device)]
    beside = [device for device in fitting if any(_stem(part) == _stem(other) for other in device)]
    if beside:
        [*others, last] = beside
        return last if not others and _may_be_beside(part, last) else None
    identity = part.identity
    says_who = any((identity.model, identity.serial, identity.wwn))
    return fitting[0] if not says_who and len(devices) == 1 and fitting else None


def _may_be_beside(part: Inspection, device: list[Inspection]) -> bool:
    """Whether the file name is sufficient to join outputs. Two outputs of one program may be from two devices, unless
    the program never prints a serial number and each output has its own file."""
    alike = [other for other in device if _kinds([other]) & _kinds([part])]
    if any(names_a_device(other.identity.serial) for other in device) and not alike:
        return True
    return all(
        part.identity.serial is None and other.identity.serial is None and _file(part) != _file(other)
        for other in alike
    )


def _joining_notes(device: list[Inspection], devices: list[list[Inspection]]) -> Iterable[str]:
    """Yields notes on parts that were not joined, with the reasons."""
    serial = device[0].identity.serial
    placeholders = (
        {part.identity.serial for part in device if part.identity.serial} if not names_a_device(serial) else set()
    )
    for placeholder in sorted(placeholders):
        yield f"serial number {placeholder!r} does not identify a device, so its outputs are not joined"
    if names_a_device(serial):
        for other in devices:
            if other is not device and same_text(serial, other[0].identity.serial):
                yield f"{_described(other[0].identity)} also has serial number {serial}; they are not joined"


def _described(identity: Identity) -> str:
    wwn = f"WWN {identity.wwn}" if identity.wwn else None
    return ", ".join(text for text in (identity.model or "an unnamed model", wwn, identity.protocol) if text)


def _file(part: Inspection) -> str:
    return part.read_from[0].partition(": ")[2] if part.read_from else part.name


def _stem(part: Inspection) -> str:
    folder, name = os.path.split(_file(part))
    return os.path.join(folder, name.partition(".")[0])


def _snapshots(parts: list[Inspection]) -> list[list[Inspection]]:
    """Separates parts of one device by time. Two outputs of one program are two snapshots, even at the same time if the
    health of the device differs."""
    snapshots: list[list[Inspection]] = []
    for part in sorted(parts, key=_order):
        near = [snapshot for snapshot in snapshots if _is_near(snapshot, part)]
        if near:
            min(near, key=lambda snapshot: _distance_s(snapshot, part)).append(part)
        else:
            snapshots.append([part])
    return snapshots


def _is_near(group: list[Inspection], part: Inspection) -> bool:
    alike = [other for other in group if _kinds([other]) & _kinds([part])]
    return not alike or (_distance_s(group, part) <= SAME_SNAPSHOT_S and all(_agree(part, other) for other in alike))


def _agree(first_part: Inspection, second_part: Inspection) -> bool:
    """Whether two outputs agree on the device's health, as far as both report it."""
    first, second = _health(first_part), _health(second_part)
    return all(first[key] == second[key] for key in first.keys() & second.keys())


def _health(part: Inspection) -> dict[str, object]:
    """Returns the data behind a verdict."""
    health: dict[str, object] = {"passed": part.passed, "self-tests": part.self_tests}
    for attribute in part.attributes:
        health[f"attribute {attribute.id} failed"] = attribute.when_failed
        if attribute.id in (5, 187, 188, 197, 198):
            health[f"attribute {attribute.id}"] = attribute.raw
    if part.nvme is not None:
        health |= {key: getattr(part.nvme, key) for key in ("critical_warning", "media_errors")}
    if part.sas is not None:
        health |= {key: getattr(part.sas, key) for key in ("grown_defects", "read", "write", "verify")}
    return {key: value for key, value in health.items() if value is not None}


def _order(part: Inspection) -> tuple[int, int]:
    """Sorts smartctl first, because its output has a time to which other outputs can be assigned."""
    program = program_of(part.read_from[0]) if part.read_from else ""
    return (SOURCES.index(program) if program in SOURCES else 0, part.taken_unix_s or 0)


def _kinds(parts: Iterable[Inspection]) -> set[str]:
    return {text.partition(": ")[0] for part in parts for text in part.read_from}


def _distance_s(group: list[Inspection], part: Inspection) -> int:
    return abs((group[0].taken_unix_s or 0) - (part.taken_unix_s or 0))
