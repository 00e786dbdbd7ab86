"""How far models were off on devices that were measured, and what that teaches of one that was not.

A file has the scores of devices by class: ``{"version": 1, "classes": {"disk": {"devices": [{"device": "disk-17",
"cells": [{"workload", "kind", "depth", "size_bytes", "figure", "log_ratio", "spread"}]}]}}}``. ``log_ratio`` is the
logarithm of measured over predicted; ``spread`` the deviation of the logarithm of what was predicted, over the other
descriptions that explain the device as well, 0 where there is one alone. A device says to which of its own measurements
its description was ``fitted``, and teaches nothing of others then. ``range`` may narrow what the scores are good for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from headstack import _native
from headstack._native import InputError
from headstack.io.json_text import read_json
from headstack.results.intervals import conformal

FIGURES = ("rate", "mean", "p50", "p99")
"""What intervals are of: requests a second, and the mean, median and 99th percentile of response times."""

CLASSES = {
    "disk": ("disk", "disks"),
    "flash": ("solid-state drive", "solid-state drives"),
    "array": ("array", "arrays"),
    "array of flash": ("array of flash", "arrays of flash"),
    "volume": ("volume", "volumes"),
}
"""What intervals are learnt apart for, and what one and several are called."""

KINDS = {
    "read": "random reads",
    "write": "random writes",
    "mix": "mixes of random reads and writes",
    "sequential read": "sequential reads",
    "sequential write": "sequential writes",
    "sequential mix": "mixes of sequential reads and writes",
    "replay": "replayed traces",
}
"""Kinds of requests, in words."""

FLOOR = 0.01
"""The deviation of a logarithm that every description has, beside that over a sample of others: runs of one description
differ by as much, and a device repeats itself no better (steady writes of one solid-state drive by 0.7 %)."""

CATALOGUE = Path(__file__).with_name("catalogue.json")
TWINS = Path(__file__).parents[2] / "twin" / "calibration.json"


class Load(NamedTuple):
    """What a system is under, as far as its errors depend on it."""

    kind: str
    """Of ``KINDS``."""
    depth: int
    """Requests outstanding."""
    size_bytes: float
    """Of a request, in the mean."""


class Cell(NamedTuple):
    """A figure of a device under a load, and how far off its prediction was."""

    workload: str
    load: Load
    figure: str
    log_ratio: float
    """The natural logarithm of measured over predicted."""
    spread: float
    """The deviation of the logarithm of what was predicted."""

    @property
    def score(self) -> float:
        """The error, in parts of what the prediction knew of itself.

        >>> from headstack.results.intervals.calibration import Cell, Load
        >>> round(Cell("reads", Load("read", 4, 4096), "p99", -0.03, 0.01).score, 2)
        2.12
        """
        return abs(self.log_ratio) / math.hypot(self.spread, FLOOR)


class Device(NamedTuple):
    """A device that was measured, beside what was predicted of it."""

    name: str
    cells: tuple[Cell, ...]
    fitted: str | None = None
    """What of its description was fitted to these measurements; it teaches nothing then."""
    stated_share: float | None = None
    """Of the values that its description needs, the share that is stated and not derived."""
    year: int | None = None
    """When such devices came."""

    def at(self, load: Load, figure: str) -> list[float]:
        """Its scores of a figure at the depths round that of a load; none where the load is lighter or heavier than all
        that was measured of it."""
        ours = [cell for cell in self.cells if cell.figure == figure and cell.load.kind == load.kind]
        below = max((cell.load.depth for cell in ours if cell.load.depth <= load.depth), default=None)
        above = min((cell.load.depth for cell in ours if cell.load.depth >= load.depth), default=None)
        if below is None or above is None:
            return []
        return [cell.score for cell in ours if cell.load.depth in (below, above)]


class Refusal(NamedTuple):
    """Why there is no interval, in one line."""

    why: str


class Learnt(NamedTuple):
    """What the devices of a class teach of a figure at a load."""

    score: float
    """What a new device's figure keeps within, as ``Cell.score``."""
    devices: int
    years: tuple[int, int] | None = None
    """From when they were, where all say so."""

    def half_width(self, spread: float) -> float:
        """Of the logarithm of a figure that is predicted with this spread."""
        return self.score * math.hypot(spread, FLOOR)


class ClassScores(NamedTuple):
    """The devices of a class."""

    name: str
    """Of ``CLASSES``."""
    devices: tuple[Device, ...] = ()
    range: Mapping[str, tuple[float, float]] = MappingProxyType({})
    """From where to where a ``depth`` or ``size_bytes`` may be, where the file says so."""

    def learnt(
        self, load: Load, figure: str, stated_share: float | None = None, level: float = conformal.LEVEL
    ) -> Learnt | Refusal:
        """What holds for a figure of a new device at a load, where its description states this share of its values."""
        one, several = CLASSES[self.name]
        teaching = [device for device in self.devices if device.fitted is None]
        ours = [cell for device in teaching for cell in device.cells if cell.load.kind == load.kind]
        ranges: dict[str, tuple[float, list[float], Callable[[float], str], str]] = {
            "depth": (load.depth, [cell.load.depth for cell in ours], "{:g}".format, "depths"),
            "size_bytes": (load.size_bytes, [cell.load.size_bytes for cell in ours], _size, "request sizes"),
        }
        for key, (asked, found, text, called) in ranges.items():
            low, high = self.range.get(key, (min(found, default=0), max(found, default=0)))
            if found and not low <= asked <= high:
                return Refusal(
                    f"{text(asked)} is outside the {called} that {several} were measured at, "
                    f"{text(low)} to {text(high)}"
                )
        shares = [device.stated_share for device in teaching if device.stated_share is not None]
        if stated_share is not None and shares and stated_share < min(shares):
            return Refusal(
                f"the description states {100 * stated_share:.0f} % of its values, "
                f"less than of any of the {several} measured"
            )
        scores = [scores for device in teaching if (scores := device.at(load, figure))]
        within = conformal.quantile(scores, level)
        if within is None:
            number = f"{len(scores)} {one if len(scores) == 1 else several}" if scores else f"no {one}"
            were = "was" if len(scores) < 2 else "were"
            elsewhere = sum(
                any(cell.figure == figure and cell.load.kind == load.kind for cell in device.cells)
                for device in teaching
            )
            depth = f" at depth {load.depth}" if elsewhere > len(scores) else ""
            return Refusal(
                f"{number} {were} measured with {KINDS.get(load.kind, load.kind)}{depth}; "
                f"at least {conformal.devices_needed(level)} are needed"
            )
        years = [device.year for device in teaching if device.year is not None and device.at(load, figure)]
        return Learnt(within, len(scores), (min(years), max(years)) if len(years) == len(scores) else None)


def _size(size_bytes: float) -> str:
    return _native.format_bytes(round(size_bytes))


def read(path: Path) -> dict[str, ClassScores]:
    """The scores of a file by class; none where there is no such file. Raises ``InputError`` for what is none."""
    if not path.is_file():
        return {}
    told = read_json(path)
    if told.get("version") != 1:
        raise InputError(f"{path}: unknown version {told.get('version')} of a calibration; this build reads version 1")
    unknown = set(told["classes"]) - set(CLASSES)
    if unknown:
        raise InputError(f"{path}: classes: {', '.join(sorted(unknown))} is unknown; allowed: {', '.join(CLASSES)}")
    return {
        name: of_devices(
            name,
            of_class["devices"],
            {key: tuple(ends) for key, ends in of_class.get("range", {}).items() if key in ("depth", "size_bytes")},
        )
        for name, of_class in told["classes"].items()
    }


def of_devices(name: str, told: Sequence[Mapping[str, Any]], range_: Mapping[str, tuple[float, float]]) -> ClassScores:
    """The scores of devices as a file has them."""
    return ClassScores(name, tuple(map(_device, told)), range_)


def _device(told: Mapping[str, Any]) -> Device:
    cells = tuple(
        Cell(
            cell["workload"],
            Load(cell["kind"], cell["depth"], cell["size_bytes"]),
            cell["figure"],
            cell["log_ratio"],
            cell.get("spread", 0.0),
        )
        for cell in told["cells"]
    )
    return Device(told["device"], cells, told.get("fitted"), told.get("stated_share"), told.get("year"))


@cache
def of_catalogue() -> dict[str, ClassScores]:
    """Of descriptions made from sheets and other sources, beside measurements of such devices."""
    return read(CATALOGUE)


@cache
def of_twins() -> dict[str, ClassScores]:
    """Of descriptions learnt from a device's answers, beside devices that were kept out."""
    return read(TWINS)


class Held(NamedTuple):
    """What became of intervals of a figure, each learnt from all devices but its own."""

    shares: Mapping[str, float]
    """Of each device the share of its cells within."""
    half_widths: Sequence[float]
    """Of each cell, of the logarithm."""

    @property
    def share(self) -> float:
        """The mean over devices."""
        return sum(self.shares.values()) / len(self.shares)


def left_out(of_class: ClassScores, figure: str, level: float = conformal.LEVEL) -> Held | None:
    """What becomes of the intervals that ``ClassScores.learnt`` tells, where each device is left out of what its own
    are learnt from; ``None`` where the devices are too few for any."""
    teaching = [device for device in of_class.devices if device.fitted is None]
    within: dict[str, list[bool]] = {}
    half_widths = []
    for load in sorted({cell.load for device in teaching for cell in device.cells if cell.figure == figure}):
        scores = {device.name: device.at(load, figure) for device in teaching}
        for device in teaching:
            own = [cell for cell in device.cells if cell.figure == figure and cell.load == load]
            others = [of for name, of in scores.items() if name != device.name]
            reach = conformal.quantile(others, level) if own else None
            if reach is None:
                continue
            within.setdefault(device.name, []).extend(cell.score <= reach for cell in own)
            half_widths += [reach * math.hypot(cell.spread, FLOOR) for cell in own]
    if not within:
        return None
    return Held({name: sum(inside) / len(inside) for name, inside in within.items()}, half_widths)
