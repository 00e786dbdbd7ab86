//! [`Waiting`]: a fault that waits for a request before it takes effect.

use headstack_workload::Random;

use super::trigger::Cue;

/// A fault that waits for its condition.
#[derive(Debug)]
pub(super) struct Waiting {
    pub number: u32,
    /// Time at which the fault stops waiting, in ns.
    pub until_ns: u64,
    pub lasts_ns: Option<u64>,
    pub cue: Cue,
    /// Source of the seed for each time the fault takes effect.
    pub seeds: Random,
}

impl Waiting {
    pub fn new(number: u32, cue: Cue, (until_ns, lasts_ns): (u64, Option<u64>), seeds: Random) -> Waiting {
        Waiting { number, until_ns, lasts_ns, cue, seeds }
    }
}
