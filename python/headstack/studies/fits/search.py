"""``Search``: selects the settings to try, and their weights.

A setting is a point of the unit cube, with a share of each unknown's range, so that the prior is uniform. The first
quarter are Sobol points, which cover the whole prior. Later rounds go to the vicinity of good settings: one of the
nearest is drawn by its weight and moved by the spread between them (population Monte Carlo; Beaumont, Cornuet, Marin
and Robert, Adaptive approximate Bayesian computation, Biometrika 2009), and the threshold shrinks until every fitted
figure is within its tolerance. 25 % of each round still come from the prior, so that no region is abandoned.

All settings are used: each is weighted by the prior over the density of all rounds together (Cornuet, Marin, Mira and
Robert, Adaptive multiple importance sampling, 2012), which is bounded, since the prior is part of it. If there are
fewer settings than may be tried, all of them are, and no weights are needed.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from headstack.simulation.designs import Axis, Listed, sobol

Point = tuple[float, ...]
"""A share of each unknown's values, 0 to 1."""

FIRST, LATER = 4, 8
"""The first round has 1/4 of the settings, each later one 1/8."""
OF_PRIOR = 0.25
"""Share of each later round that is drawn from the prior."""
NEAREST, OF_TRIED = 48, 4
"""Number of settings from which later rounds start, or 1/4 of those tried if that is less; all that reproduce the
figures if these are more."""
ENOUGH = 60.0
"""Sufficient effective number of reproducing settings: quantiles are then known to a few percent."""
KEPT = 0.7
"""Probability that a listed value stays unchanged; otherwise it is redrawn."""
LEAST_SPREAD = 0.01
"""Minimum spread of an unknown, so that rounds do not collapse to one point."""

_NORMAL = NormalDist()


@dataclass(frozen=True)
class _Kernel:
    """The distribution of a later round: parents by weight, each moved."""

    parents: list[Point]
    weights: list[float]
    """Weights with a sum of 1."""
    spreads: list[float]
    """For each unknown with a range, the spread of its moves."""
    counts: list[int]
    """For each unknown with listed values, their number; 0 for a range."""

    def draw(self, generator: random.Random) -> Point:
        """Draws a moved parent."""
        at, parent = generator.random(), self.parents[-1]
        for candidate, weight in zip(self.parents, self.weights, strict=True):
            at -= weight
            if at < 0:
                parent = candidate
                break
        return tuple(map(self._moved, parent, self.spreads, self.counts, (generator for _ in parent)))

    def _moved(self, share: float, spread: float, count: int, generator: random.Random) -> float:
        if count:
            return share if generator.random() < KEPT else (generator.randrange(count) + 0.5) / count
        moved = share + spread * _NORMAL.inv_cdf(max(generator.random(), 1e-12))
        # Edges reflect.
        moved = abs(moved) % 2
        return min(2 - moved if moved > 1 else moved, 1 - 1e-9)

    def density(self, point: Point) -> float:
        """Returns the density at a point, relative to the prior's."""
        total = 0.0
        for parent, weight in zip(self.parents, self.weights, strict=True):
            product = weight
            for share, middle, spread, count in zip(point, parent, self.spreads, self.counts, strict=True):
                if count:
                    product *= (1 - KEPT) + (KEPT * count if int(share * count) == int(middle * count) else 0.0)
                else:
                    product *= _reflected(share, middle, spread)
                if product < 1e-12:
                    break
            total += product
        return total


def _reflected(share: float, middle: float, spread: float) -> float:
    """Returns the normal density between two reflecting edges."""
    reach = range(-1 - int(2 * spread), 2 + int(2 * spread)) if spread > 0.1 else (0,)
    places = [place for turn in reach for place in (2 * turn + middle, 2 * turn - middle)]
    if spread <= 0.1:
        places.append(2 - middle)
    return sum(math.exp(-0.5 * ((share - place) / spread) ** 2) for place in places) / (spread * math.sqrt(2 * math.pi))


class Search:
    """The settings that are tried, round by round, up to a maximum number."""

    def __init__(self, axes: Sequence[Axis], settings: int, seed: int) -> None:
        self._axes, self._settings = axes, settings
        self._points: list[Point] = []
        self._distances: list[float] = []
        self._rounds: list[tuple[int, _Kernel | None]] = []
        """For each round, the number of points from its kernel."""
        self._densities: list[float] = []
        """For each point, the sum of all rounds' densities weighted by their numbers of points."""
        self._generator = random.Random(seed)
        self._prior: Iterator[Point] = map(self._snapped, map(tuple, sobol(len(axes), seed)))
        counts = [_count(axis) for axis in axes]
        self.is_whole = all(counts) and math.prod(counts) <= settings
        """Whether there are so few settings that all are tried."""
        if self.is_whole:
            shares = [[(value + 0.5) / count for value in range(count)] for count in counts]
            self._prior = itertools.product(*shares)
            self._settings = math.prod(counts)

    def rounds(self) -> Iterator[list[Point]]:
        """Yields points to try; ``hear`` must be called with their results before the next ones are requested."""
        if self.is_whole:
            yield self._begun(self._settings, None)
            return
        yield self._begun(max(1, self._settings // FIRST), None)
        while len(self._points) < self._settings and self.of_equal_weight() < ENOUGH:
            count = min(max(1, self._settings // LATER), self._settings - len(self._points))
            yield self._begun(count, self._kernel())

    def _begun(self, count: int, kernel: _Kernel | None) -> list[Point]:
        drawn = 0 if kernel is None else round(count * (1 - OF_PRIOR))
        points = list(itertools.islice(self._prior, count - drawn))
        if kernel is not None:
            points += [kernel.draw(self._generator) for _ in range(drawn)]
            for place, point in enumerate(self._points):
                self._densities[place] += drawn * kernel.density(point)
        self._rounds.append((drawn, kernel))
        of_prior = len(self._points) + len(points) - sum(drawn for drawn, _ in self._rounds)
        self._densities = [density + count - drawn for density in self._densities]
        self._densities += [
            of_prior + sum(drawn * kernel.density(point) for drawn, kernel in self._rounds if kernel is not None)
            for point in points
        ]
        return points

    def add_results(self, points: list[Point], distances: list[float]) -> None:
        """Adds the distance of each setting of a round from the figures: up to 1 it reproduces them."""
        self._points += points
        self._distances += distances

    def weights(self) -> list[float]:
        """Returns the weights of the points in order, with a sum of 1 over those that reproduce the figures; 0 for the
        others."""
        inverse_densities = [
            1 / density if distance <= 1 else 0.0
            for density, distance in zip(self._densities, self._distances, strict=True)
        ]
        total = math.fsum(inverse_densities)
        return [weight / total for weight in inverse_densities] if total else inverse_densities

    def of_equal_weight(self) -> float:
        """Returns the effective number of reproducing settings."""
        squares = math.fsum(weight * weight for weight in self.weights())
        return 1 / squares if squares else 0.0

    def _kernel(self) -> _Kernel | None:
        """Returns the kernel of the nearest settings; ``None`` if none has any figure."""
        most = max(1, min(NEAREST, len(self._points) // OF_TRIED))
        near = [distance for distance in sorted(self._distances)[:most] if math.isfinite(distance)]
        within = max(1.0, max(near, default=0.0))
        chosen = [place for place, distance in enumerate(self._distances) if distance <= within]
        if not chosen:
            return None
        parents = [self._points[place] for place in chosen]
        weights = [1 / self._densities[place] for place in chosen]
        total = math.fsum(weights)
        weights = [weight / total for weight in weights]
        counts = [len(axis.values) if isinstance(axis, Listed) else 0 for axis in self._axes]
        return _Kernel(parents, weights, [_spread(shares, weights) for shares in zip(*parents, strict=True)], counts)

    def _snapped(self, point: Point) -> Point:
        """Returns the point with listed values at the middle of their share."""
        return tuple(
            (int(share * len(axis.values)) + 0.5) / len(axis.values) if isinstance(axis, Listed) else share
            for share, axis in zip(point, self._axes, strict=True)
        )


def _count(axis: Axis) -> int:
    """Returns the number of equally likely values; 0 if they are continuous, or not equally likely."""
    if isinstance(axis, Listed):
        return len(axis.values)
    return round(axis.high - axis.low) + 1 if axis.whole and not axis.log else 0


def _spread(shares: Sequence[float], weights: Sequence[float]) -> float:
    """Returns the standard deviation for twice the weighted variance."""
    mean = math.fsum(share * weight for share, weight in zip(shares, weights, strict=True))
    variance = math.fsum(weight * (share - mean) ** 2 for share, weight in zip(shares, weights, strict=True))
    return max(math.sqrt(2 * variance), LEAST_SPREAD)
