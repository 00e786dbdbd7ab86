"""What the buffer does for reads: reads in order one at a time, several streams in turn, and the same read again."""

from __future__ import annotations

import numpy as np

from headstack.twin.device import Requests
from headstack.twin.session import Again, Session

SMALL, LARGE = 4096, 64 << 10
STREAMS = (2, 4, 8, 16, 32)
TURNS = 8


def in_order(size: int) -> str:
    """What the test of reads in order is called."""
    return f"reads of {size >> 10} KiB in order, one at a time"


def streams(count: int) -> str:
    """What the test of streams is called."""
    return f"{count} streams of reads in turn"


AGAIN_SIZES = (SMALL, 16 << 10, LARGE)


def again(size: int) -> str:
    """What the test of the same read again is called."""
    return f"the same read of {size >> 10} KiB again"


SKIPPING = "reads that skip as much as they read"


def ask(session: Session) -> None:
    """Asks all of it, each at places of its own."""
    capacity = session.device.capacity_bytes

    def place(random: np.random.Generator, length: int) -> int:
        return int(random.integers(0, max(1, (capacity - length) // (1 << 20)))) << 20

    def ordered(size: int, count: int, step: int = 1) -> Again:
        def draw(random: np.random.Generator) -> Requests:
            at = place(random, size * count * step)
            return Requests.reads(at + size * step * np.arange(count, dtype=np.uint64), size)

        return draw

    session.draw(in_order(SMALL), ordered(SMALL, 600))
    session.draw(in_order(LARGE), ordered(LARGE, 200))
    session.draw(SKIPPING, ordered(LARGE, 120, 2))
    at = place(session.random, 1 << 20)
    for size in AGAIN_SIZES:
        session.ask(again(size), Requests.reads(np.full(12, at, np.uint64), size))
    for count in STREAMS:
        session.draw(streams(count), in_turn(capacity, count))


def in_turn(capacity: int, count: int) -> Again:
    """Draws so many streams, far from each other, that read 16 KiB in turn."""

    def draw(random: np.random.Generator) -> Requests:
        length = TURNS * (16 << 10)
        starts = random.integers(0, (capacity - length) // (1 << 20), count).astype(np.uint64) << np.uint64(20)
        turns = (np.arange(TURNS, dtype=np.uint64) * np.uint64(16 << 10))[:, None] + starts[None, :]
        return Requests.reads(turns.ravel(), 16 << 10)

    return draw
