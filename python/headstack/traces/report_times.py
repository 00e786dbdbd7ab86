"""Types of the times in an analysis report: percentiles, latency, phases, queue depth, and figures over time."""

from __future__ import annotations

from typing import TypedDict


class Percentiles(TypedDict):
    """Percentiles of times in ns, or of other quantities in their own unit."""

    count: int
    """Number of values."""
    mean: float
    """Mean of the values."""
    min: int
    """Minimum."""
    p50: int
    """Median; all percentiles have a resolution of 0.1 % and are rounded up."""
    p90: int
    """90th percentile."""
    p95: int
    """95th percentile."""
    p99: int
    """99th percentile."""
    p999: int
    """99.9th percentile."""
    max: int
    """Maximum."""


class Times(TypedDict):
    """Percentiles of the times of a bin, a process or a phase."""

    count: int
    """Number of values."""
    mean_ns: float
    """Mean of the values."""
    p50_ns: int
    """Median; all percentiles have a resolution of 0.8 %."""
    p95_ns: int
    """95th percentile."""
    p99_ns: int
    """99th percentile."""
    p999_ns: int
    """99.9th percentile."""
    max_ns: int
    """Maximum."""


class TimeClass(TypedDict):
    """A class of a distribution of times."""

    below_ns: int
    """Exclusive upper end of the class, in ns."""
    count: int
    """Number of times in the class."""


ClassReport = TypedDict("ClassReport", {"from": int, "requests": int, "mean_ns": float})
"""Latency of a class of requests: minimum value of the class (the next class begins at twice this value), number of
requests, and their mean latency."""


class ResponseReport(TypedDict):
    """Latencies of requests."""

    recorded: int
    """Number of requests with a recorded latency."""
    all_ns: Percentiles | None
    """Time from arrival to completion, for all operations; ``None`` if not recorded."""
    by_operation_ns: dict[str, Percentiles]
    """Response times by operation."""
    by_size_bytes: list[ClassReport]
    """Latencies by request length in bytes."""
    by_depth: list[ClassReport]
    """Latencies by the number of other requests in flight at arrival."""
    wait_ns: Percentiles | None
    """Time from arrival to issue to the device; ``None`` if not recorded."""


class DepthReport(TypedDict):
    """Queue depth: number of requests in flight."""

    mean: float
    """Mean queue depth over time, from the first arrival to the last completion."""
    mean_at_arrival: float
    """Mean queue depth at arrivals."""
    max: int
    """Maximum queue depth."""
    time_shares: list[float]
    """Share of the time at each depth from 0; the last of 1,025 entries includes all greater depths."""
    overlap_share: float | None
    """Share of requests that at arrival overlap the range of another request in flight on the same device."""
    overlap_not_checked: int
    """Number of requests not checked for overlaps, because more than 1,024 were in flight."""
    not_followed: int
    """Number of requests not tracked, because 2^20 others were in flight."""


class ProcessName(TypedDict):
    """A process."""

    pid: int
    """Its number."""
    name: str
    """Name; empty if the trace does not contain it."""


class Slice(TypedDict):
    """Latencies of the requests of one size, device or process."""

    read: Times | None
    """Latency of reads; ``None`` without any."""
    write: Times | None
    """Latency of writes; ``None`` without any."""
    all: Times
    """Latency of all requests, including other operations."""


class SizeSlice(Slice):
    """Latencies of requests of at least ``of`` and less than twice ``of`` bytes."""

    of: int


class DeviceSlice(Slice):
    """Latencies of the device ``of``."""

    of: str


class ProcessSlice(Slice):
    """Latencies of the requests of one process."""

    of: ProcessName


class LatencyReport(TypedDict):
    """Distribution of latency, and latency by size, device and process."""

    distribution: dict[str, list[TimeClass]]
    """Counts by class of latency, for reads, writes and other operations that occur; a class is 1.6 % wide."""
    by_size: list[SizeSlice]
    """Latency by length, in ranges from a number of bytes to twice this number."""
    by_device: list[DeviceSlice]
    """Latency by device, for the first 256 devices."""
    by_process: list[ProcessSlice]
    """Latency by process, for the first 1,024 processes."""


class PhasesReport(TypedDict):
    """Times of requests in each recorded phase."""

    all: dict[str, Times]
    """Phases of all requests."""
    by_operation: dict[str, dict[str, Times]]
    """Times in the phases, by operation."""


class BinTimes(TypedDict):
    """Requests of one kind in a bin."""

    requests: int
    """Number of requests that arrived in the bin."""
    bytes: int
    """Sum of the request lengths, in bytes."""
    response: Times | None
    """Latencies of the requests that arrived in the bin; ``None`` if not recorded."""
    touched_bytes: float | None
    """Blocks touched in the bin, in bytes. This and the following fields are ``None`` if blocks were not requested."""
    touched_so_far_bytes: float | None
    """Blocks that requests of this kind touched up to the end of the bin, in bytes."""
    reused_in_bin: float | None
    """Share of the references to blocks that this kind touched earlier in this bin."""
    reused: float | None
    """Share of the references to blocks that this kind touched at any earlier time."""


class TimelineBin(TypedDict):
    """A bin of time."""

    from_ns: int
    """Start of the bin, relative to the first arrival."""
    to_ns: int
    """End of the bin; the last bin ends with the last arrival."""
    all: BinTimes
    """All requests."""
    read: BinTimes
    """Reads."""
    write: BinTimes
    """Writes."""
    mean_depth: float | None
    """Mean queue depth; ``None`` without completions, and for a bin cut by the end of the trace."""
    phases: dict[str, Times]
    """Times in each recorded phase of the requests that arrived in the bin, by btt's names."""


class TimelineReport(TypedDict):
    """The time axis."""

    bin_ns: int
    """Length of a bin: 1, 2 or 5 times a power of ten. Bins begin at multiples of this length on the trace's clock."""
    block_bytes: int | None
    """Bytes of a block; ``None`` if blocks were not requested."""
    sampled_rate: float | None
    """Share of the blocks that was sampled; 1 if working set and re-use are exact."""
    not_followed: int
    """Number of requests not counted in the queue depth, because 2^20 others end after the last arrival."""
    bins: list[TimelineBin]
    """Bins in order of time, without gaps."""
