//! Virtual time: drives, arrays, and what puts them under load. No I/O, no wall clock.

pub mod adapter;
pub mod array;
mod bench;
pub mod chronicle;
pub mod device;
pub mod disk;
pub mod drive;
mod faulted;
pub mod faults;
mod flights;
pub mod gauges;
mod host;
mod in_service;
mod kept;
pub mod link;
pub mod media_defects;
mod model;
pub mod power;
pub mod power_cut;
mod recorder;
pub mod replay;
mod rig;
mod run;
mod scenario;
mod snapshot;
mod spans;
pub mod ssd;
pub mod system;
pub mod timeline;
pub mod volume;

pub use bench::Bench;
pub use flights::{Failed, Flight, Outcome};
pub use model::{Constant, Model};
pub use recorder::{Observed, Recorder, Sink};
pub use rig::Progress;
pub use run::{Demand, RunSpec, contained, record, run, run_all, run_contained};
pub use system::SystemDescription;

/// What can be wrong with a simulation that was asked for.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The drive cannot exist.
    #[error("{0}")]
    Drive(#[from] drive::InvalidDescription),
    /// The workload cannot be produced.
    #[error("{0}")]
    Workload(#[from] headstack_workload::WorkloadError),
    /// The range of the run does not lie on the system.
    #[error("range: {0}")]
    Range(String),
    /// A recording, or one of its requests, cannot be replayed.
    #[error("{0}")]
    Replay(#[from] headstack_replay::ReplayError),
    /// A fault cannot strike the system.
    #[error("{0}")]
    Fault(String),
    /// The run was stopped from outside.
    #[error("stopped")]
    Stopped,
    /// The simulator broke one of its own rules.
    #[error("a bug of the simulator: {0}")]
    Panicked(String),
}
