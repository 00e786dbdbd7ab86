"""Prediction intervals with guaranteed coverage of unseen devices: conformal prediction with the *device* as the unit.

A score is the error of a model on one device at one cell, that is a workload at a load. The cells of a device have
correlated errors, so that 1,000 cells of ten devices are ten observations, not 1,000. Each of K devices has the
weight 1/(K + 1), shared by its cells; the unseen device has an equal weight at infinity (Lee, Barber and Willett,
*Distribution-free inference with hierarchical data*, arXiv 2306.06342; Vovk, Gammerman and Shafer, 2005). An interval
for the whole curve of a device takes the worst cell of each device. K devices support levels up to K/(K + 1): four
support 80 %, nine 90 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

LEVEL = 0.9
"""The default share of devices within an interval."""

FEWEST = 3
"""The smallest number of devices from which an interval is learned. The level holds on average; the coverage of one
interval depends on the devices that it was learned from, with a Beta(K, 1) distribution below nine devices. Learned
from two devices (67 %), one interval in four covers less than half of all devices; from three (75 %), one in eight."""


def level_of(devices: int, highest: float = LEVEL) -> float | None:
    """Returns the highest level that so many devices support, at most ``highest``; ``None`` for fewer than ``FEWEST``.

    >>> from headstack.results.intervals.conformal import level_of
    >>> level_of(2), level_of(3), level_of(4), level_of(9), level_of(100)
    (None, 0.75, 0.8, 0.9, 0.9)
    """
    return None if devices < FEWEST else min(highest, devices / (devices + 1))


def percent(level: float) -> str:
    """Formats a level, rounded down, so that it promises no more than it is.

    >>> from headstack.results.intervals.conformal import percent
    >>> percent(0.9), percent(7 / 8), percent(8 / 9)
    ('90 %', '87 %', '88 %')
    """
    return f"{math.floor(100 * level + 1e-9)} %"


def format_levels(levels: Iterable[float | None]) -> str:
    """Formats the levels of the intervals of several runs; empty if none has an interval.

    >>> from headstack.results.intervals.conformal import format_levels
    >>> format_levels([0.9, None, 0.8]), format_levels([0.8, 0.8]), format_levels([None])
    ('80 to 90 %', '80 %', '')
    """
    all_levels = [level for level in levels if level is not None]
    ends = list(dict.fromkeys(map(percent, (min(all_levels), max(all_levels))))) if all_levels else []
    return " to ".join([*(end.removesuffix(" %") for end in ends[:-1]), *ends[-1:]])


def devices_needed(level: float = LEVEL) -> int:
    """Returns the smallest number of devices from which an interval can be learned.

    >>> from headstack.results.intervals.conformal import devices_needed
    >>> devices_needed(0.9), devices_needed(0.95), devices_needed(0.99)
    (9, 19, 99)
    """
    # K devices suffice if K >= level (K + 1). The constant absorbs rounding, because 0.9 is not exactly 9/10.
    return math.ceil(level / (1 - level) - 1e-9)


def quantile(scores: Iterable[Sequence[float]], level: float = LEVEL) -> float | None:
    """Returns the score that bounds a cell of a new device with this probability, from the scores of each device;
    ``None`` with too few devices.

    With one score per device this is split conformal prediction: the k-th smallest of K, k = ceil(level (K + 1)).

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
        # Rounded weights, such as thirds, do not add up to exactly one.
        if below >= wanted - 1e-9:
            return score
    # The quantile is at infinity, or there are no scores.
    return None


def worst_scores(scores: Iterable[Sequence[float]]) -> list[list[float]]:
    """Returns only the worst score of each device. Intervals learned from the worst scores cover all cells of a device.

    >>> from headstack.results.intervals.conformal import worst_scores
    >>> worst_scores([[0.1, 0.3], [0.2]])
    [[0.3], [0.2]]
    """
    return [[max(of_device)] for of_device in scores if of_device]


def coverage_bounds(devices: int, level: float = LEVEL, certainty: float = 0.95) -> tuple[float, float]:
    """Returns the central range of the share of devices within their intervals, which has probability ``certainty`` if
    each device is within its interval with probability ``level`` independently.

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
