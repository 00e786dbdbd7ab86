"""``Evidence``: sequential tests with a given number of false alarms per drive-year.

A *lane* is a disk, a kind of request and a reference. Its residual, the logarithm of latency over the expected one, is
converted to a conformal p-value among residuals of health, and a normal deviate z of at most 3.1, so that no single
interval decides, regardless of its tail. Correlated values have less weight: z is divided by the square root of its
correlation time, which preserves the variance of long sums, and thus the false alarms of a long test, as if values were
independent.

Several tests run in parallel: CUSUMs for small shifts over days and large ones over hours, with thresholds by
Siegmund's formula (Sequential Analysis, 1985); an e-detector (Shin, Ramdas and Rinaldo, arXiv 2203.03532), which
assumes no distribution; one that bets on residuals far above all of health, whose tail is assumed to be no heavier than
that of Student's distribution with four degrees of freedom; one of levels and one of days (``levels.py``). They share
the budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headstack.diagnosis.judging.levels import CHANGES, DAY_SEEN, DAY_STEPS, SHARES, noisier
from headstack.diagnosis.judging.state import LaneState
from headstack.diagnosis.judging.steps import STEP_S

SHIFTS = (0.5, 1.0, 2.0)
"""Shifts for which the CUSUMs are optimal, in standard deviations. Their reference values are half of it."""
E_DETECTOR, FAR_TAIL, LEVELS, DAYS = range(len(SHIFTS), len(SHIFTS) + 4)
TESTS = len(SHIFTS) + 4
LEVEL_REFERENCE = 1.0
"""Reference value of the CUSUM of levels, as for the largest shift: five values above all of health raise an alarm."""
Z_MAX = 3.1
"""p = 0.001: no single value has more effect on a test."""
Z_MIN, Z_SHIFT = -0.5, 0.198
"""Lower limit of z. A sick disk is often healthy in between: healthy hours reduce its evidence by no more than this.
The resulting increase of the mean of a normal deviate is subtracted, after which E exp(2 k (z - k)) is below 1 for
every CUSUM, and thus the false alarms are below Siegmund's."""
BETS = np.arange(0.1, 1.0, 0.1)
"""Powers of the e-detector's bets, k p^(k - 1), which are equally likely. Half of its wealth is not bet: otherwise a
disk that is sick for 25 % of the time loses too much in between."""
TAIL = 4.0
"""Power of the assumed tail above all residuals of health: quarters of an hour of real disks have lighter tails."""
TAIL_P_VALUES = np.array([1e-2, 1e-3])
"""P-values that the last test bets on. As in the others, no value counts for more than 0.001: a few bad, related
quarters of an hour raise no alarm."""
RATES = (*SHIFTS, 1.0, 1.0, 2.0 * LEVEL_REFERENCE, 30.0)
"""By test, the decrease of the logarithm of the false-alarm rate per unit above the threshold. For days it is 5.5
squared: their bound is about 5.5 standard deviations."""
CAP = 1.5
"""Maximum of a CUSUM relative to its threshold, so that a recovered disk is soon reported as healthy."""
WELL = 0.5
"""A day whose mean is below this share of its bound ends an alarm of the test of days."""
STEPS_A_YEAR = 365.25 * 86_400 / STEP_S
POOL_MAX = 512
LAGS_MAX = 24

Array = npt.NDArray[np.float64]


@cache
def threshold(reference: float, mean_run: float) -> float:
    """Returns the threshold of a CUSUM of independent normal deviates with one alarm per ``mean_run`` values, by
    Siegmund's formula.

    >>> from headstack.diagnosis.judging.evidence import threshold
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
    """Returns the number of values of a series that equal one independent one, at least 1: 1 + 2 times the sum of
    correlations up to the first that is not above chance. Rows of ``series`` are disks; missing values are NaN."""
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


class Scores(NamedTuple):
    """Residuals converted to evidence."""

    p: Array
    z: Array
    """Deviates whose long sums have the variance of independent normal ones."""
    tail: Array
    """P-values, extrapolated above the greatest residual of health by its tail."""
    level: Array
    """Deviates of residuals relative to the bound of levels."""

    @staticmethod
    def none(lanes: int) -> Scores:
        """Returns scores without evidence."""
        return Scores(np.ones(lanes), np.zeros(lanes), np.ones(lanes), np.full(lanes, Z_MIN))


class Days(NamedTuple):
    """The input of the test of days."""

    residuals: Array
    bounds: Array
    """The bound on the mean of a day in health; infinite if unknown."""


def deviates(
    residuals: Array, pools: Array, times: Array, severe: Array | None = None, level: Array | None = None
) -> Scores:
    """Converts residuals to scores, each among its row of ``pools`` (NaN if missing). ``severe`` are residuals minus a
    greater tolerance, for the test of the far tail, and ``level`` those minus the bound of levels; without it that test
    is silent."""
    severe = residuals if severe is None else severe
    level = np.full(len(residuals), -math.inf) if level is None else level
    present = np.isfinite(pools)
    p, z = _ranks(residuals, pools)
    greatest = np.maximum(np.where(present, pools, -math.inf).max(axis=1, initial=-math.inf), 1e-9)
    far, _ = _ranks(severe, pools)
    beyond = np.maximum(severe / greatest, 1.0) ** -TAIL
    of_level = _ranks(level, pools)[1] - Z_SHIFT
    return Scores(p, (z - Z_SHIFT) / np.sqrt(times), far * np.where(present.any(axis=1), beyond, 1.0), of_level)


def _ranks(residuals: Array, pools: Array) -> tuple[Array, Array]:
    """Returns p-values of residuals among those of health, and normal deviates of them."""
    present = np.isfinite(pools)
    count = 1.0 + present.sum(axis=1)
    p = (1.0 + (present & (pools >= residuals[:, None])).sum(axis=1)) / count
    # Midway between neighbours: ranks are steps, and the maximum would otherwise count as no evidence.
    return p, np.clip(normal_quantile(1.0 - p + 0.5 / count), Z_MIN, Z_MAX)


def normal_quantile(p: Array) -> Array:
    """Returns quantiles of the standard normal distribution; Abramowitz and Stegun 26.2.23, with an error of at most
    0.00045.
    """
    tail = np.clip(np.minimum(p, 1.0 - p), 1e-12, 0.5)
    t = np.sqrt(-2.0 * np.log(tail))
    z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    return np.asarray(np.where(p < 0.5, -z, z))


@dataclass
class Evidence:
    """Tests of many lanes at once; every array is over lanes, some of them over lanes and ``TESTS``."""

    level: Array
    """Level of each test, from 0; those of the e-detector and of the far tail are logarithms."""
    begun: Array
    """The last step at which a test was at 0."""
    count: Array
    """Number of residuals since then."""
    total: Array
    squares: Array
    bounds: Array
    """Number of residuals since then that were lower bounds."""
    changes: Array
    """Over lanes and ``CHANGES``: squares of the last changes between residuals, -1 if missing."""
    last: Array
    """The last residual."""
    day_begun: Array
    """The first step of the current day."""
    day_count: Array
    """Number of its residuals, up to ``DAY_SEEN``."""
    day_total: Array
    alarmed: Array
    """The test that raised the alarm, counted from 1; 0 without an alarm."""
    seen: Array
    """Total number of residuals."""

    @staticmethod
    def none(lanes: int) -> Evidence:
        """Returns the tests of lanes without observations."""
        level, begun, count, total, squares, bounds = np.zeros((6, lanes, TESTS))
        last, day_begun, day_count, day_total, alarmed, seen = np.zeros((6, lanes))
        return Evidence(
            level,
            begun,
            count,
            total,
            squares,
            bounds,
            np.full((lanes, CHANGES), -1.0),
            last,
            day_begun,
            day_count,
            day_total,
            alarmed,
            seen,
        )

    def thresholds(self, false_alarms_per_drive_year: float, lanes_per_drive: float = 1.0) -> Array:
        """Returns the thresholds of the tests with which all lanes of a drive together meet the budget."""
        mean_run = STEPS_A_YEAR * SHARES * lanes_per_drive / false_alarms_per_drive_year
        references = [shift / 2 for shift in SHIFTS]
        cusums = [threshold(reference, mean_run) for reference in (*references, LEVEL_REFERENCE)]
        return np.array([*cusums[:-1], *[math.log(mean_run)] * 2, cusums[-1], 1.0])

    def take(
        self,
        step: int,
        residuals: Array,
        p: Array,
        z: Array,
        tail: Array,
        of_level: Array,
        times: Array,
        thresholds: Array,
        bounds: npt.NDArray[np.bool_] | None = None,
        days: Days | None = None,
    ) -> None:
        """Adds a residual for each lane, NaN if missing; ``Scores`` are from ``deviates``, and ``bounds`` marks
        residuals that are lower bounds."""
        here = np.isfinite(residuals)
        is_new_day, of_day = self._take_day(step, here, days)
        gains = np.empty((len(z), TESTS))
        gains[:, : len(SHIFTS)] = z[:, None] - np.array(SHIFTS) / 2
        gains[:, E_DETECTOR] = np.log(0.5 + 0.5 * (BETS * p[:, None] ** (BETS - 1.0)).mean(axis=1)) / times
        gains[:, FAR_TAIL] = np.log(0.5 + 0.5 * ((tail[:, None] <= TAIL_P_VALUES) / TAIL_P_VALUES).mean(axis=1)) / times
        gains[:, LEVELS] = of_level - LEVEL_REFERENCE
        gains[:, DAYS] = of_day - self.level[:, DAYS]
        gains[~here] = 0.0
        level = np.clip(self.level + gains, 0.0, CAP * thresholds)
        fresh = (self.level <= 0.0) & here[:, None]
        fresh[:, DAYS] &= is_new_day
        self.begun = np.where(fresh, step, self.begun)
        value = np.where(here, residuals, 0.0)
        one_sided = np.zeros(len(here), dtype=bool) if bounds is None else bounds & here
        sums = {"count": here * 1.0, "total": value, "squares": value**2, "bounds": one_sided * 1.0}
        for name, new in ((name, new[:, None]) for name, new in sums.items()):
            setattr(self, name, np.where(fresh, new, getattr(self, name) + new))
        self.level = level
        self.seen = self.seen + here
        over = level >= thresholds
        first = np.where(over.any(axis=1), 1 + over.argmax(axis=1), 0)
        on = np.take_along_axis(level, np.maximum(self.alarmed.astype(int) - 1, 0)[:, None], axis=1)[:, 0]
        kept = np.where((self.alarmed > 0) & (on <= 0.0), 0, self.alarmed)
        self.alarmed = np.where(kept > 0, kept, first).astype(float)

    def note_changes(self, residuals: Array, usual: Array) -> Array:
        """Adds the change of each residual, before ``take``; returns the noise of each lane relative to usual.
        ``usual`` is as for ``noisier``."""
        here = np.isfinite(residuals)
        change = here & (self.seen > 0)
        square = np.where(change, (np.where(here, residuals, 0.0) - self.last) ** 2, 0.0)
        shifted = np.column_stack([self.changes[:, 1:], square])
        self.changes = np.where(change[:, None], shifted, self.changes)
        self.last = np.where(here, residuals, self.last)
        return noisier(self.changes, usual)

    def _take_day(
        self, step: int, here: npt.NDArray[np.bool_], days: Days | None
    ) -> tuple[npt.NDArray[np.bool_], Array]:
        """Returns the lanes that begin a day with this step, and the level of the test of days: the mean relative to
        the bound. A value counts for at most twice the bound, so that half of a day has to be slow."""
        before = self.level[:, DAYS]
        is_new = here & ((step >= self.day_begun + DAY_STEPS) | (self.seen == 0))
        residuals, limits = days if days else Days(np.zeros(len(here)), np.full(len(here), math.inf))
        # An incomplete day cannot raise an alarm, but end one.
        is_short = (self.day_count > 0) & (self.day_count < DAY_SEEN)
        is_well = is_new & is_short & (self.day_total / np.maximum(self.day_count, 1.0) < WELL * limits)
        self.day_begun = np.where(is_new, step, self.day_begun)
        taken = here & (is_new | (self.day_count < DAY_SEEN))
        value = np.where(taken, np.clip(residuals, -2.0 * limits, 2.0 * limits), 0.0)
        self.day_total = np.where(is_new, 0.0, self.day_total) + value
        self.day_count = np.where(is_new, 0.0, self.day_count) + taken
        share = self.day_total / (DAY_SEEN * limits)
        is_whole = taken & (self.day_count == DAY_SEEN)
        level = np.where(is_whole, np.where(share < WELL, 0.0, share), np.where(is_well, 0.0, before))
        return is_new, level

    def share(self, thresholds: Array) -> Array:
        """Returns the evidence of each lane as a share of an alarm; 1 is an alarm."""
        return np.asarray((self.level / thresholds).max(axis=1))

    def test_of(self, lane: int, thresholds: Array) -> int:
        """Returns the test that represents a lane: the one of its alarm, or else the one nearest to an alarm."""
        alarmed = int(self.alarmed[lane])
        return alarmed - 1 if alarmed else int((self.level[lane] / thresholds).argmax())

    def size(self, lane: int, test: int, time: float) -> tuple[float, float, float]:
        """Returns the mean residual since a test was at 0, and its 90 % interval."""
        count = max(self.count[lane, test], 1.0)
        mean = self.total[lane, test] / count
        variance = max(self.squares[lane, test] / count - mean**2, 0.0)
        half = 1.645 * math.sqrt(variance * min(time, count) / count)
        return mean, mean - half, mean + half

    def plain(self, lane: int) -> LaneState:
        """Returns a lane as plain data."""
        return {field.name: getattr(self, field.name)[lane].tolist() for field in fields(self)}

    def set(self, lane: int, plain: LaneState) -> None:
        """Sets a lane to the values that ``plain`` returned."""
        for field in fields(self):
            getattr(self, field.name)[lane] = plain[field.name]


def discoveries(log_e_values: Array, rate: float) -> npt.NDArray[np.bool_]:
    """Returns the drives to alarm so that on average at most the share ``rate`` of the alarms are false, under any
    dependence: Benjamini and Hochberg's procedure with e-values (Wang and Ramdas, 2022).

    >>> import numpy as np
    >>> from headstack.diagnosis.judging.evidence import discoveries
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
