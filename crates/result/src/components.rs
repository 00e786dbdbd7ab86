//! Results of parts of a system: queue depth, utilization, counters and checks.

use serde::{Deserialize, Serialize};

/// Queue depth: the number of outstanding requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DepthResult {
    /// Time-weighted mean queue depth.
    pub mean: f64,
    /// Maximum queue depth.
    pub max: u32,
    /// Time spent at queue depth 0, 1, 2, ..., in ns.
    pub time_at_depth_ns: Vec<u64>,
}

impl DepthResult {
    /// Computes the mean and maximum from the time spent at each depth; both are 0 if the total time is 0.
    pub fn new(time_at_depth_ns: Vec<u64>) -> Self {
        let (mut total_ns, mut weighted, mut max) = (0u128, 0u128, 0);
        for (depth, &time_ns) in time_at_depth_ns.iter().enumerate() {
            total_ns += u128::from(time_ns);
            weighted += u128::from(time_ns) * depth as u128;
            if time_ns > 0 {
                max = depth as u32;
            }
        }
        let mean = if total_ns == 0 { 0.0 } else { weighted as f64 / total_ns as f64 };
        Self { mean, max, time_at_depth_ns }
    }
}

/// A part of the system: a disk arm, a link, or the processors of a controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Name of the component within the system.
    pub name: String,
    /// Number of servers, which work in parallel: 1, or the number of processors or channels.
    pub servers: u32,
    /// Busy time within the measured time, in ns, summed over all servers.
    pub busy_ns: u64,
    /// Total time that work waited for this component, in ns; 0 if not recorded.
    pub waited_ns: u64,
}

impl Component {
    /// Returns the work done since `before`, a snapshot of the same component at an earlier time.
    #[must_use]
    pub fn since(mut self, before: &Component) -> Component {
        self.busy_ns -= before.busy_ns;
        self.waited_ns -= before.waited_ns;
        self
    }
}

/// Energy and temperature over the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// Energy of all devices together, in J.
    pub joules: f64,
    /// Share of this energy that keeps spindles turning, in J.
    pub spindle_joules: f64,
    /// Share of this energy that moves arms, in J.
    pub seek_joules: f64,
    /// Share of this energy that the electronics use when idle, reading, writing and transferring, in J.
    pub electronics_joules: f64,
    /// Steady-state case temperature of the warmest device, in degrees Celsius; null if its airflow is unknown.
    pub case_celsius: Option<f64>,
}

/// A named count, such as cache hits, destages or parity reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Counter {
    /// Name of the counter.
    pub name: String,
    /// Value of the counter.
    pub value: u64,
}

/// A self-check of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// Whether the check passed.
    pub passed: bool,
    /// The two figures compared, as text.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_averaged_over_time_and_its_maximum_is_one_that_lasted() {
        let depth = |time_at_depth_ns: &[u64]| {
            let DepthResult { mean, max, .. } = DepthResult::new(time_at_depth_ns.to_vec());
            (mean, max)
        };
        assert_eq!(depth(&[1, 1]), (0.5, 1));
        assert_eq!(depth(&[0, 1, 0, 3, 0]), (2.5, 3));
        assert_eq!(depth(&[5]), (0.0, 0));
        assert_eq!((depth(&[]), depth(&[0, 0])), ((0.0, 0), (0.0, 0)));
    }

    #[test]
    fn a_component_worked_the_difference_of_its_counts() {
        let at = |busy_ns, waited_ns| Component { name: "arm".to_owned(), servers: 2, busy_ns, waited_ns };
        assert_eq!(at(70, 9).since(&at(30, 4)), at(40, 5));
    }
}
