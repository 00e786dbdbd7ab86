"""Types of the times in an analysis report: percentiles, latency, phases, queue depth and their course."""

from __future__ import annotations

from typing import TypedDict


class Percentiles(TypedDict):
    """Percentiles of times in ns, or of other quantities in their own unit."""

    count: int
    """How many there are."""
    mean: float
    """Their mean."""
    min: int
    """Least."""
    p50: int
    """Median; this and the other percentiles to 0.1 %, rounded up."""
    p90: int
    """90th percentile."""
    p95: int
    """95th percentile."""
    p99: int
    """99th percentile."""
    p999: int
    """99.9th percentile."""
    max: int
    """Greatest."""


class Times(TypedDict):
    """Percentiles of the times of a bin, a process or a phase."""

    count: int
    """How many there are."""
    mean_ns: float
    """Their mean."""
    p50_ns: int
    """Median; this and the other percentiles to 0.8 %."""
    p95_ns: int
    """95th percentile."""
    p99_ns: int
    """99th percentile."""
    p999_ns: int
    """99.9th percentile."""
    max_ns: int
    """Greatest."""


class TimeClass(TypedDict):
    """Times of one class of a distribution."""

    below_ns: int
    """Exclusive upper end of the class, in ns."""
    count: int
    """Times in the class."""


ClassReport = TypedDict("ClassReport", {"from": int, "requests": int, "mean_ns": float})
"""Response times of a class of requests: its least value (the next class begins at twice that), its number of requests
and their mean response time."""


class ResponseReport(TypedDict):
    """How long requests take."""

    recorded: int
    """Requests whose response time is recorded."""
    all_ns: Percentiles | None
    """From arrival to completion, all operations; ``None`` where none is recorded."""
    by_operation_ns: dict[str, Percentiles]
    """Response times by operation."""
    by_size_bytes: list[ClassReport]
    """By length in bytes."""
    by_depth: list[ClassReport]
    """By the number of other requests in flight on arrival."""
    wait_ns: Percentiles | None
    """Time from arrival to issue to the device; ``None`` if none is recorded."""


class DepthReport(TypedDict):
    """How many requests are in flight."""

    mean: float
    """Mean over time, from the first arrival to the last completion."""
    mean_at_arrival: float
    """Mean depth that an arriving request sees."""
    max: int
    """Most at a time."""
    time_shares: list[float]
    """Share of the time at each depth from 0 on; the last of 1,025 is that depth and more."""
    overlap_share: float | None
    """Share of requests that, on arrival, overlap the range of another request of the same device in flight."""
    overlap_not_checked: int
    """Requests not checked for overlaps, since more than 1,024 were in flight."""
    not_followed: int
    """Requests that were not tracked, since 2^20 others were in flight."""


class ProcessName(TypedDict):
    """A process."""

    pid: int
    """Its number."""
    name: str
    """Its name; empty where the trace does not say."""


class Slice(TypedDict):
    """Response times of the requests that have one size, device or process in common."""

    read: Times | None
    """Latency of reads; ``None`` without any."""
    write: Times | None
    """Latency of writes; ``None`` without any."""
    all: Times
    """Latency of all requests, other operations included."""


class SizeSlice(Slice):
    """Response times of sizes from ``of`` bytes up to twice as much."""

    of: int


class DeviceSlice(Slice):
    """Response times of the device that is named ``of``."""

    of: str


class ProcessSlice(Slice):
    """Response times of one process."""

    of: ProcessName


class LatencyReport(TypedDict):
    """Response times: the whole distribution, and by size, device and process."""

    distribution: dict[str, list[TimeClass]]
    """Counts by class, of reads, writes and others that occur; a class is 1.6 % wide."""
    by_size: list[SizeSlice]
    """By length in bytes, in ranges from a value up to twice as much."""
    by_device: list[DeviceSlice]
    """Latency by device, for the first 256 devices."""
    by_process: list[ProcessSlice]
    """Latency by process, for the first 1,024 processes."""


class PhasesReport(TypedDict):
    """Times of requests in each phase. Phases that are not recorded are missing."""

    all: dict[str, Times]
    """Phases of all requests."""
    by_operation: dict[str, dict[str, Times]]
    """By operation."""


class BinTimes(TypedDict):
    """Requests of one sort in a bin."""

    requests: int
    """Requests that arrived."""
    bytes: int
    """The sum of their lengths."""
    response: Times | None
    """Response times of those that arrived; ``None`` where none is recorded."""
    touched_bytes: float | None
    """Blocks that they touched, in bytes; this and the rest are ``None`` if blocks were not requested."""
    touched_so_far_bytes: float | None
    """Blocks that this sort touched until the end of the bin, in bytes."""
    reused_in_bin: float | None
    """Share of the references to blocks that this sort touched before in the same bin."""
    reused: float | None
    """Share of the references to blocks that this sort touched before at any time."""


class TimelineBin(TypedDict):
    """A bin of time."""

    from_ns: int
    """Start, since the first arrival."""
    to_ns: int
    """End; the last bin ends with the last arrival."""
    all: BinTimes
    """All requests."""
    read: BinTimes
    """Reads."""
    write: BinTimes
    """Writes."""
    mean_depth: float | None
    """Mean queue depth; ``None`` without responses, and for a bin that the trace's end cuts."""
    phases: dict[str, Times]
    """Times in each recorded phase, by btt's names, of requests that arrived."""


class TimelineReport(TypedDict):
    """The time axis."""

    bin_ns: int
    """Length of a bin: one, two or five times a power of ten. Bins begin at multiples of it on the trace's clock."""
    block_bytes: int | None
    """Bytes of a block; ``None`` if blocks were not requested."""
    sampled_rate: float | None
    """Share of the blocks that was sampled; 1 if working set and re-use are exact."""
    not_followed: int
    """Requests whose end was not tracked for the depth, since 2^20 others end after the last arrival."""
    bins: list[TimelineBin]
    """The bins, without a gap."""
