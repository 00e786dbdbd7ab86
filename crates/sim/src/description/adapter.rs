//! [`AdapterDescription`]: a host adapter, fully resolved. Times are nanoseconds.

use headstack_workload::{Kind, Request};
use serde::{Deserialize, Serialize};

/// A host adapter including its host, fully resolved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterDescription {
    /// Commands that it keeps in a drive at most; the drive's own limits hold as well.
    pub tags: u32,
    /// Between the starts of two reads (flushes and trims count as such): its inverse is the most reads a second.
    pub read_interval_ns: u64,
    /// Interval after a write.
    pub write_interval_ns: u64,
    /// Added to the interval per byte; 0 if the drive's own interface is slower.
    pub ns_per_byte: f64,
    /// From the application to the adapter and back: system call, driver, interrupt. It occupies nothing.
    pub latency_ns: u64,
    /// Added to it if nothing else is outstanding, since the processor has gone to sleep.
    pub wake_ns: u64,
    /// Interrupt coalescing; if absent, each completion has its own interrupt.
    pub coalescing: Option<Coalescing>,
}

impl AdapterDescription {
    /// Time between the start of a command and that of the next.
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

/// Coalesced interrupts: a completion waits until a time has passed since the last one, or until enough wait with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coalescing {
    /// Between two interrupts.
    pub interval_ns: u64,
    /// Largest number of completions per interrupt: the last of them does not wait.
    pub completions_max: u32,
    /// Queue depth from which on every completion waits.
    pub from_outstanding: u32,
    /// At a lower depth, one in so many.
    pub one_in: u32,
}
