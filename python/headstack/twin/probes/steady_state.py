"""Probe of the steady state: random overwrites until the rate is constant, with garbage collection."""

from __future__ import annotations

from typing import Final

import numpy as np

from headstack.twin.device import Requests
from headstack.twin.session import Session, places

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
