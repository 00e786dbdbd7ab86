"""Types of a synthetic trace's options, its summary and its scorecard."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from headstack.traces.trace_types import Meta


class LengthTimes(TypedDict):
    """A multiple of the trace's requests."""

    times: float


class LengthRequests(TypedDict):
    """A number of requests."""

    requests: int


class LengthTime(TypedDict):
    """A time in ns."""

    ns: int


Length = LengthTimes | LengthRequests | LengthTime


class SynthesisOptions(TypedDict):
    """Options of a synthetic trace."""

    length: Length
    rate: float
    """Multiple of the trace's rate."""
    footprint: float
    """Multiple of the blocks that the trace touches, from 1."""
    clients: int | None
    """Clients of a closed loop; ``None`` keeps the trace's."""
    seed: int


class Made(TypedDict):
    """A synthetic trace or a scenario: its model and its size."""

    learnt_requests: int
    """Requests of the trace."""
    learnt_clients: int | None
    """The clients of the closed loop that the trace was; ``None`` where requests came from outside."""
    pieces: NotRequired[int]
    """Parts of devices that were dealt out; left out of a scenario, as ``meta`` is."""
    clients: int | None
    """The clients of the closed loop that the twin is; ``None`` where its requests come from outside."""
    requests: int | None
    """Requests of the twin; ``None`` of a scenario that was not run."""
    duration_ns: int | None
    """From its first arrival to its last; ``None`` of a scenario that was not run."""
    meta: NotRequired[Meta]
    """Metadata of the twin."""


class Pair(TypedDict):
    """A figure of trace and twin."""

    trace: float | None
    twin: float | None


class Misses(TypedDict):
    """Miss ratios of LRU caches."""

    cache_bytes: list[int]
    """Sizes; the twin's caches are larger by its footprint."""
    trace: list[float]
    twin: list[float]
    max_error: float
    mean_error: float


class Dispersion(TypedDict):
    """Variance over mean of the requests in bins of one length."""

    bin_ns: int
    trace: float
    twin: float


class Replayed(TypedDict):
    """Response times of trace and twin, replayed on one system."""

    system: str
    device: str
    """The device of the trace that was replayed."""
    trace_mode: str
    trace_mean_ms: float | None
    trace_p99_ms: float | None
    twin_mode: str
    twin_mean_ms: float | None
    twin_p99_ms: float | None


class Scorecard(TypedDict):
    """Figures of trace and twin."""

    requests_per_s: Pair
    in_flight: Pair | None
    """Mean requests in flight; ``None`` where one of both has none."""
    misses: Misses | None
    """``None`` where nothing is used again."""
    dispersion: list[Dispersion]
    replays: list[Replayed]
