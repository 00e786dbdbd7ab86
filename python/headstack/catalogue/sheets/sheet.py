"""``Sheet``, a parsed data sheet: its values, missing values and contradictions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headstack import _native
from headstack._native import InputError
from headstack.catalogue.sheets.estimates import Estimate, estimates
from headstack.catalogue.sheets.hints import hints
from headstack.catalogue.sheets.labels import keys_of
from headstack.catalogue.sheets.lines import Line
from headstack.catalogue.sheets.writing import toml

SSD_SIGNS = (
    "flash.",
    "endurance.tbw",
    "endurance.dwpd",
    "?layers",
    "?write_alone",
    "stated.after_slc",
    "stated.slc_cache",
    "controller.",
)
DISK_SIGNS = ("spindle.", "seek.", "geometry.", "media.", "?half_turn_ms", "overheads.")
NEEDED = {
    "disk": (
        "year",
        "capacity",
        "geometry",
        "spindle.speed",
        "seek.read_average",
        "buffer.size",
        "interface.kind",
        "interface.rate",
    ),
    "ssd": ("capacity", "flash.cells", "interface.kind"),
}
"""Keys that a drive file requires; ``capacity`` and ``geometry`` each stand for one of two keys."""
EITHER = {"capacity": ("capacity.logical_blocks", "capacity.size"), "geometry": ("geometry.heads", "geometry.platters")}
DAILY_WRITES = 0.5
"""Rated drive writes per day from which on a drive is one for data centers if its sheet also states the total. Consumer
drives have 0.1 to 0.4.
"""
OF_CAPACITY = re.compile(r"(?<![\d.,])(\d+(?:\.\d+)?\s?[GT]B)\s*(?::|-|=)\s*")
HOW = {
    "year": "year: 2020",
    "capacity": "capacity: 16TB",
    "geometry": "platters: 9",
    "spindle.speed": "spindle speed: 7200rpm",
    "seek.read_average": "average seek, read: 8.5ms",
    "buffer.size": "cache: 256MB",
    "interface.kind": "interface: SATA 6Gb/s",
    "interface.rate": "interface.rate: 600MB/s",
    "interface.generation": "interface: PCIe 4.0 x4 NVMe",
    "flash.cells": "NAND: 128-layer TLC",
}
"""Example lines that state a key."""


@dataclass
class Sheet:
    """The figures of one drive, each with the line that states it."""

    values: dict[str, Any] = field(default_factory=dict)
    """Values by key of a drive file; keys that begin with ``?`` are only for notes and checks."""
    lines: dict[str, Line] = field(default_factory=dict)
    """The line that states each value."""
    unused: list[Line] = field(default_factory=list)
    """Lines without a key in a drive file."""
    contradictions: list[str] = field(default_factory=list)
    """Values that contradict each other, one sentence each."""

    @classmethod
    def of(cls, lines: list[Line]) -> Sheet:
        """Parses these lines.

        >>> hs.sheets.Sheet.of(hs.sheets.lines_of("Cache (MB): 256")).values
        {'buffer.size': '256MiB', '?dram': '256MiB'}
        """
        sheet = cls()
        capacity = next(
            (keys["capacity.size"] for line in lines if "capacity.size" in (keys := keys_of(line) or {})), None
        )
        read = []
        for line in lines:
            values = keys_of(_of_capacity(line, capacity))
            if values is None:
                sheet.unused.append(line)
            read.append((line, values or {}))
            for key, value in (values or {}).items():
                sheet._put(key, value, line)
        sheet._tidy()
        # A line whose values this kind of drive has no key for.
        sheet.unused += [line for line, values in read if values and not any(key in sheet.values for key in values)]
        sheet.unused.sort(key=lambda line: line.number)
        sheet._check()
        return sheet

    @property
    def kind(self) -> str | None:
        """``disk`` or ``ssd`` as the sheet's terms suggest, or ``None`` if undecided."""
        ssd = [key for key in self.values if key.startswith(SSD_SIGNS)]
        disk = [key for key in self.values if key.startswith(DISK_SIGNS) and key != "geometry.media_diameter_mm"]
        if self.values.get("interface.kind") == "nvme" or len(ssd) > len(disk):
            return "ssd"
        if disk:
            return "disk"
        return "ssd" if any(key.startswith("stated.sequential") for key in self.values) else None

    @property
    def missing(self) -> list[str]:
        """The required keys that the sheet does not state, in the order of the file."""
        if self.kind is None:
            return ["spindle.speed", "flash.cells"]
        needed = list(NEEDED[self.kind])
        if self.values.get("interface.kind") == "nvme":
            needed.append("interface.generation")
        return [key for key in needed if not any(alternative in self.values for alternative in EITHER.get(key, (key,)))]

    def estimates(self) -> dict[str, Estimate]:
        """Returns estimates of missing values from the class of the drive."""
        return estimates(self.kind, self.values, self.missing)

    def to_toml(self, source: str, derived: Sequence[Mapping[str, Any]] = ()) -> str:
        """Returns a drive file: stated values with their lines, and estimates marked as such.

        ``derived`` are the derived values of this drive (``Drive.derived``), some of which become comments.

        Raises ``InputError`` with all missing values that cannot be estimated.
        """
        guessed = self.estimates()
        estimated_keys = {estimate.needed for estimate in guessed.values()}
        lacking = [key for key in self.missing if key not in estimated_keys]
        if lacking:
            how = "; ".join(HOW[key] for key in lacking)
            if self.kind is None:
                raise InputError(f"cannot distinguish a disk from an SSD; add one of these lines: {how}")
            raise InputError(f"{', '.join(lacking)}; add lines such as these: {how}", key="missing")
        kind = str(self.kind)
        complete = self.values | {key: estimate.value for key, estimate in guessed.items()}
        return toml(kind, self.values, self.lines, guessed, source, hints(kind, complete, derived))

    def _put(self, key: str, value: Any, line: Line) -> None:
        before = self.values.get(key)
        if before is None:
            self.values[key], self.lines[key] = value, line
        elif isinstance(before, dict) and isinstance(value, dict) and _conditions(before) != _conditions(value):
            if _conditions(value) > _conditions(before):
                self.values[key], self.lines[key] = value, line
        elif key == "power.active_w":
            # Sheets state the power of reads, of writes and of seeks; the highest is that of all parts at work.
            if value > before:
                self.values[key], self.lines[key] = value, line
        elif before != value:
            self._differ(key, f"{line.quoted} differs from {self.lines[key].quoted}; the first is used")

    def _differ(self, key: str, message: str) -> None:
        self.contradictions.append(f"{key}: {message}")

    def _tidy(self) -> None:
        """Moves values whose label means something else for this kind of drive."""
        values, lines = self.values, self.lines

        def move(key: str, other: str) -> None:
            if key in values and other not in values:
                values[other], lines[other] = values.pop(key), lines.pop(key)

        if self.kind == "ssd":
            # The cache of an SSD's data sheet holds the mapping table; the size of the write buffer is not stated.
            values.pop("buffer.size", None)
            if values.get("interface.kind") == "nvme":
                values.pop("interface.rate", None)
            move("?read_alone", "stated.read_latency")
            move("?write_alone", "stated.write_latency")
            if "media.sustained_outer_rate" in values:
                move("media.sustained_outer_rate", "stated.sequential_read")
            values.pop("geometry.media_diameter_mm", None)
            writes = values.get("stated.random_write")
            if isinstance(writes, dict):
                writes.pop("cache", None)
            if isinstance(writes, dict) and "state" not in writes:
                writes["state"] = "steady" if self._states_steady_writes() else "burst"
            for key in ("overheads.command", "media.raw_inner_rate", "media.raw_outer_rate"):
                values.pop(key, None)
            if ("power.active_w" in values) != ("power.idle_w" in values):
                # The model of power needs both.
                move("power.active_w", "?active_w")
                move("power.idle_w", "?idle_w")
        elif self.kind == "disk":
            for key in ("controller.map_cache", "endurance.warranty_years"):
                values.pop(key, None)
            writes = values.get("stated.random_write")
            if isinstance(writes, dict):
                writes.pop("state", None)
                # The factory setting.
                writes.setdefault("cache", "on")
            move("stated.sequential_read", "media.sustained_outer_rate")
            for key in ("stated.sequential_write", "stated.read_latency", "stated.write_latency"):
                values.pop(key, None)
        if "name" not in values and "model" in values:
            vendor = f"{values['vendor']} " if "vendor" in values else ""
            values["name"], lines["name"] = f"{vendor}{values['model']}", lines["model"]
        if "capacity.logical_blocks" in values and "capacity.size" in values:
            self._blocks_and_size(values["capacity.logical_blocks"], values["capacity.size"])

    def _states_steady_writes(self) -> bool:
        """Whether the sheet states random writes of the steady state, as those of drives for data centers do.

        They state drive writes per day, 0.5 and more of them, or capacitors; sheets of consumer drives state the total
        of writes, which is 0.3 drive writes per day, and writes into the SLC cache.
        """
        values = self.values
        if values.get("flash.cells") == "xpoint" or values.get("buffer.power_loss_protected") is True:
            return True
        if "endurance.dwpd" in values:
            return "endurance.tbw" not in values or values["endurance.dwpd"] >= DAILY_WRITES
        if "endurance.tbw" in values and "capacity.size" in values:
            days = 365 * float(values.get("endurance.warranty_years", 5))
            terabytes = float(_native.parse_bytes(values["capacity.size"])) / 1e12
            return float(values["endurance.tbw"]) >= DAILY_WRITES * days * terabytes
        return False

    def _blocks_and_size(self, blocks: int, size: str) -> None:
        block = 4096 if self.values.get("capacity.logical_block") == "4096B" else 512
        bytes_ = _native.parse_bytes(size)
        if not 0.98 < blocks * block / bytes_ < 1.03:
            self._differ("capacity", f"{blocks:,} blocks of {block} bytes are not {size}; the blocks are used")
        if self.kind == "disk":
            del self.values["capacity.size"]
        else:
            self.values["capacity.size"] = f"{blocks * block}B"
            del self.values["capacity.logical_blocks"]

    def _check(self) -> None:
        """Compares figures that determine each other."""
        values = self.values
        half = values.get("?half_turn_ms")
        if half and (speed := values.get("spindle.speed")):
            follows = 30_000 / float(speed.removesuffix("rpm"))
            if abs(follows - half) > 0.05 * follows:
                self._differ("spindle.speed", f"half a revolution at {speed} takes {follows:.2f} ms, not {half:g} ms")
        heads, disks = values.get("geometry.heads"), values.get("geometry.platters")
        if heads and disks and not 2 * disks - 2 <= heads <= 2 * disks:
            self._differ(
                "geometry.heads", f"{heads} heads on {disks} platters; must be two per platter, or up to two fewer"
            )
        for low, high in (
            ("seek.read_track_to_track", "seek.read_average"),
            ("seek.read_average", "seek.read_full_stroke"),
            ("seek.write_track_to_track", "seek.write_average"),
            ("seek.write_average", "seek.write_full_stroke"),
        ):
            if low in values and high in values and _ms(values[low]) >= _ms(values[high]):
                self._differ(low, f"{values[low]} is not less than {high}, {values[high]}")
        rate = values.get("interface.rate")
        for key in ("media.sustained_outer_rate", "stated.sequential_read", "stated.sequential_write"):
            if rate and key in values and _native.parse_rate(values[key]) > _native.parse_rate(rate):
                self._differ(key, f"{values[key]} exceeds the interface rate, {rate}")
        reads, in_order = values.get("stated.random_read"), values.get("stated.sequential_read")
        if reads and in_order and reads["iops"] * 4096 > 1.1 * _native.parse_rate(in_order):
            self._differ("stated.random_read", f"{reads['iops']:,} IOPS of 4 KiB exceed {in_order}")
        self._check_alone()

    def _check_alone(self) -> None:
        """Checks a latency against the rate at a queue depth."""
        for direction in ("read", "write"):
            stated, alone = (
                self.values.get(f"stated.random_{direction}"),
                self.values.get(f"stated.{direction}_latency"),
            )
            if stated and alone and (depth := stated.get("depth")):
                most = depth * 1e6 / _us(alone)
                if stated["iops"] > 1.3 * most and direction == "read":
                    message = (
                        f"{stated['iops']:,} IOPS at queue depth {depth} exceed {most:,.0f}, the limit at {alone} each"
                    )
                    self._differ(f"stated.random_{direction}", message)


def _conditions(stated: Mapping[str, Any]) -> tuple[bool, float]:
    """Ranks the conditions of a stated rate: requests of 4 KiB, then the deepest queue, the drive's maximum."""
    return stated.get("size", "4KiB") == "4KiB", stated.get("depth") or 1e9


def _of_capacity(line: Line, capacity: str | None) -> Line:
    """Returns a line that states values of several capacities with the value of this one, for example that of
    `480GB: 41,000 IOPS; 960GB: 65,000 IOPS`.
    """
    parts = [*OF_CAPACITY.finditer(line.value)]
    if capacity is None or len(parts) < 2:
        return line
    size = float(_native.parse_bytes(capacity))
    for part, end in zip(parts, [*(part.start() for part in parts[1:]), len(line.value)], strict=True):
        if abs(float(_native.parse_bytes(part[1].replace(" ", ""))) / size - 1) < 0.03:
            return Line(line.number, line.label, line.value[part.end() : end].strip(" ;,/("))
    return line


def _ms(text: str) -> float:
    return float(_native.parse_duration_ns(text)) / 1e6


def _us(text: str) -> float:
    return float(_native.parse_duration_ns(text)) / 1e3


def format_remarks(sheet: Sheet, guessed: Mapping[str, Estimate]) -> list[str]:
    """Returns remarks for the reader of the file."""
    lines = [f"contradiction: {contradiction}" for contradiction in sheet.contradictions]
    if guessed:
        lines.append("missing, and estimated from the class of the drive:")
        lines += [
            f"  {key} = {estimate.value} ({re.sub('^D ', '', estimate.source)}); or add: {HOW[estimate.needed]}"
            for key, estimate in guessed.items()
        ]
    if sheet.unused:
        names = ", ".join(line.label for line in sheet.unused)
        lines.append(f"not used in a drive file: {names}")
    return lines
