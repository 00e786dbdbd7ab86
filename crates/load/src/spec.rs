//! A measurement as somebody asks for it.

use std::sync::Arc;

use headstack_result::SystemRecord;
use serde_json::Value;

use crate::job::Job;
use crate::verification::Verification;

/// The job to measure.
#[derive(Clone)]
pub struct Spec {
    /// The target, as results tell of it.
    pub system: SystemRecord,
    /// The workload, as results tell of it.
    pub workload: Value,
    /// At the same time.
    pub jobs: Vec<Job>,
    /// Seed of the run.
    pub seed: u64,
    /// Length of the intervals that results are also kept for.
    pub interval_ns: Option<u64>,
    /// Whether the first job that ends ends all of them.
    pub ends_with_first: bool,
    /// Whether results tell of each job also where there is one alone.
    pub tells_streams: bool,
    /// What is known of the data on the targets; where jobs verify and this is absent, the run has ledgers in memory.
    pub verification: Option<Arc<Verification>>,
}
