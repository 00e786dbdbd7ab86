"""Types of replays on simulated systems: how a trace is replayed, and the results of its volumes."""

from __future__ import annotations

from typing import Literal, TypedDict


class TimeScale(TypedDict):
    """The factor of all times."""

    time_scale: float


class Timed(TypedDict):
    """At recorded times."""

    timed: TimeScale


class Depth(TypedDict):
    """The queue depth."""

    depth: int


class Asap(TypedDict):
    """As fast as possible at a queue depth."""

    asap: Depth


class Lookback(TypedDict):
    """The time in which completions may have caused a request."""

    min_ns: int
    max_ns: int | None
    """``None`` takes the completions since the request before."""


class Dependent(TypedDict):
    """Each request starts after those that it waited for when it was recorded."""

    dependent: Lookback


Mode = Timed | Asap | Dependent | Literal["closed"]
"""A mode of replay as the compiled module takes it."""


class Replay(TypedDict):
    """A replay of a trace."""

    name: str
    """The name of the trace, for people."""
    mode: Mode
    outside: str
    """Treatment of requests beyond the system: ``refuse``, ``fold`` or ``drop``."""
    requests_max: int | None
    """Maximum number of requests, from the first on."""
    time_max_ns: int | None
    """Only the requests that arrived no later than this after the first."""


class Extent(TypedDict):
    """The place of a volume on a system."""

    volume: str
    """Its name in the trace."""
    start_bytes: int
    """Its first byte on the system."""
    length_bytes: int
    """Its bytes there."""


class VolumeResult(Extent):
    """The result of one volume."""

    requests: int
    """Requests replayed, without flushes, which apply to the whole system."""
    bytes: int
    iops: float | None
    """Requests per second from the first request of the replay to the last completion."""
    mean_ns: float | None
    """Mean response time."""
    p99_ns: int | None
    """99th percentile of response times."""
    folded: int
    """Requests after the volume's end on the system that were moved into it."""
    dropped: int
    """Requests after it that were left out."""


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
