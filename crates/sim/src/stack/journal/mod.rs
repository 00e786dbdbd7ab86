//! [`Journal`]: a file system's way to make data durable: what a sync sends to the device (docs/design/stacks.md).
//!
//! Data go to the device as they come. A sync waits for the data writes before it; if it needs metadata that are not
//! in the journal yet, it waits for a commit, of which one runs at a time and which serves everybody that waits.
//! Otherwise it only flushes the device's cache.

mod commit;
mod committing;

use std::collections::{BTreeSet, VecDeque};

use headstack_workload::{Kind, Request, Span};

use super::files::Files;
use super::orders::{Answer, LayerModel, Order, Orders};
use super::ranges::Ranges;
use crate::description::stack::{JournalDescription, JournalKind};
use crate::slab::Slab;
use crate::snapshot::Snapshot;
use commit::{Changes, Commit, Transaction};

/// A file system in virtual time.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    description: JournalDescription,
    files: Files,
    /// First byte on the first device that is not for files.
    reserved_at_bytes: u64,
    /// First byte of the journal on its device.
    journal_at_bytes: u64,
    /// Place of the next journal block, from the beginning of the journal.
    head_bytes: u64,
    /// Parts of the file that are allocated.
    allocated: Ranges,
    /// Requests from above that are under way.
    requests: Slab<HostRequest>,
    /// Requests to the systems below.
    sent: Slab<Sent>,
    /// Data writes of each file under way, by their number of arrival.
    writes: Vec<BTreeSet<u64>>,
    arrivals: u64,
    /// Syncs that wait for earlier data writes: the number of arrival, the request.
    syncs: VecDeque<(u64, u32)>,
    /// Metadata that the running transaction changes.
    running: Transaction,
    /// When the running transaction is committed at the latest.
    commit_due_ns: u64,
    /// Tick of each file's last modification.
    modified_ticks: Vec<Option<u64>>,
    /// The commit under way, and the syncs that wait for the next one.
    commit: Option<Commit>,
    waiting: Vec<u32>,
    /// When metadata in the journal go to their own place, and their blocks.
    checkpoint_due_ns: u64,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    commits: u64,
    journal_bytes: u64,
    flushes: u64,
    checkpoints: u64,
}

/// A request from above.
#[derive(Clone, Copy, Debug)]
struct HostRequest {
    id: u32,
    request: Request,
    arrival: u64,
    started_ns: u64,
    failed: Option<(u64, bool)>,
    /// Parts at the device without an answer.
    parts: u32,
}

/// Purpose of a request to a system below.
#[derive(Clone, Copy, Debug)]
enum Sent {
    /// Part of a request from above; `from_bytes` is its place there minus that on the device.
    Data { request: u32, from_bytes: u64, at_bytes: u64 },
    /// Flush that ends a sync without a commit.
    Flush { request: u32 },
    /// Step of the commit.
    Commit,
    /// Metadata on the way to their own place.
    Checkpoint,
}

impl Journal {
    /// Creates an idle file system on a device of `device_bytes`.
    pub fn new(description: &JournalDescription, files: Files, device_bytes: u64) -> Journal {
        Journal {
            reserved_at_bytes: description.reserved_at_bytes(device_bytes),
            journal_at_bytes: description.journal_at_bytes(device_bytes),
            head_bytes: 0,
            allocated: Ranges::up_to(description.written_bytes),
            requests: Slab::default(),
            sent: Slab::default(),
            writes: vec![BTreeSet::new(); files.count()],
            arrivals: 0,
            syncs: VecDeque::new(),
            running: Transaction::new(files.count()),
            commit_due_ns: u64::MAX,
            modified_ticks: vec![None; files.count()],
            commit: None,
            waiting: Vec::new(),
            checkpoint_due_ns: u64::MAX,
            counters: Counters::default(),
            description: description.clone(),
            files,
        }
    }

    fn send(&mut self, port: u32, purpose: Sent, request: Request, orders: &mut Orders) {
        let id = self.sent.insert(purpose);
        orders.push_back(Order::Send { port, id, request });
    }

    /// Sends the parts of a request to the device.
    fn send_data(&mut self, number: u32, orders: &mut Orders) {
        let request = self.requests.get(number).request;
        let mut parts = Vec::with_capacity(2);
        self.pieces(request.span(), &mut |_, at_bytes, part| parts.push((at_bytes, part)));
        self.requests.get_mut(number).parts = parts.len() as u32;
        for (at_bytes, part) in parts {
            let purpose = Sent::Data { request: number, from_bytes: part.start_bytes, at_bytes };
            let below = Request { offset_bytes: at_bytes, length_bytes: part.length_bytes as u32, ..request };
            self.send(0, purpose, below, orders);
        }
    }

    /// Notes which metadata a write changes; returns whether it allocates.
    fn change_metadata(&mut self, now_ns: u64, arrival: u64, request: &Request) -> bool {
        let tick = now_ns / self.description.timestamp_ns;
        let allocation =
            self.allocated.insert(request.offset_bytes, request.offset_bytes + u64::from(request.length_bytes));
        for file in self.files.touched(request) {
            self.writes[file].insert(arrival);
            let timestamps = self.modified_ticks[file].replace(tick) != Some(tick);
            self.running.change(file, Changes { allocation, timestamps });
        }
        if allocation {
            self.running.data.insert(arrival);
        }
        if self.commit_due_ns == u64::MAX && self.running.all() != Changes::default() {
            self.commit_due_ns = now_ns + self.description.interval_ns;
        }
        allocation
    }

    /// Frees the space of a trim, as the deletion of a file does: the next write there allocates again.
    fn free_space(&mut self, now_ns: u64, request: &Request) {
        if self.allocated.remove(request.offset_bytes, request.offset_bytes + u64::from(request.length_bytes)) {
            for file in self.files.touched(request) {
                self.running.change(file, Changes { allocation: true, timestamps: true });
            }
            self.commit_due_ns = self.commit_due_ns.min(now_ns + self.description.interval_ns);
        }
    }

    /// Ends a data write: it is answered, unless it is synchronous and needs a commit or a flush.
    fn write_done(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let HostRequest { request, arrival, failed, .. } = *self.requests.get(number);
        let files = self.files.touched(&request);
        files.clone().for_each(|file| debug_assert!(self.writes[file].contains(&arrival), "a write ends once"));
        files.clone().for_each(|file| _ = self.writes[file].remove(&arrival));
        self.allocated_data_written(now_ns, arrival, orders);
        if failed.is_none() && request.kind == Kind::Write && request.force_unit_access {
            // A forced overwrite of allocated space is durable already, if the device took it as one.
            match self.has_open_allocation(files) {
                true => self.make_durable(now_ns, number, orders),
                false if self.forces() || !self.description.barriers => self.answer(number, orders),
                false => self.flush(number, orders),
            }
        } else {
            self.answer(number, orders);
        }
        self.let_syncs_go_on(now_ns, orders);
    }

    /// Whether forced writes go to the device as such.
    fn forces(&self) -> bool {
        self.description.barriers && self.description.forced_writes
    }

    /// Lets syncs go on whose files have no earlier writes under way.
    fn let_syncs_go_on(&mut self, now_ns: u64, orders: &mut Orders) {
        let mut at = 0;
        while let Some(&(arrival, number)) = self.syncs.get(at) {
            let files = self.files.synced(&self.requests.get(number).request);
            if self.writes[files].iter().any(|writes| writes.first().is_some_and(|&first| first < arrival)) {
                at += 1;
                continue;
            }
            self.syncs.remove(at);
            self.make_durable(now_ns, number, orders);
        }
    }

    /// Makes metadata and data durable that a sync needs. A commit serves all files, and a sync needs one only if it
    /// holds changes of its own file.
    fn make_durable(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let HostRequest { request, .. } = *self.requests.get(number);
        let files = match request.kind {
            Kind::Write => self.files.touched(&request),
            Kind::Read | Kind::Trim | Kind::Flush => self.files.synced(&request),
        };
        // fdatasync and O_DSYNC leave timestamps out.
        let with_timestamps = request.kind == Kind::Flush && request.force_unit_access;
        let needs = |transaction: &Transaction| {
            let changes = transaction.changes(files.clone());
            changes.allocation || (with_timestamps && changes.timestamps)
        };
        if needs(&self.running) {
            self.waiting.push(number);
            self.maybe_commit(now_ns, orders);
        } else if let Some(commit) = self.commit.as_mut().filter(|commit| needs(&commit.transaction)) {
            commit.join(number);
        } else if self.description.barriers {
            self.flush(number, orders);
        } else {
            self.answer(number, orders);
        }
    }

    fn flush(&mut self, number: u32, orders: &mut Orders) {
        self.counters.flushes += 1;
        self.send(0, Sent::Flush { request: number }, flush(), orders);
    }

    fn answer(&mut self, number: u32, orders: &mut Orders) {
        let HostRequest { id, started_ns, failed, .. } = self.requests.remove(number);
        orders.push_back(Order::Answer(Answer { id, started_ns, failed }));
    }
}

fn flush() -> Request {
    Request { kind: Kind::Flush, offset_bytes: 0, length_bytes: 0, force_unit_access: false, ordered: false }
}

impl LayerModel for Journal {
    fn submit(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders) {
        self.arrivals += 1;
        let arrival = self.arrivals;
        let host = HostRequest { id, request: *request, arrival, started_ns: now_ns, failed: None, parts: 0 };
        let number = self.requests.insert(host);
        match request.kind {
            Kind::Read => self.send_data(number, orders),
            Kind::Trim => {
                self.free_space(now_ns, request);
                self.send_data(number, orders);
            }
            Kind::Write => {
                let allocates = self.change_metadata(now_ns, arrival, request);
                // Only an overwrite can be durable without a commit.
                let forced = request.force_unit_access && !allocates && self.forces();
                self.requests.get_mut(number).request.force_unit_access = forced;
                self.send_data(number, orders);
                self.requests.get_mut(number).request = *request;
            }
            Kind::Flush => {
                self.syncs.push_back((arrival, number));
                self.let_syncs_go_on(now_ns, orders);
            }
        }
    }

    fn answered(&mut self, now_ns: u64, _port: u32, answer: &Answer, orders: &mut Orders) {
        match self.sent.remove(answer.id) {
            Sent::Data { request: number, from_bytes, at_bytes } => {
                let host = self.requests.get_mut(number);
                host.parts -= 1;
                let failed = answer.failed.map(|(byte, write)| (from_bytes + (byte - at_bytes), write));
                host.failed = [host.failed, failed].into_iter().flatten().min();
                if host.parts > 0 {
                    return;
                }
                match host.request.kind {
                    Kind::Write => self.write_done(now_ns, number, orders),
                    Kind::Read | Kind::Trim | Kind::Flush => self.answer(number, orders),
                }
            }
            Sent::Flush { request } => {
                self.requests.get_mut(request).failed = answer.failed;
                self.answer(request, orders);
            }
            Sent::Commit => self.commit_step_done(now_ns, answer.failed, orders),
            Sent::Checkpoint => {}
        }
    }

    fn next_event_ns(&self) -> u64 {
        let commit_ns = if self.commit.is_none() { self.commit_due_ns } else { u64::MAX };
        commit_ns.min(self.checkpoint_due_ns)
    }

    fn wake(&mut self, now_ns: u64, orders: &mut Orders) {
        if self.commit.is_none() && self.commit_due_ns <= now_ns {
            self.begin_commit(now_ns, orders);
        }
        if self.checkpoint_due_ns <= now_ns {
            self.checkpoint(orders);
        }
    }

    fn pieces(&self, span: Span, each: &mut dyn FnMut(u32, u64, Span)) {
        let (begin, end) = (span.start_bytes, span.start_bytes + span.length_bytes);
        if end <= self.reserved_at_bytes {
            return each(0, begin, span);
        }
        let part = |begin: u64, end: u64| Span { start_bytes: begin, length_bytes: end - begin };
        let middle = begin.max(self.reserved_at_bytes);
        if begin < middle {
            each(0, begin, part(begin, middle));
        }
        each(0, middle + self.description.reserved_bytes(), part(middle, end));
    }

    fn power_cycle(&mut self, _now_ns: u64) {
        self.requests = Slab::default();
        self.sent = Slab::default();
        self.writes.iter_mut().for_each(BTreeSet::clear);
        self.syncs.clear();
        self.waiting.clear();
        self.commit = None;
        self.running = Transaction::new(self.files.count());
        (self.commit_due_ns, self.checkpoint_due_ns) = (u64::MAX, u64::MAX);
    }

    fn snapshot(&self, into: &mut Snapshot) {
        let (commits, log) = match self.description.kind {
            JournalKind::Ext4 => ("journal_commits", "journal_bytes"),
            JournalKind::Xfs => ("log_forces", "log_bytes"),
        };
        into.count(commits, self.counters.commits);
        into.count(log, self.counters.journal_bytes);
        into.count("sync_flushes", self.counters.flushes);
        into.count("metadata_checkpoints", self.counters.checkpoints);
    }
}
