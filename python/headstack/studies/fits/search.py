"""Which settings are tried, and what each stands for.

A setting is a point of the unit cube, a share of what each unknown may be, so that the prior is even in it. The first
quarter are Sobol's points: all of the prior is looked at. Later rounds go where settings came near: a point of those
nearest is drawn by its weight and moved by as much as they are apart (population Monte Carlo; Beaumont, Cornuet, Marin
and Robert, Adaptive approximate Bayesian computation, Biometrika 2009), and how near is near enough shrinks until every
fitted figure is within its tolerance. A quarter of each round is of the prior still, so that no region is given up.

No setting is wasted: each is weighted by the prior over the density of all rounds together (Cornuet, Marin, Mira and
Robert, Adaptive multiple importance sampling, 2012), which is bounded, since the prior is part of it. Where there are
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
"""The first round is a quarter of what may be tried, each later one an eighth."""
OF_PRIOR = 0.25
"""Of each later round."""
NEAREST, OF_TRIED = 48, 4
"""Later rounds go out from so many settings, or a quarter of those tried if these are fewer; from all that reproduce
the figures where these are more."""
ENOUGH = 60.0
"""Settings that reproduce the figures, of equal weight: quantiles of these are known to a few percent."""
KEPT = 0.7
"""How often a listed value stays as it is; else it is any of them."""
LEAST_SPREAD = 0.01
"""Of an unknown, that rounds do not end in one point."""

_NORMAL = NormalDist()


@dataclass(frozen=True)
class _Kernel:
    """Where a later round drew from: parents by weight, each moved."""

    parents: list[Point]
    weights: list[float]
    """Their sum is 1."""
    spreads: list[float]
    """Of each unknown in a range: what its share is moved by."""
    counts: list[int]
    """Of each unknown with listed values: how many; 0 of one in a range."""

    def draw(self, generator: random.Random) -> Point:
        """A parent that was moved."""
        at, parent = generator.random(), self.parents[-1]
        for one, weight in zip(self.parents, self.weights, strict=True):
            at -= weight
            if at < 0:
                parent = one
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
        """Of drawing a point, where the prior's is 1."""
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
    """The normal density between two edges that reflect."""
    reach = range(-1 - int(2 * spread), 2 + int(2 * spread)) if spread > 0.1 else (0,)
    places = [place for turn in reach for place in (2 * turn + middle, 2 * turn - middle)]
    if spread <= 0.1:
        places.append(2 - middle)
    return sum(math.exp(-0.5 * ((share - place) / spread) ** 2) for place in places) / (spread * math.sqrt(2 * math.pi))


class Search:
    """The settings that are tried, round by round, of at most so many."""

    def __init__(self, axes: Sequence[Axis], settings: int, seed: int) -> None:
        self._axes, self._settings = axes, settings
        self._points: list[Point] = []
        self._distances: list[float] = []
        self._rounds: list[tuple[int, _Kernel | None]] = []
        """Of each: how many of its points are its kernel's."""
        self._densities: list[float] = []
        """Of each point, of all rounds: their sum by how many each drew."""
        self._generator = random.Random(seed)
        self._prior: Iterator[Point] = map(self._snapped, map(tuple, sobol(len(axes), seed)))
        counts = [_count(axis) for axis in axes]
        self.is_whole = all(counts) and math.prod(counts) <= settings
        """Whether there are so few settings that each is tried."""
        if self.is_whole:
            shares = [[(value + 0.5) / count for value in range(count)] for count in counts]
            self._prior = itertools.product(*shares)
            self._settings = math.prod(counts)

    def rounds(self) -> Iterator[list[Point]]:
        """Points to try; ``hear`` is told what came of each before the next are asked for."""
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

    def hear(self, points: list[Point], distances: list[float]) -> None:
        """How far each of a round's settings is from the figures: 1 is the farthest that reproduces them."""
        self._points += points
        self._distances += distances

    def weights(self) -> list[float]:
        """Of the points in their order: the share of the prior that each that reproduces the figures stands for, of a
        sum of 1; 0 for the others."""
        found = [
            1 / density if distance <= 1 else 0.0
            for density, distance in zip(self._densities, self._distances, strict=True)
        ]
        total = math.fsum(found)
        return [weight / total for weight in found] if total else found

    def of_equal_weight(self) -> float:
        """How many settings of equal weight would tell as much as those that reproduce the figures."""
        squares = math.fsum(weight * weight for weight in self.weights())
        return 1 / squares if squares else 0.0

    def _kernel(self) -> _Kernel | None:
        """Of the nearest settings; ``None`` where none has come to any figure."""
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
        """Of listed values, the middle of the share of each."""
        return tuple(
            (int(share * len(axis.values)) + 0.5) / len(axis.values) if isinstance(axis, Listed) else share
            for share, axis in zip(point, self._axes, strict=True)
        )


def _count(axis: Axis) -> int:
    """How many values there are, each as likely; 0 where they are without number, or are not as likely."""
    if isinstance(axis, Listed):
        return len(axis.values)
    return round(axis.high - axis.low) + 1 if axis.whole and not axis.log else 0


def _spread(shares: Sequence[float], weights: Sequence[float]) -> float:
    """Twice the weighted variance, as a deviation."""
    mean = math.fsum(share * weight for share, weight in zip(shares, weights, strict=True))
    variance = math.fsum(weight * (share - mean) ** 2 for share, weight in zip(shares, weights, strict=True))
    return max(math.sqrt(2 * variance), LEAST_SPREAD)
