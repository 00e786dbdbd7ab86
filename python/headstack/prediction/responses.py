"""``Responses``: distributions of an environment's response times from those of the tests.

Random reads and writes are a mixture of the tests of each. Their difference shrinks with queue depth by a factor for
each percentile, from tests of both. Mixes of random and sequential requests are a mixture of the tests around them, and
open loops of the tests with arrivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, log
from typing import TypeAlias

from headstack.prediction.grid import MIXED, OPEN, RANDOM, SEQUENTIAL, Table
from headstack.prediction.percentiles import (
    ALL_AROUND,
    AROUND,
    FIGURES,
    LEVELS,
    UNCERTAINTY_MIN,
    Part,
    Percentile,
    Percentiles,
    mixture_percentiles,
    part,
)

Terms: TypeAlias = list[tuple[int, float]]
"""Positions in a table at its first depth, with their weights."""

FIRST = [(0, 1.0)]
"""The only depth of a table that has none."""


@dataclass(frozen=True)
class MixturePart:
    """Requests with the response times of one kind of test: the table, and positions whose weights sum to their
    share."""

    table: str
    terms: Terms


class Responses:
    """The distributions of one system's tests, ready for predictions."""

    def __init__(self, tables: dict[str, Table]) -> None:
        self._random, self._mixed = tables[RANDOM], tables[MIXED]
        self._depths = self._random.knots("depth")
        self._log_depths = [log(depth) for depth in self._depths]
        self._tables = {name: tables[name] for name in (RANDOM, SEQUENTIAL, MIXED, OPEN)}
        self._times = {name: _by_level(table) for name, table in self._tables.items()}
        self.factors = self._factors()
        """For each percentile, and each test of random reads and writes, the logarithm of its ratio to the
        mixture's."""

    def ratios(self, alike: Sequence[MixturePart], depths: Sequence[tuple[int, float]]) -> Percentiles:
        """Returns the percentiles between two depths of the tests, or at one."""
        depth = self._depths[depths[-1][0]]
        parts: list[Part] = []
        mean = 0.0
        for component in alike:
            share = sum([weight for _, weight in component.terms])
            # Mean times per request of all classes: in a closed loop, response times scale with all of them.
            terms = [
                (at + index, mass * weight * self._depths[index] / depth)
                for index, mass in depths
                for at, weight in component.terms
            ]
            times = [
                sum([weight * level[at] for at, weight in terms]) / share for level in self._times[component.table]
            ]
            parts.append(part(share, times))
            time_ns = self._tables[component.table].time_ns
            mean += sum([weight * time_ns[at] for at, weight in terms])
        # One pass computes all of them; they are separated again.
        logs = mixture_percentiles(parts, ALL_AROUND)
        return {name: self._percentile(logs, around, mean) for name, around in AROUND.items()}

    @staticmethod
    def _percentile(logs: Sequence[float], around: Sequence[float], mean: float) -> Percentile:
        below, at_level, above = (logs[ALL_AROUND.index(level)] for level in around)
        return Percentile(at_level - log(mean), max(UNCERTAINTY_MIN, (above - below) / 2))

    def at_depth(self, alike: Sequence[MixturePart], factor: Terms, depth: float) -> Percentiles:
        """Returns the percentiles of a closed loop."""
        around = self._around(depth)
        return {
            name: percentile._replace(
                ratio=percentile.ratio + sum([mass * self._factor(name, factor, index) for index, mass in around])
            )
            for name, percentile in self.ratios(alike, around).items()
        }

    def percentiles_by_depth(
        self, alike: Sequence[MixturePart], factor: Terms, depths: Sequence[tuple[int, float]]
    ) -> Percentiles:
        """Returns the percentiles of requests by queue depth on arrival, as a mixture of the closed loops tested at
        these depths. Above the deepest test, times grow in proportion."""
        masses: dict[tuple[int, int], float] = {}
        deepest = self._depths[-1]
        for depth, mass in depths:
            over = max(0, round(2 * log(depth / deepest, 2)))
            for index, weight in self._around(depth):
                masses[index, over] = masses.get((index, over), 0.0) + mass * weight
        parts: list[Part] = []
        mean = 0.0
        for (index, over), mass in masses.items():
            slower = self._depths[index] * 2 ** (over / 2)
            for component in alike:
                share = sum([weight for _, weight in component.terms])
                terms = [(at + index, weight * slower) for at, weight in component.terms]
                times = [
                    sum([weight * level[at] for at, weight in terms]) / share for level in self._times[component.table]
                ]
                parts.append(part(share * mass, times))
                time_ns = self._tables[component.table].time_ns
                mean += mass * sum([weight * time_ns[at] for at, weight in terms])
        logs = mixture_percentiles(parts, ALL_AROUND)
        return {name: self._percentile(logs, around, mean) for name, around in AROUND.items()}

    def of_arrivals(self, alike: Sequence[MixturePart]) -> Percentiles:
        """Returns the percentiles of an open loop."""
        return self.ratios(alike, FIRST)

    def _factor(self, name: str, factor: Terms, index: int) -> float:
        values = self.factors[name]
        return sum([weight * values[place + index] for place, weight in factor])

    def _around(self, depth: float) -> list[tuple[int, float]]:
        """Returns the depths of the tests around one, with their weights."""
        at = log(max(depth, 1.0))
        for index, upper in enumerate(self._log_depths):
            if at <= upper:
                if index == 0 or at == upper:
                    return [(index, 1.0)]
                lower = self._log_depths[index - 1]
                share = (at - lower) / (upper - lower)
                return [(index - 1, 1 - share), (index, share)]
        return [(len(self._depths) - 1, 1.0)]

    def _factors(self) -> dict[str, list[float]]:
        factors = {name: [0.0] * len(self._mixed.time_ns) for name in FIGURES}
        for place, (*at, depth) in enumerate(product(*(axis.knots for axis in self._mixed.axes))):
            align, random, read, size, range_ = at
            if random < 1:
                continue
            ratios = self.ratios(self._classes(align, read, size, range_), [(self._depths.index(depth), 1.0)])
            for name, level in FIGURES.items():
                factors[name][place] = _shape(self._mixed, place, level) - ratios[name].ratio
        return factors

    def _classes(self, align: float, read: float, size: float, range_: float) -> list[MixturePart]:
        """Returns random reads and writes, as in a test of both."""
        shares = [(is_read, share) for is_read, share in ((1.0, read), (0.0, 1 - read)) if share > 0]
        first = self._depths[0]
        return [
            MixturePart(RANDOM, [(self._random.place(align, is_read, size, range_, first), share)])
            for is_read, share in shares
        ]


def _by_level(table: Table) -> list[list[float]]:
    """Returns, at each level, the time of each test relative to that of the loop: response times divided by depth."""
    return [
        [time * shape[n] for time, shape in zip(table.time_ns, table.shape, strict=True)] for n in range(len(LEVELS))
    ]


def _shape(table: Table, place: int, level: float) -> float:
    """Returns the logarithm of a percentile relative to the mean of one test."""
    return log(max(table.shape[place][LEVELS.index(level)], exp(-10)))
