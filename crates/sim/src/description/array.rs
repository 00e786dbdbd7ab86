//! [`ArrayDescription`]: an array, fully resolved: its members, their links, the layout of blocks, and the controller
//! in front.
//!
//! Descriptions are created by the catalogue. Times are nanoseconds, lengths bytes, positions in lists `u32`.

pub use headstack_cache::CachePolicy;
use headstack_workload::Span;
use serde::{Deserialize, Serialize};

use super::adapter::AdapterDescription;
use super::device::DeviceDescription;
pub use super::level::{Level, Rotation, SmallWrites};
use super::link::LinkDescription;
use super::pool::PoolDescription;

/// Drives behind a controller. It exports LUNs; its address space is the LUNs one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayDescription {
    /// Its name, for people.
    pub name: String,
    /// The kinds of devices in it.
    pub devices: Vec<DeviceDescription>,
    /// Its members, spares included.
    pub members: Vec<Member>,
    /// The links between members, controller and host.
    pub links: Vec<LinkDescription>,
    /// How the spindles of its disks turn relative to each other.
    pub spindles: Spindles,
    /// How blocks lie on members.
    pub groups: Vec<Group>,
    /// LUNs, in address order.
    pub luns: Vec<Lun>,
    /// Processing in front of the members.
    pub controller: Controller,
    /// The links between host and controller, from the host on; data pass all of them.
    pub host_links: Vec<u32>,
    /// Failures and their times, ascending.
    pub incidents: Vec<Incident>,
}

/// Phase and speed of the spindles of an array's disks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spindles {
    /// All turn in phase at the stated speed (rotational position locking of SCSI, drives of about 1990 to 2003); otherwise
    /// each has a phase and a speed of its own.
    pub synchronized: bool,
    /// Largest relative difference between a spindle's speed and the stated speed; speeds are uniform within it.
    pub speed_tolerance: f64,
}

impl Spindles {
    /// Largest speed tolerance that is allowed: a drive whose servo marks are so far off cannot read.
    pub const TOLERANCE_MAX: f64 = 0.02;

    /// All spindles in phase, at their stated speeds.
    pub const SYNCHRONIZED: Spindles = Spindles { synchronized: true, speed_tolerance: 0.0 };
}

/// A device in the array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its name in results and incidents, such as `d3`.
    pub name: String,
    /// Index in `devices`.
    pub device: u32,
    /// The paths between controller and member, each a list of links: one, or several that commands use in turn
    /// (multipath). An empty path has no shared link.
    pub ways: Vec<Vec<u32>>,
}

/// Members under one RAID level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// How data and redundancy are spread.
    pub level: Level,
    /// The members, in the order of the layout. A nested level takes them in runs of `members / spans`.
    pub members: Vec<u32>,
    /// Equal sub-groups over which stripes are dealt: 1, or more for RAID 50 and 60.
    pub spans: u32,
    /// Bytes on one member before the next is used.
    pub stripe_unit_bytes: u64,
    /// Rotation of parity from stripe to stripe.
    pub rotation: Rotation,
    /// Bytes used of each member.
    pub member_bytes: u64,
    /// Bytes of a record on levels that keep records; their stripe unit is the sector. 0 on others.
    pub record_bytes: u64,
    /// How a write smaller than a stripe keeps parity true.
    pub small_writes: SmallWrites,
    /// Which copy a read takes.
    pub mirror_reads: MirrorReads,
    /// Members that stand by.
    pub spares: Vec<u32>,
    /// How a spare is filled.
    pub rebuild: Rebuild,
    /// Blocks are placed on their first write, in write order; absent if every block has a fixed place.
    pub pool: Option<PoolDescription>,
    /// Write-intent bitmap (Linux md); absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bitmap: Option<Bitmap>,
}

/// A write-intent bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bitmap {
    /// Bytes of a member per bit.
    pub chunk_bytes: u64,
    /// Between two passes of the daemon that clears bits; the second that finds a chunk unused clears its bit.
    pub daemon_ns: u64,
    /// Idle time after which an array is marked clean; the next write then waits for its superblock.
    pub safe_mode_ns: u64,
}

/// Which copy a read takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MirrorReads {
    /// The first that is there.
    Primary,
    /// In turn.
    RoundRobin,
    /// The member with the fewest commands, among equals in turn.
    ShortestQueue,
    /// The member with the fewest commands, among equals the one whose last command was nearest.
    #[default]
    Nearest,
}

/// How a spare is filled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rebuild {
    /// Bytes of each member that one step rebuilds.
    pub step_bytes: u64,
    /// Steps under way at once.
    pub steps: u32,
    /// Largest rate in bytes of the spare per second; unlimited if absent.
    pub rate_limit_bytes_per_s: Option<f64>,
    /// Idle time after a host request before the next step, as a share of the step's own time: 0 rebuilds regardless of
    /// the host, 1 gives it half of the time. Ignored while the host is idle.
    pub yield_to_host: f64,
}

/// Processing in front of the members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Time of a processor for each host request.
    pub request_ns: u64,
    /// Time of a processor for each command to a member.
    pub command_ns: u64,
    /// Time of a processor for each byte of parity computed.
    pub parity_ns_per_byte: f64,
    /// Processors that share this work.
    pub processors: u32,
    /// Commands kept in a member at once, at most (the drive's own limits hold as well).
    pub member_tags: u32,
    /// Host adapter of the members: commands to one member start its intervals apart, and each host request takes its
    /// latency and its interrupts. No time if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<AdapterDescription>,
    /// Its cache.
    pub cache: Option<Cache>,
}

/// The controller's cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Memory of the controller.
    pub memory_bytes: u64,
    /// Bytes that hold data, read or written.
    pub data_bytes: u64,
    /// Bytes of these that may be dirty at once.
    pub dirty_bytes_max: u64,
    /// Unit of placement; contents of a page are tracked in 64ths of it.
    pub page_bytes: u32,
    /// Condition for completing a write.
    pub writes: CacheWrites,
    /// Link for mirroring writes to the partner, if there is one.
    pub mirror_link: Option<u32>,
    /// Required for write-back: without it, writes wait for the members.
    pub battery: bool,
    /// Reads are kept.
    pub keeps_reads: bool,
    /// Unit of reads on a miss: a power of two, at most the page; one part of a page if smaller.
    pub fill_bytes: u32,
    /// Prefetching; none if absent.
    pub prefetch: Option<Prefetch>,
    /// Which page gives way to a new one.
    pub policy: CachePolicy,
    /// Order in which dirty pages go out.
    pub destage: Destage,
    /// Dirty share at which destaging begins without waiting for an idle moment, 0 to 1.
    pub high_water: f64,
    /// Dirty share at which it ends.
    pub low_water: f64,
    /// Destages under way at once.
    pub destages_max: u32,
    /// Members (solid-state) that hold the data instead of memory; empty for memory.
    pub flash_members: Vec<u32>,
}

/// Condition for completing a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CacheWrites {
    /// The cache.
    Back,
    /// The members; a copy stays.
    Through,
    /// The members; nothing stays.
    Around,
}

impl CacheWrites {
    /// Every kind.
    pub const ALL: [CacheWrites; 3] = [CacheWrites::Back, CacheWrites::Through, CacheWrites::Around];
}

/// Reading ahead of sequential streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefetch {
    /// Sequential requests after which a stream is known.
    pub after_requests: u32,
    /// Bytes kept read ahead of a stream.
    pub ahead_bytes: u64,
    /// Streams that are followed at once.
    pub streams_max: u32,
}

/// Order in which dirty pages go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Destage {
    /// Oldest first.
    Fifo,
    /// Least recently written first.
    Lru,
    /// In order of addresses, round and round.
    Sorted,
    /// Full stripes first, then as `Sorted`.
    StripeAware,
}

impl Destage {
    /// Every policy.
    pub const ALL: [Destage; 4] = [Destage::Fifo, Destage::Lru, Destage::Sorted, Destage::StripeAware];
}

/// A LUN of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lun {
    /// Its name.
    pub name: String,
    /// Index in `groups`.
    pub group: u32,
    /// First byte within the group; 0 for a LUN of a pool, which has no fixed place.
    pub start_bytes: u64,
    /// Its length.
    pub length_bytes: u64,
    /// Part that was written before the run, if its group has a pool.
    pub prefill: Prefill,
}

/// How a LUN of a pool was filled before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Prefill {
    /// Not at all: it owns no space.
    #[default]
    None,
    /// From start to end, one LUN after the other.
    Serial,
    /// From start to end, all such LUNs at once.
    Concurrent,
}

impl Prefill {
    /// Every kind.
    pub const ALL: [Prefill; 3] = [Prefill::None, Prefill::Serial, Prefill::Concurrent];
}

/// Something that happens to the array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incident {
    /// When.
    pub at_ns: u64,
    /// The event.
    pub what: IncidentKind,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum IncidentKind {
    /// A member answers no more.
    MemberFails {
        /// Index in `members`.
        member: u32,
    },
    /// A failed member returns, empty: it is filled like a new spare.
    MemberReturns {
        /// Index in `members`.
        member: u32,
    },
    /// A group gets a hot spare more: a new member, of the kind of the group's first, behind the last.
    SpareAdded {
        /// Index in `groups`.
        group: u32,
    },
    /// All stripes of a group are read and compared.
    Scrub {
        /// Index in `groups`.
        group: u32,
        /// Whether redundancy that differs is rewritten.
        repair: bool,
    },
    /// The battery of the cache is down.
    BatteryFails,
    /// It is charged again.
    BatteryReturns,
}

impl ArrayDescription {
    /// The device of a member.
    ///
    /// # Panics
    /// When there is no such member or device: call it only for checked descriptions.
    pub fn device(&self, member: u32) -> &DeviceDescription {
        &self.devices[self.members[member as usize].device as usize]
    }

    /// Bytes that all LUNs together export.
    pub fn capacity_bytes(&self) -> u64 {
        self.luns.iter().map(|lun| lun.length_bytes).sum()
    }

    /// Name and range of each LUN in the array's address space, in which they are concatenated.
    pub fn spans(&self) -> Vec<(String, Span)> {
        let mut start_bytes = 0;
        let span = |lun: &Lun| {
            let span = Span { start_bytes, length_bytes: lun.length_bytes };
            start_bytes += lun.length_bytes;
            (lun.name.clone(), span)
        };
        self.luns.iter().map(span).collect()
    }

    /// Alignment of requests in bytes: the largest block of a member.
    pub fn block_bytes(&self) -> u32 {
        self.devices.iter().map(DeviceDescription::block_bytes).max().unwrap_or(512)
    }
}
