//! [`BlockCache`]: a fast device in front of a slow one: bcache, dm-cache or dm-writecache (docs/design/stacks.md).
//!
//! A write to the cache is mapped when its data are on the cache device, and a commit makes the map durable. Dirty data
//! are copied to the origin in the background; they stay dirty until the origin was flushed after the copy. bcache
//! itself does not flush there, so that it can lose synced data with an origin whose cache is volatile.

mod bypass;
mod candidates;
mod changes;
mod commit;
mod committing;
mod copying;
mod jobs;
mod map;
mod outside;
mod promotion;
mod rate;
mod reads;
mod requests;
mod space;
mod under_way;
mod writes;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use headstack_workload::{Kind, Request};
use rustc_hash::FxHashMap;

use super::cores::Cores;
use super::orders::{Order, Orders};
use crate::description::stack::{BlockCacheDescription, CacheSoftware};
use crate::slab::Slab;
use bypass::Bypass;
use candidates::Candidates;
use changes::Changes;
use commit::Commit;
use jobs::Jobs;
use map::Map;
use rate::Rate;
use space::Space;
use under_way::{Counters, Due, HostRequest, Insert, Part, Promotion, Sent};

/// A block cache in virtual time.
#[derive(Clone, Debug)]
pub(crate) struct BlockCache {
    description: BlockCacheDescription,
    capacity_bytes: u64,
    map: Map,
    changes: Changes,
    commit: Commit,
    cores: Cores,
    requests: Slab<HostRequest>,
    /// Requests whose processor time ends: time, order, number.
    beginning: BinaryHeap<Reverse<(u64, u64, u32)>>,
    begun: u64,
    sent: Slab<Sent>,
    /// Ranges of writes from above that are under way: by the number of the request, for dm-writecache of the request
    /// below. They are not copied to the origin meanwhile.
    writing: BTreeMap<u32, (u64, u64)>,
    inserts: BTreeMap<u32, Insert>,
    insert_number: u32,
    jobs: Jobs,
    /// Address at which the scan for dirty data continues.
    cursor: u64,
    /// Whether the scan is under way: bcache after its delay, dm-writecache between its watermarks, dm-cache if a
    /// promotion needs a clean block.
    is_writing_back: bool,
    /// Blocks of dm-writecache in the order of their writes.
    order: VecDeque<u64>,
    rate: Rate,
    promotions: Slab<Promotion>,
    candidates: Candidates,
    /// Blocks of dm-cache that are being copied, and the writes that wait for them.
    locked: FxHashMap<u64, Vec<Part>>,
    /// Parts of writes that wait for a free block.
    full: VecDeque<Part>,
    due: Due,
    bypass: Bypass,
    /// Last begin or end of a request.
    used_ns: u64,
    /// Writes in place since the start, and those that a flush covered.
    overwrites: u64,
    flushed_overwrites: u64,
    counters: Counters,
}

impl BlockCache {
    /// Creates an empty cache over an origin and a cache device of these capacities.
    pub fn new(description: &BlockCacheDescription, capacity_bytes: u64, cache_bytes: u64) -> BlockCache {
        let whole = match description.software {
            CacheSoftware::Bcache(_) => false,
            CacheSoftware::DmCache(_) | CacheSoftware::DmWritecache(_) => true,
        };
        let (metadata_bytes, bucket_bytes) = (description.metadata_bytes, description.bucket_bytes);
        let buckets = description.buckets(cache_bytes) as u32;
        let space = Space::new(description.policy, metadata_bytes, bucket_bytes, buckets, whole);
        BlockCache {
            capacity_bytes,
            map: Map::new(space, bucket_bytes),
            changes: Changes::default(),
            commit: Commit::default(),
            cores: Cores::new(description.cores),
            requests: Slab::default(),
            beginning: BinaryHeap::new(),
            begun: 0,
            sent: Slab::default(),
            writing: BTreeMap::new(),
            inserts: BTreeMap::new(),
            insert_number: 0,
            jobs: Jobs::default(),
            cursor: 0,
            is_writing_back: false,
            order: VecDeque::new(),
            rate: Rate::default(),
            promotions: Slab::default(),
            candidates: Candidates::new(buckets),
            locked: FxHashMap::default(),
            full: VecDeque::new(),
            due: Due::NEVER,
            bypass: Bypass::default(),
            used_ns: 0,
            overwrites: 0,
            flushed_overwrites: 0,
            counters: Counters::default(),
            description: description.clone(),
        }
    }

    /// Sends a request to a system below; returns its number.
    fn send(&mut self, port: u32, purpose: Sent, request: Request, orders: &mut Orders) -> u32 {
        let id = self.sent.insert(purpose);
        orders.push_back(Order::Send { port, id, request });
        id
    }

    /// Returns the end of a block that begins at `start`.
    fn block_end(&self, start: u64) -> u64 {
        (start + self.description.bucket_bytes).min(self.capacity_bytes)
    }

    /// Returns the beginning of the block of a byte.
    fn block_of(&self, byte: u64) -> u64 {
        byte / self.description.bucket_bytes * self.description.bucket_bytes
    }

    /// Whether a write from above to a part of `[from, to)` is under way.
    fn is_being_written(&self, from: u64, to: u64) -> bool {
        self.writing.values().any(|&(start, end)| start < to && from < end)
    }
}

/// Returns a request for `[start, end)`.
fn access(kind: Kind, start: u64, end: u64, forced: bool) -> Request {
    let length_bytes = (end - start) as u32;
    Request { kind, offset_bytes: start, length_bytes, force_unit_access: forced, ordered: false }
}

/// A flush.
const FLUSH: Request =
    Request { kind: Kind::Flush, offset_bytes: 0, length_bytes: 0, force_unit_access: false, ordered: false };
