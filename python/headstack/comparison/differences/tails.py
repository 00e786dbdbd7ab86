"""Pairs that stray with long tails: what most of them say, and whether stalls fall on both sides alike.

A run in which a machine with other users stalls says little of the system. The mean of all pairs is as uncertain as its
worst runs; with a fifth of the pairs left out at either end (Tukey and McLaughlin, 1963; the share is that of Wilcox,
2012) it is as certain as the others. A stall that one side has oftener is a property of that side, and is left in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, variance

TRIM = 0.2
"""This share of the pairs is left out at either end."""
PAIRS_LEAST = 20
"""Of fewer, whether tails are long is found by chance: with 10 normal ones 10 % of equal systems would differ."""
GAIN = 2.0
"""Worth it where all pairs together need so many times the runs: of normal spreads they need 0.9 times."""
FAR = 3 * 1.4826
"""Times the median distance from the median: 3 standard deviations of a normal spread, beyond which 0.3 % lie."""
LOPSIDED = 0.05
"""Stalls are of one side where so uneven a share of them comes by chance so seldom."""


@dataclass(frozen=True)
class Middle:
    """What the middle of the pairs says."""

    log: float
    """Mean of what is left of the logarithms of ratios."""
    spread: float
    """The standard deviation of single pairs that would leave a mean of all of them as uncertain as this one."""
    degrees: float
    """Of freedom."""
    stalls: tuple[int, int]
    """Pairs far below the others, and far above."""

    @property
    def decides(self) -> bool:
        """Whether there are pairs enough, and as many stalls on both sides as chance gives."""
        return self.degrees + 1 >= (1 - 2 * TRIM) * PAIRS_LEAST and _by_chance(*self.stalls) > LOPSIDED


def middle_of(ratios: Sequence[float], of_all: float) -> Middle | None:
    """The middle of the pairs, where tails are so long that it is much more certain than the mean of all, whose single
    pairs stray by ``of_all``; ``None`` where not.

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
    if GAIN * spread**2 >= of_all**2:
        return None
    center = median(ratios)
    far = FAR * median(abs(ratio - center) for ratio in ratios)
    stalls = sum(ratio < center - far for ratio in ratios), sum(ratio > center + far for ratio in ratios)
    return Middle(fmean(kept), spread, len(kept) - 1.0, stalls)


def _by_chance(some: int, others: int) -> float:
    """How often a coin gives a split as uneven as this (the sign test, both sides)."""
    n = some + others
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(min(some, others) + 1)) / (1 << n))
