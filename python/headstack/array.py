"""An array: of the catalogue or of a TOML file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.drive import device_capacity_bytes, parse_range


@dataclass(frozen=True)
class Array:
    """An array with every default filled in, or a part of one."""

    name: str
    """What results call it: the catalogue's id or the file's name, with the range where there is one."""
    description: dict[str, Any]
    """Every parameter of the model; times are in nanoseconds, lengths as their names say."""
    derived: list[dict[str, Any]] = field(default_factory=list)
    """Values that the file does not state: ``key``, ``value`` and the ``rule`` they follow from."""
    stated: list[dict[str, Any]] = field(default_factory=list)
    """Values of the file: ``key``, ``value`` (as text) and ``source`` (how sure, and where from)."""
    span: tuple[int, int] | None = None
    """The part that is used: first byte and length in bytes; ``None`` for all LUNs, which lie one after the other."""

    @classmethod
    def load(cls, name: str | os.PathLike[str], **changes: str | int) -> Array:
        """The array called ``ID`` or ``FILE.toml``; ``drive`` and ``drives`` replace which drives its first table of
        drives has, and how many, ``level`` the level of its groups (``"raid6"``); with ``usable`` (``"8TB"``) in place
        of ``drives`` it has as few drives as export so much.

        Raises ``InputError`` when there is none of that name, it is not an array, or it cannot be changed so.
        """
        path = os.fspath(name)
        resolved = json.loads(_native.load_array(path, {change: str(value) for change, value in changes.items()}))
        return cls(os.path.basename(path).removesuffix(".toml"), **resolved)

    @property
    def system(self) -> dict[str, Any]:
        """What a run is pointed at."""
        return {"array": self.description}

    @property
    def capacity_bytes(self) -> int:
        """Bytes that all LUNs together export."""
        return capacity_bytes(self.system)

    @property
    def summary(self) -> dict[str, Any]:
        """What tells arrays apart."""
        return {
            "id": self.name,
            "name": self.description["name"],
            "levels": [group["level"] for group in self.description["groups"]],
            "drives": len(self.description["members"]),
            "devices": device_names(self.description),
            "capacity_bytes": self.capacity_bytes,
        }

    def part(self, text: str) -> Array:
        """The part ``text`` of the array: ``500GB`` (the first), ``1TB..2TB`` or ``0%..50%``."""
        if self.span is not None:
            raise InputError(f"{self.name}: a range of a range ({text}); state one")
        span = parse_range(text, self.capacity_bytes, sector_bytes(self.system))
        return replace(self, name=f"{self.name}@{text}", span=span)

    def lun(self, name: str) -> Array:
        """One LUN of the array."""
        if self.span is not None:
            raise InputError(f"{self.name}: a LUN of a range ({name}); state one")
        return replace(self, name=f"{self.name}@{name}", span=lun_span(self.description, name))

    def _repr_html_(self) -> str:
        import html

        name = html.escape(str(self.description["name"]))
        drives = len(self.description["members"])
        return f"<b>{name}</b> ({drives} drives, {_native.format_bytes(self.capacity_bytes)})"


def lun_span(description: dict[str, Any], name: str) -> tuple[int, int]:
    """First byte and length of a LUN in the array's address space, where LUNs lie one after the other."""
    start = 0
    for lun in description["luns"]:
        if lun["name"] == name:
            return start, lun["length_bytes"]
        start += lun["length_bytes"]
    names = ", ".join(lun["name"] for lun in description["luns"])
    raise InputError(f"lun: {name!r} is unknown; allowed: {names}")


def drives_of(system: dict[str, Any]) -> int:
    """How many drives an array has, of its first kind."""
    return sum(member["device"] == 0 for member in system["array"]["members"])


def devices(system: dict[str, Any]) -> list[dict[str, Any]]:
    """The kinds of devices in a system's description."""
    return [system["drive"]] if "drive" in system else list(system["array"]["devices"])


def capacity_bytes(system: dict[str, Any]) -> int:
    """Bytes that a system of this description exports."""
    if "target" in system:
        return int(system["target"]["capacity_bytes"])
    if "array" in system:
        return sum(int(lun["length_bytes"]) for lun in system["array"]["luns"])
    return device_capacity_bytes(system["drive"])


def shortened(names: list[str]) -> str:
    """Names for people: ``d0, d1`` or ``d0..d23``."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}..{names[-1]}"


def disks(system: dict[str, Any]) -> list[dict[str, Any]]:
    """The kinds of disk drives in a system's description."""
    return [device["disk"] for device in devices(system) if "disk" in device]


def ssds(system: dict[str, Any]) -> list[dict[str, Any]]:
    """The kinds of solid-state drives in a system's description."""
    return [device["ssd"] for device in devices(system) if "ssd" in device]


def sector_bytes(system: dict[str, Any]) -> int:
    """The largest physical sector; 4 KiB for devices that have none."""
    if "target" in system:
        return int(system["target"]["block_bytes"])
    sectors = [int(disk["geometry"]["physical_sector_bytes"]) for disk in disks(system)]
    return max(sectors) if len(sectors) == len(devices(system)) else max([4096, *sectors])


def device_names(description: dict[str, Any]) -> list[str]:
    """The names of the kinds of devices."""
    return [str(parameters["name"]) for device in description["devices"] for parameters in device.values()]
