"""How long the arm moves: reads one at a time, each a set distance from the one before, at random angles.

A response is a seek and then up to a turn: of many, the shortest and the longest tell the seek best (their middle
less half
a turn: 0.06 ms of 50 reads at 7,200 rpm, where the mean has 0.34).
"""

from __future__ import annotations

import numpy as np

from headstack.twin.device import Integers, Requests
from headstack.twin.probes.zones import Rates
from headstack.twin.session import Session

TEST = "reads at a distance"
DISTANCES = (0.0001, 0.0004, 0.0015, 0.005, 0.012, 0.025, 0.05, 0.09, 0.15, 0.22, 0.31, 0.42, 0.55, 0.7, 0.9)
"""Shares of the way from rim to rim."""
EACH = 55


def requests(random: np.random.Generator, rates: Rates, capacity: int, each: int = EACH) -> Requests:
    """Reads whose distances from each other are all of ``DISTANCES`` as often, in an order that chance chooses."""
    left = np.full(len(DISTANCES), each)
    distances = np.array(DISTANCES)
    shares = [float(random.random())]
    while left.any():
        here = shares[-1]
        goes = (left > 0) & ((here - distances >= 0) | (here + distances <= 1))
        if not goes.any():
            # Only long ones are left: they begin near a rim.
            longest = float(distances[left > 0].max())
            shares.append(float(random.random()) * (1 - longest))
            continue
        number = int(random.choice(len(DISTANCES), p=np.where(goes, left, 0) / left[goes].sum()))
        left[number] -= 1
        # No place is met twice: the same two places are at the same angle.
        distance = distances[number] * (1 + 0.015 * random.uniform(-1, 1))
        outward, inward = here - distance, min(1.0, here + distance)
        shares.append(float(outward if inward >= 1 or (outward >= 0 and random.random() < 0.5) else inward))
    places = rates.at_radius(np.array(shares), capacity - 8192)
    return Requests.reads(places.astype(np.uint64) // np.uint64(4096) * np.uint64(4096))


def ask(session: Session, rates: Rates) -> None:
    """Asks all distances."""
    capacity = session.device.capacity_bytes
    each = max(12, round(EACH * session.share))
    session.draw(TEST, lambda random: requests(random, rates, capacity, each))


def distances_of(asked: Requests, rates: Rates, capacity: int) -> Integers:
    """Which distance each read of this test lies from the one before; -1 for none of them."""
    moved = np.abs(np.diff(rates.share_of_radius(asked.offsets.astype(np.float64), capacity)))
    of = np.array(DISTANCES)
    nearest = np.abs(np.log(np.maximum(moved, 1e-9))[:, None] - np.log(of)[None, :]).argmin(axis=1)
    kept = np.abs(moved - of[nearest]) < 0.03 * of[nearest] + 2e-5
    return np.concatenate([[-1], np.where(kept, nearest, -1)])
