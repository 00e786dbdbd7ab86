//! [`Space`]: buckets of the cache device: which are free, which can be evicted, and what each holds.

use std::collections::BTreeSet;

use headstack_cache::{CachePolicy, Policy, Replacement};

use crate::stack::extents::Extent;

/// A bucket.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// Mapped bytes, and those of them that the origin does not have.
    live: u32,
    dirty: u32,
    /// Requests that read or write it.
    pins: u32,
    /// Whether the policy has it.
    is_listed: bool,
    /// Whether the policy must not evict it.
    is_kept: bool,
}

/// Origin ranges whose data a bucket may hold.
#[derive(Clone, Debug)]
enum Contents {
    /// A bucket holds one range as long as itself, which begins here.
    Whole(Vec<u64>),
    /// A bucket holds several ranges: start and length of each.
    Several(Vec<Vec<(u64, u32)>>),
}

/// Buckets of a cache device. Those never used take no memory.
#[derive(Clone, Debug)]
pub(super) struct Space {
    first_bytes: u64,
    bucket_bytes: u64,
    count: u32,
    buckets: Vec<Bucket>,
    contents: Contents,
    free: BTreeSet<u32>,
    /// First bucket of the next search for a free one: buckets are used in ascending order.
    cursor: u32,
    /// Bucket that takes extents, and its used bytes.
    open: Option<(u32, u32)>,
    policy: Replacement,
    evictable: u32,
    /// Buckets with dirty bytes.
    dirty: u32,
}

impl Space {
    /// Creates `count` free buckets from `first_bytes` on. With `whole`, each holds one range.
    pub fn new(policy: CachePolicy, first_bytes: u64, bucket_bytes: u64, count: u32, whole: bool) -> Space {
        Space {
            first_bytes,
            bucket_bytes,
            count,
            buckets: Vec::new(),
            contents: if whole { Contents::Whole(Vec::new()) } else { Contents::Several(Vec::new()) },
            free: BTreeSet::new(),
            cursor: 0,
            open: None,
            policy: Replacement::new(policy, u64::from(count), false),
            evictable: 0,
            dirty: 0,
        }
    }

    /// Returns the bucket of a place.
    pub fn bucket_of(&self, place: u64) -> u32 {
        ((place - self.first_bytes) / self.bucket_bytes) as u32
    }

    fn place_of(&self, bucket: u32) -> u64 {
        self.first_bytes + u64::from(bucket) * self.bucket_bytes
    }

    /// Returns the number of free buckets.
    pub fn free_buckets(&self) -> u32 {
        self.count - self.buckets.len() as u32 + self.free.len() as u32
    }

    /// Returns the number of buckets.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the part of buckets with dirty data, in percent.
    pub fn dirty_percent(&self) -> u32 {
        (u64::from(self.dirty) * 100 / u64::from(self.count)) as u32
    }

    /// Returns the bytes that can be allocated without an eviction.
    pub fn free_bytes(&self) -> u64 {
        let in_open = self.open.map_or(0, |(_, used)| self.bucket_bytes - u64::from(used));
        in_open + u64::from(self.free_buckets()) * self.bucket_bytes
    }

    /// Takes a free bucket, pinned once; returns its place.
    pub fn take(&mut self) -> Option<u64> {
        let fresh = self.buckets.len() as u32;
        let bucket = if fresh < self.count {
            self.buckets.push(Bucket::default());
            match &mut self.contents {
                Contents::Whole(starts) => starts.push(0),
                Contents::Several(ranges) => ranges.push(Vec::new()),
            }
            fresh
        } else {
            let next = self.free.range(self.cursor..).next().or_else(|| self.free.first()).copied()?;
            self.free.remove(&next);
            next
        };
        self.cursor = bucket + 1;
        self.policy.nodes().reach(bucket as usize + 1);
        self.buckets[bucket as usize] = Bucket { pins: 1, ..Bucket::default() };
        self.list(bucket);
        Some(self.place_of(bucket))
    }

    fn list(&mut self, bucket: u32) {
        self.policy.recall(bucket);
        self.policy.admit(bucket, 1, u64::from(bucket));
        self.buckets[bucket as usize].is_listed = true;
        self.evictable += 1;
    }

    /// Allocates bytes one after the other, which may end one bucket and begin another: appends the places, each
    /// pinned once. There must be enough free bytes.
    pub fn allocate(&mut self, bytes: u32, into: &mut Vec<(u64, u32)>) {
        debug_assert!(self.free_bytes() >= u64::from(bytes), "free bytes were checked");
        let mut left = bytes;
        while left > 0 {
            let (bucket, used) = match self.open {
                Some(open) => {
                    self.buckets[open.0 as usize].pins += 1;
                    open
                }
                None => {
                    let place = self.take().expect("free bytes were checked");
                    (self.bucket_of(place), 0)
                }
            };
            let taken = left.min((self.bucket_bytes - u64::from(used)) as u32);
            into.push((self.place_of(bucket) + u64::from(used), taken));
            left -= taken;
            let is_full = u64::from(used + taken) == self.bucket_bytes;
            self.open = (!is_full).then_some((bucket, used + taken));
            self.refresh(bucket);
        }
    }

    /// Returns the buckets of a run of bytes on the cache device.
    fn buckets_of(&self, place: u64, length: u32) -> std::ops::RangeInclusive<u32> {
        self.bucket_of(place)..=self.bucket_of(place + u64::from(length) - 1)
    }

    /// Keeps the buckets of a run of bytes from being evicted or reused.
    pub fn pin(&mut self, place: u64, length: u32) {
        for bucket in self.buckets_of(place, length) {
            self.buckets[bucket as usize].pins += 1;
        }
    }

    /// Ends a pin.
    pub fn unpin(&mut self, place: u64, length: u32) {
        for bucket in self.buckets_of(place, length) {
            self.buckets[bucket as usize].pins -= 1;
            self.refresh(bucket);
        }
    }

    /// Notes a use of the buckets of a run of bytes.
    pub fn used(&mut self, place: u64, length: u32) {
        for bucket in self.buckets_of(place, length) {
            if self.buckets[bucket as usize].is_listed {
                self.policy.hit(bucket);
            }
        }
    }

    /// Notes that an extent is mapped.
    pub fn add(&mut self, extent: &Extent, dirty: bool) {
        let bucket = self.bucket_of(extent.place);
        let first_place = self.place_of(bucket);
        debug_assert!(extent.place + u64::from(extent.length) <= first_place + self.bucket_bytes);
        match &mut self.contents {
            Contents::Whole(starts) => starts[bucket as usize] = extent.start - (extent.place - first_place),
            Contents::Several(ranges) => match ranges[bucket as usize].last_mut() {
                Some((start, length)) if *start + u64::from(*length) == extent.start => *length += extent.length,
                Some(_) | None => ranges[bucket as usize].push((extent.start, extent.length)),
            },
        }
        self.buckets[bucket as usize].live += extent.length;
        if dirty {
            self.make_dirty(extent);
        }
    }

    /// Notes that bytes of a mapped extent became dirty.
    fn make_dirty(&mut self, extent: &Extent) {
        let bucket = self.bucket_of(extent.place);
        let state = &mut self.buckets[bucket as usize];
        self.dirty += u32::from(state.dirty == 0);
        state.dirty += extent.length;
        self.refresh(bucket);
    }

    /// Notes that dirty bytes became clean.
    pub fn make_clean(&mut self, extent: &Extent) {
        let bucket = self.bucket_of(extent.place);
        let state = &mut self.buckets[bucket as usize];
        state.dirty -= extent.length;
        self.dirty -= u32::from(state.dirty == 0);
        self.refresh(bucket);
    }

    /// Notes that an extent is no longer mapped.
    pub fn remove(&mut self, extent: &Extent, dirty: bool) {
        let bucket = self.bucket_of(extent.place);
        self.buckets[bucket as usize].live -= extent.length;
        if dirty {
            self.make_clean(extent);
        }
        self.refresh(bucket);
    }

    /// Lets the policy evict a bucket, or not, and frees an empty one.
    fn refresh(&mut self, bucket: u32) {
        let is_open = self.open.is_some_and(|(open, _)| open == bucket);
        let state = &mut self.buckets[bucket as usize];
        if !state.is_listed {
            return;
        }
        let keep = is_open || state.dirty > 0;
        if keep != state.is_kept {
            state.is_kept = keep;
            if keep {
                self.policy.keep(bucket);
                self.evictable -= 1;
            } else {
                self.policy.release(bucket);
                self.evictable += 1;
            }
        }
        if !keep && state.live == 0 && state.pins == 0 {
            state.is_listed = false;
            self.policy.discard(bucket);
            self.evictable -= 1;
            self.set_free(bucket);
        }
    }

    fn set_free(&mut self, bucket: u32) {
        if let Contents::Several(ranges) = &mut self.contents {
            ranges[bucket as usize].clear();
        }
        self.free.insert(bucket);
    }

    /// Chooses a bucket to evict, and appends the origin ranges that it may hold. The caller unmaps them and then
    /// calls [`Space::evicted`].
    pub fn evict(&mut self, ranges: &mut Vec<(u64, u64)>) -> Option<u32> {
        for _ in 0..self.evictable {
            let bucket = self.policy.replace();
            self.evictable -= 1;
            self.buckets[bucket as usize].is_listed = false;
            if self.buckets[bucket as usize].pins > 0 {
                self.list(bucket);
                continue;
            }
            match &self.contents {
                Contents::Whole(starts) => {
                    let start = starts[bucket as usize];
                    ranges.push((start, start + self.bucket_bytes));
                }
                Contents::Several(all) => {
                    let own = all[bucket as usize].iter();
                    ranges.extend(own.map(|&(start, length)| (start, start + u64::from(length))));
                }
            }
            return Some(bucket);
        }
        None
    }

    /// Frees an evicted bucket.
    pub fn evicted(&mut self, bucket: u32) {
        debug_assert!(self.buckets[bucket as usize].live == 0, "an evicted bucket has no data");
        self.set_free(bucket);
    }

    /// Ends all pins, as after a power cycle.
    pub fn unpin_all(&mut self) {
        self.open = None;
        for bucket in 0..self.buckets.len() as u32 {
            self.buckets[bucket as usize].pins = 0;
            self.refresh(bucket);
        }
    }
}
