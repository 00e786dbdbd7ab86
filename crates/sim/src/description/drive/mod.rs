//! [`DriveDescription`]: a disk drive, fully resolved: every number that the model needs, so that it guesses none. See
//! docs/design/disks.md.
//!
//! The catalogue (from TOML, with derivation rules for values that a data sheet leaves out) and the importer of DiskSim
//! parameters create descriptions. Times are nanoseconds, lengths are physical sectors unless a name says otherwise.

mod assists;
mod slow;

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
    /// Place of each sector.
    pub geometry: Geometry,
    /// Motion of arm and spindle.
    pub mechanics: Mechanics,
    /// Command queue and its scheduling.
    pub queue: Queue,
    /// Segments, read-ahead, write cache.
    pub buffer: Buffer,
    /// Fixed costs of a command.
    pub overheads: Overheads,
    /// Connection to the host.
    pub interface: Interface,
    /// Slow processes that form the far tail; all off by default.
    pub slow: SlowProcesses,
    /// Flash that serves reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash_cache: Option<FlashCache>,
    /// Media that take random writes in order of arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_cache: Option<MediaCache>,
    /// Overlapping tracks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shingles: Option<Shingles>,
    /// Power and cooling; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// Independent arms, each with its share of the heads and of the blocks, in order; all behind one port and one
    /// queue.
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
    /// Bytes of a logical block: 512, or 4096 for 4Kn.
    pub logical_block_bytes: u32,
    /// Bytes of a physical sector: 512, or 4096 for 512e and 4Kn.
    pub physical_sector_bytes: u32,
    /// Logical blocks that the drive exports, not more than the zones hold.
    pub logical_blocks: u64,
    /// Recording surfaces.
    pub heads: u32,
    /// Cylinders, spare and unused ones included.
    pub cylinders: u32,
    /// Order of logical blocks over heads and cylinders.
    pub order: BlockOrder,
    /// Place of spare sectors.
    pub sparing: Sparing,
    /// Zones from the outer rim inwards, ascending and without overlap.
    pub zones: Vec<Zone>,
}

/// Order in which logical blocks run over the tracks of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum BlockOrder {
    /// All heads of a cylinder, then the next cylinder.
    CylinderMajor,
    /// Like `CylinderMajor`, odd cylinders (counted from the zone's first) in reversed head order.
    SerpentineInZone,
    /// Like `CylinderMajor`, odd cylinders (absolute) in reversed head order.
    Serpentine,
    /// A single head over all cylinders of a band of `band_cylinders`, then the next head over the same band in the
    /// opposite direction (Fujitsu MAN/MAS/MAP "cells"; most drives since about 2005).
    SurfaceSerpentine {
        /// Cylinders of a band.
        band_cylinders: u32,
    },
}

impl BlockOrder {
    /// Every kind, with a usual band.
    pub const ALL: [BlockOrder; 4] = [
        BlockOrder::CylinderMajor,
        BlockOrder::SerpentineInZone,
        BlockOrder::Serpentine,
        BlockOrder::SurfaceSerpentine { band_cylinders: 64 },
    ];
}

/// Place of spare sectors and handling of slipped defects: the eleven schemes of DiskSim 4.0's layout g1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sparing {
    /// No spares (scheme 0).
    None,
    /// Whole spare tracks at the end of each zone; slips and remaps name tracks (1).
    TracksAtZoneEnd,
    /// At the end of each cylinder (2).
    CylinderEnd,
    /// At the end of each track (3).
    TrackEnd,
    /// At the end of each cylinder; slips do not use them (4).
    CylinderEndSlipsApart,
    /// At the front of each cylinder (5).
    CylinderFront,
    /// At the front of each cylinder; slips do not use them (6).
    CylinderFrontSlipsApart,
    /// At the end of the disk (7).
    DiskEnd,
    /// At the end of each range of cylinders (8).
    RangeEnd {
        /// Cylinders of a range.
        cylinders: u32,
    },
    /// At the end of each zone (9).
    ZoneEnd,
    /// At the end of each zone; slips do not use them (10).
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
    /// Physical sectors of a track, spares included.
    pub sectors_per_track: u32,
    /// Angle of the zone's first sector, in turns.
    pub offset_turns: f64,
    /// Skew added at each change of head, in turns.
    pub track_skew_turns: f64,
    /// Skew added at each change of cylinder, in turns.
    pub cylinder_skew_turns: f64,
    /// Sectors at the zone's front that hold no logical block.
    pub reserved_sectors: u64,
    /// Spares of a region (track, cylinder, range or zone by the sparing scheme): sectors, or tracks for
    /// `TracksAtZoneEnd`.
    pub spares: u32,
    /// Places skipped by the map, ascending: sectors (or tracks) counted from the zone's start.
    pub slips: Vec<u64>,
    /// (Defective, replacement), numbered as the slips.
    pub remaps: Vec<(u64, u64)>,
}

/// Mechanics of spindle, arm and heads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mechanics {
    /// Spindle speed.
    pub rpm: f64,
    /// Seek time for reads over the distance in cylinders, read settle included.
    pub seek: SeekCurve,
    /// Added to a read whenever the arm or the head moved (0 where the curve includes it).
    pub read_settle_ns: i64,
    /// Added to a write whenever the arm or the head moved; may be negative (DEC RZ26).
    pub write_settle_ns: i64,
    /// Time to change to another surface.
    pub head_switch_ns: u64,
    /// Whether reads start with the first wanted sector that passes rather than with the first of the request (zero
    /// latency).
    pub read_on_arrival: bool,
    /// Whether writes start with the first wanted sector that passes.
    pub write_on_arrival: bool,
}

/// Seek time as a function of distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SeekCurve {
    /// Measured points (cylinders, ns) by ascending distance: linear in between, from (0, 0) below the first, along the
    /// last two above the last. Need not be monotonic.
    Points(Vec<(u32, u64)>),
    /// Ruemmler and Wilkes 1994: `short_ns + short_ns_per_sqrt * sqrt(d)` below `boundary_cylinders`, else
    /// `long_ns + long_ns_per_cylinder * d`; `first_ns` overrides the distances 1, 2, ...
    TwoPiece {
        /// Distance at which the second piece begins.
        boundary_cylinders: u32,
        /// Constant of the short piece.
        short_ns: f64,
        /// Factor of the square root.
        short_ns_per_sqrt: f64,
        /// Constant of the long piece.
        long_ns: f64,
        /// Slope of the long piece.
        long_ns_per_cylinder: f64,
        /// Tabulated times of the distances 1, 2, ...
        first_ns: Vec<u64>,
    },
    /// Lee and Katz 1993: `a sqrt(d - 1) + b (d - 1) + c` from minimum, mean and maximum. It overstates the gain of
    /// short-stroking; prefer a measured shape where there is one.
    ThreeParameter {
        /// Single-cylinder seek.
        minimum_ns: u64,
        /// Mean seek over uniform random pairs.
        average_ns: u64,
        /// Full stroke.
        maximum_ns: u64,
    },
    /// Constant time for every distance above 0.
    Constant(u64),
}

/// The drive's command queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Commands the drive holds at once: 1 without queueing, TCQ 2 to 256, NCQ 32.
    pub depth: u32,
    /// Which queued command is served next.
    pub policy: Policy,
    /// A command older than this is served before any younger one; `None` for no such limit.
    pub ageing_ns: Option<u64>,
    /// Share of the open commands that the policy may choose from, 0 to 1: of `n` commands the oldest `1 + strength *
    /// (n - 1)`, on average where that is not whole. 0 is FCFS, 1 the ideal policy.
    pub reordering_strength: f64,
    /// Number of commands after the one in service to which the firmware has committed itself: they keep their order,
    /// and the policy chooses among the rest for where the arm will be then. An average where it is not whole; 0 is a
    /// choice at each completion among all that wait.
    #[serde(default)]
    pub committed: f64,
    /// The firmware adds a turn for a sector that would pass within this time of the end of the seek, because its
    /// estimate of the seek is no more precise.
    #[serde(default)]
    pub rotation_margin_ns: u64,
    /// Positioning time that one unit of waiting time makes up for in the choice.
    #[serde(default)]
    pub age_weight: f64,
}

/// Scheduling policy of a drive's queue or of the host's elevator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Policy {
    /// First come, first served.
    Fcfs,
    /// Shortest seek (distance in cylinders) first.
    Sstf,
    /// Sweep in both directions, turning at the last request.
    Look,
    /// Sweep in ascending order, then jump back to the lowest.
    CLook,
    /// Shortest positioning time (seek and rotation) first.
    Sptf,
}

impl Queue {
    /// No queueing: a single command at a time, in order of arrival.
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

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 5] = [Policy::Fcfs, Policy::Sstf, Policy::Look, Policy::CLook, Policy::Sptf];
}

impl ExtraDisconnect {
    /// Returns how many sectors of a write of `sectors` must be in the buffer before the media are written: 10, or 15
    /// of a long write (45 sectors), as in DiskSim's model of these drives.
    pub fn prefill_sectors(&self, sectors: u32) -> u32 {
        if sectors < 45 { sectors.min(10) } else { 15 }
    }
}

/// The buffer: read segments with read-ahead and a write cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Number of segments; 0 for no caching at all.
    pub segments: u32,
    /// Physical sectors of a segment.
    pub segment_sectors: u32,
    /// How far reads are continued after the request.
    pub read_ahead: ReadAhead,
    /// Most sectors read ahead of the request's end.
    pub read_ahead_max_sectors: u32,
    /// Fewest sectors read ahead before another command is served.
    pub read_ahead_min_sectors: u32,
    /// Whether read-ahead continues after a command that was served from the buffer.
    pub read_ahead_on_hit: bool,
    /// Whether sectors that pass before the first wanted one are kept (needs `read_on_arrival`).
    pub keep_passing_sectors: bool,
    /// Whether a read joins read-ahead that is just reading its first sector (DiskSim's "almost read hit").
    pub read_hits_on_arriving: bool,
    /// Whether reads of data that a write left in the buffer are hits.
    pub read_hits_on_writes: bool,
    /// When a write is complete for the host.
    pub write_cache: WriteCache,
    /// Most extents that may be dirty at once. Few in SCSI drives of the 1990s (1 to 3), hundreds in later ones.
    pub dirty_extents_max: u32,
    /// Most physical sectors that may be dirty at once.
    pub dirty_sectors_max: u32,
    /// Whether writes have a segment of their own, separate from those of reads.
    pub separate_write_segment: bool,
    /// Share of a read (0 to 1) that must be in the buffer before it goes to the host.
    pub read_watermark: f64,
    /// Share of a write (0 to 1) that must be in the buffer before the media are written; the rest arrives while they
    /// turn, never later than it is needed.
    #[serde(default = "Buffer::whole_write")]
    pub write_watermark: f64,
}

impl Buffer {
    /// Returns the default watermark: the media wait for all of a write.
    pub fn whole_write() -> f64 {
        1.0
    }
}

/// How far a read continues after the last requested sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReadAhead {
    /// Not at all.
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the next track once a sequential stream has been seen, else to the end of this one.
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
    /// Once it is on the media.
    Off,
    /// Early for a write that finds the drive without another command or that appends to a dirty extent.
    Appending,
    /// Once it is in the buffer.
    On,
    /// Like [`Self::On`], but the buffer survives a power loss: a flush or a forced write does not wait for the media,
    /// and the cache cannot be switched off (nearline drives since about 2013, which save it to flash).
    Protected,
}

impl WriteCache {
    /// All variants.
    pub const ALL: [WriteCache; 4] = [WriteCache::Off, WriteCache::Appending, WriteCache::On, WriteCache::Protected];
}

/// Fixed costs of a command, each of which depends on the previous command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overheads {
    /// Before a read that hits the buffer, after a read / after a write.
    pub read_hit_ns: AfterReadWrite,
    /// Before a read that goes to the media.
    pub read_miss_ns: AfterReadWrite,
    /// Before a write that appends to data in the buffer.
    pub write_hit_ns: AfterReadWrite,
    /// Before any other write.
    pub write_miss_ns: AfterReadWrite,
    /// After the last byte of a read, before the host sees its completion.
    pub read_completion_ns: u64,
    /// After the last byte of a write.
    pub write_completion_ns: u64,
    /// Before a transfer of data to the host, once its sectors are there.
    pub data_preparation_ns: u64,
    /// Earliest end of a write's arm movement, counted from the decoding of its command.
    pub minimum_seek_delay_ns: u64,
    /// Earliest arrival of a read at its track, counted from the command. It matters where the arm need not move: a
    /// seek curve that was measured through the interface includes the firmware's time in its seeks, so that the read
    /// overheads extracted with it are too short for an access without a seek.
    pub read_settled_min_ns: AfterReadWrite,
}

/// A cost that depends on the kind of the previous command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AfterReadWrite {
    /// After a read.
    pub after_read: u64,
    /// After a write.
    pub after_write: u64,
}

impl AfterReadWrite {
    /// Returns the cost after a read, or after a write.
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
    /// Time of one byte towards the host; 0 for an interface that is never the bottleneck.
    pub read_ns_per_byte: f64,
    /// Time of one byte towards the drive.
    pub write_ns_per_byte: f64,
    /// Most commands that the host keeps in the drive (the tags of its driver or adapter).
    pub host_tags: u32,
    /// Order in which the host submits commands that exceed these.
    pub host_elevator: Policy,
    /// Driver and host adapter of a drive that is a system of its own; `None` adds no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<AdapterDescription>,
    /// Costs of releasing and reacquiring the bus within a command; `None` where the drive stays connected.
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

/// Disconnection costs of a parallel bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disconnect {
    /// Time to release the bus after a read command that follows a read / a write.
    pub read_ns: AfterReadWrite,
    /// Time to release the bus after a write's data.
    pub write_ns: u64,
    /// Time to reacquire the bus, first time in a command.
    pub first_reselect_ns: u64,
    /// Time to reacquire the bus, later times.
    pub other_reselect_ns: u64,
    /// A second disconnection within a write, for drives that do one.
    pub extra: Option<ExtraDisconnect>,
}

/// A write with a second disconnection, between command and data (HP C2247A).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraDisconnect {
    /// Command overhead in place of the usual one.
    pub command_ns: u64,
    /// First disconnection.
    pub disconnect_ns: u64,
    /// Time off the bus.
    pub between_ns: u64,
    /// Second disconnection.
    pub second_disconnect_ns: u64,
    /// Added to the seek of such a write.
    pub seek_delta_ns: u64,
}
