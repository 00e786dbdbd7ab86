"""What the class of a drive lets guess where its sheet is silent: sheets of today name neither seeks nor disks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstack import _native

TERABYTES_A_DISK = (
    (2004, 0.13),
    (2008, 0.33),
    (2010, 0.5),
    (2013, 1.0),
    (2016, 1.4),
    (2019, 1.78),
    (2020, 2.0),
    (2021, 2.1),
    (2023, 2.4),
    (2024, 3.0),
)
"""Of disks of 3.5 inches in the densest drives of a year (press reports of their introductions)."""
SMALL = 0.35
"""A disk of 2.5 inches has so much of the area of one of 3.5 inches, the hub taken off."""
SEEKS_MS = ((4500.0, 12.0), (6500.0, 11.0), (8000.0, 8.5), (11000.0, 4.2), (20000.0, 3.4))
"""Average read seeks by turns a minute, below so many: what sheets of each class state where they state any."""


@dataclass(frozen=True)
class Estimate:
    """A value with the source that marks it as one."""

    value: Any
    source: str
    needed: str
    """What was missing."""


def estimates(kind: str | None, values: Mapping[str, Any], missing: Sequence[str]) -> dict[str, Estimate]:
    """Keys and values for what is missing, as far as the class tells."""
    found: dict[str, Estimate] = {}
    for key in missing:
        if kind == "disk" and key == "geometry":
            if (disks := _disks(values)) is not None:
                found["geometry.platters"] = Estimate(disks, "D the density of drives of its year", key)
        elif kind == "disk" and key == "seek.read_average" and "spindle.speed" in values:
            speed = float(values["spindle.speed"].removesuffix("rpm"))
            found[key] = Estimate(_seek(speed), "D the class: what sheets of drives of this speed state", key)
        elif kind == "disk" and key == "interface.rate":
            rate = {"sata": "600MB/s", "sas": "1200MB/s"}.get(values.get("interface.kind", ""))
            if rate is not None:
                found[key] = Estimate(rate, "D the standard of today", key)
        elif kind == "ssd" and key == "flash.cells":
            found[key] = Estimate("tlc", "D most solid-state drives since 2016", key)
    return found


def _seek(rpm: float) -> str:
    return next(f"{ms:g}ms" for below, ms in SEEKS_MS if rpm < below or below == SEEKS_MS[-1][0])


def _disks(values: Mapping[str, Any]) -> int | None:
    """Disks that hold the capacity at the density of the year."""
    year = values.get("year")
    if "capacity.logical_blocks" in values:
        bytes_ = values["capacity.logical_blocks"] * (4096 if values.get("capacity.logical_block") == "4096B" else 512)
    elif "capacity.size" in values:
        bytes_ = _native.parse_bytes(values["capacity.size"])
    else:
        return None
    if year is None:
        return None
    years, densities = zip(*TERABYTES_A_DISK, strict=True)
    at = max((index for index, since in enumerate(years) if since <= year), default=0)
    each = densities[at] * (SMALL if values.get("geometry.media_diameter_mm") else 1.0)
    return int(min(max(1, round(bytes_ / 1e12 / each)), 11))
