"""Types of a synthetic trace's options, its summary and its scorecard."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from headstack.traces.trace_types import Meta


class LengthTimes(TypedDict):
    """Length as a multiple of the trace's requests."""

    times: float


class LengthRequests(TypedDict):
    """Length as a number of requests."""

    requests: int


class LengthTime(TypedDict):
    """Length as a time in ns."""

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
    """Number of clients of a closed loop; ``None`` for the number in the trace."""
    seed: int


class Made(TypedDict):
    """The model and the size of a synthetic trace or a scenario."""

    learnt_requests: int
    """Requests of the trace."""
    learnt_clients: int | None
    """Clients of the trace if it is a closed loop; ``None`` for open arrivals."""
    pieces: NotRequired[int]
    """Parts into which devices were cut and rearranged; left out for a scenario, like ``meta``."""
    clients: int | None
    """Clients of the synthetic trace if it is a closed loop; ``None`` for open arrivals."""
    requests: int | None
    """Requests of the synthetic trace; ``None`` for a scenario that was not run."""
    duration_ns: int | None
    """Time from its first arrival to its last; ``None`` for a scenario that was not run."""
    meta: NotRequired[Meta]
    """Metadata of the synthetic trace."""


class Pair(TypedDict):
    """A figure of the original and the synthetic trace."""

    trace: float | None
    twin: float | None


class Misses(TypedDict):
    """Miss ratios of LRU caches."""

    cache_bytes: list[int]
    """Cache sizes for the original; sizes for the synthetic trace are multiplied by its footprint."""
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
    """Response times of the original and the synthetic trace, replayed on one system."""

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
    """Figures of the original and the synthetic trace."""

    requests_per_s: Pair
    in_flight: Pair | None
    """Mean queue depth; ``None`` if it is unknown for a trace."""
    misses: Misses | None
    """Miss ratios of caches; ``None`` if no block is used again."""
    dispersion: list[Dispersion]
    replays: list[Replayed]
