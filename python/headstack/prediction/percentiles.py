"""Percentiles of response times, from what the tests' distributions look like.

Requests of several classes, or that find several others before them, are a mixture: a share of them is answered as in
one test, the rest as in others, and a percentile is found on the sum of their distributions. Between two tests of one
kind it is the times at the same share that are averaged: a request twice as large is not now and then as small.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, log
from typing import NamedTuple, TypeAlias

LEVELS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 1.0)
"""Shares of the requests by which each test's distribution is kept; straight lines of logarithms between them."""
MASSES = tuple(high - low for low, high in pairwise(LEVELS))
OUTMOST = 0.002
"""What is kept for none and for all is the time of this share and of the rest: the very ends are chance."""
FIGURES = {"p50": 0.5, "p99": 0.99}
"""The percentiles that are predicted."""
AROUND = {"p50": (0.4, 0.5, 0.6), "p99": (0.98, 0.99, 0.995)}
"""Of each, levels below and above it. How far apart the times there are says how sure it can be: between answers of a
buffer and those of an arm lies nothing, and a few requests more or less of one kind move the percentile across. A
choice; what error goes with it is learnt."""
ALL_AROUND = sorted(level for around in AROUND.values() for level in around)
SURE = 0.1
"""The least half of that distance, as logarithms: where times are alike a percentile errs as the mean does. A choice,
among 0.05 to 0.4 that with the narrowest intervals of one drive's environments."""
APART = 1e-6
"""Between equal times, as logarithms: where all requests take as long, the share still rises."""


class Percentile(NamedTuple):
    """A percentile as it is predicted, in logarithms."""

    ratio: float
    """Over the mean."""
    unsure: float
    """Half the distance of the times around it; errors are over this."""

    def between(self, other: Percentile, share: float) -> Percentile:
        """So much of this, and the rest of another."""
        rest = 1 - share
        return Percentile(share * self.ratio + rest * other.ratio, share * self.unsure + rest * other.unsure)


Percentiles: TypeAlias = dict[str, Percentile]
"""By their names."""
Part: TypeAlias = tuple[float, Sequence[float]]
"""A share of the requests, and the logarithms of their response times at ``LEVELS``."""


def part(share: float, times: Sequence[float]) -> Part:
    """A part of these times, in order though their averages may not be."""
    logs: list[float] = []
    before = -inf
    for time in times:
        before = max(before + APART, log(time) if time > 1 else 0.0)
        logs.append(before)
    return share, logs


def of_mixture(parts: Sequence[Part], levels: Sequence[float]) -> list[float]:
    """The logarithms of the times that these shares of all requests keep; ``levels`` rise.

    >>> [log_time / log(2) for log_time in of_mixture([part(1.0, [2.0**n for n in range(1, 10)])], [0.25, 0.5])]
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
    found: list[float] = []
    slope, reached, last = 0.0, 0.0, bends[0][0]
    for at, change in bends:
        passed = reached + slope * (at - last)
        while len(found) < len(levels) and levels[len(found)] * total <= passed:
            found.append(last + (levels[len(found)] * total - reached) / slope)
        slope, reached, last = slope + change, passed, at
    return found + [last] * (len(levels) - len(found))
