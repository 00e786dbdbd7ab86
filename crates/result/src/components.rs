//! Results of the parts of a system: queue depth, utilization, counters and checks.

use serde::{Deserialize, Serialize};

/// How many requests were outstanding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DepthResult {
    /// Time average.
    pub mean: f64,
    /// The most at any moment.
    pub max: u32,
    /// Time spent at depth 0, 1, 2, ...
    pub time_at_depth_ns: Vec<u64>,
}

impl DepthResult {
    /// Computes mean and maximum from the time spent at each depth; all zero if no time was spent at all.
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

/// A part of the system: an arm, a link, the processors of a controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Its name within the system.
    pub name: String,
    /// Things that it serves at once: 1, or the number of processors or channels.
    pub servers: u32,
    /// How long it was busy within the measured time, all servers together.
    pub busy_ns: u64,
    /// Total time that work waited for it; 0 if not recorded.
    pub waited_ns: u64,
}

impl Component {
    /// Returns its work since `before`, which is the same component at an earlier moment.
    #[must_use]
    pub fn since(mut self, before: &Component) -> Component {
        self.busy_ns -= before.busy_ns;
        self.waited_ns -= before.waited_ns;
        self
    }
}

/// Electricity and heat over the measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// All devices together.
    pub joules: f64,
    /// The part of this energy that keeps spindles turning.
    pub spindle_joules: f64,
    /// Moving arms.
    pub seek_joules: f64,
    /// Electronics: idle, and reading, writing and transferring.
    pub electronics_joules: f64,
    /// Case temperature of the warmest device in a steady state, in degrees Celsius, where its airflow is known.
    pub case_celsius: Option<f64>,
}

/// Something counted: cache hits, destages, parity reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Counter {
    /// Name of the count.
    pub name: String,
    /// How often.
    pub value: u64,
}

/// A check that the run made of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Name of the check.
    pub name: String,
    /// Whether it held.
    pub passed: bool,
    /// The figures on both sides.
    pub detail: String,
}
