"""``flatness``: how even a rate is and whether it is a round number, as behind a limit."""

from __future__ import annotations

import math
from typing import NamedTuple

from headstack.diagnosis.judging.suspects.limits import Limit
from headstack.diagnosis.judging.suspects.phases import Phase

LARGE_BYTES = 32768.0
"""Mean size from which a limit of bytes binds before one of requests: gp3 has 3,000/s and 125 MiB/s, so 42.7 KiB."""
INTERVALS_MIN = 4.0
ROUND = 0.005
"""Relative distance from a round number."""
ROUND_BYTES = tuple(step * 1048576.0 * 2**k for step in (1.0, 1.25, 1.5, 1.75) for k in range(3, 14))
"""Usual limits of bytes per second: 8 to 8,192 MiB/s in steps as vendors take them; 125 MiB/s is 1.95 of them."""


def limit_share(phase: Phase, limit: Limit | None) -> float | None:
    """Returns the rate of a phase relative to a stated limit, the nearer of requests and bytes."""
    if limit is None:
        return None
    shares = (phase.rate / limit.requests_per_s, phase.bytes_per_s / limit.bytes_per_s)
    return max((share for share in shares if math.isfinite(share)), default=None)


class Flatness(NamedTuple):
    """How a rate varies from one interval to the next."""

    deviation: float
    """Relative standard deviation of requests or of bytes per second."""
    by_chance: float
    """The deviation relative to that of independent arrivals, 1 / sqrt(requests of an interval): 1 for open clients,
    0.2 to 0.7 for closed ones at a device with random service times."""
    is_round: bool


def flatness(phase: Phase) -> Flatness | None:
    """Returns the flatness of requests per second, or of bytes per second if these vary less or requests are large;
    ``None`` with too few intervals."""
    by_rate, by_bytes = phase.rate_deviation, phase.bytes_deviation
    if phase.intervals < INTERVALS_MIN or not math.isfinite(by_rate):
        return None
    chance = math.sqrt(phase.total("requests") / phase.intervals)
    is_large = phase.bytes_per_s >= LARGE_BYTES * phase.rate
    if math.isfinite(by_bytes) and (by_bytes < 0.5 * by_rate or (is_large and not is_round(phase.rate))):
        return Flatness(by_bytes, by_rate * chance, is_round_bytes(phase.bytes_per_s))
    return Flatness(by_rate, by_rate * chance, is_round(phase.rate))


def is_round(rate: float) -> bool:
    """Whether a rate is near to a number with two leading digits, or one with a 5 after them.

    >>> from headstack.diagnosis.judging.suspects.weighing import is_round
    >>> is_round(2996.0), is_round(12500.0), is_round(2743.0)
    (True, True, False)
    """
    return round_distance(rate) <= ROUND


def round_distance(rate: float) -> float:
    """Returns the relative distance of a rate from the nearest round number; infinite for small rates."""
    if not rate >= 20:
        return math.inf
    unit = 10.0 ** (math.floor(math.log10(rate)) - 1)
    step = unit * (5.0 if rate >= 50 * unit else 2.5 if rate >= 25 * unit else 1.0)
    return abs(rate / (step * round(rate / step)) - 1.0)


def is_round_bytes(rate: float) -> bool:
    """Whether bytes per second are near to a usual limit: whole tens or powers of two of MiB, or whole tens of MB."""
    usual = (125 * 1048576.0, 250 * 1048576.0, 500 * 1048576.0, 1000 * 1048576.0, *ROUND_BYTES)
    return any(abs(rate / of - 1.0) <= ROUND for of in usual) or (rate >= 1e7 and is_round(rate / 1e6 * 10))
