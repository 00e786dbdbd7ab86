"""``Inspection``: the data of a device, independent of the program that reported them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from headstack.io.stored import Stored

STORED = Stored("inspection")
"""The format of inspections as JSON, in files and in the history."""

SOURCES = ("smartctl", "hdparm", "nvme", "sysfs")
"""Sources in order of precedence; sysfs is last, because it truncates models and has only the kernel's view."""

PROTOCOLS = ("ATA", "NVMe", "SCSI")
"""Protocols of drives; other devices have the name of their kernel driver."""


@dataclass(frozen=True, slots=True)
class Capability:
    """A feature of a device, or one of its settings."""

    name: str
    """Name of the feature in the source."""
    supported: bool | None = None
    """Whether the device has the feature; ``None`` if not applicable or unknown."""
    enabled: bool | None = None
    """Whether the feature is enabled."""
    value: int | float | str | None = None
    """Value or setting of the feature, in the unit at the end of the key."""
    source: str = ""
    """Source of the feature, one of ``SOURCES``."""
    listed: bool = False
    """Whether the source lists the feature only for devices that have it, so that a complete listing without the
    feature shows its absence. """

    @property
    def state(self) -> str:
        """State in one word: absent, supported (but off), enabled, or the value."""
        if self.supported is False:
            return "absent"
        word = {True: "enabled", False: "supported" if self.supported else "off", None: ""}[self.enabled]
        if self.value is None:
            return word or ("supported" if self.supported else "not known")
        return f"{word}, {self.value}" if word else str(self.value)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A row of the ATA SMART table."""

    id: int
    name: str
    value: int | None
    """Normalised value, which decreases from 100, 200 or 253; ``None`` if the drive does not report it."""
    worst: int | None
    threshold: int | None
    """Value at or below which the drive predicts failure; 0 means never."""
    raw: int
    """Raw value: six bytes in a vendor-specific encoding."""
    raw_text: str
    """Raw value as printed by smartctl, which knows many vendor encodings."""
    prefailure: bool
    """Whether crossing the threshold predicts failure; otherwise it means the end of the design life."""
    when_failed: str = ""
    """When the value was at or below the threshold: ``now``, ``past``, or empty for never."""


@dataclass(frozen=True, slots=True)
class NvmeHealth:
    """The NVMe SMART / health log (log page 02h)."""

    critical_warning: int | None = None
    available_spare_percent: int | None = None
    available_spare_threshold_percent: int | None = None
    percentage_used: int | None = None
    data_units_read: int | None = None
    """Data read, in units of 1,000 blocks of 512 bytes."""
    data_units_written: int | None = None
    unsafe_shutdowns: int | None = None
    media_errors: int | None = None
    error_log_entries: int | None = None
    warning_temperature_minutes: int | None = None
    critical_temperature_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class ErrorCounter:
    """A row of a SAS drive's error counter log."""

    corrected: int | None = None
    uncorrected: int | None = None
    processed_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SasHealth:
    """The counters of a SAS or SCSI drive."""

    grown_defects: int | None = None
    """Number of blocks reassigned since the drive left the factory."""
    read: ErrorCounter | None = None
    write: ErrorCounter | None = None
    verify: ErrorCounter | None = None
    non_medium_errors: int | None = None
    trip_celsius: int | None = None


@dataclass(frozen=True, slots=True)
class SelfTest:
    """An entry of the self-test log."""

    kind: str
    status: str
    passed: bool | None
    """Whether the test passed; ``None`` if it was aborted, interrupted or is still running."""
    hours: int | None = None
    """Power-on hours at the end of the test."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a device."""

    model: str | None = None
    family: str | None = None
    serial: str | None = None
    firmware: str | None = None
    wwn: str | None = None
    capacity_bytes: int | None = None
    rpm: int | None = None
    """Rotation speed in rpm; 0 for an SSD."""
    form_factor: str | None = None
    protocol: str | None = None
    """``ATA``, ``NVMe`` or ``SCSI``; for other devices the name of the kernel driver."""
    interface: str | None = None
    """Generation of the interface, as reported by the device."""
    interface_max_gbps: float | None = None
    interface_now_gbps: float | None = None
    """Negotiated speed; if it is below the maximum, the link, cable or port limits it."""
    logical_block_bytes: int | None = None
    physical_block_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Inspection:
    """All data that a device reported at one time."""

    name: str
    """The device or file that was read."""
    identity: Identity = field(default_factory=Identity)
    capabilities: dict[str, Capability] = field(default_factory=dict)
    """Capabilities by stable key, in the order of the sources."""
    attributes: tuple[Attribute, ...] = ()
    nvme: NvmeHealth | None = None
    sas: SasHealth | None = None
    self_tests: tuple[SelfTest, ...] | None = None
    """Self-tests, newest first; ``None`` if the log was not read."""
    passed: bool | None = None
    """The device's self-assessment of its health."""
    power_on_hours: int | None = None
    power_cycles: int | None = None
    start_stop_cycles: int | None = None
    load_cycles: int | None = None
    temperature_celsius: int | None = None
    written_bytes: int | None = None
    endurance_used_percent: int | None = None
    logged_errors: int | None = None
    """Total number of entries made in the ATA error log."""
    taken_unix_s: int | None = None
    """Time of the reading."""
    listings: tuple[str, ...] = ()
    """Sources with a complete listing; the device lacks features that are not listed."""
    read_from: tuple[str, ...] = ()
    """Origin of the data: ``PROGRAM: FILE``, or ``PROGRAM DOCUMENT: FILE``."""
    notes: tuple[str, ...] = ()
    """Missing data and contradictions, one line each."""

    @property
    def label(self) -> str:
        """Model and serial number, or the name of the source."""
        names = [text for text in (self.identity.model, self.identity.serial) if text]
        return " ".join(names) or self.name

    @property
    def is_solid_state(self) -> bool:
        """Whether the device has no moving parts, as reported, or judging by its name if it reports no speed."""
        named = f"{self.identity.model or ''} {self.identity.family or ''}"
        unstated = self.identity.rpm is None and re.search(r"(?i)\bSSDs?\b|solid[ -]state", named) is not None
        return self.identity.rpm == 0 or self.nvme is not None or unstated

    def to_dict(self) -> dict[str, object]:
        """Returns the inspection in JSON's form."""
        return {"schema": STORED.version, **dataclasses.asdict(self)}

    def content(self) -> dict[str, object]:
        """Returns the data of the device without time and sources, which are equal for equal snapshots."""
        content = dataclasses.asdict(self)
        for key in ("name", "taken_unix_s", "read_from", "notes"):
            del content[key]
        return content


T = TypeVar("T", Identity, Capability, NvmeHealth, Inspection)


def slug(text: str) -> str:
    """Returns a key for a name."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def joined(parts: Iterable[Inspection]) -> Inspection:
    """Joins inspections of one device from several sources, and adds a note for each contradiction.

    ``parts`` must not be empty.
    """
    ordered = sorted(parts, key=_rank)
    whole = ordered[0]
    for part in ordered[1:]:
        whole = _join(whole, part)
    return whole


def _rank(part: Inspection) -> int:
    sources = {program_of(text) for text in part.read_from}
    return min((SOURCES.index(source) for source in sources if source in SOURCES), default=len(SOURCES))


def program_of(read_from: str) -> str:
    """Returns the program of an entry of ``read_from``: one of ``SOURCES``."""
    return read_from.partition(": ")[0].partition(" ")[0]


def _join(first: Inspection, second: Inspection) -> Inspection:
    notes = [*first.notes, *(note for note in second.notes if note not in first.notes)]
    capabilities = dict(first.capabilities)
    for key, other in second.capabilities.items():
        capabilities[key] = _join_capability(key, capabilities[key], other, notes) if key in capabilities else other
    identity = _join_identity(first, second, notes)
    # A source that reports failure has precedence.
    passed = _join_passed(first.passed, second.passed, notes)
    return replace(
        _filled(first, second),
        identity=identity,
        passed=passed,
        capabilities=capabilities,
        listings=tuple(dict.fromkeys(first.listings + second.listings)),
        read_from=tuple(dict.fromkeys(first.read_from + second.read_from)),
        notes=tuple(notes),
        attributes=first.attributes or second.attributes,
        nvme=_filled(first.nvme, second.nvme) if first.nvme and second.nvme else first.nvme or second.nvme,
    )


IDENTIFYING = ("model", "serial", "firmware", "wwn", "capacity_bytes", "rpm", "protocol", "logical_block_bytes")
"""Fields that must be equal in all outputs of one device."""


def _join_identity(first: Inspection, second: Inspection, notes: list[str]) -> Identity:
    programs = [program_of(text) for text in (*first.read_from, *second.read_from)]
    for key in IDENTIFYING:
        ours, theirs = getattr(first.identity, key), getattr(second.identity, key)
        if ours is None or theirs is None or same_text(str(ours), str(theirs), "sysfs" in programs):
            continue
        # The kernel calls every drive behind a bridge or a host adapter SCSI.
        if key != "protocol" or "sysfs" not in programs:
            notes.append(f"{key}: reported as {ours} and as {theirs} ({', '.join(dict.fromkeys(programs))})")
    return _filled(first.identity, second.identity)


def _join_passed(first: bool | None, second: bool | None, notes: list[str]) -> bool | None:
    if first is not None and second is not None and first is not second:
        notes.append("the drive's health self-assessment: reported as passed and as FAILED")
    return False if False in (first, second) else first if second is None else second


def same_text(first: str | None, second: str | None, cut: bool = False) -> bool:
    """Whether two texts are equal except for blanks and case. With ``cut``, one of them may be truncated."""
    first_text, second_text = ("".join((text or "").lower().split()).removeprefix("0x") for text in (first, second))
    shorter, longer = sorted((first_text, second_text), key=len)
    return first_text == second_text or (cut and shorter != "" and longer.startswith(shorter))


def _join_capability(key: str, first: Capability, second: Capability, notes: list[str]) -> Capability:
    for name in ("supported", "enabled", "value"):
        ours, theirs = getattr(first, name), getattr(second, name)
        if ours is not None and theirs is not None and ours != theirs:
            notes.append(f"{key}: {first.source} reports {first.state}, {second.source} reports {second.state}")
            break
    return _filled(first, second)


def _filled(first: T, second: T) -> T:
    """Returns the first identity, with missing values from the second."""
    missing = {
        f.name: getattr(second, f.name)
        for f in fields(first)
        if getattr(first, f.name) is None and getattr(second, f.name) is not None
    }
    return replace(first, **missing)
