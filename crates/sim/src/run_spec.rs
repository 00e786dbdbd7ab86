//! [`RunSpec`]: the input of [`run`](crate::run()): a system, the workload or scenario on it, a seed and faults.

use headstack_workload::scenario::Scenario;
use headstack_workload::{Span, Workload};

use crate::description::system::SystemDescription;
use crate::faults::Schedule;

/// A run of a system.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The system's name, for display.
    pub system_name: String,
    /// The system.
    pub system: SystemDescription,
    /// The load on the system.
    pub demand: Demand,
    /// The part of the system that the workload touches; `None` for the whole.
    pub span: Option<Span>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Length of the intervals for which results are also kept, if any.
    pub interval_ns: Option<u64>,
    /// Number of past requests of the same kind that warm caches and flash before the run, in no time: hours of use
    /// that need not be simulated. A write-back cache is then as dirty as it stays under the load.
    pub preload: u64,
    /// Faults and their times, from the start of the run on, warm-up included.
    pub faults: Option<Schedule>,
}

/// Load on a system.
#[allow(clippy::large_enum_variant)] // One a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// An access specification, in a closed or an open loop.
    Workload(Workload),
    /// Several kinds of clients at once.
    Scenario(Scenario),
}

impl From<Workload> for Demand {
    fn from(workload: Workload) -> Demand {
        Demand::Workload(workload)
    }
}

impl From<Scenario> for Demand {
    fn from(scenario: Scenario) -> Demand {
        Demand::Scenario(scenario)
    }
}
