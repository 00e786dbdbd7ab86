//! Requests under way between a load and a system, with their outcomes.

use headstack_result::Check;
use headstack_workload::Request;
use serde::{Deserialize, Serialize};

/// A request that completed in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The name that the host gave it.
    pub id: u32,
    /// First byte that could not be had, of the system's address space. For a flush, the first that was lost on its way
    /// out of a write cache.
    pub at_bytes: u64,
    /// It could not be written.
    pub write: bool,
}

/// An error as operating systems number it.
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
    /// It can only be read.
    #[serde(rename = "EROFS")]
    ReadOnly,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It is done.
    Done,
    /// A fault answered it with this error, without any effect.
    Refused(Errno),
    /// It failed, at this byte of the system if known.
    Failed(Option<u64>),
    /// It will never be answered: the device, its power or the session is gone.
    Vanished,
}

impl Outcome {
    /// Combined outcome of a request's parts: the worst, and of failures the first byte.
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

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// When it should have been issued; its response time counts from here.
    pub intended_ns: u64,
    /// The request.
    pub request: Request,
    /// Its client; 0 if all are alike.
    pub client: u32,
    /// Its stream; 0 if all are alike.
    pub stream: u32,
}

/// All of them, by id.
#[derive(Debug, Default)]
pub struct Flights {
    slots: Vec<Flight>,
    free: Vec<u32>,
    /// Requests issued so far.
    pub issued: u64,
    issued_bytes: u64,
    /// Requests completed so far.
    pub completed: u64,
    completed_bytes: u64,
}

impl Flights {
    /// None yet, with room for `capacity` at a time.
    pub fn with_capacity(capacity: usize) -> Self {
        Flights { slots: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity), ..Flights::default() }
    }

    /// Requests under way.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.issued - self.completed
    }

    /// A request is issued; returns its id.
    #[inline]
    pub fn issue(&mut self, flight: Flight) -> u32 {
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

    /// A request is complete.
    #[inline]
    pub fn complete(&mut self, id: u32) -> Flight {
        let flight = self.slots[id as usize];
        self.completed += 1;
        self.completed_bytes += u64::from(flight.request.length_bytes);
        self.free.push(id);
        flight
    }

    /// The requests under way.
    pub fn under_way(&self) -> impl Iterator<Item = &Flight> {
        let mut flies = vec![true; self.slots.len()];
        self.free.iter().for_each(|&id| flies[id as usize] = false);
        self.slots.iter().zip(flies).filter(|(_, flies)| *flies).map(|(flight, _)| flight)
    }

    /// Checks that every submitted request has completed or is under way.
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
