"""Probe of the interference of reads and writes."""

from __future__ import annotations

from typing import Final

import numpy as np

from headstack.twin.device import READ, WRITE, Requests
from headstack.twin.session import Session, places

ROUNDS: Final = 72
FIRST_NS: Final = 100_000.0
LATER: Final = 1.06
"""Factor between the read delays of successive rounds, from 0.1 ms to 7 ms, the range of program times."""
APART_S: Final = 0.1
MIXED: Final = 20_000


def probe_program(session: Session, row_bytes: int, dies: int, apart_ns: float) -> None:
    """Writes one row, and shortly afterwards reads each die once: the one that programs answers late, by the rest of
    its program or by the suspension time. Reads are ``apart_ns`` apart, so that none waits for another."""
    half = session.device.capacity_bytes // 2 // (row_bytes * dies) * (row_bytes * dies)
    if half < row_bytes * max(dies, ROUNDS):
        return
    for number in range(ROUNDS):
        after = FIRST_NS * LATER**number
        times = np.concatenate([[0], after + np.arange(dies) * apart_ns]).astype(np.uint64)
        offsets = np.concatenate([[number * row_bytes], half + np.arange(dies) * row_bytes])
        kinds = np.concatenate([[WRITE], np.full(dies, READ)])
        lengths = np.concatenate([[row_bytes], np.full(dies, session.device.block_bytes)])
        session.ask(f"read while one die programs, {number}", Requests.of(kinds, offsets, lengths, at_ns=times))
        session.rest(APART_S)


def probe_mix(session: Session) -> None:
    """Runs reads and writes together, in steady state."""
    for share in (0.7, 0.3):
        kinds = np.where(session.random.random(MIXED) < share, READ, WRITE)
        session.ask(
            f"mix, {share:.0%} reads",
            Requests.of(kinds, places(session.random, MIXED, session.device.capacity_bytes), 4096, depth=32),
        )
    session.ask(
        "depth curve, 16, steady", Requests.reads(places(session.random, 4000, session.device.capacity_bytes), depth=16)
    )
