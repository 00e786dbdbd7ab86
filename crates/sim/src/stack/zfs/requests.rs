//! Reads, writes and frees in memory: the ARC, reads of records, prefetch, the throttle and the open group.

use headstack_workload::{Kind, Request};

use super::log::{HEADER_BYTES, LogRecord};
use super::queues::{Class, plain};
use super::{Purpose, Reading, Timer, Zfs};
use crate::description::stack::Sync;
use crate::stack::orders::Orders;

impl Zfs {
    pub(super) fn begin_read(&mut self, now_ns: u64, id: u32, orders: &mut Orders) {
        let request = self.requests[id as usize].request;
        let records = self.records_of(&request);
        let mut waits = 0;
        for record in records.clone() {
            if self.is_in_memory(now_ns, record) {
                self.counters.arc_hits += 1;
            } else {
                self.counters.arc_misses += 1;
                waits += 1;
                self.await_record(now_ns, record, Some(id), orders);
            }
        }
        self.requests[id as usize].records = waits;
        if self.caches_data && !records.is_empty() {
            let ahead = self.fetch.read(records.start, records.end, waits > 0);
            for record in ahead.start..ahead.end.min(self.space.records()) {
                if !self.reading.contains_key(&record) && !self.arc.holds(record) && !self.groups.holds(record) {
                    self.counters.prefetched += 1;
                    self.await_record(now_ns, record, None, orders);
                }
            }
        }
        if waits == 0 {
            self.answer(id, orders);
        }
    }

    /// Uses a record; returns whether it is in memory. A hole needs no read.
    fn is_in_memory(&mut self, now_ns: u64, record: u64) -> bool {
        self.arc.hit(now_ns, record) || self.groups.holds(record) || self.space.place(record).is_none()
    }

    /// Reads a record, unless it is being read; without `waiter`, as prefetch.
    fn await_record(&mut self, now_ns: u64, record: u64, waiter: Option<u32>, orders: &mut Orders) {
        if let Some(reading) = self.reading.get_mut(&record) {
            return reading.waiters.extend(waiter);
        }
        self.reading.insert(record, Reading { waiters: waiter.into_iter().collect() });
        let cached = self.l2arc.as_ref().and_then(|l2arc| Some((l2arc.port, l2arc.place(record)?)));
        if cached.is_some() {
            self.counters.l2arc_hits += 1;
        }
        let class = if waiter.is_some() { Class::SyncRead } else { Class::AsyncRead };
        match cached {
            Some((port, at_bytes)) => self.send_read(now_ns, record, class, port, at_bytes, orders),
            None => self.read_from_pool(now_ns, record, class, orders),
        }
    }

    fn read_from_pool(&mut self, now_ns: u64, record: u64, class: Class, orders: &mut Orders) {
        // A hole is in memory; only a record that was freed while it waited for the cache device has no place.
        let at_bytes = self.space.address(self.space.place(record).unwrap_or(record));
        self.send_read(now_ns, record, class, self.data_port, at_bytes, orders);
    }

    fn send_read(&mut self, now_ns: u64, record: u64, class: Class, port: u32, at_bytes: u64, orders: &mut Orders) {
        let request = plain(Kind::Read, at_bytes, self.stored_bytes);
        self.queues.send(now_ns, port, class, request, Purpose::Record(record), orders);
    }

    /// Processes a record that was read.
    pub(super) fn record_read(&mut self, now_ns: u64, record: u64, port: u32, failed: bool, orders: &mut Orders) {
        if failed && self.l2arc.as_ref().is_some_and(|l2arc| l2arc.port == port) {
            if let Some(l2arc) = &mut self.l2arc {
                l2arc.discard(record);
            }
            return self.read_from_pool(now_ns, record, Class::SyncRead, orders);
        }
        let reading = self.reading.remove(&record).unwrap_or_default();
        if !failed && self.caches_data {
            self.arc.admit(now_ns, record, self.stored_bytes, reading.waiters.is_empty());
            self.schedule_feed(now_ns);
        }
        for id in reading.waiters {
            let request = self.requests[id as usize].request;
            let host = &mut self.requests[id as usize];
            if failed {
                let at_bytes = request.offset_bytes.max(record * self.record_bytes);
                host.failed = Some(host.failed.map_or((at_bytes, false), |first| first.min((at_bytes, false))));
            }
            host.records -= 1;
            match (host.records, request.kind) {
                (1.., _) => {}
                (0, Kind::Write) if host.failed.is_none() => self.throttle(now_ns, id, orders),
                (0, Kind::Read | Kind::Write | Kind::Trim | Kind::Flush) => self.answer(id, orders),
            }
        }
    }

    /// Reads the records of which a write changes a part, unless they are in memory, before its transaction begins.
    pub(super) fn begin_write(&mut self, now_ns: u64, id: u32, orders: &mut Orders) {
        let request = self.requests[id as usize].request;
        self.requests[id as usize].began_ns = now_ns;
        let records = self.records_of(&request);
        let (first, last) = (records.start, records.end.saturating_sub(1));
        let mut waits = 0;
        for record in [first, last].into_iter().take(if first == last { 1 } else { 2 }) {
            let (from, to) = self.part_of(&request, record);
            let end = (self.zfs.capacity_bytes - record * self.record_bytes).min(self.record_bytes);
            let is_whole = from == 0 && u64::from(to) == end;
            if is_whole || self.is_in_memory(now_ns, record) {
                continue;
            }
            waits += 1;
            self.counters.reads_for_writes += 1;
            self.await_record(now_ns, record, Some(id), orders);
        }
        self.requests[id as usize].records = waits;
        if waits == 0 {
            self.throttle(now_ns, id, orders);
        }
    }

    /// Delays a write by the dirty data, or lets it wait until they fall below the maximum.
    fn throttle(&mut self, now_ns: u64, id: u32, orders: &mut Orders) {
        if self.groups.is_full() {
            return self.groups.blocked.push_back(id);
        }
        self.delay(now_ns, id, orders);
    }

    fn delay(&mut self, now_ns: u64, id: u32, orders: &mut Orders) {
        let host = &self.requests[id as usize];
        let records = self.records_of(&host.request);
        let transactions = if self.zfs.is_volume { 1 } else { records.end - records.start };
        let wake_ns = self.groups.wake_ns(&self.zfs.parameters, host.began_ns, now_ns, transactions);
        if wake_ns <= now_ns {
            return self.assign(now_ns, id, orders);
        }
        self.counters.throttle_ns += wake_ns - now_ns;
        self.set_timer(wake_ns, Timer::Admit(id));
    }

    /// Lets the next blocked write continue, if dirty data are below the maximum.
    pub(super) fn dirty_changed(&mut self, now_ns: u64, orders: &mut Orders) {
        self.queues.set_dirty(self.groups.dirty_bytes, self.zfs.dirty_data_max_bytes);
        if !self.groups.is_full()
            && let Some(id) = self.groups.blocked.pop_front()
        {
            self.counters.throttle_ns += now_ns - self.requests[id as usize].began_ns.min(now_ns);
            self.delay(now_ns, id, orders);
        }
    }

    /// Puts a write into the open group, and answers or commits it.
    pub(super) fn assign(&mut self, now_ns: u64, id: u32, orders: &mut Orders) {
        let request = self.requests[id as usize].request;
        self.writes += 1;
        let number = self.writes;
        for record in self.records_of(&request) {
            let (from, to) = self.part_of(&request, record);
            self.unstable.add(record, from, to, number);
            self.counters.changed_records += 1;
            if !self.groups.write(record, number, self.record_bytes) {
                self.counters.overwritten_records += 1;
            }
            self.arc.hit(now_ns, record);
            if let Some(l2arc) = &mut self.l2arc {
                l2arc.discard(record);
            }
        }
        if self.zfs.sync != Sync::Disabled {
            self.log_write(&request, number);
        }
        let commits = self.zfs.sync == Sync::Always || request.force_unit_access;
        if commits && self.zfs.sync != Sync::Disabled {
            self.begin_commit(now_ns, id, orders);
        } else {
            self.answer(id, orders);
        }
        self.dirty_changed(now_ns, orders);
        self.group_changed(now_ns, orders);
    }

    fn log_write(&mut self, request: &Request, number: u64) {
        let bytes = u64::from(request.length_bytes + HEADER_BYTES);
        self.groups.open.logged_bytes += bytes;
        self.groups.logged_bytes += bytes;
        self.log.append(
            &self.files,
            LogRecord {
                offset_bytes: request.offset_bytes,
                length_bytes: request.length_bytes,
                number,
                group: self.groups.open.number,
            },
        );
    }

    /// Frees the records that a trim covers completely. A part of a record stays.
    pub(super) fn free(&mut self, now_ns: u64, id: u32, orders: &mut Orders) {
        let request = self.requests[id as usize].request;
        let end = request.offset_bytes + u64::from(request.length_bytes);
        let whole = request.offset_bytes.div_ceil(self.record_bytes)..end / self.record_bytes;
        for record in whole {
            if self.groups.free(record, self.record_bytes) {
                self.counters.overwritten_records += 1;
            }
            self.unstable.settle(record, 0, self.record_bytes as u32, u64::MAX);
            self.arc.discard(record);
            if let Some(l2arc) = &mut self.l2arc {
                l2arc.discard(record);
            }
        }
        self.answer(id, orders);
        self.dirty_changed(now_ns, orders);
        self.group_changed(now_ns, orders);
    }

    pub(super) fn schedule_feed(&mut self, now_ns: u64) {
        if !self.arc.has_feed() {
            return;
        }
        if let Some(at_ns) = self.l2arc.as_mut().and_then(|l2arc| l2arc.schedule(now_ns)) {
            self.set_timer(at_ns, Timer::Feed);
        }
    }

    /// Writes records to the cache device.
    pub(super) fn feed(&mut self, now_ns: u64, orders: &mut Orders) {
        let (arc, groups) = (&mut self.arc, &self.groups);
        let Some(l2arc) = &mut self.l2arc else { return };
        let boosted = !arc.was_full;
        let next = || loop {
            let record = arc.next_for_feed()?;
            if !groups.holds(record) {
                return Some(record);
            }
        };
        let chosen = l2arc.feed(now_ns, self.stored_bytes, boosted, next);
        let port = l2arc.port;
        for (record, at_bytes) in chosen {
            let request = plain(Kind::Write, at_bytes, self.stored_bytes);
            self.queues.send(now_ns, port, Class::AsyncWrite, request, Purpose::Feed(record), orders);
        }
        self.schedule_feed(now_ns);
    }
}
