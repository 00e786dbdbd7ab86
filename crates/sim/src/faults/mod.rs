//! [`Fault`]s: what goes wrong, when, and proof of the effects. See docs/design/faults-and-power.md.
//!
//! A fault starts at a model time and lasts until another time, or forever. Media faults affect the mechanics of a
//! device ([`crate::media_defects::MediaDefect`]); other faults apply between the system and its clients
//! ([`injector`]), and some of these damage contents ([`contents`], [`damaging`]). A trigger ([`trigger`]) selects the
//! requests that start a fault.

pub mod contents;
mod cues;
pub(crate) mod damaging;
mod deed;
pub(crate) mod effect;
mod filter;
mod idle;
pub(crate) mod injector;
mod log;
mod properties;
mod schedule;
mod stale;
pub mod trigger;
mod waiting;

pub use crate::pending_requests::Errno;
pub use contents::{Corruption, Distance, Lasting, Part, Stage, Unflushed};
pub use deed::FaultEffect;
pub use injector::FaultsToEnd;
pub use log::{Counters, FaultHit, Injection, Log};
pub use schedule::{Schedule, Timed};
pub use trigger::{Count, Every, Nth, Pattern, StrikeTime, Trigger};

use std::path::PathBuf;

use headstack_workload::{Bytes, DurationNs, Kind};
use serde::de::IntoDeserializer;
use serde::{Deserialize, Deserializer, Serialize};

use crate::power_cut::Tear;

/// A fault.
///
/// Members and groups of an array have names; a device that is a complete system has none. Without `ranges`, a fault
/// applies to all addresses; without `kinds`, to its usual kinds; without `percent`, to all requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Unreadable sectors. The device tries for `time`, then the access fails. A write repairs the sectors by remapping
    /// them to spares.
    MediaError {
        /// Member of an array with the bad sectors.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Location on the device.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Map file of GNU ddrescue with more bad sectors, relative to the schedule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        map: Option<PathBuf>,
        /// Percentage of accesses that are affected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// Kinds of accesses, by default reads. Writes fail if they are included.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
        /// How long the device tries; the default depends on the device.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recovery: Option<Recovery>,
        /// Time limit of recovery.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<DurationNs>,
        /// Whether a write does not repair the sectors.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        permanent: bool,
    },
    /// Sectors that take additional turns to read (additional reads of the cell in an SSD).
    WeakSectors {
        /// Member of an array with the weak sectors.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Location on the device.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Map file of GNU ddrescue with more weak sectors, relative to the schedule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        map: Option<PathBuf>,
        /// Number of additional turns.
        turns: u32,
        /// Percentage of accesses that are affected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// Kinds of accesses, by default reads.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// Slow accesses: each occupies the mechanics for longer, so that all queued requests wait too.
    FailSlow {
        /// Member of an array that is slow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Location on the device.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Additional time per access.
        time: DurationNs,
        /// Percentage of accesses that are affected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// Kinds of accesses, by default reads and writes.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// Delayed answers, such as pauses of the firmware or garbage collection. The mechanics continue.
    LatencySpike {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Additional time; the mean if the distribution is exponential.
        time: DurationNs,
        /// Distribution of the additional time.
        #[serde(default)]
        distribution: Distribution,
        /// Percentage of requests that are affected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// Kinds of requests, by default all.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// Requests are not answered until the fault ends. Requests completed by then are answered when it ends.
    Hang {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Kinds of requests, by default all.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// The device is absent until the fault ends: requests in flight and new requests are lost.
    DropOut,
    /// A member of an array fails.
    MemberFails {
        /// The member.
        member: String,
    },
    /// A failed member returns, empty, and is filled.
    MemberReturns {
        /// The member.
        member: String,
    },
    /// A group of an array gets another hot spare.
    SpareAdded {
        /// The group.
        group: String,
    },
    /// All stripes of a group are read and compared, as Linux md scrubs an array.
    Scrub {
        /// Group; may be omitted if there is only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// Whether inconsistent redundant data are rewritten from the data.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        repair: bool,
    },
    /// The battery of an array's cache fails.
    BatteryFails,
    /// The battery is charged again.
    BatteryReturns,
    /// Link errors: commands fail their checksum, time out and are sent again, at most five times.
    LinkErrors {
        /// Percentage of transmissions that fail.
        percent: f64,
        /// Time-out of the host, by default 30 s, as in Linux.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_out: Option<DurationNs>,
    },
    /// Link resets: for a time, nothing passes the link in either direction. Resets repeat while the fault lasts.
    LinkResets {
        /// Duration of a reset.
        time: DurationNs,
        /// Interval between resets; by default there is only one reset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every: Option<DurationNs>,
    },
    /// Flushes are acknowledged at once and do not reach the system.
    LyingCache,
    /// A power cut: no request is answered until the fault ends, and data that are only in a volatile cache are lost. A
    /// write in progress is complete, absent or torn.
    PowerCut {
        /// Boundaries at which a torn write may end.
        #[serde(default)]
        tear: Tear,
        /// Number of bytes written atomically, by default a physical sector.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        atom: Option<Bytes>,
    },
    /// Power returns.
    PowerOn,
    /// Silent corruption: wrong data without an error.
    Corrupt {
        /// Member of an array whose data are corrupted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// When data are corrupted: when written, while stored, or when read.
        on: Stage,
        /// Kind of corruption.
        how: Corruption,
        /// Number of inverted bits per request, by default 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bits: Option<u32>,
        /// Number of consecutive sectors of 512 bytes per request, by default 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sectors: Option<u32>,
        /// Pattern that fills the sectors.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<Pattern>,
        /// Percentage of requests that are affected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// Silent misdirection: data are written to or read from the wrong place, without an error.
    Misdirect {
        /// Member of an array that uses the wrong place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Distance to the wrong place; may be negative.
        distance: Distance,
        /// Percentage of requests that are affected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// Kinds of requests, by default writes.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// Lost writes: acknowledged but never stored.
    LoseWrite {
        /// Member of an array that loses the writes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Percentage of writes that are affected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// Stale reads: reads return the data from before the last write, if the last write was made while the fault was
    /// active.
    StaleRead {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// How long a place returns stale data.
        #[serde(default)]
        lasting: Lasting,
        /// Percentage of reads that are affected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// Shorn writes: acknowledged, but only the first part is stored.
    ShornWrite {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Part that is stored, rounded down to whole atoms.
        part: Part,
        /// Number of bytes written atomically, by default 512.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        atom: Option<Bytes>,
        /// Percentage of writes that are affected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// Requests fail with an error and are not executed.
    Errno {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Error that requests return.
        #[serde(default)]
        errno: Errno,
        /// Kinds of requests. By default, writes for ENOSPC, writes and trims for EROFS, and all kinds for other
        /// errors.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
        /// Time until the error is reported, by default 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<DurationNs>,
        /// How a failed flush treats unflushed data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unflushed: Option<Unflushed>,
        /// Percentage of requests that are affected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// The schedule enters another state, which triggers of other faults can check.
    SetState {
        /// The new state.
        to: u32,
    },
}

/// A range of bytes: `offset` and `length`, or `lba` and `blocks`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stretch {
    /// First byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Bytes>,
    /// Length in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<Bytes>,
    /// First logical block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lba: Option<u64>,
    /// Number of logical blocks, by default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
}

impl Stretch {
    /// Creates a range of bytes.
    pub fn of_bytes(start_bytes: u64, length_bytes: u64) -> Stretch {
        Stretch { offset: Some(Bytes(start_bytes)), length: Some(Bytes(length_bytes)), ..Stretch::default() }
    }
}

/// Deserializes kinds from a list, or from one or more comma-separated words, such as `kinds=read,write` on the command
/// line.
fn kinds_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RequestKind>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Words(String),
        List(Vec<String>),
    }
    let words: Vec<String> = match Written::deserialize(deserializer)? {
        Written::Words(text) => text.split(',').map(|word| word.trim().to_owned()).collect(),
        Written::List(list) => list,
    };
    let kind = |word: String| RequestKind::deserialize(word.as_str().into_deserializer());
    words.into_iter().map(kind).collect()
}

/// Kind of a request, as named in faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A trim.
    Trim,
    /// A flush.
    Flush,
}

impl From<Kind> for RequestKind {
    fn from(kind: Kind) -> RequestKind {
        match kind {
            Kind::Read => RequestKind::Read,
            Kind::Write => RequestKind::Write,
            Kind::Trim => RequestKind::Trim,
            Kind::Flush => RequestKind::Flush,
        }
    }
}

/// How long a device tries to read an unreadable sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Long, because no redundancy can provide the data: the default for a disk with an ATA or SATA interface that is a
    /// complete system.
    Desktop,
    /// Limited (SCT error recovery control, TLER), so that a controller does not drop the drive: the default for all
    /// other devices.
    Limited,
}

impl Recovery {
    /// Returns the time limit of recovery, in ns.
    ///
    /// Limited: 7 s, the limit of drives made for RAID (Western Digital: "the hard drive will only spend 7 seconds to
    /// attempt to recover"; `smartctl -l scterc,70,70`). Desktop: 30 s, between the limit of such drives, which is
    /// below 10 s, and the "up to 2 minutes" of Western Digital's deep recovery. This is also the command time-out of
    /// Linux.
    pub fn time_ns(self) -> u64 {
        match self {
            Recovery::Desktop => 30_000_000_000,
            Recovery::Limited => 7_000_000_000,
        }
    }
}

/// Distribution of additional times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Constant.
    #[default]
    Fixed,
    /// Exponential.
    Exponential,
}
