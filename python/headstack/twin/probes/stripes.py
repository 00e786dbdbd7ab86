"""How an array spreads its data: random reads at multiples of a distance are slowest where all of them meet one member.

Also of writes against reads, which tell what redundancy costs. After Denehy et al., "Deconstructing storage arrays",
2004.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from headstack.twin.device import READ, WRITE, Requests
from headstack.twin.session import Session, places

UNITS: Final = tuple(4096 << power for power in range(9))
"""Stripe units of arrays that are sold: 4 KiB to 1 MiB."""
MEMBERS_MOST: Final = 16
SLOW_NS: Final = 1_000_000.0
"""Members that turn need longer than this, and need fewer requests to be told apart."""


def distances() -> list[int]:
    """Distances at which every unit and number of members shows itself: odd multiples of powers of two."""
    found = {unit * odd for unit in (4096 << power for power in range(13)) for odd in range(1, MEMBERS_MOST, 2)}
    # With two parities a member comes round again after as many stripes as there are members.
    found |= {unit * members * (members - 2) for unit in UNITS for members in range(4, MEMBERS_MOST + 1)}
    return sorted(one for one in found if one <= max(UNITS) * MEMBERS_MOST * (MEMBERS_MOST - 2))


def pace(session: Session) -> tuple[int, int]:
    """Requests of a test and their depth: what keeps every member busy."""
    (alone,) = session.of("array, alone")
    return (250, 64) if float(np.median(alone.answers.response_ns)) > SLOW_NS else (10_000, 2048)


def probe(session: Session) -> None:
    """Reads alone, at every distance, anywhere, and writes anywhere where that is allowed."""
    block, capacity = max(4096, session.device.block_bytes), session.device.capacity_bytes
    where = places(session.random, 200, capacity, block)
    session.ask("array, alone", Requests.reads(where, block))
    count, depth = pace(session)
    for distance in distances():
        rows = capacity // distance
        if rows < 4 * depth:
            break
        offsets = session.random.integers(0, rows, count).astype(np.uint64) * np.uint64(distance)
        session.ask(f"distance, {distance}", Requests.reads(offsets, block, depth=depth))
    # Where all meet one member, half of them a step further: that is still its unit, or the next member's.
    measured = [one for one in session.asked if one.test.startswith("distance")]
    slowest = int(min(measured, key=lambda one: one.answers.per_s).test.split(", ")[1])
    for step in UNITS:
        if step < slowest:
            starts = session.random.integers(0, capacity // slowest, count).astype(np.uint64) * np.uint64(slowest)
            offsets = starts + (np.arange(count) % 2).astype(np.uint64) * np.uint64(step)
            session.ask(f"distance, {slowest}, {step}", Requests.reads(offsets, block, depth=depth))
    for kind, name in ((READ, "reads"), (WRITE, "writes")):
        if kind == READ or session.device.may_write:
            offsets = places(session.random, 3 * count, capacity, block)
            session.ask(f"anywhere, {name}", Requests.of(kind, offsets, block, depth=depth))
    for depth in (2, 8, 32):
        session.ask(
            f"array, depth {depth}", Requests.reads(places(session.random, count, capacity, block), block, depth=depth)
        )
