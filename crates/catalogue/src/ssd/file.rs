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

/// An SSD file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdFile {
    /// Product name, for display.
    pub name: String,
    /// Maker.
    pub vendor: Option<String>,
    /// Model number.
    pub model: Option<String>,
    /// Year of introduction.
    pub year: Option<u32>,
    /// Notes for readers.
    pub notes: Option<String>,
    /// Whether unwritten units are read from the flash; default true.
    pub filled: Option<bool>,
    /// Whether it starts in the steady state of random overwrites; fresh by default.
    pub preconditioned: Option<bool>,
    /// Capacity.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capacity: SsdCapacityTable,
    /// The flash.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flash: FlashTable,
    /// Cells that first hold one bit each for writes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub slc_cache: SlcCacheTable,
    /// Buffer of waiting writes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub buffer: WriteBufferTable,
    /// Fixed costs of a command.
    #[serde(default, skip_serializing_if = "is_default")]
    pub controller: SsdControllerTable,
    /// The connection to the host.
    #[serde(default, skip_serializing_if = "is_default")]
    pub interface: SsdInterfaceTable,
    /// Power and cooling.
    #[serde(default, skip_serializing_if = "is_default")]
    pub power: SsdPowerTable,
    /// Reliability; carried, not used by the model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reliability: ReliabilityTable,
    /// Price; carried, not used by the model.
    pub price: Option<PriceTable>,
    /// Figures that the data sheet promises: missing values are fitted to them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stated: StatedTable,
    /// Stated figures in the form of files up to version 0.2; read, and never written.
    #[serde(default, skip_serializing)]
    pub sheet: Option<SheetTable>,
    /// Sources, as [`crate::file::DriveFile::sources`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, String>,
    /// Provenance of a calibrated model (twin); carried, not used by the model.
    pub twin: Option<TwinTable>,
}

/// `[capacity]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdCapacityTable {
    /// Exported size, rounded down to whole mapping units.
    pub size: Option<Bytes>,
    /// Bytes of a logical block; default 512.
    pub logical_block: Option<Bytes>,
    /// Bytes that one entry of the map covers.
    pub mapping_unit: Option<Bytes>,
}

/// `cells` of the flash: bits of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cells {
    /// A single bit per cell.
    Slc,
    /// Two bits per cell.
    Mlc,
    /// Three bits per cell.
    Tlc,
    /// Four bits per cell.
    Qlc,
}

/// `generation` of the flash: bits of a cell, and the feature size or the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generation {
    /// Single-bit cells, planar.
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
    /// Kind of its cells, which with the year determines the generation.
    pub cells: Option<Cells>,
    /// Its generation, which determines missing values.
    pub generation: Option<Generation>,
    /// Buses between controller and flash.
    pub channels: Option<u32>,
    /// Dies on each of them.
    pub dies_per_channel: Option<u32>,
    /// Bytes of all dies.
    pub raw: Option<Bytes>,
    /// Bytes in excess of the exported ones, as a share of those; in place of `raw`.
    pub over_provisioning: Option<f64>,
    /// Planes of a die.
    pub planes_per_die: Option<u32>,
    /// Whether planes of a die read independently.
    pub independent_planes: Option<bool>,
    /// Blocks of a plane; in place of `raw`.
    pub blocks_per_plane: Option<u32>,
    /// Pages of a block.
    pub pages_per_block: Option<u32>,
    /// Data bytes of a page.
    pub page: Option<Bytes>,
    /// Time from the array into the page registers (tR).
    pub read: Option<DurationNs>,
    /// Time from the page registers into the array (tPROG), all planes at once; the mean over a block's pages.
    pub program: Option<DurationNs>,
    /// Time to erase a block of each plane (tBERS).
    pub erase: Option<DurationNs>,
    /// Rate of a channel.
    pub channel_rate: Option<Rate>,
    /// Time per byte on a channel, in place of the rate.
    pub channel_ns_per_byte: Option<f64>,
    /// Whether reads suspend programs and erases.
    pub suspends: Option<bool>,
    /// Time of a suspension.
    pub suspend: Option<DurationNs>,
    /// Overhead of resuming a program or an erase, in addition to its remaining time.
    pub resume: Option<DurationNs>,
    /// Most suspensions of one program or erase.
    pub suspensions_max: Option<u32>,
    /// Most reads that a die serves while other work waits.
    pub reads_ahead_max: Option<u32>,
    /// Number of free blocks below which a die collects.
    pub free_blocks_min: Option<u32>,
}

/// `[slc_cache]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcCacheTable {
    /// Host data for which cells are reserved.
    #[serde(rename = "static")]
    pub static_size: Option<Bytes>,
    /// Host data that free cells hold in addition, as long as there are any.
    #[serde(rename = "dynamic")]
    pub dynamic_size: Option<Bytes>,
    /// Bits that the cells hold otherwise.
    pub bits_per_cell: Option<u32>,
    /// Time from the array into the page registers.
    pub read: Option<DurationNs>,
    /// Time from the page registers into the array, all planes at once.
    pub program: Option<DurationNs>,
    /// Idle time of the host after which the cache is folded.
    pub idle: Option<DurationNs>,
    /// Whether it is folded when idle, rather than only when the room is needed.
    pub folds_when_idle: Option<bool>,
}

/// `[buffer]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBufferTable {
    /// Most bytes that wait in the controller's memory.
    pub size: Option<Bytes>,
    /// Whether capacitors save it: flushes have nothing to do.
    pub power_loss_protected: Option<bool>,
    /// `on` or `off`; default on. When off, a write is complete once it is programmed.
    pub write_cache: Option<WriteCache>,
}

/// `[controller]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdControllerTable {
    /// Time from the arrival of a command to its first action.
    pub command: Option<DurationNs>,
    /// Time between the starts of two commands: the inverse of the maximum small-request IOPS.
    pub command_interval: Option<DurationNs>,
    /// Like `command`, for writes.
    pub write_command: Option<DurationNs>,
    /// Like `command_interval`, after writes.
    pub write_interval: Option<DurationNs>,
    /// Bandwidth towards the host.
    pub read_rate: Option<Rate>,
    /// Bandwidth towards the flash.
    pub write_rate: Option<Rate>,
    /// Time per byte, in place of `read_rate`; 0 where it is never the bottleneck.
    pub read_ns_per_byte: Option<f64>,
    /// Time per byte, in place of `write_rate`.
    pub write_ns_per_byte: Option<f64>,
    /// Memory for the map in a drive that cannot hold all of it, such as `"64MiB"` of host memory buffer.
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
    /// Kind of interface.
    pub kind: Option<SsdInterfaceKind>,
    /// Generation of PCI Express.
    pub generation: Option<u32>,
    /// Lanes of PCI Express; default 4.
    pub lanes: Option<u32>,
    /// Rate of payload, without framing and encoding; or of a serial line in bits.
    pub rate: Option<LinkRate>,
    /// Time of one byte towards the host; 0 for an interface that is never the bottleneck.
    pub read_ns_per_byte: Option<f64>,
    /// Time of one byte towards the drive.
    pub write_ns_per_byte: Option<f64>,
    /// Most commands that the drive works on at once.
    pub queue_depth: Option<u32>,
    /// Host of a drive that is a system of its own; by default one that takes no time.
    pub host: Option<HostProfile>,
}

/// `[power]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdPowerTable {
    /// Power without work, in W.
    pub idle_w: Option<f64>,
    /// Power with every die busy, in W.
    pub active_w: Option<f64>,
    /// Temperature of the air around the drive, in °C.
    pub ambient_celsius: Option<f64>,
    /// Temperature rise of the case above the air, in K/W.
    pub airflow_k_per_w: Option<f64>,
}

/// State of a drive when its random writes were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteState {
    /// Fresh, for a short time: the figure that makers of consumer drives state.
    Burst,
    /// Overwritten randomly until nothing changed any more: the figure that makers of data-center drives state.
    Steady,
}

/// Random writes, such as `{ iops = 40_000, depth = 32, size = "4KiB", state = "steady" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedWrites {
    /// Rate, in IOPS.
    pub iops: f64,
    /// Queue depth; by default all that the drive works on at once.
    pub depth: Option<u32>,
    /// Bytes of a request; default 4 KiB.
    pub size: Option<Bytes>,
    /// State before the measurement; by default `burst` for a drive with `[slc_cache]` or `stated.slc_cache`, else
    /// `steady`.
    pub state: Option<WriteState>,
}

impl StatedWrites {
    /// Returns the bytes of a request.
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
    /// Sequential writes; into the SLC cache if there is one.
    pub sequential_write: Option<Rate>,
    /// Latency of a random read of 4 KiB at queue depth 1.
    pub read_latency: Option<DurationNs>,
    /// Latency of a random write of 4 KiB at queue depth 1.
    pub write_latency: Option<DurationNs>,
    /// Sequential writes of an empty drive that the SLC cache holds before they get slower.
    pub slc_cache: Option<Bytes>,
    /// Sequential writes after that.
    pub after_slc: Option<Rate>,
}

/// `[sheet]`, the old form of `[stated]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SheetTable {
    /// Random reads of 4 KiB, in IOPS.
    random_read_iops: Option<f64>,
    /// Random writes of 4 KiB in the steady state, in IOPS.
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
