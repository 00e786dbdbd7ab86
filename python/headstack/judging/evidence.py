"""When what was seen is no chance any more: sequential tests with a stated number of false alarms in a drive-year.

A *lane* is a disk, a kind of request and what it is held against. Its residual, the logarithm of latency over what was
expected, becomes a conformal p-value among residuals of health, and a normal deviate z of at most 3.1: no single
interval decides, whatever its tail. What is correlated is worth less: z is divided by the root of its correlation
time, which leaves the variance of long sums, and so the false alarms of a long test, as if values were independent.

Tests run side by side: CUSUMs for small shifts over days and large ones over hours, with thresholds by Siegmund's
formula (Sequential Analysis, 1985), and an e-detector (Shin, Ramdas and Rinaldo, arXiv 2203.03532), which supposes
no distribution. They share the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from headstack.judging.steps import STEP_S

SHIFTS = (0.5, 1.0, 2.0)
"""That the CUSUMs are the best tests for, in deviations. Their references are half of it."""
TESTS = len(SHIFTS) + 1
Z_MAX = 3.1
"""p = 0.001: one value moves no test by more."""
Z_MIN, Z_SHIFT = -0.5, 0.198
"""A disk is ill again and again, and well in between: hours in which it is well count no more than this against it.
What that adds to the mean of a normal deviate is taken off again, after which E exp(2 k (z - k)) stays below 1 for
every CUSUM, and with it the false alarms below Siegmund's."""
BETS = np.arange(0.1, 1.0, 0.1)
"""Powers of the e-detector's bets, k p^(k - 1), which are equally likely. Half of what it has is not bet: a disk
that is ill a quarter of the time loses too much in between otherwise."""
CAP = 1.5
"""How far above its threshold a CUSUM goes, in parts of it, so that a disk that is healthy again is soon called so."""
STEPS_A_YEAR = 365.25 * 86_400 / STEP_S
POOL_MAX = 512
LAGS_MAX = 24

Array = npt.NDArray[np.float64]


@cache
def threshold(reference: float, mean_run: float) -> float:
    """Of a CUSUM of independent normal deviates that alarms once in ``mean_run`` values, by Siegmund's formula.

    >>> from headstack.judging.evidence import threshold
    >>> round(threshold(0.5, 876_600), 1)
    11.8
    """
    low, high = 0.0, 1e3
    while high - low > 1e-6:
        middle = (low + high) / 2
        b = 2 * reference * (middle + 1.166)
        if b > 600 or (math.expm1(b) - b) / (2 * reference**2) > mean_run:
            high = middle
        else:
            low = middle
    return high


def correlation_time(series: Array) -> float:
    """How many values of a series are worth one independent one, at least 1: 1 + 2 sum of the correlations up to
    the first that is not above chance. Rows of ``series`` are disks; NaN is what was not seen."""
    centred = series - np.nanmedian(series, axis=1, keepdims=True)
    bound = 3.0 * np.nanstd(centred, axis=1, keepdims=True) + 1e-12
    centred = np.clip(centred, -bound, bound)
    variance = np.nanmean(centred**2)
    if not variance > 0:
        return 1.0
    time = 1.0
    for lag in range(1, min(LAGS_MAX, series.shape[1] // 3) + 1):
        products = centred[:, lag:] * centred[:, :-lag]
        seen = int(np.isfinite(products).sum())
        if seen < 10:
            break
        correlation = float(np.nanmean(products) / variance)
        if correlation < 1.0 / math.sqrt(seen):
            break
        time += 2.0 * correlation
    return time


def deviates(residuals: Array, pools: Array, times: Array) -> tuple[Array, Array]:
    """p-values of residuals, each among its row of ``pools`` (NaN where there is nothing), and deviates whose long sums
    vary as those of independent normal ones."""
    known = np.isfinite(pools)
    p = (1.0 + (known & (pools >= residuals[:, None])).sum(axis=1)) / (1.0 + known.sum(axis=1))
    # Midway between neighbours: ranks are steps, and the greatest of all would be taken for no evidence at all.
    z = np.clip(normal_quantile(1.0 - p + 0.5 / (1.0 + known.sum(axis=1))), Z_MIN, Z_MAX)
    return p, (z - Z_SHIFT) / np.sqrt(times)


def normal_quantile(p: Array) -> Array:
    """Of the standard normal distribution; Abramowitz and Stegun 26.2.23, right to 0.00045."""
    tail = np.clip(np.minimum(p, 1.0 - p), 1e-12, 0.5)
    t = np.sqrt(-2.0 * np.log(tail))
    z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    return np.asarray(np.where(p < 0.5, -z, z))


@dataclass
class Evidence:
    """Tests of many lanes at once; every array is of lanes, two of them of lanes and ``TESTS``."""

    level: Array
    """Of each test, from 0; the last is the e-detector's, a logarithm."""
    begun: Array
    """The step after which a test was last at 0."""
    count: Array
    """Of residuals since then."""
    total: Array
    squares: Array
    alarmed: Array
    """The test that raised the alarm, counted from 1; 0 where none is on."""
    seen: Array
    """Residuals in all."""

    @staticmethod
    def none(lanes: int) -> Evidence:
        """Of lanes of which nothing was seen."""
        level, begun, count, total, squares = np.zeros((5, lanes, TESTS))
        return Evidence(level, begun, count, total, squares, np.zeros(lanes), np.zeros(lanes))

    def thresholds(self, false_alarms_per_drive_year: float, lanes_per_drive: float = 1.0) -> Array:
        """Of the tests, so that all lanes of a drive together keep the budget."""
        mean_run = STEPS_A_YEAR * TESTS * lanes_per_drive / false_alarms_per_drive_year
        return np.array([*(threshold(shift / 2, mean_run) for shift in SHIFTS), math.log(mean_run)])

    def take(self, step: int, residuals: Array, p: Array, z: Array, times: Array, thresholds: Array) -> None:
        """Takes a residual of each lane in, NaN where there is none."""
        here = np.isfinite(residuals)
        gains = np.empty((len(z), TESTS))
        gains[:, :-1] = z[:, None] - np.array(SHIFTS) / 2
        gains[:, -1] = np.log(0.5 + 0.5 * (BETS * p[:, None] ** (BETS - 1.0)).mean(axis=1)) / times
        gains[~here] = 0.0
        level = np.clip(self.level + gains, 0.0, CAP * thresholds)
        fresh = (self.level <= 0.0) & here[:, None]
        self.begun = np.where(fresh, step, self.begun)
        value = np.where(here, residuals, 0.0)[:, None]
        for name, new in (("count", here[:, None] * 1.0), ("total", value), ("squares", value**2)):
            setattr(self, name, np.where(fresh, new, getattr(self, name) + new))
        self.level = level
        self.seen = self.seen + here
        over = level >= thresholds
        first = np.where(over.any(axis=1), 1 + over.argmax(axis=1), 0)
        on = np.take_along_axis(level, np.maximum(self.alarmed.astype(int) - 1, 0)[:, None], axis=1)[:, 0]
        kept = np.where((self.alarmed > 0) & (on <= 0.0), 0, self.alarmed)
        self.alarmed = np.where(kept > 0, kept, first).astype(float)

    def share(self, thresholds: Array) -> Array:
        """How much of an alarm each lane has come to; 1 is one."""
        return np.asarray((self.level / thresholds).max(axis=1))

    def test_of(self, lane: int, thresholds: Array) -> int:
        """The test that speaks for a lane: that of its alarm, or else the one that is nearest to one."""
        alarmed = int(self.alarmed[lane])
        return alarmed - 1 if alarmed else int((self.level[lane] / thresholds).argmax())

    def size(self, lane: int, test: int, time: float) -> tuple[float, float, float]:
        """The mean residual since a test was at 0, and its 90 % interval."""
        count = max(self.count[lane, test], 1.0)
        mean = self.total[lane, test] / count
        variance = max(self.squares[lane, test] / count - mean**2, 0.0)
        half = 1.645 * math.sqrt(variance * min(time, count) / count)
        return mean, mean - half, mean + half

    def plain(self, lane: int) -> dict[str, Any]:
        """A lane, as plain data."""
        return {field.name: getattr(self, field.name)[lane].tolist() for field in fields(self)}

    def set(self, lane: int, plain: dict[str, Any]) -> None:
        """Makes a lane what ``plain`` told of it."""
        for field in fields(self):
            getattr(self, field.name)[lane] = plain[field.name]


def discoveries(log_e_values: Array, rate: float) -> npt.NDArray[np.bool_]:
    """Which of many drives to alarm so that of those alarmed no more than ``rate`` are false on average, under any
    dependence: Benjamini and Hochberg's procedure with e-values (Wang and Ramdas, 2022).

    >>> import numpy as np
    >>> from headstack.judging.evidence import discoveries
    >>> discoveries(np.log([900.0, 1.0, 35.0, 70.0]), 0.05).tolist()
    [True, False, True, True]
    """
    order = np.argsort(-log_e_values)
    number = len(log_e_values)
    needed = math.log(number / rate) - np.log(np.arange(1, number + 1))
    enough = np.flatnonzero(log_e_values[order] >= needed)
    chosen = np.zeros(number, dtype=bool)
    if len(enough):
        chosen[order[: enough[-1] + 1]] = True
    return chosen
