//! [`Fault`]s: injected failures with their times, and the proof of their effects. See docs/design/faults-and-power.md.
//!
//! A fault strikes at a moment of the model and lasts until another, or forever. Those of the media affect the
//! mechanism of a device ([`crate::media_defects::MediaDefect`]); the others are applied between the system and its
//! clients ([`injector`]), and some of them damage contents ([`contents`], [`damaging`]). The requests that trigger a
//! fault are defined by its trigger ([`trigger`]).

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

pub use crate::flights::Errno;
pub use contents::{Corruption, Distance, Lasting, Part, Stage, Unflushed};
pub use deed::Deed;
pub use injector::FaultsToEnd;
pub use log::{Counters, Injection, Log, Meeting};
pub use schedule::{Schedule, Timed};
pub use trigger::{At, Count, Every, Nth, Pattern, Trigger};

use std::path::PathBuf;

use headstack_workload::{Bytes, DurationNs, Kind};
use serde::de::IntoDeserializer;
use serde::{Deserialize, Deserializer, Serialize};

use crate::power_cut::Tear;

/// An injected failure.
///
/// Members and groups of an array are referred to by name; a single device has none. Without `ranges` a fault is
/// everywhere, without `kinds` it affects its usual kinds, and without `percent` it affects all requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Sectors of the media cannot be read any more. The device tries for `time`, then the access fails. A write heals
    /// them: it goes to spares.
    MediaError {
        /// The member of an array that has them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Ranges on the device.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// A map file of GNU ddrescue with more of them, relative to the schedule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        map: Option<PathBuf>,
        /// Share of the accesses that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// By default reads; writes meet a write fault.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
        /// How long the device tries; by default according to the kind of device.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recovery: Option<Recovery>,
        /// Retry time, in place of `recovery`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<DurationNs>,
        /// A write does not heal them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        permanent: bool,
    },
    /// Sectors that are read after some turns more (more reads of the cell in a solid-state drive).
    WeakSectors {
        /// The member of an array that has them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Ranges on the device.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// A map file of GNU ddrescue with more of them, relative to the schedule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        map: Option<PathBuf>,
        /// Turns that it takes more.
        turns: u32,
        /// Share of the accesses that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// By default reads.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// Accesses hold the mechanism longer than they should, so all later ones wait too.
    FailSlow {
        /// The member of an array that is slow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Ranges on the device.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// How much longer.
        time: DurationNs,
        /// Share of the accesses that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// By default reads and writes.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// Answers are delayed: a pause of firmware, garbage collection. The mechanism continues.
    LatencySpike {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// The delay; its mean if it is random.
        time: DurationNs,
        /// Distribution of the delay.
        #[serde(default)]
        distribution: Distribution,
        /// Share of the requests that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// By default all.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// Requests are not answered until the fault ends; those completed by then are answered at that moment.
    Hang {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// By default all.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// The device vanishes until the fault ends: current and later requests are lost.
    DropOut,
    /// A member of an array fails.
    MemberFails {
        /// Which.
        member: String,
    },
    /// A member that failed is there again, empty, and is filled.
    MemberReturns {
        /// Which.
        member: String,
    },
    /// A group of an array gets a hot spare more.
    SpareAdded {
        /// Which.
        group: String,
    },
    /// All stripes of a group are read and compared, as Linux md scrubs an array.
    Scrub {
        /// Name of the group; by default the only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// Whether redundancy that differs is rewritten from the data.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        repair: bool,
    },
    /// The battery of an array's cache is down.
    BatteryFails,
    /// It is charged again.
    BatteryReturns,
    /// Commands meet a bad checksum on the link, are given up after a time-out and sent again, five times at most.
    LinkErrors {
        /// Share of the commands, for each transmission.
        percent: f64,
        /// Time-out of the host for a command; by default 30 s, as in Linux.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_out: Option<DurationNs>,
    },
    /// The link is reset: nothing passes it in either direction for a time, and again and again while the fault lasts.
    LinkResets {
        /// How long nothing passes.
        time: DurationNs,
        /// Interval between resets; by default only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every: Option<DurationNs>,
    },
    /// Flushes are answered at once, and not passed to the system.
    LyingCache,
    /// Power fails: nothing is answered until the fault ends, and data that are only in a volatile cache are lost. Data
    /// being written are there, absent or torn.
    PowerCut {
        /// Where a write under way may be torn.
        #[serde(default)]
        tear: Tear,
        /// Atomic unit of writes; by default a physical sector.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        atom: Option<Bytes>,
    },
    /// Power is back.
    PowerOn,
    /// Silent corruption of data.
    Corrupt {
        /// The member of an array whose data they are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// When they are corrupted: as they are written, while they lie there, or as they are read.
        on: Stage,
        /// Kind of corruption.
        how: Corruption,
        /// Number of inverted bits per request; by default one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bits: Option<u32>,
        /// Number of consecutive damaged sectors of 512 bytes per request; by default one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sectors: Option<u32>,
        /// Pattern with which they are filled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<Pattern>,
        /// Share of the requests that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// Data silently go to a wrong place, or come from one.
    Misdirect {
        /// The member of an array that takes the wrong place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// How far away, forwards or backwards.
        distance: Distance,
        /// Share of the requests that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// By default writes.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
    },
    /// Writes are acknowledged and never stored.
    LoseWrite {
        /// The member of an array that loses them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Share of the writes that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// Reads return the data from before the last write, if that occurred during the fault.
    StaleRead {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// How long a place is read so.
        #[serde(default)]
        lasting: Lasting,
        /// Share of the reads that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// Acknowledged writes store only their first part.
    ShornWrite {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Which part, down to whole atoms.
        part: Part,
        /// Atomic unit of writes; by default 512 bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        atom: Option<Bytes>,
        /// Share of the writes that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// Requests fail with an error, and nothing of them is done.
    Errno {
        /// Ranges in the system's address space.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranges: Vec<Stretch>,
        /// Which error.
        #[serde(default)]
        errno: Errno,
        /// By default writes for ENOSPC, writes and trims for EROFS, all for the others.
        #[serde(default, deserialize_with = "kinds_of", skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<RequestKind>,
        /// Delay of the error; by default none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<DurationNs>,
        /// Treatment of unflushed data by a failed flush.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unflushed: Option<Unflushed>,
        /// Share of the requests that meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// The schedule is in another state from now on, which triggers of others look at.
    SetState {
        /// Which.
        to: u32,
    },
}

/// A stretch of bytes: `offset` and `length`, or `lba` and `blocks`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stretch {
    /// First byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Bytes>,
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<Bytes>,
    /// First logical block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lba: Option<u64>,
    /// Number of logical blocks; by default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
}

impl Stretch {
    /// A stretch of bytes.
    pub fn of_bytes(start_bytes: u64, length_bytes: u64) -> Stretch {
        Stretch { offset: Some(Bytes(start_bytes)), length: Some(Bytes(length_bytes)), ..Stretch::default() }
    }
}

/// Kinds as a list, or as one word or several with commas between: `kinds=read,write` of an order.
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
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It trims.
    Trim,
    /// It flushes.
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

/// How long a device tries to read a bad sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Long, since there is no redundancy: the default of a single disk with an ATA or SATA interface.
    Desktop,
    /// Limited (SCT error recovery control, TLER), so that a controller does not drop the drive: the default of all
    /// other devices.
    Limited,
}

impl Recovery {
    /// The retry time.
    ///
    /// Limited: 7 s, the limit of drives made for RAID (Western Digital: "the hard drive will only spend 7 seconds to
    /// attempt to recover"; `smartctl -l scterc,70,70`). Desktop: 30 s, between the 10 s that limited drives stay below
    /// and the "up to 2 minutes" of Western Digital's deep recovery; it is also what Linux waits for a command.
    pub fn time_ns(self) -> u64 {
        match self {
            Recovery::Desktop => 30_000_000_000,
            Recovery::Limited => 7_000_000_000,
        }
    }
}

/// How times are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// All alike.
    #[default]
    Fixed,
    /// Exponentially.
    Exponential,
}
