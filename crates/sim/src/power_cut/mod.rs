//! Power loss: data that only a volatile cache held are lost, writes in flight are torn, and no request is answered
//! until power is back.
//!
//! A store of contents changes them when a request arrives, long before the model has written the data anywhere. Each
//! change is open until it is durable, which is known in virtual time ([`exposure`]): a flush that was submitted after
//! its acknowledgement is complete, it was written with FUA, or no volatile cache of the model holds it any more.

pub mod exposure;

pub use exposure::{Changed, Exposure, Fate, Halfway, Medium, Verdict, joined};

use std::collections::BTreeMap;

use headstack_workload::Span;
use serde::{Deserialize, Serialize};

use crate::description::device::DeviceDescription;
use crate::description::system::SystemDescription;

/// A trim or a run of zeros longer than this counts as durable: its pre-image could be all there is.
pub const CHANGE_BYTES_MAX: u64 = 64 << 20;

/// Where a write in flight at the power cut may have stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tear {
    /// After any sector.
    #[default]
    Sector,
    /// At the end of a track; of a page in a solid-state drive, of a stripe unit in an array.
    Track,
    /// Nowhere: the write is present as a whole, or not at all.
    None,
}

/// How power fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    /// Where writes in flight stop.
    pub tear: Tear,
    /// Bytes that are written as a whole or not at all; by default those of a physical sector.
    pub atom_bytes: Option<u64>,
}

/// The losses of a power cut, as proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PowerLoss {
    /// When power failed, in nanoseconds of the model.
    pub at_ns: u64,
    /// Acknowledged writes of which some data are lost.
    pub lost_writes: u64,
    /// Bytes of the sectors that hold other data than those acknowledged last.
    pub lost_bytes: u64,
    /// The first of these sectors, in order of place.
    pub lost: Vec<LostExtent>,
    /// Number of extents.
    pub lost_extents: u64,
    /// Writes and trims that were under way.
    pub under_way: u64,
    /// How many of these are lost as a whole.
    pub absent: u64,
    /// How many of these are complete.
    pub whole: u64,
    /// Writes whose first part is present and whose rest is not, the newest first.
    pub torn: Vec<TornWrite>,
}

/// Most extents of a loss that are listed.
const EXTENTS_TOLD: usize = 1 << 16;

impl PowerLoss {
    /// Enters the losses found in the contents.
    pub fn found(&mut self, lost: &Lost) {
        self.lost_writes = lost.writes;
        self.lost_extents = lost.spans.len() as u64;
        self.lost_bytes = lost.spans.iter().map(|span| span.length_bytes).sum();
        let told = lost.spans.iter().take(EXTENTS_TOLD);
        self.lost =
            told.map(|span| LostExtent { at_bytes: span.start_bytes, length_bytes: span.length_bytes }).collect();
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
    /// First byte that is not there.
    pub torn_at_bytes: u64,
    /// It was acknowledged: power failed while it was on its way out of a cache.
    pub acknowledged: bool,
}

/// Bytes that a system writes as a whole or not at all: its physical sector, or the largest of an array's members.
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

/// Losses of the newest acknowledged data at a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Changes of which some data are missing.
    pub writes: u64,
    /// Spans that hold other bytes, in order of place.
    pub spans: Vec<Span>,
}

impl Lost {
    /// Losses by the verdicts of a cut if no contents are kept: all lost data of the newest acknowledged changes count,
    /// whichever bytes had been there before.
    pub fn of_verdicts(mut verdicts: Vec<Verdict>) -> Lost {
        verdicts.sort_by_key(|verdict| std::cmp::Reverse(verdict.number));
        // Spans of newer changes, by their first byte: they hide losses of older ones.
        let mut newer: BTreeMap<u64, u64> = BTreeMap::new();
        let mut lost = Lost::default();
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

/// Appends the uncovered parts of a span.
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

/// Covers a span, and joins it with adjacent ones.
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

    /// A verdict on the bytes `[from, to)`.
    fn verdict(number: u64, from: u64, to: u64, fate: Fate) -> Verdict {
        Verdict { number, span: Span { start_bytes: from, length_bytes: to - from }, fate }
    }

    #[test]
    fn a_loss_beneath_newer_data_is_none() {
        let (gone, kept) = (Fate::Lost { acknowledged: true }, Fate::Durable);
        let open = Fate::Lost { acknowledged: false };
        let spans = |verdicts: Vec<Verdict>| {
            let lost = Lost::of_verdicts(verdicts);
            let spans: Vec<(u64, u64)> =
                lost.spans.iter().map(|span| (span.start_bytes, span.start_bytes + span.length_bytes)).collect();
            (lost.writes, spans)
        };
        assert_eq!(spans(vec![]), (0, vec![]));
        assert_eq!(spans(vec![verdict(0, 0, 10, gone), verdict(1, 20, 30, gone)]), (2, vec![(0, 10), (20, 30)]));
        // A newer write that is present hides the middle of an older, lost one; one that is lost itself counts alone.
        assert_eq!(spans(vec![verdict(0, 0, 30, gone), verdict(1, 10, 20, kept)]), (1, vec![(0, 10), (20, 30)]));
        assert_eq!(spans(vec![verdict(0, 0, 10, gone), verdict(1, 0, 10, gone)]), (1, vec![(0, 10)]));
        // A lost change that was never acknowledged hides nothing.
        assert_eq!(spans(vec![verdict(0, 0, 10, gone), verdict(1, 5, 10, open)]), (1, vec![(0, 10)]));
        // An older one that is there does not bring a newer one back.
        assert_eq!(spans(vec![verdict(0, 0, 10, kept), verdict(1, 0, 10, gone)]), (1, vec![(0, 10)]));
        let parts =
            vec![verdict(3, 0, 4, kept), verdict(3, 4, 8, gone), verdict(2, 0, 8, gone), verdict(1, 6, 12, gone)];
        assert_eq!(spans(parts), (2, vec![(4, 12)]));
    }
}
