"""``Array``, a storage array of the catalogue or of a TOML file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.parts import span_of_part


@dataclass(frozen=True)
class Array:
    """An array with all defaults filled in, or a part of one."""

    name: str
    """The name in results: the catalogue's id or the file's name, with the range if there is one."""
    description: dict[str, Any]
    """Every parameter of the model; times are in nanoseconds, the units of lengths are in their names."""
    derived: list[dict[str, Any]] = field(default_factory=list)
    """Derived values: ``key``, ``value`` and the ``rule`` that computes them."""
    stated: list[dict[str, Any]] = field(default_factory=list)
    """Values stated in the file: ``key``, ``value`` (as text) and ``source`` (confidence and origin)."""
    span: tuple[int, int] | None = None
    """First byte and length in bytes of the used part; ``None`` for all LUNs, which are concatenated."""
    path: str = ""
    """Source of the description: a file, or an id in the catalogue."""

    @classmethod
    def load(cls, name: str | os.PathLike[str], **changes: str | int) -> Array:
        """Loads the array ``ID`` or ``FILE.toml``. ``drive`` and ``drives`` replace the model and the number of the
        drives in its first table of drives, ``level`` the level of its RAID groups (``"raid6"``); ``usable``
        (``"8TB"``) in place of ``drives`` uses the fewest drives that export this capacity.

        Raises ``InputError`` if there is no such name, it is not an array, or the changes are impossible.

        >>> hs.Array.load("va-7100", drives="12").summary["drives"]
        12
        """
        path = os.fspath(name)
        resolved = _native.load_array(path, {change: str(value) for change, value in changes.items()})
        return cls(os.path.basename(path).removesuffix(".toml"), path=path, **resolved)

    @property
    def system(self) -> dict[str, Any]:
        """The system description for a run."""
        return {"array": self.description}

    @cached_property
    def size(self) -> _native.SystemSize:
        """The sizes of the array."""
        return _native.system_size(self.system)

    @property
    def capacity_bytes(self) -> int:
        """Bytes exported by all LUNs together."""
        return self.size.capacity_bytes

    @property
    def summary(self) -> dict[str, Any]:
        """The main properties, which distinguish arrays in a list."""
        return {
            "id": self.name,
            "name": self.description["name"],
            "levels": [group["level"] for group in self.description["groups"]],
            "drives": len(self.description["members"]),
            "devices": device_names(self.description),
            "capacity_bytes": self.capacity_bytes,
        }

    def part(self, text: str) -> Array:
        """Returns the part ``text`` of the array: ``500GB`` (the first), ``1TB..2TB`` or ``0%..50%``.

        >>> hs.Array.load("va-7100").part("0%..50%").name
        'va-7100@0%..50%'
        """
        span = span_of_part(self.name, self.span, self.size, text)
        return replace(self, name=f"{self.name}@{text}", span=span)

    def lun(self, name: str) -> Array:
        """Returns one LUN of the array.

        >>> array = hs.Array.load("va-7100")
        >>> lun = array.description["luns"][0]["name"]
        >>> array.lun(lun).span[0]
        0
        """
        if self.span is not None:
            raise InputError(f"{self.name}: a LUN of a range ({name}); give only one of them")
        return replace(self, name=f"{self.name}@{name}", span=lun_span(self.description, name))

    def _repr_html_(self) -> str:
        import html  # start-up time

        name = html.escape(str(self.description["name"]))
        drives = len(self.description["members"])
        return f"<b>{name}</b> ({drives} drives, {_native.format_bytes(self.capacity_bytes)})"


def lun_span(description: dict[str, Any], name: str) -> tuple[int, int]:
    """Returns the first byte and the length of a LUN in the array's address space, in which LUNs are concatenated."""
    luns = _native.system_size({"array": description}).luns
    for lun, start_bytes, length_bytes in luns:
        if lun == name:
            return start_bytes, length_bytes
    raise InputError(f"{name!r} is unknown; allowed: {', '.join(lun for lun, _, _ in luns)}", key="lun")


def devices(system: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the device models in a system's description, below a stack those of every system."""
    if "stack" in system:
        return [device for below in system["stack"]["below"] for device in devices(below)]
    return [system["drive"]] if "drive" in system else list(system["array"]["devices"])


def shortened(names: list[str]) -> str:
    """Abbreviates a list of names: ``d0, d1`` or ``d0..d23``."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}..{names[-1]}"


def disks(system: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the disk models in a system's description."""
    return [device["disk"] for device in devices(system) if "disk" in device]


def ssds(system: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the SSD models in a system's description."""
    return [device["ssd"] for device in devices(system) if "ssd" in device]


def device_names(description: dict[str, Any]) -> list[str]:
    """Returns the names of the device models."""
    return [str(parameters["name"]) for device in description["devices"] for parameters in device.values()]
