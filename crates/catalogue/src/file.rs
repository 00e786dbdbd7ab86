//! [`DriveFile`]: the TOML form of a disk drive, from a few figures of a data sheet to a complete description. See
//! docs/design/catalogue.md.
//!
//! Nearly every key is optional: missing values are derived (see [`crate::resolve`]). The complete form states every
//! value.

mod assists;
mod price;

use std::collections::BTreeMap;

use headstack_sim::drive::description::{BlockOrder, InterfaceKind, Policy, ReadAhead, Sparing, WriteCache};
use headstack_workload::quantity::{Bytes, DurationNs, LinkRate, Rate, Rpm};
use serde::{Deserialize, Serialize};

use crate::family::Family;
use crate::hosts::HostProfile;
use crate::stated::StatedRate;
use crate::twin::TwinTable;

pub use assists::{FlashCacheTable, MediaCacheTable, ShinglesTable};
pub use price::PriceTable;

/// A drive file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveFile {
    /// Product name, for display.
    pub name: String,
    /// Maker.
    pub vendor: Option<String>,
    /// Model number.
    pub model: Option<String>,
    /// Year of introduction; many defaults depend on it.
    pub year: Option<u32>,
    /// Notes for readers.
    pub notes: Option<String>,
    /// Market of a disk; by default `nearline` from a stated mean time between failures of 1.2 million hours on, else
    /// `desktop`.
    pub family: Option<Family>,
    /// Number of independent arms, each with an equal share of the heads and blocks; default 1.
    pub actuators: Option<u32>,
    /// Capacity and sector sizes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capacity: CapacityTable,
    /// Surfaces, cylinders and zones.
    #[serde(default, skip_serializing_if = "is_default")]
    pub geometry: GeometryTable,
    /// Rates and densities from the data sheet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub media: MediaTable,
    /// Spindle speed, and where in a turn accesses start.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spindle: SpindleTable,
    /// Seek times from the data sheet or a seek curve, and switching and settling times.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seek: SeekTable,
    /// The drive's command queue.
    #[serde(default, skip_serializing_if = "is_default")]
    pub queue: QueueTable,
    /// Buffer and write cache.
    #[serde(default, skip_serializing_if = "is_default")]
    pub buffer: BufferTable,
    /// Overheads of a command.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overheads: OverheadsTable,
    /// Connection to the host.
    #[serde(default, skip_serializing_if = "is_default")]
    pub interface: InterfaceTable,
    /// Occasional slow operations; off by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub slow: SlowTable,
    /// Figures that the sheet promises; missing values of the drive are fitted to them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stated: StatedTable,
    /// Flash that caches reads; none by default.
    pub flash_cache: Option<FlashCacheTable>,
    /// Media cache, which takes random writes in order; none by default.
    pub media_cache: Option<MediaCacheTable>,
    /// Shingled (overlapping) tracks; none by default.
    pub shingles: Option<ShinglesTable>,
    /// Power and cooling.
    #[serde(default, skip_serializing_if = "is_default")]
    pub power: PowerTable,
    /// Reliability; stored, but used by the model only to choose a missing `family`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reliability: ReliabilityTable,
    /// Price; stored, but not used by the model.
    pub price: Option<PriceTable>,
    /// Sources as `CODE text`, by key path, by the path of a table that contains the key, or `default`. Codes: A read
    /// in the named source, S stated by a study's document, B general knowledge of high and C of medium confidence, D
    /// estimate, I inferred.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, String>,
    /// Provenance of a calibrated model (twin); stored, but not used by the model.
    pub twin: Option<TwinTable>,
}

pub(crate) fn is_default<T: Default + PartialEq>(table: &T) -> bool {
    *table == T::default()
}

/// Table `[stated]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedTable {
    /// Promised rate of random reads.
    pub random_read: Option<StatedRate>,
    /// Promised rate of random writes.
    pub random_write: Option<StatedWrites>,
}

/// A promised rate of random writes, such as `{ iops = 550, depth = 16, size = "4KiB", cache = "off" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedWrites {
    /// Rate, in IOPS.
    pub iops: f64,
    /// Queue depth; default 1.
    pub depth: Option<u32>,
    /// Size of a request; default 4 KiB.
    pub size: Option<Bytes>,
    /// Setting of the volatile write cache during the measurement.
    pub cache: CacheState,
}

impl StatedWrites {
    /// Returns the rate without the cache setting.
    pub fn rate(&self) -> StatedRate {
        StatedRate { iops: self.iops, depth: self.depth, size: self.size }
    }
}

/// Setting of the volatile write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// Switched on.
    On,
    /// Switched off.
    Off,
}

/// Table `[capacity]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityTable {
    /// Number of exported blocks.
    pub logical_blocks: Option<u64>,
    /// Exported size, rounded down to whole blocks; used if the number of blocks is unknown.
    pub size: Option<Bytes>,
    /// Size of a logical block; default 512 bytes.
    pub logical_block: Option<Bytes>,
    /// Size of a physical sector; by default the size of a logical block.
    pub physical_sector: Option<Bytes>,
}

/// Table `[geometry]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeometryTable {
    /// Number of disks on the spindle.
    pub platters: Option<u32>,
    /// Diameter of a disk in mm, which determines the spindle power.
    pub media_diameter_mm: Option<f64>,
    /// Number of recording surfaces.
    pub heads: Option<u32>,
    /// Number of cylinders.
    pub cylinders: Option<u32>,
    /// Order of the blocks on the surfaces.
    pub order: Option<BlockOrder>,
    /// Location of spare sectors.
    pub sparing: Option<Sparing>,
    /// Number of zones, if the zone table is unknown.
    pub zone_count: Option<u32>,
    /// Physical sectors on the outermost track, if the zone table is unknown.
    pub outer_sectors_per_track: Option<u32>,
    /// Physical sectors on the innermost track, if the zone table is unknown.
    pub inner_sectors_per_track: Option<u32>,
    /// Zone table, from the outer edge inwards.
    pub zones: Option<Vec<ZoneTable>>,
}

/// Table `[[geometry.zones]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneTable {
    /// First cylinder of the zone.
    pub first_cylinder: u32,
    /// Last cylinder of the zone, inclusive.
    pub last_cylinder: u32,
    /// Number of physical sectors per track.
    pub sectors_per_track: u32,
    /// Angle of the first sector, in turns; default 0.
    pub offset_turns: Option<f64>,
    /// Skew at a head change, in turns.
    pub track_skew_turns: Option<f64>,
    /// Skew at a cylinder change, in turns.
    pub cylinder_skew_turns: Option<f64>,
    /// Number of sectors at the start of the zone that hold no logical blocks; default 0.
    pub reserved_sectors: Option<u64>,
    /// Number of spare sectors per region; default 0.
    pub spares: Option<u32>,
    /// Slipped (skipped) places; none by default.
    pub slips: Option<Vec<u64>>,
    /// Pairs of defective place and replacement; none by default.
    pub remaps: Option<Vec<(u64, u64)>>,
}

/// Table `[media]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaTable {
    /// Sustained rate of user data at the outer edge.
    pub sustained_outer_rate: Option<Rate>,
    /// Sustained rate of user data at the inner edge.
    pub sustained_inner_rate: Option<Rate>,
    /// Raw rate at the head at the outer edge ("internal transfer rate").
    pub raw_outer_rate: Option<Rate>,
    /// Raw rate at the head at the inner edge.
    pub raw_inner_rate: Option<Rate>,
    /// Tracks per inch; stored, but not used by the model.
    pub tracks_per_inch: Option<f64>,
    /// Maximum bits per inch of track; stored, but not used by the model.
    pub bits_per_inch: Option<f64>,
    /// Areal density in gigabits per square inch; stored, but not used by the model.
    pub gbit_per_square_inch: Option<f64>,
}

/// Table `[spindle]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpindleTable {
    /// Spindle speed.
    pub speed: Option<Rpm>,
    /// Whether reads start at the first requested sector that passes the head.
    pub read_on_arrival: Option<bool>,
    /// Whether writes start at the first requested sector that passes the head.
    pub write_on_arrival: Option<bool>,
}

/// Table `[seek]` with at most one of the four curves. Without a curve, one is derived from the figures of the sheet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekTable {
    /// Mean read seek time over random pairs of blocks, without overheads.
    pub read_average: Option<DurationNs>,
    /// Mean write seek time.
    pub write_average: Option<DurationNs>,
    /// Read seek time to the next cylinder.
    pub read_track_to_track: Option<DurationNs>,
    /// Write seek time to the next cylinder.
    pub write_track_to_track: Option<DurationNs>,
    /// Read seek time over all cylinders.
    pub read_full_stroke: Option<DurationNs>,
    /// Write seek time over all cylinders.
    pub write_full_stroke: Option<DurationNs>,
    /// Measured curve: points (cylinders, time) in ascending order.
    pub points: Option<Vec<(u32, DurationNs)>>,
    /// Two-piece curve of Ruemmler and Wilkes.
    pub two_piece: Option<TwoPieceTable>,
    /// Three-parameter curve of Lee and Katz.
    pub three_parameter: Option<ThreeParameterTable>,
    /// Constant seek time for every distance.
    pub constant: Option<DurationNs>,
    /// Time to change to another surface.
    pub head_switch: Option<DurationNs>,
    /// Time added to a read after a movement of the arm or a change of head; may be negative.
    pub read_settle: Option<DurationNs>,
    /// Time added to a write after a movement of the arm or a change of head; may be negative.
    pub write_settle: Option<DurationNs>,
}

/// Table `[seek.two_piece]`. Coefficients are fractional nanoseconds, as fits yield them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwoPieceTable {
    /// Distance at which the long piece begins, in cylinders.
    pub boundary_cylinders: u32,
    /// Constant of the short piece, in ns.
    pub short_ns: f64,
    /// Factor of the square root in the short piece, in ns.
    pub short_ns_per_sqrt: f64,
    /// Constant of the long piece, in ns.
    pub long_ns: f64,
    /// Slope of the long piece, in ns per cylinder.
    pub long_ns_per_cylinder: f64,
    /// Seek times for the distances 1, 2, and so on.
    #[serde(default)]
    pub first: Vec<DurationNs>,
}

/// Table `[seek.three_parameter]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreeParameterTable {
    /// Single-cylinder seek time.
    pub minimum: DurationNs,
    /// Mean seek time.
    pub average: DurationNs,
    /// Full-stroke seek time.
    pub maximum: DurationNs,
}

/// Table `[queue]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueTable {
    /// Maximum number of commands that the drive holds.
    pub depth: Option<u32>,
    /// Scheduling policy.
    pub policy: Option<Policy>,
    /// Age at which a command takes precedence; none by default.
    pub ageing: Option<DurationNs>,
    /// Fraction of the queue from which the policy may choose, 0 to 1.
    pub reordering_strength: Option<f64>,
    /// Number of commands after the current one whose order is fixed.
    pub committed: Option<f64>,
    /// Rotation margin: a sector that passes the head less than this time after the seek is assumed to be missed.
    pub rotation_margin: Option<DurationNs>,
    /// Positioning time that each unit of waiting time offsets, 0 to 1.
    pub age_weight: Option<f64>,
}

/// Table `[buffer]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferTable {
    /// Size of the buffer.
    pub size: Option<Bytes>,
    /// Number of segments.
    pub segments: Option<u32>,
    /// Number of physical sectors per segment.
    pub segment_sectors: Option<u32>,
    /// How far reads continue beyond the request.
    pub read_ahead: Option<ReadAhead>,
    /// Maximum number of sectors read ahead.
    pub read_ahead_max_sectors: Option<u32>,
    /// Minimum number of sectors read ahead before another command is served.
    pub read_ahead_min_sectors: Option<u32>,
    /// Whether read-ahead continues after a hit.
    pub read_ahead_on_hit: Option<bool>,
    /// Whether the drive keeps sectors that pass the head before the first requested one.
    pub keep_passing_sectors: Option<bool>,
    /// Whether a read hits if read-ahead is just reading its first sector.
    pub read_hits_on_arriving: Option<bool>,
    /// Whether reads of buffered writes are hits.
    pub read_hits_on_writes: Option<bool>,
    /// Condition for the completion of a write.
    pub write_cache: Option<WriteCache>,
    /// Maximum number of dirty extents.
    pub dirty_extents_max: Option<u32>,
    /// Maximum number of dirty physical sectors.
    pub dirty_sectors_max: Option<u32>,
    /// Whether writes use a separate segment.
    pub separate_write_segment: Option<bool>,
    /// Fraction of a read that must be in the buffer before the transfer to the host starts.
    pub read_watermark: Option<f64>,
    /// Fraction of a write that must be in the buffer before the media write starts, 0 to 1.
    pub write_watermark: Option<f64>,
}

/// Table `[overheads]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverheadsTable {
    /// Overhead of a command that accesses the media; replaces the individual kinds below.
    pub command: Option<DurationNs>,
    /// Overhead before a read that hits the buffer.
    pub read_hit: Option<AfterTable>,
    /// Overhead before a read that misses the buffer.
    pub read_miss: Option<AfterTable>,
    /// Overhead before a write that extends buffered data.
    pub write_hit: Option<AfterTable>,
    /// Overhead before any other write.
    pub write_miss: Option<AfterTable>,
    /// Overhead after the last byte of a read.
    pub read_completion: Option<DurationNs>,
    /// Overhead after the last byte of a write.
    pub write_completion: Option<DurationNs>,
    /// Overhead before a transfer to the host.
    pub data_preparation: Option<DurationNs>,
    /// Minimum time after which a write's seek ends.
    pub minimum_seek_delay: Option<DurationNs>,
    /// Minimum time after which a read without a seek is on its track.
    pub read_settled_min: Option<AfterTable>,
}

/// An overhead that depends on the kind of the previous command.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AfterTable {
    /// Overhead after a read.
    pub after_read: DurationNs,
    /// Overhead after a write.
    pub after_write: DurationNs,
}

/// Table `[interface]`, with `rate` or the two measured times per byte.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceTable {
    /// Kind of interface.
    pub kind: Option<InterfaceKind>,
    /// Rate of the data, or bit rate of a serial line, as the sheet states it.
    pub rate: Option<LinkRate>,
    /// Time per byte towards the host, in ns; 0 for an interface that is never the bottleneck.
    pub read_ns_per_byte: Option<f64>,
    /// Time per byte towards the drive, in ns.
    pub write_ns_per_byte: Option<f64>,
    /// Maximum number of commands that the host queues in the drive.
    pub host_tags: Option<u32>,
    /// Scheduling policy of the host's own queue.
    pub host_elevator: Option<Policy>,
    /// Host of the drive if it is a system by itself; by default a host that takes no time.
    pub host: Option<HostProfile>,
    /// Times to release and reacquire the bus; by default the drive stays connected.
    pub disconnect: Option<DisconnectTable>,
}

/// Table `[interface.disconnect]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisconnectTable {
    /// Time to release the bus after a read command.
    pub read: AfterTable,
    /// Time to release the bus after the data of a write.
    pub write: DurationNs,
    /// Time to reacquire the bus for the first time.
    pub first_reselect: DurationNs,
    /// Time to reacquire the bus again.
    pub other_reselect: DurationNs,
    /// Second disconnection within a write.
    pub extra: Option<ExtraDisconnectTable>,
}

/// Table `[interface.disconnect.extra]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraDisconnectTable {
    /// Command overhead that replaces the usual one.
    pub command: DurationNs,
    /// Time of the first disconnection.
    pub disconnect: DurationNs,
    /// Time between the disconnections.
    pub between: DurationNs,
    /// Time of the second disconnection.
    pub second_disconnect: DurationNs,
    /// Time added to the seek.
    pub seek_delta: DurationNs,
}

/// Table `[slow]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowTable {
    /// Retries of media accesses.
    pub retries: Option<RetriesTable>,
    /// Thermal recalibration.
    pub recalibration: Option<RecalibrationTable>,
    /// Background media scan.
    pub scan: Option<ScanTable>,
    /// Whether each write is read back one turn later; default false.
    pub write_verify: Option<bool>,
}

/// Table `[slow.retries]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetriesTable {
    /// Probability that a pass over a track fails.
    pub probability: f64,
    /// Maximum number of passes, after which the drive reports an error.
    pub passes_max: u32,
}

/// Table `[slow.recalibration]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecalibrationTable {
    /// Interval between the starts of recalibrations.
    pub interval: DurationNs,
    /// Duration of a recalibration.
    pub duration: DurationNs,
}

/// Table `[slow.scan]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanTable {
    /// Idle time before the scan starts.
    pub idle: DurationNs,
    /// Number of sectors read in one step.
    pub step_sectors: u32,
}

/// Table `[power]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerTable {
    /// Idle power with the spindle turning, in W.
    pub idle_w: Option<f64>,
    /// Active power in W: with random reads one at a time, or with continuous transfers.
    pub active_w: Option<f64>,
    /// Electronics' part of the idle power, in W.
    pub electronics_w: Option<f64>,
    /// Spindle's part of the idle power, in W.
    pub spindle_w: Option<f64>,
    /// Additional power while the arm moves, in W.
    pub seek_w: Option<f64>,
    /// Additional power during transfers to or from the media, in W.
    pub transfer_w: Option<f64>,
    /// Power with the spindle stopped, in W.
    pub standby_w: Option<f64>,
    /// Energy of the drive during a spin-down, in J.
    pub spin_down_j: Option<f64>,
    /// Duration of a spin-down.
    pub spin_down: Option<DurationNs>,
    /// Energy of the drive during a spin-up, in J.
    pub spin_up_j: Option<f64>,
    /// Duration of a spin-up.
    pub spin_up: Option<DurationNs>,
    /// Idle time after which the spindle stops; never by default.
    pub idle_timeout: Option<DurationNs>,
    /// Temperature of the air around the drive, in °C.
    pub ambient_celsius: Option<f64>,
    /// Temperature rise of the case above the air, in K/W.
    pub airflow_k_per_w: Option<f64>,
}

/// Table `[reliability]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReliabilityTable {
    /// Mean time between failures, in hours.
    pub mtbf_h: Option<u64>,
    /// Annualized failure rate, in percent.
    pub afr_percent: Option<f64>,
    /// Bits read per unrecoverable error.
    pub bits_per_error: Option<f64>,
}
