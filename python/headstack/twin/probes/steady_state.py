"""Probe of the steady state: random overwrites until the rate is constant, with garbage collection."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from headstack.twin.device import Requests
from headstack.twin.session import ProbeRun, Session, places

LONG_BYTES: Final = 1 << 16
PIECE_BYTES: Final = 1 << 14
"""Size of requests between measurements: larger than the measured ones, hence fewer, with nearly the same
fragmentation.
"""
LONG_ROUNDS: Final = 4
ROUNDS_PER_CAPACITY: Final = 4
ROUNDS_LEAST: Final = 9
ROUNDS_MOST: Final = 20
AGREE: Final = 5
"""Number of rounds that must agree: SNIA's rule (within 20 % of their mean, with a slope of 10 %), twice as strict."""
MEASURED: Final = 60_000
SMALL_SHARE: Final = 0.25
SMALL_MOST: Final = 400_000


WINDOWS: Final = 100
"""Number of windows of a round in which its rate is measured."""
LEVELS_APART: Final = 3.0
"""Factor between the rates of fast and slow phases; garbage collection at a constant pace stays below it."""
SMOOTHED: Final = 5
"""Number of windows of which the median counts."""
PHASE_WINDOWS: Final = 2
"""Minimum length of a phase in windows."""


@dataclass(frozen=True)
class Phases:
    """Fast and slow phases between which a drive alternates while it is overwritten."""

    fast: float
    """Bytes per second in fast phases."""
    slow: float
    fast_bytes: float
    """Median bytes of a fast phase."""
    slow_bytes: float

    def describe(self) -> str:
        """Returns both rates, with the length of their phases."""
        return (
            f"overwrites alternate between {self.fast / 1e6:,.0f} MB/s for {self.fast_bytes / 1e6:,.0f} MB and "
            f"{self.slow / 1e6:,.0f} MB/s for {self.slow_bytes / 1e6:,.0f} MB"
        )


def phases(rounds: Sequence[ProbeRun]) -> Phases | None:
    """Returns the phases of the last rounds of overwrites, with at least two of each kind; ``None`` if the rate is
    constant."""
    last = rounds[-AGREE:]
    piece = int(last[-1].requests.lengths[0])
    gaps = []
    for run in last:
        if int(run.requests.lengths[0]) == piece:
            done = np.sort(run.answers.completed_ns - run.answers.issued_ns[0]).astype(np.float64)
            step = max(1, len(done) // WINDOWS)
            gaps.append(np.diff(done[::step]))
    window_bytes = step * piece
    rates = window_bytes * 1e9 / np.maximum(1.0, np.concatenate(gaps))
    # Dies do not begin and end a phase at once.
    rates = np.median(np.lib.stride_tricks.sliding_window_view(rates, SMOOTHED), axis=1)
    fast, slow = np.quantile(rates, (0.9, 0.1))
    if fast < LEVELS_APART * slow:
        return None
    is_fast = rates > math.sqrt(fast * slow)
    ends = np.flatnonzero(np.diff(is_fast)) + 1
    # The first and the last phase are cut off.
    parts = [(bool(is_fast[first]), last - first) for first, last in itertools.pairwise(ends)]
    fast_lengths, slow_lengths = (
        [length for kind, length in parts if kind is which and length >= PHASE_WINDOWS] for which in (True, False)
    )
    if len(fast_lengths) < 2 or len(slow_lengths) < 2:
        return None
    return Phases(
        float(np.median(rates[is_fast])),
        float(np.median(rates[~is_fast])),
        float(np.median(fast_lengths)) * window_bytes,
        float(np.median(slow_lengths)) * window_bytes,
    )


def is_steady(rates: list[float]) -> bool:
    """Whether the last rounds agree."""
    if len(rates) < max(AGREE, ROUNDS_LEAST):
        return False
    last = np.array(rates[-AGREE:])
    slope = float(np.polyfit(np.arange(AGREE), last, 1)[0])
    return bool(np.ptp(last) <= 0.1 * last.mean() and abs(slope) * (AGREE - 1) <= 0.05 * last.mean())


def probe(session: Session) -> None:
    """Overwrites round by round until the rates agree, then measures 4 KiB writes and a mix with reads."""
    rates: list[float] = []
    while len(rates) < ROUNDS_MOST and not is_steady(rates):
        piece = LONG_BYTES if len(rates) < LONG_ROUNDS else PIECE_BYTES
        offsets = places(
            session.random,
            -(-session.device.capacity_bytes // piece // ROUNDS_PER_CAPACITY),
            session.device.capacity_bytes,
            piece,
        )
        answers = session.ask(f"overwrites, {len(rates)}", Requests.writes(offsets, piece, depth=32))
        rates.append(answers.per_s * piece)
    count = min(SMALL_MOST, int(session.device.capacity_bytes * SMALL_SHARE) // 4096)
    session.ask(
        "overwrites, small", Requests.writes(places(session.random, count, session.device.capacity_bytes), depth=32)
    )
    session.ask(
        "steady writes", Requests.writes(places(session.random, MEASURED, session.device.capacity_bytes), depth=32)
    )
