//! [`Fault`]s: what goes wrong, when, and the proof that it did. See docs/design/faults-and-power.md.
//!
//! A fault starts at a time of the model and lasts until another time, or forever. Media faults affect the mechanism of
//! a device ([`crate::media_defects::MediaDefect`]); the others apply between the system and its clients
//! ([`injector`]), and some of them damage contents ([`contents`], [`damaging`]). A trigger ([`trigger`]) selects the
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
/// Members and groups of an array are named; a device that is a system of its own has no name. Without `ranges` a fault
/// is everywhere, without `kinds` it affects the kinds that it usually does, and without `percent` it affects all
/// requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Unreadable sectors. The device tries for `time`, then the access fails. A write heals them: it remaps them to
    /// spares.
    MediaError {
        /// The member of an array that has them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Their place on the device.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Map file of GNU ddrescue with more of them, relative to the schedule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        map: Option<PathBuf>,
        /// Percentage of the accesses that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// Kinds of accesses, reads by default; writes meet a write fault.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
        /// How long the device tries; the default depends on the kind of device.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recovery: Option<Recovery>,
        /// Limit of recovery as a time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<DurationNs>,
        /// Whether a write does not heal them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        permanent: bool,
    },
    /// Sectors that take additional turns to read (additional reads of the cell in an SSD).
    WeakSectors {
        /// The member of an array that has them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Their place on the device.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Map file of GNU ddrescue with more of them, relative to the schedule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        map: Option<PathBuf>,
        /// Additional turns.
        turns: u32,
        /// Percentage of the accesses that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// Kinds of accesses, reads by default.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// Slow accesses: they occupy the mechanism longer than they should, so that all queued requests wait too.
    FailSlow {
        /// The member of an array that is slow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Their place on the device.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Additional time.
        time: DurationNs,
        /// Percentage of the accesses that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// Kinds of accesses, reads and writes by default.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// Late answers: a pause of firmware, garbage collection. The mechanism continues.
    LatencySpike {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Additional time; its mean if it is drawn.
        time: DurationNs,
        /// Distribution of the additional time.
        #[serde(default)]
        distribution: Distribution,
        /// Percentage of the requests that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// Kinds of requests, all by default.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// Requests are not answered until the fault ends; those that are done by then are answered at that moment.
    Hang {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Kinds of requests, all by default.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// The device is absent until the fault ends: requests in flight and new ones are lost.
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
    /// A group of an array gets one more hot spare.
    SpareAdded {
        /// The group.
        group: String,
    },
    /// All stripes of a group are read and compared, as Linux md scrubs an array.
    Scrub {
        /// The group; may be omitted if there is only one.
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
    /// Commands meet a bad checksum on the link, time out and are sent again, at most five times.
    LinkErrors {
        /// Percentage of the commands, each time one is sent.
        percent: f64,
        /// Time-out of the host; by default 30 s, as in Linux.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_out: Option<DurationNs>,
    },
    /// Link resets: nothing passes the link in either direction for a time, repeatedly while the fault lasts.
    LinkResets {
        /// Duration of a reset.
        time: DurationNs,
        /// Interval between resets; by default there is only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every: Option<DurationNs>,
    },
    /// Flushes are acknowledged at once, and never reach the system.
    LyingCache,
    /// A power cut: no request is answered until the fault ends, and data that were only in a volatile cache are lost.
    /// Writes in progress are complete, absent or torn.
    PowerCut {
        /// Boundaries at which a write in progress may have stopped.
        #[serde(default)]
        tear: Tear,
        /// Bytes that are written atomically; by default a physical sector.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        atom: Option<Bytes>,
    },
    /// Power returns.
    PowerOn,
    /// Silent corruption: wrong data without an error.
    Corrupt {
        /// The member of an array whose data are corrupted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// When they are corrupted: when written, while stored, or when read.
        on: Stage,
        /// Kind of corruption.
        how: Corruption,
        /// Inverted bits per request; 1 by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bits: Option<u32>,
        /// Affected sectors of 512 bytes per request, consecutive; 1 by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sectors: Option<u32>,
        /// Pattern that fills them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<Pattern>,
        /// Percentage of the requests that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// Silent misdirection: data go to a wrong place, or come from one, without an error.
    Misdirect {
        /// The member of an array that uses the wrong place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Distance to the wrong place, forwards or backwards.
        distance: Distance,
        /// Percentage of the requests that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// Kinds of requests, writes by default.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// Lost writes: acknowledged and never stored.
    LoseWrite {
        /// The member of an array that loses them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Percentage of the writes that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// Stale reads: they return the data from before the last write, if that was made while the fault lasted.
    StaleRead {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// How long a place returns stale data.
        #[serde(default)]
        lasting: Lasting,
        /// Percentage of the reads that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// Shorn writes: acknowledged, but only their first part is stored.
    ShornWrite {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// The part that is stored, rounded down to whole atoms.
        part: Part,
        /// Bytes that are written atomically; 512 by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        atom: Option<Bytes>,
        /// Percentage of the writes that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// Requests fail with an error, and none of their work is done.
    Errno {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// The error.
        #[serde(default)]
        errno: Errno,
        /// Kinds of requests; by default those that the error usually concerns: writes for ENOSPC, writes and trims for
        /// EROFS, all for the others.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
        /// Time until the error is reported; 0 by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<DurationNs>,
        /// How a failed flush treats the data that were not flushed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unflushed: Option<Unflushed>,
        /// Percentage of the requests that meet it.
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
    /// Number of logical blocks; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
}

impl Stretch {
    /// Returns a range of bytes.
    pub fn of_bytes(start_bytes: u64, length_bytes: u64) -> Stretch {
        Stretch { offset: Some(Bytes(start_bytes)), length: Some(Bytes(length_bytes)), ..Stretch::default() }
    }
}

/// Deserializes kinds as a list, or as one word or several with commas between, such as `kinds=read,write` on the
/// command line.
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

/// Kind of a request, as faults name it.
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
    /// Long, because no redundancy is behind it: the default of a disk with an ATA or SATA interface that is a system
    /// of its own.
    Desktop,
    /// Limited (SCT error recovery control, TLER), so that a controller does not drop the drive: the default of all
    /// other devices.
    Limited,
}

impl Recovery {
    /// Returns the time limit of recovery.
    ///
    /// Limited: 7 s, the limit of drives made for RAID (Western Digital: "the hard drive will only spend 7 seconds to
    /// attempt to recover"; `smartctl -l scterc,70,70`). Desktop: 30 s, between the 10 s that limited drives stay below
    /// and the "up to 2 minutes" of Western Digital's deep recovery; it is also Linux's time-out of a command.
    pub fn time_ns(self) -> u64 {
        match self {
            Recovery::Desktop => 30_000_000_000,
            Recovery::Limited => 7_000_000_000,
        }
    }
}

/// Distribution of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Constant.
    #[default]
    Fixed,
    /// Exponential.
    Exponential,
}
