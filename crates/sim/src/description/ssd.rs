//! [`SsdDescription`]: the full description of an SSD. Times are in nanoseconds. See docs/design/solid-state.md.

use headstack_workload::{Addresses, Places};
use serde::{Deserialize, Serialize};

use super::adapter::AdapterDescription;
use super::drive::WriteCache;
pub use super::power::SsdPower;

/// A solid-state drive (SSD).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdDescription {
    /// Product name, for display.
    pub name: String,
    /// Memory that holds the data. Fields named after flash describe it too: a die, a row that it reads at once.
    #[serde(default, skip_serializing_if = "Medium::is_flash")]
    pub medium: Medium,
    /// Exported capacity and mapping unit.
    pub capacity: Capacity,
    /// Geometry of the flash.
    pub flash: Flash,
    /// Timing of the flash.
    pub timing: Timing,
    /// SLC cache, which first stores writes with one bit per cell; `None` if the drive has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCache>,
    /// Buffer that holds writes until they are programmed.
    pub buffer: WriteBuffer,
    /// When garbage collection reclaims blocks.
    pub collection: Collection,
    /// Fixed overheads of a command.
    pub controller: Controller,
    /// Connection to the host.
    pub interface: Interface,
    /// Contents of the flash when a run begins.
    pub state: FlashState,
    /// Power and cooling; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<SsdPower>,
}

/// Memory of an SSD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// NAND flash: a page is programmed once, and a block of pages is erased before it can be programmed again.
    #[default]
    Flash,
    /// 3D XPoint: data are overwritten in place and nothing is erased, so there is no garbage collection, no spare flash
    /// for it, no SLC cache and no difference between a fresh, a filled and a worn-in drive.
    #[serde(rename = "xpoint")]
    XPoint,
}

impl Medium {
    /// Whether it is flash.
    pub fn is_flash(&self) -> bool {
        match self {
            Medium::Flash => true,
            Medium::XPoint => false,
        }
    }
}

/// Contents of an SSD's flash when a run begins. No state is reached by writing: places are computed or drawn when they
/// are first needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlashState {
    /// Nothing is written: writes find erased flash, and reads of unwritten units need none.
    Fresh,
    /// Every unit was written once, in order: writes find only the spare flash erased.
    #[default]
    Filled,
    /// Random overwrites of the whole drive continued until the write amplification was stable.
    Steady,
    /// Skewed overwrites continued until the write amplification was stable. Only for a drive alone.
    Skewed(SkewedWrites),
}

impl FlashState {
    /// Every state without parameters.
    pub const ALL: [FlashState; 3] = [FlashState::Fresh, FlashState::Filled, FlashState::Steady];
}

/// Random overwrites that use some blocks more than others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkewedWrites {
    /// Distribution of the addresses: `zipf`, `pareto` or `hot_bands`.
    pub addresses: Addresses,
    /// Blocks that the writes use; `None` if they are the drive's mapping units. Under the same blocks and seed, a
    /// workload with these addresses uses the same blocks most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Places>,
}

/// Exported capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Exported bytes; additional flash is over-provisioning.
    pub logical_bytes: u64,
    /// Logical block size in bytes: 512 or 4096.
    pub logical_block_bytes: u32,
    /// Bytes covered by one entry of the map: a power of two that divides a row (a page of each plane). 4 KiB is usual;
    /// large drives use 16 KiB and more to save memory. A write of part of a unit reads the rest of the unit.
    pub mapping_unit_bytes: u32,
}

/// Geometry of the flash: channels, dies, planes, blocks, pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Number of buses between controller and flash.
    pub channels: u32,
    /// Number of dies on each channel.
    pub dies_per_channel: u32,
    /// Number of planes of a die, which read, program and erase together.
    pub planes_per_die: u32,
    /// Number of blocks of a plane.
    pub blocks_per_plane: u32,
    /// Number of pages of a block.
    pub pages_per_block: u32,
    /// Data bytes of a page.
    pub page_bytes: u32,
    /// Number of pages of a plane that are programmed at once: 3 if all bits of three-bit cells are. A block in the SLC
    /// cache is programmed page by page, and so are pages that a flush does not let wait for more.
    #[serde(default = "single")]
    pub pages_per_program: u32,
}

/// Timing of the flash, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Time to read a page into the page registers (tR).
    pub read_ns: u64,
    /// Time to program a page of each plane (tPROG), all planes at once: the time of a program divided by its
    /// [`Flash::pages_per_program`].
    pub program_ns: u64,
    /// Time to erase a block of each plane (tBERS).
    pub erase_ns: u64,
    /// Transfer time per byte on a channel, in either direction.
    pub channel_ns_per_byte: f64,
    /// Time to suspend a program or an erase for a read; `None` if reads wait for its end.
    pub suspend_ns: Option<u64>,
    /// Mean of the random, exponentially distributed part of a suspension, in addition to [`Self::suspend_ns`]: a die
    /// stops only at certain points of a program, after the short operations that it began before. Measured 50 to 75 us
    /// on four data-center drives, about the time of a read.
    #[serde(default)]
    pub suspend_spread_ns: u64,
    /// Whether reads wait for programs and erases while writes wait for buffer space, instead of suspending them.
    #[serde(default)]
    pub writes_urgent_when_full: bool,
    /// Overhead of resuming a program or an erase, in addition to its remaining time.
    #[serde(default)]
    pub resume_ns: u64,
    /// Maximum number of suspensions of a program or an erase.
    #[serde(default = "unlimited")]
    pub suspensions_max: u32,
    /// Maximum number of reads that a die serves while a program, an erase or a move waits. This keeps an endless
    /// stream of reads from starving writes.
    pub reads_ahead_max: u32,
}

fn unlimited() -> u32 {
    u32::MAX
}

fn single() -> u32 {
    1
}

/// SLC cache: blocks with one bit per cell, which are later folded: their data are moved to other blocks, and they are
/// erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcCache {
    /// Host data for which blocks are reserved, in bytes. When these blocks are full, writes bypass them.
    pub static_bytes: u64,
    /// Additional host data that free blocks may hold, in bytes. This part shrinks as the drive fills; when it is used
    /// up, the cache is folded while the host writes.
    pub dynamic_bytes: u64,
    /// Bits per cell of the other blocks: a block in the cache holds 1 / `bits_per_cell` of its usual data.
    pub bits_per_cell: u32,
    /// Time to read a page into the page registers.
    pub read_ns: u64,
    /// Time to program the page registers, all planes at once.
    pub program_ns: u64,
    /// Idle time of the host before the cache is folded; `None` if the cache is folded only when it is full.
    pub idle_ns: Option<u64>,
}

/// The write buffer in the controller's memory. A write completes when its data are in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBuffer {
    /// Size in bytes: at least two rows (a row is a page of each plane of a die), and for each die the rows that wait for
    /// the last one of their program.
    pub bytes: u64,
    /// Whether capacitors protect the buffer, so that a flush has nothing to program. Otherwise a flush, and a write with
    /// forced unit access, waits until everything accepted so far is programmed.
    pub power_loss_protected: bool,
    /// Time of a flush of a protected buffer: 0 for a drive that reports no volatile write cache.
    #[serde(default)]
    pub flush_ns: u64,
    /// Time to program the changed part of the map, which delays one of every [`Self::flushes_per_map_update`] flushes
    /// of an unprotected buffer; 0 if the map needs no program.
    #[serde(default)]
    pub map_update_ns: u64,
    /// Number of flushes for each program of the map; 1 or more.
    #[serde(default = "single")]
    pub flushes_per_map_update: u32,
    /// Whether the write cache is off: every write waits like a write with forced unit access. Has no effect if
    /// capacitors protect the buffer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub write_through: bool,
}

impl WriteBuffer {
    /// Sets the write cache.
    ///
    /// # Errors
    /// If only disks support this kind.
    pub fn set_write_cache(&mut self, kind: WriteCache) -> Result<(), &'static str> {
        self.write_through = match kind {
            WriteCache::On => false,
            WriteCache::Off => true,
            WriteCache::Appending | WriteCache::Protected => {
                return Err("only disks have this value; use on or off for an SSD");
            }
        };
        Ok(())
    }
}

/// Garbage collection: greedy, within each die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// Number of free blocks of each plane below which a die collects; 2 or more. The last free block is reserved for
    /// collection, so writes that would need it wait.
    pub free_blocks_min: u32,
}

/// Overheads and bandwidth of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Time from the arrival of a command to its first action; see [`Self::write_command_ns`] for writes.
    pub command_ns: u64,
    /// Time between the starts of two commands, whose inverse is the maximum IOPS; see [`Self::write_interval_ns`] for
    /// the time after a write.
    pub command_interval_ns: u64,
    /// Like [`Self::command_ns`], for writes.
    #[serde(default)]
    pub write_command_ns: u64,
    /// Like [`Self::command_interval_ns`], after writes.
    #[serde(default)]
    pub write_interval_ns: u64,
    /// Time per byte through the controller to the host; 0 if this is never the bottleneck.
    #[serde(default)]
    pub read_ns_per_byte: f64,
    /// Time per byte through the controller to the flash.
    #[serde(default)]
    pub write_ns_per_byte: f64,
    /// Memory for the map in a drive that cannot hold all of it, such as a host memory buffer, in bytes; missing
    /// entries are read from the flash first. `None` if the whole map is in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_cache_bytes: Option<u64>,
}

/// The interface between controller and host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Transfer time per byte to the host; 0 for an interface that is never the bottleneck.
    pub read_ns_per_byte: f64,
    /// Transfer time per byte to the drive.
    pub write_ns_per_byte: f64,
    /// Whether both directions can transfer at once (PCI Express, SAS) or only in turn (SATA).
    pub full_duplex: bool,
    /// Maximum number of commands in progress; further commands wait in order of arrival.
    pub queue_depth: u32,
    /// Host adapter and driver if the drive is a complete system; `None` adds no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<AdapterDescription>,
}

impl SsdDescription {
    /// Returns the raw capacity of the flash, in bytes.
    pub fn raw_bytes(&self) -> u64 {
        let flash = &self.flash;
        u64::from(self.dies())
            .saturating_mul(u64::from(flash.blocks_per_plane))
            .saturating_mul(u64::from(flash.pages_per_block))
            .saturating_mul(u64::from(self.row_bytes()))
    }

    /// Returns the flash in excess of the exported capacity, as a fraction of the exported capacity.
    pub fn over_provisioning(&self) -> f64 {
        self.raw_bytes() as f64 / self.capacity.logical_bytes as f64 - 1.0
    }

    /// Returns the total number of dies.
    pub fn dies(&self) -> u32 {
        self.flash.channels * self.flash.dies_per_channel
    }

    /// Returns the number of bytes that a die senses at once: a page of each plane.
    pub fn row_bytes(&self) -> u32 {
        self.flash.planes_per_die * self.flash.page_bytes
    }
}
