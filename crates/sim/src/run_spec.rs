//! [`RunSpec`]: the input of [`run`](crate::run()): a system, its workload or scenario, a seed, and faults.

use headstack_workload::scenario::Scenario;
use headstack_workload::{Span, Workload};

use crate::description::system::SystemDescription;
use crate::faults::Schedule;

/// Specification of a run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The system's name, for display.
    pub system_name: String,
    /// Description of the system.
    pub system: SystemDescription,
    /// The load on the system.
    pub demand: Demand,
    /// Range of the system that the workload uses; `None` for the whole system.
    pub span: Option<Span>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Length of the intervals for interval results, in ns; `None` for none.
    pub interval_ns: Option<u64>,
    /// Number of requests of the same kind that warm caches and flash before the run, in zero time, as hours of use
    /// would. A write-back cache is then brought to the dirty share that it keeps under this load.
    pub preload: u64,
    /// Faults with times relative to the start of the run, including warm-up.
    pub faults: Option<Schedule>,
}

/// Load on a system.
#[allow(clippy::large_enum_variant)] // There is one per run.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// A workload in a closed or open loop.
    Workload(Workload),
    /// A scenario with several kinds of clients.
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
