"""Probe of minimum response times at queue depth 1, for every size."""

from __future__ import annotations

from typing import Final

import numpy as np

from headstack.twin.device import READ, WRITE, Requests
from headstack.twin.session import Session, places

SIZES: Final = tuple(4096 << power for power in range(9))
REPEATS: Final = 24
ALIGN_BYTES: Final = 1 << 20
BOTH_BYTES: Final = 1 << 18


def probe(session: Session, state: str) -> None:
    """Runs reads at queue depth 1: a block and 4 KiB to 1 MiB, each place twice in a row."""
    device = session.device
    for size in (device.block_bytes, *SIZES):
        if size > device.capacity_bytes // 8:
            break
        offsets = places(
            session.random, REPEATS, session.device.capacity_bytes, min(ALIGN_BYTES, device.capacity_bytes // 8)
        )
        session.ask(f"latency floor, {size}, {state}", Requests.reads(np.repeat(offsets, 2), size))
    session.ask(
        f"latency, random, {state}", Requests.reads(places(session.random, 2000, session.device.capacity_bytes))
    )


def probe_writes(session: Session) -> None:
    """Runs writes at queue depth 1, each long after the last, at the sizes of reads."""
    device = session.device
    for size in SIZES:
        if size > device.capacity_bytes // 8:
            break
        offsets = places(session.random, 8, session.device.capacity_bytes, min(ALIGN_BYTES, device.capacity_bytes // 8))
        session.ask(f"latency floor, writes, {size}", Requests.of(WRITE, offsets, size, think_ns=50_000_000))


def probe_both(session: Session) -> None:
    """Runs a long write and a short read simultaneously, which shows whether the link is full duplex."""
    long = min(BOTH_BYTES, session.device.capacity_bytes // 8)
    offsets = places(session.random, 2 * REPEATS, session.device.capacity_bytes, long)
    times = np.repeat(np.arange(REPEATS, dtype=np.uint64) * np.uint64(200_000_000), 2)
    requests = Requests.of(np.tile([WRITE, READ], REPEATS), offsets, np.tile([long, 4096], REPEATS), at_ns=times)
    session.ask("both ways at once", requests)
