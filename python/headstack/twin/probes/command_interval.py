"""Probe of the command rate, and of the number of commands that the device processes at once."""

from __future__ import annotations

from typing import Final

import numpy as np

from headstack.twin.device import Requests
from headstack.twin.session import Session, places

DEPTHS: Final = (1, 2, 4, 8, 16, 31, 32, 63, 64, 127, 128, 253, 254, 255, 256, 511, 512, 1022, 1023, 1024)
"""Numbers of requests before the one that shows whether there was a free slot: around the usual queue depths of
devices.
"""


def probe(session: Session, state: str, row_bytes: int, dies: int | None) -> None:
    """Issues as many concurrent reads as a device accepts. If its rows and dies are known, bursts of reads of one die
    and then one of another show the number of commands it processes: the last one waits for a slot or not."""
    block = session.device.block_bytes
    session.ask(
        f"command interval, {state}",
        Requests.reads(places(session.random, 4000, session.device.capacity_bytes, 4096), block, depth=256),
    )
    if dies is None or dies < 2:
        return
    room = session.device.capacity_bytes // (dies * row_bytes)
    for ahead in DEPTHS:
        busy = (np.arange(ahead) % room) * dies * row_bytes
        offsets = np.append(busy, row_bytes)
        session.ask(f"commands at once, {ahead}", Requests.reads(offsets, block, at_ns=np.zeros(ahead + 1, np.uint64)))
