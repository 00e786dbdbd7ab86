"""Step detection in a curve: the plateaus, and the positions of the steps between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, median

POINTS_MIN = 3
"""Minimum number of points of a plateau; fewer points could be outliers."""
PENALTY = 3.0
"""Penalty of a step, in variances times the logarithm of the number of points; the Bayesian criterion uses 2."""
CLEAR_SIGMAS = 4.0
"""Minimum difference of neighbouring levels, in standard errors, and ``CLEAR_SHARE`` as a share of the level."""
CLEAR_SHARE = 0.01
DRIFT_SHARE = 0.35
"""Maximum share of the curve's total change within plateaus; with a larger share, the curve is a slope."""
SCATTER = 3.0
"""Maximum root mean square of the residuals within plateaus, in standard deviations of the noise; with larger
residuals, outliers form levels.
"""
NOISE_SHARE = 0.001
"""Minimum relative noise of a measured rate."""


@dataclass(frozen=True)
class Plateau:
    """Consecutive points at one level, apart from noise."""

    first: int
    """Index of the first point."""
    last: int
    """Index of the last point."""
    level: float
    """Mean of the values."""


def plateaus(values: Sequence[float]) -> list[Plateau]:
    """Returns the plateaus of a curve with significant steps, at least two of them; otherwise none.

    The best partition into constant parts is found exactly (optimal partitioning, Jackson et al. 2005). It is accepted
    if neighbouring levels differ by more than the noise, and a straight slope would not fit as well.
    """
    if len(values) < 2 * POINTS_MIN:
        return []
    noise = _noise(values)
    parts = _partition(values, PENALTY * noise**2 * math.log(len(values)))
    levels = [Plateau(first, end - 1, fmean(values[first:end])) for first, end in parts]
    merged = _merge_similar(values, levels, noise)
    if len(merged) < 2:
        return []
    residual = fmean((value - part.level) ** 2 for part in merged for value in values[part.first : part.last + 1])
    if residual > (SCATTER * noise) ** 2:
        return []
    within = sum(abs(_drift(values[part.first : part.last + 1])) for part in merged)
    between = sum(abs(before.level - after.level) for before, after in pairwise(merged))
    return merged if within <= DRIFT_SHARE * (within + between) else []


def _merge_similar(values: Sequence[float], levels: list[Plateau], noise: float) -> list[Plateau]:
    """Merges neighbours without a significant difference, the closest first."""

    def clarity(before: Plateau, after: Plateau) -> float:
        error = noise * math.sqrt(1 / _count(before) + 1 / _count(after))
        least = max(CLEAR_SIGMAS * error, CLEAR_SHARE * min(abs(before.level), abs(after.level)))
        return abs(before.level - after.level) / least if least else 0.0

    while len(levels) > 1:
        steps = [clarity(before, after) for before, after in pairwise(levels)]
        at = min(range(len(steps)), key=steps.__getitem__)
        if steps[at] >= 1:
            break
        first, last = levels[at].first, levels[at + 1].last
        levels = [*levels[:at], Plateau(first, last, fmean(values[first : last + 1])), *levels[at + 2 :]]
    return levels


def _count(plateau: Plateau) -> int:
    return plateau.last - plateau.first + 1


def _noise(values: Sequence[float]) -> float:
    """Returns the standard deviation of the noise, from changes between neighbouring points, most of which are on one
    plateau."""
    # In a normal distribution the median deviation is 0.6745 sigma; a difference has twice the variance.
    sigma = median(abs(b - a) for a, b in pairwise(values)) / 0.6745 / math.sqrt(2)
    return max(sigma, NOISE_SHARE * abs(fmean(values)))


def _partition(values: Sequence[float], penalty: float) -> list[tuple[int, int]]:
    """Returns the partition into constant parts (first, end) with the least squared error plus ``penalty`` for each
    part."""
    sums = list(accumulate(values, initial=0.0))
    squares = list(accumulate((value * value for value in values), initial=0.0))

    def error(first: int, end: int) -> float:
        total = sums[end] - sums[first]
        return squares[end] - squares[first] - total * total / (end - first)

    best: list[float] = [-penalty] + [math.inf] * len(values)
    begins = [0] * (len(values) + 1)
    for end in range(POINTS_MIN, len(values) + 1):
        for first in range(end - POINTS_MIN + 1):
            cost = best[first] + error(first, end) + penalty
            if cost < best[end]:
                best[end], begins[end] = cost, first
    parts, end = [], len(values)
    while end > 0:
        parts.append((begins[end], end))
        end = begins[end]
    return parts[::-1]


def _drift(values: Sequence[float]) -> float:
    """Returns the rise of a regression line through the points from the first to the last."""
    middle, mean = (len(values) - 1) / 2, fmean(values)
    spread = sum((index - middle) ** 2 for index in range(len(values)))
    slope = sum((index - middle) * (value - mean) for index, value in enumerate(values)) / spread
    return slope * (len(values) - 1)
