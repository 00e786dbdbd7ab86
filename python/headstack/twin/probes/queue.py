"""Probe of the command queue: random reads at several depths, whose complete distributions show the order of
service."""

from __future__ import annotations

import numpy as np

from headstack.twin.device import READ, WRITE, Requests
from headstack.twin.session import Again, Session, places

DEPTHS = (4, 8, 16, 64)
LEAST, MOST = 200, 1500


def name(depth: int, size: int = 4096) -> str:
    """Returns the name of the test."""
    return f"random reads of {size >> 10} KiB, {depth} at a time"


def ask(session: Session, seconds: float, alone_s: float) -> None:
    """Runs each depth for about equal time; ``alone_s`` is the time of one read at queue depth 1."""
    rate = 1 / alone_s
    for depth in DEPTHS:
        count = int(np.clip(seconds / len(DEPTHS) * rate, LEAST, MOST))
        answers = session.draw(name(depth), reads(session.device.capacity_bytes, 4096, depth, count))
        rate = answers.per_s


def reads(capacity: int, size: int, depth: int, count: int) -> Again:
    """Draws random reads."""
    return lambda random: Requests.reads(places(random, count, capacity, size), size, depth=depth)


def mixes(capacity: int, size: int, depth: int, count: int, read_share: float) -> Again:
    """Draws random reads and writes."""

    def draw(random: np.random.Generator) -> Requests:
        kinds = np.where(random.random(count) < read_share, READ, WRITE)
        return Requests.of(kinds, places(random, count, capacity, size), size, depth=depth)

    return draw
