"""Types of an analysis report, as ``trace_analyze`` returns it.

Times are in ns, addresses and lengths in bytes, shares from 0 to 1; ``None`` is a figure that a trace does not support.
"""

from __future__ import annotations

from typing import TypedDict

from headstack.traces.report_times import (
    DepthReport,
    LatencyReport,
    Percentiles,
    PhasesReport,
    ResponseReport,
    TimelineReport,
)

PowerBin = TypedDict("PowerBin", {"from": int, "count": float})
"""A bin of a histogram by powers of two: its least value (the next bin begins at twice that) and its count, an estimate
where blocks were sampled."""


class Amount(TypedDict):
    """A number of requests and their bytes."""

    requests: int
    """How many."""
    bytes: int
    """The sum of their lengths."""


class SizeCount(TypedDict):
    """Requests of one size."""

    length_bytes: int
    """Their length."""
    requests: int
    """How many."""
    reads: int
    """Reads among them."""
    writes: int
    """Writes among them."""
    trims: int
    """Trims among them."""


class SizesReport(TypedDict):
    """How long requests are, without those that have no range."""

    mean_bytes: float | None
    """Mean of the requests that transfer data."""
    min_bytes: int | None
    """Least of them."""
    p50_bytes: int | None
    """Their median."""
    p90_bytes: int | None
    """Their 90th percentile."""
    p99_bytes: int | None
    """Their 99th percentile."""
    max_bytes: int | None
    """Greatest of them."""
    rounded: int
    """Requests whose size is rounded up by at most 0.4 %, since more than 4,096 sizes occur."""
    sizes: list[SizeCount]
    """Every size."""


class AlignmentShare(TypedDict):
    """Requests whose offset or length is a multiple of a power of two."""

    align_bytes: int
    """The power of two."""
    offset: float
    """Requests whose offset is a multiple of it, over all that transfer data."""
    length: float
    """Requests whose length is a multiple of it, over all that transfer data."""
    both: float
    """Requests whose offset and length are multiples of it, over all that transfer data."""


class AlignmentReport(TypedDict):
    """Alignment of requests that transfer data."""

    common_bytes: int | None
    """The greatest power of two that all offsets and lengths are multiples of; ``None`` without requests."""
    shares: list[AlignmentShare]
    """From 512 bytes to 1 MiB."""


class ScaleReport(TypedDict):
    """Counts of requests in bins of one length."""

    bin_ns: int
    """Length of a bin."""
    bins: int
    """Bins, empty ones included; the end of the trace cuts the last one short."""
    mean: float
    """Mean requests in a bin's time, over the whole trace."""
    peak_over_mean: float
    """Most requests in a bin over the mean."""
    index_of_dispersion: float
    """Variance of the requests in a bin over their mean: 1 for Poisson arrivals at every length. The last bin counts
    with its share of a bin's time."""


class HurstReport(TypedDict):
    """The exponent of self-similarity, by the variance of mean rates over bins of growing length."""

    exponent: float
    """0.5 if counts of distant bins are independent; closer to 1 the longer bursts last."""
    from_ns: int
    """Shortest bin of the fit."""
    to_ns: int
    """Longest bin of the fit."""
    points: int
    """Lengths that were fitted."""
    r_squared: float
    """Share of the variance that the straight line explains (R squared)."""


class ArrivalReport(TypedDict):
    """How requests arrive. Figures below the clock's step are ``None``."""

    mean_gap_ns: float | None
    """Mean time from a request to the next, in ns; ``None`` for a single one."""
    gap_variation: float | None
    """Standard deviation of these times over their mean: 1 for Poisson arrivals, 0 for constant intervals."""
    gaps_ns: Percentiles | None
    """Percentiles of these times, in ns."""
    gap_histogram_ns: list[PowerBin] | None
    """Histogram of these times by powers of two."""
    scales: list[ScaleReport]
    """Counts in bins, by growing length."""
    hurst: HurstReport | None
    """Self-similarity; ``None`` where there are too few bins to fit."""


class RateBin(TypedDict):
    """Requests that arrived in a bin of time."""

    requests: int
    """Requests that arrived."""
    reads: int
    """Reads among them."""
    writes: int
    """Writes among them."""
    bytes: int
    """Bytes of all of them."""
    read_bytes: int
    """Bytes read."""
    written_bytes: int
    """Bytes written."""
    mean_response_ns: float | None
    """Mean response time of those that arrived; ``None`` where none is recorded."""
    mean_depth: float | None
    """Mean number of requests in flight during the bin; ``None`` where no response is recorded."""


class RateReport(TypedDict):
    """Rates over time."""

    bin_ns: int
    """Length of a bin; the first begins with the first arrival, the last ends early."""
    bins: list[RateBin]
    """The bins, without a gap."""


class RunReport(TypedDict):
    """Runs of requests, each of which starts where an earlier one ended."""

    share: float | None
    """Requests that continue a run, over those that could."""
    runs: int
    """Runs, of one request or more."""
    mean_requests: float | None
    """Mean requests of a run."""
    mean_bytes: float | None
    """Mean bytes of a run."""
    requests: list[PowerBin]
    """Runs by their requests."""
    bytes: list[PowerBin]
    """Runs by their bytes."""


class SequenceReport(TypedDict):
    """Sequentiality of requests that transfer data, for each device separately."""

    strict: RunReport
    """Runs in which each request starts where the one just before it ended."""
    streams: RunReport
    """Runs in which each request continues one of the last 32 streams, with others in between."""
    mean_concurrent_streams: float | None
    """Mean number of streams with two requests or more among the last 32."""
    max_concurrent_streams: int
    """Maximum number of them at a time."""
    mean_seek_bytes: float | None
    """Mean distance from the end of a request to the start of the next, in either direction, in bytes."""
    forward_seeks_bytes: list[PowerBin]
    """Forward seeks by their bytes; those of 0 are sequential."""
    backward_seeks_bytes: list[PowerBin]
    """Backward seeks by their bytes."""


class GrowthPoint(TypedDict):
    """A point of the growth curve of the working set."""

    at_ns: int
    """Time since the first arrival."""
    touched_bytes: float
    """Bytes of all blocks touched until then."""


class WindowReport(TypedDict):
    """Blocks touched in consecutive windows of one length from the first arrival on."""

    window_ns: int
    """Length of a window."""
    mean_bytes: float
    """Mean bytes of the blocks touched in a window, the last and shorter one included."""
    max_bytes: float
    """Most bytes in a window."""


class Successions(TypedDict):
    """References to a block that was touched before, by their operation and the previous one."""

    read_after_read: float
    """Reads of blocks last read."""
    read_after_write: float
    """Reads of blocks last written."""
    write_after_read: float
    """Writes of blocks last read."""
    write_after_write: float
    """Writes of blocks last written."""


class WorkingSetReport(TypedDict):
    """The blocks that requests touch."""

    block_bytes: int
    """Bytes of a block."""
    sampled_rate: float
    """Share of the blocks that was sampled at the end; 1 if all figures are exact."""
    references: int
    """References to blocks: each request references all blocks it touches."""
    touched_bytes: float
    """Bytes of all blocks touched."""
    read_bytes: float
    """Bytes of the blocks that were read."""
    written_bytes: float
    """Bytes of the blocks that were written."""
    growth: list[GrowthPoint]
    """Growth of the set: the last new block in each of up to 512 equal parts of the time."""
    windows: list[WindowReport]
    """Blocks touched in windows of time, up to the first longer than the trace."""
    successions: Successions
    """References by the previous reference to the block."""
    reuse_times_ns: list[PowerBin]
    """Time since the previous reference to the same block. Below the clock's step it is 0."""
    update_times_ns: list[PowerBin]
    """Time since the previous write to the same block."""


class CurvePoint(TypedDict):
    """A point of a miss-ratio curve."""

    cache: int
    """Cache size in blocks or requests."""
    cache_bytes: int | None
    """Cache size in bytes; ``None`` if requests are counted."""
    miss_ratio: float
    """References that miss in an LRU cache of that size, over all."""
    hits: float
    """References that hit; an estimate where ``low`` is given."""
    low: float | None
    """Lower end of the 95 % band; ``None`` where the count is exact."""
    high: float | None
    """Upper end of the 95 % band; ``None`` where the count is exact."""


class ReuseReport(TypedDict):
    """Frequency of re-use."""

    block_bytes: int | None
    """Bytes of a block; ``None`` where whole requests are counted."""
    references: int
    """References."""
    distinct: float
    """Number of distinct blocks or requests; an estimate if ``sampled_rate`` is below 1."""
    sampled_rate: float
    """Share of the blocks that was sampled at the end; 1 if the count is exact."""
    mean_band: float | None
    """Mean half width of the 95 % band over cache sizes in equal steps up to the working set; ``None`` where exact."""
    lru_curve: list[CurvePoint]
    """Misses over references at growing sizes of an LRU cache."""


class HeatReport(TypedDict):
    """Requests that transfer data by arrival and first byte. The addresses of several devices overlap."""

    column_ns: int
    """Time that a column covers; the first begins with the first arrival."""
    row_bytes: int
    """Bytes that a row covers, from 0 on."""
    reads: list[list[int]]
    """Reads and requests of unknown kind: one list per column, with its rows; rows after the end of a list are 0."""
    writes: list[list[int]]
    """Writes, likewise."""


class EnvironmentReport(TypedDict):
    """A trace in the terms of an access specification. Requests are random if they continue none of the last 32 streams
    of their device."""

    read_share: float | None
    """Reads over reads and writes."""
    random_share: float | None
    """Random requests over reads and writes."""
    read_random_share: float | None
    """Random reads over reads."""
    write_random_share: float | None
    """Random writes over writes."""
    mean_run_requests: float | None
    """Mean requests of a stream, from one that is random to the last that continues it."""
    concurrent_streams: float | None
    """Mean number of concurrent streams of two requests or more."""
    depth: float | None
    """Mean queue depth over time."""
    requests_per_s: float | None
    """Arrivals per second."""
    random_span_share_90: float | None
    """Smallest share of the addresses up to the highest touched that holds 90 % of the random accesses."""
    workload_toml: str | None
    """A headstack workload with the same mix; ``None`` if the trace does not state operations."""


class DeviceReport(TypedDict):
    """One device."""

    name: str
    """Its name in the trace."""
    operations: dict[str, Amount]
    """Requests by operation."""
    lowest_bytes: int | None
    """First byte touched by a transfer; ``None`` without one."""
    highest_end_bytes: int | None
    """First byte after all that transfers touched."""
    mean_response_ns: float | None
    """Mean response time; ``None`` where none is recorded."""
    mean_depth: float | None
    """Mean queue depth between first arrival and last of the trace, by Little's law; ``None`` if no response is
    recorded."""
    sequence: SequenceReport
    """Sequentiality of its requests."""


class ProcessReport(TypedDict):
    """One process."""

    pid: int
    """Its number."""
    name: str
    """Its name; empty where the trace does not say."""
    operations: dict[str, Amount]
    """Requests by operation."""


class TraceReport(TypedDict):
    """Figures of a trace.

    "Transfers" are reads, writes and requests of unknown kind: those have an address, and only they count for
    alignment, addresses, sequences, blocks and re-use.
    """

    requests: int
    """All requests."""
    bytes: int
    """The sum of their lengths."""
    first_arrival_ns: int | None
    """First arrival on the trace's clock; ``None`` without requests."""
    duration_ns: int
    """Time from the first arrival to the last."""
    requests_per_s: float | None
    """Arrivals per second: gaps over duration; ``None`` if the duration is 0."""
    bytes_per_s: float | None
    """Bytes per second over the duration."""
    resolution_ns: int | None
    """The step of the clock; ``None`` where it is not known."""
    operations: dict[str, Amount]
    """Requests by operation."""
    flags: dict[str, int]
    """Requests by flag."""
    sizes: SizesReport
    """Lengths of requests."""
    alignment: AlignmentReport
    """Alignment of transfers."""
    lowest_bytes: int | None
    """First byte touched by a transfer on any device; ``None`` without one."""
    highest_end_bytes: int | None
    """First byte after all that transfers touched on any device."""
    arrivals: ArrivalReport
    """Arrival process."""
    rate: RateReport
    """Rates over time."""
    timeline: TimelineReport
    """Rates, response times, phases, working set and re-use over time."""
    sequence: SequenceReport
    """Sequentiality of transfers, for each device separately."""
    working_set: WorkingSetReport | None
    """Blocks touched; ``None`` if not requested."""
    reuse: ReuseReport | None
    """Blocks used again; ``None`` if not requested."""
    response: ResponseReport
    """Response times."""
    latency: LatencyReport | None
    """Their distribution, and by size, device and process; ``None`` if none is recorded."""
    phases: PhasesReport | None
    """Times of the phases of requests; ``None`` if the trace lacks the times of issue to a device."""
    depth: DepthReport | None
    """Queue depth; ``None`` if no response is recorded."""
    heat: HeatReport | None
    """Addresses over time; ``None`` if not requested."""
    environment: EnvironmentReport
    """The trace in the terms of an access specification."""
    devices: list[DeviceReport]
    """The first 131,072 devices, those with requests."""
    other_devices: Amount
    """Requests to all others, whose sequences are not tracked."""
    processes: list[ProcessReport]
    """The first 1,024 processes, those with requests."""
    other_processes: Amount
    """Requests of all others."""
    notes: list[str]
    """Remarks that a reader of the figures should know."""
