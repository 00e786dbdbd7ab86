//! Power loss: the contents of volatile caches are lost, writes in progress are torn, and nothing is answered until
//! power is back. See docs/design/faults-and-power.md.
//!
//! A component that keeps contents changes them when a request arrives, long before the model has written it anywhere.
//! Each change is tracked until it is durable, which virtual time knows ([`exposure`]): a flush that came after its
//! acknowledgement is complete, it was written with FUA, or the model says that no volatile cache holds it any more.

pub mod exposure;

pub use exposure::{Changed, Exposure, Fate, InterruptedChange, Medium, Verdict, joined};

use std::collections::BTreeMap;

use headstack_workload::Span;
use serde::{Deserialize, Serialize};

use crate::description::device::DeviceDescription;
use crate::description::system::SystemDescription;

/// A trim or a run of zeros longer than this counts as durable: its previous contents could be the whole device.
pub const CHANGE_BYTES_MAX: u64 = 64 << 20;

/// Boundaries at which a write in progress may stop at a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tear {
    /// After any sector.
    #[default]
    Sector,
    /// At the end of a track; of a page in an SSD, of a stripe unit in an array.
    Track,
    /// Nowhere: it is complete or absent.
    None,
}

/// Parameters of a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    /// Boundaries at which writes in progress stop.
    pub tear: Tear,
    /// Bytes that are written atomically; by default those of a physical sector.
    pub atom_bytes: Option<u64>,
}

/// Loss by a power cut, as proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PowerLoss {
    /// Time of the power cut, in nanoseconds of the model.
    pub at_ns: u64,
    /// Acknowledged writes of which some part is missing.
    pub lost_writes: u64,
    /// Bytes of the sectors whose data differ from those that were acknowledged last.
    pub lost_bytes: u64,
    /// The first of these extents, in order of place.
    pub lost: Vec<LostExtent>,
    /// Number of these extents.
    pub lost_extents: u64,
    /// Writes and trims that were in flight.
    pub under_way: u64,
    /// How many of these are lost completely.
    pub absent: u64,
    /// How many of these are complete.
    pub whole: u64,
    /// Writes of which only the first part is stored, newest first.
    pub torn: Vec<TornWrite>,
}

/// Most extents of a loss that are listed.
const EXTENTS_LISTED_MAX: usize = 1 << 16;

impl PowerLoss {
    /// Records the loss that was found in the contents.
    pub fn record_loss(&mut self, lost: &LostWrites) {
        self.lost_writes = lost.writes;
        self.lost_extents = lost.spans.len() as u64;
        self.lost_bytes = lost.spans.iter().map(|span| span.length_bytes).sum();
        let listed = lost.spans.iter().take(EXTENTS_LISTED_MAX);
        self.lost =
            listed.map(|span| LostExtent { at_bytes: span.start_bytes, length_bytes: span.length_bytes }).collect();
    }
}

/// An extent of lost data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LostExtent {
    /// First byte of the system.
    pub at_bytes: u64,
    /// Its length.
    pub length_bytes: u64,
}

/// A write that was torn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TornWrite {
    /// First byte of the write.
    pub at_bytes: u64,
    /// Its length.
    pub length_bytes: u64,
    /// First byte that is not stored.
    pub torn_at_bytes: u64,
    /// Whether it had been acknowledged: power was lost while it was being destaged.
    pub acknowledged: bool,
}

/// Returns the bytes that a system writes atomically: a physical sector, the largest of an array's members'.
pub fn atom_bytes(description: &SystemDescription) -> u64 {
    let of = |device: &DeviceDescription| match device {
        DeviceDescription::Disk(drive) => drive.geometry.physical_sector_bytes,
        DeviceDescription::Ssd(_) | DeviceDescription::Volume(_) => device.block_bytes(),
    };
    let bytes = match description {
        SystemDescription::Drive(device) => of(device),
        SystemDescription::Array(array) => array.devices.iter().map(of).max().unwrap_or(0),
    };
    u64::from(bytes.max(512))
}

/// Loss of the newest acknowledged data in a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostWrites {
    /// Changes of which some part is missing.
    pub writes: u64,
    /// Spans whose bytes differ from the acknowledged ones, in order of place.
    pub spans: Vec<Span>,
}

impl LostWrites {
    /// Returns the loss according to the verdicts of a cut where no contents are kept: every loss of the newest
    /// acknowledged data counts, regardless of the previous bytes.
    pub fn from_verdicts(mut verdicts: Vec<Verdict>) -> LostWrites {
        verdicts.sort_by_key(|verdict| std::cmp::Reverse(verdict.number));
        // Spans of newer changes, by their first byte: they hide the loss of an older one.
        let mut newer: BTreeMap<u64, u64> = BTreeMap::new();
        let mut lost = LostWrites::default();
        for change in verdicts.chunk_by(|one, other| one.number == other.number) {
            let gone = |verdict: &&Verdict| match verdict.fate {
                Fate::Lost { acknowledged } => acknowledged,
                Fate::Durable => false,
            };
            let before = lost.spans.len();
            change.iter().filter(gone).for_each(|verdict| uncovered(&newer, verdict.span, &mut lost.spans));
            lost.writes += u64::from(lost.spans.len() > before);
            for verdict in change {
                match verdict.fate {
                    Fate::Durable | Fate::Lost { acknowledged: true } => cover(&mut newer, verdict.span),
                    Fate::Lost { acknowledged: false } => {}
                }
            }
        }
        lost.spans = joined(lost.spans);
        lost
    }
}

/// Appends the parts of a span that are not covered.
fn uncovered(covered: &BTreeMap<u64, u64>, span: Span, into: &mut Vec<Span>) {
    let (mut at_bytes, end_bytes) = (span.start_bytes, span.start_bytes + span.length_bytes);
    let before = covered.range(..=at_bytes).next_back();
    let within = covered.range(at_bytes + 1..end_bytes);
    for (&from, &to) in before.into_iter().chain(within).chain([(&end_bytes, &end_bytes)]) {
        if from > at_bytes {
            into.push(Span { start_bytes: at_bytes, length_bytes: from - at_bytes });
        }
        at_bytes = at_bytes.max(to).min(end_bytes);
    }
}

/// Covers a span, and merges it with those that it touches.
fn cover(covered: &mut BTreeMap<u64, u64>, span: Span) {
    let (mut from, mut to) = (span.start_bytes, span.start_bytes + span.length_bytes);
    while let Some((&start, &end)) = covered.range(..=to).next_back().filter(|(_, end)| **end >= from) {
        (from, to) = (from.min(start), to.max(end));
        covered.remove(&start);
    }
    covered.insert(from, to);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a verdict on the bytes `[from, to)`.
    fn verdict(number: u64, from: u64, to: u64, fate: Fate) -> Verdict {
        Verdict { number, span: Span { start_bytes: from, length_bytes: to - from }, fate }
    }

    #[test]
    fn a_loss_beneath_newer_data_is_none() {
        let (gone, kept) = (Fate::Lost { acknowledged: true }, Fate::Durable);
        let open = Fate::Lost { acknowledged: false };
        let spans = |verdicts: Vec<Verdict>| {
            let lost = LostWrites::from_verdicts(verdicts);
            let spans: Vec<(u64, u64)> =
                lost.spans.iter().map(|span| (span.start_bytes, span.start_bytes + span.length_bytes)).collect();
            (lost.writes, spans)
        };
        assert_eq!(spans(vec![]), (0, vec![]));
        assert_eq!(spans(vec![verdict(0, 0, 10, gone), verdict(1, 20, 30, gone)]), (2, vec![(0, 10), (20, 30)]));
        // A newer, durable write hides the middle of an older, lost one; one that is lost itself only counts.
        assert_eq!(spans(vec![verdict(0, 0, 30, gone), verdict(1, 10, 20, kept)]), (1, vec![(0, 10), (20, 30)]));
        assert_eq!(spans(vec![verdict(0, 0, 10, gone), verdict(1, 0, 10, gone)]), (1, vec![(0, 10)]));
        // A lost change that was never acknowledged hides nothing.
        assert_eq!(spans(vec![verdict(0, 0, 10, gone), verdict(1, 5, 10, open)]), (1, vec![(0, 10)]));
        // An older, durable one does not bring a newer one back.
        assert_eq!(spans(vec![verdict(0, 0, 10, kept), verdict(1, 0, 10, gone)]), (1, vec![(0, 10)]));
        let parts =
            vec![verdict(3, 0, 4, kept), verdict(3, 4, 8, gone), verdict(2, 0, 8, gone), verdict(1, 6, 12, gone)];
        assert_eq!(spans(parts), (2, vec![(4, 12)]));
    }
}
