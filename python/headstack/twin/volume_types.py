"""The description of a cloud volume, as the simulator takes it."""

from __future__ import annotations

from typing import Literal, TypedDict

Counts = Literal["requests", "bytes"]
"""The unit that a limit counts."""
Of = Literal["both", "reads", "writes"]
"""The requests that a limit counts."""


class Volume(TypedDict):
    """A block volume behind a network, known by what its provider publishes."""

    name: str
    """Product name, for people."""
    capacity_bytes: int
    """Bytes that it exports."""
    block_bytes: int
    """Bytes of a logical block: 512 or 4096."""
    accounting: Accounting
    """The requests that count as one."""
    limits: list[Limit]
    """Its limits; all of them hold."""
    read: Latency
    """Latency of a read that no limit holds back."""
    write: Latency
    """The same of a write."""
    queue_depth: int
    """Requests that its driver keeps in it."""


class Accounting(TypedDict):
    """The requests that count as one."""

    unit_bytes: int | None
    """A longer request counts as so many of this length, rounded up; ``None`` where length does not count."""
    merges: bool
    """Requests that continue the last one of their kind count together, up to a unit."""
    whole_units: bool
    """A request that continues nothing pays a whole unit of bytes, as a disk's arm would."""


class Limit(TypedDict):
    """A limit."""

    counts: Counts
    """The unit that it counts."""
    of: Of
    """The requests that this limit counts."""
    per_s: int
    """So many a second, always."""
    burst: Burst | None
    """More for a time."""


class Burst(TypedDict):
    """A bucket of credits: what is not used of the limit fills it, and what is used beyond the limit empties it."""

    per_s: int
    """So many a second while there are credits."""
    credits: int
    """Credits that the bucket holds, and has at the start."""


class Latency(TypedDict):
    """Response time: at least the floor, and above it log-normal."""

    floor_ns: int
    """The shortest."""
    median_ns: int
    """Half are shorter."""
    p99_ns: int
    """One in a hundred is longer."""
