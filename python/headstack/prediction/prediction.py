"""``Prediction`` for one environment on one system."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted performance of an environment on a system."""

    system: str
    environment: str
    load: str
    """``depth 16``, ``600/s``, or ``as stated`` for stages."""
    iops: float
    iops_low: float
    """Lower bound of the 90 % prediction interval of the simulated throughput, up to ``iops_high``; it does not include
    the simulation's error for a real device."""
    iops_high: float
    mb_per_s: float
    mean_ms: float | None
    """Mean response time; ``None`` if arrivals saturate the system."""
    mean_ms_low: float | None
    mean_ms_high: float | None
    """Upper bound; ``None`` if the system may be saturated."""
    p50_ms: float | None
    """Median of the response times; ``None`` if arrivals saturate the system, and for stages, which have no tests."""
    p50_ms_low: float | None
    p50_ms_high: float | None
    p99_ms: float | None
    """Their 99th percentile."""
    p99_ms_low: float | None
    p99_ms_high: float | None
    bottleneck: str
    """The component with most of the time in the underlying tests."""
    saturated: bool
    speedup_percent: float | None = None
    """Speedup over the first system: of throughput, or if arrivals determine that, of response times."""
    speedup_percent_low: float | None = None
    speedup_percent_high: float | None = None
    iops_model_low: float | None = None
    """Lower bound of the prediction interval for devices, up to ``iops_model_high``, with the errors of prediction
    and model; ``None`` if unknown."""
    iops_model_high: float | None = None
    mean_model_low_ms: float | None = None
    mean_model_high_ms: float | None = None
    p50_model_low_ms: float | None = None
    p50_model_high_ms: float | None = None
    p99_model_low_ms: float | None = None
    p99_model_high_ms: float | None = None
    model_level: float | None = None
    """Share of devices within these intervals, from 0 to 1."""
    model_error: str | None = None
    """Data from which these are learned, or the reason why they are unknown; ``None`` if not requested."""

    def overlaps(self, other: Prediction) -> bool:
        """Whether the models cannot decide which of the two devices is faster."""
        ends = (self.iops_model_low, self.iops_model_high, other.iops_model_low, other.iops_model_high)
        if any(end is None for end in ends):
            return False
        low, high, others_low, others_high = (end or 0.0 for end in ends)
        return low <= others_high and others_low <= high
