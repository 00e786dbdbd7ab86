//! [`Fidelity`]: how closely a live session followed its model, from counters and observations.

use serde::Serialize;

use crate::ledger::Path;
use crate::verdict::judge;
use crate::witness::Observations;

/// Accuracy of a session as measured by the server.
#[derive(Clone, Debug, Serialize)]
pub struct Fidelity {
    /// Statistics of the path to the clock and back.
    #[serde(flatten)]
    pub path: Path,
    /// Observations of the clients and the scheduler.
    #[serde(flatten)]
    pub seen: Observations,
    /// Upper bound of the excess of client-measured latency over the model, at p99 and in the mean, in ns of wall-clock
    /// time; `None` if undecided.
    pub error_ns: Option<u64>,
    /// Smallest model latency for which the session is valid, in ns of model time; `None` if the session is not valid.
    pub valid_above_ns: Option<u64>,
    /// Verdict as a sentence.
    pub verdict: String,
}

impl Fidelity {
    /// Computes the verdict from statistics and observations.
    pub fn new(path: Path, seen: Observations) -> Fidelity {
        let verdict = judge(&path, &seen);
        let (error_ns, valid_above_ns) = (verdict.error_ns, verdict.valid_above_ns);
        Fidelity { path, seen, error_ns, valid_above_ns, verdict: verdict.words }
    }
}
