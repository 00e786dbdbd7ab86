//! End of a run.

use headstack_result::Measuring;
use headstack_workload::RunLength;
use headstack_workload::scenario::ScenarioLength;

/// How long the measured part of a run lasts: until the first of these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    /// Requests that completed or failed.
    pub requests: u64,
    /// Nanoseconds.
    pub time_ns: u64,
    /// The mean response time is known within this many percent.
    pub confidence_percent: Option<f64>,
}

impl End {
    /// The end of a run that only an outside event ends.
    pub const NEVER: End = End { requests: u64::MAX, time_ns: u64::MAX, confidence_percent: None };

    /// Whether the measured part has ended after `ended` requests that completed or failed. The end of its time is for
    /// the caller to detect, who has the clock.
    #[inline]
    pub fn is_reached(&self, measuring: &Measuring, ended: u64) -> bool {
        ended >= self.requests || self.confidence_percent.is_some_and(|percent| measuring.is_known_within(percent))
    }

    /// Share of the measured part that is done at `now_ns`, from 0; above 1 if it is late.
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
