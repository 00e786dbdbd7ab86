"""Types of crash states, recordings and searches, in the form of the compiled module."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class TornWrite(TypedDict):
    """A write of which only some atoms are stored."""

    change: int
    """Number of the change in the recording."""
    kept: list[list[int]]
    """Stored atoms, counted from the first atom of the write, as ranges: first atom, and the atom after the last."""


class CrashState(TypedDict):
    """A state after a crash: all durable changes, and the open ones except for those named here."""

    events: int
    """Number of events of the recording that have occurred."""
    missing: list[int]
    """Numbers of the open changes that are completely missing, in order."""
    torn: list[TornWrite]


class Rules(TypedDict):
    """Guarantees of the device in addition to those of its flushes."""

    tear: str
    """The points at which a crash may tear writes: one of ``TEARS``."""
    atom_bytes: int
    """The size that is written atomically; 0 for a block of the device."""
    regions: list[int]
    """First bytes of regions, within each of which changes survive in the order in which they were sent."""


class MarkName(TypedDict):
    """The mark of this text, as the start of a search."""

    mark: str


SearchRequest = TypedDict(
    "SearchRequest",
    {"rules": Rules, "from": Literal["first-mark", "beginning"] | MarkName, "seed": int},
)
"""The states to search: the device's rules, the first moment of crashes, and the random seed."""


class Reproduced(TypedDict):
    """A state on which a check fails, as a reproducer stores it."""

    state: CrashState
    rules: Rules
    check: str
    """The name of the check, or its command."""
    over: str
    """How the state was presented to the check: one of ``WAYS``."""
    message: str


class RecordingSummary(TypedDict):
    """The device of a recording, its counts, and its end."""

    capacity_bytes: int
    block_bytes: int
    atomic_bytes: int
    has_volatile_cache: bool
    image: str | None
    """The initial image of the device; ``None`` for zeros."""
    events: int
    changes: int
    trims: int
    forced: int
    failed: int
    data_bytes: int
    flushes: int
    marks: int
    power_cuts: int
    span_ns: int
    is_finished: bool
    left_bytes: int
    """Bytes at the end that form no complete record."""


class Moment(TypedDict):
    """A window: a moment at which crashes are tried."""

    events: int
    at_ns: int
    marks: int
    open: int
    """Number of open changes."""
    possible: float
    """Number of subsets of the open changes, including torn changes."""


class SentChange(TypedDict):
    """A write or a trim that was sent to the device."""

    number: int
    what: str
    """``write``, ``zeros`` or ``trim``."""
    offset_bytes: int
    length_bytes: int
    is_forced: bool
    is_metadata: bool
    submitted_ns: int
    event: int


class CoverageCounts(TypedDict):
    """The numbers of states that were tried; see ``Coverage``."""

    states: int
    duplicates: int
    subsets: int
    possible: float
    windows: int
    whole_windows: int
    largest_window: int


class KeptWrite(TypedDict):
    """A ``Write`` in the file of an exploration."""

    number: int
    what: str
    offset_bytes: int
    length_bytes: int
    submitted_ns: int
    is_metadata: bool
    files: list[str]
    kept: list[list[int]] | None


class KeptFinding(TypedDict):
    """A ``Finding`` in the file of an exploration."""

    message: str
    state: CrashState
    missing: list[KeptWrite]
    torn: list[KeptWrite]
    needed: list[KeptWrite] | None
    marks: int
    last_mark: str | None
    at_ns: int
    count: int
    reproducer: str | None
    is_replayable: bool
    is_least: NotRequired[bool]
    """Missing in files of earlier versions."""


class ExplorationIdentity(TypedDict):
    """The properties that two explorations share when the second continues the first."""

    recording: RecordingSummary
    asked: SearchRequest
    check: str


class KeptExploration(TypedDict):
    """The file from which an exploration continues."""

    of: ExplorationIdentity
    done: int
    seconds: float
    violations: int
    others: dict[str, int]
    unsteady: int
    reduction_states: NotRequired[int]
    """Missing in files of earlier versions."""
    findings: list[KeptFinding]
