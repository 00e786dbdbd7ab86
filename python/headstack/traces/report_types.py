"""Types of an analysis report, as ``trace_analyze`` returns it.

Times are in ns, addresses and lengths in bytes, shares from 0 to 1; figures that a trace does not support are ``None``.
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
"""A bin of a histogram by powers of two: minimum value (the next bin begins at twice this value) and count, which is an
estimate if blocks were sampled."""


class Amount(TypedDict):
    """A number of requests and their bytes."""

    requests: int
    """Number of requests."""
    bytes: int
    """Sum of the request lengths, in bytes."""


class SizeCount(TypedDict):
    """Requests of one size."""

    length_bytes: int
    """Length of the requests."""
    requests: int
    """Number of requests."""
    reads: int
    """Number of reads."""
    writes: int
    """Number of writes."""
    trims: int
    """Number of trims."""


class SizesReport(TypedDict):
    """Lengths of the requests that have a range."""

    mean_bytes: float | None
    """Mean length of the requests that transfer data."""
    min_bytes: int | None
    """Minimum length of the requests that transfer data."""
    p50_bytes: int | None
    """Median length of the requests that transfer data."""
    p90_bytes: int | None
    """90th percentile of their length."""
    p99_bytes: int | None
    """99th percentile of their length."""
    max_bytes: int | None
    """Maximum length of the requests that transfer data."""
    rounded: int
    """Number of requests whose size is rounded up by at most 0.4 %, because more than 4,096 sizes occur."""
    sizes: list[SizeCount]
    """Requests of each size."""


class AlignmentShare(TypedDict):
    """Requests whose offset or length is a multiple of a power of two."""

    align_bytes: int
    """The power of two."""
    offset: float
    """Share of the transfers whose offset is a multiple."""
    length: float
    """Share of the transfers whose length is a multiple."""
    both: float
    """Share of the transfers whose offset and length are multiples."""


class AlignmentReport(TypedDict):
    """Alignment of requests that transfer data."""

    common_bytes: int | None
    """Largest power of two that divides all offsets and lengths; ``None`` without requests."""
    shares: list[AlignmentShare]
    """Shares of aligned requests for each power of two from 512 bytes to 1 MiB."""


class ScaleReport(TypedDict):
    """Counts of requests in bins of one length."""

    bin_ns: int
    """Length of a bin."""
    bins: int
    """Number of bins, including empty bins; the end of the trace cuts the last bin short."""
    mean: float
    """Mean number of requests per bin, over the whole trace."""
    peak_over_mean: float
    """Maximum number of requests in a bin, divided by the mean."""
    index_of_dispersion: float
    """Variance of the number of requests in a bin over the mean, which is 1 for Poisson arrivals. The last bin is
    weighted by its length."""


class HurstReport(TypedDict):
    """Hurst exponent (self-similarity), estimated from the variance of mean rates over bins of growing length."""

    exponent: float
    """Exponent: 0.5 if counts of distant bins are independent, and closer to 1 for longer bursts."""
    from_ns: int
    """Shortest bin of the fit."""
    to_ns: int
    """Longest bin of the fit."""
    points: int
    """Number of bin lengths in the fit."""
    r_squared: float
    """Share of the variance that the straight line explains (R squared)."""


class ArrivalReport(TypedDict):
    """Arrival process. Figures below the resolution of the clock are ``None``."""

    mean_gap_ns: float | None
    """Mean time from a request to the next, in ns; ``None`` for a single request."""
    gap_variation: float | None
    """Coefficient of variation of these times: 1 for Poisson arrivals, 0 for constant intervals."""
    gaps_ns: Percentiles | None
    """Percentiles of these times, in ns."""
    gap_histogram_ns: list[PowerBin] | None
    """Histogram of these times by powers of two."""
    scales: list[ScaleReport]
    """Counts in bins, by growing length."""
    hurst: HurstReport | None
    """Self-similarity; ``None`` if there are too few bins to fit."""


class RateBin(TypedDict):
    """Requests that arrived in a bin of time."""

    requests: int
    """Number of requests that arrived in the bin."""
    reads: int
    """Number of reads."""
    writes: int
    """Number of writes."""
    bytes: int
    """Bytes of all requests."""
    read_bytes: int
    """Bytes read."""
    written_bytes: int
    """Bytes written."""
    mean_latency_ns: float | None
    """Mean latency of the requests that arrived in the bin; ``None`` if not recorded."""
    mean_depth: float | None
    """Mean queue depth during the bin; ``None`` if no completion is recorded."""


class RateReport(TypedDict):
    """Rates over time."""

    bin_ns: int
    """Length of a bin; the first bin begins with the first arrival, and the last bin is shorter."""
    bins: list[RateBin]
    """Bins in order of time, without gaps."""


class RunReport(TypedDict):
    """Sequential runs, in which each request starts where an earlier request ended."""

    share: float | None
    """Share of the requests that continue a run, among the requests that could."""
    runs: int
    """Number of runs of one or more requests."""
    mean_requests: float | None
    """Mean number of requests in a run."""
    mean_bytes: float | None
    """Mean length of a run in bytes."""
    requests: list[PowerBin]
    """Number of runs by their number of requests."""
    bytes: list[PowerBin]
    """Number of runs by their length in bytes."""


class SequenceReport(TypedDict):
    """Sequentiality of requests that transfer data, for each device separately."""

    strict: RunReport
    """Runs in which each request starts where the previous request ended."""
    streams: RunReport
    """Runs in which each request continues one of the last 32 streams, possibly with other requests in between."""
    mean_concurrent_streams: float | None
    """Mean number of streams with at least two requests, among the last 32 streams."""
    max_concurrent_streams: int
    """Maximum number of these streams at a time."""
    mean_seek_bytes: float | None
    """Mean distance from the end of a request to the start of the next, in either direction, in bytes."""
    forward_seeks_bytes: list[PowerBin]
    """Number of forward seeks by distance in bytes; a seek of 0 is sequential."""
    backward_seeks_bytes: list[PowerBin]
    """Number of backward seeks by distance in bytes."""


class GrowthPoint(TypedDict):
    """A point of the growth curve of the working set."""

    at_ns: int
    """Time since the first arrival."""
    touched_bytes: float
    """Bytes of all blocks touched up to this time."""


class WindowReport(TypedDict):
    """Blocks touched in consecutive time windows of one length, from the first arrival."""

    window_ns: int
    """Length of a window."""
    mean_bytes: float
    """Mean bytes of the blocks touched in a window, including the shorter last window."""
    max_bytes: float
    """Maximum bytes of the blocks touched in a window."""


class Successions(TypedDict):
    """References to a block that was touched before, by their operation and the previous one."""

    read_after_read: float
    """Number of reads of blocks whose previous reference was a read."""
    read_after_write: float
    """Number of reads of blocks whose previous reference was a write."""
    write_after_read: float
    """Number of writes to blocks whose previous reference was a read."""
    write_after_write: float
    """Number of writes to blocks whose previous reference was a write."""


class WorkingSetReport(TypedDict):
    """The blocks that requests touch."""

    block_bytes: int
    """Bytes of a block."""
    sampled_rate: float
    """Share of the blocks that was sampled at the end; 1 if all figures are exact."""
    references: int
    """Number of references to blocks; a request references each block that it touches."""
    touched_bytes: float
    """Bytes of all blocks touched."""
    read_bytes: float
    """Bytes of the blocks that were read."""
    written_bytes: float
    """Bytes of the blocks that were written."""
    growth: list[GrowthPoint]
    """Growth of the working set: the last new block in each of up to 512 equal parts of the time."""
    windows: list[WindowReport]
    """Blocks touched in time windows, up to the first window longer than the trace."""
    successions: Successions
    """References by the kind of the previous reference to the block."""
    reuse_times_ns: list[PowerBin]
    """Time since the previous reference to the block; 0 if below the resolution of the clock."""
    update_times_ns: list[PowerBin]
    """Time since the previous write to the block."""


class CurvePoint(TypedDict):
    """A point of a miss-ratio curve."""

    cache: int
    """Cache size in blocks or requests."""
    cache_bytes: int | None
    """Cache size in bytes; ``None`` if requests are counted."""
    miss_ratio: float
    """Miss ratio of an LRU cache of this size."""
    hits: float
    """Number of hits; an estimate if ``low`` is given."""
    low: float | None
    """Lower bound of the 95 % band; ``None`` where the count is exact."""
    high: float | None
    """Upper bound of the 95 % band; ``None`` where the count is exact."""


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
    """Time that a column covers; the first column begins with the first arrival."""
    row_bytes: int
    """Bytes that a row covers; the first row begins at 0."""
    reads: list[list[int]]
    """Number of reads and requests of unknown kind, with one list of rows per column; missing rows at the end are 0."""
    writes: list[list[int]]
    """Writes, in the same form."""


class EnvironmentReport(TypedDict):
    """A trace described as an access specification. A request is random if it continues none of the last 32 streams of
    its device."""

    read_share: float | None
    """Reads over reads and writes."""
    random_share: float | None
    """Random requests over reads and writes."""
    read_random_share: float | None
    """Random reads over reads."""
    write_random_share: float | None
    """Random writes over writes."""
    mean_run_requests: float | None
    """Mean number of requests of a stream, from a random request to the last request that continues it."""
    concurrent_streams: float | None
    """Mean number of concurrent streams of two requests or more."""
    depth: float | None
    """Mean queue depth over time."""
    requests_per_s: float | None
    """Arrivals per second."""
    random_span_share_90: float | None
    """Smallest share of the addresses, up to the highest touched address, that gets 90 % of the random accesses."""
    workload_toml: str | None
    """A headstack workload with the same mix; ``None`` if the trace has no operations."""


class DeviceReport(TypedDict):
    """One device."""

    name: str
    """Its name in the trace."""
    operations: dict[str, Amount]
    """Requests by operation."""
    lowest_bytes: int | None
    """First byte touched by a transfer; ``None`` without one."""
    highest_end_bytes: int | None
    """First byte above all bytes that transfers touched."""
    mean_latency_ns: float | None
    """Mean latency; ``None`` if not recorded."""
    mean_depth: float | None
    """Mean queue depth between the first and the last arrival of the trace, by Little's law; ``None`` if no completion
    is recorded."""
    sequence: SequenceReport
    """Sequentiality of the device's requests."""


class ProcessReport(TypedDict):
    """One process."""

    pid: int
    """Its number."""
    name: str
    """Name; empty if the trace does not contain it."""
    operations: dict[str, Amount]
    """Requests by operation."""


class TraceReport(TypedDict):
    """Figures of a trace.

    "Transfers" are reads, writes and requests of unknown kind, which have an address. Only transfers count for
    alignment, addresses, sequences, blocks and re-use.
    """

    requests: int
    """All requests."""
    bytes: int
    """Sum of the request lengths, in bytes."""
    first_arrival_ns: int | None
    """First arrival on the trace's clock; ``None`` without requests."""
    duration_ns: int
    """Time from the first arrival to the last."""
    requests_per_s: float | None
    """Arrivals per second: number of gaps divided by duration; ``None`` if the duration is 0."""
    bytes_per_s: float | None
    """Bytes per second over the duration."""
    resolution_ns: int | None
    """Resolution of the clock; ``None`` if unknown."""
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
    """First byte above all bytes that transfers touched, on any device."""
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
    """Distribution of latency, and latency by size, device and process; ``None`` if not recorded."""
    phases: PhasesReport | None
    """Times of the phases of requests; ``None`` if the trace lacks the times of issue to a device."""
    depth: DepthReport | None
    """Queue depth; ``None`` if no completion is recorded."""
    heat: HeatReport | None
    """Addresses over time; ``None`` if not requested."""
    environment: EnvironmentReport
    """The trace described as an access specification."""
    devices: list[DeviceReport]
    """Devices with requests, among the first 131,072 devices."""
    other_devices: Amount
    """Requests to all other devices, whose sequences are not tracked."""
    processes: list[ProcessReport]
    """Processes with requests, among the first 1,024 processes."""
    other_processes: Amount
    """Requests of all other processes."""
    notes: list[str]
    """Remarks on the reliability of the figures."""
