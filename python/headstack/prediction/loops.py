"""Throughput of loops with thinking and computing clients, and of open loops, from a system's throughput by queue
depth.

The system is a station whose rate depends on the number of requests in it (the flow-equivalent server of Chandy, Herzog
and Woo, 1975); its rates are those of the tests' closed loops.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log

from headstack.prediction.environment import Closed, Open, Staged

SATURATED_SHARE = 0.98
"""Share of the maximum throughput above which an open loop cannot be distinguished from a saturated one."""
NEGLIGIBLE = 1e-9
HUGE = 1e100
"""Larger weights are scaled down."""


@dataclass(frozen=True)
class LoopResult:
    """The result of a loop."""

    iops: float
    mean_ns: float
    saturated: bool = False


class Rates:
    """Requests per second by queue depth, interpolated in logarithms between the tests' depths, and proportional below
    one."""

    def __init__(self, depths: Sequence[float], service_ns: Sequence[float]) -> None:
        self._depths = [log(depth) for depth in depths]
        self._rates = [-log(service / 1e9) for service in service_ns]
        self.depth_max = depths[-1] if depths else 0.0

    def at(self, depth: float) -> float:
        """Returns the rate at a queue depth; above the tests' depths that of the deepest."""
        if depth < 1:
            return depth * exp(self._rates[0])
        at = log(depth)
        if at >= self._depths[-1]:
            return exp(self._rates[-1])
        upper = bisect_right(self._depths, at)
        x0, x1, y0, y1 = self._depths[upper - 1], self._depths[upper], self._rates[upper - 1], self._rates[upper]
        return exp(y0 + (y1 - y0) * (at - x0) / (x1 - x0))

    def scaled(self, factor: float) -> Rates:
        """Returns all rates multiplied by a factor."""
        other = Rates((), ())
        other._depths, other.depth_max = self._depths, self.depth_max
        other._rates = [rate + log(factor) for rate in self._rates]
        return other

    @property
    def most(self) -> float:
        """The maximum rate at any depth."""
        return exp(max(self._rates))


def solve_closed(load: Closed, rates: Rates) -> LoopResult:
    """Solves a closed loop: by Little's law without think time, else by the product form of thinkers, processors and
    system."""
    if load.think_ns == 0 and load.processors is None:
        iops = rates.at(load.queue_depth)
        return LoopResult(iops, load.queue_depth / iops * 1e9)
    clients = max(1, round(load.queue_depth))
    stations: list[Callable[[int], float]] = [lambda held: rates.at(held)]
    if load.processors is not None and load.processors.demand_ns > 0:
        count, demand_s = load.processors.count, load.processors.demand_ns / 1e9
        stations.append(lambda held: min(held, count) / demand_s)
    return product_form(clients, load.think_ns / 1e9, stations)


def product_form(clients: int, think_s: float, stations: Sequence[Callable[[int], float]]) -> LoopResult:
    """Solves a network by exact mean value analysis with rates that depend on the queue length (Reiser and Lavenberg,
    1980); returns the response of the first station."""
    # held[s][j]: probability that station s holds j, with one client less than the current round.
    held = [[1.0] for _ in stations]
    throughput, times = 0.0, [0.0] * len(stations)
    for population in range(1, clients + 1):
        times = [sum(j / rate(j) * held[s][j - 1] for j in range(1, population + 1)) for s, rate in enumerate(stations)]
        throughput = population / (think_s + sum(times))
        for s, rate in enumerate(stations):
            behind = [throughput / rate(j) * held[s][j - 1] for j in range(1, population + 1)]
            # Rounding can make the probability of an empty station negative.
            held[s] = [max(0.0, 1 - sum(behind)), *behind]
    return LoopResult(throughput, times[0] * 1e9)


def solve_open(load: Open, rates: Rates) -> LoopResult:
    """Solves Poisson arrivals by the birth-death process of the system's rates."""
    most = rates.most
    if load.rate_per_s >= SATURATED_SHARE * most:
        return LoopResult(most, float("inf"), saturated=True)
    # A rate that falls as the queue grows, whether by scatter or in truth, is taken as constant: the tests with
    # arrivals correct this. Above their depths the weights form a geometric series, which has a sum.
    weight, weights, held, served = 1.0, 1.0, 0.0, 0.0
    for depth in range(1, int(rates.depth_max) + 1):
        served = max(served, rates.at(depth))
        ratio = load.rate_per_s / served
        weight *= ratio
        weights += weight
        held += depth * weight
        # The rest is less than a geometric series.
        if ratio < 1 and weight * depth < NEGLIGIBLE * weights * (1 - ratio) ** 2:
            return LoopResult(load.rate_per_s, held / weights / load.rate_per_s * 1e9)
        if weights > HUGE:
            weight, weights, held = weight / HUGE, weights / HUGE, held / HUGE
    ratio = load.rate_per_s / most
    weights += weight * ratio / (1 - ratio)
    held += weight * (rates.depth_max * ratio / (1 - ratio) + ratio / (1 - ratio) ** 2)
    return LoopResult(load.rate_per_s, held / weights / load.rate_per_s * 1e9)


def solve_staged(load: Staged, rates: Rates) -> LoopResult:
    """Solves rounds of stages: each fills its depth, and drains before the next begins."""
    round_s, waited_s = load.pause_ns / 1e9, 0.0
    for requests in load.stages:
        deepest = min(load.queue_depth, requests)
        draining = [1 / rates.at(held) for held in range(1, deepest)]
        full_s = (requests - deepest + 1) / rates.at(deepest)
        round_s += full_s + sum(draining)
        waited_s += full_s * deepest + sum(held * took for held, took in enumerate(draining, 1))
    total = sum(load.stages)
    return LoopResult(total / round_s, waited_s / total * 1e9)


def solve(load: Closed | Open | Staged, rates: Rates) -> LoopResult:
    """Returns the result of a load on a system with these rates."""
    match load:
        case Closed():
            return solve_closed(load, rates)
        case Open():
            return solve_open(load, rates)
        case Staged():
            return solve_staged(load, rates)
