"""Types of replays on simulated systems: how a trace is replayed, and the results of its volumes."""

from __future__ import annotations

from typing import Literal, TypedDict


class TimeScale(TypedDict):
    """Factor that multiplies all times."""

    time_scale: float


class Timed(TypedDict):
    """Replay at the recorded times."""

    timed: TimeScale


class Depth(TypedDict):
    """The queue depth."""

    depth: int


class Asap(TypedDict):
    """Replay as fast as possible at a queue depth."""

    asap: Depth


class Lookback(TypedDict):
    """Maximum time from a completion to a request that it may have caused."""

    min_ns: int
    max_ns: int | None
    """Time limit of dependencies; ``None`` for the completions since the previous request."""


class Dependent(TypedDict):
    """Replay in which each request waits for the requests that it waited for when recorded."""

    dependent: Lookback


Mode = Timed | Asap | Dependent | Literal["closed"]
"""A mode of replay in the form of the compiled module."""


class Replay(TypedDict):
    """A replay of a trace."""

    name: str
    """Display name of the trace."""
    mode: Mode
    outside: str
    """Treatment of requests above the capacity of the system: ``refuse``, ``fold`` or ``drop``."""
    requests_max: int | None
    """Maximum number of requests to replay, from the first."""
    time_max_ns: int | None
    """Length of the part of the trace to replay, from the first arrival."""


class Extent(TypedDict):
    """The place of a volume on a system."""

    volume: str
    """Its name in the trace."""
    start_bytes: int
    """First byte of the volume on the system."""
    length_bytes: int
    """Length of the volume on the system, in bytes."""


class VolumeResult(Extent):
    """The result of one volume."""

    requests: int
    """Number of replayed requests, without flushes, which apply to the whole system."""
    bytes: int
    iops: float | None
    """Requests per second from the first request of the replay to the last completion."""
    mean_ns: float | None
    """Mean response time."""
    p99_ns: int | None
    """99th percentile of response times."""
    folded: int
    """Number of requests above the end of the volume on the system that were wrapped into it."""
    dropped: int
    """Number of requests above the end of the volume on the system that were left out."""


class VolumeRow(Extent):
    """A row of the table of volumes, with the columns of ``replays.FIELDS``."""

    run: int
    """Number of the replay among the results, from 0."""
    system: str
    mode: str
    requests: int
    bytes: int
    iops: float | None
    mean_ms: float | None
    p99_ms: float | None
    folded: int
    dropped: int
