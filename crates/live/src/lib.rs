//! The simulated system as a live block device: its model in virtual time, paced by the wall clock, exported over NBD,
//! FUSE and ublk. See docs/design/live.md.
//!
//! The model has its own timeline ([`headstack_sim::timeline`]): it receives the arrival times of requests and returns
//! their completion times, so a thread that wakes late computes the same results as one on time. Lateness is measured
//! and reported ([`fidelity`]), never fed back. A recorded session therefore replays in virtual time with the same
//! completions to the nanosecond.

mod buckets;
pub mod budget;
pub mod contents;
mod control;
mod copy_thread;
pub mod crashed;
pub mod device;
mod event_loop;
pub mod fidelity;
pub mod floor;
pub mod fuse;
pub mod journal;
mod kernel;
pub mod ledger;
pub mod members;
pub mod nbd;
pub mod orders;
pub mod pacer;
pub mod power;
pub mod service;
pub mod smart;
pub mod stream;
mod telemetry;
pub mod ublk;
pub mod verdict;
pub mod wall;
pub mod witness;

pub use contents::{Contents, Extent};
pub use device::{Device, Export};
pub use fidelity::Fidelity;
pub use orders::Order;
pub use pacer::{Answer, Commander, Session, SessionOptions, Submitter};
pub use service::{Keeping, Service, ServiceOptions};

use std::io;

/// Errors of a live export.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The system or its schedule is impossible.
    #[error("{0}")]
    Sim(#[from] headstack_sim::SimError),
    /// An input file cannot be accepted: file, key, and allowed values.
    #[error("{0}")]
    Input(#[from] headstack_workload::InputError),
    /// A request of the user that cannot be fulfilled.
    #[error("{0}")]
    Invalid(String),
    /// An error of the machine: the action, and its error.
    #[error("{what}: {error}")]
    Io {
        /// The action and its object.
        what: String,
        /// The machine's error.
        error: io::Error,
    },
}

impl LiveError {
    /// Returns a function that adds the action to an error of the machine.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> LiveError {
        let what = what.into();
        |error| LiveError::Io { what, error }
    }
}
