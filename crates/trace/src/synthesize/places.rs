//! [`Places`]: addresses of requests: the touched pieces of a trace, rearranged.
//!
//! A piece is a set of adjacent extents that runs and consecutive requests connect. Re-use within a piece is preserved,
//! so runs, strides and miss ratios stay the same; the position of a piece is random.

use headstack_workload::{Purpose, Random};
use rustc_hash::FxHashMap;

use super::bursts::Played;
use super::runs::Ends;
use crate::analyze::transfers;
use crate::record::Record;

/// Initial extent size (base-2 logarithm); extents grow if a trace touches too many.
const EXTENT_SHIFT: u32 = 20;
/// Largest number of extents in memory: 2^20 of 1 MiB are a trace that touches a terabyte everywhere.
const EXTENTS_MAX: usize = 1 << 20;
/// Neighbours are connected if one entry in so many crosses their border.
const ENTRIES_PER_CROSSING: u64 = 32;
/// Number of laps after which places repeat, since the addresses of a synthetic trace are limited.
const LAPS: u64 = 16;
/// Number of neighbouring pieces that are permuted: seek distances change by no more than that.
const DEALT: usize = 16;

#[derive(Clone, Copy, Default)]
struct Extent {
    /// Runs and single requests that began in or entered this extent.
    entries: u64,
    /// Number of entries across the lower border.
    crossings: u64,
}

/// Touched extents of a trace.
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

    /// Merges pairs of extents.
    fn widen(&mut self) {
        self.shift += 1;
        for ((device, index), extent) in std::mem::take(&mut self.extents) {
            let joined = self.extents.entry((device, index / 2)).or_default();
            joined.entries += extent.entries;
            // Entries across the border within it do not count any more.
            joined.crossings += if index % 2 == 0 { extent.crossings } else { 0 };
        }
    }

    /// Rearranges the pieces, with adjacent room for the copies of each.
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

/// Determines the number of copies of each piece. For a fractional footprint, the last copy has that fraction of the
/// entries, and of pieces that are equally hot, so that it also has that fraction of the footprint: its re-use is as in
/// the original, after proportionally fewer requests.
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

/// Position of an extent in the synthetic trace, distance between copies, and their number.
#[derive(Clone, Copy)]
struct Home {
    extent: u64,
    stride: u64,
    copies: u64,
}

/// Assigns positions to the pieces of a device, which are in order: neighbours are permuted at random, and gaps between
/// them are kept. The last one stays last, since its device may end within its last extent. Returns the first extent
/// after them.
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

/// All positions in the synthetic trace.
pub(super) struct Places {
    shift: u32,
    homes: FxHashMap<(u32, u64), Home>,
    /// For each device, the first extent after its pieces.
    ends: FxHashMap<u32, u64>,
    /// Number of rearranged pieces.
    pub(super) pieces: u64,
    /// Number of copies of the footprint; the last may have only some pieces.
    pub(super) copies: u64,
}

impl Places {
    /// Keeps the requests for which a copy has pieces, at their positions in the lap with that number. Requests that
    /// transfer nothing stay with the previous request.
    ///
    /// Laps have separate positions, one after another, up to a limit. So data that a lap touches for the first time
    /// are as new to a cache as in the original.
    pub(super) fn keep(&self, requests: &mut Vec<Played>, copy: u64, lap: u64) {
        // The first request of the window follows none.
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
