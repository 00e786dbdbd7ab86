//! [`Pairing`]: reconstructs requests from events.
//!
//! Ranges wait at their address, first as queued, then as issued; an issue takes the queued ranges that tile it
//! (several if they were merged, a part of one if it was split), a completion takes the longest-waiting issue of the
//! same device, sector, length and operation. Pairing only by address would confuse overlapping requests.

use rustc_hash::FxHashMap;

use super::events::{Event, EventKind, SECTOR_BYTES};
use super::places::Places;
use super::requests::{Requests, Waiting};
use crate::collect::Collector;
use crate::meta::ResponseSpan;
use crate::record::{Flags, NOT_RECORDED, Operation, Record};

/// Stage at which requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// When the file system or program queued it: Q to C.
    Queue,
    /// When the driver received it, after merges and splits: D to C.
    Issue,
}

/// Number of events without a queued request after which a trace is assumed to have none.
const UNDECIDED_EVENTS: usize = 1 << 14;

/// A part of a request; the whole request unless it was split.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Number of its request, from the start of the trace.
    request: u64,
    bytes: u32,
    operation: Operation,
}

/// A request that the driver received and has not completed.
#[derive(Debug)]
struct Issue {
    bytes: u32,
    operation: Operation,
    is_pass_through: bool,
    /// Whether it is a write with FUA: its completion makes it durable.
    is_forced: bool,
    /// The requests in it, in address order: none if they were queued before the trace began.
    first: Option<Part>,
    more: Vec<Part>,
    /// Number of the first request that arrived after it.
    next_request: u64,
}

#[derive(Debug)]
struct Device {
    number: u32,
    index: u32,
    /// Whether issues were seen. Stacked devices have none: their requests complete from the queue.
    has_issues: bool,
    has_flushes: bool,
}

/// Turns events into records in order of arrival.
#[derive(Debug)]
pub(crate) struct Pairing {
    stage: Option<Stage>,
    /// Events from before the stage was decided.
    undecided: Vec<Event>,
    queued: Places<Part>,
    issued: Places<Issue>,
    requests: Requests,
    /// Device and part of forced writes whose data are on a device without FUA: the following flush makes them durable.
    unflushed: Vec<(u32, Part)>,
    devices: Vec<Device>,
    processes: FxHashMap<u32, u32>,
    names: FxHashMap<u32, String>,
}

impl Pairing {
    /// Creates a pairing that counts requests at `stage`; by default where they were queued, if any was.
    pub(crate) fn new(stage: Option<Stage>, out: &mut Collector) -> Pairing {
        out.meta.response = stage.map(Stage::response);
        Pairing {
            stage,
            undecided: Vec::new(),
            queued: Places::new(),
            issued: Places::new(),
            requests: Requests::default(),
            unflushed: Vec::new(),
            devices: Vec::new(),
            processes: FxHashMap::default(),
            names: FxHashMap::default(),
        }
    }

    /// Processes the next event.
    #[inline]
    pub(crate) fn event(&mut self, event: &Event, out: &mut Collector) {
        match self.stage {
            Some(stage) => self.decided(stage, event, out),
            None => {
                self.undecided.push(*event);
                if event.what == EventKind::Queue {
                    self.decide(Stage::Queue, out);
                } else if self.undecided.len() == UNDECIDED_EVENTS {
                    self.decide(Stage::Issue, out);
                }
            }
        }
    }

    /// Sets the name of a process from now on.
    pub(crate) fn name(&mut self, pid: u32, name: &str, out: &mut Collector) {
        if self.names.get(&pid).is_some_and(|known| known == name) {
            return;
        }
        self.names.insert(pid, name.to_owned());
        let Some(&index) = self.processes.get(&pid) else { return };
        let process = &mut out.meta.processes[index as usize - 1];
        if process.name.is_empty() {
            name.clone_into(&mut process.name);
        } else {
            self.processes.insert(pid, out.process(pid, name));
        }
    }

    /// Number of requests that have arrived so far.
    pub(crate) fn arrived(&self) -> u64 {
        self.requests.end()
    }

    /// Stops waiting for requests that arrived before `at_ns`: their completions were lost.
    pub(crate) fn give_up_before(&mut self, at_ns: u64) {
        self.requests.give_up_before(at_ns);
    }

    /// Returns finished requests, as long as no earlier one is waiting.
    pub(crate) fn hand_over(&mut self, out: &mut Collector) {
        if self.requests.hand_over(out) {
            let first = self.requests.first();
            self.queued.retain(|part| part.request >= first);
            self.issued.retain(|issue| issue.next_request > first);
            self.unflushed.retain(|(_, part)| part.request >= first);
        }
    }

    /// Returns the remaining requests at the end of the trace.
    pub(crate) fn finish(&mut self, out: &mut Collector) {
        if self.stage.is_none() {
            self.decide(Stage::Issue, out);
        }
        self.requests.finish(out);
    }

    fn decide(&mut self, stage: Stage, out: &mut Collector) {
        self.stage = Some(stage);
        out.meta.response = Some(stage.response());
        for event in std::mem::take(&mut self.undecided) {
            self.decided(stage, &event, out);
        }
    }

    #[inline]
    fn decided(&mut self, stage: Stage, event: &Event, out: &mut Collector) {
        let device = self.device(event.device, out);
        match (event.what, stage) {
            (EventKind::Queue, Stage::Queue) => {
                let part = self.request(event, device, out);
                self.queued.push(self.devices[device].index, event.sector, part);
            }
            (EventKind::Get, Stage::Queue) => self.got(event, device),
            (EventKind::Insert, Stage::Queue) => self.inserted(event, device),
            (EventKind::Split, Stage::Queue) => self.split(event, device),
            (EventKind::Queue | EventKind::Get | EventKind::Insert | EventKind::Split, Stage::Issue) => {}
            (EventKind::Issue, _) => self.issue(stage, event, device, out),
            (EventKind::Requeue, _) => self.requeue(stage, event, device, out),
            (EventKind::Complete, _) => self.complete(event, device, out),
        }
    }

    /// Index of a device in `devices`.
    #[inline]
    fn device(&mut self, number: u32, out: &mut Collector) -> usize {
        if let Some(place) = self.devices.iter().position(|device| device.number == number) {
            return place;
        }
        let index = out.device(&format!("{},{}", number >> 20, number & 0xf_ffff));
        self.devices.push(Device { number, index, has_issues: false, has_flushes: false });
        self.devices.len() - 1
    }

    fn process(&mut self, pid: u32, out: &mut Collector) -> u32 {
        let name = self.names.get(&pid).map_or("", String::as_str);
        *self.processes.entry(pid).or_insert_with(|| out.process(pid, name))
    }

    /// Adds a new request; returns the part that covers all of it.
    #[inline]
    fn request(&mut self, event: &Event, device: usize, out: &mut Collector) -> Part {
        let mut record = Record::new(event.at_ns, event.operation, event.sector * SECTOR_BYTES, event.bytes);
        record.device = self.devices[device].index;
        // Process 0 is the idle task: the event came from an interrupt.
        record.process = if event.pid == 0 { 0 } else { self.process(event.pid, out) };
        record.flags = event.flags;
        Part { request: self.requests.add(record), bytes: event.bytes, operation: event.operation }
    }

    /// Notes that the kernel has allocated a request for queued data. Data merged into another request never get one.
    #[inline]
    fn got(&mut self, event: &Event, device: usize) {
        let index = self.devices[device].index;
        let is_without = |part: &Part| self.requests.peek(part.request).is_some_and(|r| r.got_ns == NOT_RECORDED);
        let fits = |part: &Part| part.bytes == event.bytes && part.operation == event.operation && is_without(part);
        let Some(&Part { request, .. }) = self.queued.find(index, event.sector, fits) else { return };
        if let Some(Waiting { record, .. }) = self.requests.get(request) {
            record.got_ns = event.at_ns.checked_sub(record.arrival_ns).unwrap_or(NOT_RECORDED);
        }
    }

    /// Notes that a request is in the scheduler's queue, including data merged into it.
    #[inline]
    fn inserted(&mut self, event: &Event, device: usize) {
        let index = self.devices[device].index;
        let (mut sector, mut left) = (event.sector, event.bytes);
        loop {
            let is_new = |part: &Part| self.requests.peek(part.request).is_some_and(|r| r.inserted_ns == NOT_RECORDED);
            let fits = |part: &Part| part.bytes <= left && part.operation == event.operation && is_new(part);
            let Some(&Part { request, bytes, .. }) = self.queued.find(index, sector, fits) else { return };
            if let Some(Waiting { record, .. }) = self.requests.get(request).filter(|w| w.record.got_ns != NOT_RECORDED)
            {
                record.inserted_ns = event.at_ns.checked_sub(record.arrival_ns).unwrap_or(NOT_RECORDED);
            }
            sector += u64::from(bytes) / SECTOR_BYTES;
            left -= bytes;
            if left == 0 || bytes == 0 {
                return;
            }
        }
    }

    fn split(&mut self, event: &Event, device: usize) {
        let index = self.devices[device].index;
        let front_bytes =
            event.second_sector.checked_sub(event.sector).and_then(|front| front.checked_mul(SECTOR_BYTES));
        let Some(front_bytes) = front_bytes.and_then(|bytes| u32::try_from(bytes).ok()).filter(|&bytes| bytes > 0)
        else {
            return;
        };
        let fits = |part: &Part| part.operation == event.operation && part.bytes > front_bytes;
        if let Some(part) = self.queued.take(index, event.sector, fits) {
            self.queued.push(index, event.sector, Part { bytes: front_bytes, ..part });
            self.put_back_rest(index, event.second_sector, Part { bytes: part.bytes - front_bytes, ..part });
        }
    }

    /// Leaves the rest of a part in the queue when its front is issued separately.
    fn put_back_rest(&mut self, index: u32, sector: u64, rest: Part) {
        if let Some(waiting) = self.requests.get(rest.request) {
            waiting.parts += 1;
        }
        self.queued.push(index, sector, rest);
    }

    /// Takes consecutive queued ranges from `sector` on, up to `bytes` in all.
    #[inline]
    fn tiles(&mut self, event: &Event, device: usize) -> (Option<Part>, Vec<Part>) {
        let index = self.devices[device].index;
        let operation = event.operation;
        let (mut sector, mut left) = (event.sector, event.bytes);
        let (mut first, mut more) = (None, Vec::new());
        loop {
            let exact = self.queued.take(index, sector, |part| part.operation == operation && part.bytes == left);
            let part = exact.or_else(|| {
                self.queued.take(index, sector, |part| part.operation == operation && part.bytes > 0 && left > 0)
            });
            let Some(mut part) = part else { break };
            if part.bytes > left {
                let rest = Part { bytes: part.bytes - left, ..part };
                self.put_back_rest(index, sector + u64::from(left) / SECTOR_BYTES, rest);
                part.bytes = left;
            }
            if first.is_none() {
                first = Some(part)
            } else {
                more.push(part)
            }
            sector += u64::from(part.bytes) / SECTOR_BYTES;
            left -= part.bytes;
            if left == 0 {
                break;
            }
        }
        (first, more)
    }

    #[inline]
    fn issue(&mut self, stage: Stage, event: &Event, device: usize, out: &mut Collector) {
        self.devices[device].has_issues = true;
        self.devices[device].has_flushes |= event.operation == Operation::Flush;
        let (mut first, mut more) = match stage {
            Stage::Queue => self.tiles(event, device),
            Stage::Issue => (Some(self.request(event, device, out)), Vec::new()),
        };
        if stage == Stage::Queue {
            if first.is_none() && event.flags.contains(Flags::PASS_THROUGH) {
                // Pass-through commands are never queued as file system requests are.
                first = Some(self.request(event, device, out));
            } else if first.is_none() {
                out.meta.count("issues without a queued request", 1);
            } else {
                for part in first.iter().chain(&more) {
                    if let Some(Waiting { record, .. }) = self.requests.get(part.request)
                        && record.wait_ns == NOT_RECORDED
                    {
                        record.wait_ns = event.at_ns.checked_sub(record.arrival_ns).unwrap_or(NOT_RECORDED);
                    }
                }
            }
        }
        let next_request = self.requests.end();
        let is_pass_through = event.flags.contains(Flags::PASS_THROUGH);
        let is_forced = event.flags.contains(Flags::FUA);
        let Event { bytes, operation, .. } = *event;
        let index = self.devices[device].index;
        if operation == Operation::Flush {
            more.extend(self.unflushed.extract_if(.., |(of, _)| *of == index).map(|(_, part)| part));
        }
        let issue = Issue { bytes, operation, is_pass_through, is_forced, first, more, next_request };
        self.issued.push(index, event.sector, issue);
    }

    fn requeue(&mut self, stage: Stage, event: &Event, device: usize, out: &mut Collector) {
        out.meta.count("requeues", 1);
        let index = self.devices[device].index;
        let Some(issue) = self.take_issue(event, index) else { return };
        let mut sector = event.sector;
        for part in issue.first.into_iter().chain(issue.more) {
            let Some(waiting) = self.requests.get(part.request) else { continue };
            match stage {
                Stage::Queue if issue.operation == Operation::Flush && part.operation != Operation::Flush => {
                    self.unflushed.push((index, part));
                }
                Stage::Queue => {
                    waiting.record.wait_ns = NOT_RECORDED;
                    self.queued.push(index, sector, part);
                    sector += u64::from(part.bytes) / SECTOR_BYTES;
                }
                Stage::Issue => {
                    // It will be issued again, with a new record, which continues this one.
                    waiting.parts -= 1;
                    waiting.is_withdrawn = part.bytes == waiting.record.length_bytes;
                    waiting.record.length_bytes -= part.bytes;
                }
            }
        }
    }

    /// Takes the issue of an event: of the same length, or longer if the device completed only a part. For a
    /// pass-through command, blkparse's text does not state how many bytes completed.
    #[inline]
    fn take_issue(&mut self, event: &Event, index: u32) -> Option<Issue> {
        let (bytes, operation) = (event.bytes, event.operation);
        let is_pass_through = event.flags.contains(Flags::PASS_THROUGH);
        let is_alike = |issue: &Issue| issue.operation == operation && issue.is_pass_through == is_pass_through;
        let exact = self.issued.take(index, event.sector, |issue| issue.bytes == bytes && is_alike(issue));
        exact.or_else(|| {
            let fits = |issue: &Issue| is_pass_through || bytes > 0 && issue.bytes > bytes;
            self.issued.take(index, event.sector, |issue| is_alike(issue) && fits(issue))
        })
    }

    #[inline]
    fn complete(&mut self, event: &Event, device: usize, out: &mut Collector) {
        let index = self.devices[device].index;
        if let Some(issue) = self.take_issue(event, index) {
            if issue.bytes == event.bytes || issue.is_pass_through {
                for part in issue.first.iter().chain(&issue.more) {
                    if self.is_flushed_after(*part, &issue, device) {
                        self.unflushed.push((index, *part));
                    } else {
                        self.complete_part(*part, event, out);
                    }
                }
            } else {
                self.complete_front(issue, event, index, out);
                return;
            }
            if issue.operation == Operation::Flush {
                // One flush of the device serves all that were requested before it.
                let waits = |part: &Part| part.operation == Operation::Flush && part.request < issue.next_request;
                while let Some(part) = self.queued.take(index, event.sector, waits) {
                    self.complete_part(part, event, out);
                }
            }
            return;
        }
        let (first, more) = if self.devices[device].has_issues {
            // Its issue may be among the lost events.
            let fits = |part: &Part| part.bytes == event.bytes && part.operation == event.operation;
            (self.queued.take(index, event.sector, fits), Vec::new())
        } else {
            self.tiles(event, device)
        };
        if first.is_none() && !self.ends_flush(event, device, out) {
            out.meta.count("completions without issue", 1);
        }
        for part in first.into_iter().chain(more) {
            self.complete_part(part, event, out);
        }
    }

    /// Whether the kernel sends a flush after the data of this forced write, because the device has no FUA, and
    /// completes the write after that flush. Such data are issued without the FUA with which they were queued.
    fn is_flushed_after(&self, part: Part, issue: &Issue, device: usize) -> bool {
        let is_queued_forced =
            || self.requests.peek(part.request).is_some_and(|record| record.flags.contains(Flags::FUA));
        issue.operation == Operation::Write
            && !issue.is_forced
            && self.devices[device].has_flushes
            && is_queued_forced()
    }

    /// Whether an empty write ends a flush for its requester, after the device's own flush. If the device has no
    /// volatile cache, this is its only end.
    fn ends_flush(&mut self, event: &Event, device: usize, out: &mut Collector) -> bool {
        let is_end =
            event.bytes == 0 && event.operation == Operation::Other && !event.flags.contains(Flags::PASS_THROUGH);
        if is_end && !self.devices[device].has_flushes {
            let index = self.devices[device].index;
            if let Some(part) = self.queued.take(index, 0, |part| part.operation == Operation::Flush) {
                self.complete_part(part, event, out);
            }
        }
        is_end
    }

    /// Completes the first bytes of an issue; the rest continues to wait.
    fn complete_front(&mut self, issue: Issue, event: &Event, index: u32, out: &mut Collector) {
        let mut left = event.bytes;
        let mut rest = Vec::new();
        for mut part in issue.first.into_iter().chain(issue.more) {
            if part.bytes <= left {
                left -= part.bytes;
                self.complete_part(part, event, out);
                continue;
            }
            if left > 0 {
                self.progress(part, event, out);
                part.bytes -= left;
                left = 0;
            }
            rest.push(part);
        }
        let mut rest = rest.into_iter();
        let issue = Issue { bytes: issue.bytes - event.bytes, first: rest.next(), more: rest.collect(), ..issue };
        self.issued.push(index, event.sector + u64::from(event.bytes) / SECTOR_BYTES, issue);
    }

    /// Updates the time of a part's request to now.
    #[inline]
    fn progress(&mut self, part: Part, event: &Event, out: &mut Collector) -> Option<&mut Waiting> {
        let Some(waiting) = self.requests.get(part.request) else {
            out.meta.count("completions that came too late", 1);
            return None;
        };
        let record = &mut waiting.record;
        let response_ns = event.at_ns.checked_sub(record.arrival_ns);
        if response_ns.is_none() {
            out.meta.count("completions before arrival", 1);
        }
        record.response_ns = response_ns.unwrap_or(NOT_RECORDED);
        if event.flags.contains(Flags::ERROR) {
            record.flags = record.flags.with(Flags::ERROR);
        }
        Some(waiting)
    }

    #[inline]
    fn complete_part(&mut self, part: Part, event: &Event, out: &mut Collector) {
        if let Some(waiting) = self.progress(part, event, out) {
            waiting.parts = waiting.parts.saturating_sub(1);
        }
    }
}

impl Stage {
    /// Span of response times at this stage.
    fn response(self) -> ResponseSpan {
        match self {
            Stage::Queue => ResponseSpan::QueueToCompletion,
            Stage::Issue => ResponseSpan::IssueToCompletion,
        }
    }
}
