//! Commits of the intent log (zil_commit): records go into log blocks, blocks are written and flushed in order, waiters
//! continue.

use headstack_workload::Kind;

use super::log::{Block, BlockState, HEADER_BYTES, LogRecord, UNIT_BYTES, is_indirect, split};
use super::queues::{Class, plain};
use super::{Purpose, Timer, Zfs};
use crate::description::stack::Sync;
use crate::stack::orders::Orders;

impl Zfs {
    /// Starts a commit for a flush or a synchronous write.
    pub(super) fn begin_commit(&mut self, now_ns: u64, id: u32, orders: &mut Orders) {
        if self.zfs.sync == Sync::Disabled {
            return self.answer(id, orders);
        }
        self.counters.commits += 1;
        self.log.committing += 1;
        self.set_timer(now_ns + self.zfs.commit_ns / 2, Timer::Commit(id));
    }

    /// Puts the records of a file into log blocks, and lets the request wait for the last one.
    pub(super) fn commit(&mut self, now_ns: u64, id: u32, orders: &mut Orders) {
        self.log.begin_commit();
        let request = self.requests[id as usize].request;
        for record in self.log.take_covered(&self.files, &request) {
            if record.group > self.groups.synced {
                self.log_record(now_ns, &record, orders);
            }
        }
        let number = self.log.first + self.log.blocks.len() as u64;
        let Some(last) = self.log.blocks.back_mut() else { return self.finish_commit(now_ns, id, None) };
        last.waiters.push(id);
        if last.state != BlockState::Open || last.is_timed {
            return;
        }
        let parameters = &self.zfs.parameters;
        match self.log.wait_ns(parameters.commit_timeout_percent, parameters.commit_timeout_min_ns) {
            Some(wait_ns) => {
                self.log.block_mut(number - 1).expect("the last block is open").is_timed = true;
                self.set_timer(now_ns + wait_ns, Timer::Block(number - 1));
            }
            None => self.end_burst(now_ns, number - 1, orders),
        }
    }

    /// Issues a block that waited for more records.
    pub(super) fn block_timeout(&mut self, now_ns: u64, number: u64, orders: &mut Orders) {
        if self.log.block_mut(number).is_some_and(|block| block.state == BlockState::Open) {
            self.end_burst(now_ns, number, orders);
        }
    }

    fn end_burst(&mut self, now_ns: u64, number: u64, orders: &mut Orders) {
        self.issue_block(now_ns, number, orders);
        self.log.end_burst(self.zfs.parameters.log_block_sizes);
    }

    /// Puts a record into the open block, and into further ones if it is long.
    fn log_record(&mut self, now_ns: u64, record: &LogRecord, orders: &mut Orders) {
        let number = if is_indirect(&self.zfs, self.uses_slog, record.length_bytes) {
            self.log_addresses(now_ns, record, orders)
        } else {
            self.log_data(now_ns, record, orders)
        };
        if let Some(block) = self.log.block_mut(number) {
            block.records.push(*record);
        }
    }

    /// Returns the number of the open block with room for `bytes`.
    fn open_block(&mut self, now_ns: u64, bytes: u32, orders: &mut Orders) -> u64 {
        let (sizes, max_bytes) = (self.zfs.parameters.log_block_sizes, self.zfs.parameters.log_block_max_bytes);
        loop {
            if let Some(number) = self.log.open_block(sizes, max_bytes, bytes.min(max_bytes)) {
                return number;
            }
            let full = self.log.first + self.log.blocks.len() as u64 - 1;
            self.issue_block(now_ns, full, orders);
        }
    }

    /// Puts the data of a record into blocks; returns the number of the last one.
    fn log_data(&mut self, now_ns: u64, record: &LogRecord, orders: &mut Orders) -> u64 {
        let mut left = record.length_bytes;
        loop {
            let part = split(left, self.log.room());
            if part == 0 {
                self.open_block(now_ns, left + HEADER_BYTES, orders);
                continue;
            }
            let number = self.log.first + self.log.blocks.len() as u64 - 1;
            self.log.fill(number, part + HEADER_BYTES);
            left -= part;
            if left == 0 {
                return number;
            }
        }
    }

    /// Writes the data of a record to their final places, and puts their addresses into a block; returns its number.
    fn log_addresses(&mut self, now_ns: u64, record: &LogRecord, orders: &mut Orders) -> u64 {
        let request = plain(Kind::Write, record.offset_bytes, record.length_bytes);
        let mut number = 0;
        for touched in self.records_of(&request) {
            number = self.open_block(now_ns, HEADER_BYTES, orders);
            self.log.fill(number, HEADER_BYTES);
            let slot = self.space.allocate().or_else(|| self.space.place(touched)).unwrap_or(touched);
            if !self.groups.set_slot(record.group, touched, record.number, slot) {
                self.groups.open.unused_slots.push(slot);
            }
            self.counters.indirect_records += 1;
            let (from, _) = self.part_of(&request, touched);
            let purpose = Purpose::Log(number, touched * self.record_bytes + u64::from(from));
            if let Some(block) = self.log.block_mut(number) {
                block.outstanding += 1;
                block.ports |= 1 << self.data_port;
            }
            let write = plain(Kind::Write, self.space.address(slot), self.stored_bytes);
            self.queues.send(now_ns, self.data_port, Class::SyncWrite, write, purpose, orders);
        }
        number
    }

    /// Writes a block: only its used part.
    fn issue_block(&mut self, now_ns: u64, number: u64, orders: &mut Orders) {
        let is_bulk = self.uses_slog && self.log.issued_bytes > self.zfs.parameters.slog_bulk_bytes;
        let class = if is_bulk { Class::AsyncWrite } else { Class::SyncWrite };
        let port = self.log_port;
        let Some(block) = self.log.block_mut(number) else { return };
        let bytes = block.used.next_multiple_of(UNIT_BYTES);
        (block.state, block.issued_ns) = (BlockState::Issued, now_ns);
        block.outstanding += 1;
        block.ports |= 1 << port;
        let first = block.records.first().map_or(0, |record| record.offset_bytes);
        self.log.issued_bytes += u64::from(bytes);
        self.counters.log_blocks += 1;
        self.counters.log_bytes += u64::from(bytes);
        let write = plain(Kind::Write, self.log_rings.log_block(bytes), bytes);
        self.queues.send(now_ns, port, class, write, Purpose::Log(number, first), orders);
    }

    /// Processes the end of a write or flush of a block.
    pub(super) fn log_part_done(&mut self, now_ns: u64, number: u64, failed: Option<u64>, orders: &mut Orders) {
        let Some(block) = self.log.block_mut(number) else { return };
        block.outstanding -= 1;
        block.failed = earliest(block.failed, failed);
        let mut at = 0;
        while at < self.log.blocks.len() {
            let block = &self.log.blocks[at];
            match block.state {
                BlockState::Open => break,
                BlockState::Issued if block.outstanding > 0 => break,
                BlockState::Issued => self.written(at, orders),
                BlockState::Flushing | BlockState::Done => {}
            }
            at += 1;
        }
        let is_done = |block: &Block| {
            block.state == BlockState::Done || (block.state == BlockState::Flushing && block.outstanding == 0)
        };
        while self.log.blocks.front().is_some_and(is_done)
            && let Some(block) = self.log.blocks.pop_front()
        {
            self.log.first += 1;
            self.end_block(now_ns, &block);
        }
    }

    /// Flushes after the block at `at`, whose predecessors are written. A block without waiters leaves that to the next.
    fn written(&mut self, at: usize, orders: &mut Orders) {
        let has_next = at + 1 < self.log.blocks.len();
        let number = self.log.first + at as u64;
        let block = &mut self.log.blocks[at];
        if block.waiters.is_empty() && has_next {
            block.state = BlockState::Done;
            let (ports, failed, mut records) = (block.ports, block.failed, std::mem::take(&mut block.records));
            let next = &mut self.log.blocks[at + 1];
            next.ports |= ports;
            next.failed = earliest(next.failed, failed);
            records.append(&mut next.records);
            next.records = records;
            return;
        }
        let ports = block.ports;
        (block.state, block.outstanding) = (BlockState::Flushing, ports.count_ones());
        for port in (0..u32::BITS).filter(|port| ports & (1 << port) != 0) {
            self.queues.flush(port, Purpose::LogFlush(number), orders);
        }
    }

    /// Makes the records of a block stable, and wakes its waiters.
    fn end_block(&mut self, now_ns: u64, block: &Block) {
        if block.outstanding == 0 && block.state == BlockState::Flushing {
            self.log.add_latency(now_ns - block.issued_ns);
        }
        if block.failed.is_none() {
            for record in &block.records {
                let request = plain(Kind::Write, record.offset_bytes, record.length_bytes);
                for touched in self.records_of(&request) {
                    let (from, to) = self.part_of(&request, touched);
                    self.unstable.settle(touched, from, to, record.number);
                }
            }
        }
        block.waiters.iter().for_each(|&id| self.finish_commit(now_ns, id, block.failed));
    }

    /// Lets the software of a commit end. It reports a write that failed since the last commit.
    fn finish_commit(&mut self, now_ns: u64, id: u32, failed: Option<u64>) {
        let failed = earliest(self.failed_write.take(), failed);
        self.requests[id as usize].failed = failed.map(|at_bytes| (at_bytes, true));
        self.set_timer(now_ns + self.zfs.commit_ns.div_ceil(2), Timer::Finish(id));
    }
}

fn earliest(first: Option<u64>, second: Option<u64>) -> Option<u64> {
    first.into_iter().chain(second).min()
}
