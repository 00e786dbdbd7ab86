"""Values that a data sheet rarely states and that improve a model, as comments in the drive file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headstack import _native

DERIVED = {"disk": ("queue.depth",), "ssd": ("flash.channels", "flash.dies_per_channel", "flash.over_provisioning")}
"""Keys whose derived value is shown as it is."""
AFTER_SLC = 0.3
"""Sequential write rate after the SLC cache as a fraction of the stated rate. Reviews of twelve consumer drives
measured 0.06 (660p) to 0.5 (P5)."""
SLC_SHARE = 0.1
"""SLC cache of an empty drive as a fraction of the capacity: 0.04 (970 EVO Plus) to 0.38 (P44 Pro)."""


@dataclass(frozen=True)
class Hint:
    """A value that the reader of a drive file may replace."""

    value: Any
    comment: str


def hints(kind: str, values: Mapping[str, Any], derived: Sequence[Mapping[str, Any]]) -> dict[str, Hint]:
    """Returns the hints for keys that the file does not state: values that headstack derives from the sheet, and for
    the SLC cache of consumer drives typical values. None exceeds a stated value that bounds it.
    """
    rules = {row["key"]: row["value"] for row in derived}
    entries = {key: Hint(_number(rules[key]), "derived") for key in DERIVED[kind] if key in rules}
    if kind == "disk":
        entries |= _of_disk(values, rules)
    elif _has_cache(values):
        rate = _native.parse_rate(values["stated.sequential_write"])
        entries["stated.after_slc"] = Hint(f"{AFTER_SLC * rate / 1e6:.0f}MB/s", "typical")
        size = float(_native.parse_bytes(values["capacity.size"]))
        entries["stated.slc_cache"] = Hint(f"{SLC_SHARE * size / 1e9:.0f}GB", "typical")
    return {key: hint for key, hint in entries.items() if key not in values}


def _of_disk(values: Mapping[str, Any], rules: Mapping[str, str]) -> dict[str, Hint]:
    entries = {}
    ratio = rules.get("media.sustained_outer_rate over media.sustained_inner_rate")
    if ratio is not None and "media.sustained_outer_rate" in values:
        outer = _native.parse_rate(values["media.sustained_outer_rate"])
        entries["media.sustained_inner_rate"] = Hint(f"{outer / float(ratio) / 1e6:.0f}MB/s", "derived")
    if "seek.read_track_to_track" in rules:
        entries["seek.read_track_to_track"] = Hint(rules["seek.read_track_to_track"], "derived")
    if "seek.write_settle" in rules and "seek.read_average" in values:
        write_ms = _ms(values["seek.read_average"]) + _ms(rules["seek.write_settle"])
        entries["seek.write_average"] = Hint(f"{write_ms:g}ms", "derived")
    curve = re.search(r"([\d.]+) ms \+ ([\d.]+) ms sqrt\(x\) \+ ([\d.]+) ms x", rules.get("seek.points", ""))
    if curve:
        entries["seek.read_full_stroke"] = Hint(f"{sum(map(float, curve.groups())):.3g}ms", "derived")
    return entries


def _has_cache(values: Mapping[str, Any]) -> bool:
    """Whether the drive writes to an SLC cache first, as consumer drives with three and four bits in a cell do."""
    writes = values.get("stated.random_write")
    in_bursts = isinstance(writes, Mapping) and writes.get("state") == "burst"
    return (
        in_bursts
        and values.get("flash.cells") in ("tlc", "qlc")
        and "stated.sequential_write" in values
        and "capacity.size" in values
    )


def _ms(text: str) -> float:
    return float(_native.parse_duration_ns(text)) / 1e6


def _number(text: str) -> Any:
    return int(text) if text.isdecimal() else float(text) if re.fullmatch(r"\d+\.\d+", text) else text
