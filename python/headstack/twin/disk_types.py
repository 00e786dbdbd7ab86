"""The description of a disk drive, as the simulator takes it."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Coalescing(TypedDict):
    """Interrupts that report several completions."""

    interval_ns: int
    """Time between two interrupts."""
    completions_max: int
    """Maximum number of completions per interrupt."""
    from_outstanding: int
    """The queue depth from which on every completion waits."""
    one_in: int
    """At lower depths, one completion in this many waits."""


class Adapter(TypedDict):
    """A host adapter (HBA) with its host, fully resolved."""

    tags: int
    """Maximum number of commands that it keeps in a drive; the drive's own limits apply as well."""
    elevator: str
    """Order in which requests that wait for a tag of an SSD get one; a disk's interface has its own."""
    read_interval_ns: int
    """Minimum time between the starts of two reads (including flushes and trims); its inverse is the maximum read
    rate."""
    write_interval_ns: int
    """Minimum time between the starts of two writes."""
    ns_per_byte: float
    """Added to the interval for each byte; 0 if the drive's own interface is slower."""
    latency_ns: int
    """Time from the application to the adapter and back: system call, driver, interrupt. It occupies no resource."""
    wake_ns: int
    """Added to it if nothing else is outstanding: the processor has gone to sleep."""
    coalescing: Coalescing | None
    """Interrupt coalescing; ``None`` if each completion has its own interrupt."""


class FlashCache(TypedDict):
    """A read cache of NAND flash within the drive (Seagate's TurboBoost). It caches blocks that random reads access
    repeatedly. The disk keeps its copy, so a write only has to invalidate the copy in flash, and a fill uses the data
    that the read has transferred anyway: filling needs no arm movement."""

    size_bytes: int
    """Its size in bytes."""
    block_bytes: int
    """The unit of admission and eviction; a smaller read also reads the rest of its block in the same pass."""
    latency_ns: int
    """Time from the firmware's decision to the first byte, during which reads overlap."""
    ns_per_byte: float
    """Time of one byte from the flash, or into it."""
    fill_bytes_per_s: float
    """Maximum bytes admitted per second, to limit wear of the flash."""
    history_blocks: int
    """Number of blocks whose last read is remembered."""
    on_first_read: NotRequired[bool]
    """Whether a block is admitted on its first read, not on its second."""
    keeps_written: NotRequired[bool]
    """Whether a write updates the copy; otherwise it invalidates it."""
    sequential_bytes: int
    """Length from which a run of reads counts as sequential and is not admitted."""


class MediaCache(TypedDict):
    """A part of the media at the outer rim that takes writes sequentially in order of their arrival, until they are
    moved home (Seagate's Advanced Write Cache; the persistent cache of drive-managed shingled drives)."""

    size_bytes: int
    """Its size in bytes, on top of the drive's own capacity."""
    extents_max: int
    """Maximum number of extents whose position the drive can remember."""
    dram_bytes: int
    """Maximum bytes of completed writes that are only in the buffer; 0 if a write completes on the media."""
    dram_is_protected: bool
    """Whether this part of the buffer survives a power loss: then it is used regardless of the volatile write cache,
    and a flush does not wait for it."""
    sequential_bytes: int
    """Length from which a run of writes counts as sequential and goes home directly."""
    idle_ns: int
    """Idle time of the host after which the cache is cleaned."""
    busy_share: float
    """Fill level, by size or extents, above which the cache is cleaned while the host waits."""
    sweep_bytes: int
    """Bytes of the cache that are moved home in one sweep over the drive; a shingled drive sweeps over a band
    instead."""
    sweep_window: int
    """Number of accesses of a sweep that are queued at once, in ascending order; 2 keep that order, more let the queue
    choose."""


class Shingles(TypedDict):
    """Overlapping tracks: only whole bands can be written home (drive-managed shingled recording). Needs a media
    cache."""

    band_bytes: int
    """Bytes that must be written as a unit."""


class Disk(TypedDict):
    """One disk drive."""

    name: str
    """Product name, for people."""
    geometry: Geometry
    """The place of each sector."""
    mechanics: Mechanics
    """Movements of the arm and the spindle."""
    queue: Queue
    """How the next command is selected."""
    buffer: Buffer
    """Segments, read-ahead, write cache."""
    overheads: Overheads
    """Fixed costs of a command."""
    interface: Interface
    """The link to the host."""
    slow: SlowProcesses
    """Slow processes that cause the far tail; all off by default."""
    flash_cache: NotRequired[FlashCache]
    """Flash that caches reads."""
    media_cache: NotRequired[MediaCache]
    """Media that cache random writes sequentially."""
    shingles: NotRequired[Shingles]
    """Overlapping tracks."""
    power: NotRequired[Power]
    """Power and cooling; absent if unknown."""
    actuators: NotRequired[int]
    """Number of independent arms, each with its share of the heads and of the blocks, in order; all behind one port and
    one queue."""


class Geometry(TypedDict):
    """Surfaces, zones and the order of logical blocks over them."""

    logical_block_bytes: int
    """Bytes of a logical block: 512, or 4096 for 4Kn."""
    physical_sector_bytes: int
    """Bytes of a physical sector: 512, or 4096 for 512e and 4Kn."""
    logical_blocks: int
    """Number of exported logical blocks; at most the capacity of the zones."""
    heads: int
    """Recording surfaces."""
    cylinders: int
    """Number of cylinders, including spare and unused ones."""
    order: str | dict[str, dict[str, int]]
    """Order of logical blocks over heads and cylinders."""
    sparing: str | dict[str, dict[str, int]]
    """The place of spare sectors."""
    zones: list[Zone]
    """Zones from the outer rim inwards, ascending and without overlap."""


class Zone(TypedDict):
    """Cylinders with the same number of sectors per track."""

    first_cylinder: int
    """First cylinder."""
    last_cylinder: int
    """Last cylinder, inclusive."""
    sectors_per_track: int
    """Physical sectors of a track, including spares."""
    offset_turns: float
    """Angle of the zone's first sector, in turns."""
    track_skew_turns: float
    """Skew added at each change of head, in turns."""
    cylinder_skew_turns: float
    """Skew added at each change of cylinder, in turns."""
    reserved_sectors: int
    """Sectors at the zone's start that hold no logical block."""
    spares: int
    """Spares of a region (track, cylinder, range or zone by the sparing scheme): sectors, or tracks for
    ``TracksAtZoneEnd``."""
    slips: list[int]
    """Places skipped when the map was made, ascending: sectors (or tracks) counted from the zone's start."""
    remaps: list[list[int]]
    """(Defective, replacement), numbered as the slips."""


class TwoPiece(TypedDict):
    """Two pieces of a seek curve (Ruemmler and Wilkes 1994)."""

    boundary_cylinders: int
    short_ns: float
    short_ns_per_sqrt: float
    long_ns: float
    long_ns_per_cylinder: float
    first_ns: list[int]


class ThreeParameter(TypedDict):
    """Minimum, mean and maximum seek (Lee and Katz 1993)."""

    minimum_ns: int
    average_ns: int
    maximum_ns: int


SeekCurve = TypedDict(
    "SeekCurve",
    {
        "points": NotRequired[list[list[int]]],
        "two-piece": NotRequired[TwoPiece],
        "three-parameter": NotRequired[ThreeParameter],
        "constant": NotRequired[int],
    },
)
"""Seek time over distance, in one of these forms; points are cylinders and ns."""


class Mechanics(TypedDict):
    """Spindle, arm and head."""

    rpm: float
    """Spindle speed."""
    seek: SeekCurve
    """Seek time for reads over the distance in cylinders, including read settle."""
    read_settle_ns: int
    """Added to a read if the arm or the head moved (0 if the curve includes it)."""
    write_settle_ns: int
    """Added to a write if the arm or the head moved; may be negative (DEC RZ26)."""
    head_switch_ns: int
    """Time to change to another surface."""
    read_on_arrival: bool
    """Whether reads start with the first requested sector that passes, not with the first of the request (zero
    latency).
    """
    write_on_arrival: bool
    """Whether writes start with the first requested sector that passes."""


class Queue(TypedDict):
    """The drive's command queue."""

    depth: int
    """Commands the drive holds at once: 1 without queueing, TCQ 2 to 256, NCQ 32."""
    policy: str
    """How the next queued command is selected."""
    ageing_ns: int | None
    """Age from which a command is served before any younger one."""
    reordering_strength: float
    """Share of the outstanding commands that the policy chooses from, 0 to 1: of ``n`` commands the oldest
    ``1 + strength * (n - 1)``, as an average if that is not whole. 0 is FCFS, 1 the ideal policy."""
    committed: float
    """Number of commands after the one in service to which the firmware has committed itself: they stay in order, and
    the policy chooses among the rest by the arm's position after them. An average if it is not whole; 0 chooses among
    all queued commands at each completion."""
    rotation_margin_ns: int
    """The firmware assumes another revolution for a sector that would pass within this time of the end of the seek,
    since its estimate of the seek is no better."""
    age_weight: float
    """Positioning time that a unit of waiting time compensates in the choice."""


class Buffer(TypedDict):
    """The buffer: read segments with read-ahead and a write cache."""

    segments: int
    """Number of segments; 0 disables caching."""
    segment_sectors: int
    """Physical sectors of a segment."""
    read_ahead: str
    """Read-ahead: the end of reads that continue after the request."""
    read_ahead_max_sectors: int
    """Maximum number of sectors read ahead of the request's end."""
    read_ahead_min_sectors: int
    """Sectors read ahead before another command is served."""
    read_ahead_on_hit: bool
    """Whether read-ahead continues after a command that was served from the buffer."""
    keep_passing_sectors: bool
    """Whether sectors that pass before the first requested one are kept (needs ``read_on_arrival``)."""
    read_hits_on_arriving: bool
    """Whether a read whose first sector is the one that read-ahead is reading now joins it (DiskSim's "almost read
    hit").
    """
    read_hits_on_writes: bool
    """Whether reads of data that a write left in the buffer are hits."""
    write_cache: str
    """When a write completes for the host."""
    dirty_extents_max: int
    """Maximum number of dirty extents: few in SCSI drives of the 1990s (1 to 3), hundreds in later ones."""
    dirty_sectors_max: int
    """Maximum number of dirty physical sectors."""
    separate_write_segment: bool
    """Whether writes have a segment of their own, separate from reads."""
    read_watermark: float
    """Share of a read (0 to 1) that must be in the buffer before it goes to the host."""
    write_watermark: float
    """Share of a write (0 to 1) that must be in the buffer before the media are written; the rest arrives while they
    turn, never later than needed."""


class Overheads(TypedDict):
    """Fixed costs of a command, each depending on the previous command."""

    read_hit_ns: AfterReadWrite
    """Before a read that hits the buffer, after a read / after a write."""
    read_miss_ns: AfterReadWrite
    """Before a read that goes to the media."""
    write_hit_ns: AfterReadWrite
    """Before a write that appends to data in the buffer."""
    write_miss_ns: AfterReadWrite
    """Before any other write."""
    read_completion_ns: int
    """After the last byte of a read, before the host sees its completion."""
    write_completion_ns: int
    """After the last byte of a write."""
    data_preparation_ns: int
    """Before a transfer of data to the host, once its sectors are there."""
    minimum_seek_delay_ns: int
    """Minimum time from the decoding of a write to the end of its arm movement."""
    read_settled_min_ns: AfterReadWrite
    """Minimum time from a read command to its track. It matters if the arm need not move: a seek curve measured through
    the interface includes the firmware's time, so that the read overheads extracted with it are too short for an access
    without a seek."""


class AfterReadWrite(TypedDict):
    """A cost that depends on the kind of the previous command."""

    after_read: int
    """After a read."""
    after_write: int
    """After a write."""


class Interface(TypedDict):
    """The way between buffer and host."""

    kind: str
    """The kind of interface."""
    read_ns_per_byte: float
    """Time of one byte to the host; 0 for an interface that is never the bottleneck."""
    write_ns_per_byte: float
    """Time of one byte to the drive."""
    host_tags: int
    """Maximum number of commands that the host keeps in the drive (tags of its driver or adapter)."""
    host_elevator: str
    """Order in which the host issues commands above that limit."""
    host: NotRequired[Adapter]
    """Time of driver and host adapter for a standalone drive; zero if absent."""
    disconnect: Disconnect | None
    """Costs of releasing and reacquiring the bus within a command; ``None`` if the drive stays connected."""


class Disconnect(TypedDict):
    """Disconnection costs of a parallel bus."""

    read_ns: AfterReadWrite
    """Releasing the bus after a read command that follows a read / a write."""
    write_ns: int
    """Releasing the bus after a write's data."""
    first_reselect_ns: int
    """First reacquisition of the bus in a command."""
    other_reselect_ns: int
    """Later reacquisitions of the bus."""
    extra: ExtraDisconnect | None
    """A second disconnection within a write, if the drive does one."""


class ExtraDisconnect(TypedDict):
    """A write that disconnects once more, between command and data (HP C2247A)."""

    command_ns: int
    """Command overhead in place of the usual one."""
    disconnect_ns: int
    """First disconnection."""
    between_ns: int
    """Time off the bus."""
    second_disconnect_ns: int
    """Second disconnection."""
    seek_delta_ns: int
    """Added to the seek of such a write."""


class SlowProcesses(TypedDict):
    """Slow processes, each explicit. They cause the tail above p99 that geometry cannot explain."""

    retries: Retries | None
    """Retries of media accesses."""
    recalibration: Recalibration | None
    """Thermal recalibration."""
    scan: BackgroundScan | None
    """Background media scan."""
    write_verify: bool
    """Whether each write to the media is read back a revolution later before it completes (ATA's write-read-verify;
    SCSI drives do so until their first surface scan is complete)."""


class Retries(TypedDict):
    """A media access fails with a probability and is repeated a revolution later."""

    probability: float
    """Probability that a pass over a track fails."""
    passes_max: int
    """Number of passes after which the drive gives up and corrects from its ECC."""


class Recalibration(TypedDict):
    """The arm is occupied for a while, at fixed intervals, as soon as it is free."""

    interval_ns: int
    """Time between two starts."""
    duration_ns: int
    """Its duration."""


class BackgroundScan(TypedDict):
    """The drive scans its own surface when idle."""

    idle_ns: int
    """Idle time before it starts."""
    step_sectors: int
    """Sectors of one step; a step is never interrupted."""


class Power(TypedDict):
    """Power and cooling of a disk drive."""

    electronics_w: float
    """Power of the electronics while the drive turns."""
    spindle_w: float
    """Power that keeps the spindle turning."""
    seek_w: float
    """Additional power while the arm moves."""
    transfer_w: float
    """Additional power while data pass the heads."""
    standby_w: float
    """Total power with the spindle at rest."""
    spin_down: SpinChange
    """Total energy while the spindle stops."""
    spin_up: SpinChange
    """Total energy while the spindle starts."""
    idle_timeout_ns: int | None
    """Idle time after which the spindle stops; the next command waits until it turns again. ``None`` for never."""
    ambient_celsius: float
    """Air temperature at the drive."""
    airflow_k_per_w: float
    """Temperature rise of the case over the air, in K per watt."""


class SpinChange(TypedDict):
    """The spindle stops or starts."""

    joules: float
    """Energy of the whole drive during the change."""
    ns: int
    """Its duration."""
