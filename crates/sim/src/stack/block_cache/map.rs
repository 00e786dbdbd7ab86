//! [`Map`]: the extents of a cache, dirty and clean, with the buckets that hold them.

use super::space::Space;
use crate::stack::extents::{Extent, Extents};

/// A part of the address space: on the cache device, or only on the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The cache has the only current copy.
    Dirty(Extent),
    /// The origin has the data as well.
    Clean(Extent),
    /// Not cached: first byte and end.
    Gap(u64, u64),
}

/// Extents and buckets.
#[derive(Clone, Debug)]
pub(super) struct Map {
    dirty: Extents,
    clean: Extents,
    pub space: Space,
    bucket_bytes: u64,
    /// Bytes that became dirty, that were overwritten or dropped while dirty, and that became clean.
    pub dirtied_bytes: u64,
    pub overwritten_bytes: u64,
    pub written_back_bytes: u64,
}

impl Map {
    /// Creates an empty map.
    pub fn new(space: Space, bucket_bytes: u64) -> Map {
        let (dirty, clean) = (Extents::default(), Extents::default());
        Map { dirty, clean, space, bucket_bytes, dirtied_bytes: 0, overwritten_bytes: 0, written_back_bytes: 0 }
    }

    /// Returns the dirty extents.
    pub fn dirty(&self) -> &Extents {
        &self.dirty
    }

    /// Returns the clean extents.
    pub fn clean(&self) -> &Extents {
        &self.clean
    }

    /// Whether a part of `[from, to)` is mapped.
    pub fn holds_any(&self, from: u64, to: u64) -> bool {
        self.dirty.overlapping(from, to).next().is_some() || self.clean.overlapping(from, to).next().is_some()
    }

    /// Returns the extent that begins at `start`, and whether it is dirty.
    pub fn starting_at(&self, start: u64) -> Option<(Extent, bool)> {
        let dirty = self.dirty.starting_at(start).map(|extent| (extent, true));
        dirty.or_else(|| self.clean.starting_at(start).map(|extent| (extent, false)))
    }

    /// Appends the pieces of `[from, to)`, ascending. Neighbours that continue each other are one piece.
    pub fn pieces(&self, from: u64, to: u64, into: &mut Vec<Piece>) {
        let mut dirty = self.dirty.overlapping(from, to).peekable();
        let mut clean = self.clean.overlapping(from, to).peekable();
        let mut at = from;
        loop {
            let dirty_first = match (dirty.peek(), clean.peek()) {
                (None, None) => break,
                (Some(dirty), Some(clean)) => dirty.start < clean.start,
                (dirty, _) => dirty.is_some(),
            };
            let Some(extent) = (if dirty_first { dirty.next() } else { clean.next() }) else { break };
            if at < extent.start {
                into.push(Piece::Gap(at, extent.start));
            }
            at = extent.end();
            match into.last_mut() {
                Some(Piece::Dirty(last)) if dirty_first && last.continues_in(&extent) => last.length += extent.length,
                Some(Piece::Clean(last)) if !dirty_first && last.continues_in(&extent) => last.length += extent.length,
                Some(Piece::Dirty(_) | Piece::Clean(_) | Piece::Gap(..)) | None => {
                    into.push(if dirty_first { Piece::Dirty(extent) } else { Piece::Clean(extent) });
                }
            }
        }
        if at < to {
            into.push(Piece::Gap(at, to));
        }
    }

    /// Unmaps `[from, to)`. Dirty bytes count as overwritten.
    pub fn unmap(&mut self, from: u64, to: u64) {
        let (space, overwritten_bytes) = (&mut self.space, &mut self.overwritten_bytes);
        self.dirty.remove(from, to, |part| {
            *overwritten_bytes += u64::from(part.length);
            space.remove(&part, true);
        });
        self.clean.remove(from, to, |part| space.remove(&part, false));
        self.check();
    }

    /// Maps an extent; its bytes lose their earlier place. The bucket must be pinned.
    pub fn map(&mut self, extent: Extent, dirty: bool) {
        self.unmap(extent.start, extent.end());
        let (space, bucket_bytes) = (&self.space, self.bucket_bytes);
        let bucket = space.bucket_of(extent.place);
        let may_merge = |before: &Extent| {
            space.bucket_of(before.place) == bucket && u64::from(before.length + extent.length) <= bucket_bytes
        };
        if dirty {
            self.dirty.insert(extent, may_merge);
            self.dirtied_bytes += u64::from(extent.length);
        } else {
            self.clean.insert(extent, may_merge);
        }
        self.space.add(&extent, dirty);
        self.check();
    }

    /// Notes that the origin has the data of a dirty extent. With `keep`, they stay in the cache.
    pub fn settle(&mut self, extent: &Extent, keep: bool) {
        let (space, mut parts) = (&mut self.space, Vec::new());
        let bucket = space.bucket_of(extent.place);
        self.dirty.remove(extent.start, extent.end(), |part| parts.push(part));
        debug_assert!(parts.iter().all(|part| part.place - extent.place == part.start - extent.start));
        for part in parts {
            self.written_back_bytes += u64::from(part.length);
            if keep {
                space.make_clean(&part);
                self.clean.insert(part, |before| space.bucket_of(before.place) == bucket);
            } else {
                space.remove(&part, true);
            }
        }
        self.check();
    }

    /// Evicts a bucket; returns whether one could be evicted.
    pub fn evict(&mut self) -> bool {
        let mut ranges = Vec::new();
        let Some(bucket) = self.space.evict(&mut ranges) else { return false };
        for (from, to) in ranges {
            let parts = self.clean.overlapping(from, to);
            let own: Vec<Extent> = parts.filter(|part| self.space.bucket_of(part.place) == bucket).collect();
            for part in own {
                let space = &mut self.space;
                self.clean.remove(part.start, part.end(), |part| space.remove(&part, false));
            }
        }
        self.space.evicted(bucket);
        true
    }

    /// Allocates places for `[start, end)`, each pinned once, and evicts clean buckets as needed. `None` if there is
    /// not enough space.
    pub fn allocate(&mut self, start: u64, end: u64) -> Option<Vec<Extent>> {
        let bytes = (end - start) as u32;
        while self.space.free_bytes() < u64::from(bytes) {
            if !self.evict() {
                return None;
            }
        }
        let mut places = Vec::new();
        self.space.allocate(bytes, &mut places);
        let mut at = start;
        let extent_at = |(place, length): (u64, u32)| {
            let extent = Extent { start: at, length, place };
            at = extent.end();
            extent
        };
        Some(places.into_iter().map(extent_at).collect())
    }

    /// Makes all extents dirty, as dm-cache assumes after a crash.
    pub fn make_all_dirty(&mut self) {
        let mut clean = Vec::new();
        self.clean.remove(0, u64::MAX, |extent| clean.push(extent));
        for extent in clean {
            self.space.pin(extent.place, extent.length);
            self.space.remove(&extent, false);
            self.map(extent, true);
            self.space.unpin(extent.place, extent.length);
        }
    }

    /// Bytes that became dirty are dirty still, overwritten, or on the origin.
    fn check(&self) {
        debug_assert_eq!(
            self.dirtied_bytes,
            self.dirty.bytes() + self.overwritten_bytes + self.written_back_bytes,
            "dirty bytes are conserved"
        );
    }
}
