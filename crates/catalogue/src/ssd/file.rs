//! [`SsdFile`]: the TOML form of an SSD, from a few figures of a data sheet to a complete description.
//!
//! An SSD file is a drive file with a `[flash]` table. Nearly every key is optional: missing values follow from the
//! kinds of cells and interface (see [`super::resolve()`]). The complete form states every value.

use std::collections::BTreeMap;

use headstack_sim::drive::description::WriteCache;
use headstack_sim::ssd::description::FlashState;
use headstack_workload::quantity::{Bytes, DurationNs, LinkRate, Rate};
use serde::{Deserialize, Serialize};

use super::endurance::EnduranceTable;
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
    /// Contents of the flash when a run begins: fresh, filled or steady; default filled.
    pub state: Option<FlashState>,
    /// Former key for `state`: `false` for fresh. Read but never written.
    #[serde(default, skip_serializing)]
    pub filled: Option<bool>,
    /// Former key for `state`: `true` for steady. Read but never written.
    #[serde(default, skip_serializing)]
    pub preconditioned: Option<bool>,
    /// Capacity and block size.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capacity: SsdCapacityTable,
    /// Flash memory.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flash: FlashTable,
    /// SLC cache: cells that first store writes with one bit each.
    #[serde(default, skip_serializing_if = "is_default")]
    pub slc_cache: SlcCacheTable,
    /// Buffer for writes that wait to be programmed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub buffer: WriteBufferTable,
    /// Times and rates of the controller.
    #[serde(default, skip_serializing_if = "is_default")]
    pub controller: SsdControllerTable,
    /// Connection to the host.
    #[serde(default, skip_serializing_if = "is_default")]
    pub interface: SsdInterfaceTable,
    /// Power and cooling.
    #[serde(default, skip_serializing_if = "is_default")]
    pub power: SsdPowerTable,
    /// Rated writes; stored, but not used by the model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub endurance: EnduranceTable,
    /// Reliability; stored, but not used by the model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reliability: ReliabilityTable,
    /// Price; stored, but not used by the model.
    pub price: Option<PriceTable>,
    /// Figures that the data sheet promises; missing values of the drive are fitted to them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stated: StatedTable,
    /// Stated figures in the form used up to version 0.2. Read but never written.
    #[serde(default, skip_serializing)]
    pub sheet: Option<SheetTable>,
    /// Sources, as in [`crate::file::DriveFile::sources`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, String>,
    /// Provenance of a calibrated model (twin); stored, but not used by the model.
    pub twin: Option<TwinTable>,
}

impl SsdFile {
    /// Returns the stated contents of the flash when a run begins.
    pub fn stated_state(&self) -> Option<FlashState> {
        self.state.clone().or(former_state(self.filled, self.preconditioned))
    }
}

/// Returns the state that the former keys `filled` and `preconditioned` mean.
pub(crate) fn former_state(filled: Option<bool>, preconditioned: Option<bool>) -> Option<FlashState> {
    match (filled, preconditioned) {
        (_, Some(true)) => Some(FlashState::Steady),
        (Some(false), _) => Some(FlashState::Fresh),
        (Some(true), _) | (_, Some(false)) => Some(FlashState::Filled),
        (None, None) => None,
    }
}

/// Table `[capacity]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdCapacityTable {
    /// Exported size, rounded down to whole mapping units.
    pub size: Option<Bytes>,
    /// Size of a logical block; default 512 bytes.
    pub logical_block: Option<Bytes>,
    /// Number of bytes covered by one entry of the map.
    pub mapping_unit: Option<Bytes>,
}

/// Value of the key `cells`: bits per cell.
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
    /// 3D XPoint, which is not flash: it is overwritten in place.
    Xpoint,
}

/// Value of the key `generation`: bits per cell, and feature size or number of layers.
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
    /// 3D XPoint of two layers (Optane P4800X, 900P, 905P).
    #[serde(rename = "xpoint")]
    Xpoint,
    /// 3D XPoint of four layers (Optane P5800X).
    #[serde(rename = "xpoint-2")]
    Xpoint2,
}

/// Table `[flash]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashTable {
    /// Kind of cells. With the year, it determines the generation.
    pub cells: Option<Cells>,
    /// Generation of the flash, which determines missing values.
    pub generation: Option<Generation>,
    /// Number of channels between controller and flash.
    pub channels: Option<u32>,
    /// Number of dies per channel.
    pub dies_per_channel: Option<u32>,
    /// Raw capacity of all dies.
    pub raw: Option<Bytes>,
    /// Raw capacity in excess of the exported capacity, as a fraction of the exported capacity; replaces `raw`.
    pub over_provisioning: Option<f64>,
    /// Number of planes per die.
    pub planes_per_die: Option<u32>,
    /// Whether the planes of a die read independently.
    pub independent_planes: Option<bool>,
    /// Number of blocks per plane; replaces `raw`.
    pub blocks_per_plane: Option<u32>,
    /// Number of pages per block.
    pub pages_per_block: Option<u32>,
    /// Data size of a page.
    pub page: Option<Bytes>,
    /// Number of pages of a plane that are programmed at once.
    pub pages_per_program: Option<u32>,
    /// Time to read from the array into the page registers (tR).
    pub read: Option<DurationNs>,
    /// Time to program a page from the page registers into the array (tPROG) on all planes at once: the mean over the
    /// pages of a block, or the time of a program divided by its pages.
    pub program: Option<DurationNs>,
    /// Time to erase one block on each plane (tBERS).
    pub erase: Option<DurationNs>,
    /// Transfer rate of a channel.
    pub channel_rate: Option<Rate>,
    /// Time per byte on a channel, in ns; replaces the rate.
    pub channel_ns_per_byte: Option<f64>,
    /// Whether reads suspend programs and erases.
    pub suspends: Option<bool>,
    /// Time to suspend an operation.
    pub suspend: Option<DurationNs>,
    /// Mean of the random part of a suspension, in addition to `suspend`.
    pub suspend_spread: Option<DurationNs>,
    /// Whether reads wait for programs and erases while writes wait for buffer space, instead of suspending them.
    pub writes_urgent_when_full: Option<bool>,
    /// Overhead of resuming a program or erase, in addition to its remaining time.
    pub resume: Option<DurationNs>,
    /// Maximum number of suspensions of one program or erase.
    pub suspensions_max: Option<u32>,
    /// Maximum number of reads that a die serves while other work waits.
    pub reads_ahead_max: Option<u32>,
    /// Number of free blocks below which a die starts garbage collection.
    pub free_blocks_min: Option<u32>,
}

/// Table `[slc_cache]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcCacheTable {
    /// Host data that fits into cells reserved for the cache.
    #[serde(rename = "static")]
    pub static_size: Option<Bytes>,
    /// Host data that additionally fits into free cells.
    #[serde(rename = "dynamic")]
    pub dynamic_size: Option<Bytes>,
    /// Number of bits per cell outside the cache.
    pub bits_per_cell: Option<u32>,
    /// Time to read from the array into the page registers.
    pub read: Option<DurationNs>,
    /// Time to program from the page registers into the array on all planes at once.
    pub program: Option<DurationNs>,
    /// Host idle time after which the cache is folded.
    pub idle: Option<DurationNs>,
    /// Whether the cache is folded when idle; otherwise only when its space is needed.
    pub folds_when_idle: Option<bool>,
}

/// Table `[buffer]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBufferTable {
    /// Maximum amount of data that waits in the controller's memory.
    pub size: Option<Bytes>,
    /// Whether capacitors protect the buffer, which makes flushes unnecessary.
    pub power_loss_protected: Option<bool>,
    /// Whether the drive reports a volatile write cache, so that hosts send flushes (NVMe: VWC; Linux:
    /// `queue/write_cache` is `write back`). A drive with protected buffers usually reports none.
    pub reports_volatile_cache: Option<bool>,
    /// Time of a flush of a protected buffer.
    pub flush: Option<DurationNs>,
    /// Time to program the changed part of the map, for one of every `flushes_per_map_update` flushes.
    pub map_update: Option<DurationNs>,
    /// Number of flushes for each program of the map.
    pub flushes_per_map_update: Option<u32>,
    /// `on` or `off`; default `on`. When off, a write is complete once it is programmed.
    pub write_cache: Option<WriteCache>,
}

/// Table `[controller]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdControllerTable {
    /// Time from the arrival of a command to its first action.
    pub command: Option<DurationNs>,
    /// Interval between the starts of two commands: the inverse of the maximum small-request IOPS.
    pub command_interval: Option<DurationNs>,
    /// Like `command`, for writes.
    pub write_command: Option<DurationNs>,
    /// Like `command_interval`, after writes.
    pub write_interval: Option<DurationNs>,
    /// Transfer rate towards the host.
    pub read_rate: Option<Rate>,
    /// Transfer rate towards the flash.
    pub write_rate: Option<Rate>,
    /// Time per byte in ns, replaces `read_rate`; 0 if it is never the bottleneck.
    pub read_ns_per_byte: Option<f64>,
    /// Time per byte in ns, replaces `write_rate`.
    pub write_ns_per_byte: Option<f64>,
    /// Memory for the map, in a drive that cannot hold the whole map; for example `"64MiB"` of host memory buffer.
    pub map_cache: Option<Bytes>,
}

/// Value of the key `kind` of an interface.
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

/// Table `[interface]`, with `generation` and `lanes`, or `rate`, or the two times per byte.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdInterfaceTable {
    /// Kind of interface.
    pub kind: Option<SsdInterfaceKind>,
    /// PCI Express generation.
    pub generation: Option<u32>,
    /// Number of PCI Express lanes; default 4.
    pub lanes: Option<u32>,
    /// Payload rate without framing and encoding, or the bit rate of a serial line.
    pub rate: Option<LinkRate>,
    /// Time per byte towards the host, in ns; 0 for an interface that is never the bottleneck.
    pub read_ns_per_byte: Option<f64>,
    /// Time per byte towards the drive, in ns.
    pub write_ns_per_byte: Option<f64>,
    /// Maximum number of commands that the drive handles at once.
    pub queue_depth: Option<u32>,
    /// Host of the drive if it is a system by itself; by default a host that takes no time.
    pub host: Option<HostProfile>,
}

/// Table `[power]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdPowerTable {
    /// Idle power, in W.
    pub idle_w: Option<f64>,
    /// Power with all dies busy, in W.
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
    /// Fresh, for a short time; makers of consumer drives state this figure.
    Burst,
    /// Randomly overwritten until the rate is stable; makers of data-center drives state this figure.
    Steady,
}

/// Promised random writes, such as `{ iops = 40_000, depth = 32, size = "4KiB", state = "steady" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedWrites {
    /// Rate, in IOPS.
    pub iops: f64,
    /// Queue depth; by default the maximum that the drive handles at once.
    pub depth: Option<u32>,
    /// Size of a request; default 4 KiB.
    pub size: Option<Bytes>,
    /// State before the measurement; by default `burst` for a drive with `[slc_cache]` or `stated.slc_cache`, otherwise
    /// `steady`.
    pub state: Option<WriteState>,
}

impl StatedWrites {
    /// Returns the size of a request in bytes.
    pub fn bytes(&self) -> u64 {
        self.size.map_or(4096, |size| size.0)
    }
}

/// Table `[stated]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedTable {
    /// Promised rate of random reads.
    pub random_read: Option<StatedRate>,
    /// Promised rate of random writes.
    pub random_write: Option<StatedWrites>,
    /// Sequential read rate.
    pub sequential_read: Option<Rate>,
    /// Sequential write rate, into the SLC cache if there is one.
    pub sequential_write: Option<Rate>,
    /// Latency of a random read of 4 KiB at queue depth 1.
    pub read_latency: Option<DurationNs>,
    /// Latency of a random write of 4 KiB at queue depth 1.
    pub write_latency: Option<DurationNs>,
    /// Amount of sequential writes that the SLC cache of an empty drive holds before the rate drops.
    pub slc_cache: Option<Bytes>,
    /// Sequential write rate once the SLC cache is full.
    pub after_slc: Option<Rate>,
}

/// Table `[sheet]`, the old form of `[stated]`.
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
