//! [`PendingRequests`]: requests in flight between a load generator and a system, with their [`Outcome`]s.

use headstack_result::Check;
use headstack_workload::Request;
use serde::{Deserialize, Serialize};

/// A request that completed in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The host's id of it.
    pub id: u32,
    /// First byte of the system's address space that could not be read or written. For a flush, the first that a write
    /// cache could not destage.
    pub at_bytes: u64,
    /// Whether it could not be written.
    pub write: bool,
}

/// An error of the operating system, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Errno {
    /// Input or output error.
    #[default]
    #[serde(rename = "EIO")]
    Io,
    /// No space is left.
    #[serde(rename = "ENOSPC")]
    NoSpace,
    /// It took too long.
    #[serde(rename = "ETIMEDOUT")]
    TimedOut,
    /// Read-only.
    #[serde(rename = "EROFS")]
    ReadOnly,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Completed.
    Done,
    /// A fault answered it with this error, and none of its work was done.
    Refused(Errno),
    /// Failed, with the byte of the system at fault, if there is one.
    Failed(Option<u64>),
    /// Will never be answered: the device, its power or the session is gone.
    Vanished,
}

impl Outcome {
    /// Returns the outcome of a request whose parts have these outcomes: the worst, and of failures the first byte.
    pub fn with(self, other: Outcome) -> Outcome {
        match (self, other) {
            (Outcome::Vanished, _) | (_, Outcome::Vanished) => Outcome::Vanished,
            (Outcome::Failed(one), Outcome::Failed(two)) => Outcome::Failed(one.into_iter().chain(two).min()),
            (Outcome::Refused(one), Outcome::Refused(two)) => Outcome::Refused(one.min(two)),
            (Outcome::Done, worse) | (worse, Outcome::Done) => worse,
            (Outcome::Refused(_), failed) | (failed, Outcome::Refused(_)) => failed,
        }
    }
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub struct PendingRequest {
    /// When it should have been issued; its latency counts from here.
    pub intended_ns: u64,
    /// The request itself.
    pub request: Request,
    /// Client that issued it; 0 if all are alike.
    pub client: u32,
    /// Stream to which it belongs; 0 if all are alike.
    pub stream: u32,
}

/// All requests in flight, by id.
#[derive(Debug, Default)]
pub struct PendingRequests {
    slots: Vec<PendingRequest>,
    free: Vec<u32>,
    /// Requests issued so far.
    pub issued: u64,
    issued_bytes: u64,
    /// Requests completed so far.
    pub completed: u64,
    completed_bytes: u64,
}

impl PendingRequests {
    /// Creates an empty set, with room for `capacity` at a time.
    pub fn with_capacity(capacity: usize) -> Self {
        PendingRequests {
            slots: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            ..PendingRequests::default()
        }
    }

    /// Returns the number of requests in flight.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.issued - self.completed
    }

    /// Issues a request; returns its id.
    #[inline]
    pub fn issue(&mut self, flight: PendingRequest) -> u32 {
        self.issued += 1;
        self.issued_bytes += u64::from(flight.request.length_bytes);
        match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = flight;
                id
            }
            None => {
                self.slots.push(flight);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Completes a request.
    #[inline]
    pub fn complete(&mut self, id: u32) -> PendingRequest {
        let flight = self.slots[id as usize];
        self.completed += 1;
        self.completed_bytes += u64::from(flight.request.length_bytes);
        self.free.push(id);
        flight
    }

    /// Returns the requests in flight.
    pub fn under_way(&self) -> impl Iterator<Item = &PendingRequest> {
        let mut flies = vec![true; self.slots.len()];
        self.free.iter().for_each(|&id| flies[id as usize] = false);
        self.slots.iter().zip(flies).filter(|(_, flies)| *flies).map(|(flight, _)| flight)
    }

    /// Checks that every issued request completed or is in flight.
    pub fn checks(&self) -> Vec<Check> {
        let (issued, completed, count) = (self.issued, self.completed, self.under_way().count() as u64);
        let bytes: u64 = self.under_way().map(|flight| u64::from(flight.request.length_bytes)).sum();
        vec![
            Check {
                name: "requests in = requests out".to_owned(),
                passed: issued == completed + count,
                detail: format!("{issued} issued, {completed} completed, {count} in flight"),
            },
            Check {
                name: "bytes in = bytes out".to_owned(),
                passed: self.issued_bytes == self.completed_bytes + bytes,
                detail: format!("{} issued, {} completed, {bytes} in flight", self.issued_bytes, self.completed_bytes),
            },
        ]
    }
}
