"""Verdicts on disks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headstack.diagnosis.judging.state import State

FINE: Literal["fine"] = "fine"
SLOW: Literal["slow"] = "slow"
UNDECIDED: Literal["undecided"] = "undecided"
Kind: TypeAlias = Literal["slow", "limit", "host", "neighbour", "queue", "undecided", "fine"]
KINDS: tuple[Kind, ...] = (SLOW, "limit", "host", "neighbour", "queue", UNDECIDED, FINE)
"""Kinds of verdicts, the most urgent first: a slow disk; a limit, its host, other work or a long queue that makes its
requests wait although the disk is in order."""
OLD_KINDS: Mapping[str, Kind] = {"cannot tell": UNDECIDED}
"""Kinds as files of November 2026 and before name them."""
FALSE_SHARE = 0.05
"""Maximum average share of false alarms among the slow disks with ``stands``, over the whole fleet."""
Method: TypeAlias = Literal["peers", "own past", "twin"]
Suspect: TypeAlias = Literal["device", "limit", "queue", "host", "neighbour", "none"]
SUSPECTS: tuple[Suspect, ...] = ("device", "limit", "queue", "host", "neighbour", "none")
"""Possible causes of slow requests: the device, a limit on its rate, more requests than it serves, a host without time
to send them, other work on the same device, or no trouble."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A suspect with its likelihood."""

    suspect: Suspect
    likelihood: float
    """Probability among all suspects, which have equal chances before."""
    evidence: str
    """The evidence for it or against it, with numbers."""
    would_change: str
    """The observation that would change the answer."""


@dataclass(frozen=True, slots=True)
class Slower:
    """The slowdown of requests, as a factor."""

    factor: float
    low: float
    high: float
    """Upper bound of its 90 % interval."""
    is_lower_bound: bool = False
    """Whether it is a lower bound: the disk had less load than its reference."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """The latency that a simulated system has under a disk's load, and the latency of the disk."""

    system: str
    requests: str
    """Kind of requests: ``reads``, ``writes`` or ``requests``."""
    measured_s: float
    """Mean latency of the disk in its last phase, in seconds."""
    iops: float
    """All requests per second."""
    queue_depth: float
    """Mean queue depth while the disk was busy, at which the system was simulated."""
    latency_s: float
    """Predicted mean latency, in seconds."""
    low_s: float | None = None
    """Lower end of the prediction interval; ``None`` if the error of the model is not known under this load."""
    high_s: float | None = None
    level: float | None = None
    """Share of devices within the interval, from 0 to 1."""
    no_interval: str | None = None
    """The reason for a missing interval."""
    slow_probability: float | None = None
    """Probability that the disk is slow; ``None`` without an interval, or if most disks compared with the system are
    above it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause that would slow a disk in this way."""

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
    """A sentence with the figures behind it."""
    next_step: str
    model: str | None = None
    since_s: float | None = None
    """Seconds since 1970; only for a slow disk."""
    slower: Slower | None = None
    confidence: float | None = None
    """Probability that the verdict is right, from 0 to 1."""
    method: Method | None = None
    """The reference that it was compared with; ``None`` without one."""
    cause: Cause | None = None
    evidence: float | None = None
    """The evidence as a share of an alarm: 1 is an alarm."""
    stands: bool = False
    """Whether a slow disk is among those of which at most ``FALSE_SHARE`` are false on average, independent of the
    number of disks; the verdict itself has a budget for each disk."""
    course: tuple[tuple[float, float], ...] = ()
    """Slowdown over time: (start_s, factor), at most some hundred values."""
    suspects: tuple[Weighed, ...] = ()
    """Possible causes of slow requests, the likeliest first; empty without requests."""
    rests_on: str | None = None
    """The data that the suspects were weighed on."""
    predicted: Predicted | None = None
    """The comparison with a simulated system, for a disk without a comparison with peers or its own past."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdicts on all observed disks, and the state for the next observations."""

    verdicts: tuple[Verdict, ...]
    state: State
    """Plain data of bounded size per disk."""
