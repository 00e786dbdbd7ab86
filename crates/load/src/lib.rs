//! Measurements in real time: workloads on files and block devices.
//!
//! A [`Target`] is opened with a [`Permission`]. [`run`] runs every [`Job`] in its own thread. Each thread has a
//! `LoadLoop`, which submits requests to an engine and records completions, and a loop that decides when to issue the
//! next request: the loop in `worker`, the loop of [`replay`], which reads a trace, or that of [`play_scenario`], which
//! polls the clients of a scenario. [`play_phase`] runs a phase of a job file. See docs/design/measuring.md.

mod buffers;
mod clock;
mod conditioning;
mod engine;
mod error;
mod error_log;
mod flow;
mod hosts;
pub mod integrity;
mod job;
mod load_loop;
mod log;
mod measured;
mod nbd;
mod newer_calls;
mod nvme;
mod phase;
mod probe;
mod progress;
mod queue;
mod recognise;
mod replay;
mod run;
mod samples;
mod scenario;
mod sharing;
mod spec;
mod stamping;
mod synchronized_start;
mod target;
mod target_map;
mod threads;
pub mod trees;
mod usage;
mod verification;
mod verify;
mod virtual_time;
mod waker;
mod watch;
mod worker;
mod zones;

pub use clock::Time;
pub use conditioning::{CLASS_LIMITS_NS, DeviceShare, Pass, Passed, Stretch, stream};
pub use engine::EngineKind;
pub use error::LoadError;
pub use flow::{Flow, Member};
pub use hosts::{AllHosts, HostRun, Missing};
pub use job::{Job, JobEnd};
pub use log::{Log, Logged};
pub use phase::{PhaseSpec, play_phase};
pub use probe::probe;
pub use progress::Progress;
pub use replay::{Observed, ReplaySpec, Sink, Writes, replay};
pub use run::{run, run_logged};
pub use scenario::{ScenarioSpec, play_scenario};
pub use spec::Spec;
pub use synchronized_start::{StartBarrier, begin_together, clock_ns};
pub use target::{FailureScope, Permission, Target, TargetKind, WRITING_STOPPED, files_below};
pub use target_map::TargetMap;
pub use verification::{LedgerPlace, Verification};
pub use verify::{VerifySpec, verify};
