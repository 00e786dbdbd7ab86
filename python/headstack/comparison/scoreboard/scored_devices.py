"""`ScoredDevices`: errors of predictions on measured devices, with the interval of each measurement learned from the
other models."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, NamedTuple

from headstack._native import Field
from headstack.io.stored import Stored
from headstack.io.tables import Tabular
from headstack.io.tables import to_json as json_text
from headstack.results.intervals import calibration
from headstack.results.intervals.calibration import SCORED, Cell, ClassScores, Device, LeftOut

STORED = Stored("scoreboard")

GROUPS = ("reads", "writes", "mixes", "traces")
"""Groups of requests, for summaries."""

FIELDS = (
    Field("device", "text", "", "the model of the device"),
    Field("class", "text", "", "the class of the device, in which intervals are learned"),
    Field("described", "text", "", "how the device is described: sheet, sheet and host, or calibrated"),
    Field("fitted", "text", "", "the part of the description that was fitted to this device; empty for a prediction"),
    Field("workload", "text", "", "the workload, with the host adapter if the description has one"),
    Field("requests", "text", "", "the kind of requests, and the state of the flash"),
    Field("depth", "count", "", "queue depth; the mean queue depth in an open loop"),
    Field("size_bytes", "figure", "bytes", "mean size of a request"),
    Field("figure", "text", "", "rate, mean, p50, p99 or p99.9"),
    Field("error_percent", "figure", "%", "simulated value minus measured value, in percent of the measured value"),
    Field("low_percent", "figure", "%", "lower bound of the interval around the simulated value; empty if not known"),
    Field("high_percent", "figure", "%", "upper bound of the interval"),
    Field("level_percent", "figure", "%", "level of the interval"),
    Field("models", "count", "", "number of other models that the interval was learned from"),
    Field("inside", "flag", "", "whether the measured value is inside the interval"),
    Field("source", "text", "", "source of the measurement"),
)


class Errors(NamedTuple):
    """Absolute relative errors of a figure, one list per device."""

    devices: Sequence[Sequence[float]]

    @property
    def mean(self) -> float:
        """Mean over the devices of the mean error of each."""
        return fmean(fmean(own) for own in self.devices)

    @property
    def median(self) -> float:
        """Median over the devices of the mean error of each."""
        return median(fmean(own) for own in self.devices)

    @property
    def worst(self) -> float:
        """The largest error of a single measurement."""
        return max(error for own in self.devices for error in own)


class Held(NamedTuple):
    """The share of measurements inside intervals that were learned from the other models."""

    share: float
    """Mean over the devices."""
    level: float
    """The least level of these intervals."""
    devices: int
    """Number of devices left out in turn."""


class Summary(NamedTuple):
    """The errors of a class under a group of requests."""

    of_class: str
    group: str
    is_fitted: bool
    """Whether something was fitted to these devices, so that the errors are no predictions."""
    devices: int
    errors: Mapping[str, Errors]
    """By figure."""
    held: Mapping[str, Held]
    """Leave-one-device-out coverage by figure; without figures for which too few models were measured."""


@dataclass(frozen=True)
class ScoredDevices(Tabular):
    """Scored devices by class."""

    classes: Mapping[str, ClassScores]
    only: frozenset[str] | None = None
    """Models to show; ``None`` for all. The others still determine the intervals."""
    _left_out: dict[tuple[int, Cell], LeftOut] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for scores in self.classes.values():
            for figure in SCORED:
                for interval in calibration.left_out(scores, figure):
                    self._left_out[id(interval.device), interval.cell] = interval

    def devices(self) -> Iterator[tuple[str, Device]]:
        """Yields the shown devices with their classes."""
        for name, scores in self.classes.items():
            for device in scores.devices:
                if self.only is None or device.name in self.only:
                    yield name, device

    def left_out_interval(self, device: Device, cell: Cell) -> LeftOut | None:
        """Returns the interval of a measurement, learned from other models; ``None`` with too few."""
        return self._left_out.get((id(device), cell))

    @property
    def fields(self) -> Sequence[Field]:
        """Returns the columns."""
        return FIELDS

    def table_rows(self) -> Iterator[Mapping[str, Any]]:
        """Yields a row for each device, load and figure."""
        for of_class, device in self.devices():
            for cell in device.cells:
                held = self.left_out_interval(device, cell)
                yield {
                    "device": device.name,
                    "class": of_class,
                    "described": ", ".join(device.described),
                    "fitted": device.fitted or "",
                    "workload": cell.workload,
                    "requests": cell.load.words,
                    "depth": cell.load.depth,
                    "size_bytes": cell.load.size_bytes,
                    "figure": cell.figure,
                    "error_percent": round(100 * error_of(cell), 2),
                    "low_percent": None if held is None else round(100 * math.expm1(-held.half_width), 2),
                    "high_percent": None if held is None else round(100 * math.expm1(held.half_width), 2),
                    "level_percent": None if held is None else round(100 * held.level, 1),
                    "models": None if held is None else held.devices,
                    "inside": None if held is None else held.is_inside,
                    "source": device.source,
                }

    def summaries(self) -> list[Summary]:
        """Returns the errors by class and group of requests, of predicted and of fitted devices."""
        groups: dict[tuple[str, str, bool], list[Device]] = {}
        for of_class, device in self.devices():
            for group in dict.fromkeys(group_of(cell.load.kind) for cell in device.cells):
                groups.setdefault((of_class, group, device.fitted is not None), []).append(device)
        ordered = sorted(groups.items(), key=lambda item: (item[0][0], GROUPS.index(item[0][1]), item[0][2]))
        return [self._summary(*key, devices) for key, devices in ordered]

    def _summary(self, of_class: str, group: str, is_fitted: bool, devices: Sequence[Device]) -> Summary:
        errors: dict[str, Errors] = {}
        coverage: dict[str, Held] = {}
        for figure in SCORED:
            cells = [
                [cell for cell in device.cells if cell.figure == figure and group_of(cell.load.kind) == group]
                for device in devices
            ]
            own = [[abs(error_of(cell)) for cell in of_device] for of_device in cells if of_device]
            if own:
                errors[figure] = Errors(own)
            shares, levels = [], []
            for device, of_device in zip(devices, cells, strict=True):
                held = [
                    interval for cell in of_device if (interval := self.left_out_interval(device, cell)) is not None
                ]
                if held:
                    shares.append(fmean(interval.is_inside for interval in held))
                    levels += [interval.level for interval in held]
            if shares:
                coverage[figure] = Held(fmean(shares), min(levels), len(shares))
        return Summary(of_class, group, is_fitted, len(devices), errors, coverage)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns the summaries and all errors as JSON text and, if ``path`` is given, writes them there."""
        summaries = [
            {
                "class": summary.of_class,
                "requests": summary.group,
                "fitted": summary.is_fitted,
                "devices": summary.devices,
                "errors_percent": {
                    figure: {name: round(100 * getattr(errors, name), 2) for name in ("mean", "median", "worst")}
                    for figure, errors in summary.errors.items()
                },
                "leave_one_out": {
                    figure: {
                        "share_percent": round(100 * held.share, 1),
                        "level_percent": round(100 * held.level, 1),
                        "devices": held.devices,
                    }
                    for figure, held in summary.held.items()
                },
            }
            for summary in self.summaries()
        ]
        return json_text({**STORED.head, "summaries": summaries, "errors": list(self.table_rows())}, path)


def error_of(cell: Cell) -> float:
    """Returns the simulated value minus the measured value, relative to the measured value.

    >>> from headstack.comparison.scoreboard.scored_devices import error_of
    >>> from headstack.results.intervals.calibration import Cell, Load
    >>> round(error_of(Cell("reads", Load("read", 1, 4096), "rate", -0.0953, 0.0)), 3)
    0.1
    """
    return math.expm1(-cell.log_ratio)


def group_of(kind: str) -> str:
    """Returns the group of a kind of requests.

    >>> from headstack.comparison.scoreboard.scored_devices import group_of
    >>> [group_of(kind) for kind in ("sequential read", "open write", "open mix: reads", "replay")]
    ['reads', 'writes', 'mixes', 'traces']
    """
    name = kind.partition(":")[0].split()[-1]
    return {"read": "reads", "write": "writes", "mix": "mixes", "replay": "traces"}[name]
