//! [`Events`]: converts a trace's requests to events in order of time, as the Linux block layer would report them:
//! queue, allocate, insert, issue and complete, as far as the trace records them.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::Losses;
use crate::meta::{Meta, ResponseSpan};
use crate::record::{Flags, NOT_RECORDED, Operation, Record};

pub(super) const SECTOR_BYTES: u64 = 512;
/// Error code of a failed request (EIO), since a trace has no more detail.
pub(super) const ERROR: i16 = -5;

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    Queue,
    Get,
    Insert,
    Issue,
    Complete,
}

/// Data common to all events of a request.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// Major and minor number.
    pub(super) device: (u32, u32),
    pub(super) pid: u32,
    /// Name of the process; empty if the trace has none.
    pub(super) name: String,
    pub(super) operation: Operation,
    pub(super) flags: Flags,
    pub(super) sector: u64,
    pub(super) sectors: u64,
    /// Length of a pass-through command, in bytes.
    pub(super) command_bytes: Option<u32>,
}

impl Subject {
    pub(super) fn is_error(&self) -> bool {
        self.flags.contains(Flags::ERROR)
    }
}

/// An event. Events are ordered by time, then by request and stage.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) at_ns: u64,
    request: u64,
    pub(super) action: Action,
    pub(super) subject: Subject,
}

impl Event {
    fn key(&self) -> (u64, u64, Action) {
        (self.at_ns, self.request, self.action)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Event) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Pending events of requests, in order of time.
#[derive(Debug, Default)]
pub(super) struct Events {
    pending: BinaryHeap<Reverse<Event>>,
    requests: u64,
    pub(super) losses: Losses,
}

impl Events {
    /// Adds the events of a request that arrives at `arrival_ns`, no earlier than previous requests.
    pub(super) fn add(&mut self, record: &Record, arrival_ns: u64, meta: &Meta) {
        let subject = self.subject(record, meta);
        // Pass-through commands are not queued like file system requests.
        let is_queued = meta.response != Some(ResponseSpan::IssueToCompletion) && subject.command_bytes.is_none();
        let has_wait = record.wait_ns != NOT_RECORDED;
        let has_response = record.response_ns != NOT_RECORDED;
        let is_issued = is_queued && has_wait && !(has_response && record.wait_ns > record.response_ns);
        self.lose("waits", has_wait && !is_issued);
        let has_phases = record.got_ns != NOT_RECORDED || record.inserted_ns != NOT_RECORDED;
        self.lose("phases", has_phases && !is_queued);
        self.lose("errors", subject.is_error() && !has_response);
        let request = self.requests;
        self.requests += 1;
        let mut push = |after_ns: u64, action, subject| {
            let at_ns = arrival_ns.saturating_add(after_ns);
            self.pending.push(Reverse(Event { at_ns, request, action, subject }));
        };
        if has_response {
            push(record.response_ns, Action::Complete, subject.clone());
        }
        if is_queued && record.inserted_ns != NOT_RECORDED {
            push(record.inserted_ns, Action::Insert, subject.clone());
        }
        if is_queued && record.got_ns != NOT_RECORDED {
            push(record.got_ns, Action::Get, subject.clone());
        }
        if is_issued {
            push(record.wait_ns, Action::Issue, subject.clone());
        }
        push(0, if is_queued { Action::Queue } else { Action::Issue }, subject);
    }

    /// Returns the next event up to a time.
    pub(super) fn next_until(&mut self, until_ns: u64) -> Option<Event> {
        if self.pending.peek().is_none_or(|Reverse(event)| event.at_ns > until_ns) {
            return None;
        }
        self.pending.pop().map(|Reverse(event)| event)
    }

    pub(super) fn lose(&mut self, what: &'static str, is_lost: bool) {
        if is_lost {
            *self.losses.entry(what).or_default() += 1;
        }
    }

    fn subject(&mut self, record: &Record, meta: &Meta) -> Subject {
        let device_name = meta.devices.get(record.device as usize).map_or("", |device| device.name.as_str());
        let device = numbers(device_name);
        self.lose("device names", device.is_none());
        let process = (record.process as usize).checked_sub(1).and_then(|index| meta.processes.get(index));
        let name = process.map_or("", |process| process.name.as_str());
        let is_pass_through = record.operation == Operation::Other && record.flags.contains(Flags::PASS_THROUGH);
        let has_address = !is_pass_through && record.operation != Operation::Flush && record.length_bytes > 0;
        let end_bytes = record.end_bytes().next_multiple_of(SECTOR_BYTES);
        let sector = if has_address { record.offset_bytes / SECTOR_BYTES } else { 0 };
        let sectors = if has_address { end_bytes / SECTOR_BYTES - sector } else { 0 };
        let is_whole = (record.offset_bytes | u64::from(record.length_bytes)).is_multiple_of(SECTOR_BYTES);
        let may_be_empty = matches!(record.operation, Operation::Flush | Operation::Other);
        self.lose("addresses", !has_address && record.offset_bytes > 0);
        self.lose("lengths", record.operation == Operation::Flush && record.length_bytes > 0);
        self.lose("parts of sectors", has_address && !is_whole);
        self.lose("requests of no bytes", record.length_bytes == 0 && !may_be_empty);
        self.lose("unknown operations", record.operation == Operation::Unknown);
        self.lose("pass-through flags", record.flags.contains(Flags::PASS_THROUGH) && !is_pass_through);
        Subject {
            device: device.unwrap_or((0, record.device)),
            pid: process.map_or(0, |process| process.pid),
            name: name.to_owned(),
            operation: record.operation,
            flags: record.flags,
            sector,
            sectors,
            command_bytes: is_pass_through.then_some(record.length_bytes),
        }
    }
}

/// Parses `major,minor`.
fn numbers(device: &str) -> Option<(u32, u32)> {
    let (major, minor) = device.split_once(',')?;
    let number = |text: &str, end: u32| text.parse().ok().filter(|&number| number < end);
    Some((number(major, 1 << 12)?, number(minor, 1 << 20)?))
}
