//! [`SsdDescription`]: an SSD, fully resolved. Times are nanoseconds.

use serde::{Deserialize, Serialize};

use super::adapter::AdapterDescription;
use super::drive::WriteCache;
pub use super::power::SsdPower;

/// One SSD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdDescription {
    /// Product name, for people.
    pub name: String,
    /// Exported capacity, and the unit of the mapping table.
    pub capacity: Capacity,
    /// Amount of flash.
    pub flash: Flash,
    /// How fast the flash is.
    pub timing: Timing,
    /// Cells that first take writes with one bit each; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCache>,
    /// Buffer of waiting writes.
    pub buffer: WriteBuffer,
    /// When blocks are reclaimed.
    pub collection: Collection,
    /// Fixed costs of a command.
    pub controller: Controller,
    /// The way to the host.
    pub interface: Interface,
    /// Whether unwritten data are read as if the drive had been filled once, in order: from the flash. Otherwise the
    /// controller knows that there are none. It takes no memory, and writes still find the flash empty. Trimmed units
    /// count as unwritten.
    pub filled: bool,
    /// It starts in the steady state of random overwrites instead of empty. Making it takes real time: measured, 19 s
    /// for 224 GiB in units of 4 KiB with 14 % of spare, and 50 s for 1 TB in units of 16 KiB with 10 %.
    pub preconditioned: bool,
    /// Power and cooling; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<SsdPower>,
}

/// Exported capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Exported bytes; the flash beyond them is over-provisioning.
    pub logical_bytes: u64,
    /// Bytes of a logical block: 512 or 4096.
    pub logical_block_bytes: u32,
    /// Bytes per entry of the mapping table: a power of two that divides a row (a page of each plane). 4 KiB is usual,
    /// 16 KiB and more occurs in large drives that save memory; a write of a part of a unit reads the rest of it.
    pub mapping_unit_bytes: u32,
}

/// Channels, dies, planes, blocks, pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Buses between controller and flash.
    pub channels: u32,
    /// Dies on each of them.
    pub dies_per_channel: u32,
    /// Planes of a die, which read, program and erase together.
    pub planes_per_die: u32,
    /// Blocks of a plane.
    pub blocks_per_plane: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Data bytes of a page.
    pub page_bytes: u32,
}

/// Times of flash operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// From the array into the page registers (tR).
    pub read_ns: u64,
    /// From the page registers into the array (tPROG), all planes at once.
    pub program_ns: u64,
    /// One block of each plane (tBERS).
    pub erase_ns: u64,
    /// Time of one byte on a channel, either way.
    pub channel_ns_per_byte: f64,
    /// Time after which a read that interrupts a program or an erase is served; absent if it waits for their end.
    pub suspend_ns: Option<u64>,
    /// Cost of resuming, in addition to the rest.
    #[serde(default)]
    pub resume_ns: u64,
    /// How often a program or an erase is interrupted at most.
    #[serde(default = "unlimited")]
    pub suspensions_max: u32,
    /// Largest number of reads that a die serves while a program, an erase or a move waits. It keeps an endless stream
    /// of reads from starving the writes.
    pub reads_ahead_max: u32,
}

fn unlimited() -> u32 {
    u32::MAX
}

/// Blocks that hold one bit per cell until they are folded: their data are moved to others, and they are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcCache {
    /// Data of the host's for which blocks are set aside. Once they are full, writes go past them.
    pub static_bytes: u64,
    /// Host data that free blocks take beyond that, as long as there are any: it shrinks as the drive fills, and is
    /// folded while the host writes once they are used up.
    pub dynamic_bytes: u64,
    /// Bits of the other cells: a block of the cache holds that fraction of its normal capacity.
    pub bits_per_cell: u32,
    /// From the array into the page registers.
    pub read_ns: u64,
    /// From the page registers into the array, all planes at once.
    pub program_ns: u64,
    /// Idle time of the host after which it is folded. Absent if that waits until the space is needed.
    pub idle_ns: Option<u64>,
}

/// The write buffer, in the controller's memory. A write completes when it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBuffer {
    /// Size; at least two rows (a row is a page of each plane of a die, which are programmed at once).
    pub bytes: u64,
    /// Capacitors save it: a flush has nothing to do. Otherwise a flush, and a write with forced unit access, waits until
    /// everything accepted so far is programmed.
    pub power_loss_protected: bool,
    /// Whether the write cache is off: every write then waits like one with forced unit access. No effect if capacitors
    /// protect the buffer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub write_through: bool,
}

impl WriteBuffer {
    /// Switches the write cache.
    ///
    /// # Errors
    /// A kind that only disks have.
    pub fn set_write_cache(&mut self, kind: WriteCache) -> Result<(), &'static str> {
        self.write_through = match kind {
            WriteCache::On => false,
            WriteCache::Off => true,
            WriteCache::Appending | WriteCache::Protected => {
                return Err("only disks have this kind; on and off are allowed for SSDs");
            }
        };
        Ok(())
    }
}

/// Garbage collection: greedy, each die its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// A die with fewer free blocks than this (of each plane) collects; 2 or more. The last one is kept for collection,
    /// so writes wait when they would need it.
    pub free_blocks_min: u32,
}

/// Costs and throughput of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// From the arrival of a command to its first action; of a write, [`Self::write_command_ns`].
    pub command_ns: u64,
    /// Between the starts of two commands: its inverse is the most commands a second; after a write,
    /// [`Self::write_interval_ns`].
    pub command_interval_ns: u64,
    /// Like [`Self::command_ns`], for a write.
    #[serde(default)]
    pub write_command_ns: u64,
    /// Like [`Self::command_interval_ns`], after a write.
    #[serde(default)]
    pub write_interval_ns: u64,
    /// Time per byte of the controller towards the host; 0 if it is never the limit.
    #[serde(default)]
    pub read_ns_per_byte: f64,
    /// Time of one byte through the controller towards the flash.
    #[serde(default)]
    pub write_ns_per_byte: f64,
    /// Memory for the mapping table of a drive that cannot hold all of it, such as host memory: missing parts are read
    /// from the flash first. Absent if the whole table is in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_cache_bytes: Option<u64>,
}

/// The way between controller and host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Time of one byte towards the host; 0 for an interface that is never the limit.
    pub read_ns_per_byte: f64,
    /// Time of one byte towards the drive.
    pub write_ns_per_byte: f64,
    /// Both directions at once (PCI Express, SAS) or in turn (SATA).
    pub full_duplex: bool,
    /// Commands that the drive works on at once; further ones wait in their order of arrival.
    pub queue_depth: u32,
    /// Host adapter of a single drive; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<AdapterDescription>,
}

impl SsdDescription {
    /// Bytes of flash.
    pub fn raw_bytes(&self) -> u64 {
        let flash = &self.flash;
        u64::from(self.dies())
            .saturating_mul(u64::from(flash.blocks_per_plane))
            .saturating_mul(u64::from(flash.pages_per_block))
            .saturating_mul(u64::from(self.row_bytes()))
    }

    /// Flash beyond the exported bytes, as a share of those.
    pub fn over_provisioning(&self) -> f64 {
        self.raw_bytes() as f64 / self.capacity.logical_bytes as f64 - 1.0
    }

    /// Dies on all channels.
    pub fn dies(&self) -> u32 {
        self.flash.channels * self.flash.dies_per_channel
    }

    /// Bytes that a die programs at once: a page of each plane.
    pub fn row_bytes(&self) -> u32 {
        self.flash.planes_per_die * self.flash.page_bytes
    }
}
