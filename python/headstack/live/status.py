"""Answers of a running export to orders: its status with all gauges, its fidelity, and faults that were injected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict


class Spread(TypedDict):
    """Three statistics of times, in nanoseconds."""

    count: int
    mean_ns: int
    p99_ns: int
    max_ns: int


class Turns(TypedDict):
    """The requests of a client, and the errors of their times."""

    requests: int
    depth: int
    """The maximum queue depth, including replies that the client had not read."""
    error: Spread
    """Upper bound of the time that the client measured in addition to the model's."""
    long_error: Spread
    """Upper bound for messages whose copying takes noticeable time."""
    turned_ns: int
    """Sum of the times from replies to the requests that they permit."""
    served_ns: int
    """Sum of the model's times for its requests."""
    lying: int
    """Number of replies that the client left unread."""


class Waits(TypedDict):
    """Scheduling of the threads of a process."""

    ran_share: float
    """Share of the time in which the busiest thread ran."""
    waited_share: float
    """Share of the time in which the thread that waited longest waited for a processor."""
    ran_ns: int
    waited_ns: int
    wait: Spread


class Client(TypedDict):
    """A client of NBD."""

    name: str | None
    pid: int | None
    """Process of the client; ``None`` for a client of another machine."""
    turns: Turns
    waits: Waits | None


class Fidelity(TypedDict):
    """The agreement of a session's times with its model. Times are wall-clock times unless another clock is named."""

    requests: int
    floor_ns: int
    """Latency of the path in and out, which is subtracted from the delay of each request."""
    lateness_p50_ns: int
    lateness_p99_ns: int
    lateness_p999_ns: int
    lateness_max_ns: int
    lateness_mean_ns: int
    copying_p99_ns: int
    memory_waits: int
    memory_wait_mean_ns: int
    below_floor: int
    """Number of requests that the model would have answered faster than the path can."""
    deepest_queue: int
    scheduling: Literal["realtime", "shared"]
    speed: float
    """Nanoseconds of the model per nanosecond of wall-clock time."""
    clients: list[Client]
    """The clients with the most requests first."""
    canary: Spread
    """Lateness of a client of ordinary priority."""
    server: Waits | None
    pressure_share: float | None
    """Share of the time in which a task of this machine waited for a processor (PSI)."""
    error_ns: int | None
    """Upper bound of the time that clients measured in addition to the model, in the mean and at p99."""
    valid_above_ns: int | None
    """Minimum latency of the model for which the session is valid; ``None`` if it is not valid."""
    verdict: str


class Pass(TypedDict):
    """A check, a repair or a resync of a RAID group."""

    kind: Literal["check", "repair", "resync"]
    state: Literal["running", "done", "stopped"]
    done_bytes: int
    of_bytes: int


RaidGroup = TypedDict(
    "RaidGroup",
    {
        "name": str,
        "level": str,
        "state": Literal["healthy", "degraded", "rebuilding", "failed"],
        "rebuilt_bytes": int,
        # Total bytes that a rebuild writes; 0 without a rebuild.
        "of_bytes": int,
        # Bytes that no redundancy could restore and that were not written since.
        "lost_bytes": int,
        "pass": NotRequired[Pass],
    },
)
"""A RAID group of an array, with its last check, repair or resync."""


class Device(TypedDict):
    """A device: a standalone drive, or a member of an array."""

    name: str
    """Name of the device; empty for a standalone drive."""
    state: Literal["idle", "reading", "writing", "internal", "standby", "missing", "rebuilding"]
    queue: int
    """Number of commands at the device, including commands that wait for a tag."""
    cylinder: int | None
    cylinders: int
    """Number of cylinders; 0 without an arm."""
    head: int
    dirty_bytes: int


class Cache(TypedDict):
    """The cache of an array's controller."""

    bytes: int
    dirty_bytes: int
    hits: int
    battery_ok: bool


class Gauges(TypedDict):
    """The state of the simulated hardware."""

    outstanding: int
    devices: list[Device]
    cache: Cache | None
    groups: list[RaidGroup]


class KindCount(TypedDict):
    """Completed requests of a kind; times are of the model."""

    requests: int
    bytes: int
    response_ns: int
    """Sum of all latencies."""
    failed: int
    buckets: list[int]
    """Requests by response time, up to the last non-empty bucket; ``bounds_ns`` are their upper bounds."""


class ActiveFault(TypedDict):
    """A fault in effect."""

    number: int
    at_ns: int
    fault: Mapping[str, Any]
    """The fault: its kind under ``what``, and its settings; see the page "Faults"."""
    met: int
    """Number of requests that the fault affected."""
    failed: int


class Memory(TypedDict):
    """Memory for requests and connections."""

    limit_bytes: int
    used_bytes: int
    peak_bytes: int
    waiting: int
    waited: int
    waited_ns: int


class Mismatches(TypedDict):
    """Redundancy of a RAID group that does not match its data."""

    name: str
    mismatched_sectors: int
    """Number of sectors that differed in the last check, repair or resync."""
    differing_bytes: int | None
    """Bytes of copies and parities that differ now; ``None`` if members have no contents of their own."""


class Status(TypedDict):
    """The answer to ``status``."""

    model_ns: int
    outstanding: int
    power: bool
    trouble: str | None
    memory: Memory
    gauges: Gauges | None
    """The hardware's state; ``None`` for a device of constant latency."""
    faults: list[ActiveFault]
    kinds: dict[str, KindCount]
    bounds_ns: list[int]
    fidelity: Fidelity
    mismatches: NotRequired[list[Mismatches]]


class LostExtent(TypedDict):
    """Sectors whose data are not the last acknowledged data."""

    at_bytes: int
    length_bytes: int


class TornExtent(TypedDict):
    """A write of which only the first part is stored."""

    at_bytes: int
    length_bytes: int
    torn_at_bytes: int
    """First byte that is not stored."""
    acknowledged: bool


class PowerLoss(TypedDict):
    """Data that a power loss destroyed."""

    at_ns: int
    lost_writes: int
    lost_bytes: int
    lost: list[LostExtent]
    lost_extents: int
    under_way: int
    absent: int
    whole: int
    torn: list[TornExtent]


class Injected(TypedDict):
    """The answer to ``inject``."""

    number: int
    """Number of the fault in the log of injections."""
    at_ns: int
    loss: NotRequired[PowerLoss]
