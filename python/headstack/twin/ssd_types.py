"""Types of the description of an SSD, as the simulator takes it."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from headstack.prediction.workload_types import Addresses
from headstack.twin.disk_types import Adapter


class Ssd(TypedDict):
    """One solid-state drive (SSD)."""

    name: str
    """Product name, for people."""
    medium: NotRequired[Literal["flash", "xpoint"]]
    """Memory that holds the data; flash if missing. 3D XPoint is overwritten in place."""
    capacity: Capacity
    """Its capacity and the unit of its map."""
    flash: Flash
    """The geometry of the flash."""
    timing: Timing
    """The times of the flash."""
    slc_cache: NotRequired[SlcCache]
    """Cells that first take writes with one bit each; ``None`` if there are none."""
    buffer: WriteBuffer
    """The buffer of writes until they are programmed."""
    collection: Collection
    """Thresholds of garbage collection."""
    controller: Controller
    """Fixed costs of a command."""
    interface: Interface
    """The link to the host."""
    state: Literal["fresh", "filled", "steady"] | SkewedState
    """Contents of the flash at the start: none, written once in order, or randomly overwritten until stable."""
    power: NotRequired[SsdPower]
    """Power and cooling; absent if unknown."""


class Capacity(TypedDict):
    """The exported capacity."""

    logical_bytes: int
    """Exported bytes; the rest of the flash is over-provisioning."""
    logical_block_bytes: int
    """Bytes of a logical block: 512 or 4096."""
    mapping_unit_bytes: int
    """Bytes per entry of the map: a power of two that divides a row (a page of each plane). 4 KiB is usual; large
    drives use 16 KiB and more to save memory; a write of a part of a unit reads the rest of it."""


class Flash(TypedDict):
    """Channels, dies, planes, blocks, pages."""

    channels: int
    """Buses between controller and flash."""
    dies_per_channel: int
    """Dies per channel."""
    planes_per_die: int
    """Planes of a die, which read, program and erase together."""
    blocks_per_plane: int
    """Blocks of a plane."""
    pages_per_block: int
    """Pages of a block."""
    pages_per_program: NotRequired[int]
    """Pages of a plane that are programmed at once; 1 if missing."""
    page_bytes: int
    """Data bytes of a page."""


class Timing(TypedDict):
    """Times of the flash."""

    read_ns: int
    """Time from the array into the page registers (tR)."""
    program_ns: int
    """Time from the page registers into the array (tPROG), all planes at once."""
    erase_ns: int
    """Time to erase one block of each plane (tBERS)."""
    channel_ns_per_byte: float
    """Time of one byte on a channel, in either direction."""
    suspend_ns: int | None
    """Time until a read that suspends a program or an erase is served; ``None`` if reads wait for their end."""
    suspend_spread_ns: int
    """Mean of the exponentially distributed part of a suspension, in addition to ``suspend_ns``."""
    writes_urgent_when_full: NotRequired[bool]
    """Whether reads wait for programs and erases while writes wait for buffer space, instead of suspending them."""
    resume_ns: int
    """Additional cost of resuming it."""
    suspensions_max: int
    """Maximum number of suspensions of a program or an erase."""
    reads_ahead_max: int
    """Maximum number of reads that a die serves while a program, an erase or a move waits for them, so that a
    continuous stream of reads does not starve writes."""


class SlcCache(TypedDict):
    """Blocks that hold one bit per cell until they are folded: their contents are moved to others, and they are
    erased."""

    static_bytes: int
    """Host data for which blocks are set aside. When they are full, writes bypass them."""
    dynamic_bytes: int
    """Host data that free blocks hold in addition, as long as there are any: it shrinks as the drive fills, and is
    folded during host writes once they are used up."""
    bits_per_cell: int
    """Bits of the other cells: a block of the cache holds one over this of its normal capacity."""
    read_ns: int
    """Time from the array into the page registers."""
    program_ns: int
    """Time from the page registers into the array, all planes at once."""
    idle_ns: int | None
    """Idle time of the host after which it is folded; ``None`` if that waits until the space is needed."""


class WriteBuffer(TypedDict):
    """The write buffer in the controller's memory, in which writes complete."""

    bytes: int
    """Size; at least two rows (a row is a page of each plane of a die, what is programmed at once)."""
    power_loss_protected: bool
    """Whether capacitors protect it: a flush then has nothing to do. Otherwise a flush, and a write with forced unit
    access, waits until everything accepted so far is programmed."""
    flush_ns: NotRequired[int]
    """Time of a flush of a protected buffer; 0 for a drive that reports no volatile write cache."""
    map_update_ns: NotRequired[int]
    """Time to program the changed part of the map, after one of every ``flushes_per_map_update`` flushes."""
    flushes_per_map_update: NotRequired[int]
    """Number of flushes for each program of the map."""
    write_through: NotRequired[bool]
    """Whether the write cache is off: every write then waits like one with forced unit access. No effect if capacitors
    protect the buffer."""


class Collection(TypedDict):
    """Garbage collection: greedy, separately for each die."""

    free_blocks_min: int
    """A die with fewer free blocks (of each plane) than this collects; at least 2. The last one is kept for collection,
    so writes that would need it wait."""


class Controller(TypedDict):
    """Costs of a command in the controller, and its limits."""

    command_ns: int
    """Time from the arrival of a command to its first action; of a write, ``write_command_ns``."""
    command_interval_ns: int
    """Minimum time between the starts of two commands: its inverse is the maximum command rate; after a write,
    ``write_interval_ns``."""
    write_command_ns: int
    """Like ``command_ns``, for a write."""
    write_interval_ns: int
    """Like ``command_interval_ns``, after a write."""
    read_ns_per_byte: float
    """Time of one byte through the controller to the host; 0 if it is never the bottleneck."""
    write_ns_per_byte: float
    """Time of one byte through the controller to the flash."""
    map_cache_bytes: NotRequired[int]
    """Memory for the map of a drive that cannot hold all of it, such as a host memory buffer: missing entries are read
    from the flash first. Absent if the whole map is in memory."""


class Interface(TypedDict):
    """The link between controller and host."""

    read_ns_per_byte: float
    """Time of one byte to the host; 0 for an interface that is never the bottleneck."""
    write_ns_per_byte: float
    """Time of one byte to the drive."""
    full_duplex: bool
    """Whether both directions work at once (PCI Express, SAS), not in turn (SATA)."""
    queue_depth: int
    """Number of commands that the drive processes at once; further ones wait in their order of arrival."""
    host: NotRequired[Adapter]
    """Time of driver and host adapter for a standalone drive; zero if absent."""


class SsdPower(TypedDict):
    """Power and cooling of a solid-state drive."""

    idle_w: float
    """Power without work."""
    active_w: float
    """Power with every die busy; proportional with fewer."""
    ambient_celsius: float
    """Air temperature at the drive."""
    airflow_k_per_w: float
    """Temperature rise of the case over the air, in K per watt."""


class SkewedState(TypedDict):
    """State of flash that was overwritten with a skew."""

    skewed: SkewedWrites
    """The overwrites."""


class SkewedWrites(TypedDict):
    """Random overwrites that use some blocks more than others."""

    addresses: Addresses
    """The distribution: ``zipf``, ``pareto`` or ``hot_bands``."""
    blocks: NotRequired[Places]
    """The blocks that the writes use; absent if they are the mapping units."""


class Places(TypedDict):
    """Equally spaced positions."""

    first_bytes: int
    """Offset of the first position."""
    step_bytes: int
    """Distance of two positions."""
    count: int
    """Number of positions."""
