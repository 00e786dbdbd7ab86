"""Sustained write rates: whether a logged run of writes is past every cache, and at which level.

An SSD first writes to its SLC cache, then more slowly, and random writes slow down again until every block has been
collected. A run that ends before that shows only an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression, pstdev

from headstack._native import format_bytes
from headstack.measurement.tests.pts.steady import last_window

FALL_MIN, FALL_SIGMAS = 1.15, 4.0
"""Minimum fall of the rate at the end of a cache: as a factor, as in the probes of calibrated models, and in standard
deviations of the intervals after it."""
CACHE_SHARE_MAX = 0.5
"""Largest cache of an SSD as a share of its capacity: all cells hold one bit instead of two (of three: 33 %)."""
CACHE_SHARE_MIN = 0.004
"""Smallest SLC cache as a share of the largest one: 0.2 % of the capacity. A faster start that ends before it is a
buffer of DRAM."""
CACHE_BYTES_MIN = float(1 << 30)
"""Smallest SLC cache of a device whose capacity is not known, in bytes."""
WEAR_IN = 2.0
"""Random writes that make every drive steady, in multiples of its capacity (SNIA PTS 2.0.2, preconditioning)."""
TREND_SIGMAS = 3.0
"""Slope in standard errors above which a rate outside of SNIA's limits still changes; below, it only scatters."""
GROUPS = 5
"""Number of groups of consecutive intervals, from which a level gets its confidence interval."""


@dataclass(frozen=True)
class Level:
    """The sustained rate of writes, or the reason why it is not known."""

    per_s: float | None
    note: str
    at_most: float | None = None
    """Upper bound of a rate that is not known."""
    blocks: Sequence[float] = ()
    """Rates of the intervals at this level."""


def sustained(per_s: Sequence[float], seconds: float, needed_bytes: float | None, unit_bytes: int) -> Level:
    """Returns the level at the end of a run of writes if nothing can still be cached.

    ``per_s`` are the rates in intervals of ``seconds``. ``needed_bytes`` is the amount after which no cache is left: 0
    if there is none, ``None`` if not known. ``unit_bytes`` is the size of a write.
    """
    if not per_s or not fmean(per_s):
        return Level(None, "no write completed")
    written = sum(per_s) * seconds * unit_bytes
    done = f"{format_bytes(round(written))} in {len(per_s) * seconds:.3g} s"
    tail = per_s[len(per_s) // 2 :]
    level = fmean(tail)
    window = last_window(groups(tail))
    if window is None or (not window.is_steady and has_trend(tail)):
        return Level(None, f"the rate still changes after {done}: raise --steady-time", min(fmean(per_s), level))
    if needed_bytes is not None and written >= needed_bytes:
        return Level(level, f"level after {done}", blocks=tail)
    fell = fast_intervals(per_s, level, pstdev(tail))
    cached = sum(per_s[:fell]) * seconds * unit_bytes
    if fell and cached >= (CACHE_BYTES_MIN if needed_bytes is None else CACHE_SHARE_MIN * needed_bytes):
        rest = (
            "" if needed_bytes is None else f"; less is possible until {format_bytes(round(needed_bytes))} are written"
        )
        note = (
            f"the lower of two levels: fell from {fmean(per_s[:fell]):,.4g} to {level:,.4g} writes/s after "
            f"{fell * seconds:.3g} s and {format_bytes(round(cached))}{rest}"
        )
        return Level(level, note, blocks=tail)
    if needed_bytes is None:
        why = f"{done} may fit into a cache, and the capacity of the device is not known: add --worn-in if it has none"
        return Level(None, why, level)
    why = (
        f"too short to know: {done} may fit into an SLC cache, and up to {format_bytes(round(needed_bytes))} are "
        "needed; raise --steady-time, or add --worn-in if the device has none or is worn in"
    )
    return Level(None, why, level)


def has_trend(values: Sequence[float]) -> bool:
    """Whether values rise or fall by more than their scatter explains: a straight line has a slope of more than three
    standard errors.

    >>> from headstack.measurement.tests.settings.levels import has_trend
    >>> has_trend([5.0, 9.0, 5.0, 9.0, 5.0]), has_trend([9.0, 8.0, 7.1, 6.0, 5.0])
    (False, True)
    """
    places = range(len(values))
    slope, intercept = linear_regression(places, values)
    residual = sum((value - intercept - slope * place) ** 2 for place, value in zip(places, values, strict=True))
    square = (len(values) ** 3 - len(values)) / 12
    error = math.sqrt(residual / max(1, len(values) - 2) / square)
    return abs(slope) > TREND_SIGMAS * error


def fast_intervals(per_s: Sequence[float], level: float, deviation: float) -> int:
    """Returns the number of intervals at the start of a run that are clearly faster than its end.

    >>> from headstack.measurement.tests.settings.levels import fast_intervals
    >>> fast_intervals([400.0, 390.0, 100.0, 101.0], 100.0, 1.0)
    2
    """
    bound = max(FALL_MIN * level, level + FALL_SIGMAS * deviation)
    return next((number for number, rate in enumerate(per_s) if rate <= bound), len(per_s))


def groups(values: Sequence[float]) -> list[float]:
    """Returns the means of five groups of consecutive values; the values themselves if there are fewer than ten.

    >>> from headstack.measurement.tests.settings.levels import groups
    >>> groups([1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    [1, 2, 3, 4, 5]
    """
    size = len(values) // GROUPS
    if size < 2:
        return list(values)
    return [fmean(values[at * size : (at + 1) * size]) for at in range(GROUPS)]
