//! [`Waiting`]: a fault that waits for a request before it takes effect.

use headstack_workload::Random;

use super::trigger::Cue;

/// A fault that waits for its condition.
#[derive(Debug)]
pub(super) struct Waiting {
    pub number: u32,
    /// When it stops waiting.
    pub until_ns: u64,
    pub lasts_ns: Option<u64>,
    pub cue: Cue,
    /// Seeds of the random draws each time it takes effect.
    pub seeds: Random,
}

impl Waiting {
    pub fn new(number: u32, cue: Cue, (until_ns, lasts_ns): (u64, Option<u64>), seeds: Random) -> Waiting {
        Waiting { number, until_ns, lasts_ns, cue, seeds }
    }
}
