"""Types of the description of a cloud volume, as the simulator takes it."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

Counts = Literal["requests", "bytes"]
"""The unit that a limit counts."""
Of = Literal["both", "reads", "writes"]
"""The requests that a limit counts."""


class Volume(TypedDict):
    """A block volume behind a network, as its provider specifies it."""

    name: str
    """Product name, for people."""
    capacity_bytes: int
    """Exported bytes."""
    block_bytes: int
    """Bytes of a logical block: 512 or 4096."""
    accounting: Accounting
    """The requests that count as one."""
    limits: list[Limit]
    """Its limits; all of them apply."""
    read: Latency
    """Latency of a read that no limit delays."""
    write: Latency
    """Latency of a write that no limit delays."""
    queue_depth: int
    """Number of requests that its driver keeps in it."""
    slack_ns: NotRequired[int]
    """How long a limit keeps an unused allowance; 0 if missing."""
    read_crowding_ppm: NotRequired[int]
    """How much each read in flight lengthens another, in millionths of the time between reads at their limit."""


class Accounting(TypedDict):
    """The requests that count as one."""

    unit_bytes: int | None
    """A longer request counts as several of this length, rounded up; ``None`` if length does not count."""
    merges: bool
    """Whether requests that continue the last one of their kind count together, up to a unit."""
    whole_units: bool
    """Whether a random request costs a whole unit of bytes, as for a disk's arm."""


class Limit(TypedDict):
    """A rate limit."""

    counts: Counts
    """The unit that it counts."""
    of: Of
    """The requests that this limit counts."""
    per_s: int
    """Sustained rate per second."""
    burst: Burst | None
    """A higher rate for a limited time."""


class Burst(TypedDict):
    """A bucket of credits, filled by unused rate and emptied by rates above the limit."""

    per_s: int
    """Rate per second while there are credits."""
    credits: int
    """Credits that the bucket holds, and has at the start."""


class Latency(TypedDict):
    """Response time: a floor plus a log-normal part."""

    floor_ns: int
    """The minimum."""
    median_ns: int
    """The median."""
    p99_ns: int
    """The 99th percentile."""
