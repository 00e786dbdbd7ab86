"""Probe of dies and channels by conflicts of two simultaneous reads, the second at increasing distance from the first.

In a drive that was filled in order, neighbouring rows (a page of each plane) are on neighbouring dies. Two reads of one
row conflict on its die; a read that follows another over the same channel waits for the other's transfer. The smallest
distances with a conflict are the row, the dies and the channels. After random overwrites there is no period, and the
share of pairs that conflict is one over the number of dies.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from headstack.twin.device import Floats, Integers, Requests
from headstack.twin.session import Session, places

STEP_BYTES: Final = 4096
ROW_MOST_BYTES: Final = 512 << 10
"""Rows of 16 planes with pages of 32 KiB, the maximum."""
STRIDES: Final = 1100
"""More than the dies of large drives."""
BASES: Final = 2
PAIRS: Final = 4000
KEPT_ROWS: Final = 64
"""Rows at the end, where other probes write."""


def gap_ns(session: Session) -> int:
    """Returns the time after which a pair has no effect on the drive any more: four times a read of a row."""
    lone = [run.answers.response_ns.max() for run in session.runs if run.test.startswith("latency floor")]
    return int(4 * max(lone, default=1e7)) + 50_000


def pairs(session: Session, test: str, firsts: Integers, seconds: Integers, lengths: tuple[int, int]) -> Floats:
    """Runs pairs of simultaneous reads, and returns the response times of the second ones."""
    offsets = np.stack([firsts, seconds], axis=1).ravel()
    sizes = np.tile(np.array(lengths, np.uint32), len(firsts))
    times = np.repeat(np.arange(len(firsts), dtype=np.uint64) * np.uint64(gap_ns(session)), 2)
    return session.ask(test, Requests.reads(offsets, sizes, at_ns=times)).response_ns[1::2]


def row_from(distances: Integers, delays: Floats) -> int | None:
    """Returns the bytes of a row: the smallest distance at which two reads do not conflict; ``None`` if they conflict
    at none or all.
    """
    most = delays.max()
    met = delays > 0.5 * most
    return int(distances[~met][0]) if most > 0 and met[0] and not met.all() else None


def probe(session: Session, state: str) -> None:
    """Probes rows, then dies and channels; ``state`` names what was done to the drive before."""
    block, capacity = session.device.block_bytes, session.device.capacity_bytes
    most = min(ROW_MOST_BYTES, capacity // 4) // STEP_BYTES
    distances = (
        np.concatenate([[block], np.arange(1, most) * STEP_BYTES])
        if block < STEP_BYTES
        else np.arange(1, most) * STEP_BYTES
    )
    zeros = np.zeros_like(distances)
    session.ask(f"dies, map, {state}", Requests.reads(zeros[:2], block))
    delays = pairs(session, f"dies, rows, {state}", zeros, distances, (block, block))
    row = row_from(distances, delays - delays.min()) or 16384
    strides = np.arange(1, max(3, min(STRIDES, capacity // row // 2)))
    last = max(1, capacity // row - len(strides) - KEPT_ROWS)
    for number, base in enumerate(np.append(0, session.random.integers(0, last, BASES - 1)) * row):
        firsts = np.full(len(strides), base)
        # From here on, a drive with a partial map cache has the map of these places cached.
        session.ask(f"dies, map, {state}", Requests.reads(base + np.arange(0, len(strides) * row, 1 << 20), block))
        # The last pair is of one row: the cost of a conflict.
        seconds = np.append(base + strides[:-1] * row, base + row - block)
        pairs(session, f"dies, strides {number}, {state}", firsts, seconds, (block, block))
        # Only the data of a whole row occupy a channel for long.
        pairs(session, f"dies, rows at strides {number}, {state}", firsts, seconds, (row, block))
    if capacity < 1 << 21:
        return
    offsets = places(session.random, 2 * PAIRS, session.device.capacity_bytes, STEP_BYTES).astype(np.int64)
    pairs(session, f"dies, pairs, {state}", offsets[::2], offsets[1::2], (block, block))
