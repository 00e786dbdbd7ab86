"""Probe of the rotation speed: a repeated read completes at the same angle, thus a whole number of revolutions later.

The period is chosen at which the completions of each place have the same phase (H. Wong, 2019; the sum of phase vectors
as in a periodogram). Each place is read twice: a drive with a small buffer reads it from the medium again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headstack.twin.device import Answers, Floats, Requests
from headstack.twin.session import Session, places

TEST = "random reads one at a time"
PLACES = 300
HZ = (55.0, 260.0)
"""Revolutions per second: 3,300 to 15,600 rpm, the range of all disks since 1990."""
HIT_NS = 1_000_000
"""Shorter responses are buffer hits."""
LEAST_SPREAD = 0.15
"""Responses of a rotating medium vary by at least 0.29 revolutions, here of the shortest period in the range."""
LEAST_SCORE = 0.9
"""Phases of a place agree within about 20 % of a revolution; by chance the score is 2 / pi."""


@dataclass(frozen=True)
class Rotation:
    """The rotation of the medium."""

    period_ns: float
    sd_ns: float
    score: float
    """Agreement of phases: 1 is perfect, 0.64 is chance."""

    @property
    def rpm(self) -> float:
        """Revolutions per minute."""
        return 60e9 / self.period_ns


def ask(session: Session) -> None:
    """Reads random places, and all of them again in another order."""
    chosen = np.unique(places(session.random, PLACES, session.device.capacity_bytes - 4096))
    order = np.concatenate([session.random.permutation(chosen), session.random.permutation(chosen)])
    session.ask(TEST, Requests.reads(order, session.device.block_bytes))


def learn(session: Session) -> Rotation | None:
    """Returns the rotation, or ``None`` if the device does not rotate."""
    (run,) = session.runs_of(TEST)
    return rotation_from_repeats(run.requests, run.answers)


def rotation_from_repeats(requests: Requests, answers: Answers) -> Rotation | None:
    """Returns the rotation that repeated reads show."""
    taken = answers.response_ns > HIT_NS
    _, group = np.unique(requests.offsets, return_inverse=True)
    at = answers.completed_ns.astype(np.float64)
    at -= at[0]
    counts = np.bincount(group[taken], minlength=group.max() + 1)
    kept = taken & (counts[group] > 1)
    if kept.sum() < 100:
        return None
    # A wait for rotation is uniformly distributed; constant times would be in phase only with themselves.
    if answers.response_ns[kept].std() < LEAST_SPREAD * 1e9 / HZ[1]:
        return None
    at, group = at[kept], np.unique(group[kept], return_inverse=True)[1]
    span_s = (at.max() - at.min()) / 1e9
    grid = np.arange(HZ[0], HZ[1], 1 / (4 * span_s))
    scores = np.concatenate([_scores(at, group, part) for part in np.array_split(grid, max(1, len(grid) // 256))])
    best = scores.max()
    if best < LEAST_SCORE - 0.15:
        return None
    # Half a period scores like the period: the longest good one is right. The grid may miss the peak.
    hz = _refined(at, group, float(grid[np.flatnonzero(scores > best - 0.1)[0]]), 1 / (4 * span_s))
    score = float(_scores(at, group, np.array([hz]))[0])
    if score < LEAST_SCORE:
        return None
    period_ns = 1e9 / hz
    jitter_ns = max(1.0, period_ns / (2 * np.pi) * np.sqrt(max(0.0, -2 * np.log(min(1.0, score)))))
    sd_ns = np.sqrt(12) * jitter_ns / (at.max() - at.min()) / np.sqrt(len(at)) * period_ns
    return Rotation(period_ns, float(sd_ns), score)


def _scores(at_ns: Floats, group: np.ndarray, hz: Floats) -> Floats:
    """Returns the agreement of phases by revolutions per second: the mean over groups of their vector sums."""
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    vectors = np.exp(2j * np.pi * 1e-9 * np.outer(hz, at_ns[order]))
    scores: Floats = np.abs(np.add.reduceat(vectors, starts, axis=1)).sum(axis=1) / len(at_ns)
    return scores


def _refined(at_ns: Floats, group: np.ndarray, hz: float, width: float) -> float:
    """Refines the peak within a grid step or two, to 1 % of its resolution."""
    while width > 1e-9 * hz:
        around = hz + np.linspace(-2, 2, 17) * width
        hz = float(around[_scores(at_ns, group, around).argmax()])
        width /= 4
    return hz
