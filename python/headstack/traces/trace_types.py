"""Types of a trace's metadata, counts and volumes, and of results of writing and capturing one."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from headstack.traces.report_types import TraceReport


class Origin(TypedDict):
    """A file that the trace came from."""

    file: str
    """Its name, without its folder."""
    format: str
    """The format it was read as."""


class DeviceMeta(TypedDict):
    """A device that requests went to."""

    name: str
    """Its name in the trace: ``7,0``, ``hm.0``, a path."""
    capacity_bytes: NotRequired[int]
    sector_bytes: NotRequired[int]
    """The unit of its addresses, where it is known."""
    model: NotRequired[str]
    """A product or model."""


class Process(TypedDict):
    """A process that issued requests."""

    pid: int
    """Its number; the thread's if the kernel records that."""
    name: str
    """Its name; empty where the trace does not say."""


class Meta(TypedDict):
    """Facts about a trace as a whole; empty ones are left out."""

    origin: list[Origin]
    """The files it came from."""
    clock: Literal["unix", "recording", "boot", "order"]
    """The zero of arrival times: 1970-01-01 UTC, the start of the recording, an unknown moment, or none: without times,
    requests are numbered, one nanosecond each."""
    zero_unix_ns: NotRequired[int]
    """The date of time 0 of the clock in ns since 1970, if the clock is another and the trace states it."""
    resolution_ns: int
    """The step of the recorded times: 10^9 where they are whole seconds."""
    address_space: NotRequired[Literal["file", "object"]]
    """The space of offsets; a device's if left out."""
    response: NotRequired[str]
    """The span of response times, where there are any: ``queue-to-completion``."""
    devices: list[DeviceMeta]
    """The devices that requests went to."""
    processes: NotRequired[list[Process]]
    """The processes that issued them."""
    counts: NotRequired[dict[str, int]]
    """Counts from parsing: ``lost events``, ``out of order``, each above 0."""
    rejected: int
    """Lines or records that were skipped as requested."""
    rejects: NotRequired[list[str]]
    """The first of them, with their reasons."""
    notes: NotRequired[list[str]]
    """Remarks that a reader of results should know: ``times are whole seconds``."""
    steps: NotRequired[list[str]]
    """The transformations it went through, in order."""
    header: NotRequired[str]
    """The file's own account of its devices (SRT's header)."""


class Counts(TypedDict):
    """Counts of the requests of one device, or of all."""

    requests: dict[str, int]
    """Requests of each operation that occurs."""
    bytes: dict[str, int]
    """Their bytes."""
    lowest_byte: int | None
    """Lowest first byte; ``None`` without requests that have an address."""
    highest_end_byte: int
    """Highest end."""
    arrivals_ns: list[int] | None
    """First and last arrival."""
    responses: int
    """Requests whose response time is recorded."""
    response_sum_ns: int
    """The sum of those."""


class Summary(TypedDict):
    """Counts of a trace as a whole and of each device, in one pass."""

    total: Counts
    devices: list[Counts]
    """Counts of each device, in the order of the metadata."""
    most_in_flight: int
    """Maximum number of requests that had arrived and were not complete, of those whose completion is recorded."""


class Source(TypedDict):
    """The files of a trace and how they are read: the arguments of ``Trace``."""

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
    """Counts of things that the format could not hold, by name."""


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
    """Reads over reads and writes; ``None`` without any."""
    bytes: int
    """The sum of the lengths of all requests."""
    read_bytes: int
    written_bytes: int
    footprint_bytes: float
    """4 KiB blocks touched by reads and writes, in bytes; an estimate where ``sampled_rate`` is below 1."""
    working_set_bytes: float | None
    """Mean of the 4 KiB blocks touched in ten minutes, in bytes; ``None`` if times are not recorded."""
    end_bytes: int | None
    """First byte after all touched bytes; ``None`` if offsets are not those of a device."""
    requests_per_s: float | None
    """Requests per second over the time of the trace; ``None`` if that is 0."""
    busiest_per_s: int | None
    """Maximum requests in a second of the trace's clock; ``None`` if times are not recorded."""
    mean_response_ns: float | None
    """Mean response time; ``None`` where none is recorded."""
    sampled_rate: float
    """Share of the blocks that was sampled at the end."""
