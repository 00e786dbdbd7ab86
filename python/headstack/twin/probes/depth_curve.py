"""Probe of rates by queue depth, which shows the bottleneck of a device under increasing load."""

from __future__ import annotations

from typing import Final

from headstack.twin.device import Requests
from headstack.twin.session import Session, places

DEPTHS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
REQUESTS: Final = 4000


def probe(session: Session, state: str) -> None:
    """Runs random reads of 4 KiB at every depth, large ones at some, and a stream."""
    for depth in DEPTHS:
        session.ask(
            f"depth curve, {depth}, {state}",
            Requests.reads(places(session.random, REQUESTS, session.device.capacity_bytes), depth=depth),
        )
    session.ask(
        f"latency, warm, {state}", Requests.reads(places(session.random, REQUESTS // 2, session.device.capacity_bytes))
    )
    large = 1 << 17
    if session.device.capacity_bytes < 64 * large:
        return
    for depth in (8, 64):
        session.ask(
            f"depth curve, large, {depth}, {state}",
            Requests.reads(places(session.random, 1500, session.device.capacity_bytes, large), large, depth=depth),
        )
