"""Bounds on the slow part of residuals: how far the level of a healthy disk moves in hours and in days.

A residual has a slow part, which stays for hours (the load of an evening, the error of a curve at one load), and a fast
part. Dividing by the correlation time counts an evening as a few values, however many quarters of an hour it has. Two
tests bound the size of the slow part instead: a healthy level exceeds ``Slow.bound`` less often than the budget allows.

- The test of *levels* is a CUSUM of residuals minus this bound (at least the tolerance). The rest is the fast part,
  which is nearly independent from quarter to quarter and needs no division: five quarters far above are an alarm.
- The test of *days* compares the mean of the first ``DAY_SEEN`` quarters of a day with the bound of such means. The
  tolerance is not subtracted: it stands for differences that the data do not show, and several days show them. This
  test finds 1.3 times within a day in a log that has few quarters of an hour a day.

Both bounds rise where changes from quarter to quarter are larger than usual (``noisier``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from headstack.diagnosis.judging.steps import STEP_S

Array = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]

SHARES = 8
"""Shares of the budget: each of the seven tests has one, and what the test of levels supposes has one more."""
LEVEL_STEPS = 8
"""Two hours: steps whose mean is a level. Five of them can be an alarm, so what lasts as long must count as slow."""
DAY_SEEN = 12
"""Quarters of an hour of a day whose mean is compared. It was chosen knowing that the real disks that this is measured
on have 13 a day; of a time of correlation of 2 to 3 quarters, 12 are some five values that are independent."""
DAY_STEPS = round(86_400 / STEP_S)
CHANGES = 8
"""The last changes from quarter to quarter that noise is estimated from, without the largest: that may be the onset."""
NOISIER = 1.5
"""Noise that is estimated at less than this many times the usual counts as usual: 90 % of estimates from independent
normal values are below. What is above counts in full. Counting only the part above this found 2 times in 2 h in 72
of 72 real disks rather than in 66, but had 4 alarms in 450 drive-years of the surrogate, where this has none; it was
chosen knowing both."""
UNLIKE = 3.0
"""A disk whose levels vary so many times as much as those of half of the disks teaches nothing: one that becomes slow
while its peers are learnt would teach that slow days are health."""


@dataclass(frozen=True)
class Slow:
    """How much the level of healthy disks changes."""

    deviation: float = 0.0
    """Of the logarithm of latency, from the disk's usual level."""
    freedom: float = 0.0
    """Degrees of freedom that it was estimated with; 0 where it is not known."""

    def bound(self, chance: float) -> float:
        """What a level is above with this chance: levels are supposed to be normal, and their deviation is as uncertain
        as its degrees of freedom say, so Student's distribution."""
        return self.deviation * student_bound(chance, round(self.freedom, 1)) if self.freedom >= 1.0 else math.inf

    @staticmethod
    def of(levels: Array) -> Slow:
        """Of levels of healthy disks (rows), NaN where there is none."""
        is_level = np.isfinite(levels)
        of_disk = is_level.sum(axis=1)
        several = of_disk > 1
        if not several.any():
            return Slow()
        usual = np.where(is_level, levels, 0.0).sum(axis=1) / np.maximum(of_disk, 1)
        squares = np.where(is_level, (levels - usual[:, None]) ** 2, 0.0).sum(axis=1)
        variance = squares / np.maximum(of_disk - 1, 1)
        alike = several & (variance <= UNLIKE**2 * np.median(variance[several]))
        freedom = float((of_disk[alike] - 1).sum())
        # The usual level is known from as many, so that the next one differs from it by a little more.
        more = 1.0 + 1.0 / float(np.median(of_disk[alike]))
        return Slow(math.sqrt(more * squares[alike].sum() / freedom), freedom)


def chance(false_alarms_per_drive_year: float, lanes_per_drive: float, steps: int) -> float:
    """Of one level to be above its bound, so that levels of so many steps keep to their share of the budget."""
    levels_a_year = 365.25 * DAY_STEPS / steps
    return false_alarms_per_drive_year / (SHARES * lanes_per_drive * levels_a_year)


def noisier(changes: Array, usual: Array) -> Array:
    """How many times the usual noise is, at least 1: an evening three times as noisy moves its level three times as
    far. ``changes`` are squares (rows of ``CHANGES``), ``usual`` is of ``usual_change``, 0 where it is
    not known."""
    known = (changes >= 0.0).all(axis=1) & (usual > 0.0)
    ratio = _change(changes) / np.where(known, usual, 1.0)
    return np.where(known & (ratio > NOISIER), ratio, 1.0)


def usual_change(residuals: Array) -> float:
    """The median of changes in health, each estimated as ``noisier`` does; 0 where too few were seen."""
    squares = np.diff(residuals, axis=1) ** 2
    if squares.shape[1] < CHANGES:
        return 0.0
    windows = np.lib.stride_tricks.sliding_window_view(squares, CHANGES, axis=1).reshape(-1, CHANGES)
    seen = windows[np.isfinite(windows).all(axis=1)]
    return float(np.median(_change(seen))) if len(seen) else 0.0


def _change(squares: Array) -> Array:
    """The root of the mean of ``CHANGES`` squares without the largest."""
    rest = squares.sum(axis=1) - squares.max(axis=1)
    return np.asarray(np.sqrt(np.maximum(rest, 0.0) / (CHANGES - 1)))


def of_hours(residuals: Array, steps: Steps) -> Slow:
    """Of residuals of healthy disks (rows) over steps: means of ``LEVEL_STEPS``, of which half were seen."""
    windows, place = np.unique(steps // LEVEL_STEPS, return_inverse=True)
    levels = [_mean(residuals[:, place == at], LEVEL_STEPS // 2, LEVEL_STEPS) for at in range(len(windows))]
    return Slow.of(np.array(levels).T)


def of_days(residuals: Array, steps: Steps) -> Slow:
    """The same of means over the first ``DAY_SEEN`` steps of each day."""
    levels, begin = [], 0
    while begin < len(steps):
        end = int(np.searchsorted(steps, steps[begin] + DAY_STEPS))
        levels.append(_mean(residuals[:, begin:end], DAY_SEEN, DAY_SEEN))
        begin = end
    return Slow.of(np.array(levels).T)


def _mean(residuals: Array, needed: int, most: int) -> Array:
    """The mean of the first of each row; NaN where fewer than are needed were seen."""
    seen = np.isfinite(residuals)
    first = seen & (seen.cumsum(axis=1) <= most)
    count = first.sum(axis=1)
    total = np.where(first, residuals, 0.0).sum(axis=1)
    return np.where(count >= needed, total / np.maximum(count, 1), math.nan)


@cache
def student_bound(chance: float, freedom: float) -> float:
    """What Student's distribution exceeds with this chance.

    >>> from headstack.diagnosis.judging.levels import student_bound
    >>> round(student_bound(0.001, 10.0), 2), round(student_bound(0.025, 30.0), 2)
    (4.14, 2.04)
    """
    x = np.geomspace(1e-2, 1e9, 20_001)
    level = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom * math.pi)
    density = np.exp(level - (freedom + 1) / 2 * np.log1p(x**2 / freedom)) * x
    parts = (density[1:] + density[:-1]) / 2 * np.diff(np.log(x))
    # Beyond the last the tail falls as a power.
    tail = np.concatenate([np.cumsum(parts[::-1])[::-1], [0.0]]) + density[-1] / freedom
    return float(np.interp(-math.log(chance), -np.log(np.maximum(tail, 1e-300)), x))
