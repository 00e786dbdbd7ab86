"""Fits a description so that a simulated device has the response times of the real one.

Answers to a test are compared by statistics, each a logarithm with its sampling error. Values that are not directly
visible are found by simulation: each candidate runs the requests that the device ran.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headstack.twin.device import Answers, Floats, Requests, SimulatedDevice
from headstack.twin.learnt import System
from headstack.twin.session import ProbeRun

SHARES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99)
"""Compared quantiles; a test of some thousand requests does not determine more extreme ones."""
FLOOR = 0.003
"""Minimum error of a statistic: two units of one model differ by as much."""

QUICK_NS = 1_000_000
"""Shorter responses have not waited for the medium."""

Statistics = Callable[[Requests, Answers], tuple[Floats, Floats]]
"""Logarithms, and the standard error of each."""


def quantiles(requests: Requests, answers: Answers) -> tuple[Floats, Floats]:
    """Returns the mean and some quantiles of the response time."""
    times = np.sort(answers.response_ns)
    count = len(times)
    ranks = np.array(SHARES) * (count - 1)
    error = np.sqrt(count * np.array(SHARES) * (1 - np.array(SHARES)))
    low, high = (np.log(times[np.clip(np.round(ranks + way * error), 0, count - 1).astype(int)]) for way in (-1, 1))
    mean_error = times.std() / times.mean() / np.sqrt(count)
    values = np.concatenate([[np.log(times.mean())], np.log(times[np.round(ranks).astype(int)])])
    return values, np.hypot(np.concatenate([[mean_error], (high - low) / 2]), FLOOR)


LAGS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Distances in issue order at which overtaking is counted."""
NEAREST = 1e-5
"""Shares of the capacity below which distances count as equal."""


def order(requests: Requests, answers: Answers) -> tuple[Floats, Floats]:
    """Returns the distribution of response times, and the order of service: overtaking shows how many commands the
    firmware chose from, and the distances between consecutive positions show its criterion."""
    values, errors = quantiles(requests, answers)
    done = answers.completed_ns
    count = len(done)
    overtaken = np.array([np.mean(done[:-lag] > done[lag:]) if lag < count else 0.0 for lag in LAGS])
    served = requests.offsets[np.argsort(done, kind="stable")].astype(np.float64)
    moves = np.diff(served)
    upwards = moves > 0
    shares = np.array([upwards.mean(), np.mean(upwards[1:] == upwards[:-1])])
    chances = np.concatenate([overtaken, shares])
    far = np.sort(np.log(np.abs(moves) / served.max() + NEAREST))
    quarters = far[[len(far) // 4, len(far) // 2, 3 * len(far) // 4]]
    # The error of a share is binomial, that of a quartile follows from its rank.
    chance_errors = np.sqrt(np.maximum(chances * (1 - chances), 1 / count) / count)
    around = [far[min(len(far) - 1, int(len(far) * (rank + 0.5 / np.sqrt(count))))] for rank in (0.25, 0.5, 0.75)]
    statistics = np.concatenate([values, chances, quarters])
    return statistics, np.concatenate([errors, np.hypot(1.4 * chance_errors, FLOOR), np.hypot(around - quarters, 0.02)])


def means(requests: Requests, answers: Answers) -> tuple[Floats, Floats]:
    """Returns the mean response time, and the share of buffer hits: with a repeating pattern, quantiles jump between
    its steps."""
    times = answers.response_ns
    quick = float(np.mean(times < QUICK_NS))
    return np.array([np.log(times.mean()), 3 * quick]), np.array([0.02, 0.1])


@dataclass(frozen=True)
class Comparison:
    """Statistics of a model compared with the device's."""

    test: str
    measured: Floats
    model: Floats
    sd: Floats

    @property
    def score(self) -> float:
        """The error: for each statistic the logarithm of one plus its squared difference in standard errors, about 0.6
        if only chance differs, so that no single statistic dominates."""
        return float(np.mean(np.log1p(((self.measured - self.model) / self.sd) ** 2)))


def run_tests(
    system: System, runs: Sequence[ProbeRun], random: np.random.Generator, draws: int = 1
) -> list[list[tuple[Requests, Answers]]]:
    """Runs each test on the system; tests that can be drawn again run ``draws`` times."""
    device = SimulatedDevice(system, int(random.integers(1 << 31)))
    results = []
    for run in runs:
        if run.rested_s:
            device.rest(run.rested_s)
        lists = [run.requests] if run.again is None else [run.again(random) for _ in range(draws)]
        results.append([(requests, device.ask(requests)) for requests in lists])
    return results


def compare(
    system: System,
    runs: Sequence[ProbeRun],
    random: np.random.Generator,
    statistics: Mapping[str, Statistics] = {},
    draws: int = 1,
) -> list[Comparison]:
    """Compares the system with the device, test by test."""
    comparisons = []
    for run, lists in zip(runs, run_tests(system, runs, random, draws), strict=True):
        statistic = statistics.get(run.test, quantiles)
        measured, sd = statistic(run.requests, run.answers)
        model = np.mean([statistic(*answers)[0] for answers in lists], axis=0)
        comparisons.append(Comparison(run.test, measured, model, sd * np.sqrt(1 + 1 / len(lists))))
    return comparisons


def score(comparisons: Sequence[Comparison]) -> float:
    """Returns the score of several tests."""
    return float(np.mean([comparison.score for comparison in comparisons]))


@dataclass(frozen=True)
class Range:
    """The range of a parameter that many devices may lack."""

    name: str
    low: float
    high: float
    without: float | None = None
    """Its value for a device that lacks it; ``None`` if all devices have it."""


def evolve(
    ranges: Sequence[Range],
    error_of: Callable[[Floats], float],
    random: np.random.Generator,
    first: Sequence[Floats] = (),
    population: int = 32,
    generations: int = 5,
    renewed: float = 0.0,
) -> list[tuple[float, Floats]]:
    """Returns points with a small error, the best first: those of the last generation, and their elders.

    A share of each child's parts is drawn afresh, so that values missing in all elders can still appear.

    A cross-entropy search: each generation is drawn around the best quarter of those before it, whose spread narrows,
    and any part may be absent that a device may lack.
    """
    low, high = np.array([parameter.low for parameter in ranges]), np.array([parameter.high for parameter in ranges])
    without = np.array([np.nan if parameter.without is None else parameter.without for parameter in ranges])
    may_lack = ~np.isnan(without)

    def scored(theta: Floats) -> tuple[float, Floats]:
        return error_of(theta), theta

    def fresh() -> Floats:
        theta = low + (high - low) * random.random(len(low))
        return np.where(may_lack & (random.random(len(low)) < 0.5), without, theta)

    elders = [scored(theta) for theta in [*first, *(fresh() for _ in range(2 * population - len(first)))]]
    for _ in range(generations):
        elders.sort(key=lambda elder: elder[0])
        elite = np.array([theta for _, theta in elders[: population // 4]])
        spread = elite.std(axis=0) * 0.8 + (high - low) * 0.02
        lacking = np.where(may_lack, np.mean(elite == without, axis=0), 0.0)
        children = []
        for _ in range(population):
            theta = elite[random.integers(len(elite))].copy()
            moves = random.standard_normal(len(theta)) * spread
            # Keep both alternatives in the population.
            lacks = may_lack & (random.random(len(theta)) < np.clip(lacking, 0.1, 0.9) * 0.6)
            child = np.clip(theta + np.where(random.random(len(theta)) < 0.7, moves, 0), low, high)
            if renewed:
                child = np.where(random.random(len(theta)) < renewed, fresh(), child)
            children.append(np.where(lacks, without, child))
        # Some of the best were lucky: evaluate them again.
        again = [scored(theta) for _, theta in elders[: population // 4]]
        elders = (
            [
                ((elder[0] + other[0]) / 2, elder[1])
                for elder, other in zip(elders[: population // 4], again, strict=True)
            ]
            + elders[population // 4 : population]
            + [scored(theta) for theta in children]
        )
    return sorted(elders, key=lambda elder: elder[0])
