//! Where requests go: the pieces that a trace touches, dealt out anew.
//!
//! A piece is what runs and requests hold together: extents that lie side by side, of which the latter is often entered
//! from the former. What is used again within a piece is used again in the twin, so that runs, strides and miss ratios
//! stay; where the piece lies is drawn.

use headstack_workload::{Purpose, Random};
use rustc_hash::FxHashMap;

use super::bursts::Played;
use super::runs::Ends;
use crate::analyze::transfers;
use crate::record::Record;

/// Extents that are told apart at first; they grow when a trace touches too many.
const EXTENT_SHIFT: u32 = 20;
/// Extents in memory at most: 2^20 of 1 MiB are a trace that touches a terabyte everywhere.
const EXTENTS_MAX: usize = 1 << 20;
/// Neighbours belong together if one entry in so many comes across their border.
const ENTRIES_PER_CROSSING: u64 = 32;
/// Laps after which places come again: a twin's addresses end somewhere.
const LAPS: u64 = 16;
/// Neighbouring pieces that change places: seeks keep their lengths but for so much.
const DEALT: usize = 16;

#[derive(Clone, Copy, Default)]
struct Extent {
    /// Runs and single requests that began here or came in.
    entries: u64,
    /// Those of them that came across the lower border.
    crossings: u64,
}

/// What a trace touches, as it is read.
pub(super) struct Touched {
    shift: u32,
    extents: FxHashMap<(u32, u64), Extent>,
    ends: FxHashMap<u32, Ends>,
}

impl Touched {
    pub(super) fn new() -> Touched {
        Touched { shift: EXTENT_SHIFT, extents: FxHashMap::default(), ends: FxHashMap::default() }
    }

    pub(super) fn add(&mut self, record: &Record) {
        if !transfers(record.operation) || record.length_bytes == 0 {
            return;
        }
        let (first, last) = (record.offset_bytes >> self.shift, (record.end_bytes() - 1) >> self.shift);
        let ends = self.ends.entry(record.device).or_default();
        let goes_on = ends.follow(record.offset_bytes, record.end_bytes(), 0).is_some() && record.offset_bytes > 0;
        let crosses = goes_on && (record.offset_bytes - 1) >> self.shift != first;
        let extent = self.extents.entry((record.device, first)).or_default();
        extent.entries += u64::from(!goes_on || crosses);
        extent.crossings += u64::from(crosses);
        for index in first + 1..=last {
            let extent = self.extents.entry((record.device, index)).or_default();
            (extent.entries, extent.crossings) = (extent.entries + 1, extent.crossings + 1);
        }
        while self.extents.len() > EXTENTS_MAX {
            self.widen();
        }
    }

    /// Joins extents two by two.
    fn widen(&mut self) {
        self.shift += 1;
        for ((device, index), extent) in std::mem::take(&mut self.extents) {
            let joined = self.extents.entry((device, index / 2)).or_default();
            joined.entries += extent.entries;
            // Across the border within it nothing comes in any more.
            joined.crossings += if index % 2 == 0 { extent.crossings } else { 0 };
        }
    }

    /// Deals the pieces out, with room for the copies of each beside it.
    pub(super) fn dealt(self, footprint: f64, seed: u64) -> Places {
        let mut random = Random::new(seed, Purpose::Addresses);
        let mut extents: Vec<((u32, u64), Extent)> = self.extents.into_iter().collect();
        extents.sort_unstable_by_key(|&(place, _)| place);
        let mut pieces: Vec<Piece> = Vec::new();
        for &((device, index), extent) in &extents {
            match pieces.last_mut() {
                Some(last)
                    if last.device == device
                        && last.end() == index
                        && extent.crossings * ENTRIES_PER_CROSSING >= extent.entries.max(1) =>
                {
                    last.extents += 1;
                    last.entries += extent.entries;
                }
                _ => pieces.push(Piece { device, first: index, extents: 1, entries: extent.entries, copies: 0 }),
            }
        }
        copy(&mut pieces, footprint);
        let (mut homes, mut ends) = (FxHashMap::default(), FxHashMap::default());
        for of_device in pieces.chunk_by(|one, other| one.device == other.device) {
            ends.insert(of_device[0].device, deal(of_device, &mut random, &mut homes));
        }
        Places { shift: self.shift, homes, ends, pieces: pieces.len() as u64, copies: footprint.ceil() as u64 }
    }
}

/// Extents of a device that stay together.
#[derive(Clone, Copy)]
struct Piece {
    device: u32,
    first: u64,
    extents: u64,
    entries: u64,
    copies: u64,
}

impl Piece {
    fn end(&self) -> u64 {
        self.first + self.extents
    }
}

/// Says how many copies there are of each piece. Of a fraction, the last copy has as many of the entries, and of pieces that
/// are as hot as each other, so that it has as much of the footprint too: what it has is used again as in the trace, after
/// so many fewer requests.
fn copy(pieces: &mut [Piece], footprint: f64) {
    let (copies, last) = (footprint.ceil() as u64, 1.0 - (footprint.ceil() - footprint));
    let heat = |piece: &Piece| piece.entries as f64 / piece.extents as f64;
    let mut by_heat: Vec<&mut Piece> = pieces.iter_mut().collect();
    by_heat.sort_by(|one, other| heat(one).total_cmp(&heat(other)));
    let mut owed = 0.0;
    for piece in by_heat {
        let entries = piece.entries as f64;
        owed += last * entries;
        let has_piece = owed >= entries / 2.0;
        owed -= if has_piece { entries } else { 0.0 };
        piece.copies = copies - u64::from(!has_piece);
    }
}

/// Where an extent is in the twin, how far from one copy to the next, and how many there are.
#[derive(Clone, Copy)]
struct Home {
    extent: u64,
    stride: u64,
    copies: u64,
}

/// Gives the pieces of a device, which are in order, their places: neighbours change places at random, and what was
/// free between them stays free. The last one stays last, for its device may end within its last extent. Says which
/// extent is the first behind them.
fn deal(pieces: &[Piece], random: &mut Random, homes: &mut FxHashMap<(u32, u64), Home>) -> u64 {
    let (mut next, mut end) = (pieces[0].first, pieces[0].first);
    let (last, others) = pieces.split_last().expect("a device without pieces is none");
    for group in others.chunks(DEALT).chain([std::slice::from_ref(last)]) {
        let mut order: Vec<usize> = (0..group.len()).collect();
        for index in (1..order.len()).rev() {
            order.swap(index, random.below(index as u64 + 1) as usize);
        }
        for (place, piece) in group.iter().zip(order.into_iter().map(|index| group[index])) {
            next += place.first - end;
            end = place.end();
            let copies = piece.copies;
            for index in 0..piece.extents {
                let home = Home { extent: next + index, stride: piece.extents, copies };
                homes.insert((piece.device, piece.first + index), home);
            }
            next += piece.extents * copies;
        }
    }
    next
}

/// Where everything lies in the twin.
pub(super) struct Places {
    shift: u32,
    homes: FxHashMap<(u32, u64), Home>,
    /// For each device, the first extent behind its pieces.
    ends: FxHashMap<u32, u64>,
    /// What was dealt out.
    pub(super) pieces: u64,
    /// Copies of the footprint, of which the last may have some pieces only.
    pub(super) copies: u64,
}

impl Places {
    /// Leaves those requests that a copy has pieces for, at their places in the lap of that number. What transfers nothing
    /// stays where it was, with the request before it.
    ///
    /// Laps have places of their own, one behind the other, for as many as there may be. So what a lap meets for the first
    /// time is as new to a cache as it was in the trace.
    pub(super) fn keep(&self, requests: &mut Vec<Played>, copy: u64, lap: u64) {
        // Who is first in the window follows none.
        let mut is_kept = copy + 1 < self.copies;
        requests.retain_mut(|Played { record, .. }| {
            if let Some(home) = self.homes.get(&(record.device, record.offset_bytes >> self.shift)) {
                is_kept = copy < home.copies;
                let within = record.offset_bytes & ((1 << self.shift) - 1);
                let behind = (lap % LAPS) * self.ends[&record.device];
                record.offset_bytes = ((behind + home.extent + copy * home.stride) << self.shift) + within;
            }
            is_kept
        });
    }
}
