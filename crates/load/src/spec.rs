//! [`Spec`]: the definition of a measurement.

use std::sync::Arc;

use headstack_result::SystemRecord;
use serde_json::Value;

use crate::job::Job;
use crate::verification::Verification;

/// Definition of a measurement.
#[derive(Clone)]
pub struct Spec {
    /// Description of the target for results.
    pub system: SystemRecord,
    /// Description of the workload for results.
    pub workload: Value,
    /// The jobs, which run concurrently.
    pub jobs: Vec<Job>,
    /// Seed of the run.
    pub seed: u64,
    /// Length of the intervals of the time series, in ns.
    pub interval_ns: Option<u64>,
    /// Whether the whole run ends when the first job ends.
    pub ends_with_first: bool,
    /// Whether results contain a stream per job even if there is only one job.
    pub tells_streams: bool,
    /// Expected data of the targets. Without it, a run whose jobs verify has ledgers in memory.
    pub verification: Option<Arc<Verification>>,
}
