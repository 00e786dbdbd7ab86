"""Probe of the write cache, by writes: a burst after rest, at queue depth 1 and above, sequential, and the cost of a
flush.
"""

from __future__ import annotations

import numpy as np

from headstack.twin.device import FLUSH, WRITE, Requests
from headstack.twin.probes.queue import mixes
from headstack.twin.probes.rotation import Rotation
from headstack.twin.session import Again, Session, places

REST_S = 1.2
BURST = "a burst of random writes after rest"
BURST_LARGE = "a burst of random writes of 64 KiB after rest"
STEADY = (1, 8, 32)
LONG = "writes of half a track, one at a time"
IN_ORDER = "writes of 64 KiB in order, one at a time"
FLUSHES = "random writes with a flush after each eight"
MIX = "random reads and writes of 8 KiB, 8 at a time"
DEEP_MIX = "random reads and writes of 4 KiB, 32 at a time"
SHARES = {BURST: 0.13, BURST_LARGE: 0.06, LONG: 0.06, IN_ORDER: 0.06, MIX: 0.08, DEEP_MIX: 0.08}
"""Shares of this probe's time; steady writes have 0.13 at each depth."""


def steady(depth: int) -> str:
    """Returns the name of the test of writes at a depth."""
    return f"random writes of 4 KiB, {depth} at a time"


def ask(session: Session, seconds: float, alone_s: float, half_track: int, turn: Rotation) -> None:
    """Runs all tests; ``alone_s`` is the time of a random read at queue depth 1."""
    capacity = session.device.capacity_bytes
    # The arm takes longer to settle before it writes.
    random_s, seconds = 1.05 * alone_s, seconds - 4 * REST_S

    def count(share: float, each_s: float, least: int, most: int) -> int:
        return int(np.clip(share * seconds / each_s, least, most))

    session.rest(REST_S)
    session.draw(BURST, writes(capacity, 1, count(SHARES[BURST], random_s, 120, 400)))
    each_s = random_s
    for depth in STEADY:
        requests = writes(capacity, depth, count(0.13, each_s, 100, 800))
        each_s = min(each_s, 1 / session.draw(steady(depth), requests).per_s)
    session.rest(REST_S)
    large_s = random_s + turn.period_ns / 2e9
    session.draw(BURST_LARGE, writes(capacity, 1, count(SHARES[BURST_LARGE], large_s, 50, 150), 64 << 10))
    session.draw(LONG, writes(capacity, 1, count(SHARES[LONG], large_s, 30, 120), half_track))
    session.rest(REST_S)
    session.draw(FLUSHES, flushed(capacity, count(0.08, 9 * random_s, 4, 12)))
    session.rest(REST_S)
    session.draw(IN_ORDER, in_order(capacity, count(SHARES[IN_ORDER], 1.2 * turn.period_ns / 1e9, 60, 250)))
    mixed_s = (each_s + alone_s) / 2
    session.draw(MIX, mixes(capacity, 8192, 8, count(SHARES[MIX], mixed_s, 100, 800), 0.67))
    session.draw(DEEP_MIX, mixes(capacity, 4096, 32, count(SHARES[DEEP_MIX], mixed_s, 100, 800), 0.67))


def writes(capacity: int, depth: int, count: int, size: int = 4096) -> Again:
    """Draws random writes."""
    return lambda random: Requests.writes(places(random, count, capacity, size), size, depth=depth)


def flushed(capacity: int, groups: int) -> Again:
    """Draws groups of eight random writes and a flush, one at a time."""

    def draw(random: np.random.Generator) -> Requests:
        offsets = places(random, 9 * groups, capacity)
        is_flush = np.arange(9 * groups) % 9 == 8
        offsets[is_flush] = 0
        return Requests.of(np.where(is_flush, FLUSH, WRITE), offsets, np.where(is_flush, 0, 4096))

    return draw


def in_order(capacity: int, count: int) -> Again:
    """Draws a stream of writes."""

    def draw(random: np.random.Generator) -> Requests:
        at = int(random.integers(0, (capacity - (count << 16)) // (1 << 20))) << 20
        return Requests.writes(at + (np.arange(count, dtype=np.uint64) << np.uint64(16)), 64 << 10)

    return draw
