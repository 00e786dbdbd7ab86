"""Types of a trace's metadata, counts and volumes, and of results of writing and capturing one."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from headstack.traces.report_types import TraceReport


class Origin(TypedDict):
    """A source file of the trace."""

    file: str
    """Its name, without its folder."""
    format: str
    """Format in which the file was read."""


class DeviceMeta(TypedDict):
    """A device that received requests."""

    name: str
    """Its name in the trace: ``7,0``, ``hm.0``, a path."""
    capacity_bytes: NotRequired[int]
    sector_bytes: NotRequired[int]
    """Unit of the device's addresses, if known."""
    model: NotRequired[str]
    """Product or model of the device."""


class Process(TypedDict):
    """A process that issued requests."""

    pid: int
    """Number of the process, or of the thread if the kernel records threads."""
    name: str
    """Name; empty if the trace does not contain it."""


class Meta(TypedDict):
    """Metadata of a trace; empty fields are left out."""

    origin: list[Origin]
    """Source files of the trace."""
    clock: Literal["unix", "recording", "boot", "order"]
    """The zero of arrival times: 1970-01-01 UTC, the start of the recording, an unknown moment, or none: without times,
    requests are numbered, one nanosecond each."""
    zero_unix_ns: NotRequired[int]
    """Date of time 0 in ns since 1970, if the clock has another zero and the trace contains the date."""
    resolution_ns: int
    """Resolution of the recorded times in ns, for example 10^9 for whole seconds."""
    address_space: NotRequired[Literal["file", "object"]]
    """Address space of the offsets; a device if left out."""
    response: NotRequired[str]
    """Span of latencies, if any are recorded, for example ``queue-to-completion``."""
    devices: list[DeviceMeta]
    """Devices that received requests."""
    processes: NotRequired[list[Process]]
    """Processes that issued requests."""
    counts: NotRequired[dict[str, int]]
    """Counts from parsing: ``lost events``, ``out of order``, each above 0."""
    rejected: int
    """Number of lines or records skipped because of ``skip_bad``."""
    rejects: NotRequired[list[str]]
    """First skipped lines or records, with the reasons."""
    notes: NotRequired[list[str]]
    """Remarks on limits of the trace, for example ``times are whole seconds``."""
    steps: NotRequired[list[str]]
    """Transformations that were applied to the trace, in order."""
    header: NotRequired[str]
    """Description of the devices in the file (the header of SRT)."""


class Counts(TypedDict):
    """Counts of the requests of one device or of all devices."""

    requests: dict[str, int]
    """Number of requests by operation."""
    bytes: dict[str, int]
    """Bytes by operation."""
    lowest_byte: int | None
    """Lowest first byte; ``None`` without requests that have an address."""
    highest_end_byte: int
    """Highest end of a request."""
    arrivals_ns: list[int] | None
    """Times of the first and the last arrival."""
    responses: int
    """Number of requests with a recorded latency."""
    response_sum_ns: int
    """Sum of the recorded latencies."""


class Summary(TypedDict):
    """Counts of a trace as a whole and of each device, in one pass."""

    total: Counts
    devices: list[Counts]
    """Counts of each device, in the order of the metadata."""
    most_in_flight: int
    """Maximum queue depth, counting only requests with a recorded completion."""


class Source(TypedDict):
    """Files of a trace and options for reading them: the arguments of ``Trace``."""

    paths: list[str]
    format: str | None
    skip_bad: bool
    steps: list[str]
    devices: list[str] | None
    columns: str | None
    sector_bytes: int | None
    time_unit: str | None
    at: str | None


class TraceInfo(TypedDict):
    """Metadata of a trace and counts of one pass."""

    meta: Meta
    summary: Summary


class Analyzed(TypedDict):
    """Metadata of a trace and the report of its analysis."""

    meta: Meta
    report: TraceReport


class Written(TypedDict):
    """A trace that was written in the stored form."""

    meta: Meta
    requests: int


class Exported(TypedDict):
    """A trace that was written in another program's format."""

    meta: Meta
    requests: int
    losses: dict[str, int]
    """Counts of data that the format cannot store, by name."""


class Captured(TypedDict):
    """A trace of the requests to a block device."""

    meta: Meta
    method: str
    """``tracepoints`` or ``tracer``."""
    requests: int
    bytes: int
    lost: int
    """Events that the kernel dropped."""
    seconds: float


class Volume(TypedDict):
    """One device of a trace."""

    volume: str
    """Its name in the trace."""
    requests: int
    reads: int
    writes: int
    read_share: float | None
    """Share of reads among reads and writes; ``None`` without either."""
    bytes: int
    """The sum of the lengths of all requests."""
    read_bytes: int
    written_bytes: int
    footprint_bytes: float
    """4 KiB blocks touched by reads and writes, in bytes; an estimate if ``sampled_rate`` is below 1."""
    working_set_bytes: float | None
    """Mean of the 4 KiB blocks touched in ten minutes, in bytes; ``None`` if times are not recorded."""
    end_bytes: int | None
    """First byte above all touched bytes; ``None`` if offsets are not device addresses."""
    requests_per_s: float | None
    """Requests per second over the duration of the trace; ``None`` if the duration is 0."""
    busiest_per_s: int | None
    """Maximum requests in a second of the trace's clock; ``None`` if times are not recorded."""
    mean_latency_ns: float | None
    """Mean latency; ``None`` if not recorded."""
    sampled_rate: float
    """Share of the blocks that was sampled at the end."""
