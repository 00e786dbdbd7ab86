"""Types of job files, phases and jobs, in the form of the compiled module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict


class Remark(TypedDict):
    """An option that is ignored, or handled differently."""

    line: int
    """Line of the file, or number of the argument, from 1; 0 if the remark concerns no single line."""
    option: str
    message: str


class Bytes(TypedDict):
    """A position or a length in bytes."""

    bytes: int


class Percent(TypedDict):
    """A position or a length in percent of the address space."""

    percent: float


class Part(TypedDict):
    """A part of an address space."""

    start: Bytes | Percent
    length: Bytes | Percent | None
    """Length; ``None`` for everything up to the end."""


class JobLimits(TypedDict):
    """End conditions of a job; the first condition reached ends it. Without a condition, the job makes one pass through
    its part."""

    requests: int | None
    transfers: int | None
    """Number of requests without flushes."""
    bytes: int | None
    passes: float | None
    """Bytes to transfer, as a multiple of the length of the part."""
    time_ns: int | None
    """Time after the warm-up."""


class Flow(TypedDict):
    """A flow, whose jobs keep their requests in proportion to their weights."""

    id: int
    weight: int
    sleep_ns: int


class ErrorRule(TypedDict):
    """How failed requests affect a job."""

    reads_go_on: bool
    writes_go_on: bool
    end_all: bool
    """Whether all jobs end if an error ends this one."""


class Bounds(TypedDict):
    """Limits of reads, writes and trims that end a job with an error when exceeded; 0 sets none."""

    latency_max_ns: list[int]
    iops_min: list[int]
    bytes_per_s_min: list[int]
    cycle_ns: int
    """Time over which the rate is averaged."""


class Pattern(TypedDict):
    """Bytes that are repeated from the start of each request."""

    pattern: list[int]


class Zoning(TypedDict):
    """Zoned writing (fio's ``zonemode=zbd``)."""

    size_bytes: int | None
    capacity_bytes: int | None
    skip_bytes: int
    open_max: int
    job_open_max: int
    ignores_limits: bool
    reads_beyond_pointer: bool
    reset_threshold: float
    reset_frequency: float
    writes_remainder: bool


class PhaseJob(TypedDict):
    """A job: one workload on one set of files or devices."""

    name: str
    group: int | None
    """Number of the group; jobs of a group are reported as one. ``None`` reports the job separately."""
    copies: int
    first_copy: int
    """Number of the job's first copy among the jobs of this name, from 0."""
    targets: list[str]
    file_bytes: int | None
    """Size of each file to create; ``None`` uses targets as they are."""
    part: Part
    engine: Literal["ring", "psync", "null"]
    direct: bool
    sync: Literal["no", "data", "file"]
    workload: Mapping[str, Any]
    """The description of a ``Workload``."""
    limits: JobLimits
    rates_per_s: NotRequired[list[float]]
    """Reads, writes and trims per second, if each kind has its own rate."""
    flow: NotRequired[Flow]
    errors: ErrorRule
    bounds: NotRequired[Bounds]
    content: Literal["random"] | Pattern
    flushes_at_end: bool
    share_percent: NotRequired[float]
    """The job's share of the requests in the pool of the phase."""
    start_delay_ns: int
    slots: int
    """Queue depth of an open loop."""
    verify: Literal["no", "stamp", "stamp_and_read", "check"]
    zones: NotRequired[Zoning]
    seed: int | None
    unlink: bool
    invalidate: bool
    percentiles: list[float]
    as_written: list[list[str]]
    """Options of the job, as written."""


class CurvePoint(TypedDict):
    """A point of a saturation curve: its rate is a percentage of the rate that another phase reached."""

    max_phase: int
    """Index of the phase without a limit."""
    percent: float
    process: str
    stop_response_ns: int | None
    """Maximum mean latency; the curve ends after the first point above it."""


class JobPhase(TypedDict):
    """Jobs that run at the same time."""

    name: str
    jobs: list[PhaseJob]
    pool: NotRequired[int]
    """Total queue depth of all jobs that have a share."""
    curve_point: NotRequired[CurvePoint]
    ends_with_first: bool
    loops_previous: NotRequired[bool]
    """Whether the phase is another loop of the previous phase."""


class Tree(TypedDict):
    """A tree of folders that contain files."""

    name: str
    anchor: str
    depth: int
    width: int
    files: int
    has_files_everywhere: bool
    sizes: list[list[float]]
    """Sizes of files in bytes, with their shares in percent."""
    total_bytes: int | None
    used_bytes: int | None


class TreeLoad(TypedDict):
    """Operations of one kind on one tree."""

    name: str
    tree: int
    to_tree: int | None
    operation: str
    read_percent: float | None
    files: Literal["sequential", "once", "random"]
    requests: Literal["sequential", "once", "random"]
    sizes: list[list[float]]
    """Lengths of requests in bytes, with their shares in percent."""
    threads: int
    share_percent: float | None
    requests_per_file: int | None
    direct: bool
    sync: Literal["no", "data", "file"]
    flushes_at_close: bool


class TreePhase(TypedDict):
    """Loads on trees of files at the same time."""

    name: str
    trees: list[Tree]
    loads: list[TreeLoad]
    format: Literal["no", "anew", "restart", "folders", "clean"]
    rate_per_s: float | None
    process: str
    time_ns: int
    warm_up_ns: int
    interval_ns: int
    verify: bool


JobFileRead = TypedDict(
    "JobFileRead",
    {
        "phases": list[JobPhase],
        "tree_phases": NotRequired[list[TreePhase]],
        "remarks": list[Remark],
        "global": list[list[str]],
    },
)
"""A job file: consecutive phases, or loads on trees of files; remarks; and the options of all jobs as written."""


class PhaseSpec(TypedDict):
    """A phase on targets that are open."""

    system_name: str
    phase: JobPhase
    targets: list[list[int]]
    """Numbers of the open targets of each job."""
    null_service_ns: int
    seed: int
    interval_ns: int | None
    times_handing_over: bool
    labels: list[tuple[str, str]]


class PhaseDemand(TypedDict):
    """The workload or the scenario of a phase on a simulated system."""

    workload: NotRequired[Mapping[str, Any]]
    scenario: NotRequired[Mapping[str, Any]]
    remarks: list[Remark]
    streams: list[str]
    """Names of the streams in results."""


class DiskUse(TypedDict):
    """Requests, merges and times (ms) of a disk during a measurement: an entry of fio's ``disk_util``."""

    name: str
    read_ios: int
    write_ios: int
    read_merges: int
    write_merges: int
    read_ticks: int
    write_ticks: int
    in_queue: int
    util: float
    """Utilization in percent."""


def writes(job: PhaseJob) -> bool:
    """Whether a job has requests other than reads."""
    return any(line["read_percent"] < 100 for line in job["workload"]["lines"])
