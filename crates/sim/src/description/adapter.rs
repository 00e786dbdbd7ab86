//! [`AdapterDescription`]: a host adapter, fully resolved. Times are nanoseconds.

use headstack_workload::{Kind, Request};
use serde::{Deserialize, Serialize};

/// A host adapter with the host that it is in, fully resolved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterDescription {
    /// Commands that it keeps in a drive at most; the drive's own limits hold as well.
    pub tags: u32,
    /// Between the starts of two reads (flushes and trims count as such): its inverse is the most reads a second.
    pub read_interval_ns: u64,
    /// The same of writes.
    pub write_interval_ns: u64,
    /// Added to the interval for each byte; 0 where the drive's own interface is the slower one.
    pub ns_per_byte: f64,
    /// From the application to the adapter and back again: system call, driver, interrupt. It occupies nobody.
    pub latency_ns: u64,
    /// Added to it when nothing else is outstanding: the processor has gone to sleep.
    pub wake_ns: u64,
    /// How interrupts are saved; each completion has its own where absent.
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

/// Interrupts that are saved: a completion waits until some time has passed since the last one, or until enough wait with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coalescing {
    /// Between two interrupts.
    pub interval_ns: u64,
    /// Completions that one interrupt tells of at most: the last of them does not wait.
    pub completions_max: u32,
    /// With so many commands outstanding every completion waits.
    pub from_outstanding: u32,
    /// With fewer, one in so many.
    pub one_in: u32,
}
