//! How true a live session was to its model: what was counted and witnessed, and what is said of it.

use serde::Serialize;

use crate::ledger::Path;
use crate::verdict::judge;
use crate::witness::Seen;

/// What a session measured of itself.
#[derive(Clone, Debug, Serialize)]
pub struct Fidelity {
    /// What the path to the clock and back was like.
    #[serde(flatten)]
    pub path: Path,
    /// Who else was there.
    #[serde(flatten)]
    pub seen: Seen,
    /// What clients measured beyond the model, at p99 and in the mean, is at most so much, in nanoseconds of the wall;
    /// `None` where that cannot be said.
    pub error_ns: Option<u64>,
    /// Latencies of the model from which on the session is valid, in nanoseconds of the model; `None` where it is not.
    pub valid_above_ns: Option<u64>,
    /// The verdict in words.
    pub verdict: String,
}

impl Fidelity {
    /// What is to be said of what was measured and witnessed.
    pub fn new(path: Path, seen: Seen) -> Fidelity {
        let verdict = judge(&path, &seen);
        let (error_ns, valid_above_ns) = (verdict.error_ns, verdict.valid_above_ns);
        Fidelity { path, seen, error_ns, valid_above_ns, verdict: verdict.words }
    }
}
