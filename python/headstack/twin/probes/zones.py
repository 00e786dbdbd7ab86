"""How fast the medium is read at places from the outer rim to the inner: tracks outside hold more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headstack.twin.device import Floats, Requests
from headstack.twin.session import Asked, Session

TEST = "sequential reads"
PLACES = 16
SIZES = (32 << 10, 256 << 10)
LEAST = 20
"""Requests of a place."""


@dataclass(frozen=True)
class Rates:
    """Sequential reads at places."""

    at_bytes: Floats
    bytes_per_s: Floats

    def share_of_radius(self, offsets: np.ndarray, capacity: int) -> Floats:
        """Where places lie between the outer rim (0) and the inner (1): each byte takes as much radius as its track is
        short of bytes."""
        grid = np.linspace(0, capacity, 513)
        inverse = 1 / np.interp(grid, self.at_bytes, self.bytes_per_s)
        radius = np.concatenate([[0], np.cumsum((inverse[1:] + inverse[:-1]) / 2)])
        found: Floats = np.interp(offsets, grid, radius / radius[-1])
        return found

    def at_radius(self, share: np.ndarray, capacity: int) -> Floats:
        """The offset at a share of the way inwards."""
        grid = np.linspace(0, capacity, 513)
        found: Floats = np.interp(share, self.share_of_radius(grid, capacity), grid)
        return found


def ask(session: Session, seconds: float) -> None:
    """Reads in order at each place, after a short look at how fast the device is."""
    device = session.device
    first = session.ask("first look", _reads(0, 16, SIZES[0]))
    bytes_ = seconds / PLACES * 16 * SIZES[0] / first.seconds
    size = int(np.clip(1 << int(np.log2(bytes_ / LEAST / 2)), *SIZES))
    count = int(np.clip(bytes_ / size, LEAST, min(2000, device.capacity_bytes // (4 * size))))
    for place in range(PLACES):
        last = device.capacity_bytes - (count + 1) * size
        at = int(last * place / (PLACES - 1)) // size * size
        session.ask(TEST, _reads(at, count, size))


def _reads(at: int, count: int, size: int) -> Requests:
    # Two at a time: the second is there when the first ends, so that no turn is lost between them.
    return Requests.reads(at + size * np.arange(count, dtype=np.uint64), size, depth=2)


def learn(session: Session) -> Rates:
    """The rate of each place, without its first fifth."""
    asked = session.of(TEST)
    places = [float(one.requests.offsets[0]) for one in asked]
    return Rates(np.array(places), np.array([sustained(one) for one in asked]))


def sustained(asked: Asked) -> float:
    """Bytes a second from the first fifth to the end."""
    done = np.sort(asked.answers.completed_ns)
    first = len(done) // 5
    return float((len(done) - 1 - first) * int(asked.requests.lengths[0]) * 1e9 / (done[-1] - done[first]))
