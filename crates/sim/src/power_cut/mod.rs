//! Power loss: volatile caches lose their contents, writes in progress are torn, and no request is answered until power
//! is back. See docs/design/faults-and-power.md.
//!
//! An export that stores contents changes them when a request arrives, long before the model has written the data. Each
//! change is tracked until it is durable in virtual time ([`exposure`]): because a later flush has completed, because
//! it was written with FUA, or because no volatile cache of the model holds it any longer.

pub mod exposure;

pub use exposure::{Changed, Exposure, Fate, InterruptedChange, Medium, Verdict, joined};

use std::collections::BTreeMap;

use headstack_workload::Span;
use serde::{Deserialize, Serialize};

use crate::description::device::DeviceDescription;
use crate::description::system::SystemDescription;

/// Maximum length of a tracked change, in bytes. A longer trim or run of zeros counts as durable, because its previous
/// contents could be as large as the device.
pub const CHANGE_BYTES_MAX: u64 = 64 << 20;

/// Boundary at which a power cut can stop a write in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tear {
    /// After any sector.
    #[default]
    Sector,
    /// At the end of a track, of an SSD page, or of an array chunk.
    Track,
    /// Nowhere: each write is complete or absent.
    None,
}

/// Parameters of a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    /// Boundary at which writes in progress stop.
    pub tear: Tear,
    /// Number of bytes written atomically; defaults to the physical sector size.
    pub atom_bytes: Option<u64>,
}

/// Losses caused by a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PowerLoss {
    /// Virtual time of the power cut, in ns.
    pub at_ns: u64,
    /// Number of acknowledged writes with a missing part.
    pub lost_writes: u64,
    /// Number of bytes, in whole sectors, that differ from the data acknowledged last.
    pub lost_bytes: u64,
    /// The first lost extents in ascending order, up to a fixed number.
    pub lost: Vec<LostExtent>,
    /// Total number of lost extents.
    pub lost_extents: u64,
    /// Number of writes and trims in flight.
    pub under_way: u64,
    /// Number of writes and trims in flight that are lost completely.
    pub absent: u64,
    /// Number of writes and trims in flight that are complete.
    pub whole: u64,
    /// Writes with only the first part stored, newest first.
    pub torn: Vec<TornWrite>,
}

/// Maximum number of lost extents to list.
const EXTENTS_LISTED_MAX: usize = 1 << 16;

impl PowerLoss {
    /// Records the loss found in the contents.
    pub fn record_loss(&mut self, lost: &LostWrites) {
        self.lost_writes = lost.writes;
        self.lost_extents = lost.spans.len() as u64;
        self.lost_bytes = lost.spans.iter().map(|span| span.length_bytes).sum();
        let listed = lost.spans.iter().take(EXTENTS_LISTED_MAX);
        self.lost =
            listed.map(|span| LostExtent { at_bytes: span.start_bytes, length_bytes: span.length_bytes }).collect();
    }
}

/// A contiguous range of lost data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LostExtent {
    /// Offset of the first lost byte in the system.
    pub at_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
}

/// A write that the power cut tore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TornWrite {
    /// First byte of the write.
    pub at_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// First byte that was not stored.
    pub torn_at_bytes: u64,
    /// Whether the write had been acknowledged and was being destaged when power was lost.
    pub acknowledged: bool,
}

/// Returns the number of bytes that a system writes atomically: its physical sector size. For an array, this is the
/// largest of the members' sector sizes.
pub fn atom_bytes(description: &SystemDescription) -> u64 {
    let of = |device: &DeviceDescription| match device {
        DeviceDescription::Disk(drive) => drive.geometry.physical_sector_bytes,
        DeviceDescription::Ssd(_) | DeviceDescription::Volume(_) => device.block_bytes(),
    };
    let bytes = description.device_kinds().into_iter().map(of).max().unwrap_or(0);
    u64::from(bytes.max(512))
}

/// Newest acknowledged data that a power cut lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostWrites {
    /// Number of changes with a missing part.
    pub writes: u64,
    /// Spans whose bytes differ from the acknowledged data, in ascending order.
    pub spans: Vec<Span>,
}

impl LostWrites {
    /// Computes the loss from the verdicts of a cut, if no contents are kept. Every loss of the newest acknowledged
    /// data counts, even if the previous bytes were the same.
    pub fn from_verdicts(mut verdicts: Vec<Verdict>) -> LostWrites {
        verdicts.sort_by_key(|verdict| std::cmp::Reverse(verdict.number));
        // Spans of newer changes by first byte; these hide the loss of older changes.
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

/// Appends the parts of `span` that are not covered.
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

/// Adds a span to the covered spans and merges it with the spans that it touches.
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
        // A newer durable write hides the middle of an older lost write. A newer lost write is also counted.
        assert_eq!(spans(vec![verdict(0, 0, 30, gone), verdict(1, 10, 20, kept)]), (1, vec![(0, 10), (20, 30)]));
        assert_eq!(spans(vec![verdict(0, 0, 10, gone), verdict(1, 0, 10, gone)]), (1, vec![(0, 10)]));
        // A lost change that was never acknowledged hides no other loss.
        assert_eq!(spans(vec![verdict(0, 0, 10, gone), verdict(1, 5, 10, open)]), (1, vec![(0, 10)]));
        // An older durable change does not restore a newer lost one.
        assert_eq!(spans(vec![verdict(0, 0, 10, kept), verdict(1, 0, 10, gone)]), (1, vec![(0, 10)]));
        let parts =
            vec![verdict(3, 0, 4, kept), verdict(3, 4, 8, gone), verdict(2, 0, 8, gone), verdict(1, 6, 12, gone)];
        assert_eq!(spans(parts), (2, vec![(4, 12)]));
    }
}
