"""Probe of seek times: reads at queue depth 1, each at a set distance from the previous one, at random angles.

A response is a seek plus up to one revolution: of many, the shortest and the longest determine the seek best (their
midpoint minus half a revolution has an error of 0.06 ms for 50 reads at 7,200 rpm, the mean of 0.34 ms).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headstack.twin.device import Floats, Integers, Requests
from headstack.twin.probes.zones import Rates
from headstack.twin.session import Session

TEST = "reads at a distance"
LONG_DISTANCES = (0.05, 0.09, 0.15, 0.22, 0.31, 0.42, 0.55, 0.7, 0.9)
"""Distances as shares of the way from rim to rim."""
NEAR, NEAREST = 6, 0.0001
"""Number of further distances, evenly spaced in their logarithm, and the smallest one."""
NEAREST_TRACKS = 12
"""Smallest distance on a disk with few tracks: adjacent places have a fixed angle to each other."""
JITTER, JITTER_TRACKS = 0.015, 1.2
"""Random variation of distances in either direction, as a share and in tracks: enough for any angle."""
COUNT = NEAR + len(LONG_DISTANCES)
LEAST, MOST = 12, 90
"""Range of reads per distance."""


@dataclass(frozen=True)
class Distances:
    """The distances for a disk with this number of tracks."""

    tracks: float

    @property
    def shares(self) -> Floats:
        """Shares of the way from rim to rim."""
        near = np.geomspace(max(NEAREST, NEAREST_TRACKS / self.tracks), LONG_DISTANCES[0] / 2, NEAR)
        return np.concatenate([near, LONG_DISTANCES])

    @property
    def jitter(self) -> Floats:
        """Variation of each distance, as a share of the way."""
        return np.maximum(JITTER * self.shares, JITTER_TRACKS / self.tracks)


def requests(
    random: np.random.Generator, distances: Distances, rates: Rates, capacity: int, block: int, each: int
) -> Requests:
    """Returns reads with all distances equally often, in random order."""
    left = np.full(COUNT, each)
    set_distances, jitter = distances.shares, distances.jitter
    shares = [float(random.random())]
    while left.any():
        here = shares[-1]
        goes = (left > 0) & ((here - set_distances >= 0) | (here + set_distances <= 1))
        if not goes.any():
            # Only long ones are left: they begin near a rim.
            longest = float(set_distances[left > 0].max())
            shares.append(float(random.random()) * (1 - longest))
            continue
        number = int(random.choice(COUNT, p=np.where(goes, left, 0) / left[goes].sum()))
        left[number] -= 1
        # No pair of places is repeated: it would have the same angle.
        distance = set_distances[number] + jitter[number] * random.uniform(-1, 1)
        outward, inward = here - distance, min(1.0, here + distance)
        shares.append(float(outward if inward >= 1 or (outward >= 0 and random.random() < 0.5) else inward))
    places = rates.at_radius(np.array(shares), capacity - 8192)
    # One block: hardly any crosses a track boundary, which would add the skew to the longest responses.
    return Requests.reads(places.astype(np.uint64) // np.uint64(4096) * np.uint64(4096), block)


def ask(session: Session, seconds: float, distances: Distances, rates: Rates, alone_s: float) -> None:
    """Runs all distances; ``alone_s`` is the time of one read at queue depth 1."""
    capacity, block = session.device.capacity_bytes, session.device.block_bytes
    each = int(np.clip(seconds / alone_s / COUNT, LEAST, MOST))
    session.draw(TEST, lambda random: requests(random, distances, rates, capacity, block, each))


def distances_of(reads: Requests, distances: Distances, rates: Rates, capacity: int) -> Integers:
    """Returns the index of the distance between each read of this test and the previous one; -1 for none."""
    moved = np.abs(np.diff(rates.share_of_radius(reads.offsets.astype(np.float64), capacity)))
    shares = distances.shares
    nearest = np.abs(np.log(np.maximum(moved, 1e-9))[:, None] - np.log(shares)[None, :]).argmin(axis=1)
    kept = np.abs(moved - shares[nearest]) < 1.5 * distances.jitter[nearest] + 2e-5
    return np.concatenate([[-1], np.where(kept, nearest, -1)])
