"""``Point``: one point of a comparison with measured and predicted figures, and their difference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headstack.comparison.points import SidePoint

SIGNS = {"iops": 1, "mb_per_s": 1, "mean_ms": -1, "p50_ms": -1, "p95_ms": -1, "p99_ms": -1}
"""1 if more is better, otherwise -1."""

CERTAIN, MANY_TRIALS = 1.96, 3.0
"""Number of standard deviations for 95 % confidence, and for many intervals, none of which should exceed it by
chance."""


@dataclass(frozen=True)
class Stretch:
    """Consecutive intervals in which a device is slower than predicted."""

    start_s: float
    """Start in seconds from the beginning of the measured part."""
    end_s: float
    measured_iops: float
    mean_ms: float | None
    """Measured mean latency in ms; ``None`` if no request completed."""
    predicted_ms: float


@dataclass(frozen=True)
class Point:
    """A load that was both measured and predicted."""

    name: str
    """Values that distinguish the point: workload, depth, rate or mode."""
    measured: SidePoint
    predicted: SidePoint
    demerit_ms: float | None
    """Root mean square horizontal distance of the distributions of response times (Ruemmler and Wilkes, 1994); ``None``
    if a side has no distribution."""
    tolerance: float
    stretches: tuple[Stretch, ...]
    """Periods in which the device was slower than predicted, if intervals were recorded."""

    def error(self, figure: str) -> float | None:
        """Returns predicted over measured, minus 1; ``None`` if a side lacks the figure or the measured value is 0."""
        measured, predicted = self.measured.figures[figure], self.predicted.figures[figure]
        return predicted / measured - 1 if measured and predicted is not None else None

    @property
    def demerit_relative(self) -> float | None:
        """The demerit divided by the measured mean."""
        mean_ms = self.measured.figures["mean_ms"]
        return None if self.demerit_ms is None or not mean_ms else self.demerit_ms / mean_ms

    def stated_error(self, figure: str) -> float:
        """Returns the permitted difference: the tolerance plus the 95 % confidence half-widths of both sides."""
        if figure == "iops" and self.measured.is_open:
            # Poisson arrivals.
            counts = (self.measured.requests, self.predicted.requests)
            return self.tolerance + CERTAIN * math.sqrt(sum(1 / max(1, count) for count in counts))
        return self.tolerance + math.hypot(self.measured.relative_half_width, self.predicted.relative_half_width)

    def shortfall(self, figure: str) -> float:
        """Returns the share by which the device is worse than predicted; negative if the device is better."""
        measured, predicted = self.measured.figures[figure], self.predicted.figures[figure]
        if measured is None or not predicted or (self.measured.requests == 0 and figure != "iops"):
            return 0.0
        return SIGNS[figure] * (1 - measured / predicted)

    @property
    def falls_short(self) -> list[str]:
        """Figures (throughput, mean latency) that are worse than predicted by more than the stated error."""
        return [figure for figure in ("iops", "mean_ms") if self.shortfall(figure) > self.stated_error(figure)]

    @property
    def is_better(self) -> bool:
        """Whether the device is better than its model by more than the stated error."""
        better = (figure for figure in ("iops", "mean_ms") if -self.shortfall(figure) > self.stated_error(figure))
        return not self.falls_short and any(better)

    @property
    def is_indistinguishable(self) -> bool:
        """Whether both sides are models with overlapping prediction intervals, so that it is undecided which is
        faster."""
        pairs = [
            (self.measured.model[name], self.predicted.model[name]) for name in ("iops", "mean_ms") if self.both(name)
        ]
        return bool(pairs) and all(ours[0] <= theirs[1] and theirs[0] <= ours[1] for ours, theirs in pairs)

    def both(self, figure: str) -> bool:
        """Returns whether both sides have a prediction interval for a figure."""
        return figure in self.measured.model and figure in self.predicted.model

    def within(self, figure: str) -> bool | None:
        """Returns whether a measured figure is within the prediction interval; ``None`` without an interval."""
        value, ends = self.measured.figures[figure], self.predicted.model.get(figure)
        if value is None or ends is None or self.measured.model:
            return None
        return ends[0] <= value <= ends[1]

    @property
    def share(self) -> float:
        """Throughput of the device relative to the prediction, or inverse relative latency if it is lower."""
        slower = 1 + self.shortfall("mean_ms")
        return min(1 - self.shortfall("iops"), 1 / slower if slower > 0 else math.inf)
