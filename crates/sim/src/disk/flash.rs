//! [`Flash`]: the read cache in flash: which blocks it holds, and which blocks it admits and when.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::runs::Runs;
use crate::description::drive::FlashCache;

/// Maximum number of fills waiting in the buffer for the flash. Further fills are not admitted.
const FILLS_MAX: usize = 64;

/// Resident and used bits of each block: whether the block is in flash, and whether it was read since the clock hand
/// passed. At two bits a block, the marks of 24 drives fit in the processor's cache; a map with one entry per block
/// would not.
#[derive(Clone, Debug, Default)]
struct Marks {
    /// Marks of 32 neighboring blocks per word, keyed by the first block divided by 32. A word exists only if one of
    /// its blocks is in flash.
    words: FxHashMap<u64, u64>,
}

impl Marks {
    const RESIDENT: u64 = 1;
    const USED: u64 = 2;

    fn place(block: u64) -> (u64, u64) {
        (block / 32, block % 32 * 2)
    }

    fn has(&self, block: u64, mark: u64) -> bool {
        let (word, shift) = Marks::place(block);
        self.words.get(&word).is_some_and(|bits| bits >> shift & mark != 0)
    }

    /// Marks a block as used if it is in flash; returns whether it is.
    fn use_if_resident(&mut self, block: u64) -> bool {
        let (word, shift) = Marks::place(block);
        match self.words.get_mut(&word) {
            Some(bits) if *bits >> shift & Marks::RESIDENT != 0 => {
                *bits |= Marks::USED << shift;
                true
            }
            _ => false,
        }
    }

    /// Clears the used mark of a block in flash; returns whether the mark was set.
    fn take_used(&mut self, block: u64) -> bool {
        let (word, shift) = Marks::place(block);
        let Some(bits) = self.words.get_mut(&word) else { return false };
        let was_used = *bits >> shift & Marks::USED != 0;
        *bits &= !(Marks::USED << shift);
        was_used
    }

    fn insert(&mut self, block: u64) {
        let (word, shift) = Marks::place(block);
        *self.words.entry(word).or_default() |= Marks::RESIDENT << shift;
    }

    fn remove(&mut self, block: u64) {
        let (word, shift) = Marks::place(block);
        if let Some(bits) = self.words.get_mut(&word) {
            *bits &= !((Marks::RESIDENT | Marks::USED) << shift);
            if *bits == 0 {
                self.words.remove(&word);
            }
        }
    }
}

/// The read cache in virtual time.
#[derive(Clone, Debug)]
pub struct Flash {
    description: FlashCache,
    block_bytes: u64,
    blocks_max: usize,
    /// Slot of each block in flash.
    resident: FxHashMap<u64, u32>,
    /// Resident and used marks, which every read looks up.
    marks: Marks,
    /// Block stored in each slot.
    slots: Vec<u64>,
    hand: usize,
    /// Read history: one slot per hash value. A new block replaces the previous block in its slot.
    history: Vec<u32>,
    runs: Runs,
    /// Fills in progress, as (completion time, block).
    fills: VecDeque<(u64, u64)>,
    fill_free_ns: u64,
    channel_free_ns: u64,
    /// Number of reads served from flash.
    pub hits: u64,
    /// Number of blocks admitted to flash.
    pub filled: u64,
    /// Time spent reading or writing flash, in ns.
    pub busy_ns: u64,
}

impl Flash {
    /// Creates an empty flash cache.
    pub fn new(description: &FlashCache) -> Self {
        let block_bytes = u64::from(description.block_bytes);
        Flash {
            description: *description,
            block_bytes,
            blocks_max: (description.size_bytes / block_bytes) as usize,
            resident: FxHashMap::default(),
            marks: Marks::default(),
            slots: Vec::new(),
            hand: 0,
            history: vec![0; description.history_blocks as usize],
            runs: Runs::default(),
            fills: VecDeque::with_capacity(FILLS_MAX),
            fill_free_ns: 0,
            channel_free_ns: 0,
            hits: 0,
            filled: 0,
            busy_ns: 0,
        }
    }

    /// Returns the number of bytes in the cache.
    pub fn resident_bytes(&self) -> u64 {
        self.resident.len() as u64 * self.block_bytes
    }

    fn blocks(&self, start_bytes: u64, length_bytes: u64) -> std::ops::Range<u64> {
        start_bytes / self.block_bytes..(start_bytes + length_bytes).div_ceil(self.block_bytes)
    }

    /// Whether a read does not belong to a sequential run. Must be called exactly once for every read.
    pub fn is_random(&mut self, start_bytes: u64, length_bytes: u64) -> bool {
        self.runs.extend(start_bytes, length_bytes) < self.description.sequential_bytes
    }

    /// Whether all blocks of a read are in flash at `now_ns`; if so, marks them as used.
    pub fn holds(&mut self, now_ns: u64, start_bytes: u64, length_bytes: u64) -> bool {
        self.settle(now_ns);
        let blocks = self.blocks(start_bytes, length_bytes);
        // Most reads touch one block, which then needs only one lookup.
        if blocks.end - blocks.start > 1 && !blocks.clone().all(|block| self.marks.has(block, Marks::RESIDENT)) {
            return false;
        }
        for block in blocks {
            if !self.marks.use_if_resident(block) {
                return false;
            }
        }
        self.hits += 1;
        true
    }

    /// Returns when the flash has delivered the data of a hit that the firmware requests at `asked_ns`.
    pub fn read(&mut self, asked_ns: u64, length_bytes: u64) -> u64 {
        let begin_ns = (asked_ns + self.description.latency_ns).max(self.channel_free_ns);
        self.channel_free_ns = begin_ns + self.transfer_ns(length_bytes);
        self.channel_free_ns
    }

    fn transfer_ns(&mut self, length_bytes: u64) -> u64 {
        let transfer_ns = (length_bytes as f64 * self.description.ns_per_byte).round() as u64;
        self.busy_ns += transfer_ns;
        transfer_ns
    }

    /// Admits the blocks of a random read that came from the media. A selective cache admits only blocks that were read
    /// before.
    pub fn was_read(&mut self, now_ns: u64, start_bytes: u64, length_bytes: u64) {
        self.settle(now_ns);
        for block in self.blocks(start_bytes, length_bytes) {
            if self.remember(block) {
                self.fill(now_ns, block);
            }
        }
    }

    /// Like [`Self::was_read`], for a read in zero time, whose blocks are admitted at once.
    pub fn warm(&mut self, start_bytes: u64, length_bytes: u64) {
        if !self.is_random(start_bytes, length_bytes) {
            return;
        }
        for block in self.blocks(start_bytes, length_bytes) {
            if !self.marks.use_if_resident(block) && self.remember(block) {
                self.insert(block);
            }
        }
    }

    /// Handles a write: invalidates fills in progress. Also invalidates the copies in flash unless the cache updates
    /// them.
    pub fn was_written(&mut self, start_bytes: u64, length_bytes: u64) {
        if !self.description.keeps_written {
            return self.was_trimmed(start_bytes, length_bytes);
        }
        let blocks = self.blocks(start_bytes, length_bytes);
        self.fills.retain(|(_, block)| !blocks.contains(block));
        let bytes =
            blocks.filter(|&block| self.marks.has(block, Marks::RESIDENT)).map(|_| self.block_bytes).sum::<u64>();
        self.channel_free_ns += self.transfer_ns(bytes.min(length_bytes));
    }

    /// Drops copies of trimmed blocks.
    pub fn was_trimmed(&mut self, start_bytes: u64, length_bytes: u64) {
        let blocks = self.blocks(start_bytes, length_bytes);
        self.fills.retain(|(_, block)| !blocks.contains(block));
        for block in blocks {
            if let Some(slot) = self.resident.remove(&block) {
                self.marks.remove(block);
                self.slots.swap_remove(slot as usize);
                if let Some(&moved) = self.slots.get(slot as usize) {
                    self.resident.insert(moved, slot);
                }
            }
        }
    }

    /// Records a read of `block`; returns whether the block has been read often enough to be admitted.
    fn remember(&mut self, block: u64) -> bool {
        if self.description.on_first_read {
            return true;
        }
        // The finalizer of SplitMix64: the upper half selects the slot, the lower half identifies the block in it.
        let z = (block ^ (block >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let z = z ^ (z >> 31);
        let place = ((z >> 32) * self.history.len() as u64) >> 32;
        let tag = z as u32 | 1;
        std::mem::replace(&mut self.history[place as usize], tag) == tag
    }

    fn fill(&mut self, now_ns: u64, block: u64) {
        let on_its_way = || self.fills.iter().any(|&(_, filling)| filling == block);
        if self.fills.len() == FILLS_MAX || self.marks.has(block, Marks::RESIDENT) || on_its_way() {
            return;
        }
        let fill_ns = (self.block_bytes as f64 * 1e9 / self.description.fill_bytes_per_s).round() as u64;
        self.fill_free_ns = self.fill_free_ns.max(now_ns) + fill_ns;
        self.fills.push_back((self.fill_free_ns, block));
    }

    /// Applies a power cycle, which loses fills in progress.
    pub fn power_cycle(&mut self, now_ns: u64) {
        self.settle(now_ns);
        self.fills.clear();
        (self.fill_free_ns, self.channel_free_ns) = (now_ns, now_ns);
    }

    /// Completes the fills that finish by `now_ns`.
    fn settle(&mut self, now_ns: u64) {
        while let Some(&(ready_ns, block)) = self.fills.front()
            && ready_ns <= now_ns
        {
            self.fills.pop_front();
            self.filled += 1;
            self.channel_free_ns = self.channel_free_ns.max(ready_ns) + self.transfer_ns(self.block_bytes);
            self.insert(block);
        }
    }

    /// Stores a block in a free slot, or in the first slot that the clock hand finds unused.
    fn insert(&mut self, block: u64) {
        self.marks.insert(block);
        if self.slots.len() < self.blocks_max {
            self.resident.insert(block, self.slots.len() as u32);
            self.slots.push(block);
            return;
        }
        loop {
            self.hand = (self.hand + 1) % self.slots.len();
            let old = self.slots[self.hand];
            if !self.marks.take_used(old) {
                self.slots[self.hand] = block;
                self.resident.remove(&old);
                self.marks.remove(old);
                self.resident.insert(block, self.hand as u32);
                return;
            }
        }
    }
}
