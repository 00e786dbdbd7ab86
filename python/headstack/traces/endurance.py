"""How long an SSD lasts under the writes of a trace: rated endurance divided by the trace's rate of written bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from headstack._native import InputError, format_bytes, format_duration_ns

if TYPE_CHECKING:
    from headstack.traces.report_types import TraceReport

DAY_NS = 86_400e9
YEAR_DAYS = 365.25
BLOCKS = 10
"""Number of equal parts of the trace whose rates give the confidence interval."""
T_95 = 2.262
"""Student's t of 9 degrees of freedom for a two-sided confidence of 95 %."""


@dataclass(frozen=True)
class Endurance:
    """The time until the writes of a trace reach the rated endurance of a drive."""

    rated_bytes: int
    written_a_day: float
    """Bytes that the trace writes per day, at its mean rate."""
    half_width_a_day: float | None
    """95 % confidence half-width of ``written_a_day``; ``None`` if the trace is too short."""
    duration_ns: int

    @property
    def years(self) -> float:
        """Years until the rated endurance is reached, at the mean rate."""
        return self.rated_bytes / self.written_a_day / YEAR_DAYS

    def __str__(self) -> str:
        width = self.half_width_a_day
        interval = "no interval: the trace is too short"
        if width is not None:
            low = self.rated_bytes / (self.written_a_day + width) / YEAR_DAYS
            if width < self.written_a_day:
                high = self.rated_bytes / (self.written_a_day - width) / YEAR_DAYS
                interval = f"{_figure(low)} to {_figure(high)}"
            else:
                interval = f"at least {_figure(low)}"
        return (
            f"{format_bytes(self.rated_bytes)} of endurance last {_figure(self.years)} years ({interval}) under this "
            f"trace, which writes {format_bytes(round(self.written_a_day))} a day"
        )

    @property
    def assumptions(self) -> str:
        """The assumptions behind ``years``."""
        return (
            f"endurance assumes that the {format_duration_ns(self.duration_ns)} of the trace are typical of every day, "
            "and the write amplification of the drive's rating (JESD219: mostly random 4 KiB writes); larger or "
            "sequential writes wear less; the interval covers variation within the trace only"
        )


def endurance_of(report: TraceReport, rated_bytes: int) -> Endurance:
    """Returns how long a drive with this rated endurance (TBW) lasts under a trace.

    Raises ``InputError`` if the trace has no writes or no times.
    """
    written = report["operations"].get("write", {"bytes": 0})["bytes"]
    if not written:
        raise InputError("the trace has no writes, so it does not wear an SSD", key="endurance")
    duration_ns = report["duration_ns"]
    if not duration_ns or report["requests_per_s"] is None:
        raise InputError("the trace has no times, so its rate of writes is unknown", key="endurance")
    bins = report["rate"]["bins"]
    # The last bin is shorter.
    count = (len(bins) - 1) // BLOCKS
    half_width = None
    if count:
        blocks = [
            sum(entry["written_bytes"] for entry in bins[start : start + count]) / (count * report["rate"]["bin_ns"])
            for start in range(0, BLOCKS * count, count)
        ]
        if fmean(blocks):
            half_width = T_95 * stdev(blocks) / math.sqrt(BLOCKS) * DAY_NS
    return Endurance(rated_bytes, written / duration_ns * DAY_NS, half_width, duration_ns)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
