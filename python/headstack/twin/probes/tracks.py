"""Probe of track capacity and skew: single blocks in ascending order at several places.

With the rotation known, the time at which a block passes is its angle. Within a track the angle grows with the blocks
in between; across a boundary the skew is added (H. Wong, 2019).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headstack.twin.device import Answers, Floats, Requests
from headstack.twin.probes.rotation import Rotation
from headstack.twin.probes.zones import PLACES, Rates
from headstack.twin.session import Session, places

TEST = "blocks along the tracks"
GAPS = "blocks a little further on"
BLOCKS = 28
"""Number of blocks per place: about eight tracks."""
STRIDE = 0.29
"""Share of the bytes per revolution: one pair in three crosses a boundary, none crosses two."""
ALIGNED = 4096
LARGEST = 1 << 20
"""Maximum request size of half a track, in bytes."""
SAME = 0.01
"""Angles, in revolutions, that differ by less are equal within the noise: 80 us at 7,200 rpm."""
LEAST_AGREEING = 0.4
"""Minimum share of pairs on a single track for which the estimate is accepted."""
USUAL_SKEW = 0.1
"""Skew in revolutions: the median of seven drives of 1995 to 2015 (Wong)."""
LARGEST_GAP = 0.25
"""Maximum command time, as a share of a revolution."""
GAP_STEPS, GAP_PAIRS = 9, 3
LARGEST_SKEW = 0.6
"""In revolutions; above it a boundary cannot be distinguished from a slower track."""


@dataclass(frozen=True)
class Tracks:
    """Tracks at several places from rim to rim."""

    at_bytes: Floats
    bytes: Floats
    """Bytes per track."""
    skew_turns: Floats

    @property
    def half_bytes(self) -> int:
        """Half of a typical track, in whole pages."""
        return int(np.clip(np.median(self.bytes) / 2 // ALIGNED, 4, LARGEST // ALIGNED)) * ALIGNED

    def count(self, capacity: int) -> float:
        """Returns the number of tracks of the whole disk."""
        grid = np.linspace(0, capacity, 257)
        return float(capacity * np.mean(1 / np.interp(grid, self.at_bytes, self.bytes)))


def ask(session: Session, rates: Rates, turn: Rotation) -> None:
    """Reads blocks about 0.3 tracks apart, between the places where rates were measured, whose data may still be in the
    buffer."""
    block, capacity = session.device.block_bytes, session.device.capacity_bytes
    for at in (np.arange(PLACES) + 0.5) * capacity / PLACES:
        stride = max(ALIGNED, STRIDE * float(np.interp(at, rates.at_bytes, rates.bytes_per_s)) * turn.period_ns / 1e9)
        steps = stride * (1 + 0.2 * session.random.uniform(-1, 1, BLOCKS))
        offsets = (at + np.cumsum(steps)).astype(np.uint64) // np.uint64(ALIGNED) * np.uint64(ALIGNED)
        session.ask(TEST, Requests.reads(offsets, block))


def ask_gaps(session: Session, tracks: Tracks, turn: Rotation) -> None:
    """Reads a block, and then one that passes shortly afterwards, at decreasing distance: if the command takes longer,
    it misses the block."""
    block = session.device.block_bytes
    low, high = 0.0, LARGEST_GAP
    for _ in range(GAP_STEPS):
        gap = (low + high) / 2
        firsts = places(session.random, GAP_PAIRS, session.device.capacity_bytes - (8 << 20))
        sizes = np.interp(firsts.astype(np.float64), tracks.at_bytes, tracks.bytes)
        seconds = firsts + (gap * sizes / block).astype(np.uint64) * np.uint64(block) + np.uint64(block)
        offsets = np.stack([firsts, seconds], axis=1).ravel()
        answers = session.ask(GAPS, Requests.reads(offsets, block))
        caught = (answers.response_ns[1::2] < (LARGEST_GAP + 0.3) * turn.period_ns).mean() > 0.5
        low, high = (low, gap) if caught else (gap, high)


def command_ns(session: Session, turn: Rotation) -> float | None:
    """Returns the minimum lead time of a command before its block passes: the command time before the arm moves.
    ``None`` if every block is caught, as with read-ahead."""
    runs = session.runs_of(GAPS)
    second = np.concatenate([run.answers.response_ns[1::2] for run in runs])
    caught = second[second < (LARGEST_GAP + 0.3) * turn.period_ns]
    if len(caught) == len(second) or len(caught) < GAP_PAIRS:
        return None
    return float(caught.min())


def learn(session: Session, rates: Rates, turn: Rotation) -> Tracks:
    """Returns tracks where they are visible; otherwise tracks with the same streaming rate and a usual skew."""
    measured = []
    for run in session.runs_of(TEST):
        track = track_from_angles(run.requests, run.answers, turn)
        if track is not None:
            measured.append((float(run.requests.offsets[0]), *track))
    if not measured:
        skew = np.full(len(rates.at_bytes), USUAL_SKEW)
        return Tracks(rates.at_bytes, rates.bytes_per_s * turn.period_ns / 1e9 * (1 + skew), skew)
    at, size, skew = np.array(measured).T
    return Tracks(at, size, skew)


def track_from_angles(requests: Requests, answers: Answers, turn: Rotation) -> tuple[float, float] | None:
    """Returns the bytes of a track, and the skew in revolutions; ``None`` if the angles do not fit tracks."""
    # Buffer hits contain no information on the medium.
    medium = answers.response_ns > turn.period_ns / 40
    at = requests.offsets[medium].astype(np.float64)
    angle = answers.completed_ns[medium] / turn.period_ns % 1
    apart, turned = np.diff(at), np.diff(angle) % 1
    if len(apart) < BLOCKS // 2:
        return None
    sizes = apart / np.maximum(turned, 1e-6)

    def agreeing(size: float) -> np.ndarray:
        return np.abs((turned - apart / size + 0.5) % 1 - 0.5) < SAME

    # Pairs that cross a boundary resemble smaller tracks, each of another size.
    best = max(sizes, key=lambda size: (int(agreeing(size).sum()), size))
    same = agreeing(best)
    if same.mean() < LEAST_AGREEING:
        return None
    size = float((apart[same] @ apart[same]) / (apart[same] @ turned[same]))
    skews = (turned - apart / size)[~agreeing(size)] % 1
    skews = skews[skews < LARGEST_SKEW]
    return size, float(np.median(skews)) if len(skews) else 0.0
