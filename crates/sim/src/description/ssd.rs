//! [`SsdDescription`]: an SSD, fully resolved. Times are nanoseconds. See docs/design/solid-state.md.

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
    /// Exported capacity, and the unit of the map.
    pub capacity: Capacity,
    /// Amount of flash.
    pub flash: Flash,
    /// Speed of the flash.
    pub timing: Timing,
    /// Cells that first hold one bit each for writes; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCache>,
    /// Buffer of writes until they are programmed.
    pub buffer: WriteBuffer,
    /// When garbage collection reclaims blocks.
    pub collection: Collection,
    /// Fixed costs of a command.
    pub controller: Controller,
    /// Connection to the host.
    pub interface: Interface,
    /// Whether units that were never written are read from the flash, as if the drive had been filled once, in order.
    /// Otherwise the controller knows that they hold nothing. This takes no memory, and writes find the flash empty all
    /// the same. Trimmed units count as unwritten.
    pub filled: bool,
    /// Whether it starts in the steady state of random overwrites instead of empty. Preparing that takes real time: 19
    /// s were measured for 224 GiB in units of 4 KiB with 14 % of spare, and 50 s for 1 TB in units of 16 KiB with 10
    /// %.
    pub preconditioned: bool,
    /// Power and cooling; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<SsdPower>,
}

/// Exported capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Bytes that the drive exports; flash in excess of them is over-provisioning.
    pub logical_bytes: u64,
    /// Bytes of a logical block: 512 or 4096.
    pub logical_block_bytes: u32,
    /// Bytes that one entry of the map covers: a power of two that divides a row (a page of each plane). 4 KiB is
    /// usual; large drives that save memory use 16 KiB and more. A write of part of a unit reads the rest of it.
    pub mapping_unit_bytes: u32,
}

/// Geometry of the flash: channels, dies, planes, blocks, pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Buses between controller and flash.
    pub channels: u32,
    /// Planes of a die; they read, program and erase together.
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

/// Times of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Time from the array into the page registers (tR).
    pub read_ns: u64,
    /// Time from the page registers into the array (tPROG), all planes at once.
    pub program_ns: u64,
    /// Time to erase one block of each plane (tBERS).
    pub erase_ns: u64,
    /// Time of one byte on a channel, in either direction.
    pub channel_ns_per_byte: f64,
    /// Time after which a read that suspends a program or an erase is served; `None` if it waits for their end.
    pub suspend_ns: Option<u64>,
    /// Overhead of resuming it, in addition to its remaining time.
    #[serde(default)]
    pub resume_ns: u64,
    /// Most suspensions of a program or an erase.
    #[serde(default = "unlimited")]
    pub suspensions_max: u32,
    /// Most reads that a die serves while a program, an erase or a move waits for them. It keeps an endless stream of
    /// reads from starving the writes.
    pub reads_ahead_max: u32,
}

fn unlimited() -> u32 {
    u32::MAX
}

/// SLC cache: blocks that hold one bit a cell until they are folded, that is, until their data are moved to others and
/// they are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcCache {
    /// Host data for which blocks are set aside. Once they are full, writes bypass them.
    pub static_bytes: u64,
    /// Host data that free blocks hold in addition, as long as there are any: it shrinks as the drive fills, and is
    /// folded while the host writes once they are used up.
    pub dynamic_bytes: u64,
    /// Bits of the other cells: a block of the cache holds this fraction (one in `bits_per_cell`) of its usual data.
    pub bits_per_cell: u32,
    /// Time from the array into the page registers.
    pub read_ns: u64,
    /// Time from the page registers into the array, all planes at once.
    pub program_ns: u64,
    /// Idle time of the host before the cache is folded. `None` if that waits until the room is needed.
    pub idle_ns: Option<u64>,
}

/// The write buffer, in the controller's memory. A write is complete when it is in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBuffer {
    /// Size; at least two rows (a row is a page of each plane of a die, which are programmed at once).
    pub bytes: u64,
    /// Whether capacitors save it: a flush has nothing to do. Otherwise a flush, and a write with forced unit access,
    /// waits until everything accepted so far is programmed.
    pub power_loss_protected: bool,
    /// Whether the write cache is off: every write waits as one with forced unit access does. No effect where
    /// capacitors save the buffer.
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
                return Err("only disks have this value; on and off are allowed for SSDs");
            }
        };
        Ok(())
    }
}

/// Garbage collection: greedy, within each die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// A die with fewer free blocks than this (of each plane) collects; 2 or more. The last free block is reserved for
    /// collection, so writes that would need it wait.
    pub free_blocks_min: u32,
}

/// Overheads and bandwidths of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Time from the arrival of a command to its first action; for writes, see [`Self::write_command_ns`].
    pub command_ns: u64,
    /// Time between the starts of two commands: its inverse is the maximum IOPS; after a write, see
    /// [`Self::write_interval_ns`].
    pub command_interval_ns: u64,
    /// Like [`Self::command_ns`], for writes.
    #[serde(default)]
    pub write_command_ns: u64,
    /// Like [`Self::command_interval_ns`], after writes.
    #[serde(default)]
    pub write_interval_ns: u64,
    /// Time of one byte through the controller towards the host; 0 where it is never the bottleneck.
    #[serde(default)]
    pub read_ns_per_byte: f64,
    /// Time of one byte through the controller towards the flash.
    #[serde(default)]
    pub write_ns_per_byte: f64,
    /// Memory for the map in a drive that cannot hold all of it, such as a host memory buffer: missing entries are read
    /// from the flash first. `None` if the whole map is in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_cache_bytes: Option<u64>,
}

/// The interface between controller and host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Time of one byte towards the host; 0 for an interface that is never the bottleneck.
    pub read_ns_per_byte: f64,
    /// Time of one byte towards the drive.
    pub write_ns_per_byte: f64,
    /// Whether both directions transfer at once (PCI Express, SAS) or in turn (SATA).
    pub full_duplex: bool,
    /// Most commands that the drive works on at once; further ones wait in their order of arrival.
    pub queue_depth: u32,
    /// Driver and host adapter of a drive that is a system of its own; `None` adds no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<AdapterDescription>,
}

impl SsdDescription {
    /// Returns the bytes of flash.
    pub fn raw_bytes(&self) -> u64 {
        let flash = &self.flash;
        u64::from(self.dies())
            .saturating_mul(u64::from(flash.blocks_per_plane))
            .saturating_mul(u64::from(flash.pages_per_block))
            .saturating_mul(u64::from(self.row_bytes()))
    }

    /// Returns the flash in excess of the exported capacity, as a share of that capacity.
    pub fn over_provisioning(&self) -> f64 {
        self.raw_bytes() as f64 / self.capacity.logical_bytes as f64 - 1.0
    }

    /// Returns the number of dies on all channels.
    pub fn dies(&self) -> u32 {
        self.flash.channels * self.flash.dies_per_channel
    }

    /// Returns the bytes that a die programs at once: a page of each plane.
    pub fn row_bytes(&self) -> u32 {
        self.flash.planes_per_die * self.flash.page_bytes
    }
}
