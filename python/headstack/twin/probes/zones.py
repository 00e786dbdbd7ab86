"""Probe of transfer rates from the outer rim to the inner one: outer tracks hold more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headstack.twin.device import Floats, Requests
from headstack.twin.session import ProbeRun, Session

TEST = "sequential reads"
PLACES = 16
SIZES = (32 << 10, 256 << 10)
LEAST = 20
"""Minimum number of requests per place."""


@dataclass(frozen=True)
class Rates:
    """Sequential read rates at several places."""

    at_bytes: Floats
    bytes_per_s: Floats

    def share_of_radius(self, offsets: np.ndarray, capacity: int) -> Floats:
        """Returns the radial positions of offsets between the outer rim (0) and the inner one (1): a byte on a shorter
        track takes proportionally more radius."""
        grid = np.linspace(0, capacity, 513)
        inverse = 1 / np.interp(grid, self.at_bytes, self.bytes_per_s)
        radius = np.concatenate([[0], np.cumsum((inverse[1:] + inverse[:-1]) / 2)])
        shares: Floats = np.interp(offsets, grid, radius / radius[-1])
        return shares

    def at_radius(self, share: np.ndarray, capacity: int) -> Floats:
        """Returns the offset at a share of the way inwards."""
        grid = np.linspace(0, capacity, 513)
        offsets: Floats = np.interp(share, self.share_of_radius(grid, capacity), grid)
        return offsets


def ask(session: Session, seconds: float) -> None:
    """Reads sequentially at each place, after a short test of the device's speed."""
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
    # Queue depth 2: the second request is queued when the first ends, so that no revolution is lost in between.
    return Requests.reads(at + size * np.arange(count, dtype=np.uint64), size, depth=2)


def learn(session: Session) -> Rates:
    """Returns the rate of each place, without its first fifth."""
    runs = session.runs_of(TEST)
    places = [float(run.requests.offsets[0]) for run in runs]
    return Rates(np.array(places), np.array([sustained(run) for run in runs]))


def sustained(run: ProbeRun) -> float:
    """Returns bytes per second from the first fifth to the end."""
    done = np.sort(run.answers.completed_ns)
    first = len(done) // 5
    return float((len(done) - 1 - first) * int(run.requests.lengths[0]) * 1e9 / (done[-1] - done[first]))
