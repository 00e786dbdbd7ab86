"""Types of targets, measurements and reports of the compiled module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict


class TargetSpec(TypedDict):
    """A file, a device or an export to open, with the permitted writes."""

    path: str
    direct: bool
    """Whether requests bypass the page cache."""
    write: bool
    sync: NotRequired[Literal["no", "data", "file"]]
    """When a write is complete: when the system reports it, or when its data or the whole file are on stable
    storage."""
    destroy: NotRequired[list[str]]
    """Names and serial numbers of devices whose contents may be lost."""
    signatures: NotRequired[list[str]]
    """Signatures that may be overwritten, such as ``ext4``."""
    create_bytes: NotRequired[int | None]
    """Size of the file to create if it does not exist."""
    overwrite: NotRequired[bool]
    null_bytes: NotRequired[int | None]
    """Size of a null target."""
    connections: NotRequired[int]
    """Connections of each thread to an export."""


class TargetDescription(TypedDict):
    """A target that is open."""

    name: str
    kind: str
    """``file``, ``block device``, ``NVMe namespace``, ``NBD export`` or ``null``."""
    capacity_bytes: int
    block_bytes: int
    rotational: bool | None
    """Whether the device rotates; ``None`` if unknown."""
    notes: list[str]
    description: Mapping[str, Any]
    """The properties that results store about the target; the keys depend on its kind."""


class ZoneSpec(TypedDict):
    """Zoned writing: writes go to write pointers, and full zones are reset."""

    size_bytes: int | None
    """Size of a zone; ``None`` for the zone size of the device."""
    open_max: int
    """Maximum number of open zones; 0 for the device's limit."""


class NullService(TypedDict):
    """Service time of a null target."""

    service_ns: int


class NullEngine(TypedDict):
    """Engine of a null target."""

    null: NullService


Engine = str | NullEngine
"""One of ``ENGINES``, or the engine of a null target."""


class Limits(TypedDict):
    """End conditions of a job; the first condition reached ends it. Without a condition, the run length of its workload
    applies."""

    requests: int | None
    bytes: int | None
    time_ns: int | None


class JobSpec(TypedDict):
    """A workload on targets."""

    name: str
    targets: list[int]
    """Numbers of the open targets."""
    span: tuple[int, int] | None
    """First byte and length of the used part."""
    workload: Mapping[str, Any]
    """The description of a ``Workload``."""
    threads: int
    limits: Limits
    engine: Engine
    slots: int
    """Open loop: maximum queue depth."""
    start_delay_ns: int
    seed: int
    verify: str
    """One of ``KINDS`` of ``Verifying``."""
    zones: ZoneSpec | None


class RunSpec(TypedDict):
    """Jobs that are measured at the same time."""

    system_name: str
    workload: Mapping[str, Any]
    """The description of a ``Workload``, for results."""
    jobs: list[JobSpec]
    seed: int
    interval_ns: int | None
    labels: list[tuple[str, str]]
    """Additional columns in the table of results."""


class PassSpec(TypedDict):
    """A pass over all targets as one striped stream."""

    write: bool
    block_bytes: int
    """Number of bytes that go to a device before the stream moves to the next device."""
    ahead: int
    """Maximum number of blocks by which a device may be ahead of the slowest device."""
    device_bytes: int | None
    """Maximum number of bytes of each device."""
    start_bytes: int
    interval_ns: int


class DeviceShare(TypedDict):
    """The work of a device in an interval of a pass."""

    blocks: int
    """Number of blocks that the stream passed, including failed blocks."""
    errors: int
    busy_ns: int
    """Time in which the device was processing a block."""
    held_ns: int
    """Time in which the oldest block of the stream was on this device."""
    sum_ns: int
    """Sum of the block times of the device."""
    max_ns: int
    classes: list[int]
    """Number of blocks in each class of block times."""
    responses: list[list[int]]
    """Middles of bins in ns, each with its count."""


class Stretch(TypedDict):
    """An interval of a pass."""

    position_bytes: int
    bytes: int
    duration_ns: int
    devices: list[DeviceShare]
    """Devices, in the order of the stripe."""


class PassEnd(TypedDict):
    """The end of a pass."""

    end_bytes: int
    is_whole: bool
    flush_ns: int | None
    """Time that the devices took to flush their caches after a complete write pass."""
    ended_early: str | None
    failures: list[str]
    """The first failures, each with its device."""
    engine: str


class ReplaySpec(TypedDict):
    """A replay of a trace on a target."""

    target: int
    """Number of the target among the open targets."""
    system_name: str
    source: Mapping[str, Any]
    """The source of a ``Trace``."""
    replay: Mapping[str, Any]
    """Mode and limits, as for a simulated system."""
    writes: str
    engine: Engine
    slots: int
    realtime: bool
    interval_ns: int | None
    labels: list[tuple[str, str]]
    record: str | None
    """Trace file to write, with the requests as issued."""


class ProgressReport(TypedDict):
    """The progress of a measurement."""

    run: int
    """The number of the run, from 0."""
    runs: int
    elapsed_s: float
    share: float
    """Completed share of the run, from 0 to 1."""
    completed: int
    """Number of completed requests of the run."""
    bytes: int
    response_s: float
    """Sum of the latencies of these requests."""
    errors: int
    under_way: int
    """Current queue depth."""
    ending: bool
    """Whether no further requests are issued."""
    hosts: NotRequired[list[tuple[str, int | None]]]
    """Completed requests of each host that takes part; ``None`` if the host is missing."""


class StoredHistogram(TypedDict):
    """Latencies in the form in which results store them."""

    digits: NotRequired[int]
    """Number of decimal digits to which bins are exact; absent in histograms with fio's bins."""
    count: int
    sum_ns: int
    sum_squares_ns2: str | int
    """Sum of squares, stored as text because it may exceed 64 bits."""
    min_ns: int
    max_ns: int
    overflow: int
    """Number of latencies above the last bin."""
    bins: Sequence[Sequence[int]]
    """Middles of bins in ns, each with its count."""


class StoredKind(TypedDict):
    """Requests of one kind (``read``, ``write``, ``trim`` or ``flush``) in a result."""

    count: int
    bytes: int
    errors: int
    latency: StoredHistogram
    service: StoredHistogram
    handing_over: NotRequired[StoredHistogram]
