"""What a device makes of many requests at a time: random reads at some depths, whose whole distributions tell the
order."""

from __future__ import annotations

import numpy as np

from headstack.twin.device import READ, WRITE, Requests
from headstack.twin.session import Again, Session, places

DEPTHS = (4, 8, 16, 64)
LEAST, MOST = 200, 1500


def name(depth: int, size: int = 4096) -> str:
    """What the test is called."""
    return f"random reads of {size >> 10} KiB, {depth} at a time"


def ask(session: Session, seconds: float, alone_s: float) -> None:
    """Asks each depth for about as long; ``alone_s`` is how long one read takes alone."""
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
