"""Targets and measurements as the compiled part takes them, and its reports of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict


class TargetSpec(TypedDict):
    """A file, a device or an export to open, and what may be done to it."""

    path: str
    direct: bool
    """Past the page cache."""
    write: bool
    sync: NotRequired[Literal["no", "data", "file"]]
    """When a write is complete: as the system says, or when its data or the whole file are on stable storage."""
    destroy: NotRequired[list[str]]
    """Names and serial numbers of devices whose contents may be lost."""
    signatures: NotRequired[list[str]]
    """Signatures that may be overwritten, such as ``ext4``."""
    create_bytes: NotRequired[int | None]
    """The size of the file, which is created where there is none."""
    overwrite: NotRequired[bool]
    null_bytes: NotRequired[int | None]
    """The size of a target that stores nothing."""
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
    """``None`` where nobody knows."""
    notes: list[str]
    description: Mapping[str, Any]
    """The properties that results store of its system; their keys depend on the kind of the target."""


class ZoneSpec(TypedDict):
    """The tending of zones: writes go to write pointers, and full zones are reset."""

    size_bytes: int | None
    """The size of a zone; ``None`` for that of the device."""
    open_max: int
    """Zones that may be open at a time; 0 for as many as the device allows."""


class NullService(TypedDict):
    """The time that a target which stores nothing takes for each request."""

    service_ns: int


class NullEngine(TypedDict):
    """The engine of a target that stores nothing."""

    null: NullService


Engine = str | NullEngine
"""One of ``ENGINES``, or that of a target which stores nothing."""


class Limits(TypedDict):
    """The end of a job, by the limit that is reached first; without any, by the run length of its workload."""

    requests: int | None
    bytes: int | None
    time_ns: int | None


class JobSpec(TypedDict):
    """A workload on targets."""

    name: str
    targets: list[int]
    """Numbers of the open targets."""
    span: tuple[int, int] | None
    """First byte and length of the part that is used."""
    workload: Mapping[str, Any]
    """The description of a ``Workload``."""
    threads: int
    limits: Limits
    engine: Engine
    slots: int
    """Open loop: requests with the system at a time."""
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
    """Columns of its own in the table of results."""


class PassSpec(TypedDict):
    """A pass over all targets as one striped stream."""

    write: bool
    block_bytes: int
    """Bytes that go to a device before the next has its turn."""
    ahead: int
    """Blocks that a device may be ahead of the slowest."""
    device_bytes: int | None
    """At most so many bytes of each device."""
    start_bytes: int
    interval_ns: int


class DeviceShare(TypedDict):
    """The work of a device in an interval of a pass."""

    blocks: int
    """Blocks that the stream passed, failed ones among them."""
    errors: int
    busy_ns: int
    """Time in which it had a block."""
    held_ns: int
    """Time in which the oldest block of the stream was its own."""
    sum_ns: int
    """Sum of the times of its blocks."""
    max_ns: int
    classes: list[int]
    """Blocks in each class of times."""
    responses: list[list[int]]
    """Middles of bins in ns, each with its count."""


class Stretch(TypedDict):
    """An interval of a pass."""

    position_bytes: int
    bytes: int
    duration_ns: int
    devices: list[DeviceShare]
    """In the order of the stripes."""


class PassEnd(TypedDict):
    """The end of a pass."""

    end_bytes: int
    is_whole: bool
    flush_ns: int | None
    """The time in which the devices wrote out their caches, after a write pass to the end."""
    ended_early: str | None
    failures: list[str]
    """The first failures, each with its device."""
    engine: str


class ReplaySpec(TypedDict):
    """A replay of a trace on a target."""

    target: int
    """Its number among the open targets."""
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
    """A trace to write of the requests as they were carried out."""


class ProgressReport(TypedDict):
    """The course of a measurement."""

    run: int
    """The number of the run, from 0."""
    runs: int
    elapsed_s: float
    share: float
    """Share of the run that is done, 0 to 1."""
    completed: int
    """Requests of the run that are complete."""
    bytes: int
    response_s: float
    """Sum of their response times."""
    errors: int
    under_way: int
    """Requests that the system has."""
    ending: bool
    """Nothing is issued any more."""
    hosts: NotRequired[list[tuple[str, int | None]]]
    """Hosts that measure together, each with its complete requests; ``None`` of one that is missing."""


class StoredHistogram(TypedDict):
    """Response times as results store them."""

    digits: NotRequired[int]
    """Decimal digits to which bins are exact; missing in histograms of fio's bins."""
    count: int
    sum_ns: int
    sum_squares_ns2: str | int
    """A text in results: it may exceed 64 bits."""
    min_ns: int
    max_ns: int
    overflow: int
    """Times that are longer than the last bin."""
    bins: Sequence[Sequence[int]]
    """Middles of bins in ns, each with its count."""


class StoredKind(TypedDict):
    """Requests of one kind (``read``, ``write``, ``trim`` or ``flush``) in a result."""

    count: int
    bytes: int
    errors: int
    response: StoredHistogram
    service: StoredHistogram
    handing_over: NotRequired[StoredHistogram]
