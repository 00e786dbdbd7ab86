"""``Estimate``: the difference between two sets of runs with its standard error. All values are logarithms, so that a
difference is a ratio; each run is one sample, because a single run does not show the variation between runs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from statistics import fmean, median, variance
from typing import Literal

from headstack.comparison.differences.student import chi_square_of, p_of, t_of
from headstack.comparison.differences.tails import PAIRS_LEAST, middle_of

Design = Literal["paired", "unpaired", "batches", "none"]
"""Design of a comparison: pairs of consecutive runs, independent sets, or batches of one run of each side; ``none`` if
the variation between runs is unknown.
"""

ORDER_LEAST = 8
"""Minimum number of pairs, or minimum total number of runs, for removing a drift, which costs a degree of freedom."""
EXACT_MAX, DRAWS = 1 << 12, 1_999
"""Maximum number of permutations to try exhaustively; with more, this number is drawn at random."""
OUTLIER_FACTOR = 14.826
"""Outlier threshold as a multiple of the median absolute deviation, as in hyperfine (10 standard deviations)."""
BATCH_TAUS, BATCHES_LEAST = 5, 6
"""Length of a batch in correlation times, and minimum number of batches. A length of 5 gives 5 % false alarms, 3 gives
7 %, and 1 gives 12 %.
"""
POWER = 0.9
"""Power of the requested number of runs: the probability that they detect a difference."""
DETECTION_POWER = 0.8
"""Power for the smallest difference that a design could have detected (the usual value)."""
SPREAD_CONFIDENCE = 0.8
"""Level of the upper confidence limit of the spread, which determines the requested number of runs, because a few runs
may be close by chance."""
TAIL_SPREAD_CONFIDENCE = 0.95
"""The same level for distributions with long tails, whose spread varies more than that of normal distributions."""
RUNS_MAX = 10_000


@dataclass(frozen=True)
class Estimate:
    """Difference as the logarithm of a ratio."""

    log: float
    error: float
    """Standard error of the logarithm; infinite if unknown."""
    degrees: float
    """Degrees of freedom."""
    design: Design
    counts: tuple[int, int]
    """Number of runs, or batches, of each side."""
    spread: float
    """Standard deviation of the logarithm of one pair's ratio, or of one run."""
    with_drift: bool = False
    """Whether a drift over the order of the runs was removed."""
    correlation: float | None = None
    """Correlation of consecutive runs, or pairs."""
    p_permuted: float | None = None
    """P-value by permutation of the runs, without a distribution assumption."""
    p_least: float | None = None
    """The smallest p-value that this number of runs can give."""
    typical: tuple[float, float] | None = None
    """For pairs with long tails: the standard deviation of the trimmed mean, and its degrees of freedom."""
    stalls: tuple[int, int] | None = None
    """If the trimmed mean decides: the numbers of pairs far below the others, and far above."""
    of_all: tuple[float, float] | None = None
    """If the trimmed mean decides: the 95 % interval of the mean of all pairs, including their stalls."""

    @property
    def p(self) -> float:
        """P-value by Student's t."""
        if self.error == 0:
            return 1.0 if self.log == 0 else 0.0
        return 1.0 if math.isinf(self.error) else p_of(self.log / self.error, self.degrees)

    def interval(self, level: float) -> tuple[float, float]:
        """Returns the confidence interval of the logarithm."""
        if math.isinf(self.error):
            return -math.inf, math.inf
        half = t_of((1 + level) / 2, self.degrees) * self.error
        return self.log - half, self.log + half

    def least_seen(self, alpha: float) -> float:
        """Returns the smallest difference, as a share, that this design detects with a probability of 80 %."""
        if math.isinf(self.error):
            return math.inf
        return math.expm1(
            min(700.0, (t_of(1 - alpha / 2, self.degrees) + t_of(DETECTION_POWER, self.degrees)) * self.error)
        )

    def runs_to_detect(self, share: float, alpha: float) -> int | None:
        """Returns the number of runs per side that would detect this difference; ``None`` if the spread is unknown."""
        if self.design not in ("paired", "unpaired") or math.isinf(self.error):
            return None
        needed = [_least(self._detects(spread, math.log1p(share), alpha)) for spread in self._spreads()]
        if self.design == "unpaired" or needed[0] <= self.counts[0]:
            return needed[0]
        # With fewer pairs, long tails, which require the trimmed mean, are not visible.
        return max(PAIRS_LEAST, min(needed))

    def smallest_detected(self, runs: int, alpha: float) -> float:
        """Returns the smallest difference, as a share, that this number of runs per side detects."""
        sizes = [self._size(spread, runs, alpha) for spread in self._spreads()]
        return math.expm1(min(700.0, *(sizes if runs >= PAIRS_LEAST else sizes[:1])))

    def _spreads(self) -> list[float]:
        """Returns upper limits of the spread of all pairs, and with long tails also of the trimmed pairs."""
        estimates = [(self.spread, self.degrees, SPREAD_CONFIDENCE)]
        if self.typical is not None:
            estimates.append((*self.typical, TAIL_SPREAD_CONFIDENCE))
        return [
            spread * math.sqrt(degrees / chi_square_of(1 - confidence, degrees))
            for spread, degrees, confidence in estimates
        ]

    def _size(self, spread: float, runs: int, alpha: float) -> float:
        """Returns the logarithm of the smallest ratio that this number of runs detects."""
        sides = 1 if self.design == "paired" else 2
        degrees = sides * (runs - 1.0)
        return (t_of(1 - alpha / 2, degrees) + t_of(POWER, degrees)) * spread * math.sqrt(sides / runs)

    def _detects(self, spread: float, effect: float, alpha: float) -> Callable[[int], bool]:
        return lambda runs: self._size(spread, runs, alpha) <= effect


def _least(suffices: Callable[[int], bool]) -> int:
    """Returns the smallest sufficient number of runs."""
    high = 2
    while not suffices(high):
        if high >= RUNS_MAX:
            return RUNS_MAX
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return max(2, high)


NO_ESTIMATE = Estimate(0.0, math.inf, 1.0, "none", (1, 1), math.inf)


def paired(ratios: Sequence[float], orders: Sequence[int], resolution: float = 0.0) -> Estimate:
    """Estimates from logarithms of ratios within pairs; ``orders`` is 1 if ours came first and -1 if theirs did.

    With a drift, the second run of a pair differs from the first; the drift is removed if both orders occur. If pairs
    have long tails, equally on both sides, the trimmed mean decides.
    """
    n = len(ratios)
    mean, squares, degrees = fmean(ratios), _squares(ratios), n - 1.0
    balance = fmean(orders)
    turned = n * (1 - balance**2)
    has_drift = n >= ORDER_LEAST and min(orders.count(1), orders.count(-1)) >= 2
    log, scale = mean, 1 / n
    if has_drift:
        slope = sum((o - balance) * (r - mean) for o, r in zip(orders, ratios, strict=True)) / turned
        log, scale = mean - slope * balance, 1 / n + balance**2 / turned
        squares, degrees = max(0.0, squares - slope**2 * turned), n - 2.0
    spread = math.sqrt(max(squares / degrees, 2 * _rounding(resolution)))
    p, least = _flipped(ratios)
    every = Estimate(
        log, spread * math.sqrt(scale), degrees, "paired", (n, n), spread, has_drift, _correlation(ratios), p, least
    )
    middle = middle_of(ratios, spread)
    if middle is None:
        return every
    typical = math.sqrt(max(middle.spread**2, 2 * _rounding(resolution)))
    every = replace(every, typical=(typical, middle.degrees))
    if not middle.decides:
        return every
    # Stalls are not a drift: both orders are equally frequent, so removing a drift would only widen the interval.
    return replace(
        every,
        log=middle.log,
        error=typical / math.sqrt(n),
        degrees=middle.degrees,
        spread=typical,
        with_drift=False,
        stalls=middle.stalls,
        of_all=every.interval(0.95),
    )


def unpaired(
    ours: Sequence[float], theirs: Sequence[float], order: Sequence[int] = (), resolution: float = 0.0
) -> Estimate:
    """Estimates from the logarithms of each side (Welch). ``order`` has the positions in time of our runs, then of
    their runs, if the order is known and mixed enough to distinguish a drift from the difference."""
    counts = len(ours), len(theirs)
    spreads = [max(variance(side), _rounding(resolution)) for side in (ours, theirs)]
    p, least = _dealt(ours, theirs)
    spread = math.sqrt(fmean(spreads))
    if order and sum(counts) >= ORDER_LEAST:
        return _without_drift(ours, theirs, order, resolution, (p, least))
    parts = [spread / n for spread, n in zip(spreads, counts, strict=True)]
    squares = sum(part**2 / (n - 1) for part, n in zip(parts, counts, strict=True))
    degrees = sum(parts) ** 2 / squares if squares else sum(counts) - 2.0
    error, log = math.sqrt(sum(parts)), fmean(ours) - fmean(theirs)
    return Estimate(log, error, degrees, "unpaired", counts, spread, False, None, p, least)


def _without_drift(
    ours: Sequence[float],
    theirs: Sequence[float],
    order: Sequence[int],
    resolution: float,
    permuted: tuple[float, float],
) -> Estimate:
    """Fits side and position in time by least squares."""
    values, sides = [*ours, *theirs], [1.0] * len(ours) + [0.0] * len(theirs)
    y, g, t = ([value - fmean(column) for value in column] for column in (values, sides, [float(o) for o in order]))
    gg, tt, gt = _dot(g, g), _dot(t, t), _dot(g, t)
    gy, ty = _dot(g, y), _dot(t, y)
    determinant = gg * tt - gt * gt
    log, slope = (gy * tt - ty * gt) / determinant, (ty * gg - gy * gt) / determinant
    degrees = len(values) - 3.0
    left = [a - log * b - slope * c for a, b, c in zip(y, g, t, strict=True)]
    spread = math.sqrt(max(_dot(left, left) / degrees, _rounding(resolution)))
    error = spread * math.sqrt(tt / determinant)
    return Estimate(log, error, degrees, "unpaired", (len(ours), len(theirs)), spread, True, None, *permuted)


def is_mixed(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """Whether the order of the runs can distinguish a drift from a difference: the side explains less than half of the
    variance of the order."""
    places, sides = [float(o) for o in (*ours, *theirs)], [1.0] * len(ours) + [0.0] * len(theirs)
    g, t = ([value - fmean(column) for value in column] for column in (sides, places))
    return _dot(g, t) ** 2 < 0.5 * _dot(g, g) * _dot(t, t)


def batches(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Estimates from the intervals of one run per side, with batch means; batches are long relative to the correlation
    time."""
    sides = [_batched(side) for side in (ours, theirs)]
    if any(side is None for side in sides):
        return NO_ESTIMATE
    usable = [side for side in sides if side is not None]
    means = [fmean(side) for side in usable]
    if min(means) <= 0:
        return NO_ESTIMATE
    parts = [variance(side) / len(side) / mean**2 for side, mean in zip(usable, means, strict=True)]
    counts = len(usable[0]), len(usable[1])
    squares = sum(part**2 / (n - 1) for part, n in zip(parts, counts, strict=True))
    degrees = sum(parts) ** 2 / squares if squares else sum(counts) - 2.0
    return Estimate(
        math.log(means[0] / means[1]), math.sqrt(sum(parts)), degrees, "batches", counts, math.sqrt(sum(parts))
    )


def _batched(values: Sequence[float]) -> list[float] | None:
    """Returns the means of batches; ``None`` if there are too few."""
    length = max(1, math.ceil(BATCH_TAUS * correlation_time(values)))
    count = len(values) // length
    if count < BATCHES_LEAST:
        return None
    # The remainder is cut off at the beginning, where a run warms up.
    kept = values[len(values) - count * length :]
    return [fmean(kept[n * length : (n + 1) * length]) for n in range(count)]


def correlation_time(values: Sequence[float]) -> float:
    """Returns the correlation time in intervals: 1 + 2 times the sum of correlations up to the first non-positive one;
    (1 + rho) / (1 - rho) for an AR(1).

    >>> correlation_time([1.0, 2.0] * 20)
    1.0
    """
    mean = fmean(values)
    around = [value - mean for value in values]
    total = _dot(around, around)
    time = 1.0
    for lag in range(1, len(values) // 2 if total else 0):
        rho = _dot(around[lag:], around[:-lag]) / total
        if rho <= 0:
            break
        time += 2 * rho
    return time


def sequence(ratios: Sequence[float], alpha: float) -> tuple[float, float]:
    """Returns an interval of the mean of logarithms of ratios that is valid for every number of pairs at once. Even
    with an evaluation after each pair and a stop at any time, the error probability is at most ``alpha``.

    The interval inverts the Bayes factor of Student's t with a normal prior on the effect size, with one standard
    deviation; under the right Haar prior of the spread it is an e-value at any stopping time (Rouder et al., 2009;
    Hendriksen, de Heide and Grünwald, 2021).
    """
    n = len(ratios)
    if n < 2:
        return -math.inf, math.inf
    factor = (math.sqrt(1 + n) / alpha) ** (2 / n)
    if factor >= 1 + n:
        return -math.inf, math.inf
    squared = (factor - 1) / (1 - factor / (1 + n))
    half = math.sqrt(squared * _squares(ratios) / n)
    return fmean(ratios) - half, fmean(ratios) + half


def e_value(ratios: Sequence[float]) -> float:
    """Returns the e-value of the pairs, which is the evidence for a difference. The usual threshold is 20, valid at any
    stopping time.

    >>> e_value([0.01, -0.01, 0.02, -0.02]) < 1 < e_value([0.03, 0.031, 0.029, 0.03])
    True
    """
    n = len(ratios)
    squares = _squares(ratios)
    if n < 2 or squares == 0:
        return 1.0 if n < 2 or ratios[0] == 0 else math.inf
    x = n * fmean(ratios) ** 2 / squares
    logarithm = n / 2 * math.log((1 + x) / (1 + x / (1 + n))) - math.log(1 + n) / 2
    return math.exp(min(700.0, logarithm))


def outliers(values: Sequence[float]) -> list[int]:
    """Returns the indexes of outliers."""
    middle = median(values)
    apart = median(abs(value - middle) for value in values)
    return [n for n, value in enumerate(values) if apart and abs(value - middle) > OUTLIER_FACTOR * apart]


def holm_corrected(ps: Sequence[float]) -> list[float]:
    """Returns p-values corrected for multiple questions (Holm).

    >>> [round(p, 3) for p in holm_corrected([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    corrected, most = [0.0] * len(ps), 0.0
    for rank, n in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        most = max(most, min(1.0, (len(ps) - rank) * ps[n]))
        corrected[n] = most
    return corrected


def _flipped(ratios: Sequence[float]) -> tuple[float, float]:
    """Returns the p-value from random sign changes of the pairs, and the smallest possible p-value."""
    n, observed = len(ratios), abs(sum(ratios)) * (1 - 1e-12)
    if 2**n <= EXACT_MAX:
        sums = [0.0]
        for ratio in ratios:
            sums = [total + sign * ratio for total in sums for sign in (1, -1)]
        return sum(abs(total) >= observed for total in sums) / len(sums), 2 / 2**n
    draw = random.Random(1)
    drawn = sum(
        abs(sum(r if bit else -r for r, bit in zip(ratios, _bits(draw, n), strict=True))) >= observed
        for _ in range(DRAWS)
    )
    return (drawn + 1) / (DRAWS + 1), max(1 / (DRAWS + 1), math.ldexp(2.0, -n))


def _bits(draw: random.Random, n: int) -> list[bool]:
    drawn = draw.getrandbits(n)
    return [bool(drawn >> bit & 1) for bit in range(n)]


def _dealt(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """Returns the p-value from random assignments of runs to sides, and the smallest possible p-value."""
    values, n = [*ours, *theirs], len(ours)
    total, share = sum(values), 1 / n + 1 / len(theirs)

    def apart(own: float) -> float:
        return abs(own * share - total / len(theirs))

    observed, ways = apart(sum(ours)) * (1 - 1e-12), math.comb(len(values), n)
    least = (2 if n == len(theirs) else 1) / ways
    if ways <= EXACT_MAX:
        return sum(apart(sum(dealt)) >= observed for dealt in combinations(values, n)) / ways, least
    draw = random.Random(1)
    drawn = sum(apart(sum(draw.sample(values, n))) >= observed for _ in range(DRAWS))
    return (drawn + 1) / (DRAWS + 1), max(1 / (DRAWS + 1), least)


def _correlation(values: Sequence[float]) -> float | None:
    around = [value - fmean(values) for value in values]
    total = _dot(around, around)
    return sum(a * b for a, b in pairwise(around)) / total if total and len(values) > 3 else None


def _squares(values: Sequence[float]) -> float:
    return variance(values) * (len(values) - 1) if len(values) > 1 else 0.0


def _dot(first: Sequence[float], second: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(first, second, strict=True))


def _rounding(resolution: float) -> float:
    """Returns the variance of a uniform distribution over a bin of a histogram."""
    return resolution**2 / 12
