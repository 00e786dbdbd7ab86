"""What becomes of writes: a burst after rest, one at a time and many, in order, and what a flush costs. These write."""

from __future__ import annotations

import numpy as np

from headstack.twin.device import FLUSH, WRITE, Requests
from headstack.twin.probes.queue import mixes
from headstack.twin.session import Again, Session, places

REST_S = 1.5
BURST = "a burst of random writes after rest"
BURST_LARGE = "a burst of random writes of 64 KiB after rest"
STEADY = (1, 8, 32)
IN_ORDER = "writes of 64 KiB in order, one at a time"
FLUSHES = "random writes with a flush after each eight"
MIX = "random reads and writes of 8 KiB, 8 at a time"
SECONDS = 6.0


def steady(depth: int) -> str:
    """What the test of writes at a depth is called."""
    return f"random writes of 4 KiB, {depth} at a time"


def ask(session: Session, mean_s: float) -> None:
    """Asks all of it; ``mean_s`` is how long a random read takes alone."""
    capacity = session.device.capacity_bytes
    seconds = SECONDS * session.share
    session.rest(REST_S)
    session.draw(BURST, writes(capacity, 1, 400))
    for depth in STEADY:
        count = int(np.clip(seconds / mean_s * (1 if depth == 1 else 1.5), 300, 2500))
        session.draw(steady(depth), writes(capacity, depth, count))
    session.rest(REST_S)
    session.draw(BURST_LARGE, writes(capacity, 1, 150, 64 << 10))
    session.rest(REST_S)
    session.draw(FLUSHES, flushed(capacity))
    session.rest(REST_S)
    session.draw(IN_ORDER, in_order(capacity))
    session.draw(MIX, mixes(capacity, 8192, 8, int(np.clip(seconds / mean_s, 300, 2000)), 0.67))
    session.rest(REST_S)


def writes(capacity: int, depth: int, count: int, size: int = 4096) -> Again:
    """Draws random writes."""
    return lambda random: Requests.writes(places(random, count, capacity, size), size, depth=depth)


def flushed(capacity: int, groups: int = 12) -> Again:
    """Draws groups of eight random writes and a flush, one at a time."""

    def draw(random: np.random.Generator) -> Requests:
        offsets = places(random, 9 * groups, capacity)
        is_flush = np.arange(9 * groups) % 9 == 8
        offsets[is_flush] = 0
        return Requests.of(np.where(is_flush, FLUSH, WRITE), offsets, np.where(is_flush, 0, 4096))

    return draw


def in_order(capacity: int, count: int = 250) -> Again:
    """Draws a stream of writes."""

    def draw(random: np.random.Generator) -> Requests:
        at = int(random.integers(0, (capacity - (count << 16)) // (1 << 20))) << 20
        return Requests.writes(at + (np.arange(count, dtype=np.uint64) << np.uint64(16)), 64 << 10)

    return draw
