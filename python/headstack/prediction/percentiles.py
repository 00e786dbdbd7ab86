"""Percentiles of response times from the distributions of the tests.

Requests of several classes, or with different queues in front of them, form a mixture: a share of them has the
distribution of one test, the rest those of others, and percentiles are computed from the sum of these distributions.
Between two tests of one kind, times at equal shares are averaged: a larger request is slower at every percentile.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, log
from typing import NamedTuple, TypeAlias

LEVELS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 1.0)
"""Shares of the requests at which each test's distribution is stored, interpolated linearly in logarithms."""
MASSES = tuple(high - low for low, high in pairwise(LEVELS))
OUTMOST = 0.002
"""Share used for the minimum, and its complement for the maximum, since the extremes are random."""
FIGURES = {"p50": 0.5, "p99": 0.99}
"""The percentiles that are predicted."""
AROUND = {"p50": (0.4, 0.5, 0.6), "p99": (0.98, 0.99, 0.995)}
"""Levels around each percentile. The distance of their times determines its uncertainty: between buffer hits and disk
accesses there are no times, and a few requests more or less of one kind move the percentile across. These levels are a
choice; the resulting error is learned."""
ALL_AROUND = sorted(level for around in AROUND.values() for level in around)
UNCERTAINTY_MIN = 0.1
"""Minimum uncertainty, in logarithms: if times are similar, a percentile has the error of the mean. A choice among 0.05
to 0.4 with the narrowest intervals for one drive's environments."""
TIME_STEP_MIN = 1e-6
"""Minimum distance of equal times, in logarithms, so that shares increase strictly."""


class Percentile(NamedTuple):
    """A predicted percentile, in logarithms."""

    ratio: float
    """Relative to the mean."""
    uncertainty: float
    """Half the distance of the times around it; errors are divided by this."""

    def between(self, other: Percentile, share: float) -> Percentile:
        """Interpolates between this percentile, with the given share, and another."""
        rest = 1 - share
        return Percentile(share * self.ratio + rest * other.ratio, share * self.uncertainty + rest * other.uncertainty)


Percentiles: TypeAlias = dict[str, Percentile]
"""Percentiles by name."""
Part: TypeAlias = tuple[float, Sequence[float]]
"""A share of the requests, and the logarithms of their response times at ``LEVELS``."""


def part(share: float, times: Sequence[float]) -> Part:
    """Returns a part with these times, sorted since averages may not be."""
    logs: list[float] = []
    before = -inf
    for time in times:
        before = max(before + TIME_STEP_MIN, log(time) if time > 1 else 0.0)
        logs.append(before)
    return share, logs


def mixture_percentiles(parts: Sequence[Part], levels: Sequence[float]) -> list[float]:
    """Returns the logarithms of the times at these shares of all requests; ``levels`` increase.

    >>> powers = part(1.0, [2.0**n for n in range(1, 10)])
    >>> [log_time / log(2) for log_time in mixture_percentiles([powers], [0.25, 0.5])]
    [3.0, 4.0]
    """
    bends: list[tuple[float, float]] = []
    total = 0.0
    for share, logs in parts:
        total += share
        before = 0.0
        for at, following, mass in zip(logs, logs[1:], MASSES, strict=False):
            slope = share * mass / (following - at)
            bends.append((at, slope - before))
            before = slope
        bends.append((logs[-1], -before))
    bends.sort()
    log_times: list[float] = []
    slope, reached, last = 0.0, 0.0, bends[0][0]
    for at, change in bends:
        passed = reached + slope * (at - last)
        while len(log_times) < len(levels) and levels[len(log_times)] * total <= passed:
            log_times.append(last + (levels[len(log_times)] * total - reached) / slope)
        slope, reached, last = slope + change, passed, at
    return log_times + [last] * (len(levels) - len(log_times))
