"""``Past``: a disk's own latency over load, with its uncertainty.

Quarters of an hour under a similar load form a *spell*. The curve's error at a load is the same in all of them, so a
spell is one observation, however long: its variance is that of the misfit, plus that of the noise over its quarters.
The curve is a Bayesian regression whose priors are queueing theory, not data; far from observed loads its own variance
is large, and the disk is not judged there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from headstack.diagnosis.judging.evidence import POOL_MAX, Array, normal_quantile
from headstack.diagnosis.judging.expectation import SICK, Health, health_of, plain_health
from headstack.diagnosis.judging.levels import Slow
from headstack.diagnosis.judging.state import PastState

STEPS_NEEDED = 96
"""A day, so that it includes day and night."""
LIKE = np.array([math.log(1.1), math.log(1.1), 0.05])
"""Maximum differences of rate, size and share of reads between a step and its spell."""
SPELL = 16
"""Maximum number of steps: a constant load should give several spells per day."""
PRIOR = np.array([10.0, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1])
"""Standard deviations of the weights of ``_basis``, around 0. The slope over the rate is that of waiting, u / (1 - u),
at a utilization u of 33 %; that over size is between 0 (all setup) and 1 (all transfer), with a curvature of at most
1/8 of its square; the share of reads changes latency by about 50 %. The rest is of second order."""
RATE = (1, 4, 6)
"""The weights of ``_basis`` that belong to the rate."""
MISFIT, NOISE = 0.06, 0.04
"""Initial standard deviations: the median over loads of five simulated drives (0.03 to 0.14), and of quarters of an
hour under one load."""
SUPPOSED = 4.0
"""Weight of these in spells or quarters."""
MISFITS = np.geomspace(0.01, 1.0, 17)
BY_BUSY = 1.5
"""If latency varies this many times as much as busy time per request at equal load, the latter is judged."""
DEEPER = SICK
"""Excess of the maximum known queue depth that explains nothing: a slow disk has a deeper queue, too."""
BOUNDS = 13
"""Number of rates between the judged one and the farthest observed one at which a bound is evaluated."""
KEPT_EVERY = 8
WEEK = 672
"""A week in steps. Younger data are not learned from: a slowly failing disk would make its failure part of health."""
DRIFT = math.log(1.1)
"""Maximum change of the first day's expectation by all later learning."""


@dataclass
class Past:
    """A disk's past for one kind of request, learned on its first day, and later from healthy data a week old."""

    spells: list[list[float]] = field(default_factory=list)
    """First step, number of steps, means of the logarithm of latency and of features, and mean squares of the
    logarithms of latency and of busy time."""
    young: list[list[float]] = field(default_factory=list)
    """Individual steps of the last week, of which one in ``KEPT_EVERY`` is kept."""
    weights: Array = field(default_factory=lambda: np.zeros(len(PRIOR)))
    covariance: Array = field(default_factory=lambda: np.diag(PRIOR**2))
    busy_weights: Array = field(default_factory=lambda: np.zeros(len(PRIOR)))
    """Weights of the curve of busy time per request."""
    centre: Array = field(default_factory=lambda: np.zeros(3))
    rates: Array = field(default_factory=lambda: np.zeros(2))
    """Logarithms of the lowest and the highest learned rate."""
    deepest: float = 0.0
    """Logarithm of the maximum queue depth while busy."""
    by_busy: bool = False
    """Whether busy time per request is judged instead of latency: by Little's law, that is latency divided by queue
    depth. This is so if the depth changes for other reasons than the load."""
    deviation: float = NOISE
    """Standard deviation of steps at a known load."""
    health: Health = field(default_factory=Health)
    anchor: float = 0.0
    """The first day's expectation in the middle of its load."""
    middle: Array = field(default_factory=lambda: np.zeros(3))
    is_learned: bool = False
    """Whether the curve of the first day was fitted."""

    @property
    def learnt(self) -> int:
        """Number of steps that were learned from."""
        return int(sum(spell[1] for spell in self.spells))

    def residual(self, latency: float, features: Array) -> tuple[float, float, bool]:
        """Returns the logarithm of latency over the expected one; its trust, as the standard deviation at known loads
        over that at this one; and whether it also proves health. NaN without a conclusion.

        At a rate too far from all observed ones, the nearest known rate bounds the latency of a healthy disk: lower at
        a lower rate, higher at a higher one. Above the first bound a disk is slow, and below the second it is fine."""
        load = features[:3]
        busy_s = latency - float(features[3])
        # The latency of a healthy disk grows at most in proportion to queue depth.
        deeper = float(features[3]) if self.by_busy else max(float(features[3]) - self.deepest - DEEPER, 0.0)
        if math.sqrt(self._variance(load)) <= SICK:
            expected = min(self._expected(load), self._expected(np.array([max(load[0], self.rates[0]), *load[1:]])))
            residual, trust = latency - deeper - expected, self._trust(load)
            if deeper > 0.0 and not self.by_busy:
                # The queue may have grown because each request takes longer; then the busy time per request is longer,
                # too.
                return max(residual, busy_s - float(self._terms(load) @ self.busy_weights)), trust, False
            return residual, trust, True
        for rate in np.linspace(load[0], self.rates[1], BOUNDS)[1:]:
            bound = np.array([rate, *load[1:]])
            if rate > load[0] and math.sqrt(self._variance(bound)) <= SICK:
                residual = latency - deeper - self._expected(bound)
                return residual, self._trust(bound) * math.exp((load[0] - rate) / 2.0), False
        for rate in np.linspace(load[0], self.rates[0], BOUNDS)[1:]:
            bound = np.array([rate, *load[1:]])
            if rate < load[0] and math.sqrt(self._variance(bound)) <= SICK:
                residual = latency - self._expected(bound)
                return (residual, self._trust(bound), True) if residual <= 0.0 else (math.nan, 1.0, False)
        return math.nan, 1.0, False

    def learn(self, step: int, latency: float, features: Array, healthy: bool) -> None:
        """Adds a step. Unhealthy steps are not learned from."""
        if not self.is_learned:
            self._join(step, latency, features)
            if self.learnt == STEPS_NEEDED:
                self._fit()
                self.middle = np.median(np.array(self.spells)[:, 3:6], axis=0)
                self.anchor = self._expected(self.middle)
                self.is_learned = True
        elif not healthy:
            # The problem may have begun before it was detected.
            self.young = []
        elif step % KEPT_EVERY == 0:
            self.young.append(_spell(step, latency, features))
            if step - self.young[0][0] >= 2 * WEEK:
                old = [spell for spell in self.young if step - spell[0] >= WEEK]
                self.young = self.young[len(old) :]
                self.spells = (self.spells + old)[-POOL_MAX:]
                self._fit()
                moved = self._expected(self.middle) - self.anchor
                self.weights[0] -= moved - min(max(moved, -DRIFT), DRIFT)

    def _join(self, step: int, latency: float, features: Array) -> None:
        """Adds a step to the current spell, or begins one."""
        new = np.array(_spell(step, latency, features))
        if self.spells:
            last = np.array(self.spells[-1])
            count = last[1]
            if count < SPELL and (np.abs(new[3:6] - last[3:6]) <= LIKE).all():
                last[2:] += (new[2:] - last[2:]) / (count + 1)
                last[1] = count + 1
                self.spells[-1] = last.tolist()
                return
        self.spells.append(new.tolist())

    def _terms(self, load: Array) -> Array:
        return np.asarray(_basis(load[None, :] - self.centre)[0])

    def _expected(self, load: Array) -> float:
        return float(self._terms(load) @ self.weights)

    def _variance(self, load: Array) -> float:
        """Returns the variance of the curve at a load. If the rate was left out, it includes any slope over the rate
        outside of the observed rates."""
        basis = self._terms(load)
        beyond = 0.0
        if not self.covariance[RATE[0], RATE[0]] > 0.0:
            beyond = max(float(self.rates[0] - load[0]), float(load[0] - self.rates[1]), 0.0)
        return float(basis @ self.covariance @ basis + (PRIOR[RATE[0]] * beyond) ** 2)

    def _trust(self, load: Array) -> float:
        return self.deviation / math.sqrt(self.deviation**2 + self._variance(load))

    def _fit(self) -> None:
        rows = np.array(self.spells)
        count, load = rows[:, 1], rows[:, 3:6]
        self.centre = np.average(load, axis=0, weights=count)
        self.rates = np.array([rows[:, 3].min(), rows[:, 3].max()])
        self.deepest = float(rows[:, 6].max())
        basis = _basis(load - self.centre)
        of_latency = _regression(basis, rows[:, 2], rows[:, 7], count)
        of_busy = _regression(basis, rows[:, 2] - rows[:, 6], rows[:, 8], count)
        if not self.is_learned:
            self.by_busy = of_latency.deviation > BY_BUSY * of_busy.deviation
        curve = of_busy if self.by_busy else of_latency
        self.weights, self.covariance, self.deviation = curve.weights, curve.covariance, curve.deviation
        self.busy_weights = of_busy.weights
        freedom = max(len(rows) - basis.shape[1], 0) + SUPPOSED
        # Kish's design effect: steps of a spell share the misfit.
        together = float((count**2).sum() / count.sum()) - 1.0
        time = 1.0 + together * curve.misfit**2 / curve.deviation**2
        self.health = Health(self.deviation * _student(freedom), time, Slow(curve.misfit, freedom))

    def plain(self) -> PastState:
        return {
            "weights": self.weights.tolist(),
            "busy_weights": self.busy_weights.tolist(),
            "covariance": self.covariance.tolist(),
            "centre": self.centre.tolist(),
            "rates": self.rates.tolist(),
            "middle": self.middle.tolist(),
            "spells": self.spells,
            "young": self.young,
            "deepest": self.deepest,
            "by_busy": self.by_busy,
            "deviation": self.deviation,
            "anchor": self.anchor,
            "known": self.is_learned,
            **plain_health(self.health),
        }

    @staticmethod
    def of(plain: PastState) -> Past:
        return Past(
            spells=plain["spells"],
            young=plain["young"],
            weights=np.array(plain["weights"]),
            covariance=np.array(plain["covariance"]),
            busy_weights=np.array(plain["busy_weights"]),
            centre=np.array(plain["centre"]),
            rates=np.array(plain["rates"]),
            deepest=plain["deepest"],
            by_busy=plain["by_busy"],
            deviation=plain["deviation"],
            health=health_of(plain),
            anchor=plain["anchor"],
            middle=np.array(plain["middle"]),
            is_learned=plain["known"],
        )


def _spell(step: int, latency: float, features: Array) -> list[float]:
    return [float(step), 1.0, latency, *features.tolist(), latency**2, (latency - features[3]) ** 2]


def _basis(load: Array) -> Array:
    rate, size, share = load.T
    return np.column_stack([np.ones(len(load)), rate, size, share, rate**2, size**2, rate * size])


class Curve(NamedTuple):
    weights: Array
    covariance: Array
    misfit: float
    """Standard deviation over loads."""
    deviation: float
    """Standard deviation of steps, at any load."""


def _regression(basis: Array, mean: Array, square: Array, count: Array) -> Curve:
    """Fits the curve through means of spells. Latency grows with the rate: if it falls on average, the rate depends on
    the latency (a closed loop), explains nothing, and is left out."""
    curve = _fitted(basis, PRIOR, mean, square, count)
    slopes = curve.weights[1] + 2.0 * curve.weights[4] * basis[:, 1] + curve.weights[6] * basis[:, 2]
    if float(np.average(slopes, weights=count)) >= 0.0:
        return curve
    kept = np.delete(np.arange(len(PRIOR)), RATE)
    left = _fitted(basis[:, kept], PRIOR[kept], mean, square, count)
    weights, covariance = np.zeros(len(PRIOR)), np.zeros((len(PRIOR), len(PRIOR)))
    weights[kept] = left.weights
    covariance[np.ix_(kept, kept)] = left.covariance
    return left._replace(weights=weights, covariance=covariance)


def _fitted(basis: Array, prior: Array, mean: Array, square: Array, count: Array) -> Curve:
    """Fits a curve with the misfit of maximum likelihood for the means of spells. ``square`` are mean squares."""
    within = float((count * np.maximum(square - mean**2, 0.0)).sum())
    noise = math.sqrt((within + SUPPOSED * NOISE**2) / ((count - 1).sum() + SUPPOSED))
    level = float(np.average(mean, weights=count))
    best, curve = -math.inf, None
    for misfit in MISFITS.tolist():
        each = 1.0 / (misfit**2 + noise**2 / count)
        weighted = basis * each[:, None]
        precision = weighted.T @ basis + np.diag(prior**-2.0)
        weights = np.linalg.solve(precision, weighted.T @ (mean - level))
        left = float((each * (mean - level - basis @ weights) ** 2).sum() + ((weights / prior) ** 2).sum())
        likelihood = 0.5 * (float(np.log(each).sum()) - np.linalg.slogdet(precision)[1] - left)
        likelihood -= SUPPOSED / 2 * (2 * math.log(misfit) + (MISFIT / misfit) ** 2)
        if likelihood > best:
            weights[0] += level
            best, curve = likelihood, Curve(weights, np.linalg.inv(precision), misfit, math.hypot(misfit, noise))
    assert curve is not None
    return curve


def _student(freedom: float) -> Array:
    """Returns quantiles of Student's distribution, by Cornish and Fisher (Abramowitz and Stegun 26.7.5)."""
    z = normal_quantile((np.arange(POOL_MAX) + 0.5) / POOL_MAX)
    third = 3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z
    return np.asarray(
        z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2) + third / (384 * freedom**3)
    )
