"""How fast the medium is read at places from the outer rim to the inner: tracks outside hold more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headstack.twin.device import Floats, Requests
from headstack.twin.session import Session

TEST = "sequential reads"
PLACES = 16
SIZE = 256 << 10
SECONDS = 0.45
"""Of a place: some fifty tracks."""


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


def ask(session: Session) -> None:
    """Reads in order at each place, after a short look at how fast the device is."""
    device = session.device
    first = session.ask("first look", _reads(0, 16))
    rate = 16 * SIZE / first.seconds
    for place in range(PLACES):
        count = int(np.clip(SECONDS * session.share * rate / SIZE, 24, min(2000, device.capacity_bytes // (4 * SIZE))))
        last = device.capacity_bytes - (count + 1) * SIZE
        at = int(last * place / (PLACES - 1)) // SIZE * SIZE
        answers = session.ask(TEST, _reads(at, count))
        rate = count * SIZE / answers.seconds


def _reads(at: int, count: int) -> Requests:
    # Two at a time: the second is there when the first ends, so that no turn is lost between them.
    return Requests.reads(at + SIZE * np.arange(count, dtype=np.uint64), SIZE, depth=2)


def learn(session: Session) -> Rates:
    """The rate of each place, without its first fifth."""
    asked = session.of(TEST)
    places = [float(one.requests.offsets[0]) for one in asked]
    return Rates(np.array(places), np.array([sustained(one.answers.completed_ns) for one in asked]))


def sustained(completed_ns: np.ndarray, size: int = SIZE) -> float:
    """Bytes a second from the first fifth to the end."""
    done = np.sort(completed_ns)
    first = len(done) // 5
    return float((len(done) - 1 - first) * size * 1e9 / (done[-1] - done[first]))
