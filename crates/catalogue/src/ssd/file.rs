//! The TOML form of a solid-state drive, from the few numbers of a data sheet to a complete description.
//!
//! It is a drive file with a `[flash]` table. Nearly every key is optional: what is left out follows from the kind of cells
//! and of interface (see [`super::resolve()`]). The complete form states everything and derives nothing.

use std::collections::BTreeMap;

use headstack_workload::quantity::{Bytes, DurationNs, LinkRate, Rate};
use serde::{Deserialize, Serialize};

use crate::file::{PriceTable, ReliabilityTable, is_default};

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
    /// What the data sheet promises; not used by the model, whose figures are tested against it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sheet: SheetTable,
    /// As of [`crate::file::DriveFile::sources`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, String>,
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
}

/// `[flash]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashTable {
    /// Its kind, which gives what is left out.
    pub cells: Option<Cells>,
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
    /// Reads that a die serves at most while other work waits.
    pub reads_ahead_max: Option<u32>,
    /// A die with fewer free blocks collects.
    pub free_blocks_min: Option<u32>,
}

/// `[buffer]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBufferTable {
    /// Bytes that wait in the controller's memory at most.
    pub size: Option<Bytes>,
    /// Capacitors save it: flushes have nothing to do.
    pub power_loss_protected: Option<bool>,
}

/// `[controller]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdControllerTable {
    /// From the arrival of a command to its first action.
    pub command: Option<DurationNs>,
    /// Between the starts of two commands.
    pub command_interval: Option<DurationNs>,
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

/// `[sheet]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SheetTable {
    /// Random reads of 4 KiB a second.
    pub random_read_iops: Option<f64>,
    /// Random writes of 4 KiB a second, in the steady state.
    pub random_write_iops: Option<f64>,
    /// Sequential reads.
    pub sequential_read: Option<Rate>,
    /// Sequential writes.
    pub sequential_write: Option<Rate>,
    /// Of a random read of 4 KiB, alone in the drive.
    pub read_latency: Option<DurationNs>,
    /// Of a random write of 4 KiB, alone in the drive.
    pub write_latency: Option<DurationNs>,
}
