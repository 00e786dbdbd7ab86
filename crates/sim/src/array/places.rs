//! [`Piece`]: where the bytes of an array's address space are stored, for callers outside and for error handling.

use headstack_workload::{Kind, Request};

use super::health::GroupState;
use super::levels::{Extent, Layout, Placing};
use super::pool::{self, Placement, Stripe};
use super::pooled::part;
use super::state::Array;

/// A run of bytes that one extent of a member holds.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// First byte in the array's address space.
    pub at_bytes: u64,
    /// Length.
    pub length_bytes: u64,
    /// The group that holds it.
    pub group: u32,
    /// Its place in the group.
    pub held: PiecePlacement<'a>,
}

/// Place of a piece.
#[derive(Clone, Copy, Debug)]
pub enum PiecePlacement<'a> {
    /// On each of these extents; only one if there is no redundancy.
    Copies(&'a [Extent]),
    /// In a row with parity.
    Row(Extent),
    /// In a stripe of a pool, from this byte of its segment on.
    Stripe(Extent, Stripe, u64),
}

impl PiecePlacement<'_> {
    /// Returns the extent of the piece on a slot, if it is there.
    fn on(&self, slot: u32) -> Option<&Extent> {
        match self {
            PiecePlacement::Copies(copies) => copies.iter().find(|copy| copy.slot == slot),
            PiecePlacement::Row(extent) | PiecePlacement::Stripe(extent, ..) => {
                Some(extent).filter(|extent| extent.slot == slot)
            }
        }
    }
}

impl Array {
    /// Calls `each` with the pieces of a run of the address space, ascending. Bytes for which a pool has no space yet
    /// are left out.
    pub(super) fn pieces(&self, offset_bytes: u64, length_bytes: u64, mut each: impl FnMut(&Piece)) {
        let capacity = self.lun_bases[self.lun_bases.len() - 1];
        let (mut at, end) = (offset_bytes, offset_bytes.saturating_add(length_bytes).min(capacity));
        while at < end {
            let lun = self.lun_bases.partition_point(|&base| base <= at) - 1;
            let length = self.lun_bases[lun + 1].min(end) - at;
            if self.pools[self.description.luns[lun].group as usize].is_some() {
                self.pooled_pieces(lun, at, length, &mut each);
            } else {
                self.laid_out_pieces(lun, at, length, &mut each);
            }
            at += length;
        }
    }

    fn laid_out_pieces(&self, lun: usize, from: u64, length: u64, each: &mut impl FnMut(&Piece)) {
        let place = &self.description.luns[lun];
        let group = place.group;
        let start = place.start_bytes + (from - self.lun_bases[lun]);
        let layout = &self.groups[group as usize].layout;
        let mut places = Vec::new();
        layout.places(start, length, &mut places);
        let mut at_bytes = from;
        for piece in places.chunks(layout.copies()) {
            let length_bytes = piece[0].length_bytes;
            let held = match layout {
                Layout::Copies(_) => PiecePlacement::Copies(piece),
                Layout::Parity(_) => PiecePlacement::Row(piece[0]),
            };
            each(&Piece { at_bytes, length_bytes, group, held });
            at_bytes += length_bytes;
        }
        debug_assert_eq!(at_bytes, from + length, "the pieces of a run cover it");
    }

    fn pooled_pieces(&self, lun: usize, from: u64, length: u64, each: &mut impl FnMut(&Piece)) {
        let group = self.description.luns[lun].group;
        let pool = self.pools[group as usize].as_ref().expect("the group has a pool");
        let segment_bytes = pool.description().segment_bytes;
        let (mut at, end) = (from, from + length);
        while at < end {
            let offset = self.description.luns[lun].start_bytes + (at - self.lun_bases[lun]);
            let within = offset % segment_bytes;
            let length_bytes = (segment_bytes - within).min(end - at);
            let part = |place: pool::Extent| self::part(place, within, length_bytes);
            let mut emit = |held: PiecePlacement| each(&Piece { at_bytes: at, length_bytes, group, held });
            match pool.place(self.lun_numbers[lun], (offset / segment_bytes) as u32) {
                None => {}
                Some(Placement::Mirrored(copies)) => emit(PiecePlacement::Copies(&copies.map(part))),
                Some(Placement::Parity { data, stripe }) => emit(PiecePlacement::Stripe(part(data), stripe, within)),
            }
            at += length_bytes;
        }
    }

    /// Returns the first byte of a run of the address space that is on bytes `from` to `to` of a slot of a group.
    pub(super) fn address_of(&self, run: (u64, u64), group: u32, slot: u32, (from, to): (u64, u64)) -> Option<u64> {
        let mut refused_piece = None;
        self.pieces(run.0, run.1, |piece| {
            let Some(extent) = piece.held.on(slot).filter(|_| refused_piece.is_none() && piece.group == group) else {
                return;
            };
            if extent.at_bytes < to && from < extent.end_bytes() {
                refused_piece = Some(piece.at_bytes + from.saturating_sub(extent.at_bytes));
            }
        });
        refused_piece
    }

    /// Returns the first byte of a run that no member can read or write.
    pub(super) fn first_unserved(&self, offset_bytes: u64, length_bytes: u64, kind: Kind) -> Option<u64> {
        let mut refused_piece = None;
        self.pieces(offset_bytes, length_bytes, |piece| {
            if refused_piece.is_none() && !self.is_served(piece, kind) {
                refused_piece = Some(piece.at_bytes);
            }
        });
        refused_piece
    }

    /// Whether something that a request reads, or has to write, belongs on a slot of a group that does not hold it now:
    /// data, a copy, or the parity of written data.
    pub(crate) fn misses(&self, (group, slot): (u32, u32), request: &Request) -> bool {
        let state = &self.groups[group as usize];
        if state.is_whole() || !matches!(request.kind, Kind::Read | Kind::Write) {
            return false;
        }
        let missing = |extent: &Extent| extent.slot == slot && state.member_for(extent, request.kind).is_none();
        let mut misses = false;
        self.pieces(request.offset_bytes, u64::from(request.length_bytes), |piece| {
            misses |= piece.group == group
                && match piece.held {
                    PiecePlacement::Copies(copies) => copies.iter().any(missing),
                    PiecePlacement::Row(extent) => {
                        let mut misses_parity = false;
                        if request.kind == Kind::Write {
                            state.parity().parities_of(&extent, |parity| misses_parity |= missing(&parity));
                        }
                        missing(&extent) || misses_parity
                    }
                    PiecePlacement::Stripe(extent, stripe, within) => {
                        let part = |place: pool::Extent| self::part(place, within, extent.length_bytes);
                        let mut parities = stripe.parity().into_iter().map(part);
                        missing(&extent) || (request.kind == Kind::Write && parities.any(|parity| missing(&parity)))
                    }
                };
        });
        misses
    }

    fn is_served(&self, piece: &Piece, kind: Kind) -> bool {
        let state = &self.groups[piece.group as usize];
        let there = |extent: &Extent| state.member_for(extent, Kind::Read).is_some();
        match piece.held {
            PiecePlacement::Copies(copies) => copies.iter().any(|copy| state.member_for(copy, kind).is_some()),
            PiecePlacement::Row(extent) => there(&extent) || state.recovery(&extent).is_some(),
            PiecePlacement::Stripe(extent, stripe, within) => {
                there(&extent) || self.stripe_recovery(state, &extent, &stripe, within).is_some()
            }
        }
    }

    fn stripe_recovery(
        &self,
        state: &GroupState,
        extent: &Extent,
        stripe: &Stripe,
        within: u64,
    ) -> Option<Vec<Extent>> {
        let part = |place: pool::Extent| self::part(place, within, extent.length_bytes);
        let there = |other: &Extent| other.slot != extent.slot && state.member_for(other, Kind::Read).is_some();
        let needed = stripe.data().count();
        let others: Vec<Extent> = stripe.data().chain(stripe.parity()).map(part).filter(there).take(needed).collect();
        (others.len() == needed).then_some(others)
    }

    /// Returns the extents from which the data of an extent can be reconstructed for a read of the run; `None` if there
    /// are none.
    pub(super) fn recovery(&self, run: (u64, u64), group: u32, extent: &Extent) -> Option<Vec<Extent>> {
        let state = &self.groups[group as usize];
        if self.pools[group as usize].is_none() {
            return state.recovery(extent);
        }
        let mut refused_piece = None;
        self.pieces(run.0, run.1, |piece| {
            let Some(own) = piece.held.on(extent.slot).filter(|own| {
                piece.group == group && own.at_bytes <= extent.at_bytes && extent.at_bytes < own.end_bytes()
            }) else {
                return;
            };
            let into = extent.at_bytes - own.at_bytes;
            let length_bytes = extent.length_bytes.min(own.length_bytes - into);
            refused_piece = match piece.held {
                PiecePlacement::Copies(copies) => {
                    let moved = |copy: &Extent| Extent { at_bytes: copy.at_bytes + into, length_bytes, ..*copy };
                    let mut others = copies.iter().filter(|copy| copy.slot != extent.slot).map(moved);
                    others.find(|copy| state.member_for(copy, Kind::Read).is_some()).map(|copy| vec![copy])
                }
                PiecePlacement::Stripe(_, stripe, within) => {
                    self.stripe_recovery(state, &Extent { length_bytes, ..*extent }, &stripe, within + into)
                }
                PiecePlacement::Row(_) => None,
            };
        });
        refused_piece
    }
}
