"""One point of a comparison: what was measured beside what was predicted, and how far apart both are."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headstack.comparison.points import Seen

SIGNS = {"iops": 1, "mb_per_s": 1, "mean_ms": -1, "p50_ms": -1, "p95_ms": -1, "p99_ms": -1}
"""Whether more is better."""

CERTAIN, MANY_TRIALS = 1.96, 3.0
"""Standard deviations: of 95 % confidence, and where one of many intervals shall not stand out by chance."""


@dataclass(frozen=True)
class Stretch:
    """Intervals in a row in which a device answers later than predicted."""

    start_s: float
    """From the beginning of the measured part."""
    end_s: float
    measured_iops: float
    mean_ms: float | None
    """Measured; ``None`` where nothing was complete."""
    predicted_ms: float


@dataclass(frozen=True)
class Point:
    """A load that was both measured and predicted."""

    name: str
    """Which of the points: the workload, depth, rate or mode, as far as they differ."""
    measured: Seen
    predicted: Seen
    demerit_ms: float | None
    """Root mean square horizontal distance of the distributions of response times (Ruemmler and Wilkes, 1994); ``None``
    where a side holds no distribution."""
    tolerance: float
    stretches: tuple[Stretch, ...]
    """When the device was slower than predicted, where intervals were kept."""

    def error(self, figure: str) -> float | None:
        """Predicted over measured, minus 1; ``None`` where a side does not know the figure, or measured none."""
        measured, predicted = self.measured.figures[figure], self.predicted.figures[figure]
        return predicted / measured - 1 if measured and predicted is not None else None

    @property
    def demerit_relative(self) -> float | None:
        """The demerit over the measured mean."""
        mean_ms = self.measured.figures["mean_ms"]
        return None if self.demerit_ms is None or not mean_ms else self.demerit_ms / mean_ms

    def stated_error(self, figure: str) -> float:
        """What the two may differ by: the tolerance, and the half-widths of 95 % confidence of both."""
        if figure == "iops" and self.measured.is_open:
            # Arrivals by chance.
            counts = (self.measured.requests, self.predicted.requests)
            return self.tolerance + CERTAIN * math.sqrt(sum(1 / max(1, count) for count in counts))
        return self.tolerance + math.hypot(self.measured.relative_half_width, self.predicted.relative_half_width)

    def shortfall(self, figure: str) -> float:
        """By what share the device is worse than predicted: negative where it is better."""
        measured, predicted = self.measured.figures[figure], self.predicted.figures[figure]
        if measured is None or not predicted or (self.measured.requests == 0 and figure != "iops"):
            return 0.0
        return SIGNS[figure] * (1 - measured / predicted)

    @property
    def falls_short(self) -> list[str]:
        """Of throughput and mean response time those that are worse than predicted, by more than the stated error."""
        return [figure for figure in ("iops", "mean_ms") if self.shortfall(figure) > self.stated_error(figure)]

    @property
    def is_better(self) -> bool:
        """Whether the device does better than its model, by more than the stated error."""
        better = (figure for figure in ("iops", "mean_ms") if -self.shortfall(figure) > self.stated_error(figure))
        return not self.falls_short and any(better)

    @property
    def is_indistinguishable(self) -> bool:
        """Whether both sides are models whose errors leave no telling which is faster: their intervals overlap."""
        pairs = [
            (self.measured.model[name], self.predicted.model[name]) for name in ("iops", "mean_ms") if self.both(name)
        ]
        return bool(pairs) and all(one[0] <= other[1] and other[0] <= one[1] for one, other in pairs)

    def both(self, figure: str) -> bool:
        """Whether a figure's error is known of both sides."""
        return figure in self.measured.model and figure in self.predicted.model

    def within(self, figure: str) -> bool | None:
        """Whether a measured figure lies where nine of ten devices do; ``None`` where that is not known."""
        value, ends = self.measured.figures[figure], self.predicted.model.get(figure)
        if value is None or ends is None or self.measured.model:
            return None
        return ends[0] <= value <= ends[1]

    @property
    def share(self) -> float:
        """What the device does of what is predicted: of throughput, or of speed of response where that is less."""
        slower = 1 + self.shortfall("mean_ms")
        return min(1 - self.shortfall("iops"), 1 / slower if slower > 0 else math.inf)
