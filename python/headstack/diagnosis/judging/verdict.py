"""Verdicts on disks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from headstack.diagnosis.judging.state import State

FINE: Literal["fine"] = "fine"
SLOW: Literal["slow"] = "slow"
CANNOT_TELL: Literal["cannot tell"] = "cannot tell"
Kind: TypeAlias = Literal["fine", "slow", "cannot tell"]
KINDS: tuple[Kind, ...] = (SLOW, CANNOT_TELL, FINE)
"""Those that want attention first."""
FALSE_SHARE = 0.05
"""Of the slow disks that stand over the whole fleet, so many may be false on average."""
Method: TypeAlias = Literal["peers", "own past", "twin"]


@dataclass(frozen=True, slots=True)
class Slower:
    """How many times as long requests take as they should."""

    factor: float
    low: float
    high: float
    """Ends of its 90 % interval."""
    is_lower_bound: bool = False
    """Whether the disk is at least so slow: it had less load than what it was compared with."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause that would make a disk slow in this way."""

    name: str
    evidence: str
    """The evidence for it, in a sentence."""
    likelihood: float | None = None
    """Its share among the causes that were tried."""
    runner_up: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a disk, with the reasons."""

    host: str
    disk: str
    kind: Kind
    why: str
    """A sentence with the figures that it rests on."""
    next_step: str
    model: str | None = None
    since_s: float | None = None
    """Seconds since 1970; of a slow disk alone."""
    slower: Slower | None = None
    confidence: float | None = None
    """Probability that the verdict is right, from 0 to 1."""
    method: Method | None = None
    """The reference that it was compared with; ``None`` where there was none."""
    cause: Cause | None = None
    evidence: float | None = None
    """How much of the evidence that an alarm takes has come together: 1 is an alarm."""
    stands: bool = False
    """Whether a slow disk is among those of which at most ``FALSE_SHARE`` are false on average, however many disks
    are watched; what it is called slow by is a budget for each disk."""
    course: tuple[tuple[float, float], ...] = ()
    """Over time, how many times as slow as it should be it was: (start_s, factor), at most some hundred."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdicts on all disks that were seen, and what the next observations go on from."""

    verdicts: tuple[Verdict, ...]
    state: State
    """Plain data, bounded for each disk."""
