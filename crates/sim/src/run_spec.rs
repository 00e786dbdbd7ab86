//! [`RunSpec`]: the specification of a [`run`](crate::run()): a system, its workload or scenario, a seed and faults.

use headstack_workload::scenario::Scenario;
use headstack_workload::{Span, Workload};

use crate::description::system::SystemDescription;
use crate::faults::Schedule;

/// The specification of one run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The system's name, for people.
    pub system_name: String,
    /// The system.
    pub system: SystemDescription,
    /// The load on the system.
    pub demand: Demand,
    /// The part of the system that the workload uses; by default the whole.
    pub span: Option<Span>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Length of the intervals that results are also kept for.
    pub interval_ns: Option<u64>,
    /// Requests of the same kind that caches and flash have seen before the run begins, in no time: hours of use that
    /// need not be simulated. A write-back cache is as dirty then as it stays under the load.
    pub preload: u64,
    /// The faults to inject, and when: from the start of the run, including its warm-up.
    pub faults: Option<Schedule>,
}

/// The load on a system.
#[allow(clippy::large_enum_variant)] // One a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// One access specification, in a closed or an open loop.
    Workload(Workload),
    /// Clients of several kinds at once.
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
