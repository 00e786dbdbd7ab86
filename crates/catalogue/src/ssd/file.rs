//! The TOML form of a solid-state drive, from the few numbers of a data sheet to a complete description.
//!
//! It is a drive file with a `[flash]` table. Nearly every key is optional: what is left out follows from the kind of cells
//! and of interface (see [`super::resolve()`]). The complete form states everything and derives nothing.

use std::collections::BTreeMap;

use headstack_sim::drive::description::WriteCache;
use headstack_workload::quantity::{Bytes, DurationNs, LinkRate, Rate};
use serde::{Deserialize, Serialize};

use crate::file::{PriceTable, ReliabilityTable, is_default};
use crate::hosts::HostProfile;
use crate::stated::StatedRate;
use crate::twin::TwinTable;

/// A solid-state drive's file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdFile {
    /// Product name, for people.
    pub name: String,
    /// Maker.
    pub vendor: Option<String>,
    /// Model number.
    pub model: Option<String>,
    /// Year of introduction.
    pub year: Option<u32>,
    /// What a reader should know.
    pub notes: Option<String>,
    /// What nobody has written is read from the flash; true where left out.
    pub filled: Option<bool>,
    /// It starts in the steady state of random overwrites; fresh where left out.
    pub preconditioned: Option<bool>,
    /// How much it holds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capacity: SsdCapacityTable,
    /// The flash.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flash: FlashTable,
    /// Cells that take writes with one bit each first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub slc_cache: SlcCacheTable,
    /// Where writes wait.
    #[serde(default, skip_serializing_if = "is_default")]
    pub buffer: WriteBufferTable,
    /// Fixed costs of a command.
    #[serde(default, skip_serializing_if = "is_default")]
    pub controller: SsdControllerTable,
    /// The way to the host.
    #[serde(default, skip_serializing_if = "is_default")]
    pub interface: SsdInterfaceTable,
    /// What the drive takes, and what cools it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub power: SsdPowerTable,
    /// Reliability; carried, not used by the model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reliability: ReliabilityTable,
    /// What it cost; carried, not used by the model.
    pub price: Option<PriceTable>,
    /// What the data sheet promises: what the file leaves out is chosen so that the drive does that.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stated: StatedTable,
    /// The same as files up to version 0.2 spell it; read, and never written.
    #[serde(default, skip_serializing)]
    pub sheet: Option<SheetTable>,
    /// As of [`crate::file::DriveFile::sources`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, String>,
    /// How it was learnt from a device, where it was; carried, not used by the model.
    pub twin: Option<TwinTable>,
}

/// `[capacity]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdCapacityTable {
    /// What it exports, rounded down to whole mapping units.
    pub size: Option<Bytes>,
    /// Bytes of a logical block; 512 where left out.
    pub logical_block: Option<Bytes>,
    /// Bytes that one entry of the map stands for.
    pub mapping_unit: Option<Bytes>,
}

/// `cells` of the flash: bits of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cells {
    /// One.
    Slc,
    /// Two.
    Mlc,
    /// Three.
    Tlc,
    /// Four.
    Qlc,
}

/// `generation` of the flash: bits of a cell, and the feature size or the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generation {
    /// One bit, planar.
    #[serde(rename = "slc")]
    Slc,
    /// Two bits, planar, 25 to 20 nm.
    #[serde(rename = "mlc")]
    Mlc,
    /// Two bits, 48 and 64 layers.
    #[serde(rename = "mlc-64")]
    Mlc64,
    /// Three bits, 32 and 48 layers.
    #[serde(rename = "tlc-32")]
    Tlc32,
    /// Three bits, 64 and 72 layers.
    #[serde(rename = "tlc-64")]
    Tlc64,
    /// Three bits, 92 and 96 layers.
    #[serde(rename = "tlc-96")]
    Tlc96,
    /// Three bits, 112 to 144 layers.
    #[serde(rename = "tlc-128")]
    Tlc128,
    /// Three bits, 162 to 176 layers.
    #[serde(rename = "tlc-176")]
    Tlc176,
    /// Three bits, 218 to 238 layers.
    #[serde(rename = "tlc-232")]
    Tlc232,
    /// Three bits, 276 layers and more.
    #[serde(rename = "tlc-276")]
    Tlc276,
    /// Four bits, 64 and 72 layers.
    #[serde(rename = "qlc-64")]
    Qlc64,
    /// Four bits, 92 and 96 layers.
    #[serde(rename = "qlc-96")]
    Qlc96,
    /// Four bits, 144 layers.
    #[serde(rename = "qlc-144")]
    Qlc144,
    /// Four bits, 176 and 192 layers.
    #[serde(rename = "qlc-192")]
    Qlc192,
    /// Four bits, 218 layers and more.
    #[serde(rename = "qlc-232")]
    Qlc232,
}

/// `[flash]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashTable {
    /// Its kind, which with the year gives the generation.
    pub cells: Option<Cells>,
    /// Its generation, which gives what is left out.
    pub generation: Option<Generation>,
    /// Buses between controller and flash.
    pub channels: Option<u32>,
    /// Dies on each of them.
    pub dies_per_channel: Option<u32>,
    /// Bytes of all dies.
    pub raw: Option<Bytes>,
    /// Bytes beyond what is exported, as a share of that; in place of `raw`.
    pub over_provisioning: Option<f64>,
    /// Planes of a die.
    pub planes_per_die: Option<u32>,
    /// Planes of a die read on their own.
    pub independent_planes: Option<bool>,
    /// Blocks of a plane; in place of `raw`.
    pub blocks_per_plane: Option<u32>,
    /// Pages of a block.
    pub pages_per_block: Option<u32>,
    /// Data bytes of a page.
    pub page: Option<Bytes>,
    /// From the array into the page registers (tR).
    pub read: Option<DurationNs>,
    /// From the page registers into the array (tPROG), all planes at once; the mean of a block's pages.
    pub program: Option<DurationNs>,
    /// A block of each plane (tBERS).
    pub erase: Option<DurationNs>,
    /// Rate of a channel.
    pub channel_rate: Option<Rate>,
    /// Time of a byte on a channel, in place of the rate.
    pub channel_ns_per_byte: Option<f64>,
    /// Reads interrupt programs and erases.
    pub suspends: Option<bool>,
    /// How long that takes.
    pub suspend: Option<DurationNs>,
    /// What going on with a program or an erase costs beside what was left of it.
    pub resume: Option<DurationNs>,
    /// How often one is interrupted at most.
    pub suspensions_max: Option<u32>,
    /// Reads that a die serves at most while other work waits.
    pub reads_ahead_max: Option<u32>,
    /// A die with fewer free blocks collects.
    pub free_blocks_min: Option<u32>,
}

/// `[slc_cache]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcCacheTable {
    /// Data of the host's for which cells are set aside.
    #[serde(rename = "static")]
    pub static_size: Option<Bytes>,
    /// Data of the host's that free cells take beyond that while there are any.
    #[serde(rename = "dynamic")]
    pub dynamic_size: Option<Bytes>,
    /// Bits that the cells hold otherwise.
    pub bits_per_cell: Option<u32>,
    /// From the array into the page registers.
    pub read: Option<DurationNs>,
    /// From the page registers into the array, all planes at once.
    pub program: Option<DurationNs>,
    /// The cache is folded when the host has asked for nothing so long.
    pub idle: Option<DurationNs>,
    /// Whether it is folded then at all, or when the room is needed only.
    pub folds_when_idle: Option<bool>,
}

/// `[buffer]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBufferTable {
    /// Bytes that wait in the controller's memory at most.
    pub size: Option<Bytes>,
    /// Capacitors save it: flushes have nothing to do.
    pub power_loss_protected: Option<bool>,
    /// `on` or `off`; on where left out. Off, a write is complete once it is programmed.
    pub write_cache: Option<WriteCache>,
}

/// `[controller]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdControllerTable {
    /// From the arrival of a command to its first action.
    pub command: Option<DurationNs>,
    /// Between the starts of two commands: one over the most small requests a second.
    pub command_interval: Option<DurationNs>,
    /// As `command`, of a write.
    pub write_command: Option<DurationNs>,
    /// As `command_interval`, after a write.
    pub write_interval: Option<DurationNs>,
    /// What it lets through towards the host.
    pub read_rate: Option<Rate>,
    /// What it lets through towards the flash.
    pub write_rate: Option<Rate>,
    /// Time of one byte, in place of `read_rate`; 0 where it is never the limit.
    pub read_ns_per_byte: Option<f64>,
    /// In place of `write_rate`.
    pub write_ns_per_byte: Option<f64>,
    /// Memory for the map of a drive that cannot hold it all, such as `"64MiB"` that the host lends.
    pub map_cache: Option<Bytes>,
}

/// `kind` of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SsdInterfaceKind {
    /// NVM Express over PCI Express.
    Nvme,
    /// Serial ATA.
    Sata,
    /// Serial attached SCSI.
    Sas,
}

/// `[interface]`: `generation` and `lanes`, or `rate`, or the two times of a byte.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdInterfaceTable {
    /// Which one.
    pub kind: Option<SsdInterfaceKind>,
    /// Generation of PCI Express.
    pub generation: Option<u32>,
    /// Lanes of PCI Express; 4 where left out.
    pub lanes: Option<u32>,
    /// Rate of payload, framing and encoding taken off; or of a serial line in bits.
    pub rate: Option<LinkRate>,
    /// Time of one byte towards the host; 0 for an interface that is never the limit.
    pub read_ns_per_byte: Option<f64>,
    /// Time of one byte towards the drive.
    pub write_ns_per_byte: Option<f64>,
    /// Commands that the drive works on at once.
    pub queue_depth: Option<u32>,
    /// What the drive hangs on where it stands alone; nothing that takes time where left out.
    pub host: Option<HostProfile>,
}

/// `[power]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdPowerTable {
    /// Watts without work.
    pub idle_w: Option<f64>,
    /// Watts while every die works.
    pub active_w: Option<f64>,
    /// Temperature of the air where the drive sits.
    pub ambient_celsius: Option<f64>,
    /// How much warmer than the air the case gets, a watt.
    pub airflow_k_per_w: Option<f64>,
}

/// What a drive had gone through before its random writes were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteState {
    /// Fresh, and for a short while: what makers of consumer drives state.
    Burst,
    /// Overwritten at random until nothing changed any more: what makers of data-centre drives state.
    Steady,
}

/// Random writes, such as `{ iops = 40_000, depth = 32, size = "4KiB", state = "steady" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedWrites {
    /// Requests a second.
    pub iops: f64,
    /// Requests outstanding; all that the drive works on at once where left out.
    pub depth: Option<u32>,
    /// Bytes of a request; 4 KiB where left out.
    pub size: Option<Bytes>,
    /// What went before; where left out, `burst` of a drive with `[slc_cache]` or `stated.slc_cache`, else `steady`.
    pub state: Option<WriteState>,
}

impl StatedWrites {
    /// Bytes of a request.
    pub fn bytes(&self) -> u64 {
        self.size.map_or(4096, |size| size.0)
    }
}

/// `[stated]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedTable {
    /// Random reads.
    pub random_read: Option<StatedRate>,
    /// Random writes.
    pub random_write: Option<StatedWrites>,
    /// Sequential reads.
    pub sequential_read: Option<Rate>,
    /// Sequential writes; into the SLC cache where there is one.
    pub sequential_write: Option<Rate>,
    /// Latency of a random read of 4 KiB at queue depth 1.
    pub read_latency: Option<DurationNs>,
    /// Latency of a random write of 4 KiB at queue depth 1.
    pub write_latency: Option<DurationNs>,
    /// What sequential writes of an empty drive put there before they get slower.
    pub slc_cache: Option<Bytes>,
    /// Sequential writes from then on.
    pub after_slc: Option<Rate>,
}

/// `[sheet]`, the old spelling of `[stated]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SheetTable {
    /// Random reads of 4 KiB a second.
    random_read_iops: Option<f64>,
    /// Random writes of 4 KiB a second, in the steady state.
    random_write_iops: Option<f64>,
    sequential_read: Option<Rate>,
    sequential_write: Option<Rate>,
    read_latency: Option<DurationNs>,
    write_latency: Option<DurationNs>,
}

impl From<SheetTable> for StatedTable {
    fn from(sheet: SheetTable) -> Self {
        StatedTable {
            random_read: sheet.random_read_iops.map(|iops| StatedRate { iops, depth: None, size: None }),
            random_write: sheet.random_write_iops.map(|iops| StatedWrites {
                iops,
                depth: None,
                size: None,
                state: Some(WriteState::Steady),
            }),
            sequential_read: sheet.sequential_read,
            sequential_write: sheet.sequential_write,
            read_latency: sheet.read_latency,
            write_latency: sheet.write_latency,
            slc_cache: None,
            after_slc: None,
        }
    }
}
