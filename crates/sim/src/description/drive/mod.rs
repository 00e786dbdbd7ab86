//! [`DriveDescription`]: the full description of a disk drive, with every value that the model needs. See
//! docs/design/disks.md.
//!
//! The catalogue (from TOML, with rules that derive values missing from a data sheet) and the importer of DiskSim
//! parameters create descriptions. Times are in nanoseconds; lengths are in physical sectors unless the name states
//! another unit.

mod assists;
mod slow;

pub use super::policy::Policy;

use serde::{Deserialize, Serialize};

use super::adapter::AdapterDescription;
pub use super::power::{Power, SpinChange};
pub use assists::{FlashCache, MediaCache, Shingles};
pub use slow::{BackgroundScan, Recalibration, Retries, SlowProcesses};

/// A disk drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveDescription {
    /// Product name, for display.
    pub name: String,
    /// Geometry: the location of each sector.
    pub geometry: Geometry,
    /// Mechanics of arm and spindle.
    pub mechanics: Mechanics,
    /// Command queue and scheduling.
    pub queue: Queue,
    /// Buffer: segments, read-ahead, write cache.
    pub buffer: Buffer,
    /// Fixed overheads of a command.
    pub overheads: Overheads,
    /// Connection to the host.
    pub interface: Interface,
    /// Slow processes that cause tail latency; all are off by default.
    pub slow: SlowProcesses,
    /// Flash that caches reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash_cache: Option<FlashCache>,
    /// Part of the media that stores random writes in order of arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_cache: Option<MediaCache>,
    /// Overlapping tracks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shingles: Option<Shingles>,
    /// Power and cooling; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// Number of independent actuators. Each has an equal share of the heads and of the blocks, in order; all share one
    /// port and one queue.
    #[serde(default = "default_one", skip_serializing_if = "is_one")]
    pub actuators: u32,
}

fn default_one() -> u32 {
    1
}

fn is_one(actuators: &u32) -> bool {
    *actuators == 1
}

/// Surfaces, zones and the order of logical blocks over them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Logical block size in bytes: 512, or 4096 for 4Kn.
    pub logical_block_bytes: u32,
    /// Physical sector size in bytes: 512, or 4096 for 512e and 4Kn.
    pub physical_sector_bytes: u32,
    /// Number of exported logical blocks, at most the capacity of the zones.
    pub logical_blocks: u64,
    /// Number of recording surfaces.
    pub heads: u32,
    /// Number of cylinders, including spare and unused cylinders.
    pub cylinders: u32,
    /// Order of logical blocks over heads and cylinders.
    pub order: BlockOrder,
    /// Location of spare sectors.
    pub sparing: Sparing,
    /// Zones from the outer rim inwards, in ascending order and without overlap.
    pub zones: Vec<Zone>,
}

/// Order of logical blocks over the tracks of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum BlockOrder {
    /// All heads of a cylinder, then the next cylinder.
    CylinderMajor,
    /// Like `CylinderMajor`, but with reversed head order on odd cylinders, counted from the first of the zone.
    SerpentineInZone,
    /// Like `CylinderMajor`, but with reversed head order on odd cylinders of the disk.
    Serpentine,
    /// One head over all cylinders of a band, then the next head over the same band in the opposite direction (Fujitsu
    /// MAN/MAS/MAP "cells"; most drives since about 2005).
    SurfaceSerpentine {
        /// Number of cylinders of a band.
        band_cylinders: u32,
    },
}

impl BlockOrder {
    /// All kinds, with a usual band width.
    pub const ALL: [BlockOrder; 4] = [
        BlockOrder::CylinderMajor,
        BlockOrder::SerpentineInZone,
        BlockOrder::Serpentine,
        BlockOrder::SurfaceSerpentine { band_cylinders: 64 },
    ];
}

/// Location of spare sectors and treatment of slipped defects: the eleven schemes of DiskSim 4.0's layout g1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sparing {
    /// No spares (scheme 0).
    None,
    /// Whole spare tracks at the end of each zone; slips and remaps count tracks (1).
    TracksAtZoneEnd,
    /// At the end of each cylinder (2).
    CylinderEnd,
    /// At the end of each track (3).
    TrackEnd,
    /// At the end of each cylinder; not used by slips (4).
    CylinderEndSlipsApart,
    /// At the front of each cylinder (5).
    CylinderFront,
    /// At the front of each cylinder; not used by slips (6).
    CylinderFrontSlipsApart,
    /// At the end of the disk (7).
    DiskEnd,
    /// At the end of each range of cylinders (8).
    RangeEnd {
        /// Number of cylinders of a range.
        cylinders: u32,
    },
    /// At the end of each zone (9).
    ZoneEnd,
    /// At the end of each zone; not used by slips (10).
    ZoneEndSlipsApart,
}

/// A zone: cylinders with the same number of sectors per track.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder, inclusive.
    pub last_cylinder: u32,
    /// Physical sectors per track, including spares.
    pub sectors_per_track: u32,
    /// Angle of the first sector of the zone, in turns.
    pub offset_turns: f64,
    /// Skew added at each head switch, in turns.
    pub track_skew_turns: f64,
    /// Skew added at each cylinder switch, in turns.
    pub cylinder_skew_turns: f64,
    /// Number of sectors at the start of the zone that hold no logical blocks.
    pub reserved_sectors: u64,
    /// Number of spares of a region (track, cylinder, range or zone, depending on the sparing scheme), in sectors, or
    /// in tracks for `TracksAtZoneEnd`.
    pub spares: u32,
    /// Slipped locations, ascending: sectors (or tracks) counted from the start of the zone.
    pub slips: Vec<u64>,
    /// Pairs of (defective, replacement), numbered like `slips`.
    pub remaps: Vec<(u64, u64)>,
}

/// Mechanics of spindle, arm and heads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mechanics {
    /// Spindle speed, in revolutions per minute.
    pub rpm: f64,
    /// Seek time of reads as a function of the distance in cylinders, including the read settle time.
    pub seek: SeekCurve,
    /// Time added to a read after an arm movement or head switch; 0 if the curve includes this time.
    pub read_settle_ns: i64,
    /// Time added to a write after an arm movement or head switch; may be negative (DEC RZ26).
    pub write_settle_ns: i64,
    /// Time to switch to another surface.
    pub head_switch_ns: u64,
    /// Whether reads start with the first requested sector that passes the head, rather than with the first sector of
    /// the request (zero latency).
    pub read_on_arrival: bool,
    /// Whether writes start with the first requested sector that passes the head.
    pub write_on_arrival: bool,
}

/// Seek time as a function of distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SeekCurve {
    /// Measured points (cylinders, ns) by ascending distance, interpolated linearly. Below the first point, the line
    /// starts at (0, 0); above the last, it continues through the last two points. Need not be monotonic.
    Points(Vec<(u32, u64)>),
    /// Ruemmler and Wilkes 1994: `short_ns + short_ns_per_sqrt * sqrt(d)` below `boundary_cylinders`, else `long_ns +
    /// long_ns_per_cylinder * d`. Values in `first_ns` replace the formula for distances 1, 2, ...
    TwoPiece {
        /// Distance at which the second piece begins.
        boundary_cylinders: u32,
        /// Constant term of the short piece.
        short_ns: f64,
        /// Factor of the square root.
        short_ns_per_sqrt: f64,
        /// Constant term of the long piece.
        long_ns: f64,
        /// Slope of the long piece.
        long_ns_per_cylinder: f64,
        /// Seek times for distances 1, 2, ...
        first_ns: Vec<u64>,
    },
    /// Lee and Katz 1993: `a sqrt(d - 1) + b (d - 1) + c` from minimum, mean and maximum. This curve overstates the
    /// benefit of short-stroking; prefer a measured curve if there is one.
    ThreeParameter {
        /// Single-cylinder seek time.
        minimum_ns: u64,
        /// Mean seek time over uniform random pairs.
        average_ns: u64,
        /// Full-stroke seek time.
        maximum_ns: u64,
    },
    /// The same time for every distance above 0.
    Constant(u64),
}

/// The command queue of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Maximum number of commands in the drive: 1 without queueing, 2 to 256 with TCQ, 32 with NCQ.
    pub depth: u32,
    /// Policy that selects the next command.
    pub policy: Policy,
    /// Age from which a command is served before any younger command; `None` for no limit.
    pub ageing_ns: Option<u64>,
    /// Share of the queued commands that the policy may choose from, 0 to 1: of `n` commands, the oldest `1 + strength
    /// * (n - 1)`, on average if this is not a whole number. 0 is FCFS, 1 is the ideal policy.
    pub reordering_strength: f64,
    /// Number of commands after the current one whose order the firmware has already fixed. The policy chooses among
    /// the other commands, for the position of the arm after the fixed ones. May be fractional (an average). With 0,
    /// the firmware chooses among all waiting commands at each completion.
    #[serde(default)]
    pub committed: f64,
    /// Margin of the firmware's seek estimate: if a sector would pass within this time after the end of the seek, the
    /// firmware expects to miss it and adds a turn.
    #[serde(default)]
    pub rotation_margin_ns: u64,
    /// Positioning time that one unit of waiting time compensates for in the choice.
    #[serde(default)]
    pub age_weight: f64,
}

impl Queue {
    /// No queueing: one command at a time, in order of arrival.
    pub const NONE: Queue = Queue {
        depth: 1,
        policy: Policy::Fcfs,
        ageing_ns: None,
        reordering_strength: 1.0,
        committed: 0.0,
        rotation_margin_ns: 0,
        age_weight: 0.0,
    };
}

impl ExtraDisconnect {
    /// Returns how many sectors of a write of `sectors` must be in the buffer before the media write starts: 10, or 15
    /// for a write of 45 sectors or more, as in DiskSim's model of these drives.
    pub fn prefill_sectors(&self, sectors: u32) -> u32 {
        if sectors < 45 { sectors.min(10) } else { 15 }
    }
}

/// The buffer: read segments with read-ahead and a write cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Number of segments; 0 for no caching.
    pub segments: u32,
    /// Size of a segment, in physical sectors.
    pub segment_sectors: u32,
    /// How far the drive reads ahead after a request.
    pub read_ahead: ReadAhead,
    /// Maximum number of sectors read ahead after the end of the request.
    pub read_ahead_max_sectors: u32,
    /// Minimum number of sectors read ahead before another command is served.
    pub read_ahead_min_sectors: u32,
    /// Whether read-ahead continues after a buffer hit.
    pub read_ahead_on_hit: bool,
    /// Whether sectors that pass before the first requested sector are kept (needs `read_on_arrival`).
    pub keep_passing_sectors: bool,
    /// Whether a read counts as a hit if read-ahead is currently reading its first sector (DiskSim's "almost read
    /// hit").
    pub read_hits_on_arriving: bool,
    /// Whether reads of data that a write left in the buffer are hits.
    pub read_hits_on_writes: bool,
    /// When a write is complete for the host.
    pub write_cache: WriteCache,
    /// Maximum number of dirty extents: few in SCSI drives of the 1990s (1 to 3), hundreds in later drives.
    pub dirty_extents_max: u32,
    /// Maximum number of dirty physical sectors.
    pub dirty_sectors_max: u32,
    /// Whether writes use a separate segment.
    pub separate_write_segment: bool,
    /// Share of a read (0 to 1) that must be in the buffer before the transfer to the host starts.
    pub read_watermark: f64,
    /// Share of a write (0 to 1) that must be in the buffer before the media write starts. The rest arrives while the
    /// media turn, always in time.
    #[serde(default = "Buffer::whole_write")]
    pub write_watermark: f64,
}

impl Buffer {
    /// Returns the default watermark: the media write waits for all data.
    pub fn whole_write() -> f64 {
        1.0
    }
}

/// How far a read continues after the last requested sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReadAhead {
    /// No read-ahead.
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the next track after a sequential stream was detected, else to the end of the current track.
    TrackAfterSequential,
}

impl ReadAhead {
    /// All variants.
    pub const ALL: [ReadAhead; 5] =
        [ReadAhead::None, ReadAhead::Track, ReadAhead::Cylinder, ReadAhead::Segment, ReadAhead::TrackAfterSequential];
}

/// When a write is complete for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum WriteCache {
    /// When the data are on the media.
    Off,
    /// Early if the drive has no other command, or if the write appends to a dirty extent.
    Appending,
    /// When the data are in the buffer.
    On,
    /// Like [`Self::On`], but the buffer survives a power loss: flushes and forced writes do not wait for the media,
    /// and the cache cannot be switched off (nearline drives since about 2013, which save the buffer to flash).
    Protected,
}

impl WriteCache {
    /// All variants.
    pub const ALL: [WriteCache; 4] = [WriteCache::Off, WriteCache::Appending, WriteCache::On, WriteCache::Protected];
}

/// Fixed overheads of a command, in ns. Most depend on the previous command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overheads {
    /// Overhead before a read that hits the buffer.
    pub read_hit_ns: AfterReadWrite,
    /// Overhead before a read that goes to the media.
    pub read_miss_ns: AfterReadWrite,
    /// Overhead before a write that appends to data in the buffer.
    pub write_hit_ns: AfterReadWrite,
    /// Overhead before any other write.
    pub write_miss_ns: AfterReadWrite,
    /// Time from the last byte of a read to its completion on the host.
    pub read_completion_ns: u64,
    /// Time from the last byte of a write to its completion on the host.
    pub write_completion_ns: u64,
    /// Overhead before a data transfer to the host, once the sectors are in the buffer.
    pub data_preparation_ns: u64,
    /// Minimum time from the decoding of a write command to the end of the arm movement.
    pub minimum_seek_delay_ns: u64,
    /// Minimum time from the decoding of a read command to the arrival of the arm at the track. Only matters if the arm
    /// need not move: a seek curve measured through the interface includes firmware time in its seeks, so the read
    /// overheads extracted with this curve are too short for an access without a seek.
    pub read_settled_min_ns: AfterReadWrite,
}

/// An overhead that depends on the kind of the previous command, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AfterReadWrite {
    /// Overhead after a read.
    pub after_read: u64,
    /// Overhead after a write.
    pub after_write: u64,
}

impl AfterReadWrite {
    /// Returns the overhead after a read or after a write.
    #[inline]
    pub fn after(&self, read: bool) -> u64 {
        if read { self.after_read } else { self.after_write }
    }
}

/// The interface between buffer and host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Kind of interface.
    pub kind: InterfaceKind,
    /// Transfer time per byte to the host; 0 for an interface that is never the bottleneck.
    pub read_ns_per_byte: f64,
    /// Transfer time per byte to the drive.
    pub write_ns_per_byte: f64,
    /// Maximum number of commands that the host keeps in the drive (tags of its driver or adapter).
    pub host_tags: u32,
    /// Order in which the host submits the commands that wait for a tag.
    pub host_elevator: Policy,
    /// Host adapter and driver if the drive is a complete system; `None` adds no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<AdapterDescription>,
    /// Overheads of releasing and reacquiring the bus within a command; `None` if the drive stays connected.
    pub disconnect: Option<Disconnect>,
}

/// Kind of interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum InterfaceKind {
    /// Parallel SCSI.
    Scsi,
    /// Parallel ATA.
    Ata,
    /// Serial ATA.
    Sata,
    /// Serial attached SCSI.
    Sas,
    /// Fibre Channel arbitrated loop.
    Fc,
}

impl InterfaceKind {
    /// All variants.
    pub const ALL: [InterfaceKind; 5] =
        [InterfaceKind::Scsi, InterfaceKind::Ata, InterfaceKind::Sata, InterfaceKind::Sas, InterfaceKind::Fc];
}

/// Disconnection overheads of a parallel bus, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disconnect {
    /// Time to release the bus after a read command, depending on the previous command.
    pub read_ns: AfterReadWrite,
    /// Time to release the bus after a write's data.
    pub write_ns: u64,
    /// Time of the first reacquisition of the bus within a command.
    pub first_reselect_ns: u64,
    /// Time of each further reacquisition of the bus.
    pub other_reselect_ns: u64,
    /// Second disconnection within a write; `None` for drives without it.
    pub extra: Option<ExtraDisconnect>,
}

/// A second disconnection within a write, between command and data (HP C2247A).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraDisconnect {
    /// Command overhead, which replaces the usual value.
    pub command_ns: u64,
    /// Time of the first disconnection.
    pub disconnect_ns: u64,
    /// Time off the bus, between the two disconnections.
    pub between_ns: u64,
    /// Time of the second disconnection.
    pub second_disconnect_ns: u64,
    /// Time added to the seek of such a write.
    pub seek_delta_ns: u64,
}
