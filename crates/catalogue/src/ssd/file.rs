//! [`SsdFile`]: the TOML form of an SSD, from the few numbers of a data sheet to a complete description.
//!
//! It is a drive file with a `[flash]` table. Nearly every key is optional: missing values follow from the kind of
//! cells and of interface (see [`super::resolve()`]). The complete form states everything and derives nothing.

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
    /// Notes for readers.
    pub notes: Option<String>,
    /// Whether unwritten data are read from the flash; by default true.
    pub filled: Option<bool>,
    /// Whether it starts in the steady state of random overwrites; by default it is fresh.
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
    /// Buffer of waiting writes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub buffer: WriteBufferTable,
    /// Fixed costs of a command.
    #[serde(default, skip_serializing_if = "is_default")]
    pub controller: SsdControllerTable,
    /// The way to the host.
    #[serde(default, skip_serializing_if = "is_default")]
    pub interface: SsdInterfaceTable,
    /// Power and cooling.
    #[serde(default, skip_serializing_if = "is_default")]
    pub power: SsdPowerTable,
    /// Reliability; carried, not used by the model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reliability: ReliabilityTable,
    /// Price; stored, not used by the model.
    pub price: Option<PriceTable>,
    /// Promises of the data sheet; missing values are chosen such that the drive fulfils them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stated: StatedTable,
    /// `stated` in the spelling of files up to version 0.2; read, and never written.
    #[serde(default, skip_serializing)]
    pub sheet: Option<SheetTable>,
    /// As in [`crate::file::DriveFile::sources`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, String>,
    /// How it was learnt from a device, if it was; stored, not used by the model.
    pub twin: Option<TwinTable>,
}

/// `[capacity]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdCapacityTable {
    /// Exported size, rounded down to whole mapping units.
    pub size: Option<Bytes>,
    /// Bytes of a logical block; by default 512.
    pub logical_block: Option<Bytes>,
    /// Bytes per entry of the mapping table.
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
    /// Its generation, which gives the default values.
    pub generation: Option<Generation>,
    /// Buses between controller and flash.
    pub channels: Option<u32>,
    /// Dies on each of them.
    pub dies_per_channel: Option<u32>,
    /// Bytes of all dies.
    pub raw: Option<Bytes>,
    /// Bytes beyond the exported ones, as a share of those; in place of `raw`.
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
    /// Cost of resuming a program or an erase, in addition to its rest.
    pub resume: Option<DurationNs>,
    /// How often one is interrupted at most.
    pub suspensions_max: Option<u32>,
    /// Largest number of reads that a die serves while other work waits.
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
    /// Host data that free cells take beyond that while there are any.
    #[serde(rename = "dynamic")]
    pub dynamic_size: Option<Bytes>,
    /// Bits that the cells hold otherwise.
    pub bits_per_cell: Option<u32>,
    /// From the array into the page registers.
    pub read: Option<DurationNs>,
    /// From the page registers into the array, all planes at once.
    pub program: Option<DurationNs>,
    /// Idle time of the host after which the cache is folded.
    pub idle: Option<DurationNs>,
    /// Whether it is folded when idle, or only when space is needed.
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
    /// `on` or `off`; by default on. If off, a write is complete once it is programmed.
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
    /// Like `command`, for a write.
    pub write_command: Option<DurationNs>,
    /// Like `command_interval`, after a write.
    pub write_interval: Option<DurationNs>,
    /// Throughput towards the host.
    pub read_rate: Option<Rate>,
    /// Throughput towards the flash.
    pub write_rate: Option<Rate>,
    /// Time per byte, in place of `read_rate`; 0 if it is never the limit.
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
    /// Lanes of PCI Express; by default 4.
    pub lanes: Option<u32>,
    /// Rate of payload, framing and encoding taken off; or of a serial line in bits.
    pub rate: Option<LinkRate>,
    /// Time of one byte towards the host; 0 for an interface that is never the limit.
    pub read_ns_per_byte: Option<f64>,
    /// Time of one byte towards the drive.
    pub write_ns_per_byte: Option<f64>,
    /// Commands that the drive works on at once.
    pub queue_depth: Option<u32>,
    /// Host adapter of a single drive; by default nothing that takes time.
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
    /// Ambient temperature of the drive.
    pub ambient_celsius: Option<f64>,
    /// How much warmer than the air the case gets, a watt.
    pub airflow_k_per_w: Option<f64>,
}

/// State of a drive when its random writes were measured.
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
