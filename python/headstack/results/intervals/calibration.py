"""`ClassScores`: errors of models on measured devices, and the prediction intervals learned from them.

A file has the scores of devices by class: ``{"version": 1, "classes": {"disk": {"devices": [{"device": "disk-17",
"cells": [{"workload", "kind", "depth", "size_bytes", "figure", "log_ratio", "spread"}]}]}}}``. ``log_ratio`` is the
natural logarithm of measured over predicted; ``spread`` is the standard deviation of the logarithm of the prediction
over other descriptions that fit the device equally well, 0 if there is only one. A device whose description was
``fitted`` to these measurements is left out. ``range`` may narrow the loads to which the scores apply.
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
"""Figures that have intervals: throughput, and the mean, median and 99th percentile of latency."""

CLASSES = {
    "disk": ("disk", "disks"),
    "data-center-nvme": ("data-center NVMe SSD", "data-center NVMe SSDs"),
    "consumer-nvme": ("consumer NVMe SSD", "consumer NVMe SSDs"),
    "data-center-sata": ("data-center SATA SSD", "data-center SATA SSDs"),
    "consumer-sata": ("consumer SATA SSD", "consumer SATA SSDs"),
    "sas-ssd": ("SAS SSD", "SAS SSDs"),
    "flash": ("SSD", "SSDs"),
    "array": ("array", "arrays"),
    "array of flash": ("array of flash", "arrays of flash"),
    "volume": ("volume", "volumes"),
    "stack": ("stack", "stacks"),
}
"""Classes of systems, with their names in singular and plural. Each class has its own intervals. ``flash`` has the
calibrated models of SSDs of any kind."""

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

STATE_HINTS = {"steady": "add --state steady", "filled": "add --state filled"}
"""How to run an SSD in the state in which devices were measured."""

FLOOR = 0.01
"""Standard deviation (of the logarithm) added to the spread of every prediction. Repeated runs of one description or
one device differ by this amount; for example, steady writes of one SSD differ by 0.7 %."""

CATALOGUE = Path(__file__).with_name("catalogue.json")
TWINS = Path(__file__).parents[2] / "twin" / "calibration.json"


class Load(NamedTuple):
    """The properties of a load on which errors depend."""

    kind: str
    """One of ``KINDS``."""
    depth: int
    """Queue depth."""
    size_bytes: float
    """Mean size of a request."""
    state: str = ""
    """State of the flash of an SSD when it is written, or ``fresh`` when it is read; otherwise empty, because reads of
    written flash do not depend on it."""

    @property
    def words(self) -> str:
        """The kind of requests, and the state of the flash, in words.

        >>> from headstack.results.intervals.calibration import Load
        >>> Load("write", 32, 4096, "steady").words
        'random writes in steady state'
        """
        kind = KINDS.get(self.kind, self.kind)
        return f"{kind} in {self.state} state" if self.state else kind


class Cell(NamedTuple):
    """A figure of a device under a load, and the error of its prediction."""

    workload: str
    load: Load
    figure: str
    log_ratio: float
    """The natural logarithm of measured over predicted."""
    spread: float
    """The standard deviation of the logarithm of the prediction."""

    @property
    def score(self) -> float:
        """The error relative to the standard deviation of the prediction.

        >>> from headstack.results.intervals.calibration import Cell, Load
        >>> round(Cell("reads", Load("read", 4, 4096), "p99", -0.03, 0.01).score, 2)
        2.12
        """
        return abs(self.log_ratio) / math.hypot(self.spread, FLOOR)


class Device(NamedTuple):
    """A measured device with the errors of its predictions. All measured units of one model are one device, because
    their errors have the same cause."""

    name: str
    """The model."""
    cells: tuple[Cell, ...]
    fitted: str | None = None
    """The part of the device's description that was fitted to these measurements. Intervals are not learned from such
    a device."""
    stated_share: float | None = None
    """Share of the values in the description that are stated, not derived."""
    year: int | None = None
    """Year of introduction."""

    def at(self, load: Load, figure: str) -> list[float]:
        """Returns the device's scores of a figure at the measured depths next to the depth of a load; empty if the
        depth is outside the measured range."""
        ours = [cell for cell in self.cells if cell.figure == figure and _is_alike(cell.load, load)]
        below = max((cell.load.depth for cell in ours if cell.load.depth <= load.depth), default=None)
        above = min((cell.load.depth for cell in ours if cell.load.depth >= load.depth), default=None)
        if below is None or above is None:
            return []
        return [cell.score for cell in ours if cell.load.depth in (below, above)]


def _is_alike(measured: Load, load: Load) -> bool:
    """Whether a measured load has the kind of requests and the state of a load."""
    return (measured.kind, measured.state) == (load.kind, load.state)


class Refusal(NamedTuple):
    """The reason why there is no interval, in one line."""

    why: str


class Learnt(NamedTuple):
    """The interval learned from the devices of a class, for a figure at a load."""

    score: float
    """Upper limit of the score of a new device, as in ``Cell.score``."""
    devices: int
    level: float = conformal.LEVEL
    """Share of devices within the interval."""
    years: tuple[int, int] | None = None
    """First and last year of introduction of the devices, if known for all."""

    def half_width(self, spread: float) -> float:
        """Returns the half-width of the interval of the logarithm of a figure, for a prediction with this spread."""
        return self.score * math.hypot(spread, FLOOR)


class ClassScores(NamedTuple):
    """The devices of a class."""

    name: str
    """One of ``CLASSES``."""
    devices: tuple[Device, ...] = ()
    range: Mapping[str, tuple[float, float]] = MappingProxyType({})
    """Allowed ranges of ``depth`` and ``size_bytes``, if the file restricts them."""

    def learnt(self, load: Load, figure: str, stated_share: float | None = None) -> Learnt | Refusal:
        """Returns the interval of a figure of a new device at a load, whose description states this share of its
        values, at the highest level that the measured devices support, or the reason why there is none."""
        singular, plural = CLASSES[self.name]
        teaching = [device for device in self.devices if device.fitted is None]
        ours = [cell for device in teaching for cell in device.cells if _is_alike(cell.load, load)]
        for state, hint in STATE_HINTS.items():
            other = load._replace(state=state)
            devices = sum(any(_is_alike(cell.load, other) for cell in device.cells) for device in teaching)
            if not ours and load.state and devices >= conformal.FEWEST:
                return Refusal(f"{plural} were measured only with {other.words}; {hint}")
        ranges: dict[str, tuple[float, list[float], Callable[[float], str], str]] = {
            "depth": (load.depth, [cell.load.depth for cell in ours], "{:g}".format, "depths"),
            "size_bytes": (load.size_bytes, [cell.load.size_bytes for cell in ours], _size, "request sizes"),
        }
        for key, (value, measured, format_value, label) in ranges.items():
            low, high = self.range.get(key, (min(measured, default=0), max(measured, default=0)))
            if measured and not low <= value <= high:
                ends = format_value(low) if low == high else f"{format_value(low)} to {format_value(high)}"
                return Refusal(f"{format_value(value)} is outside the measured {label} of {plural}, {ends}")
        shares = [
            device.stated_share
            for device in teaching
            if device.stated_share is not None and any(_is_alike(cell.load, load) for cell in device.cells)
        ]
        if stated_share is not None and shares and stated_share < min(shares):
            return Refusal(
                f"the description states {100 * stated_share:.0f} % of its values, "
                f"less than the description of any measured {singular}"
            )
        scores = [scores for device in teaching if (scores := device.at(load, figure))]
        level = conformal.level_of(len(scores))
        within = conformal.quantile(scores, level) if level is not None else None
        if level is None or within is None:
            at_any_depth = sum(
                any(cell.figure == figure and _is_alike(cell.load, load) for cell in device.cells)
                for device in teaching
            )
            depth = f" at depth {load.depth}" if at_any_depth > len(scores) else ""
            return Refusal(
                f"not known ({len(scores)} of {conformal.devices_needed()} {plural} measured with {load.words}{depth})"
            )
        years = [device.year for device in teaching if device.year is not None and device.at(load, figure)]
        return Learnt(within, len(scores), level, (min(years), max(years)) if len(years) == len(scores) else None)


def _size(size_bytes: float) -> str:
    return _native.format_bytes(round(size_bytes))


def read(path: Path) -> dict[str, ClassScores]:
    """Reads the scores of a file by class; empty if the file does not exist. Raises ``InputError`` if the version or a
    class is unknown."""
    if not path.is_file():
        return {}
    contents = read_json(path)
    if contents.get("version") != 1:
        raise InputError(
            f"{path}: unknown version {contents.get('version')} of a calibration; this build reads version 1"
        )
    unknown = set(contents["classes"]) - set(CLASSES)
    if unknown:
        raise InputError(f"{path}: classes: {', '.join(sorted(unknown))} is unknown; allowed: {', '.join(CLASSES)}")
    return {
        name: class_scores(
            name,
            of_class["devices"],
            {key: tuple(ends) for key, ends in of_class.get("range", {}).items() if key in ("depth", "size_bytes")},
        )
        for name, of_class in contents["classes"].items()
    }


def class_scores(
    name: str, entries: Sequence[Mapping[str, Any]], range_: Mapping[str, tuple[float, float]]
) -> ClassScores:
    """Returns the scores of a class from the entries of a file. Entries of one model are one device, unless only one of
    them was fitted."""
    devices: dict[tuple[str, str | None], Device] = {}
    for device in map(_device, entries):
        of_model = device.name, device.fitted
        unit = devices.get(of_model)
        devices[of_model] = device if unit is None else unit._replace(cells=unit.cells + device.cells)
    return ClassScores(name, tuple(devices.values()), range_)


def _device(entry: Mapping[str, Any]) -> Device:
    cells = tuple(
        Cell(
            cell["workload"],
            Load(cell["kind"], cell["depth"], cell["size_bytes"], cell.get("state", "")),
            cell["figure"],
            cell["log_ratio"],
            cell.get("spread", 0.0),
        )
        for cell in entry["cells"]
    )
    return Device(entry["device"], cells, entry.get("fitted"), entry.get("stated_share"), entry.get("year"))


@cache
def catalogue_scores() -> dict[str, ClassScores]:
    """Returns the scores of descriptions made from data sheets and other sources."""
    return read(CATALOGUE)


@cache
def twin_scores() -> dict[str, ClassScores]:
    """Returns the scores of calibrated models, whose descriptions are fitted to measurements, on held-out devices."""
    return read(TWINS)


class Coverage(NamedTuple):
    """The coverage of the intervals of a figure, each learned from all other devices."""

    shares: Mapping[str, float]
    """Share of the cells of each device that are within their intervals."""
    half_widths: Sequence[float]
    """Half-width of the interval of each cell, in the logarithm."""
    level: float
    """Least level of the intervals, which the mean coverage should reach."""

    @property
    def share(self) -> float:
        """Mean coverage over the devices."""
        return sum(self.shares.values()) / len(self.shares)


def leave_one_out(of_class: ClassScores, figure: str, kind: str | None = None) -> Coverage | None:
    """Returns the coverage of the intervals of ``ClassScores.learnt``, of one ``kind`` of requests or all, when the
    intervals of each device are learned from the other devices, at the level that these support; ``None`` with fewer
    than ``FEWEST`` devices. Two others, as of three devices, count here with 67 %."""
    teaching = [device for device in of_class.devices if device.fitted is None]
    within: dict[str, list[bool]] = {}
    half_widths = []
    least = conformal.LEVEL
    loads = {cell.load for device in teaching for cell in device.cells if cell.figure == figure}
    for load in sorted(load for load in loads if kind in (None, load.kind)):
        scores = {device.name: device.at(load, figure) for device in teaching if device.at(load, figure)}
        if len(scores) < conformal.FEWEST:
            continue
        level = min(conformal.LEVEL, (len(scores) - 1) / len(scores))
        least = min(least, level)
        for device in teaching:
            own = [cell for cell in device.cells if cell.figure == figure and cell.load == load]
            others = [of for name, of in scores.items() if name != device.name]
            reach = conformal.quantile(others, level) if own and device.name in scores else None
            if reach is None:
                continue
            within.setdefault(device.name, []).extend(cell.score <= reach for cell in own)
            half_widths += [reach * math.hypot(cell.spread, FLOOR) for cell in own]
    if not within:
        return None
    return Coverage({name: sum(inside) / len(inside) for name, inside in within.items()}, half_widths, least)
