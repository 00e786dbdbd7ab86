"""``Trend``: values of a device over its snapshots, with forecasts of reaching their thresholds.

A trend is a regression line over power-on hours. Its uncertainty is a 95 % interval by Student's t; because values
are whole numbers, the scatter is at least the rounding error.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass

from headstack.diagnosis.inspection.model import Inspection
from headstack.diagnosis.inspection.raw import decode

POINTS_FOR_A_FORECAST = 3

T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Student's t, two-sided 95 %, for 1 to 15 degrees of freedom; for more, 2.1 is conservative."""

ROUNDING_VARIANCE = 1 / 12
"""Variance of rounding to whole numbers, whose error is uniform over one unit."""

HOURS_A_DAY = 24


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in a snapshot whose changes are tracked."""

    key: str
    value: float
    threshold: float | None = None
    """Value at which the device fails; ``None`` for counts without a threshold."""
    falls: bool = False
    """Whether the value approaches the threshold from above."""


@dataclass(frozen=True, slots=True)
class Trend:
    """The change of a value over time."""

    key: str
    first: float
    last: float
    points: int
    """Number of snapshots at distinct times."""
    per_1000_hours: float | None
    plus_minus: float | None
    """Half-width of the 95 % interval of the slope; ``None`` with fewer than three points."""
    threshold: float | None = None
    hours_to_threshold: float | None = None
    soonest_hours: float | None = None
    latest_hours: float | None = None
    """Latest forecast time in hours; ``None`` if the slope may be zero."""
    says: str = ""
    """The forecast in words, or the reason why there is none."""

    def to_dict(self) -> dict[str, object]:
        """Returns the trend in JSON's form."""
        return dataclasses.asdict(self)


def figures(inspection: Inspection) -> Iterator[Figure]:
    """Yields the numbers of a snapshot that are tracked."""
    for attribute in inspection.attributes:
        title = f"{attribute.id} {attribute.name}"
        # Temperatures follow the weather and have no trend.
        forecast = attribute.value is not None and attribute.threshold and "temp" not in attribute.name.lower()
        if forecast and attribute.value is not None and 1 <= attribute.value <= 253:
            yield Figure(f"{title} value", attribute.value, attribute.threshold, falls=True)
        count = decode(attribute, inspection.identity).count
        if count is not None and attribute.id != 9:
            yield Figure(f"{title} raw", count)
    log, sas = inspection.nvme, inspection.sas
    if inspection.endurance_used_percent is not None:
        yield Figure("endurance used %", inspection.endurance_used_percent, 100)
    if log is not None:
        if log.available_spare_percent is not None:
            yield Figure("available spare %", log.available_spare_percent, log.available_spare_threshold_percent, True)
        for key in ("media_errors", "error_log_entries", "unsafe_shutdowns"):
            if (count := getattr(log, key)) is not None:
                yield Figure(key.replace("_", " "), count)
    if sas is not None:
        if sas.grown_defects is not None:
            yield Figure("grown defects", sas.grown_defects)
        for way in ("read", "write", "verify"):
            counter = getattr(sas, way)
            if counter is not None and counter.uncorrected is not None:
                yield Figure(f"uncorrected {way} errors", counter.uncorrected)
    if inspection.written_bytes is not None:
        yield Figure("written TB", inspection.written_bytes / 1e12)


def trends(snapshots: list[Inspection]) -> list[Trend]:
    """Returns the trend of every value that at least two snapshots have. ``snapshots`` are in order of time."""
    series: dict[str, list[tuple[float, Figure]]] = {}
    for at, snapshot in zip(_hours(snapshots), snapshots, strict=True):
        if at is not None:
            for figure in figures(snapshot):
                series.setdefault(figure.key, []).append((at, figure))
    return [_trend(points) for points in series.values() if len(points) > 1]


def _hours(snapshots: list[Inspection]) -> list[float | None]:
    """Returns the time of each snapshot in power-on hours, or in calendar hours if the device does not report power-on
    hours."""
    if all(snapshot.power_on_hours is None for snapshot in snapshots):
        return [None if s.taken_unix_s is None else s.taken_unix_s / 3600 for s in snapshots]
    return [None if s.power_on_hours is None else float(s.power_on_hours) for s in snapshots]


def _trend(points: list[tuple[float, Figure]]) -> Trend:
    # Of several snapshots within an hour, the latest is used.
    by_hour = dict(points)
    times, shown = list(by_hour), [figure.value for figure in by_hour.values()]
    last = points[-1][1]
    count = len(times)
    slope, error = _line(times, shown) if count > 1 else (None, None)
    trend = Trend(
        last.key,
        points[0][1].value,
        last.value,
        count,
        None if slope is None else slope * 1000,
        None if error is None else error * 1000,
        last.threshold,
    )
    return trend if last.threshold is None else _forecast(trend, last, slope, error)


def _line(times: list[float], values: list[float]) -> tuple[float, float | None]:
    """Returns the slope, and the half-width of its 95 % interval if there are enough points."""
    count = len(times)
    mean_time, mean_value = math.fsum(times) / count, math.fsum(values) / count
    spread = math.fsum((t - mean_time) ** 2 for t in times)
    slope = math.fsum((t - mean_time) * (v - mean_value) for t, v in zip(times, values, strict=True)) / spread
    if count < POINTS_FOR_A_FORECAST:
        return slope, None
    residuals = (v - mean_value - slope * (t - mean_time) for t, v in zip(times, values, strict=True))
    variance = max(math.fsum(r * r for r in residuals) / (count - 2), ROUNDING_VARIANCE)
    t_95 = T_95[count - 3] if count - 3 < len(T_95) else 2.1
    return slope, t_95 * math.sqrt(variance / spread)


def _forecast(trend: Trend, last: Figure, slope: float | None, error: float | None) -> Trend:
    """Returns the trend with the time from the last snapshot until the line reaches the threshold."""
    threshold = last.threshold
    assert threshold is not None
    distance = (last.value - threshold) if last.falls else (threshold - last.value)
    if distance <= 0:
        return dataclasses.replace(trend, says="at its threshold", hours_to_threshold=0.0)
    if slope is None or error is None:
        return dataclasses.replace(
            trend, says=f"no forecast from {trend.points} points; {POINTS_FOR_A_FORECAST} are needed"
        )
    speed = -slope if last.falls else slope
    if speed <= 0:
        return dataclasses.replace(trend, says="does not approach its threshold")
    fastest, slowest = speed + error, speed - error
    expected, soonest = distance / speed, distance / fastest
    latest = distance / slowest if slowest > 0 else None
    if latest is None:
        says = f"no significant trend; not before {format_hours(soonest)} (95 %)"
        return dataclasses.replace(trend, soonest_hours=soonest, says=says)
    says = f"in {format_hours(expected)} ({format_hours(soonest)} to {format_hours(latest)}, 95 %)"
    return dataclasses.replace(
        trend, hours_to_threshold=expected, soonest_hours=soonest, latest_hours=latest, says=says
    )


def format_hours(hours: float) -> str:
    """Formats a time in power-on hours."""
    if hours >= 2 * 365 * HOURS_A_DAY:
        return f"{hours / 365 / HOURS_A_DAY:,.1f} years powered on"
    return f"{hours:,.0f} power-on hours"


def has_moved(trend: Trend) -> bool:
    """Whether a trend is worth printing."""
    return trend.first != trend.last or trend.hours_to_threshold == 0.0
