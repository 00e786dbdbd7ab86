"""``Space``: the systems to choose from, and their properties that need no run."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

from headstack import _native
from headstack._native import InputError, Level
from headstack.catalogue.array import Array
from headstack.catalogue.drive import Drive
from headstack.catalogue.price_list import Price
from headstack.catalogue.prices import PriceBook
from headstack.choice.blueprint import Blueprint, system_blueprint
from headstack.choice.clouds import Offer

HOSTS = ("md-raid6-12x16tb", "server-12-raid6-cache", "md-raid10-8-nvme", "zfs-raidz2-12")
"""Default hosts: Linux md over SAS, a RAID controller with 8 GB of cache, Linux md over NVMe, OpenZFS."""
BAYS = 24
"""Default maximum number of drives in a system."""
TAKES = {"sas": ("sas", "sata"), "sata": ("sas", "sata"), "nvme": ("nvme",), "scsi": ("scsi",)}
"""Drive interfaces that a host accepts, by the interface of its own drives: SAS also accepts SATA."""
RELIABLE_BITS = 1e15
"""Bits per unreadable sector from which a 7,200 rpm drive is taken for a nearline one: data sheets of desktop drives
state 1e14.
"""
HOURS_A_YEAR = 8766.0
ASSUMED_W = {"nvme": 10.0, "sas": 8.0, "sata": 4.0}
"""Active power of SSDs whose file states none, by interface: between the stated ones. An estimate."""


@dataclass(frozen=True)
class Model:
    """A drive, with its stated properties."""

    name: str
    drive: Drive = field(repr=False, compare=False)
    capacity_bytes: int
    interface: str
    classes: frozenset[str]
    """``disk``, ``nearline``, ``15k``, ``ssd``, ``nvme`` …: its class names."""
    active_w: float
    is_power_assumed: bool
    """Whether the power is assumed, because the data sheet states none."""
    price: Price
    afr_percent: float
    afr_source: str

    @property
    def is_disk(self) -> bool:
        """Whether the drive is an HDD."""
        return self.drive.kind == "disk"


@dataclass(frozen=True)
class Host:
    """An array whose drives, drive count and RAID level are replaced; its links, controller and cache stay."""

    name: str
    path: str
    blueprint: Blueprint = field(repr=False, compare=False)
    takes: tuple[str, ...]
    has_records: bool
    """Whether the array stores records, like OpenZFS."""
    chunk_size: str
    cache_bytes: int
    others: tuple[tuple[str, int], ...]
    """Drives of its other tables, such as flash for its cache."""
    price: Price | None


def host_of(name: str, files: Sequence[str], book: PriceBook) -> Host:
    """Returns an array as a host. Raises ``InputError`` if that is not possible."""
    blueprint = system_blueprint(name, files)
    array_name = os.path.basename(name).removesuffix(".toml")
    if blueprint["kind"] != "array":
        raise InputError(f"{name}: a single drive; name an array, whose drives are replaced", key="hosts")
    array_file = tomllib.loads(blueprint["text"])
    if len(array_file["groups"]) != 1 or "pool" in array_file["groups"][0]:
        raise InputError(
            f"{name}: has {len(array_file['groups'])} RAID groups, or a pool; name an array with one RAID group",
            key="hosts",
        )
    first, *rest = array_file["drives"]
    interface = Drive.load(first["drive"]).summary["interface"]
    memory = array_file.get("controller", {}).get("cache", {}).get("memory")
    return Host(
        array_name,
        name,
        blueprint,
        TAKES.get(interface, (interface,)),
        Level(array_file["groups"][0]["level"]).has_records,
        array_file["groups"][0].get("chunk_size", ""),
        0 if memory is None else _native.parse_bytes(memory),
        tuple((table["drive"], table.get("count", 1)) for table in rest),
        book.price(array_name),
    )


def classes_of(drive: Drive) -> frozenset[str]:
    """Returns the classes by which a drive can be named."""
    summary = drive.summary
    if drive.kind == "volume":
        return frozenset({"volume"})
    if drive.kind == "ssd":
        return frozenset({"ssd", "flash", "nvme" if summary["interface"] == "nvme" else f"{summary['interface']}-ssd"})
    rpm = summary["rpm"]
    names = {"disk", f"{rpm / 1000:g}k"}
    bits = next((float(value["value"]) for value in drive.stated if value["key"] == "reliability.bits_per_error"), 0.0)
    if 7000 <= rpm < 8000 and bits >= RELIABLE_BITS:
        names.add("nearline")
    return frozenset(names)


@dataclass(frozen=True)
class Family:
    """Systems that differ only in the number of their drives."""

    host: Host | None
    """The host; ``None`` for cloud volumes."""
    model: Model | None
    level: str
    settings: tuple[tuple[str, str], ...] = ()
    """Chunk size and cache, in words for people."""
    fields: tuple[tuple[str, str], ...] = ()
    """Keys of the host's file with other values."""
    offer: Offer | None = None
    base: str = ""
    """The file whose values a cloud volume replaces."""

    @cached_property
    def name(self) -> str:
        """Name of the family, without the number of drives."""
        if self.offer is not None:
            values = self.offer.values.items()
            settings = (
                f"{value}/s" if key == "volume.iops" else value for key, value in values if key != "volume.type"
            )
            return ", ".join([self.offer.type, *settings])
        assert self.host is not None
        assert self.model is not None
        settings = (f"{key} {value}" for key, value in self.settings)
        return ", ".join([f"{self.model.name} in {self.level}", self.host.name, *settings])

    @property
    def path(self) -> str:
        """The file whose values are replaced: the host's, or a volume's."""
        return self.base if self.host is None else self.host.path

    @property
    def kind(self) -> tuple[str, str, str]:
        """The kind of an answer: drive, level and host."""
        if self.offer is not None:
            return (self.offer.type, "", "")
        assert self.host is not None
        assert self.model is not None
        return (self.model.name, self.level, self.host.name)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One system."""

    family: Family
    drives: int
    level: str
    spans: int
    usable_bytes: int
    bays: int
    watts: float
    usd: float
    survives: int

    @property
    def name(self) -> str:
        """A unique name."""
        return self.family.name if self.family.offer is not None else f"{self.drives} x {self.family.name}"

    def fields(self) -> tuple[tuple[str, str], ...]:
        """Values of the candidate's file that differ from the host's file."""
        family = self.family
        if family.offer is not None:
            return tuple(family.offer.values.items())
        assert family.model is not None
        spans = (("groups[0].spans", str(self.spans)),) if self.spans > 1 else ()
        level = Level(self.level)
        if level.is_declustered:
            # Like OpenZFS, rebuild steps in proportion to the drives.
            spans = (("groups[0].rebuild.steps", str(self.drives)),)
        path = family.model.drive.path or family.model.name
        return (("drive", path), ("drives", str(self.drives)), ("level", level.name_in_files), *spans, *family.fields)


@dataclass(frozen=True)
class Space:
    """The systems that a buyer considers."""

    among: tuple[str, ...] = ()
    """Classes (``nearline``, ``15k``, ``ssd``), names with wildcards, or files of drives; empty for all with a
    price."""
    without: tuple[str, ...] = ()
    """Names with wildcards of excluded drives, levels and hosts."""
    hosts: tuple[str, ...] = HOSTS
    levels: tuple[str, ...] = ()
    """RAID levels; empty for all with sufficient redundancy."""
    drives: tuple[int, int] = (1, 4096)
    """Minimum and maximum number of drives."""
    chunk_sizes: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    """Types of cloud volumes."""
    afr: tuple[tuple[str, float], ...] = ()
    """Annualized failure rates in percent, by class or name, in place of the defaults."""


def array_of(candidate: Candidate, name: str = "") -> Array | Drive:
    """Returns the completed system of a candidate. Raises ``InputError`` if it is impossible."""
    ((kind, description),) = _native.describe_points(blueprint_of(candidate.family), [list(candidate.fields())])
    if kind != "described":
        raise InputError(f"{candidate.name}: {description}")
    system_name = name or candidate.name
    if "array" in description:
        return Array(system_name, description["array"])
    ((drive_kind, drive_description),) = description["drive"].items()
    return Drive(system_name, drive_description, kind=drive_kind)


def toml_of(candidate: Candidate) -> str:
    """Returns the file of a candidate, ready for ``run``, ``serve`` and ``sweep``."""
    fields = list(candidate.fields())
    if candidate.family.offer is None:
        fields.append(("name", candidate.name))
    text: str = _native.drafted_toml(blueprint_of(candidate.family), fields)
    return text


def blueprint_of(family: Family) -> Blueprint:
    """Returns the blueprint of the candidate's file."""
    if family.host is not None:
        return family.host.blueprint
    return _of_volume(family.base)


@cache
def _of_volume(name: str) -> Blueprint:
    return system_blueprint(name)
