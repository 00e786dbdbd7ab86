//! [`End`]: the condition that ends a run.

use headstack_result::Measuring;
use headstack_workload::RunLength;
use headstack_workload::scenario::ScenarioLength;

/// Limits on the measured part of a run. The run ends at the first limit reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    /// Number of requests that completed or failed.
    pub requests: u64,
    /// Time in ns.
    pub time_ns: u64,
    /// Precision of the mean latency, in percent.
    pub confidence_percent: Option<f64>,
}

impl End {
    /// No limit: only an outside event ends the run.
    pub const NEVER: End = End { requests: u64::MAX, time_ns: u64::MAX, confidence_percent: None };

    /// Whether the measured part has reached its number of requests or its precision, after `ended` completed or failed
    /// requests. The caller keeps the clock and checks the time limit.
    #[inline]
    pub fn is_reached(&self, measuring: &Measuring, ended: u64) -> bool {
        ended >= self.requests || self.confidence_percent.is_some_and(|percent| measuring.is_known_within(percent))
    }

    /// Returns the share of the run that is done at `now_ns`: 0 at the start, above 1 if the run is late.
    pub fn share_done(&self, measuring: &Measuring, now_ns: u64) -> f64 {
        let time = (now_ns - measuring.start_ns) as f64 / self.time_ns as f64;
        time.max(measuring.completed as f64 / self.requests as f64)
    }
}

impl From<RunLength> for End {
    fn from(length: RunLength) -> End {
        match length {
            RunLength::Requests(requests) => End { requests, ..End::NEVER },
            RunLength::TimeNs(time_ns) => End { time_ns, ..End::NEVER },
            RunLength::Confidence { percent, max_requests } => {
                End { requests: max_requests, confidence_percent: Some(percent), ..End::NEVER }
            }
        }
    }
}

impl From<ScenarioLength> for End {
    fn from(length: ScenarioLength) -> End {
        match length {
            ScenarioLength::Requests(requests) => End { requests, ..End::NEVER },
            ScenarioLength::TimeNs(time_ns) => End { time_ns, ..End::NEVER },
            ScenarioLength::AllDone => End::NEVER,
        }
    }
}
