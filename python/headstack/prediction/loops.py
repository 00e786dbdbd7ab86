"""From the throughput of a system by its depth to that of loops: clients that think and compute, and arrivals.

The system is a station whose rate depends on how many requests it holds (the flow-equivalent server of Chandy, Herzog
and Woo, 1975); its rates are those of the closed loops of the tests.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log

from headstack.prediction.environment import Closed, Open, Staged

SATURATED_SHARE = 0.98
"""Of the greatest throughput: an open loop above it has no steady state that could be told from none."""
NEGLIGIBLE = 1e-9
HUGE = 1e100
"""Weights beyond this are scaled down."""


@dataclass(frozen=True)
class Reached:
    """What a loop comes to."""

    iops: float
    mean_ns: float
    saturated: bool = False


class Rates:
    """Requests a second by requests held: between depths of the tests a straight line of logarithms, below one in
    proportion."""

    def __init__(self, depths: Sequence[float], service_ns: Sequence[float]) -> None:
        self._depths = [log(depth) for depth in depths]
        self._rates = [-log(service / 1e9) for service in service_ns]
        self.depth_max = depths[-1] if depths else 0.0

    def at(self, depth: float) -> float:
        """Requests a second at a depth of the tests; beyond them that of the deepest."""
        if depth < 1:
            return depth * exp(self._rates[0])
        at = log(depth)
        if at >= self._depths[-1]:
            return exp(self._rates[-1])
        upper = bisect_right(self._depths, at)
        x0, x1, y0, y1 = self._depths[upper - 1], self._depths[upper], self._rates[upper - 1], self._rates[upper]
        return exp(y0 + (y1 - y0) * (at - x0) / (x1 - x0))

    def scaled(self, factor: float) -> Rates:
        """All rates times a factor."""
        other = Rates((), ())
        other._depths, other.depth_max = self._depths, self.depth_max
        other._rates = [rate + log(factor) for rate in self._rates]
        return other

    @property
    def most(self) -> float:
        """The greatest rate at any depth."""
        return exp(max(self._rates))


def closed(load: Closed, rates: Rates) -> Reached:
    """A closed loop: by Little's law alone where nobody thinks, else the product form of thinkers, processors and
    system."""
    if load.think_ns == 0 and load.processors is None:
        iops = rates.at(load.outstanding)
        return Reached(iops, load.outstanding / iops * 1e9)
    clients = max(1, round(load.outstanding))
    stations: list[Callable[[int], float]] = [lambda held: rates.at(held)]
    if load.processors is not None and load.processors.demand_ns > 0:
        count, demand_s = load.processors.count, load.processors.demand_ns / 1e9
        stations.append(lambda held: min(held, count) / demand_s)
    return product_form(clients, load.think_ns / 1e9, stations)


def product_form(clients: int, think_s: float, stations: Sequence[Callable[[int], float]]) -> Reached:
    """Exact mean value analysis with rates that depend on the number held (Reiser and Lavenberg, 1980); the first
    station's response is told."""
    # held[s][j]: probability that station s holds j, with one client less than the round computes.
    held = [[1.0] for _ in stations]
    throughput, times = 0.0, [0.0] * len(stations)
    for population in range(1, clients + 1):
        times = [sum(j / rate(j) * held[s][j - 1] for j in range(1, population + 1)) for s, rate in enumerate(stations)]
        throughput = population / (think_s + sum(times))
        for s, rate in enumerate(stations):
            behind = [throughput / rate(j) * held[s][j - 1] for j in range(1, population + 1)]
            # Rounding can leave less than nothing for the empty station.
            held[s] = [max(0.0, 1 - sum(behind)), *behind]
    return Reached(throughput, times[0] * 1e9)


def opened(load: Open, rates: Rates) -> Reached:
    """Poisson arrivals: the birth-death process of the system's rates."""
    most = rates.most
    if load.rate_per_s >= SATURATED_SHARE * most:
        return Reached(most, float("inf"), saturated=True)
    # A queue that is served slower as it grows, by the tests' scatter or in truth, is taken to stay as fast as it was:
    # the tests with arrivals know better. Beyond their depths the weights are a geometric series, which has a sum.
    weight, weights, held, served = 1.0, 1.0, 0.0, 0.0
    for depth in range(1, int(rates.depth_max) + 1):
        served = max(served, rates.at(depth))
        ratio = load.rate_per_s / served
        weight *= ratio
        weights += weight
        held += depth * weight
        # What follows is less than a geometric series.
        if ratio < 1 and weight * depth < NEGLIGIBLE * weights * (1 - ratio) ** 2:
            return Reached(load.rate_per_s, held / weights / load.rate_per_s * 1e9)
        if weights > HUGE:
            weight, weights, held = weight / HUGE, weights / HUGE, held / HUGE
    ratio = load.rate_per_s / most
    weights += weight * ratio / (1 - ratio)
    held += weight * (rates.depth_max * ratio / (1 - ratio) + ratio / (1 - ratio) ** 2)
    return Reached(load.rate_per_s, held / weights / load.rate_per_s * 1e9)


def staged(load: Staged, rates: Rates) -> Reached:
    """Rounds of stages: each fills its depth, and drains before the next begins."""
    round_s, waited_s = load.pause_ns / 1e9, 0.0
    for requests in load.stages:
        deepest = min(load.outstanding, requests)
        draining = [1 / rates.at(held) for held in range(1, deepest)]
        full_s = (requests - deepest + 1) / rates.at(deepest)
        round_s += full_s + sum(draining)
        waited_s += full_s * deepest + sum(held * took for held, took in enumerate(draining, 1))
    total = sum(load.stages)
    return Reached(total / round_s, waited_s / total * 1e9)


def reached(load: Closed | Open | Staged, rates: Rates) -> Reached:
    """What a load comes to on a system of these rates."""
    match load:
        case Closed():
            return closed(load, rates)
        case Open():
            return opened(load, rates)
        case Staged():
            return staged(load, rates)
