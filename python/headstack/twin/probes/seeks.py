"""How long the arm moves: reads one at a time, each a set distance from the one before, at random angles.

A response is a seek and then up to a turn: of many, the shortest and the longest tell the seek best (their middle
less half
a turn: 0.06 ms of 50 reads at 7,200 rpm, where the mean has 0.34).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headstack.twin.device import Floats, Integers, Requests
from headstack.twin.probes.zones import Rates
from headstack.twin.session import Session

TEST = "reads at a distance"
FAR = (0.05, 0.09, 0.15, 0.22, 0.31, 0.42, 0.55, 0.7, 0.9)
"""Shares of the way from rim to rim."""
NEAR, NEAREST = 6, 0.0001
"""So many distances more, even in their logarithm, from the nearest on."""
NEAREST_TRACKS = 12
"""On a disk of few tracks: next to each other two places are at one angle to each other and not at any."""
JITTER, JITTER_TRACKS = 0.015, 1.2
"""What distances differ by, on either side, as a share and in tracks: enough for any angle."""
COUNT = NEAR + len(FAR)
LEAST, MOST = 12, 90
"""Reads of a distance."""


@dataclass(frozen=True)
class Distances:
    """The distances that are asked of a disk with so many tracks."""

    tracks: float

    @property
    def shares(self) -> Floats:
        """Of the way from rim to rim."""
        near = np.geomspace(max(NEAREST, NEAREST_TRACKS / self.tracks), FAR[0] / 2, NEAR)
        return np.concatenate([near, FAR])

    @property
    def jitter(self) -> Floats:
        """What each may differ by, as a share of the way."""
        return np.maximum(JITTER * self.shares, JITTER_TRACKS / self.tracks)


def requests(
    random: np.random.Generator, asked: Distances, rates: Rates, capacity: int, block: int, each: int
) -> Requests:
    """Reads whose distances from each other are all of those asked as often, in an order that chance chooses."""
    left = np.full(COUNT, each)
    distances, jitter = asked.shares, asked.jitter
    shares = [float(random.random())]
    while left.any():
        here = shares[-1]
        goes = (left > 0) & ((here - distances >= 0) | (here + distances <= 1))
        if not goes.any():
            # Only long ones are left: they begin near a rim.
            longest = float(distances[left > 0].max())
            shares.append(float(random.random()) * (1 - longest))
            continue
        number = int(random.choice(COUNT, p=np.where(goes, left, 0) / left[goes].sum()))
        left[number] -= 1
        # No place is met twice: the same two places are at the same angle.
        distance = distances[number] + jitter[number] * random.uniform(-1, 1)
        outward, inward = here - distance, min(1.0, here + distance)
        shares.append(float(outward if inward >= 1 or (outward >= 0 and random.random() < 0.5) else inward))
    places = rates.at_radius(np.array(shares), capacity - 8192)
    # Of one block: hardly any lies on two tracks, which would add the skew to the longest responses.
    return Requests.reads(places.astype(np.uint64) // np.uint64(4096) * np.uint64(4096), block)


def ask(session: Session, seconds: float, asked: Distances, rates: Rates, alone_s: float) -> None:
    """Asks all distances; ``alone_s`` is how long one read takes alone."""
    capacity, block = session.device.capacity_bytes, session.device.block_bytes
    each = int(np.clip(seconds / alone_s / COUNT, LEAST, MOST))
    session.draw(TEST, lambda random: requests(random, asked, rates, capacity, block, each))


def distances_of(reads: Requests, asked: Distances, rates: Rates, capacity: int) -> Integers:
    """Which distance each read of this test lies from the one before; -1 for none of them."""
    moved = np.abs(np.diff(rates.share_of_radius(reads.offsets.astype(np.float64), capacity)))
    of = asked.shares
    nearest = np.abs(np.log(np.maximum(moved, 1e-9))[:, None] - np.log(of)[None, :]).argmin(axis=1)
    kept = np.abs(moved - of[nearest]) < 1.5 * asked.jitter[nearest] + 2e-5
    return np.concatenate([[-1], np.where(kept, nearest, -1)])
