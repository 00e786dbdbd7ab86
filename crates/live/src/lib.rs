//! The simulated system as a live block device: its model in virtual time, paced by the wall clock, behind NBD, FUSE and ublk.
//!
//! The model keeps a timeline of its own ([`headstack_sim::timeline`]): it is told when requests came and says when they are complete, and
//! a thread that wakes late computes what it would have computed on time. Lateness is measured and reported
//! ([`fidelity`]), never fed back. So a recorded session, replayed in virtual time, has the same completions to the
//! nanosecond.

mod buckets;
pub mod budget;
pub mod contents;
mod control;
mod courier;
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

/// What can be wrong with a live export.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The system or its schedule cannot be.
    #[error("{0}")]
    Sim(#[from] headstack_sim::SimError),
    /// A file cannot be accepted: where, which key, and what would be.
    #[error("{0}")]
    Input(#[from] headstack_workload::InputError),
    /// Something that was asked for cannot be done.
    #[error("{0}")]
    Asked(String),
    /// The machine refused: what was tried, and what it said.
    #[error("{what}: {error}")]
    Io {
        /// What was tried, on what.
        what: String,
        /// What the machine said.
        error: io::Error,
    },
}

impl LiveError {
    /// Names what was tried when the machine refused.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> LiveError {
        let what = what.into();
        |error| LiveError::Io { what, error }
    }
}
