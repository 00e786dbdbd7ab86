"""Pairs with long tails: a trimmed mean, if stalls affect both sides equally.

A run that stalls because the machine has other users says little about the system. The mean of all pairs is as
uncertain as its worst runs; with 20 % of the pairs trimmed at either end (Tukey and McLaughlin, 1963; the share is that
of Wilcox, 2012) it is as certain as the others. Stalls that one side has more often are a property of that side, and
are kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, variance

TRIM = 0.2
"""Share of the pairs that is trimmed at either end."""
PAIRS_LEAST = 20
"""Minimum number of pairs for detecting long tails. With fewer pairs, long tails are detected by chance: with 10 pairs
of normal distributions, 10 % of equal systems would differ.
"""
EFFICIENCY_MIN = 2.0
"""Trimming is used if the mean of all pairs would need this many times the runs of the trimmed mean; for normal
distributions the ratio is 0.9.
"""
STALL_FACTOR = 3 * 1.4826
"""Multiple of the median absolute deviation: 3 standard deviations of a normal distribution, which 0.3 % exceed."""
LOPSIDED = 0.05
"""Significance at which stalls are attributed to one side."""


@dataclass(frozen=True)
class Middle:
    """The trimmed mean of the pairs."""

    log: float
    """Trimmed mean of the logarithms of ratios."""
    spread: float
    """Standard deviation of single pairs that would make the mean of all pairs as uncertain as the trimmed mean."""
    degrees: float
    """Degrees of freedom."""
    stalls: tuple[int, int]
    """Numbers of pairs far below the others, and far above."""

    @property
    def decides(self) -> bool:
        """Whether there are enough pairs, with stalls on both sides within chance."""
        return self.degrees + 1 >= (1 - 2 * TRIM) * PAIRS_LEAST and _by_chance(*self.stalls) > LOPSIDED


def middle_of(ratios: Sequence[float], of_all: float) -> Middle | None:
    """Returns the trimmed mean of the pairs if, because of long tails, it is much more certain than the mean of all
    pairs; otherwise ``None``. ``of_all`` is the standard deviation of single pairs.

    >>> quiet = [0.01, 0.02, 0.0, -0.01] * 5
    >>> middle_of(quiet, 0.011) is None
    True
    >>> middle_of([*quiet, -0.9, 0.9], 0.28).decides
    True
    >>> middle_of([*quiet, *quiet, *[-0.9] * 10], 0.36).decides
    False
    """
    n, cut = len(ratios), math.floor(TRIM * len(ratios))
    if cut == 0:
        return None
    ordered = sorted(ratios)
    kept = ordered[cut : n - cut]
    winsorized = [kept[0]] * cut + kept + [kept[-1]] * cut
    spread = math.sqrt(variance(winsorized)) / (1 - 2 * cut / n)
    if EFFICIENCY_MIN * spread**2 >= of_all**2:
        return None
    center = median(ratios)
    far = STALL_FACTOR * median(abs(ratio - center) for ratio in ratios)
    stalls = sum(ratio < center - far for ratio in ratios), sum(ratio > center + far for ratio in ratios)
    return Middle(fmean(kept), spread, len(kept) - 1.0, stalls)


def _by_chance(some: int, others: int) -> float:
    """Returns the two-sided p-value of the sign test."""
    n = some + others
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(min(some, others) + 1)) / (1 << n))
