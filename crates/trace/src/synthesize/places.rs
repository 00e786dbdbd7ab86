//! [`Places`]: maps requests to the addresses of a synthetic trace by rearranging the touched pieces of the original.
//!
//! A piece is a set of adjacent extents connected by runs and consecutive requests. Reuse within a piece is preserved,
//! so runs, strides and miss ratios stay the same; the position of a piece is random.

use headstack_workload::{Purpose, Random};
use rustc_hash::FxHashMap;

use super::bursts::Played;
use super::runs::Ends;
use crate::analyze::transfers;
use crate::record::Record;

/// Base-2 logarithm of the initial extent size. Extents grow if a trace touches too many.
const EXTENT_SHIFT: u32 = 20;
/// Maximum number of extents in memory: 2^20 extents of 1 MiB suffice for a trace that touches 1 TiB.
const EXTENTS_MAX: usize = 1 << 20;
/// Adjacent extents are connected if at least one in this many entries crosses their border.
const ENTRIES_PER_CROSSING: u64 = 32;
/// Number of laps after which addresses repeat, since the addresses of a synthetic trace are limited.
const LAPS: u64 = 16;
/// Number of adjacent pieces that are permuted, which limits the change of seek distances.
const DEALT: usize = 16;

#[derive(Clone, Copy, Default)]
struct Extent {
    /// Number of runs and single requests that began in or entered this extent.
    entries: u64,
    /// Number of entries across the lower border.
    crossings: u64,
}

/// The touched extents of a trace.
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
            // Crossings of a border inside the joined extent no longer count.
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

/// Adjacent extents of a device that stay together.
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

/// Determines the number of copies of each piece. For a fractional footprint, the last copy gets that fraction of the
/// entries, taken from pieces that are equally hot, so it also has that fraction of the footprint. The last copy then
/// has the reuse of the original, after proportionally fewer requests.
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

/// Position of an extent in the synthetic trace, the distance between its copies, and the number of copies.
#[derive(Clone, Copy)]
struct Home {
    extent: u64,
    stride: u64,
    copies: u64,
}

/// Assigns positions to the pieces of a device, which must be in order. Nearby pieces are permuted at random, and gaps
/// between pieces are kept. The last piece stays last, because the device may end within its last extent. Returns the
/// first extent after the pieces.
fn deal(pieces: &[Piece], random: &mut Random, homes: &mut FxHashMap<(u32, u64), Home>) -> u64 {
    let (mut next, mut end) = (pieces[0].first, pieces[0].first);
    let (last, others) = pieces.split_last().expect("every device has at least one piece");
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

/// Positions of all extents in the synthetic trace.
pub(super) struct Places {
    shift: u32,
    homes: FxHashMap<(u32, u64), Home>,
    /// First extent after the pieces of each device.
    ends: FxHashMap<u32, u64>,
    /// Number of rearranged pieces.
    pub(super) pieces: u64,
    /// Number of copies of the footprint; the last copy may have only some pieces.
    pub(super) copies: u64,
}

impl Places {
    /// Keeps the requests for which this copy has pieces and moves them to their positions in this lap. Requests that
    /// transfer no data stay with the previous request.
    ///
    /// Laps have separate positions, one after another, up to a limit. So data touched for the first time in a lap are
    /// as new to a cache as in the original.
    pub(super) fn keep(&self, requests: &mut Vec<Played>, copy: u64, lap: u64) {
        // No request precedes the first request of the window.
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
