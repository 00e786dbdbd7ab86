//! [`Log`]: the intent log (ZIL, zil.c): records of writes that no synced group covers, and the log blocks that take
//! them to stable storage.

use std::collections::VecDeque;

use headstack_workload::Request;

use crate::description::stack::{IndirectRule, LogBias, LogBlockSizes, ZfsDescription};
use crate::stack::files::Files;

/// Header of a record in a log block: `lr_write_t`, in bytes.
pub(super) const HEADER_BYTES: u32 = 192;
/// Log blocks are written in multiples of this (`ZIL_MIN_BLKSZ`).
pub(super) const UNIT_BYTES: u32 = 4096;
/// Largest data that a synchronous write copies into its record (`zil_maxcopied`), which is not split.
const COPIED_MAX_BYTES: u32 = 7680;
/// Sizes of log blocks up to 2.2.3 (`zil_block_buckets`).
const BUCKETS: [u32; 5] = [4 << 10, 12 << 10, 36 << 10, 68 << 10, 128 << 10];
/// Commits that predict the size of log blocks: `ZIL_PREV_BLKS` up to 2.2.3, `ZIL_BURSTS` later.
const PREVIOUS: usize = 16;
const BURSTS: usize = 8;
/// Commits after which a log block is again issued at once, if none of them found another one at work (`ZIL_BURSTS`).
const PARALLEL_COMMITS: u32 = 8;
/// Weight of a new latency in the mean: 1/8 (`zil_lwb_flush_vdevs_done`).
const MEAN_WEIGHT: u64 = 8;

/// Record of a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogRecord {
    pub offset_bytes: u64,
    pub length_bytes: u32,
    /// Number of the write.
    pub number: u64,
    /// Number of its transaction group.
    pub group: u64,
}

/// State of a log block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockState {
    /// Takes records.
    Open,
    /// Its writes are in flight.
    Issued,
    /// The flushes after its writes are in flight.
    Flushing,
    /// Done, or the next block flushes for it.
    Done,
}

/// A log block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub state: BlockState,
    pub capacity: u32,
    pub used: u32,
    pub records: Vec<LogRecord>,
    /// Requests that wait for it.
    pub waiters: Vec<u32>,
    /// I/O without an answer.
    pub outstanding: u32,
    /// Systems below that it wrote to, one bit each.
    pub ports: u32,
    pub issued_ns: u64,
    pub is_timed: bool,
    /// First byte of the dataset that could not be written.
    pub failed: Option<u64>,
}

/// The log.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// Records of each file that are in no log block, in order.
    records: Vec<VecDeque<LogRecord>>,
    /// Log blocks in order; the last one may be open.
    pub blocks: VecDeque<Block>,
    /// Number of the first log block.
    pub first: u64,
    /// Commits for which the last log block stays open.
    parallel: u32,
    /// Commits that have not reached the log yet.
    pub committing: u32,
    /// Bytes of the last commits.
    bursts: VecDeque<u32>,
    /// Bytes of the current commit: in all its blocks, and in blocks that were issued.
    burst: u32,
    pub issued_bytes: u64,
    mean_ns: u64,
}

impl Log {
    /// Creates an empty log of `files` files.
    pub fn new(files: usize) -> Log {
        Log {
            records: vec![VecDeque::new(); files],
            blocks: VecDeque::new(),
            first: 0,
            parallel: 0,
            committing: 0,
            bursts: VecDeque::new(),
            burst: 0,
            issued_bytes: 0,
            mean_ns: 0,
        }
    }

    /// Adds a record; the parts of a write across files become records of their own.
    pub fn append(&mut self, files: &Files, mut record: LogRecord) {
        let end = record.offset_bytes + u64::from(record.length_bytes);
        loop {
            let file = files.file(record.offset_bytes);
            let until = end.min(files.end_bytes(file));
            let length_bytes = (until - record.offset_bytes) as u32;
            self.records[file].push_back(LogRecord { length_bytes, ..record });
            if until == end {
                return;
            }
            record.offset_bytes = until;
        }
    }

    /// Forgets records of groups that are synced.
    pub fn forget(&mut self, synced: u64) {
        for records in &mut self.records {
            while records.front().is_some_and(|record| record.group <= synced) {
                records.pop_front();
            }
        }
    }

    /// Takes the records that a commit covers, in order: those of its file (`zil_commit` takes the asynchronous records
    /// of one object). Those of other files stay in memory.
    pub fn take_covered(&mut self, files: &Files, commit: &Request) -> VecDeque<LogRecord> {
        let covered = files.synced(commit);
        let mut taken = std::mem::take(&mut self.records[*covered.start()]);
        if covered.start() < covered.end() {
            self.records[covered].iter_mut().for_each(|records| taken.append(records));
            taken.make_contiguous().sort_by_key(|record| record.number);
        }
        taken
    }

    /// Notes a commit: whether several threads commit.
    pub fn begin_commit(&mut self) {
        let is_open = self.blocks.back().is_some_and(|block| block.state == BlockState::Open);
        self.parallel = match self.committing > 1 || is_open {
            true => PARALLEL_COMMITS,
            false => self.parallel.saturating_sub(1),
        };
        self.committing -= 1;
    }

    /// Returns the number of the open block with room for `bytes`, which is opened if necessary; `None` if the open
    /// block has to be issued first.
    pub fn open_block(&mut self, sizes: LogBlockSizes, max_bytes: u32, bytes: u32) -> Option<u64> {
        let number = self.first + self.blocks.len() as u64;
        match self.blocks.back() {
            Some(block) if block.state == BlockState::Open => {
                return (block.capacity - block.used >= bytes).then_some(number - 1);
            }
            Some(_) | None => {}
        }
        let expected = self.bursts.iter().copied().max().unwrap_or(0).max(bytes).min(max_bytes);
        let capacity = match sizes {
            LogBlockSizes::Fixed => *BUCKETS.iter().find(|&&bucket| bucket >= expected).unwrap_or(&max_bytes),
            LogBlockSizes::Predicted => expected.next_multiple_of(UNIT_BYTES),
        };
        self.blocks.push_back(Block {
            state: BlockState::Open,
            capacity: capacity.min(max_bytes),
            used: 0,
            records: Vec::new(),
            waiters: Vec::new(),
            outstanding: 0,
            ports: 0,
            issued_ns: 0,
            is_timed: false,
            failed: None,
        });
        Some(number)
    }

    /// Returns a block by its number.
    pub fn block_mut(&mut self, number: u64) -> Option<&mut Block> {
        self.blocks.get_mut(number.checked_sub(self.first)? as usize)
    }

    /// Returns the bytes that fit into the open block; 0 without one.
    pub fn room(&self) -> u32 {
        self.blocks
            .back()
            .filter(|block| block.state == BlockState::Open)
            .map_or(0, |block| block.capacity - block.used)
    }

    /// Adds bytes to the open block.
    pub fn fill(&mut self, number: u64, bytes: u32) {
        self.burst = self.burst.saturating_add(bytes);
        if let Some(block) = self.block_mut(number) {
            block.used += bytes;
        }
    }

    /// Ends a commit, whose size predicts that of the next ones.
    pub fn end_burst(&mut self, sizes: LogBlockSizes) {
        let kept = match sizes {
            LogBlockSizes::Fixed => PREVIOUS,
            LogBlockSizes::Predicted => BURSTS,
        };
        self.bursts.push_back(std::mem::take(&mut self.burst));
        while self.bursts.len() > kept {
            self.bursts.pop_front();
        }
        self.issued_bytes = 0;
    }

    /// Returns how long the open block waits for more records; `None` if it is issued at once.
    pub fn wait_ns(&self, percent: u32, min_ns: u64) -> Option<u64> {
        let wait_ns = self.mean_ns * u64::from(percent) / 100;
        (self.parallel > 0 && wait_ns > 0 && wait_ns >= min_ns).then_some(wait_ns)
    }

    /// Adds the latency of a block to the mean.
    pub fn add_latency(&mut self, latency_ns: u64) {
        self.mean_ns = match self.mean_ns {
            0 => latency_ns,
            mean => (mean * (MEAN_WEIGHT - 1) + latency_ns) / MEAN_WEIGHT,
        };
    }
}

/// Whether the record of a write holds the address of its data.
pub(super) fn is_indirect(zfs: &ZfsDescription, uses_slog: bool, length_bytes: u32) -> bool {
    if zfs.log_bias == LogBias::Throughput {
        return true;
    }
    let immediate = zfs.parameters.immediate_write_bytes;
    let from_bytes = match zfs.parameters.indirect {
        IndirectRule::BySize if zfs.is_volume && zfs.record_bytes <= immediate => u32::MAX,
        IndirectRule::BySize if zfs.is_volume => zfs.record_bytes,
        IndirectRule::BySize => immediate,
        IndirectRule::ByHalfBlock => immediate.max(zfs.record_bytes / 2),
    };
    !uses_slog && length_bytes >= from_bytes
}

/// Returns the length of the part of `data` bytes that goes into a block with `room` bytes; 0 if none of it does.
/// Short data are not split, and neither are longer data if the rest of the block is small.
pub(super) fn split(data: u32, room: u32) -> u32 {
    let fits = room.saturating_sub(HEADER_BYTES);
    if data <= fits {
        return data;
    }
    let is_whole = data <= COPIED_MAX_BYTES || fits < UNIT_BYTES;
    if is_whole { 0 } else { fits }
}
