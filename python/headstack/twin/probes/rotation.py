"""How fast the medium turns: a place read again completes at the same angle, so a whole number of turns later.

Of all periods, the one is looked for at which the completions of each place have the same phase (H. Wong, 2019; the
sum of phase vectors as in a periodogram). Each place is read twice: what keeps few places in its buffer reads them
again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headstack.twin.device import Answers, Floats, Requests
from headstack.twin.session import Session, places

TEST = "random reads one at a time"
PLACES = 300
HZ = (55.0, 260.0)
"""Turns a second: 3,300 to 15,600 a minute, which all disks since 1990 keep."""
HIT_NS = 1_000_000
"""What comes sooner has not waited for the medium."""
LEAST_SPREAD = 0.15
"""Responses of a medium that turns vary by 0.29 of a turn at least, of the shortest turn in the range."""
LEAST_SCORE = 0.9
"""Phases of a place agree within a fifth of a turn or so; by chance the score is 2 / pi."""


@dataclass(frozen=True)
class Rotation:
    """A turn of the medium."""

    period_ns: float
    sd_ns: float
    score: float
    """How well phases agree: 1 for perfectly, 0.64 by chance."""

    @property
    def rpm(self) -> float:
        """Turns a minute."""
        return 60e9 / self.period_ns


def ask(session: Session) -> None:
    """Reads places at random, and all of them again in another order."""
    chosen = np.unique(places(session.random, PLACES, session.device.capacity_bytes - 4096))
    order = np.concatenate([session.random.permutation(chosen), session.random.permutation(chosen)])
    session.ask(TEST, Requests.reads(order, session.device.block_bytes))


def learn(session: Session) -> Rotation | None:
    """The turn, or nothing where the device does not turn."""
    (asked,) = session.of(TEST)
    return of_repeats(asked.requests, asked.answers)


def of_repeats(requests: Requests, answers: Answers) -> Rotation | None:
    """The turn that repeated reads keep."""
    taken = answers.response_ns > HIT_NS
    _, group = np.unique(requests.offsets, return_inverse=True)
    at = answers.completed_ns.astype(np.float64)
    at -= at[0]
    counts = np.bincount(group[taken], minlength=group.max() + 1)
    kept = taken & (counts[group] > 1)
    if kept.sum() < 100:
        return None
    # Whoever waits for a turn waits for any part of it; what always takes the same comes back in step with itself
    # alone.
    if answers.response_ns[kept].std() < LEAST_SPREAD * 1e9 / HZ[1]:
        return None
    at, group = at[kept], np.unique(group[kept], return_inverse=True)[1]
    span_s = (at.max() - at.min()) / 1e9
    grid = np.arange(HZ[0], HZ[1], 1 / (4 * span_s))
    scores = np.concatenate([_scores(at, group, part) for part in np.array_split(grid, max(1, len(grid) // 256))])
    best = scores.max()
    if best < LEAST_SCORE - 0.15:
        return None
    # Half a turn scores as a turn does: the longest of the good ones is the turn. The grid may lie beside the peak.
    hz = _refined(at, group, float(grid[np.flatnonzero(scores > best - 0.1)[0]]), 1 / (4 * span_s))
    score = float(_scores(at, group, np.array([hz]))[0])
    if score < LEAST_SCORE:
        return None
    period_ns = 1e9 / hz
    jitter_ns = max(1.0, period_ns / (2 * np.pi) * np.sqrt(max(0.0, -2 * np.log(min(1.0, score)))))
    sd_ns = np.sqrt(12) * jitter_ns / (at.max() - at.min()) / np.sqrt(len(at)) * period_ns
    return Rotation(period_ns, float(sd_ns), score)


def _scores(at_ns: Floats, group: np.ndarray, hz: Floats) -> Floats:
    """How well the phases of each group agree, by turns a second: the mean over groups of their vectors' sum."""
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    vectors = np.exp(2j * np.pi * 1e-9 * np.outer(hz, at_ns[order]))
    found: Floats = np.abs(np.add.reduceat(vectors, starts, axis=1)).sum(axis=1) / len(at_ns)
    return found


def _refined(at_ns: Floats, group: np.ndarray, hz: float, width: float) -> float:
    """The peak within a grid step or two, to a hundredth of what can be told."""
    while width > 1e-9 * hz:
        around = hz + np.linspace(-2, 2, 17) * width
        hz = float(around[_scores(at_ns, group, around).argmax()])
        width /= 4
    return hz
