"""The description of a solid-state drive, as the simulator takes it."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from headstack.twin.disk_types import Adapter


class Ssd(TypedDict):
    """One solid-state drive."""

    name: str
    """Product name, for people."""
    capacity: Capacity
    """Its capacity and the unit of its map."""
    flash: Flash
    """The geometry of the flash."""
    timing: Timing
    """The times of the flash."""
    slc_cache: NotRequired[SlcCache]
    """Cells that take writes with one bit each first; ``None`` where there are none."""
    buffer: WriteBuffer
    """The buffer of writes until they are programmed."""
    collection: Collection
    """When blocks are reclaimed."""
    controller: Controller
    """Fixed costs of a command."""
    interface: Interface
    """The way to the host."""
    filled: bool
    """Unwritten data are read as if the drive had been filled once, in order: from the flash. Otherwise the
    controller knows that there is nothing. It takes no memory, and writes find the flash empty all the same. Trimmed
    units count as unwritten."""
    preconditioned: bool
    """It starts in the steady state of random overwrites instead of empty. Making it takes real time: measured, 19 s
    for 224 GiB in units of 4 KiB with 14 % of spare, and 50 s for 1 TB in units of 16 KiB with 10 %."""
    power: NotRequired[SsdPower]
    """Power and cooling; left out where they are unknown."""


class Capacity(TypedDict):
    """The exported capacity."""

    logical_bytes: int
    """Bytes that the drive exports; what the flash holds beyond them is over-provisioning."""
    logical_block_bytes: int
    """Bytes of a logical block: 512 or 4096."""
    mapping_unit_bytes: int
    """Bytes that one entry of the map stands for: a power of two that divides a row (a page of each plane). 4 KiB is
    usual, 16 KiB and more is met in large drives that save memory; a write of a part of a unit reads the rest of
    it."""


class Flash(TypedDict):
    """Channels, dies, planes, blocks, pages."""

    channels: int
    """Buses between controller and flash."""
    dies_per_channel: int
    """Dies on each of them."""
    planes_per_die: int
    """Planes of a die, which read, program and erase together."""
    blocks_per_plane: int
    """Blocks of a plane."""
    pages_per_block: int
    """Pages of a block."""
    page_bytes: int
    """Data bytes of a page."""


class Timing(TypedDict):
    """Times of the flash."""

    read_ns: int
    """From the array into the page registers (tR)."""
    program_ns: int
    """From the page registers into the array (tPROG), all planes at once."""
    erase_ns: int
    """One block of each plane (tBERS)."""
    channel_ns_per_byte: float
    """Time of one byte on a channel, either way."""
    suspend_ns: int | None
    """A read interrupts a program or an erase and is served after this time; ``None`` where it waits for their end."""
    resume_ns: int
    """Cost of resuming it, in addition to the rest of it."""
    suspensions_max: int
    """The most interruptions of a program or an erase."""
    reads_ahead_max: int
    """Reads that a die serves at most while a program, an erase or a move waits for them. It keeps an endless stream
    of reads from starving the writes."""


class SlcCache(TypedDict):
    """Blocks that hold one bit a cell until they are folded: what they hold is moved to others, and they are
    erased."""

    static_bytes: int
    """Data of the host's for which blocks are set aside. Once they are full, writes go past them."""
    dynamic_bytes: int
    """Data of the host's that free blocks take beyond that, as long as there are any: it shrinks as the drive fills,
    and is folded while the host writes once they are used up."""
    bits_per_cell: int
    """Bits of the other cells: a block of the cache holds that part of what it holds otherwise."""
    read_ns: int
    """From the array into the page registers."""
    program_ns: int
    """From the page registers into the array, all planes at once."""
    idle_ns: int | None
    """The host has asked for nothing so long: then it is folded. Absent where that waits until the room is
    needed."""


class WriteBuffer(TypedDict):
    """The write buffer, in the controller's memory. A write is complete when it is there."""

    bytes: int
    """Size; at least two rows (a row is a page of each plane of a die, what is programmed at once)."""
    power_loss_protected: bool
    """Capacitors save it: a flush has nothing to do. Otherwise a flush, and a write with forced unit access, waits
    until everything accepted so far is programmed."""
    write_through: NotRequired[bool]
    """The write cache is off: every write waits as one with forced unit access does. No effect where capacitors save
    the buffer."""


class Collection(TypedDict):
    """Garbage collection: greedy, each die its own."""

    free_blocks_min: int
    """A die with fewer free blocks than this (of each plane) collects; 2 or more. The last one is kept for
    collection, so writes wait when they would need it."""


class Controller(TypedDict):
    """Costs of a command in the controller, and its limits."""

    command_ns: int
    """From the arrival of a command to its first action; of a write, ``write_command_ns``."""
    command_interval_ns: int
    """Between the starts of two commands: its inverse is the most commands a second; after a write,
    ``write_interval_ns``."""
    write_command_ns: int
    """As ``command_ns``, of a write."""
    write_interval_ns: int
    """As ``command_interval_ns``, after a write."""
    read_ns_per_byte: float
    """Time of one byte through the controller towards the host; 0 where it is never the limit."""
    write_ns_per_byte: float
    """Time of one byte through the controller towards the flash."""
    map_cache_bytes: NotRequired[int]
    """Memory for the map of a drive that cannot hold it all, such as what the host lends it: what is not there is
    read from the flash first. Absent where the whole map is at hand."""


class Interface(TypedDict):
    """The way between controller and host."""

    read_ns_per_byte: float
    """Time of one byte towards the host; 0 for an interface that is never the limit."""
    write_ns_per_byte: float
    """Time of one byte towards the drive."""
    full_duplex: bool
    """Both directions at once (PCI Express, SAS) or in turn (SATA)."""
    queue_depth: int
    """Commands that the drive works on at once; further ones wait in their order of arrival."""
    host: NotRequired[Adapter]
    """Time of driver and host adapter, where the drive stands alone; none where it is left out."""


class SsdPower(TypedDict):
    """Power and cooling of a solid-state drive."""

    idle_w: float
    """Without work."""
    active_w: float
    """With every die busy; in proportion with fewer."""
    ambient_celsius: float
    """Temperature of the air where the drive sits."""
    airflow_k_per_w: float
    """Temperature rise of the case over the air, in K per watt."""
