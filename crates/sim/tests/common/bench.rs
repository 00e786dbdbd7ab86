//! A system as in a live export: requests one after the other, with failures collected.

use headstack_sim::Failed;
use headstack_sim::SystemDescription;
use headstack_sim::array::description::ArrayDescription;
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::Completion;
use headstack_sim::drive::description::DriveDescription;
use headstack_sim::gauges::DeviceHealth;
use headstack_sim::media_defects::{Delay, MediaDefect};
use headstack_sim::ssd::description::SsdDescription;
use headstack_sim::system::System;
use headstack_workload::{Request, Span};

/// A system and its host.
#[derive(Clone)]
pub struct Bench {
    pub system: System,
    pub now_ns: u64,
    next_id: u32,
}

impl From<&DriveDescription> for Bench {
    fn from(drive: &DriveDescription) -> Bench {
        Bench::new(&drive.clone().into())
    }
}

impl From<&SsdDescription> for Bench {
    fn from(ssd: &SsdDescription) -> Bench {
        Bench::new(&SystemDescription::Drive(DeviceDescription::Ssd(ssd.clone())))
    }
}

impl From<&ArrayDescription> for Bench {
    fn from(array: &ArrayDescription) -> Bench {
        Bench::new(&SystemDescription::Array(array.clone()))
    }
}

impl Bench {
    pub fn new(description: &SystemDescription) -> Bench {
        Bench { system: System::new(description, 1).unwrap(), now_ns: 0, next_id: 0 }
    }

    /// Adds media defects to a device.
    pub fn with(mut self, member: Option<u32>, media_defects: &[MediaDefect]) -> Bench {
        self.system.set_media_defects(member, media_defects.to_vec(), 1).unwrap();
        self
    }

    /// Submits a request now; returns its id.
    pub fn submit(&mut self, request: &Request) -> u32 {
        self.next_id += 1;
        self.system.submit(self.now_ns, self.next_id, request);
        self.next_id
    }

    /// Submits a request now and waits for it; returns its latency, and failures meanwhile.
    pub fn serve(&mut self, request: &Request) -> (u64, Vec<Failed>) {
        let (id, from_ns, mut done) = (self.submit(request), self.now_ns, vec![]);
        while !done.iter().any(|completion: &Completion| completion.id == id) {
            self.now_ns = self.system.next_event_ns();
            assert!(self.now_ns != u64::MAX, "no event is scheduled");
            self.system.advance(self.now_ns, &mut done);
        }
        (self.now_ns - from_ns, self.failed())
    }

    /// Returns the latency of a request that does not fail.
    pub fn takes_ns(&mut self, request: &Request) -> u64 {
        let (took_ns, failed) = self.serve(request);
        assert_eq!(failed, [], "{request:?}");
        took_ns
    }

    /// Runs until nothing is in flight; returns the completions.
    pub fn settle(&mut self) -> Vec<Completion> {
        let mut done = vec![];
        while self.system.next_event_ns() != u64::MAX {
            self.now_ns = self.now_ns.max(self.system.next_event_ns());
            self.system.advance(self.now_ns, &mut done);
        }
        done
    }

    /// Runs until `at_ns`; returns the completions.
    pub fn run_to(&mut self, at_ns: u64) -> Vec<Completion> {
        let mut done = vec![];
        self.system.advance(at_ns, &mut done);
        self.now_ns = at_ns;
        done
    }

    pub fn failed(&mut self) -> Vec<Failed> {
        let mut failed = vec![];
        self.system.take_failed(&mut failed);
        failed
    }

    /// Spans of the whole system that a power cut loses, as (first byte, end).
    pub fn volatile(&self) -> Vec<(u64, u64)> {
        let mut spans = vec![];
        self.system.volatile(self.now_ns, &[Span { start_bytes: 0, length_bytes: u64::MAX >> 1 }], &mut spans);
        spans.iter().map(|span| (span.start_bytes, span.start_bytes + span.length_bytes)).collect()
    }

    /// Spans of the systems below a stack, by their own addresses up to 768 MiB, that a power cut loses.
    pub fn volatile_below(&self) -> Vec<Span> {
        let System::Stack(stack) = &self.system else { panic!("it is a stack") };
        let mut held = vec![];
        let all = [Span { start_bytes: 0, length_bytes: 768 << 20 }];
        stack.systems().iter().for_each(|system| system.volatile(self.now_ns, &all, &mut held));
        held
    }

    pub fn health(&self) -> Vec<DeviceHealth> {
        let mut health = vec![];
        self.system.device_health(&mut health);
        health
    }
}

/// Returns unreadable sectors of 512 bytes, which are given up after 10 turns and are healed by a write.
pub fn unreadable(from: u64, to: u64) -> MediaDefect {
    MediaDefect {
        span: Span { start_bytes: 512 * from, length_bytes: 512 * (to - from) },
        reads: true,
        writes: false,
        share: 1.0,
        delay: Delay::Turns(10),
        fails: true,
        healed_by_write: true,
    }
}
