"""`ClassScores`: errors of models on measured devices, and the prediction intervals learned from them.

A file has the scores of devices by class: ``{"version": 1, "classes": {"disk": {"devices": [{"device": "disk-17",
"cells": [{"workload", "kind", "depth", "size_bytes", "figure", "log_ratio", "spread"}]}]}}}``. ``log_ratio`` is the
natural logarithm of measured over predicted; ``spread`` is the standard deviation of the logarithm of the prediction
over other descriptions that fit the device equally well, 0 if there is only one. A device whose description was
``fitted`` to these measurements is left out. ``range`` may narrow the loads to which the scores apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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
SCORED = ("rate", "mean", "p50", "p95", "p99", "p99.9")
"""Figures whose errors the scoreboard shows."""

CLASSES = {
    "disk": ("disk", "disks"),
    "data-center-nvme": ("data-center NVMe SSD", "data-center NVMe SSDs"),
    "consumer-nvme": ("consumer NVMe SSD", "consumer NVMe SSDs"),
    "data-center-sata": ("data-center SATA SSD", "data-center SATA SSDs"),
    "consumer-sata": ("consumer SATA SSD", "consumer SATA SSDs"),
    "sas-ssd": ("SAS SSD", "SAS SSDs"),
    "xpoint": ("SSD of 3D XPoint", "SSDs of 3D XPoint"),
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
"""Kinds of requests, in words. Only the scoreboard also has the reads or writes of a mix alone (``mix: reads``) and
open loops (``open read``), for which no interval is learned."""

SSD_CLASSES = ("data-center-nvme", "consumer-nvme", "data-center-sata", "consumer-sata", "sas-ssd")
"""Classes of SSDs. Where one of them has too few measured models, intervals are learned from the SSDs of all
(``pooled``)."""

POOL = "flash"
"""The class of SSDs of all classes."""

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
        base = self.kind.removeprefix("open ")
        name, _, direction = base.partition(": ")
        kind = f"{direction} of {KINDS[name]}" if direction else KINDS.get(name, name)
        kind = f"{kind} at an arrival rate" if base != self.kind else kind
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
    described: tuple[str, ...] = ()
    """How the device is described: by its sheet, also by its host adapter, or by a calibrated model."""
    source: str = ""
    """Source of the measurements."""

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
    interval: Learnt | None = None
    """The interval at a lower level than that of the other figures of a run."""


class Learnt(NamedTuple):
    """The interval learned from the devices of a class, for a figure at a load."""

    score: float
    """Upper limit of the score of a new device, as in ``Cell.score``."""
    devices: int
    level: float = conformal.LEVEL
    """Share of devices within the interval."""
    years: tuple[int, int] | None = None
    """First and last year of introduction of the devices, if known for all."""
    of_class: str = ""
    """Class of the devices, one of ``CLASSES``."""
    is_pooled: bool = False
    """Whether the devices are SSDs of all classes."""
    hint: str = ""
    """How to run so that an interval of the own class applies, if it is that of SSDs of all classes."""

    @property
    def words(self) -> str:
        """The number of devices and their class, for example ``9 disks of 2001 to 2007``."""
        name = f"{self.devices} {CLASSES[self.of_class][self.devices != 1]}"
        years = "" if self.years is None else " to ".join(map(str, dict.fromkeys(self.years)))
        if self.is_pooled:
            return f"{name} of any class{', ' * bool(years)}{years}"
        return f"{name} of {years}" if years else name

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
        span = (min(years), max(years)) if len(years) == len(scores) else None
        return Learnt(within, len(scores), level, span, self.name)


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
        devices[of_model] = device if unit is None else _merged(unit, device)
    return ClassScores(name, tuple(devices.values()), range_)


def _merged(unit: Device, other: Device) -> Device:
    """Returns two units of a model as one device."""
    ways = tuple(dict.fromkeys(unit.described + other.described))
    shares = [each.stated_share for each in (unit, other) if each.stated_share is not None]
    return unit._replace(cells=unit.cells + other.cells, described=ways, stated_share=min(shares, default=None))


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
    return Device(
        name=entry["device"],
        cells=cells,
        fitted=entry.get("fitted"),
        stated_share=entry.get("stated_share"),
        year=entry.get("year"),
        described=(entry["described"],) if "described" in entry else (),
        source=entry.get("source", ""),
    )


@cache
def catalogue_scores() -> dict[str, ClassScores]:
    """Returns the scores of descriptions made from data sheets and other sources."""
    return read(CATALOGUE)


@cache
def pooled_scores() -> ClassScores:
    """Returns the scores of SSDs of all classes, described by data sheets and other sources."""
    return pooled(catalogue_scores())


def pooled(classes: Mapping[str, ClassScores]) -> ClassScores:
    """Returns the SSDs of all classes as one class."""
    devices = [device for name in SSD_CLASSES if name in classes for device in classes[name].devices]
    return ClassScores(POOL, tuple(devices))


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


class LeftOut(NamedTuple):
    """The interval of a figure of a device, learned from the other devices, and whether it contains the
    measurement."""

    device: Device
    cell: Cell
    reach: float
    """Upper limit of the score, as in ``Cell.score``."""
    devices: int
    """Number of other devices that the interval was learned from."""
    level: float

    @property
    def is_inside(self) -> bool:
        """Whether the measurement is inside the interval."""
        return self.cell.score <= self.reach

    @property
    def half_width(self) -> float:
        """Half-width of the interval, in the logarithm."""
        return self.reach * math.hypot(self.cell.spread, FLOOR)


def left_out(of_class: ClassScores, figure: str, kind: str | None = None) -> Iterator[LeftOut]:
    """Yields the interval of each measurement of a figure, of one ``kind`` of requests or all, learned from all models
    but its own, at the level that these support. A fitted device has an interval too, but none is learned from it.
    Two others, as of three devices, count here with 67 %."""
    loads = {cell.load for device in of_class.devices for cell in device.cells if cell.figure == figure}
    for load in sorted(load for load in loads if kind in (None, load.kind)):
        teaching = [device for device in of_class.devices if device.fitted is None]
        scores = [(device.name, own) for device in teaching if (own := device.at(load, figure))]
        if len(scores) < conformal.FEWEST:
            continue
        for device in of_class.devices:
            cells = [cell for cell in device.cells if cell.figure == figure and cell.load == load]
            others = [own for name, own in scores if name != device.name]
            level = min(conformal.LEVEL, len(others) / (len(others) + 1))
            reach = conformal.quantile(others, level) if cells else None
            if reach is not None:
                yield from (LeftOut(device, cell, reach, len(others), level) for cell in cells)


def leave_one_out(of_class: ClassScores, figure: str, kind: str | None = None) -> Coverage | None:
    """Returns the coverage of the intervals of ``left_out``, over all devices to which nothing was fitted; ``None``
    with fewer than ``FEWEST`` devices."""
    within: dict[str, list[bool]] = {}
    half_widths = []
    least = conformal.LEVEL
    for interval in left_out(of_class, figure, kind):
        if interval.device.fitted is None:
            within.setdefault(interval.device.name, []).append(interval.is_inside)
            half_widths.append(interval.half_width)
            least = min(least, interval.level)
    if not within:
        return None
    return Coverage({name: sum(inside) / len(inside) for name, inside in within.items()}, half_widths, least)
