"""``cause_of``: the most likely cause of a slow disk, by the effect of each cause on latencies under the disk's loads.

A cause adds a time to each request, in a pattern over loads: constant, proportional to queue depth or size; for reads
or for writes; always, at times, or periodically. Its one or two amounts are fitted to the logarithms of latencies.
Causes are compared by their likelihoods, each penalised for its number of amounts (Schwarz, Annals of Statistics,
1978). If the best one leaves much more than the noise of health, the cause is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headstack.diagnosis.judging.evidence import Array
from headstack.diagnosis.judging.verdict import Cause

STEPS_NEEDED = 4
AMOUNTS_S = np.geomspace(1e-6, 2.0, 140)
"""Amounts tried for each cause; neighbours differ by 11 %, about the resolution of latencies."""
NOISE_MIN = 0.06
"""Minimum noise of logarithms of latencies: the precision of patterns over load."""
PAGE_BYTES, PAGES_MAX = 4096.0, 8.0
"""Bytes of each slow access, and the number of sequential ones before the others run in parallel: observed for one
simulated drive, pm883-480gb.
"""
VARIATION_MIN = math.log(2.0)
"""Minimum increase of the variation between intervals if some reads take much longer than the rest."""
HIDDEN = 0.5
"""Standard deviation of logarithms of write latencies behind a cache."""
OUTLIER = 36.0
"""Maximum contribution of one latency to a sum of squares, so that an outlier does not decide between causes."""
EFFECTIVE_COUNT_MAX = 40.0
"""Maximum effective number of observations: errors of a pattern are correlated."""
IMPOSSIBLE_COST = 1e6
"""Cost of an event that did not occur."""
UNKNOWN = "unknown"
SHARE_MIN = 0.5


class Stream(NamedTuple):
    """Reads, writes or all requests over the steps since a disk became slow. Missing values are NaN."""

    step: Array
    log_latency: Array
    expected_s: Array
    size_bytes: Array
    depth: Array
    """Queue depth while it is busy, at least 1."""
    spread: Array
    usual_spread: Array


@dataclass(frozen=True)
class Pattern:
    """The effect of a cause: components of a time for reads and for writes, with a common amount if they are tied."""

    name: str
    evidence: str
    """A template with ``reads``, ``writes`` as amounts in words, and ``worse``, the increase of variation."""
    reads: Callable[[Stream], Array] | None
    writes: Callable[[Stream], Array] | None
    tied: bool = False
    hidden: bool = False
    """Whether a write cache may hide it, depending on its fill level, so that writes are weak evidence."""
    at_times: bool = False
    """Whether it is present for only part of a quarter of an hour, so that intervals within it vary more than in
    health.
    """
    states: Callable[[Array, Array], tuple[Array, float]] | None = None
    """A function from the slowdown of each step to the share of time with the effect, and its cost."""


def _constant(stream: Stream) -> Array:
    return np.ones_like(stream.depth)


def _waiting(stream: Stream) -> Array:
    return stream.depth


def _transfer(stream: Stream) -> Array:
    return stream.depth * stream.size_bytes / np.nanmean(stream.size_bytes)


def _pages(stream: Stream) -> Array:
    # An SSD reads a request in pages, at first one after another; the rest is parallel.
    return stream.depth * np.minimum(stream.size_bytes / PAGE_BYTES, PAGES_MAX)


def _queue(stream: Stream) -> Array:
    # Serialised requests each take as long as a single one: nothing is added without a queue.
    return stream.depth - 1.0


def _levels(slower: Array, _step: Array) -> tuple[Array, float]:
    """Returns the share of the load on an affected part of the disk, from the slowdown of each step, in fifths."""
    top = max(float(np.quantile(slower, 0.9)), 1e-9)
    if (slower < top / 5.0).mean() < 0.2:
        return np.ones(len(slower)), IMPOSSIBLE_COST
    return np.round(5.0 * np.clip(slower / top, 0.0, 1.0)) / 5.0, 0.5 * len(slower) * math.log(3.0)


def _periods(slower: Array, step: Array) -> tuple[Array, float]:
    """Returns an on-off pattern: the period and duty cycle that explain most of the steps."""
    top = max(float(np.quantile(slower, 0.9)), 1e-9)
    on = slower > top / 3.0
    best, cost = np.ones(len(slower)), math.inf
    for period in range(2, max(3, len(step) // 3 + 1)):
        phase = step.astype(int) % period
        majority = np.array([on[phase == at].mean() > 0.5 if (phase == at).any() else False for at in range(period)])
        predicted = majority[phase]
        if not 0 < majority.sum() < period:
            continue
        wrong = int((predicted != on).sum())
        price = math.log(len(step)) * (1.0 + 0.5 * min(period, 4)) + 4.0 * wrong
        if price < cost:
            best, cost = predicted.astype(float), price
    return best, cost if math.isfinite(cost) else IMPOSSIBLE_COST


PATTERNS = (
    Pattern(
        "mechanism",
        "each access occupies the disk {reads} longer, which delays the requests behind it",
        _waiting,
        _waiting,
        hidden=True,
    ),
    Pattern(
        "mechanism", "each page takes {reads} longer, which delays the requests behind it", _pages, _pages, hidden=True
    ),
    Pattern(
        "late answers", "every request completes {reads} later, at any queue depth", _constant, _constant, tied=True
    ),
    Pattern("write cache off", "writes take {writes} longer; reads take as long as before", None, _waiting),
    Pattern(
        "link", "the time grows with the size of requests: {reads} more at the mean size", _transfer, _transfer, True
    ),
    Pattern(
        "queue cut",
        "requests at depth 1 take as long as before; each waiting request adds {reads}",
        _queue,
        _queue,
        hidden=True,
    ),
    Pattern(
        "reads of the medium",
        "some reads take much longer: {reads} on average, and intervals are {worse:.1f} times as uneven",
        _waiting,
        _waiting,
        hidden=True,
        at_times=True,
    ),
    Pattern(
        "one zone",
        "up to {reads} longer in some 15-minute intervals, not in others, without a regular pattern",
        _waiting,
        _waiting,
        states=_levels,
    ),
    Pattern(
        "background work",
        "{reads} longer at regular intervals, not in between",
        _waiting,
        _waiting,
        states=_periods,
    ),
)
CAUSES = tuple(dict.fromkeys(pattern.name for pattern in PATTERNS))


def cause_of(recent: Sequence[Sequence[float]], since_step: float | None, noise: float) -> Cause | None:
    """Returns the cause of the data since a step, from the rows of ``fleet.Disk.recent``; ``None`` if there are too
    few. ``noise`` is the standard deviation of residuals in health."""
    rows = np.array(recent)
    after = rows[:, 0] > since_step if since_step is not None else np.ones(len(rows), dtype=bool)
    if after.sum() < STEPS_NEEDED:
        return None
    reads, writes, both = (_stream(rows[after], stream) for stream in range(3))
    worse = _unevenness((reads, writes, both))
    if not (np.isfinite(reads.log_latency).any() or np.isfinite(writes.log_latency).any()):
        reads = both
    sigma = max(noise, NOISE_MIN)
    fits = sorted((_fit(pattern, reads, writes, sigma, worse) for pattern in PATTERNS), key=lambda fit: fit.cost)
    costs = np.array([fit.cost for fit in fits])
    shares = np.exp(costs[0] - costs)
    shares /= shares.sum()
    best = fits[0]
    second = next(fit for fit in fits if fit.pattern.name != best.pattern.name)
    share = float(sum(of for of, fit in zip(shares, fits, strict=True) if fit.pattern.name == best.pattern.name))
    if best.left > 3.0 or share < SHARE_MIN:
        why = (
            f"{best.pattern.name} fits best, but leaves residuals of {best.left:.1f} times the noise of a healthy disk"
            if best.left > 3.0
            else f"{best.pattern.name} and {second.pattern.name} fit equally well"
        )
        return Cause(UNKNOWN, why, share, best.pattern.name)
    evidence = best.pattern.evidence.format(reads=_time(best.reads_s), writes=_time(best.writes_s), worse=worse)
    return Cause(best.pattern.name, evidence, share, second.pattern.name)


class Fit(NamedTuple):
    """The quality of a cause's fit."""

    cost: float
    """Negative log-likelihood, with penalties."""
    left: float
    """The unexplained part, in units of the noise."""
    reads_s: float
    writes_s: float
    pattern: Pattern


def _fit(pattern: Pattern, reads: Stream, writes: Stream, sigma: float, worse: float) -> Fit:
    slower = np.fmax(
        np.nan_to_num(reads.log_latency - np.log(reads.expected_s), nan=-9.0),
        np.nan_to_num(writes.log_latency - np.log(writes.expected_s), nan=-9.0),
    )
    share, cost = (np.ones(len(slower)), 0.0) if pattern.states is None else pattern.states(slower, reads.step)
    of_reads = _errors(reads, pattern.reads, share, sigma)
    of_writes = _errors(writes, pattern.writes, share, sigma)
    if pattern.hidden:
        loosely = _errors(writes, pattern.writes, share, HIDDEN)
        loosely += 2.0 * math.log(HIDDEN / sigma) * np.isfinite(writes.log_latency).sum()
        of_writes = np.minimum(of_writes, loosely)
    observations = sum(int(np.isfinite(kind.log_latency).sum()) for kind in (reads, writes))
    if pattern.tied:
        at = int((of_reads + of_writes).argmin())
        places, amounts = (at, at), 1
    else:
        places = int(of_reads.argmin()), int(of_writes.argmin())
        amounts = max(sum(place > 0 for place in places), 1)
    squares = float(of_reads[places[0]] + of_writes[places[1]])
    weight = min(1.0, EFFECTIVE_COUNT_MAX / max(observations, 1))
    cost = weight * (squares / 2 + cost) + amounts / 2 * math.log(max(observations, 2))
    # Longer waits vary more, too: with their square root for simulated disks. 33 % is chance.
    expected = max(float(np.median(slower)), 0.0) / 2 + (VARIATION_MIN if pattern.at_times else 0.0)
    far = math.log(worse) - expected
    cost += 0.5 * (far / 0.3) ** 2 if not pattern.at_times or far < 0 else 0.0
    reads_s, writes_s = (float(AMOUNTS_S[place]) for place in places)
    return Fit(cost, math.sqrt(squares / max(observations, 1)), reads_s, writes_s, pattern)


def _errors(stream: Stream, part: Callable[[Stream], Array] | None, share: Array, sigma: float) -> Array:
    """Returns the sum of squared residuals for every amount, in units of the noise."""
    here = np.isfinite(stream.log_latency) & np.isfinite(stream.expected_s)
    if not here.any():
        return np.zeros(len(AMOUNTS_S))
    added = np.zeros(len(share)) if part is None else part(stream) * share
    expected = np.log(stream.expected_s[here, None] + added[here, None] * AMOUNTS_S[None, :])
    squares = ((stream.log_latency[here, None] - expected) / sigma) ** 2
    return np.asarray(np.minimum(squares, OUTLIER).sum(axis=0))


def _stream(rows: Array, number: int) -> Stream:
    latency, residual, size, _, depth, spread, usual = (rows[:, 1 + 7 * number + at] for at in range(7))
    with np.errstate(all="ignore"):
        return Stream(
            rows[:, 0],
            np.where(np.isfinite(residual), latency, math.nan),
            np.exp(latency - residual),
            np.exp(size),
            np.maximum(np.exp(depth), 1.0),
            spread,
            usual,
        )


def _unevenness(streams: Sequence[Stream]) -> float:
    """Returns the variation between intervals of a step relative to health; 1 if unknown."""
    ratios = []
    for stream in streams:
        both = np.isfinite(stream.spread) & np.isfinite(stream.usual_spread)
        if both.sum() >= STEPS_NEEDED:
            ratios.append(float(np.median((stream.spread[both] + 0.02) / (stream.usual_spread[both] + 0.02))))
    return max(ratios, default=1.0)


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.2g} us"
