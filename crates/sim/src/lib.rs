//! Simulation of drives, arrays and their load in virtual time, without I/O or a wall clock.

#![deny(clippy::wildcard_enum_match_arm)] // A new variant does not compile until every match handles it.

pub mod adapter;
pub mod array;
mod bench;
pub mod chronicle;
mod derived_cache;
pub mod description;
pub mod device;
pub mod disk;
pub mod drive;
mod error;
mod faulted;
pub mod faults;
pub mod gauges;
mod host;
mod in_service;
pub mod link;
mod load_loop;
pub mod media_defects;
pub mod notes;
mod pending_requests;
pub mod power;
pub mod power_cut;
mod progress;
mod recorder;
mod repair;
pub mod replay;
mod run;
mod run_spec;
mod scenario;
mod slab;
mod snapshot;
mod spans;
pub mod ssd;
pub mod stack;
mod stripes;
pub mod system;
pub mod timeline;
pub mod volume;

pub use bench::Bench;
pub use description::model::{Constant, Model};
pub use description::system::{StackDescription, SystemDescription};
pub use error::{InvalidDescription, SimError};
pub use pending_requests::{Failed, Outcome, PendingRequest};
pub use progress::Progress;
pub use recorder::{Observed, Recorder, Sink};
pub use run::{contained, record, run, run_all, run_contained};
pub use run_spec::{Demand, RunSpec};
