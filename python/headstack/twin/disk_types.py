"""The description of a disk drive, as the simulator takes it."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Coalescing(TypedDict):
    """Interrupts that report several completions."""

    interval_ns: int
    """Between two interrupts."""
    completions_max: int
    """The most completions of one interrupt."""
    from_outstanding: int
    """The queue depth from which on every completion waits."""
    one_in: int
    """At lower depths one completion in so many waits."""


class Adapter(TypedDict):
    """A host adapter with the host that it is in, fully resolved."""

    tags: int
    """Commands that it keeps in a drive at most; the drive's own limits hold as well."""
    read_interval_ns: int
    """Between the starts of two reads (flushes and trims count as such): its inverse is the most reads a second."""
    write_interval_ns: int
    """The same of writes."""
    ns_per_byte: float
    """Added to the interval for each byte; 0 where the drive's own interface is the slower one."""
    latency_ns: int
    """From the application to the adapter and back again: system call, driver, interrupt. It occupies nobody."""
    wake_ns: int
    """Added to it when nothing else is outstanding: the processor has gone to sleep."""
    coalescing: Coalescing | None
    """Interrupt coalescing; each completion has its own interrupt where it is ``None``."""


class FlashCache(TypedDict):
    """A read cache of NAND flash within the drive (Seagate's TurboBoost).  It takes in blocks that random reads ask
    for again. The disk's copy stays, so that a write has only to drop the copy in flash, and the data of a fill are
    those that the read has brought anyway: filling needs no arm."""

    size_bytes: int
    """Its size in bytes."""
    block_bytes: int
    """The unit of admission and eviction; a smaller read brings the rest of its block in the same pass."""
    latency_ns: int
    """From the firmware's decision to the first byte; reads overlap in it."""
    ns_per_byte: float
    """Time of one byte out of the flash, or into it."""
    fill_bytes_per_s: float
    """Bytes that are taken in a second at most, to spare the flash."""
    history_blocks: int
    """Blocks whose last read is remembered."""
    on_first_read: NotRequired[bool]
    """A block is taken in when it is read for the first time, not for the second."""
    keeps_written: NotRequired[bool]
    """A write brings the copy up to date; otherwise it ends it."""
    sequential_bytes: int
    """A run of reads that has gone on for so long is sequential, and is not taken in."""


class MediaCache(TypedDict):
    """A part of the media at the outer rim that takes writes in order of their arrival, one behind the other, until
    they are moved home (Seagate's Advanced Write Cache; the persistent cache of drive-managed shingled drives)."""

    size_bytes: int
    """Its size in bytes, on top of the drive's own capacity."""
    extents_max: int
    """Extents whose place the drive can remember."""
    dram_bytes: int
    """Writes that may be complete while they are in the buffer alone; 0 where a write is complete once it is on the
    media."""
    dram_is_protected: bool
    """This part of the buffer survives a power failure: it is used whether or not the volatile write cache is on,
    and a flush does not wait for it."""
    sequential_bytes: int
    """A run of writes that has gone on for so long is sequential and goes home directly."""
    idle_ns: int
    """The host must have left the drive alone for so long before the cache is cleaned."""
    busy_share: float
    """Beyond this share of its size or of its extents the cache is cleaned while the host waits."""
    sweep_bytes: int
    """Bytes of the cache that are moved home in one sweep over the drive; a shingled drive sweeps over a band
    instead."""
    sweep_window: int
    """Accesses of a sweep that are queued at once, in ascending order; 2 keep that order, more let the queue
    choose."""


class Shingles(TypedDict):
    """Tracks that overlap: only whole bands can be written home (drive-managed shingled recording). Needs a media
    cache."""

    band_bytes: int
    """Bytes that must be written in one piece."""


class Disk(TypedDict):
    """One disk drive."""

    name: str
    """Product name, for people."""
    geometry: Geometry
    """The place of each sector."""
    mechanics: Mechanics
    """Movements of the arm and the spindle."""
    queue: Queue
    """Which command is served next."""
    buffer: Buffer
    """Segments, read-ahead, write cache."""
    overheads: Overheads
    """Fixed costs of a command."""
    interface: Interface
    """The way to the host."""
    slow: SlowProcesses
    """Slow processes that make the far tail; all off by default."""
    flash_cache: NotRequired[FlashCache]
    """Flash that serves reads."""
    media_cache: NotRequired[MediaCache]
    """Media that take random writes in order."""
    shingles: NotRequired[Shingles]
    """Overlapping tracks."""
    power: NotRequired[Power]
    """Power and cooling; left out where they are unknown."""
    actuators: NotRequired[int]
    """Arms that move on their own, each with its share of the heads and of the blocks, in order; all behind one port
    and one queue."""


class Geometry(TypedDict):
    """Surfaces, zones and the order of logical blocks over them."""

    logical_block_bytes: int
    """Bytes of a logical block: 512, or 4096 for 4Kn."""
    physical_sector_bytes: int
    """Bytes of a physical sector: 512, or 4096 for 512e and 4Kn."""
    logical_blocks: int
    """Logical blocks that the drive exports; at most what the zones hold."""
    heads: int
    """Recording surfaces."""
    cylinders: int
    """Cylinders, spare and unused ones included."""
    order: str | dict[str, dict[str, int]]
    """Order of logical blocks over heads and cylinders."""
    sparing: str | dict[str, dict[str, int]]
    """The place of spare sectors."""
    zones: list[Zone]
    """Zones from the outer rim inwards, ascending and without overlap."""


class Zone(TypedDict):
    """Cylinders with the same number of sectors a track."""

    first_cylinder: int
    """First cylinder."""
    last_cylinder: int
    """Last cylinder, inclusive."""
    sectors_per_track: int
    """Physical sectors of a track, spares included."""
    offset_turns: float
    """Angle of the zone's first sector, in turns."""
    track_skew_turns: float
    """Skew added at each change of head, in turns."""
    cylinder_skew_turns: float
    """Skew added at each change of cylinder, in turns."""
    reserved_sectors: int
    """Sectors at the zone's front that hold no logical block."""
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
    """Seek time for reads over the distance in cylinders, read settle included."""
    read_settle_ns: int
    """Added to a read whenever the arm or the head moved (0 where the curve holds it already)."""
    write_settle_ns: int
    """Added to a write whenever the arm or the head moved; may be negative (DEC RZ26)."""
    head_switch_ns: int
    """Time to change to another surface."""
    read_on_arrival: bool
    """Reads start with the first wanted sector that passes, not with the first of the request (zero latency)."""
    write_on_arrival: bool
    """Writes start with the first wanted sector that passes."""


class Queue(TypedDict):
    """The drive's command queue."""

    depth: int
    """Commands the drive holds at once: 1 without queueing, TCQ 2 to 256, NCQ 32."""
    policy: str
    """Which queued command is served next."""
    ageing_ns: int | None
    """A command older than this is served before any younger one."""
    reordering_strength: float
    """Share of the open commands that the policy chooses from, 0 to 1: of ``n`` commands the oldest ``1 + strength * (n
    - 1)``, on average where that is not whole. 0 is FCFS, 1 the ideal policy."""
    committed: float
    """Commands behind the one in service to which the firmware has committed itself: they stay in their order, and
    the policy chooses among the rest for where the arm will be then. On average where it is not whole; 0 is a choice
    at each completion among all that wait."""
    rotation_margin_ns: int
    """The firmware counts a turn more for a sector that would come past within this time of the end of the seek: its
    estimate of the seek is no better than that."""
    age_weight: float
    """Time of positioning that a unit of waiting makes up for in the choice."""


class Buffer(TypedDict):
    """The buffer: read segments with read-ahead and a write cache."""

    segments: int
    """Segments; 0 for no caching at all."""
    segment_sectors: int
    """Physical sectors of a segment."""
    read_ahead: str
    """Read-ahead: the end of reads that continue after the request."""
    read_ahead_max_sectors: int
    """Most sectors read ahead of the request's end."""
    read_ahead_min_sectors: int
    """Sectors read ahead before another command is served."""
    read_ahead_on_hit: bool
    """Read-ahead goes on after a command that was served from the buffer."""
    keep_passing_sectors: bool
    """Sectors that pass before the first wanted one are kept (needs ``read_on_arrival``)."""
    read_hits_on_arriving: bool
    """A read whose first sector is the very one that read-ahead reads now joins it (DiskSim's "almost read hit")."""
    read_hits_on_writes: bool
    """Reads of data that a write left in the buffer are hits."""
    write_cache: str
    """When a write is complete for the host."""
    dirty_extents_max: int
    """Extents that may be dirty at once. Few in SCSI drives of the 1990s (1 to 3), hundreds in later ones."""
    dirty_sectors_max: int
    """Physical sectors that may be dirty at once."""
    separate_write_segment: bool
    """Writes have a segment of their own, apart from those of reads."""
    read_watermark: float
    """Share of a read (0 to 1) that must be in the buffer before it goes to the host."""
    write_watermark: float
    """Share of a write (0 to 1) that must be in the buffer before the media are written; the rest comes while they
    turn, never later than it is needed."""


class Overheads(TypedDict):
    """Fixed costs of a command, each chosen by what the command before it was."""

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
    """A write's arm movement ends no sooner than this after its command was decoded."""
    read_settled_min_ns: AfterReadWrite
    """No read reaches its track sooner than this after the command. It matters where the arm need not move: a seek
    curve that was measured through the interface hides the firmware's time in its seeks, so that the read overheads
    extracted beside it are too short for an access without one."""


class AfterReadWrite(TypedDict):
    """A cost that depends on the kind of the previous command."""

    after_read: int
    """After a read."""
    after_write: int
    """After a write."""


class Interface(TypedDict):
    """The way between buffer and host."""

    kind: str
    """Which one."""
    read_ns_per_byte: float
    """Time of one byte towards the host; 0 for an interface that is never the limit."""
    write_ns_per_byte: float
    """Time of one byte towards the drive."""
    host_tags: int
    """Commands the host keeps in the drive at most (its driver's or adapter's tags)."""
    host_elevator: str
    """Order in which the host hands over what exceeds them."""
    host: NotRequired[Adapter]
    """Time of driver and host adapter, where the drive stands alone; none where it is left out."""
    disconnect: Disconnect | None
    """The costs of leaving and taking the bus again within a command; ``None`` where the drive stays connected."""


class Disconnect(TypedDict):
    """Disconnection costs of a parallel bus."""

    read_ns: AfterReadWrite
    """Leaving the bus after a read command that follows a read / a write."""
    write_ns: int
    """Leaving the bus after a write's data."""
    first_reselect_ns: int
    """Taking the bus again, first time in a command."""
    other_reselect_ns: int
    """Taking the bus again, later times."""
    extra: ExtraDisconnect | None
    """A second disconnection within a write, where the drive does one."""


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
    """Slow processes, each explicit. They make the tail beyond p99 that geometry cannot explain."""

    retries: Retries | None
    """Retries of media accesses."""
    recalibration: Recalibration | None
    """Thermal recalibration."""
    scan: BackgroundScan | None
    """Background media scan."""
    write_verify: bool
    """Each write to the media is read back a turn later before it counts (ATA's write-read-verify; SCSI drives do so
    until their first scan of the surface is over)."""


class Retries(TypedDict):
    """A media access fails with a probability and is repeated a turn later."""

    probability: float
    """Probability that a pass over a track fails."""
    passes_max: int
    """Passes after which the drive gives up and corrects from its ECC."""


class Recalibration(TypedDict):
    """The arm is taken for a while, at fixed intervals, as soon as it is free."""

    interval_ns: int
    """Between two starts."""
    duration_ns: int
    """Its duration."""


class BackgroundScan(TypedDict):
    """The drive reads its own surface when idle."""

    idle_ns: int
    """Idle time before it starts."""
    step_sectors: int
    """Sectors of one step; a step is never interrupted."""


class Power(TypedDict):
    """Power and cooling of a disk drive."""

    electronics_w: float
    """Electronics of a drive that turns."""
    spindle_w: float
    """Keeping the spindle turning."""
    seek_w: float
    """More while the arm moves."""
    transfer_w: float
    """More while data pass the heads."""
    standby_w: float
    """All of it with the spindle at rest."""
    spin_down: SpinChange
    """All of it while the spindle stops."""
    spin_up: SpinChange
    """All of it while the spindle starts."""
    idle_timeout_ns: int | None
    """Time without work after which the spindle stops; the next command waits until it turns again. Never where
    absent."""
    ambient_celsius: float
    """Temperature of the air where the drive sits."""
    airflow_k_per_w: float
    """Temperature rise of the case over the air, in K per watt."""


class SpinChange(TypedDict):
    """The spindle stops or starts."""

    joules: float
    """Energy of the whole drive meanwhile."""
    ns: int
    """Its duration."""
