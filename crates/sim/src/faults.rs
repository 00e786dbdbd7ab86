//! What can go wrong with a system while it serves, and what can be seen of it from outside: defects of the media,
//! requests that fail, the health of devices and what goes on inside.
//!
//! [`crate::system::System`] has the calls. Only media passes meet media defects: what a cache answers does not.

use headstack_workload::Span;
use serde::Serialize;

use crate::array::description::Level;

/// Something wrong with a stretch of a device's media.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediaDefect {
    /// Bytes of the device (of the member, in an array); sectors that it touches in part belong to it.
    pub span: Span,
    /// Reads meet it.
    pub reads: bool,
    /// Writes meet it.
    pub writes: bool,
    /// Share of the accesses that meet it, 0 to 1.
    pub share: f64,
    /// How much longer the mechanism is held by an access that meets it.
    pub delay: Delay,
    /// The access fails after that: an unrecoverable read error, or a write fault.
    pub fails: bool,
    /// A write moves the sectors that it touches to spares, whether it meets the media defect or not: they are well from then
    /// on, but every later access pays the way to the spares and back. Flash has no such way.
    pub healed_by_write: bool,
}

/// How long a mechanism is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// So many turns of the spindle: retries. In a solid-state drive as many reads of the cell, or programs for a write.
    Turns(u32),
    /// So many nanoseconds: the limit of error recovery, or a drive that fails slowly.
    Ns(u64),
}

/// A request that completed in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The name that the host gave it.
    pub id: u32,
    /// First byte that could not be had, of the system's address space. For a flush, the first that was lost on its way
    /// out of a write cache.
    pub at_bytes: u64,
    /// It could not be written.
    pub write: bool,
}

/// What is going on inside a system, for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gauges {
    /// Requests in the system and in the host in front of it.
    pub outstanding: u32,
    /// Each device, as the description numbers them.
    pub devices: Vec<DeviceGauge>,
    /// The cache of an array's controller.
    pub cache: Option<CacheGauge>,
    /// The groups of an array.
    pub groups: Vec<GroupGauge>,
}

/// What a device does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceGauge {
    /// The member's name; empty where a device stands alone.
    pub name: String,
    /// What it does.
    pub state: DeviceState,
    /// Commands that it has, those that wait for one of its tags included.
    pub queue: u32,
    /// Where the arm is, or is going; of several actuators the first that works.
    pub cylinder: Option<u32>,
    /// Cylinders of a disk; 0 without an arm.
    pub cylinders: u32,
    /// The surface that is read or written.
    pub head: u32,
    /// Bytes written by the host that are in its memory alone.
    pub dirty_bytes: u64,
}

/// What a device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceState {
    /// Nothing.
    Idle,
    /// It reads for its host.
    Reading,
    /// It writes for its host.
    Writing,
    /// It works for itself: recalibration, a scan, cleaning, garbage collection.
    Internal,
    /// Its spindle stands.
    Standby,
    /// It answers nobody.
    Missing,
    /// It takes the place of a member that is missing, and is being filled.
    Rebuilding,
}

/// The cache of an array's controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheGauge {
    /// Its size.
    pub bytes: u64,
    /// Pages with data that the members do not have yet, in bytes.
    pub dirty_bytes: u64,
    /// Reads that it answered so far.
    pub hits: u64,
    /// A power cut loses nothing of it.
    pub battery_ok: bool,
}

/// A group of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupGauge {
    /// Its name.
    pub name: String,
    /// Its level.
    pub level: Level,
    /// How it is.
    pub state: GroupHealth,
    /// What the spare that is being filled has got.
    pub rebuilt_bytes: u64,
    /// What it will have got in the end; 0 when none is being filled.
    pub of_bytes: u64,
    /// Bytes of its slots that no redundancy could bring back, and that nobody has written since.
    pub lost_bytes: u64,
}

/// How a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupHealth {
    /// Every member holds what it should.
    Healthy,
    /// A member is missing.
    Degraded,
    /// One is being filled.
    Rebuilding,
    /// More are missing than its redundancy makes up for.
    Failed,
}

/// What the SMART counters of a device are made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceHealth {
    /// The member's name; empty where a device stands alone.
    pub name: String,
    /// Product name.
    pub model: String,
    /// Bytes that it exports.
    pub capacity_bytes: u64,
    /// Turns of the spindle a minute.
    pub rpm: Option<u32>,
    /// Sectors that were found unreadable and have not been written since.
    pub pending_sectors: u64,
    /// Sectors that are on spares.
    pub reallocated_sectors: u64,
    /// Accesses that failed.
    pub uncorrectable_errors: u64,
    /// Passes repeated because of an error.
    pub retried_passes: u64,
    /// Bytes read by its host.
    pub read_bytes: u64,
    /// Bytes written by its host.
    pub written_bytes: u64,
    /// Times that it was switched on, the first included.
    pub power_cycles: u32,
    /// It answers nobody.
    pub missing: bool,
}

/// What a span has in common with the bytes `[from, to)`.
pub(crate) fn common(span: Span, from: u64, to: u64) -> Option<Span> {
    let (from, to) = (from.max(span.start_bytes), to.min(span.start_bytes + span.length_bytes));
    (from < to).then(|| Span { start_bytes: from, length_bytes: to - from })
}

/// Appends what spans that ascend have in common with the bytes `[from, to)`.
pub(crate) fn common_with_all(spans: &[Span], from: u64, to: u64, into: &mut Vec<Span>) {
    let begin = spans.partition_point(|span| span.start_bytes + span.length_bytes <= from);
    let inside = spans[begin..].iter().take_while(|span| span.start_bytes < to);
    into.extend(inside.filter_map(|&span| common(span, from, to)));
}

/// Puts spans from place `first` on in order and joins those that touch.
pub(crate) fn put_in_order(spans: &mut Vec<Span>, first: usize) {
    spans[first..].sort_unstable_by_key(|span| span.start_bytes);
    let mut kept = first;
    for at in first..spans.len() {
        let span = spans[at];
        if kept > first && span.start_bytes <= spans[kept - 1].start_bytes + spans[kept - 1].length_bytes {
            let end = span.start_bytes + span.length_bytes;
            let last = &mut spans[kept - 1];
            last.length_bytes = last.length_bytes.max(end - last.start_bytes);
        } else {
            spans[kept] = span;
            kept += 1;
        }
    }
    spans.truncate(kept);
}
