//! [`ArrayDescription`]: the full description of an array: its members, the links to them, the placement of blocks on
//! members, and the controller. See docs/design/arrays.md.
//!
//! The catalogue creates descriptions. Times are in nanoseconds, lengths in bytes; list indexes are `u32`.

pub use headstack_cache::CachePolicy;
use headstack_workload::Span;
use serde::{Deserialize, Serialize};

use super::adapter::AdapterDescription;
use super::device::DeviceDescription;
pub use super::level::{Level, Rotation, SmallWrites};
use super::link::LinkDescription;
use super::pool::PoolDescription;

/// Drives behind a controller that exports LUNs. The address space of the array is the concatenation of the LUNs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayDescription {
    /// Name, for display.
    pub name: String,
    /// The kinds of devices in the array.
    pub devices: Vec<DeviceDescription>,
    /// Members, including spares.
    pub members: Vec<Member>,
    /// The links between members, controller and host.
    pub links: Vec<LinkDescription>,
    /// Speeds and phases of the disks' spindles.
    pub spindles: Spindles,
    /// RAID groups, which place blocks on members.
    pub groups: Vec<Group>,
    /// Exported LUNs, in order of addresses.
    pub luns: Vec<Lun>,
    /// The controller in front of the members.
    pub controller: Controller,
    /// Links between host and controller, beginning at the host. Data cross all of them.
    pub host_links: Vec<u32>,
    /// Incidents in ascending order of time.
    pub incidents: Vec<Incident>,
}

/// Phase and speed of the spindles of an array's disks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spindles {
    /// Whether all spindles turn in phase at the stated speed (rotational position locking of SCSI, drives of about
    /// 1990 to 2003); otherwise each spindle has its own phase and speed.
    pub synchronized: bool,
    /// Maximum relative difference between the speed of a spindle and the stated speed. Speeds are uniformly
    /// distributed within this tolerance.
    pub speed_tolerance: f64,
}

impl Spindles {
    /// Maximum allowed speed tolerance: a drive whose servo marks are off by more cannot read.
    pub const TOLERANCE_MAX: f64 = 0.02;

    /// All spindles in phase, at their stated speeds.
    pub const SYNCHRONIZED: Spindles = Spindles { synchronized: true, speed_tolerance: 0.0 };
}

/// A device of the array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Name in results and incidents, such as `d3`.
    pub name: String,
    /// Index into `devices`.
    pub device: u32,
    /// Paths between controller and member, each a list of links. Commands alternate between several paths (multipath).
    /// An empty path has no shared link.
    pub ways: Vec<Vec<u32>>,
}

/// A RAID group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name of the group.
    pub name: String,
    /// RAID level.
    pub level: Level,
    /// Members in the order of the layout. A nested level uses consecutive runs of `members / spans` members.
    pub members: Vec<u32>,
    /// Number of equal sub-groups over which stripes are distributed: 1, or more for RAID 50 and 60.
    pub spans: u32,
    /// Chunk size: bytes on one member before the next is used.
    #[serde(alias = "stripe_unit_bytes")]
    pub chunk_bytes: u64,
    /// How parity rotates from stripe to stripe.
    pub rotation: Rotation,
    /// Bytes used of each member.
    pub member_bytes: u64,
    /// Record size in bytes on levels with records, whose chunk is the sector; 0 on other levels.
    pub record_bytes: u64,
    /// How a write smaller than a stripe updates parity.
    pub small_writes: SmallWrites,
    /// Policy that selects the copy for a read.
    pub mirror_reads: MirrorReads,
    /// Hot spares.
    pub spares: Vec<u32>,
    /// How spares are filled.
    pub rebuild: Rebuild,
    /// Pool that places blocks when they are first written, in order of writing; `None` if every block has a fixed
    /// place.
    pub pool: Option<PoolDescription>,
    /// Write-intent bitmap (Linux md); `None` if the group has no bitmap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bitmap: Option<Bitmap>,
    /// Partial parity log (Linux md, RAID 5); `None` if the group has no log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ppl: Option<PartialParityLog>,
    /// Whether a journal above the array replays interrupted writes. Files do not state it: the layer above decides.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_journaled: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Serde passes a reference.
fn is_false(value: &bool) -> bool {
    !value
}

/// A partial parity log at the start of each member. LUNs begin after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartialParityLog {
    /// Bytes of the log on each member.
    pub area_bytes: u64,
}

impl PartialParityLog {
    /// Bytes of the header of a log unit (`PPL_HEADER_SIZE`, include/uapi/linux/raid/md_p.h).
    pub const HEADER_BYTES: u64 = 4096;
    /// Bytes of partial parity in a log unit (`PPL_SPACE_SIZE`, drivers/md/raid5-ppl.c).
    pub const UNIT_BYTES: u64 = 128 << 10;
    /// Maximum number of members (raid5-ppl.c, since Linux 4.15).
    pub const MEMBERS_MAX: usize = 64;
    /// Maximum area: the superblock has 16 bits for its sectors.
    pub const AREA_BYTES_MAX: u64 = (u16::MAX as u64) << 9;

    /// Returns the smallest area for a chunk size: a unit, or the partial parity of a stripe (`choose_ppl_space`,
    /// mdadm's super1.c).
    pub fn area_bytes_min(chunk_bytes: u64) -> u64 {
        Self::HEADER_BYTES + chunk_bytes.max(Self::UNIT_BYTES)
    }
}

impl Group {
    /// Returns the bytes of the group before its first LUN: the stripes in the place of a partial parity log.
    pub fn log_bytes(&self) -> u64 {
        let chunk_bytes = self.chunk_bytes.max(1);
        let stripes = self.ppl.map_or(0, |ppl| ppl.area_bytes.div_ceil(chunk_bytes));
        stripes.saturating_mul(chunk_bytes).saturating_mul((self.members.len() as u64).saturating_sub(1))
    }
}

/// A write-intent bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bitmap {
    /// Bytes of a member that one bit covers.
    pub chunk_bytes: u64,
    /// Time between two passes of the daemon that clears bits. The second pass that finds a chunk unused clears its
    /// bit.
    pub daemon_ns: u64,
    /// Time without writes after which the array is marked clean; the next write then waits for an update of the
    /// superblock.
    pub safe_mode_ns: u64,
}

/// Policy that selects the copy for a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MirrorReads {
    /// The first available copy.
    Primary,
    /// All copies, round-robin.
    RoundRobin,
    /// The copy on the member with the shortest queue; round-robin if queues are equal.
    ShortestQueue,
    /// The copy on the member with the shortest queue; if queues are equal, the member whose last command was nearest.
    #[default]
    Nearest,
}

/// How spares are filled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rebuild {
    /// Bytes of each member that a step rebuilds.
    pub step_bytes: u64,
    /// Maximum number of steps in flight.
    pub steps: u32,
    /// Rate limit in bytes of the spare per second; `None` for no limit.
    pub rate_limit_bytes_per_s: Option<f64>,
    /// Idle time after a host request before the next step, as a fraction of the duration of a step: 0 rebuilds
    /// regardless of the host, 1 gives the host half of the time. Ignored while the host is idle.
    pub yield_to_host: f64,
    /// Minimum rate of Linux md, which replaces `yield_to_host`; `None` for other arrays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<RebuildMinimum>,
    /// Who fills them. Files do not state it: the layer above the array decides.
    #[serde(default, skip_serializing_if = "Filler::is_array")]
    pub filled_by: Filler,
}

/// Rate up to which a rebuild or check of Linux md proceeds next to the host's requests (`sync_speed_min`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebuildMinimum {
    /// The rate, in bytes of each member per second, as a mean of about 30 s.
    pub bytes_per_s: u64,
    /// Behavior above the rate while the host is busy.
    pub above: AboveMinimum,
    /// Bytes of each member between two looks at the rate while the host is busy.
    pub window_bytes: u64,
}

/// Behavior of a rebuild or check of Linux md above its minimum rate while the host is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AboveMinimum {
    /// Waits until its own requests are complete, after each window, so that it is faster on fast members: Linux 4.2 and
    /// later (commit ac8fa4196d20).
    Drain,
    /// Waits 500 ms, so that it settles at the minimum rate: earlier versions.
    Pause,
}

/// Who fills a spare or a returned member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Filler {
    /// The array, from the first byte to the last, as Linux md and hardware controllers do.
    #[default]
    Array,
    /// The layer above, which knows what is allocated: ZFS. The array serves the rest meanwhile as degraded.
    Layer,
}

impl Filler {
    /// Returns true if the array fills the member itself.
    pub fn is_array(&self) -> bool {
        *self == Filler::Array
    }
}

/// The controller of an array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Processor time per host request.
    pub request_ns: u64,
    /// Processor time per command to a member.
    pub command_ns: u64,
    /// Processor time per byte of parity computed.
    pub parity_ns_per_byte: f64,
    /// Number of processors that share this work.
    pub processors: u32,
    /// Maximum number of commands in a member; the drive's own limits apply as well.
    pub member_tags: u32,
    /// Host adapter for the members: commands to a member start at least its interval apart, and each host request
    /// takes its latency and its interrupts. `None` adds no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<AdapterDescription>,
    /// Cache; `None` if the controller has no cache.
    pub cache: Option<Cache>,
}

/// The controller's cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Size of the controller's memory.
    pub memory_bytes: u64,
    /// Bytes of cached data, both read and written.
    pub data_bytes: u64,
    /// Maximum number of dirty bytes, as a part of `data_bytes`.
    pub dirty_bytes_max: u64,
    /// Page size; the state of a page is tracked for each 64th of the page.
    pub page_bytes: u32,
    /// Write policy.
    pub writes: CacheWrites,
    /// Link over which writes are copied to the partner controller; `None` if there is no partner.
    pub mirror_link: Option<u32>,
    /// Whether write-back requires a charged battery: while the battery is discharged, writes wait for the members.
    pub battery: bool,
    /// Whether the cache keeps data after a read.
    pub keeps_reads: bool,
    /// Unit of reads after a miss, in bytes: a power of two, at most the page size; smaller values mean one part of a
    /// page.
    pub fill_bytes: u32,
    /// Prefetch settings; `None` if the cache does not prefetch.
    pub prefetch: Option<Prefetch>,
    /// Policy that selects the page to evict.
    pub policy: CachePolicy,
    /// Order in which dirty pages are destaged.
    pub destage: Destage,
    /// Share of dirty pages, 0 to 1, above which the cache destages even when it is not idle.
    pub high_water: f64,
    /// Share of dirty pages at which destaging stops.
    pub low_water: f64,
    /// Maximum number of destages in flight.
    pub destages_max: u32,
    /// Members (SSDs) that hold the cached data; empty for a cache in memory.
    pub flash_members: Vec<u32>,
}

/// Write policy, which determines when a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CacheWrites {
    /// Write-back: acknowledged when the data are in the cache.
    Back,
    /// Write-through: acknowledged when the data are on the members; the cache keeps a copy.
    Through,
    /// Write-around: acknowledged when the data are on the members; the cache keeps no copy.
    Around,
}

impl CacheWrites {
    /// All write policies.
    pub const ALL: [CacheWrites; 3] = [CacheWrites::Back, CacheWrites::Through, CacheWrites::Around];
}

/// Prefetching for sequential streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefetch {
    /// Number of sequential requests after which a stream is detected.
    pub after_requests: u32,
    /// Bytes to read ahead of a stream.
    pub ahead_bytes: u64,
    /// Maximum number of tracked streams.
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
    /// Full stripes first, then like [`Self::Sorted`].
    StripeAware,
}

impl Destage {
    /// All policies.
    pub const ALL: [Destage; 4] = [Destage::Fifo, Destage::Lru, Destage::Sorted, Destage::StripeAware];
}

/// A LUN: an address range that an array exports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lun {
    /// Name of the LUN.
    pub name: String,
    /// Index into `groups`.
    pub group: u32,
    /// First byte within the group; 0 for a LUN of a pool, which has no fixed place.
    pub start_bytes: u64,
    /// Length of the LUN.
    pub length_bytes: u64,
    /// How the LUN was filled before the run, if its group has a pool.
    pub prefill: Prefill,
}

/// How the LUNs of a pool were filled before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Prefill {
    /// Not filled: the LUN owns no space.
    #[default]
    None,
    /// Filled from start to end, one LUN after another.
    Serial,
    /// Filled from start to end, all LUNs with this setting at once.
    Concurrent,
}

impl Prefill {
    /// All variants.
    pub const ALL: [Prefill; 3] = [Prefill::None, Prefill::Serial, Prefill::Concurrent];
}

/// An incident of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incident {
    /// Time of the incident.
    pub at_ns: u64,
    /// Kind of the incident.
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
    /// A failed member returns, empty, and is filled like a new spare.
    MemberReturns {
        /// Index into `members`.
        member: u32,
    },
    /// A group gets another hot spare: a new member of the same kind as the group's first member.
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
    /// If there is no such member or device, which is impossible in a checked description.
    pub fn device(&self, member: u32) -> &DeviceDescription {
        &self.devices[self.members[member as usize].device as usize]
    }

    /// Returns the total size of all LUNs, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.luns.iter().map(|lun| lun.length_bytes).sum()
    }

    /// Returns each LUN's name and its place in the array's address space, in which LUNs follow one another.
    pub fn spans(&self) -> Vec<(String, Span)> {
        let mut start_bytes = 0;
        let span = |lun: &Lun| {
            let span = Span { start_bytes, length_bytes: lun.length_bytes };
            start_bytes += lun.length_bytes;
            (lun.name.clone(), span)
        };
        self.luns.iter().map(span).collect()
    }

    /// Returns the block size in bytes, which is the largest of the members' block sizes. Every request is a multiple
    /// of it.
    pub fn block_bytes(&self) -> u32 {
        self.devices.iter().map(DeviceDescription::block_bytes).max().unwrap_or(512)
    }
}
