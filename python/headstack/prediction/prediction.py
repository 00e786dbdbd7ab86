"""The prediction for one environment on one system."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an environment comes to on a system."""

    system: str
    environment: str
    load: str
    """``depth 16``, ``600/s``, or ``as stated`` of stages."""
    iops: float
    iops_low: float
    """From here to ``iops_high`` the simulation lies in nine of ten predictions; how far the simulation is from a real
    device is not a part of it."""
    iops_high: float
    mb_per_s: float
    mean_ms: float | None
    """Mean response time; ``None`` where arrivals saturate the system."""
    mean_ms_low: float | None
    mean_ms_high: float | None
    """``None`` where the system may be saturated."""
    p50_ms: float | None
    """Median of the response times; ``None`` where arrivals saturate the system, and of stages, which have no tests."""
    p50_ms_low: float | None
    p50_ms_high: float | None
    p99_ms: float | None
    """Their 99th percentile."""
    p99_ms_low: float | None
    p99_ms_high: float | None
    bottleneck: str
    """The component that takes most of the time in the tests that the prediction is made of."""
    saturated: bool
    gain_percent: float | None = None
    """Over the first system: of throughput, or where arrivals set that, of the speed of responses."""
    gain_percent_low: float | None = None
    gain_percent_high: float | None = None
    iops_model_low: float | None = None
    """From here to ``iops_model_high`` nine of ten devices lie, by the errors of prediction and model; ``None`` where
    that is not known."""
    iops_model_high: float | None = None
    mean_model_low_ms: float | None = None
    mean_model_high_ms: float | None = None
    p50_model_low_ms: float | None = None
    p50_model_high_ms: float | None = None
    p99_model_low_ms: float | None = None
    p99_model_high_ms: float | None = None
    model_error: str | None = None
    """What these are learnt from, or why they are not known; ``None`` where nobody asked."""

    def overlaps(self, other: Prediction) -> bool:
        """Whether devices of the two lie where the models cannot say which does more."""
        ends = (self.iops_model_low, self.iops_model_high, other.iops_model_low, other.iops_model_high)
        if any(end is None for end in ends):
            return False
        low, high, others_low, others_high = (end or 0.0 for end in ends)
        return low <= others_high and others_low <= high
