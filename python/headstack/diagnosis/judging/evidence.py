"""When what was seen is no chance any more: sequential tests with a stated number of false alarms in a drive-year.

A *lane* is a disk, a kind of request and what it is held against. Its residual, the logarithm of latency over what was
expected, becomes a conformal p-value among residuals of health, and a normal deviate z of at most 3.1: no single
interval decides, whatever its tail. What is correlated is worth less: z is divided by the root of its correlation
time, which leaves the variance of long sums, and so the false alarms of a long test, as if values were independent.

Tests run side by side: CUSUMs for small shifts over days and large ones over hours, with thresholds by Siegmund's
formula (Sequential Analysis, 1985); an e-detector (Shin, Ramdas and Rinaldo, arXiv 2203.03532), which supposes
no distribution; one that bets on residuals far beyond all of health, whose tail is supposed to be no heavier than
that of Student's distribution of four degrees of freedom; one of levels and one of days (``levels.py``). They share
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
"""That the CUSUMs are the best tests for, in deviations. Their references are half of it."""
E_DETECTOR, FAR_TAIL, LEVELS, DAYS = range(len(SHIFTS), len(SHIFTS) + 4)
TESTS = len(SHIFTS) + 4
LEVEL_REFERENCE = 1.0
"""Of the CUSUM of levels, as that for the largest shift: five values beyond all of health are an alarm."""
Z_MAX = 3.1
"""p = 0.001: one value moves no test by more."""
Z_MIN, Z_SHIFT = -0.5, 0.198
"""A disk is ill again and again, and well in between: hours in which it is well count no more than this against it.
What that adds to the mean of a normal deviate is taken off again, after which E exp(2 k (z - k)) stays below 1 for
every CUSUM, and with it the false alarms below Siegmund's."""
BETS = np.arange(0.1, 1.0, 0.1)
"""Powers of the e-detector's bets, k p^(k - 1), which are equally likely. Half of what it has is not bet: a disk
that is ill a quarter of the time loses too much in between otherwise."""
TAIL = 4.0
"""The power by which the tail beyond all residuals of health falls: quarters of an hour of real disks fall faster."""
FAR = np.array([1e-2, 1e-3])
"""What the last test bets on: a p-value of at most this. As in the others, no value counts for more than one in a
thousand: a few bad quarters of an hour that belong together are no alarm."""
RATES = (*SHIFTS, 1.0, 1.0, 2.0 * LEVEL_REFERENCE, 30.0)
"""By test, how much the logarithm of the false-alarm rate falls for each unit above the threshold. For days it is 5.5
squared: their bound is about 5.5 deviations."""
CAP = 1.5
"""How far above its threshold a CUSUM goes, in parts of it, so that a disk that is healthy again is soon called so."""
WELL = 0.5
"""A day whose mean is below this part of its bound ends an alarm of the test of days."""
STEPS_A_YEAR = 365.25 * 86_400 / STEP_S
POOL_MAX = 512
LAGS_MAX = 24

Array = npt.NDArray[np.float64]


@cache
def threshold(reference: float, mean_run: float) -> float:
    """Of a CUSUM of independent normal deviates that alarms once in ``mean_run`` values, by Siegmund's formula.

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


class Scores(NamedTuple):
    """Residuals as evidence."""

    p: Array
    z: Array
    """Deviates whose long sums vary as those of independent normal ones."""
    tail: Array
    """p-values that go on beyond the greatest residual of health, by its tail."""
    level: Array
    """Deviates of what residuals are above the bound of levels."""

    @staticmethod
    def none(lanes: int) -> Scores:
        """Scores of lanes that show nothing."""
        return Scores(np.ones(lanes), np.zeros(lanes), np.ones(lanes), np.full(lanes, Z_MIN))


class Days(NamedTuple):
    """The input of the test of days."""

    residuals: Array
    bounds: Array
    """The bound on the mean of a day in health; infinite where that is not known."""


def deviates(
    residuals: Array, pools: Array, times: Array, severe: Array | None = None, level: Array | None = None
) -> Scores:
    """Residuals, each among its row of ``pools`` (NaN where there is nothing). ``severe`` are residuals less a greater
    tolerance, for the test of the far tail, and ``level`` less the bound of levels; without it that test is silent."""
    severe = residuals if severe is None else severe
    level = np.full(len(residuals), -math.inf) if level is None else level
    known = np.isfinite(pools)
    p, z = _ranks(residuals, pools)
    greatest = np.maximum(np.where(known, pools, -math.inf).max(axis=1, initial=-math.inf), 1e-9)
    far, _ = _ranks(severe, pools)
    beyond = np.maximum(severe / greatest, 1.0) ** -TAIL
    of_level = _ranks(level, pools)[1] - Z_SHIFT
    return Scores(p, (z - Z_SHIFT) / np.sqrt(times), far * np.where(known.any(axis=1), beyond, 1.0), of_level)


def _ranks(residuals: Array, pools: Array) -> tuple[Array, Array]:
    """p-values of residuals among those of health, and normal deviates of them."""
    known = np.isfinite(pools)
    count = 1.0 + known.sum(axis=1)
    p = (1.0 + (known & (pools >= residuals[:, None])).sum(axis=1)) / count
    # Midway between neighbours: ranks are steps, and the greatest of all would be taken for no evidence at all.
    return p, np.clip(normal_quantile(1.0 - p + 0.5 / count), Z_MIN, Z_MAX)


def normal_quantile(p: Array) -> Array:
    """Of the standard normal distribution; Abramowitz and Stegun 26.2.23, right to 0.00045."""
    tail = np.clip(np.minimum(p, 1.0 - p), 1e-12, 0.5)
    t = np.sqrt(-2.0 * np.log(tail))
    z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    return np.asarray(np.where(p < 0.5, -z, z))


@dataclass
class Evidence:
    """Tests of many lanes at once; every array is of lanes, some of them of lanes and ``TESTS``."""

    level: Array
    """Of each test, from 0; those of the e-detector and of the far tail are logarithms."""
    begun: Array
    """The step after which a test was last at 0."""
    count: Array
    """Number of residuals since then."""
    total: Array
    squares: Array
    bounds: Array
    """Number of residuals since then that were lower bounds."""
    changes: Array
    """Of lanes and ``CHANGES``: squares of the last changes from one residual to the next, -1 where there is none."""
    last: Array
    """The last residual."""
    day_begun: Array
    """The first step of the day under way."""
    day_count: Array
    """Number of its residuals, up to ``DAY_SEEN``."""
    day_total: Array
    alarmed: Array
    """The test that raised the alarm, counted from 1; 0 where none is on."""
    seen: Array
    """Residuals in all."""

    @staticmethod
    def none(lanes: int) -> Evidence:
        """The tests of lanes without observations."""
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
        """Of the tests, so that all lanes of a drive together keep the budget."""
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
        """Takes a residual of each lane in, NaN where there is none; ``Scores`` are as ``deviates`` gives them, and
        ``bounds`` says which residuals are lower bounds."""
        here = np.isfinite(residuals)
        is_new_day, of_day = self._take_day(step, here, days)
        gains = np.empty((len(z), TESTS))
        gains[:, : len(SHIFTS)] = z[:, None] - np.array(SHIFTS) / 2
        gains[:, E_DETECTOR] = np.log(0.5 + 0.5 * (BETS * p[:, None] ** (BETS - 1.0)).mean(axis=1)) / times
        gains[:, FAR_TAIL] = np.log(0.5 + 0.5 * ((tail[:, None] <= FAR) / FAR).mean(axis=1)) / times
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
        """Takes the change of each residual in, before ``take``; how much noisier each lane is than usual. ``usual`` is
        as for ``noisier``."""
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
        """Which lanes begin a day with this step, and the level of the test of days: the mean over its bound. A value
        counts for no more than twice the bound, so that half of a day has to be slow."""
        before = self.level[:, DAYS]
        is_new = here & ((step >= self.day_begun + DAY_STEPS) | (self.seen == 0))
        residuals, limits = days if days else Days(np.zeros(len(here)), np.full(len(here), math.inf))
        # A day of too few quarters cannot alarm, but end an alarm.
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

    def plain(self, lane: int) -> LaneState:
        """A lane, as plain data."""
        return {field.name: getattr(self, field.name)[lane].tolist() for field in fields(self)}

    def set(self, lane: int, plain: LaneState) -> None:
        """Sets a lane to the values that ``plain`` returned."""
        for field in fields(self):
            getattr(self, field.name)[lane] = plain[field.name]


def discoveries(log_e_values: Array, rate: float) -> npt.NDArray[np.bool_]:
    """Which of many drives to alarm so that of those alarmed no more than ``rate`` are false on average, under any
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
