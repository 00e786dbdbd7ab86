"""Intervals that hold for a device that was never seen, as often as they say: conformal prediction with the *device* as
the unit.

A score is how far a model was off on one device at one cell: a workload at a load. The cells of one device err alike,
so that a thousand cells of ten devices are ten observations and not a thousand. Each of K devices has the same weight,
1/(K + 1), shared by its cells, and as much lies at infinity for the device that nobody has seen (Lee, Barber and
Willett, *Distribution-free inference with hierarchical data*, arXiv 2306.06342; Vovk, Gammerman and Shafer, 2005). An
interval that shall hold for the whole curve of a device at once takes the worst cell of each. With too few devices
there is no such interval, and none is made up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

LEVEL = 0.9
"""The share of devices for which an interval holds, where nothing else is asked."""


def devices_needed(level: float = LEVEL) -> int:
    """The fewest devices that an interval can be learnt from.

    >>> from headstack.results.intervals.conformal import devices_needed
    >>> devices_needed(0.9), devices_needed(0.95), devices_needed(0.99)
    (9, 19, 99)
    """
    # The K-th of K has to be enough: K >= level (K + 1). A level of 0.9 is not 9/10 to a computer.
    return math.ceil(level / (1 - level) - 1e-9)


def quantile(scores: Iterable[Sequence[float]], level: float = LEVEL) -> float | None:
    """The score that a cell of a new device keeps with this probability, from the scores of each device; ``None`` where
    the devices are too few.

    With one score a device this is split conformal prediction: the k-th least of K, k = ceil(level (K + 1)).

    >>> from headstack.results.intervals.conformal import quantile
    >>> quantile([[0.1], [0.2], [0.3], [0.4], [0.5], [0.6], [0.7], [0.8], [0.9]])
    0.9
    >>> quantile([[0.1, 0.1, 0.1, 0.1]] * 8) is None
    True
    """
    devices = [list(of_device) for of_device in scores if of_device]
    weighted = sorted((score, 1 / len(of_device)) for of_device in devices for score in of_device)
    wanted = level * (len(devices) + 1)
    below = 0.0
    for score, weight in weighted:
        below += weight
        # Thirds do not add up to one exactly.
        if below >= wanted - 1e-9:
            return score
    # What is wanted lies at infinity, or nothing is known.
    return None


def of_whole_curves(scores: Iterable[Sequence[float]]) -> list[list[float]]:
    """Of each device its worst score alone: what is learnt from these holds for all cells of a device at once.

    >>> from headstack.results.intervals.conformal import of_whole_curves
    >>> of_whole_curves([[0.1, 0.3], [0.2]])
    [[0.3], [0.2]]
    """
    return [[max(of_device)] for of_device in scores if of_device]


def coverage_bounds(devices: int, level: float = LEVEL, certainty: float = 0.95) -> tuple[float, float]:
    """Between which shares so many devices lie with this certainty, half of the rest on each side, where each is within
    its interval with probability ``level`` by itself.

    >>> from headstack.results.intervals.conformal import coverage_bounds
    >>> coverage_bounds(200)
    (0.855, 0.94)
    """
    tail = (1 - certainty) / 2
    below = 0.0
    low = high = devices
    found_low = False
    for count in range(devices + 1):
        logarithm = (
            math.lgamma(devices + 1)
            - math.lgamma(count + 1)
            - math.lgamma(devices - count + 1)
            + count * math.log(level)
            + (devices - count) * math.log(1 - level)
        )
        below += math.exp(logarithm)
        if not found_low and below > tail:
            low, found_low = count, True
        if below >= 1 - tail:
            high = count
            break
    return low / devices, high / devices
