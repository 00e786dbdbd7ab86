"""Probe of the read buffer: sequential reads at queue depth 1, several interleaved streams, and repeated reads."""

from __future__ import annotations

import numpy as np

from headstack.twin.device import Requests
from headstack.twin.probes.queue import reads as random_reads
from headstack.twin.probes.rotation import Rotation
from headstack.twin.session import Again, Session

SMALL, LARGE = 4096, 64 << 10
STREAMS = (2, 4, 8, 16, 32)
TURNS = 5


def in_order(size: int) -> str:
    """Returns the name of the test of sequential reads."""
    return f"reads of {size >> 10} KiB in order, one at a time"


def streams(count: int) -> str:
    """Returns the name of the test of streams."""
    return f"{count} streams of reads in turn"


AGAIN_SIZES = (SMALL, 8 << 10, 16 << 10, LARGE)


def again(size: int) -> str:
    """Returns the name of the test of repeated reads."""
    return f"the same read of {size >> 10} KiB again"


SKIPPING = "reads that skip as much as they read"
LONG = "reads of half a track, one at a time"


def ask(session: Session, seconds: float, half_track: int, turn: Rotation) -> None:
    """Runs all tests, each at places of its own."""
    capacity = session.device.capacity_bytes
    # Without read-ahead each read waits for a revolution.
    each_s = turn.period_ns / 1e9

    def at_most(count: int, share: float) -> int:
        return int(np.clip(share * seconds / each_s, count / 4, count))

    def place(random: np.random.Generator, length: int) -> int:
        return int(random.integers(0, max(1, (capacity - length) // (1 << 20)))) << 20

    def ordered(size: int, count: int, step: int = 1) -> Again:
        def draw(random: np.random.Generator) -> Requests:
            at = place(random, size * count * step)
            return Requests.reads(at + size * step * np.arange(count, dtype=np.uint64), size)

        return draw

    session.draw(in_order(SMALL), ordered(SMALL, at_most(600, 0.2)))
    session.draw(in_order(LARGE), ordered(LARGE, at_most(200, 0.15)))
    session.draw(SKIPPING, ordered(LARGE, at_most(120, 0.15)))
    session.draw(LONG, random_reads(capacity, half_track, 1, at_most(120, 0.2)))
    at = place(session.random, 1 << 20)
    for size in AGAIN_SIZES:
        session.ask(again(size), Requests.reads(np.full(12, at, np.uint64), size))
    for count in STREAMS:
        session.draw(streams(count), in_turn(capacity, count))


def in_turn(capacity: int, count: int) -> Again:
    """Draws this many streams, far from each other, that read 16 KiB in turn."""

    def draw(random: np.random.Generator) -> Requests:
        length = TURNS * (16 << 10)
        starts = random.integers(0, (capacity - length) // (1 << 20), count).astype(np.uint64) << np.uint64(20)
        turns = (np.arange(TURNS, dtype=np.uint64) * np.uint64(16 << 10))[:, None] + starts[None, :]
        return Requests.reads(turns.ravel(), 16 << 10)

    return draw
