//! [`DriveFile`]: the TOML form of a disk drive, from the few numbers of a data sheet to a complete description. See
//! docs/design/catalogue.md.
//!
//! Nearly every key is optional: missing values are derived (see [`crate::resolve`]). The complete form states
//! everything and derives nothing.

mod assists;
mod price;

use std::collections::BTreeMap;

use headstack_sim::drive::description::{BlockOrder, InterfaceKind, Policy, ReadAhead, Sparing, WriteCache};
use headstack_workload::quantity::{Bytes, DurationNs, LinkRate, Rate, Rpm};
use serde::{Deserialize, Serialize};

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
    /// Independent arms, each with its share of the heads and blocks; default 1.
    pub actuators: Option<u32>,
    /// Capacity.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capacity: CapacityTable,
    /// Surfaces, cylinders, zones.
    #[serde(default, skip_serializing_if = "is_default")]
    pub geometry: GeometryTable,
    /// Rates and densities of a data sheet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub media: MediaTable,
    /// Speed, and the start of accesses within a turn.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spindle: SpindleTable,
    /// Seek times of a data sheet or a curve, switching and settling.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seek: SeekTable,
    /// The drive's command queue.
    #[serde(default, skip_serializing_if = "is_default")]
    pub queue: QueueTable,
    /// The buffer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub buffer: BufferTable,
    /// Fixed costs of a command.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overheads: OverheadsTable,
    /// The connection to the host.
    #[serde(default, skip_serializing_if = "is_default")]
    pub interface: InterfaceTable,
    /// Slow processes, off by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub slow: SlowTable,
    /// Figures that the sheet promises; missing values are fitted to them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stated: StatedTable,
    /// Flash that serves reads; none by default.
    pub flash_cache: Option<FlashCacheTable>,
    /// Media that take random writes in order; none by default.
    pub media_cache: Option<MediaCacheTable>,
    /// Overlapping tracks; none by default.
    pub shingles: Option<ShinglesTable>,
    /// Power and cooling.
    #[serde(default, skip_serializing_if = "is_default")]
    pub power: PowerTable,
    /// Reliability; carried, not used by the model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reliability: ReliabilityTable,
    /// Price; carried, not used by the model.
    pub price: Option<PriceTable>,
    /// Key path, or the path of a table that holds it, or `default`, to `CODE text`: confidence (A read in the named
    /// source, S stated by a study's document, B general knowledge of high and C of medium confidence, D estimate, I
    /// inferred) and source.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, String>,
    /// Provenance of a calibrated model (twin); carried, not used by the model.
    pub twin: Option<TwinTable>,
}

pub(crate) fn is_default<T: Default + PartialEq>(table: &T) -> bool {
    *table == T::default()
}

/// `[stated]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedTable {
    /// Random reads.
    pub random_read: Option<StatedRate>,
    /// Random writes.
    pub random_write: Option<StatedWrites>,
}

/// Random writes promised by a sheet, such as `{ iops = 550, depth = 16, size = "4KiB", cache = "off" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedWrites {
    /// Rate, in IOPS.
    pub iops: f64,
    /// Queue depth; default 1.
    pub depth: Option<u32>,
    /// Bytes of a request; default 4 KiB.
    pub size: Option<Bytes>,
    /// Whether the volatile write cache was on or off.
    pub cache: CacheState,
}

impl StatedWrites {
    /// Returns the rate without the cache state.
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

/// `[capacity]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityTable {
    /// Blocks the drive exports.
    pub logical_blocks: Option<u64>,
    /// Its size if the count of blocks is unknown; rounded down to whole blocks.
    pub size: Option<Bytes>,
    /// Bytes of a logical block; default 512.
    pub logical_block: Option<Bytes>,
    /// Bytes of a physical sector; by default as the logical block.
    pub physical_sector: Option<Bytes>,
}

/// `[geometry]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeometryTable {
    /// Disks of the stack.
    pub platters: Option<u32>,
    /// Diameter of a disk, which determines the power of the spindle.
    pub media_diameter_mm: Option<f64>,
    /// Recording surfaces.
    pub heads: Option<u32>,
    /// Cylinders.
    pub cylinders: Option<u32>,
    /// Order of the blocks.
    pub order: Option<BlockOrder>,
    /// Place of spares.
    pub sparing: Option<Sparing>,
    /// Number of zones, if their table is unknown.
    pub zone_count: Option<u32>,
    /// Physical sectors of the outermost track, if the zone table is unknown.
    pub outer_sectors_per_track: Option<u32>,
    /// Physical sectors of the innermost track, if the zone table is unknown.
    pub inner_sectors_per_track: Option<u32>,
    /// The zones, from the outer rim inwards.
    pub zones: Option<Vec<ZoneTable>>,
}

/// `[[geometry.zones]]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneTable {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder, inclusive.
    pub last_cylinder: u32,
    /// Physical sectors of a track.
    pub sectors_per_track: u32,
    /// Angle of the first sector in turns; default 0.
    pub offset_turns: Option<f64>,
    /// Skew at a change of head, in turns.
    pub track_skew_turns: Option<f64>,
    /// Skew at a change of cylinder, in turns.
    pub cylinder_skew_turns: Option<f64>,
    /// Sectors at the front without logical blocks; default 0.
    pub reserved_sectors: Option<u64>,
    /// Spares of a region; default 0.
    pub spares: Option<u32>,
    /// Places skipped; none by default.
    pub slips: Option<Vec<u64>>,
    /// Pairs (defective, replacement); none by default.
    pub remaps: Option<Vec<(u64, u64)>>,
}

/// `[media]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaTable {
    /// Sustained rate of user data at the outer rim.
    pub sustained_outer_rate: Option<Rate>,
    /// Sustained rate of user data at the inner rim.
    pub sustained_inner_rate: Option<Rate>,
    /// Raw rate off the head at the outer rim ("internal transfer rate").
    pub raw_outer_rate: Option<Rate>,
    /// Raw rate off the head at the inner rim.
    pub raw_inner_rate: Option<Rate>,
    /// Tracks per inch; carried, not used by the model.
    pub tracks_per_inch: Option<f64>,
    /// Maximum bits per inch of track; carried, not used by the model.
    pub bits_per_inch: Option<f64>,
    /// Gigabits per square inch; carried, not used by the model.
    pub gbit_per_square_inch: Option<f64>,
}

/// `[spindle]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpindleTable {
    /// Spindle speed.
    pub speed: Option<Rpm>,
    /// Whether reads start with the first wanted sector that passes.
    pub read_on_arrival: Option<bool>,
    /// Whether writes start with the first wanted sector that passes.
    pub write_on_arrival: Option<bool>,
}

/// `[seek]`: at most one of the four curves; without any, a curve is derived from the figures of the sheet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekTable {
    /// Mean read seek over random pairs of blocks, without overhead.
    pub read_average: Option<DurationNs>,
    /// Mean write seek.
    pub write_average: Option<DurationNs>,
    /// Read seek to the next cylinder.
    pub read_track_to_track: Option<DurationNs>,
    /// Write seek to the next cylinder.
    pub write_track_to_track: Option<DurationNs>,
    /// Read seek over all cylinders.
    pub read_full_stroke: Option<DurationNs>,
    /// Write seek over all cylinders.
    pub write_full_stroke: Option<DurationNs>,
    /// Measured points (cylinders, time), ascending.
    pub points: Option<Vec<(u32, DurationNs)>>,
    /// Ruemmler and Wilkes' two pieces.
    pub two_piece: Option<TwoPieceTable>,
    /// Lee and Katz's three parameters.
    pub three_parameter: Option<ThreeParameterTable>,
    /// Constant time for every distance.
    pub constant: Option<DurationNs>,
    /// Time to change to another surface.
    pub head_switch: Option<DurationNs>,
    /// Added to a read whenever the arm or the head moved; may be negative.
    pub read_settle: Option<DurationNs>,
    /// Added to a write whenever the arm or the head moved; may be negative.
    pub write_settle: Option<DurationNs>,
}

/// `[seek.two_piece]`: coefficients are plain nanoseconds, since a fit rarely gives whole ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwoPieceTable {
    /// Distance at which the second piece begins.
    pub boundary_cylinders: u32,
    /// Constant of the short piece.
    pub short_ns: f64,
    /// Factor of the square root.
    pub short_ns_per_sqrt: f64,
    /// Constant of the long piece.
    pub long_ns: f64,
    /// Slope of the long piece.
    pub long_ns_per_cylinder: f64,
    /// Times of the distances 1, 2, ...
    #[serde(default)]
    pub first: Vec<DurationNs>,
}

/// `[seek.three_parameter]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreeParameterTable {
    /// Single-cylinder seek.
    pub minimum: DurationNs,
    /// Mean seek.
    pub average: DurationNs,
    /// Full stroke.
    pub maximum: DurationNs,
}

/// `[queue]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueTable {
    /// Most commands that the drive holds.
    pub depth: Option<u32>,
    /// Scheduling policy.
    pub policy: Option<Policy>,
    /// Age that takes precedence; none by default.
    pub ageing: Option<DurationNs>,
    /// Share of the open commands that the policy may choose from, 0 to 1.
    pub reordering_strength: Option<f64>,
    /// Commands after the one in service whose order is fixed.
    pub committed: Option<f64>,
    /// A sector that passes within this time of the end of the seek is assumed to be missed.
    pub rotation_margin: Option<DurationNs>,
    /// Positioning time that one unit of waiting time makes up for, 0 to 1.
    pub age_weight: Option<f64>,
}

/// `[buffer]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferTable {
    /// Bytes of the buffer.
    pub size: Option<Bytes>,
    /// Number of segments.
    pub segments: Option<u32>,
    /// Physical sectors of a segment.
    pub segment_sectors: Option<u32>,
    /// How far reads continue.
    pub read_ahead: Option<ReadAhead>,
    /// Most sectors read ahead.
    pub read_ahead_max_sectors: Option<u32>,
    /// Sectors read ahead before another command is served.
    pub read_ahead_min_sectors: Option<u32>,
    /// Whether read-ahead continues after a hit.
    pub read_ahead_on_hit: Option<bool>,
    /// Whether sectors that pass before the first wanted one are kept.
    pub keep_passing_sectors: Option<bool>,
    /// Whether a read joins read-ahead that is just reading its first sector.
    pub read_hits_on_arriving: Option<bool>,
    /// Whether reads of written data are hits.
    pub read_hits_on_writes: Option<bool>,
    /// When a write is complete.
    pub write_cache: Option<WriteCache>,
    /// Most extents that may be dirty at once.
    pub dirty_extents_max: Option<u32>,
    /// Most physical sectors that may be dirty at once.
    pub dirty_sectors_max: Option<u32>,
    /// Whether writes have a segment of their own.
    pub separate_write_segment: Option<bool>,
    /// Share of a read in the buffer before it goes to the host.
    pub read_watermark: Option<f64>,
    /// Share of a write that is in the buffer before the media are written, 0 to 1.
    pub write_watermark: Option<f64>,
}

/// `[overheads]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverheadsTable {
    /// Cost of a command that goes to the media, in place of the individual kinds below.
    pub command: Option<DurationNs>,
    /// Before a read that hits.
    pub read_hit: Option<AfterTable>,
    /// Before a read that misses.
    pub read_miss: Option<AfterTable>,
    /// Before a write that appends.
    pub write_hit: Option<AfterTable>,
    /// Before any other write.
    pub write_miss: Option<AfterTable>,
    /// After a read's last byte.
    pub read_completion: Option<DurationNs>,
    /// After a write's last byte.
    pub write_completion: Option<DurationNs>,
    /// Before a transfer to the host.
    pub data_preparation: Option<DurationNs>,
    /// Earliest end of a write's arm movement.
    pub minimum_seek_delay: Option<DurationNs>,
    /// Earliest arrival of a read at its track, where the arm need not move.
    pub read_settled_min: Option<AfterTable>,
}

/// A cost by the kind of the previous command.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AfterTable {
    /// After a read.
    pub after_read: DurationNs,
    /// After a write.
    pub after_write: DurationNs,
}

/// `[interface]`: `rate`, or the two times per byte if exact times were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceTable {
    /// Kind of interface.
    pub kind: Option<InterfaceKind>,
    /// Its rate: of data, or of a serial line in bits, as sheets state it.
    pub rate: Option<LinkRate>,
    /// Time of one byte towards the host; 0 for an interface that is never the bottleneck.
    pub read_ns_per_byte: Option<f64>,
    /// Time of one byte towards the drive.
    pub write_ns_per_byte: Option<f64>,
    /// Most commands that the host keeps in the drive.
    pub host_tags: Option<u32>,
    /// Order of the host's own queue.
    pub host_elevator: Option<Policy>,
    /// Host of a drive that is a system of its own; by default one that takes no time.
    pub host: Option<HostProfile>,
    /// Costs of releasing the bus; by default the drive stays connected.
    pub disconnect: Option<DisconnectTable>,
}

/// `[interface.disconnect]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisconnectTable {
    /// Time to release the bus after a read command.
    pub read: AfterTable,
    /// Time to release the bus after a write's data.
    pub write: DurationNs,
    /// Time to reacquire the bus, first time.
    pub first_reselect: DurationNs,
    /// Time to reacquire the bus, later times.
    pub other_reselect: DurationNs,
    /// A second disconnection within a write.
    pub extra: Option<ExtraDisconnectTable>,
}

/// `[interface.disconnect.extra]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraDisconnectTable {
    /// Command overhead in place of the usual one.
    pub command: DurationNs,
    /// First disconnection.
    pub disconnect: DurationNs,
    /// Time off the bus.
    pub between: DurationNs,
    /// Second disconnection.
    pub second_disconnect: DurationNs,
    /// Added to the seek.
    pub seek_delta: DurationNs,
}

/// `[slow]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowTable {
    /// Retries of media accesses.
    pub retries: Option<RetriesTable>,
    /// Thermal recalibration.
    pub recalibration: Option<RecalibrationTable>,
    /// Background media scan.
    pub scan: Option<ScanTable>,
    /// Whether each write is read back one turn later; default off.
    pub write_verify: Option<bool>,
}

/// `[slow.retries]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetriesTable {
    /// Probability that a pass over a track fails.
    pub probability: f64,
    /// Passes after which the drive gives up.
    pub passes_max: u32,
}

/// `[slow.recalibration]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecalibrationTable {
    /// Time between two starts.
    pub interval: DurationNs,
    /// Duration.
    pub duration: DurationNs,
}

/// `[slow.scan]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanTable {
    /// Idle time before it starts.
    pub idle: DurationNs,
    /// Sectors of one step.
    pub step_sectors: u32,
}

/// `[power]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerTable {
    /// Idle power with the spindle turning, in W.
    pub idle_w: Option<f64>,
    /// Power while reading randomly one request after the other, or without a pause, in W.
    pub active_w: Option<f64>,
    /// Part of the idle power that the electronics consume, in W.
    pub electronics_w: Option<f64>,
    /// Part of the idle power that the spindle consumes, in W.
    pub spindle_w: Option<f64>,
    /// Additional power while the arm moves, in W.
    pub seek_w: Option<f64>,
    /// Additional power while data pass the heads, in W.
    pub transfer_w: Option<f64>,
    /// Power with the spindle at rest, in W.
    pub standby_w: Option<f64>,
    /// Energy of the drive during a spin-down, in J.
    pub spin_down_j: Option<f64>,
    /// Duration of a spin-down.
    pub spin_down: Option<DurationNs>,
    /// Energy of the drive during a spin-up, in J.
    pub spin_up_j: Option<f64>,
    /// Duration of a spin-up.
    pub spin_up: Option<DurationNs>,
    /// Time without work after which the spindle stops; never by default.
    pub idle_timeout: Option<DurationNs>,
    /// Temperature of the air around the drive, in °C.
    pub ambient_celsius: Option<f64>,
    /// Temperature rise of the case above the air, in K/W.
    pub airflow_k_per_w: Option<f64>,
}

/// `[reliability]`
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
