//! [`AdapterDescription`]: the full description of a host adapter. Times are in nanoseconds.

use headstack_workload::{Kind, Request};
use serde::{Deserialize, Serialize};

use super::policy::Policy;

/// A host adapter together with its host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterDescription {
    /// Maximum number of commands that the adapter keeps in a drive; the drive's own limits apply as well.
    pub tags: u32,
    /// Order in which requests that wait for a tag of an SSD get one; a disk's interface has its own.
    #[serde(default = "in_order_of_arrival")]
    pub elevator: Policy,
    /// Time between the starts of two reads, flushes or trims; the inverse is the maximum read IOPS.
    pub read_interval_ns: u64,
    /// Time between the starts of two writes.
    pub write_interval_ns: u64,
    /// Time added to the interval per byte; 0 if the drive's own interface is slower.
    pub ns_per_byte: f64,
    /// Latency from the application to the adapter and back: system call, driver, interrupt. It occupies no resource.
    pub latency_ns: u64,
    /// Additional latency when no other request is outstanding, because the processor sleeps then.
    pub wake_ns: u64,
    /// Interrupt coalescing; `None` for one interrupt per completion.
    pub coalescing: Option<Coalescing>,
}

fn in_order_of_arrival() -> Policy {
    Policy::Fcfs
}

impl AdapterDescription {
    /// Returns the time between the start of this command and the start of the next, in ns.
    pub fn interval_ns(&self, request: &Request) -> u64 {
        let interval_ns = match request.kind {
            Kind::Write => self.write_interval_ns,
            Kind::Read | Kind::Flush | Kind::Trim => self.read_interval_ns,
        };
        let carried_bytes = match request.kind {
            Kind::Read | Kind::Write => f64::from(request.length_bytes),
            Kind::Flush | Kind::Trim => 0.0,
        };
        interval_ns + (carried_bytes * self.ns_per_byte).round() as u64
    }
}

/// Interrupt coalescing: a completion waits until a time has passed since the last interrupt, or until enough other
/// completions are waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coalescing {
    /// Time between two interrupts.
    pub interval_ns: u64,
    /// Maximum number of completions per interrupt; the last of them does not wait.
    pub completions_max: u32,
    /// Queue depth from which every completion waits.
    pub from_outstanding: u32,
    /// At lower queue depths, one completion in this many waits.
    pub one_in: u32,
}
