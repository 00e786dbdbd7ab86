//! [`ArrayDescription`]: an array, fully resolved: its members, the links to them, the placement of blocks on them, and
//! the controller. See docs/design/arrays.md.
//!
//! The catalogue creates descriptions. Times are nanoseconds, lengths bytes, positions in lists `u32`.

pub use headstack_cache::CachePolicy;
use headstack_workload::Span;
use serde::{Deserialize, Serialize};

use super::adapter::AdapterDescription;
use super::device::DeviceDescription;
pub use super::level::{Level, Rotation, SmallWrites};
use super::link::LinkDescription;
use super::pool::PoolDescription;

/// Drives behind a controller. It exports LUNs; its address space is their concatenation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayDescription {
    /// Its name, for display.
    pub name: String,
    /// The kinds of devices in it.
    pub devices: Vec<DeviceDescription>,
    /// Its members, spares included.
    pub members: Vec<Member>,
    /// The links between members, controller and host.
    pub links: Vec<LinkDescription>,
    /// Speeds and phases of its disks' spindles.
    pub spindles: Spindles,
    /// RAID groups: the placement of blocks on members.
    pub groups: Vec<Group>,
    /// Exported LUNs, in order of addresses.
    pub luns: Vec<Lun>,
    /// The controller in front of the members.
    pub controller: Controller,
    /// The links between host and controller, beginning at the host; data cross all of them.
    pub host_links: Vec<u32>,
    /// Incidents by ascending times.
    pub incidents: Vec<Incident>,
}

/// Phase and speed of the spindles of an array's disks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spindles {
    /// Whether all turn in phase at the stated speed (rotational position locking of SCSI, drives of about 1990 to
    /// 2003); otherwise each has its own phase and speed.
    pub synchronized: bool,
    /// Largest relative difference between a spindle's speed and the stated speed; speeds are uniformly distributed
    /// within it.
    pub speed_tolerance: f64,
}

impl Spindles {
    /// Largest allowed speed tolerance: a drive whose servo marks are off by more cannot read.
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
    /// Index into `devices`.
    pub device: u32,
    /// Paths between controller and member, each a list of links: one, or several that commands alternate between
    /// (multipath). An empty path has no shared link.
    pub ways: Vec<Vec<u32>>,
}

/// A RAID group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// RAID level.
    pub level: Level,
    /// Its members, in the order of the layout. A nested level takes them in runs of `members / spans`.
    pub members: Vec<u32>,
    /// Equal sub-groups over which stripes are distributed: 1, or more for RAID 50 and 60.
    pub spans: u32,
    /// Chunk size: bytes on one member before the next is used.
    pub stripe_unit_bytes: u64,
    /// How parity rotates from stripe to stripe.
    pub rotation: Rotation,
    /// Bytes used of each member.
    pub member_bytes: u64,
    /// Bytes of a record on levels with records, whose stripe unit is the sector. 0 on others.
    pub record_bytes: u64,
    /// How a write smaller than a stripe updates parity.
    pub small_writes: SmallWrites,
    /// Which copy a read uses.
    pub mirror_reads: MirrorReads,
    /// Hot spares.
    pub spares: Vec<u32>,
    /// How a spare is filled.
    pub rebuild: Rebuild,
    /// Pool whose blocks are placed when they are first written, in the order of writing; `None` where every block has
    /// a fixed place.
    pub pool: Option<PoolDescription>,
    /// Write-intent bitmap (Linux md), if the group has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bitmap: Option<Bitmap>,
}

/// A write-intent bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bitmap {
    /// Bytes of a member that one bit covers.
    pub chunk_bytes: u64,
    /// Time between two passes of the daemon that clears bits; the second pass that finds a chunk unused clears its
    /// bit.
    pub daemon_ns: u64,
    /// An array that has not been written to for this long is marked clean, and the next write waits for its
    /// superblock.
    pub safe_mode_ns: u64,
}

/// Policy that selects the copy for a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MirrorReads {
    /// The first available copy.
    Primary,
    /// Copies in turn.
    RoundRobin,
    /// The member with the shortest queue, among equals in turn.
    ShortestQueue,
    /// The member with the shortest queue, among equals the one whose last command was nearest.
    #[default]
    Nearest,
}

/// How a spare is filled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rebuild {
    /// Bytes of each member that one step rebuilds.
    pub step_bytes: u64,
    /// Steps in flight at once.
    pub steps: u32,
    /// Rate limit in bytes of the spare a second; `None` for no limit.
    pub rate_limit_bytes_per_s: Option<f64>,
    /// Idle time after a host request before the next step, as a share of the step's own time: 0 rebuilds regardless of
    /// the host, 1 gives the host half of the time. Ignored while the host is idle.
    pub yield_to_host: f64,
}

/// The controller of an array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Processor time for each host request.
    pub request_ns: u64,
    /// Processor time for each command to a member.
    pub command_ns: u64,
    /// Processor time for each byte of parity computed.
    pub parity_ns_per_byte: f64,
    /// Processors that share this work.
    pub processors: u32,
    /// Most commands kept in a member at once (the drive's own limits apply as well).
    pub member_tags: u32,
    /// Host adapter of the members: commands to one member start its intervals apart, and each host request takes its
    /// latency and its interrupts. `None` adds no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<AdapterDescription>,
    /// Its cache.
    pub cache: Option<Cache>,
}

/// The controller's cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Size of the controller's memory.
    pub memory_bytes: u64,
    /// Bytes that hold read or written data.
    pub data_bytes: u64,
    /// Bytes of these that may be dirty at once.
    pub dirty_bytes_max: u64,
    /// Page size; the contents of a page are tracked in 64ths of it.
    pub page_bytes: u32,
    /// Write policy.
    pub writes: CacheWrites,
    /// Link over which a write is copied to the partner controller, if there is one.
    pub mirror_link: Option<u32>,
    /// Whether write-back requires a battery: while it is discharged, writes wait for the members.
    pub battery: bool,
    /// Whether read data are kept.
    pub keeps_reads: bool,
    /// A miss reads whole multiples of this: a power of two, not above the page size; one part of a page where smaller.
    pub fill_bytes: u32,
    /// Prefetching, if the cache has it.
    pub prefetch: Option<Prefetch>,
    /// Policy that selects the page to evict.
    pub policy: CachePolicy,
    /// Order in which dirty pages are destaged.
    pub destage: Destage,
    /// Dirty share, 0 to 1, above which destaging does not wait for an idle moment.
    pub high_water: f64,
    /// Dirty share at which destaging ends.
    pub low_water: f64,
    /// Most destages in flight at once.
    pub destages_max: u32,
    /// Members (SSDs) that hold the data instead of memory; empty for a cache in memory.
    pub flash_members: Vec<u32>,
}

/// Write policy: what acknowledges a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CacheWrites {
    /// The cache acknowledges it.
    Back,
    /// The members acknowledge it; a copy stays in the cache.
    Through,
    /// The members acknowledge it; no copy stays.
    Around,
}

impl CacheWrites {
    /// All variants.
    pub const ALL: [CacheWrites; 3] = [CacheWrites::Back, CacheWrites::Through, CacheWrites::Around];
}

/// Reading ahead of sequential streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefetch {
    /// Sequential requests after which a stream is detected.
    pub after_requests: u32,
    /// Bytes kept read ahead of a stream.
    pub ahead_bytes: u64,
    /// Streams that are tracked at once.
    pub streams_max: u32,
}

/// Order in which dirty pages are destaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Destage {
    /// Oldest first.
    Fifo,
    /// Least recently written first.
    Lru,
    /// In order of addresses, wrapping around.
    Sorted,
    /// Full stripes first, then as [`Self::Sorted`].
    StripeAware,
}

impl Destage {
    /// Every policy.
    pub const ALL: [Destage; 4] = [Destage::Fifo, Destage::Lru, Destage::Sorted, Destage::StripeAware];
}

/// A LUN: an address range that an array exports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lun {
    /// Its name.
    pub name: String,
    /// Index into `groups`.
    pub group: u32,
    /// First byte within the group; 0 for a LUN of a pool, which has no fixed place.
    pub start_bytes: u64,
    /// Its length.
    pub length_bytes: u64,
    /// How much of it was written before the run, where its group has a pool.
    pub prefill: Prefill,
}

/// How a LUN of a pool was filled before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Prefill {
    /// Not filled: it owns no space.
    #[default]
    None,
    /// Filled from start to end, one LUN after the other.
    Serial,
    /// Filled from start to end, all such LUNs at once.
    Concurrent,
}

impl Prefill {
    /// All variants.
    pub const ALL: [Prefill; 3] = [Prefill::None, Prefill::Serial, Prefill::Concurrent];
}

/// An incident of the array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incident {
    /// When it happens.
    pub at_ns: u64,
    /// The incident itself.
    pub what: IncidentKind,
}

/// Kind of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum IncidentKind {
    /// A member fails and no longer responds.
    MemberFails {
        /// Index into `members`.
        member: u32,
    },
    /// A failed member returns, empty: it is filled as a new spare would be.
    MemberReturns {
        /// Index into `members`.
        member: u32,
    },
    /// A group gets one more hot spare: a new member of the kind of the group's first, placed after the last.
    SpareAdded {
        /// Index into `groups`.
        group: u32,
    },
    /// All stripes of a group are read and compared.
    Scrub {
        /// Index into `groups`.
        group: u32,
        /// Whether inconsistent redundant data are rewritten.
        repair: bool,
    },
    /// The battery of the cache fails.
    BatteryFails,
    /// The battery is charged again.
    BatteryReturns,
}

impl ArrayDescription {
    /// Returns the device of a member.
    ///
    /// # Panics
    /// If there is no such member or device: the description must have been checked.
    pub fn device(&self, member: u32) -> &DeviceDescription {
        &self.devices[self.members[member as usize].device as usize]
    }

    /// Returns the bytes that all LUNs export together.
    pub fn capacity_bytes(&self) -> u64 {
        self.luns.iter().map(|lun| lun.length_bytes).sum()
    }

    /// Returns each LUN's name and place in the array's address space, where they follow one another.
    pub fn spans(&self) -> Vec<(String, Span)> {
        let mut start_bytes = 0;
        let span = |lun: &Lun| {
            let span = Span { start_bytes, length_bytes: lun.length_bytes };
            start_bytes += lun.length_bytes;
            (lun.name.clone(), span)
        };
        self.luns.iter().map(span).collect()
    }

    /// Returns the block size in bytes, of which every request is a multiple: the largest of the members'.
    pub fn block_bytes(&self) -> u32 {
        self.devices.iter().map(DeviceDescription::block_bytes).max().unwrap_or(512)
    }
}
