"""Probe of the write buffer: the bytes accepted faster than they are programmed, and the rates."""

from __future__ import annotations

from typing import Final

import numpy as np

from headstack.twin.device import WRITE, Requests
from headstack.twin.session import Session, places

AT_ONCE: Final = 64
BURSTS: Final = 6
BURST_BYTES: Final = 96 << 20


def probe(session: Session) -> None:
    """Runs small bursts, for the rate of write commands."""
    for number in range(BURSTS):
        session.rest(0.5)
        session.ask(
            f"writes at once, {number}",
            Requests.of(
                WRITE,
                places(session.random, AT_ONCE, session.device.capacity_bytes),
                4096,
                at_ns=np.zeros(AT_ONCE, np.uint64),
            ),
        )


def probe_knee(session: Session) -> None:
    """Runs a long burst from idle in steady state, when the flash is slowest."""
    session.rest(2.0)
    size = min(BURST_BYTES, session.device.capacity_bytes // 8)
    session.ask(
        "write burst", Requests.writes(places(session.random, size // 4096, session.device.capacity_bytes), depth=64)
    )


def knee(accepted_ns: np.ndarray, piece: int) -> tuple[float, float]:
    """Returns the bytes accepted in addition to draining, and the draining rate in bytes per ns: the regression line of
    the later half of a burst, bytes over time."""
    times = np.sort(accepted_ns).astype(np.float64)
    count = len(times)
    half = slice(count // 2, count)
    accepted = (np.arange(count) + 1.0)[half] * piece
    slope, base = np.polyfit(times[half], accepted, 1)
    return float(base), float(slope)
