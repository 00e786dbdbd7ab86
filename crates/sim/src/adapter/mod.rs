//! [`Adapter`]: the driver, the host adapter or bridge, and the interrupts between an application and a drive.
//!
//! Each command occupies its adapter for an *interval*, during which the adapter accepts no other command, and adds a
//! latency that occupies nothing. Interrupts report completions; some adapters coalesce interrupts.

pub use crate::description::adapter as description;

use std::collections::VecDeque;

use crate::description::adapter::{AdapterDescription, Coalescing};
use crate::drive::Completion;
use crate::error::InvalidDescription;
use headstack_workload::Request;

/// Checks a description and rejects impossible values.
pub(crate) fn check(adapter: &AdapterDescription) -> Result<(), InvalidDescription> {
    let refused = |key: &str, message: &str| {
        Err(InvalidDescription { key: format!("interface.host.{key}"), message: message.to_owned() })
    };
    if adapter.tags == 0 {
        return refused("tags", "0; must be 1 or more");
    }
    if !(0.0..1e6).contains(&adapter.ns_per_byte) {
        return refused("ns_per_byte", "must be above 1 kB/s");
    }
    match adapter.coalescing {
        Some(Coalescing { one_in: 0, .. }) => refused("coalescing.one_in", "0; must be 1 or more"),
        Some(Coalescing { completions_max: 0, .. }) => refused("coalescing.completions_max", "0; must be 1 or more"),
        Some(_) | None => Ok(()),
    }
}

/// A host adapter in virtual time: commands on their way to the drive, and completions on their way back.
#[derive(Clone, Debug)]
pub struct Adapter {
    description: AdapterDescription,
    /// Time at which the adapter can accept the next command.
    free_ns: u64,
    /// Commands on their way to the drive, in order of time.
    inbound: VecDeque<(u64, u32, Request)>,
    /// Completions on their way to the application, in order of time.
    outbound: VecDeque<Completion>,
    /// Number of commands that the application waits for.
    outstanding: u32,
    /// Time of the last scheduled interrupt.
    interrupt_ns: u64,
    /// Number of completions that the last scheduled interrupt reports.
    coalesced: u32,
    /// Number of completions so far.
    completions: u64,
}

impl Adapter {
    /// Creates an idle adapter.
    pub fn new(description: AdapterDescription) -> Adapter {
        Adapter {
            description,
            free_ns: 0,
            inbound: VecDeque::new(),
            outbound: VecDeque::new(),
            outstanding: 0,
            interrupt_ns: 0,
            coalesced: 0,
            completions: 0,
        }
    }

    /// Creates an adapter that delays only completions, for requests whose commands are paced elsewhere.
    pub fn of_requests(description: AdapterDescription) -> Adapter {
        Adapter::new(AdapterDescription { read_interval_ns: 0, write_interval_ns: 0, ns_per_byte: 0.0, ..description })
    }

    /// Counts a request as outstanding until [`Self::complete`].
    pub fn expect(&mut self) {
        self.outstanding += 1;
    }

    /// Drops all commands, because the application gave up.
    pub fn reset(&mut self) {
        self.inbound.clear();
        self.outbound.clear();
        self.outstanding = 0;
    }

    /// Whether no command is outstanding.
    pub fn is_idle(&self) -> bool {
        self.outstanding == 0
    }

    /// Returns the time of the adapter's next event.
    pub fn next_event_ns(&self) -> u64 {
        let inbound = self.inbound.front().map_or(u64::MAX, |&(at_ns, ..)| at_ns);
        inbound.min(self.outbound.front().map_or(u64::MAX, |completion| completion.at_ns))
    }

    /// Accepts a command, which reaches the drive as soon as the adapter is free.
    pub fn take(&mut self, now_ns: u64, id: u32, request: &Request) {
        let start_ns = now_ns.max(self.free_ns);
        self.free_ns = start_ns + self.description.interval_ns(request);
        self.expect();
        self.inbound.push_back((start_ns, id, *request));
    }

    /// Returns the next command that reaches the drive at or before `now_ns`, if any.
    pub fn deliver(&mut self, now_ns: u64) -> Option<(u64, u32, Request)> {
        if self.inbound.front()?.0 > now_ns { None } else { self.inbound.pop_front() }
    }

    /// Accepts a completion from the drive.
    pub fn complete(&mut self, done: Completion) {
        let AdapterDescription { latency_ns, wake_ns, coalescing, .. } = self.description;
        self.completions += 1;
        let wake_ns = if self.outstanding == 1 { wake_ns } else { 0 };
        let ready_ns = done.at_ns + latency_ns + wake_ns;
        let at_ns = match coalescing {
            None => ready_ns,
            Some(coalescing) => self.interrupt(coalescing, ready_ns),
        };
        debug_assert!(self.outbound.back().is_none_or(|last| last.at_ns <= at_ns), "interrupts are in order of time");
        self.outbound.push_back(Completion { at_ns, ..done });
    }

    /// Returns when the interrupt occurs that reports a completion ready at `ready_ns`.
    fn interrupt(&mut self, coalescing: Coalescing, ready_ns: u64) -> u64 {
        let Coalescing { interval_ns, completions_max, from_outstanding, one_in } = coalescing;
        if ready_ns > self.interrupt_ns {
            let waits = self.outstanding >= from_outstanding || self.completions.is_multiple_of(u64::from(one_in));
            self.interrupt_ns = if waits { ready_ns.max(self.interrupt_ns + interval_ns) } else { ready_ns };
            self.coalesced = 0;
        }
        self.coalesced += 1;
        if self.coalesced >= completions_max && self.interrupt_ns > ready_ns {
            let scheduled_ns = std::mem::replace(&mut self.interrupt_ns, ready_ns);
            let waiting = self.outbound.iter_mut().rev().take_while(|completion| completion.at_ns == scheduled_ns);
            waiting.for_each(|completion| completion.at_ns = ready_ns);
        }
        self.interrupt_ns
    }

    /// Returns the next completion reported to the application at or before `now_ns`, if any.
    pub fn report(&mut self, now_ns: u64) -> Option<Completion> {
        if self.outbound.front()?.at_ns > now_ns {
            return None;
        }
        self.outstanding -= 1;
        self.outbound.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use headstack_workload::Kind;

    use crate::description::drive::Policy;

    use super::*;

    const PLAIN: AdapterDescription = AdapterDescription {
        tags: 32,
        elevator: Policy::Fcfs,
        read_interval_ns: 10_000,
        write_interval_ns: 20_000,
        ns_per_byte: 0.5,
        latency_ns: 5_000,
        wake_ns: 0,
        coalescing: None,
    };

    fn request(kind: Kind) -> Request {
        Request { kind, offset_bytes: 0, length_bytes: 4096, force_unit_access: false, ordered: false }
    }

    /// Returns when completions are reported to the application, if all commands arrive at time 0 and the drive takes
    /// 100 us for each.
    fn reported_ns(description: AdapterDescription, kinds: &[Kind]) -> Vec<u64> {
        let mut adapter = Adapter::new(description);
        (0..).zip(kinds).for_each(|(id, &kind)| adapter.take(0, id, &request(kind)));
        while let Some((at_ns, id, _)) = adapter.deliver(u64::MAX) {
            adapter.complete(Completion { at_ns: at_ns + 100_000, id, started_ns: at_ns });
        }
        std::iter::from_fn(|| adapter.report(u64::MAX)).map(|completion| completion.at_ns).collect()
    }

    #[test]
    fn commands_start_an_interval_and_their_bytes_apart() {
        assert_eq!(reported_ns(PLAIN, &[Kind::Read, Kind::Write, Kind::Read]), [105_000, 117_048, 139_096]);
        assert_eq!(reported_ns(PLAIN, &[Kind::Flush, Kind::Read]), [105_000, 115_000], "a flush transfers no data");
    }

    #[test]
    fn a_single_waiting_request_wakes_the_processor() {
        let sleepy = AdapterDescription { wake_ns: 7_000, ..PLAIN };
        assert_eq!(reported_ns(sleepy, &[Kind::Read]), [112_000]);
        assert_eq!(reported_ns(sleepy, &[Kind::Read, Kind::Read]), [105_000, 117_048]);
    }

    #[test]
    fn interrupts_are_saved_once_enough_is_outstanding() {
        let coalescing = Coalescing { interval_ns: 150_000, completions_max: 8, from_outstanding: 4, one_in: 3 };
        let saving = AdapterDescription { coalescing: Some(coalescing), ..PLAIN };
        assert_eq!(reported_ns(saving, &[Kind::Read; 4]), [150_000; 4], "one interrupt reports all");
        assert_eq!(reported_ns(saving, &[Kind::Read; 3]), [105_000, 117_048, 267_048], "one in three waits");
        let pairs = Some(Coalescing { completions_max: 2, ..coalescing });
        let pairs = AdapterDescription { coalescing: pairs, ..PLAIN };
        assert_eq!(reported_ns(pairs, &[Kind::Read; 4])[..2], [117_048; 2], "the second of a pair does not wait");
    }
}
