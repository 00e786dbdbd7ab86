"""A drive, disk or solid-state: of the catalogue, of a TOML file, or imported from DiskSim's parameters."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.values import percent, size_bytes


@dataclass(frozen=True)
class Drive:
    """A drive with every default filled in, or a part of one (short-stroked)."""

    name: str
    """What results call it: the catalogue's id or the file's name, with the range where there is one."""
    description: dict[str, Any]
    """Every parameter of the model; times are in nanoseconds, lengths as their names say."""
    derived: list[dict[str, Any]] = field(default_factory=list)
    """Values that no source states: ``key``, ``value`` and the ``rule`` they follow from."""
    stated: list[dict[str, Any]] = field(default_factory=list)
    """Values of the file: ``key``, ``value`` (as text) and ``source`` (how sure, and where from)."""
    span: tuple[int, int] | None = None
    """The part that is used: first byte and length in bytes; ``None`` for the whole drive."""
    kind: str = "disk"
    """``disk``, or ``ssd`` for a solid-state drive."""

    @classmethod
    def load(cls, system: str | os.PathLike[str]) -> Drive:
        """The drive called ``ID`` or ``FILE.toml``, or the part of it called ``ID@RANGE``.

        Raises ``InputError`` when there is none of that name, or it is not a drive.
        """
        name, separator, part = os.fspath(system).partition("@")
        resolved = json.loads(_native.load_drive(name))
        drive = cls(os.path.basename(name).removesuffix(".toml"), **resolved)
        return drive.part(part) if separator else drive

    @property
    def system(self) -> dict[str, Any]:
        """What a run is pointed at."""
        return {"drive": {self.kind: self.description}}

    @property
    def capacity_bytes(self) -> int:
        """Bytes that the whole drive exports."""
        return device_capacity_bytes(self.system["drive"])

    @property
    def summary(self) -> dict[str, Any]:
        """What tells drives apart."""
        stated = {value["key"]: value["value"] for value in self.stated}
        common = {
            "id": self.name,
            "kind": self.kind,
            "name": self.description["name"],
            "year": int(stated["year"]) if "year" in stated else None,
            "capacity_bytes": self.capacity_bytes,
        }
        if self.kind == "ssd":
            flash = self.description["flash"]
            return {
                **common,
                "channels": flash["channels"],
                "dies": flash["channels"] * flash["dies_per_channel"],
                "interface": stated["interface.kind"],
                "queue_depth": self.description["interface"]["queue_depth"],
            }
        return {
            **common,
            "rpm": self.description["mechanics"]["rpm"],
            "heads": self.description["geometry"]["heads"],
            "interface": self.description["interface"]["kind"],
            "queue_depth": self.description["queue"]["depth"],
        }

    def part(self, text: str) -> Drive:
        """The part ``text`` of the drive: ``36.7GB`` (the first), ``10GB..20GB`` or ``0%..50%``."""
        if self.span is not None:
            raise InputError(f"{self.name}: a range of a range ({text}); state one")
        span = parse_range(text, self.capacity_bytes, self._sector_bytes)
        return replace(self, name=f"{self.name}@{text}", span=span)

    @property
    def _sector_bytes(self) -> int:
        # Solid-state drives have none; their map is in 4 KiB or more.
        return int(self.description["geometry"]["physical_sector_bytes"]) if self.kind == "disk" else 4096

    def to_toml(self) -> str:
        """The description as a file of the catalogue's form."""
        sources = {value["key"]: value["source"] for value in self.stated if value["source"]}
        return _native.drive_to_toml(json.dumps(self.system["drive"]), sources)

    def _repr_html_(self) -> str:
        import html

        name = html.escape(str(self.description["name"]))
        return f"<b>{name}</b> ({_native.format_bytes(self.capacity_bytes)})"


def device_capacity_bytes(device: dict[str, Any]) -> int:
    """Bytes that a device of this description exports."""
    if "ssd" in device:
        return int(device["ssd"]["capacity"]["logical_bytes"])
    geometry = device["disk"]["geometry"]
    return int(geometry["logical_blocks"] * geometry["logical_block_bytes"])


def parse_range(text: str, capacity_bytes: int, sector_bytes: int) -> tuple[int, int]:
    """First byte and length in bytes of a range, its ends rounded down to whole sectors."""

    def place(end: str) -> int:
        is_share = end.endswith("%")
        bytes_ = int(percent(text, end) / 100 * capacity_bytes) if is_share else size_bytes(text, end)
        return bytes_ // sector_bytes * sector_bytes

    first, separator, last = text.partition("..")
    start, end = (place(first), place(last)) if separator else (0, place(first))
    if not 0 <= start < end:
        raise InputError(f"{text}: the range is empty; write 36.7GB, 10GB..20GB or 0%..50%")
    if end > capacity_bytes:
        capacity = _native.format_bytes(capacity_bytes)
        raise InputError(f"{text}: the range ends beyond the system, which holds {capacity}")
    return start, end - start


@dataclass(frozen=True)
class Imported:
    """What DiskSim's parameter files describe."""

    drives: list[Drive]
    unmapped: dict[str, list[str]]
    """Per drive: parameters without a counterpart in the model."""
    refused: dict[str, str]
    """Drives of the file that cannot be imported, and why."""
    warnings: list[str]
    """Where a drive will behave otherwise than its file says."""


def import_disksim(path: str | os.PathLike[str]) -> Imported:
    """The drives of a ``.parv`` or ``.diskspecs`` file of DiskSim.

    Raises ``InputError`` with file and line when it cannot be read.
    """
    imported = json.loads(_native.import_disksim(os.fspath(path)))
    drives = [
        Drive(
            drive["name"],
            drive["description"],
            stated=[{"key": key, "source": source} for key, source in drive["sources"].items()],
        )
        for drive in imported["drives"]
    ]
    unmapped = {drive["name"]: drive["unmapped"] for drive in imported["drives"]}
    refused = {drive["name"]: drive["error"] for drive in imported["refused"]}
    return Imported(drives, unmapped, refused, imported["warnings"])
