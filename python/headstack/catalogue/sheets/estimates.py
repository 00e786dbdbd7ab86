"""Estimates of missing data sheet values from the class of the drive: current data sheets state neither seek times nor
platter counts.
"""

from __future__ import annotations

import re
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
"""Capacity of a 3.5-inch platter in the densest drives of a year, in TB (press reports of their introductions)."""
SMALL = 0.35
"""Area of a 2.5-inch platter as a share of a 3.5-inch one, without the hub."""
SEEKS_MS = ((4500.0, 12.0), (6500.0, 11.0), (8000.0, 8.5), (11000.0, 4.2), (20000.0, 3.4))
"""Average read seek times by upper bounds of the spindle speed in rpm, as typical data sheets of each class state them.
"""


@dataclass(frozen=True)
class Estimate:
    """A value with a source that marks it as an estimate."""

    value: Any
    source: str
    needed: str
    """The missing key."""


def estimates(kind: str | None, values: Mapping[str, Any], missing: Sequence[str]) -> dict[str, Estimate]:
    """Returns estimates for missing values, as far as the class determines them."""
    estimated: dict[str, Estimate] = {}
    for key in missing:
        if kind == "disk" and key == "geometry":
            if (disks := _disks(values)) is not None:
                estimated["geometry.platters"] = Estimate(disks, "D platter density of its year", key)
        elif kind == "disk" and key == "seek.read_average" and "spindle.speed" in values:
            speed = float(values["spindle.speed"].removesuffix("rpm"))
            estimated[key] = Estimate(_seek(speed), "D typical of drives of this speed", key)
        elif kind == "disk" and key == "interface.rate":
            rate = {"sata": "600MB/s", "sas": "1200MB/s"}.get(values.get("interface.kind", ""))
            if rate is not None:
                estimated[key] = Estimate(rate, "D current standard", key)
        elif kind == "ssd" and key == "flash.cells":
            names = " ".join(str(values.get(name, "")) for name in ("name", "model")).lower()
            is_xpoint = re.search(r"optane(?!.*\bh\d)|x-?point", names) is not None
            cells, source = ("xpoint", "B medium of this product") if is_xpoint else ("tlc", "D most SSDs since 2016")
            estimated[key] = Estimate(cells, source, key)
    return estimated


def _seek(rpm: float) -> str:
    return next(f"{ms:g}ms" for below, ms in SEEKS_MS if rpm < below or below == SEEKS_MS[-1][0])


def _disks(values: Mapping[str, Any]) -> int | None:
    """Returns the number of platters that hold the capacity at the density of the year."""
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
