"""Device properties that settings are derived from, and estimates of them with intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import fmean, stdev
from typing import Literal

Unit = Literal["IOPS", "B/s", "ms", "requests", "/s"]
Origin = Literal["measured", "predicted"]

T_95 = (4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""95 % quantiles of Student's t for 2 to 10 degrees of freedom (two-sided)."""
T_95_MANY = 2.228
"""The quantile that is used for more degrees of freedom, where it is slightly conservative."""


ROUNDS_MIN = 3
"""Minimum number of rounds for an interval."""


class Property(Enum):
    """A property of a device; the value is its name in files."""

    READ_4K_ALONE = "read_4k_depth_1"
    READ_8K_ALONE = "read_8k_depth_1"
    READ_4K_KNEE = "read_4k_knee"
    READ_8K_KNEE = "read_8k_knee"
    READ_4K_DEPTH = "read_4k_knee_depth"
    READ_8K_DEPTH = "read_8k_knee_depth"
    READ_4K_MAX = "read_4k_max"
    READ_SEQUENTIAL = "read_sequential"
    READ_SEQUENTIAL_4K = "read_sequential_4k"
    WRITE_SEQUENTIAL = "write_sequential"
    WRITE_STREAMS = "write_8_streams"
    WRITE_SEQUENTIAL_4K = "write_sequential_4k"
    WRITE_4K = "write_4k"
    WRITE_8K = "write_8k"
    WRITE_16K = "write_16k"
    SYNC_4K = "sync_4k"
    SYNC_8K = "sync_8k"
    SYNC_8K_WRITERS = "sync_8k_writers"
    SYNC_4K_P99 = "sync_4k_p99"
    SYNC_8K_P99 = "sync_8k_p99"
    MIXED_READ_P99_0 = "read_p99_no_writes"
    MIXED_READ_P99_25 = "read_p99_random_writes_25"
    MIXED_READ_P99_50 = "read_p99_random_writes_50"
    MIXED_READ_P99_75 = "read_p99_random_writes_75"
    MIXED_READ_P95_50 = "read_p95_random_writes_50"
    MIXED_WRITE_P95_50 = "write_p95_random_writes_50"
    STREAM_READ_P99_25 = "read_p99_sequential_writes_25"
    STREAM_READ_P99_50 = "read_p99_sequential_writes_50"
    STREAM_READ_P99_75 = "read_p99_sequential_writes_75"


@dataclass(frozen=True)
class Described:
    """Words and unit of a property."""

    words: str
    unit: Unit


DESCRIBED: dict[Property, Described] = {
    Property.READ_4K_ALONE: Described("random reads, 4 KiB, depth 1", "IOPS"),
    Property.READ_8K_ALONE: Described("random reads, 8 KiB, depth 1", "IOPS"),
    Property.READ_4K_KNEE: Described("random reads, 4 KiB, at the knee", "IOPS"),
    Property.READ_8K_KNEE: Described("random reads, 8 KiB, at the knee", "IOPS"),
    Property.READ_4K_DEPTH: Described("queue depth at the knee of 4 KiB reads", "requests"),
    Property.READ_8K_DEPTH: Described("queue depth at the knee of 8 KiB reads", "requests"),
    Property.READ_4K_MAX: Described("random reads, 4 KiB, maximum", "IOPS"),
    Property.READ_SEQUENTIAL: Described("sequential reads, 1 MiB", "B/s"),
    Property.READ_SEQUENTIAL_4K: Described("sequential reads, 4 KiB, depth 64", "IOPS"),
    Property.WRITE_SEQUENTIAL: Described("sustained sequential writes, 1 MiB", "B/s"),
    Property.WRITE_STREAMS: Described("sustained writes of 8 sequential streams, 1 MiB", "B/s"),
    Property.WRITE_SEQUENTIAL_4K: Described("sequential writes, 4 KiB, depth 64", "IOPS"),
    Property.WRITE_4K: Described("steady random writes, 4 KiB", "IOPS"),
    Property.WRITE_8K: Described("steady random writes, 8 KiB", "IOPS"),
    Property.WRITE_16K: Described("steady random writes, 16 KiB", "IOPS"),
    Property.SYNC_4K: Described("synchronous writes, 4 KiB, one writer", "/s"),
    Property.SYNC_8K: Described("synchronous writes, 8 KiB, one writer", "/s"),
    Property.SYNC_8K_WRITERS: Described("synchronous writes, 8 KiB, 8 writers", "/s"),
    Property.SYNC_4K_P99: Described("p99 of fdatasync after 4 KiB", "ms"),
    Property.SYNC_8K_P99: Described("p99 of fdatasync after 8 KiB", "ms"),
    Property.MIXED_READ_P99_0: Described("read p99 without writes", "ms"),
    Property.MIXED_READ_P99_25: Described("read p99 at 25 % of the random write rate", "ms"),
    Property.MIXED_READ_P99_50: Described("read p99 at 50 % of the random write rate", "ms"),
    Property.MIXED_READ_P99_75: Described("read p99 at 75 % of the random write rate", "ms"),
    Property.MIXED_READ_P95_50: Described("read p95 at 50 % of the random write rate", "ms"),
    Property.MIXED_WRITE_P95_50: Described("write p95 at 50 % of the random write rate", "ms"),
    Property.STREAM_READ_P99_25: Described("read p99 at 25 % of the sequential write rate", "ms"),
    Property.STREAM_READ_P99_50: Described("read p99 at 50 % of the sequential write rate", "ms"),
    Property.STREAM_READ_P99_75: Described("read p99 at 75 % of the sequential write rate", "ms"),
}


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval, or the reason why it is not known."""

    value: float | None
    low: float | None = None
    high: float | None = None
    """95 % confidence interval of a measurement, 90 % prediction interval of a model; ``None`` if not known."""
    note: str = ""
    """How the figure was found, or the reason why it is not known."""
    at_most: float | None = None
    """Upper bound of a figure that is not known."""
    origin: Origin = "measured"

    @property
    def has_interval(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None


@dataclass(frozen=True)
class Properties:
    """Estimates of the properties that were measured."""

    estimates: dict[Property, Estimate] = field(default_factory=dict)

    def __getitem__(self, wanted: Property) -> Estimate:
        """Returns the estimate; of a property that was not measured, one without a value."""
        return self.estimates.get(wanted, Estimate(None, note="not measured"))


def from_rounds(values: Sequence[float], note: str = "") -> Estimate:
    """Returns the geometric mean of repeated measurements, with the 95 % interval of Student's t for its logarithm.

    With fewer than three values the interval is not known.

    >>> from headstack.measurement.tests.settings.properties import from_rounds
    >>> from_rounds([1.0, 1.0, 1.0]).high
    1.0
    """
    logarithms = [math.log(value) for value in values if value > 0]
    if not logarithms or len(logarithms) < len(values):
        return Estimate(None, note="no request completed")
    middle = fmean(logarithms)
    if len(logarithms) < ROUNDS_MIN:
        return Estimate(math.exp(middle), note=note)
    freedom = len(logarithms) - 1
    t = T_95[freedom - 2] if freedom <= len(T_95) else T_95_MANY
    apart = t * stdev(logarithms) / math.sqrt(len(logarithms))
    return Estimate(math.exp(middle), math.exp(middle - apart), math.exp(middle + apart), note)


def derive(formula: Callable[..., float], *estimates: Estimate) -> Estimate:
    """Applies a formula that is monotone in each argument. The interval covers all combinations of the ends.

    An estimate that is not known makes the result unknown; its upper bound becomes one if it is the only estimate.

    >>> from headstack.measurement.tests.settings.properties import Estimate, derive
    >>> derive(lambda x: 1 / x, Estimate(2.0, 1.0, 4.0)).high
    1.0
    """
    unknown = [estimate for estimate in estimates if estimate.value is None]
    if unknown:
        [*_, last] = unknown
        bound = last.at_most if len(estimates) == 1 and last.at_most is not None else None
        at_most = formula(bound) if bound is not None and formula(bound) < formula(2 * bound) else None
        return Estimate(None, note=last.note, at_most=at_most, origin=last.origin)
    value = formula(*(estimate.value for estimate in estimates))
    origin: Origin = "predicted" if any(e.origin == "predicted" for e in estimates) else "measured"
    if not all(estimate.has_interval for estimate in estimates):
        return Estimate(value, origin=origin)
    ends = [formula(*point) for point in itertools.product(*((e.low, e.high) for e in estimates))]
    return Estimate(value, min(ends), max(ends), origin=origin)
