//! [`Fidelity`]: how closely a live session followed its model, from counters and observations.

use serde::Serialize;

use crate::ledger::Path;
use crate::verdict::judge;
use crate::witness::Observations;

/// Accuracy of a session as measured by itself.
#[derive(Clone, Debug, Serialize)]
pub struct Fidelity {
    /// Statistics of the path to the clock and back.
    #[serde(flatten)]
    pub path: Path,
    /// Observations of clients and scheduler.
    #[serde(flatten)]
    pub seen: Observations,
    /// Upper bound of the latency that clients measured in excess of the model, at p99 and in the mean, in nanoseconds
    /// of wall-clock time; `None` if undecided.
    pub error_ns: Option<u64>,
    /// Smallest latency of the model from which the session is valid, in nanoseconds of model time; `None` if it is
    /// not.
    pub valid_above_ns: Option<u64>,
    /// The verdict in words.
    pub verdict: String,
}

impl Fidelity {
    /// Evaluates statistics and observations.
    pub fn new(path: Path, seen: Observations) -> Fidelity {
        let verdict = judge(&path, &seen);
        let (error_ns, valid_above_ns) = (verdict.error_ns, verdict.valid_above_ns);
        Fidelity { path, seen, error_ns, valid_above_ns, verdict: verdict.words }
    }
}
