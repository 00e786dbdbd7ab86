//! [`RunResult`]: the result of a run, in one versioned schema for simulated, measured and live runs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Check, Component, Counter, DepthResult, Energy, FaultRecord, Fidelity, Integrity, Interval, Kinds,
    LatencyHistogram, Mode, ModelError, OperationResult, SCHEMA_VERSION, Sampling, Stalls, StreamResult, SystemRecord,
    TooShort,
};

/// The result of one run: one system with one workload and one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    /// Version of the schema with which the result was written.
    pub schema: u32,
    /// Version of headstack that wrote the result.
    pub version: String,
    /// Source of the result: simulated, measured or live.
    pub mode: Mode,
    /// The system that was run.
    pub system: SystemRecord,
    /// The workload with all defaults filled in.
    pub workload: Value,
    /// Seed of the random number generator.
    pub seed: u64,
    /// Name of the random number generator.
    pub generator: String,
    /// End of the warm-up, in ns. Requests that completed earlier are not counted.
    pub start_ns: u64,
    /// Measured time after the warm-up, in ns.
    pub duration_ns: u64,
    /// Results by kind of request.
    pub kinds: Kinds,
    /// Results of all kinds over time.
    pub intervals: Vec<Interval>,
    /// Confidence intervals of the steady state. They cover only the sampling error.
    pub sampling: Sampling,
    /// Periods in which a measured device completed nothing, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
    /// Prediction intervals that cover the model's error, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_error: Option<ModelError>,
    /// Queue depth.
    pub depth: DepthResult,
    /// Busy time of each component.
    pub components: Vec<Component>,
    /// Other counters.
    pub counters: Vec<Counter>,
    /// The same requests by stream, if the workload is a scenario.
    pub streams: Vec<StreamResult>,
    /// Operations on files and directories by kind, if the workload has any; their reads and writes are in `kinds` too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationResult>,
    /// Energy and temperature, if the power of the devices is known.
    pub energy: Option<Energy>,
    /// Fidelity of the replay, if the run replayed a trace.
    pub fidelity: Option<Fidelity>,
    /// The data loss, beyond repair by redundancy, that ended the run early.
    pub data_loss: Option<String>,
    /// Injected faults, in order of occurrence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultRecord>,
    /// Reason why the run ended early, such as a stop, a full disk or a vanished device.
    pub ended_early: Option<String>,
    /// Result of data verification, if enabled: whether reads returned what had been written.
    pub integrity: Option<Integrity>,
    /// Offered requests per second; null in a closed loop.
    pub offered_per_s: Option<f64>,
    /// Requests issued later than intended.
    pub late_arrivals: u64,
    /// Requests in flight at the end of the run.
    pub backlog: u64,
    /// Whether the system could not keep up with the offered load.
    pub saturated: bool,
    /// Self-checks of the run.
    pub checks: Vec<Check>,
    /// Notes that may require action, such as on failed requests.
    pub notes: Vec<String>,
    /// Notes that describe how the run was made, such as the length of the warm-up, and require no action.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub method_notes: Vec<String>,
}

impl RunResult {
    /// Creates an empty result with the current schema and version.
    pub fn new(mode: Mode, system: SystemRecord, workload: Value, seed: u64, generator: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode,
            system,
            workload,
            seed,
            generator: generator.into(),
            start_ns: 0,
            duration_ns: 0,
            kinds: Kinds::default(),
            intervals: Vec::new(),
            sampling: Sampling::nothing(TooShort::FewRequests),
            stalls: None,
            model_error: None,
            depth: DepthResult::default(),
            components: Vec::new(),
            counters: Vec::new(),
            streams: Vec::new(),
            operations: Vec::new(),
            energy: None,
            fidelity: None,
            data_loss: None,
            faults: Vec::new(),
            ended_early: None,
            integrity: None,
            offered_per_s: None,
            late_arrivals: 0,
            backlog: 0,
            saturated: false,
            checks: Vec::new(),
            notes: Vec::new(),
            method_notes: Vec::new(),
        }
    }

    /// Renames the streams, given in their order, and merges streams that then have the same name.
    pub fn name_streams(&mut self, names: &[String]) {
        let mut joined: Vec<StreamResult> = Vec::new();
        for (stream, name) in std::mem::take(&mut self.streams).into_iter().zip(names) {
            match joined.iter_mut().find(|existing| existing.name == *name) {
                Some(existing) => existing.kinds.merge(&stream.kinds),
                None => joined.push(StreamResult { name: name.clone(), ..stream }),
            }
        }
        self.streams = joined;
    }

    /// Returns the number of requests that completed without error, over all kinds.
    pub fn count(&self) -> u64 {
        self.kinds.all().iter().map(|(_, kind)| kind.count).sum()
    }

    /// Returns the bytes transferred, over all kinds.
    pub fn bytes(&self) -> u64 {
        self.kinds.all().iter().map(|(_, kind)| kind.bytes).sum()
    }

    /// Returns the number of requests that failed, over all kinds.
    pub fn errors(&self) -> u64 {
        self.kinds.all().iter().map(|(_, kind)| kind.errors).sum()
    }

    /// Returns the latencies of all kinds in one histogram.
    pub fn latency(&self) -> LatencyHistogram {
        let mut latency = LatencyHistogram::new();
        for (_, kind) in self.kinds.all() {
            latency.merge(&kind.latency);
        }
        latency
    }

    /// Returns the completed requests per second; 0 when nothing was measured.
    pub fn throughput_per_s(&self) -> f64 {
        self.share_of_duration(self.count() as f64) * 1e9
    }

    /// Returns the bytes per second; 0 when nothing was measured.
    pub fn throughput_bytes_per_s(&self) -> f64 {
        self.share_of_duration(self.bytes() as f64) * 1e9
    }

    /// Returns the mean latency over all kinds in ns, from exact sums; 0 when nothing completed.
    pub fn mean_latency_ns(&self) -> f64 {
        let (mut sum_ns, mut count) = (0, 0);
        for (_, kind) in self.kinds.all() {
            sum_ns += kind.latency.sum_ns();
            count += kind.latency.count();
        }
        if count == 0 { 0.0 } else { sum_ns as f64 / count as f64 }
    }

    /// Returns a quantile of the latencies over all kinds, in ns; see [`LatencyHistogram::quantile_ns`]. Each call
    /// merges the kinds, so call [`latency`](Self::latency) once if you need several quantiles.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        self.latency().quantile_ns(q)
    }

    /// Returns the latencies of all kinds without the requests that waited through a stall; `None` if there was no
    /// stall.
    pub fn response_without_stalls(&self) -> Option<LatencyHistogram> {
        Some(self.latency().without(&self.stalls.as_ref()?.latency.open()))
    }

    /// Returns the utilization of a component within the measured time, 0 to 1; 0 when nothing was measured.
    pub fn utilization(&self, component: &Component) -> f64 {
        self.share_of_duration(component.busy_ns as f64) / f64::from(component.servers.max(1))
    }

    /// Returns the component with the highest utilization (the first of equals); `None` if no component was busy.
    pub fn bottleneck(&self) -> Option<(&str, f64)> {
        let busy = |component: &&Component| component.busy_ns / u64::from(component.servers.max(1));
        let busiest = self.components.iter().rev().max_by_key(busy)?;
        (busiest.busy_ns > 0).then(|| (busiest.name.as_str(), self.utilization(busiest)))
    }

    /// Returns the mean electric power over the measured time, in W; `None` if it is unknown or nothing was measured.
    pub fn mean_watts(&self) -> Option<f64> {
        let joules = self.energy.as_ref()?.joules;
        (self.duration_ns > 0).then(|| self.share_of_duration(joules) * 1e9)
    }

    /// Returns the energy per completed request, in J; `None` if it is unknown or nothing completed.
    pub fn joules_per_request(&self) -> Option<f64> {
        let joules = self.energy.as_ref()?.joules;
        (self.count() > 0).then(|| joules / self.count() as f64)
    }

    /// Returns the completed requests per second and watt; `None` if the energy is unknown or 0.
    pub fn io_per_watt(&self) -> Option<f64> {
        let joules = self.energy.as_ref()?.joules;
        (joules > 0.0).then(|| self.count() as f64 / joules)
    }

    /// Returns whether every check passed and, in a measurement, every request succeeded.
    pub fn passed(&self) -> bool {
        let is_done = self.mode != Mode::Measured || self.errors() == 0;
        is_done && self.checks.iter().all(|check| check.passed)
    }

    fn share_of_duration(&self, amount: f64) -> f64 {
        if self.duration_ns == 0 { 0.0 } else { amount / self.duration_ns as f64 }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Range, ResultError};

    fn empty() -> RunResult {
        let system = SystemRecord::new("cheetah9lp", "drive", json!({"rpm": 10025, "heads": 12}));
        RunResult::new(Mode::Simulated, system, json!({"queue_depth": 4}), 7, "xoshiro256++")
    }

    /// Returns a result of two seconds: 300 reads of 4 KiB with latencies of 1, 2, ..., 300 us, and 100 writes of 8 KiB
    /// with 1 ms each.
    pub(crate) fn filled() -> RunResult {
        let mut result = empty();
        (result.start_ns, result.duration_ns) = (1_000_000_000, 2_000_000_000);
        for i in 1..=300 {
            result.kinds.read.count += 1;
            result.kinds.read.bytes += 4096;
            result.kinds.read.latency.record(i * 1000);
            result.kinds.read.service.record(i * 900);
        }
        for _ in 0..100 {
            result.kinds.write.count += 1;
            result.kinds.write.bytes += 8192;
            result.kinds.write.latency.record(1_000_000);
        }
        result.kinds.write.errors = 3;
        result.depth = DepthResult::new(vec![500_000_000, 0, 1_500_000_000, 0]);
        let component = |name: &str, busy_ns| Component { name: name.to_owned(), servers: 1, busy_ns, waited_ns: 7 };
        result.components =
            vec![component("link", 50_000_000), component("arm 0", 1_900_000_000), component("arm 1", 1_900_000_000)];
        result.counters = vec![Counter { name: "cache_hits".to_owned(), value: u64::MAX }];
        result.checks = vec![Check { name: "conserved".to_owned(), passed: true, detail: "400 = 400".to_owned() }];
        result.intervals.push(Interval { start_ns: 1, duration_ns: 2, ..Interval::default() });
        result
    }

    #[test]
    fn energy_is_per_request_and_per_second() {
        let mut result = filled();
        assert_eq!((result.mean_watts(), result.joules_per_request(), result.io_per_watt()), (None, None, None));
        result.energy = Some(Energy { joules: 20.0, ..Energy::default() });
        // The result covers two seconds and 400 requests.
        assert_eq!((result.mean_watts(), result.joules_per_request()), (Some(10.0), Some(0.05)));
        assert_eq!(result.io_per_watt(), Some(20.0));
        assert_eq!(RunResult::from_json(&result.to_json().unwrap()).unwrap(), result);
        result.energy = Some(Energy { case_celsius: Some(f64::NAN), ..Energy::default() });
        assert!(matches!(result.to_json(), Err(ResultError::NotFinite { field: "energy.case_celsius", .. })));
    }

    #[test]
    fn a_result_carries_the_prediction_intervals_of_its_model() {
        let mut result = filled();
        assert!(!result.to_json().unwrap().contains("model_error"), "it was not requested");
        let range = Some(Range { low: 0.1, high: 0.3 });
        let model_error = ModelError {
            level: 0.9,
            learnt_from: "9 disks".to_owned(),
            throughput_per_s: range,
            mean_latency_ns: range,
            p50_latency_ns: None,
            p99_latency_ns: None,
        };
        result.model_error = Some(model_error.clone());
        assert_eq!(RunResult::from_json(&result.to_json().unwrap()).unwrap(), result);
        result.model_error =
            Some(ModelError { p99_latency_ns: Some(Range { low: 1.0, high: f64::INFINITY }), ..model_error });
        assert!(matches!(result.to_json(), Err(ResultError::NotFinite { field: "model_error", .. })));
    }

    #[test]
    fn a_replay_reports_its_fidelity() {
        let mut result = filled();
        let fidelity = Fidelity { causality_violations: 3, rate_ratio: Some(0.1), ..Fidelity::default() };
        result.fidelity = Some(fidelity);
        assert_eq!(RunResult::from_json(&result.to_json().unwrap()).unwrap(), result);
        result.fidelity = Some(Fidelity { achieved_per_s: Some(f64::INFINITY), ..Fidelity::default() });
        assert!(matches!(result.to_json(), Err(ResultError::NotFinite { field: "fidelity.achieved_per_s", .. })));
    }

    #[test]
    fn figures_follow_from_the_counts() {
        let result = filled();
        assert_eq!((result.count(), result.errors()), (400, 3));
        assert_eq!(result.bytes(), 300 * 4096 + 100 * 8192);
        assert_eq!(result.throughput_per_s(), 200.0);
        assert_eq!(result.throughput_bytes_per_s(), (300.0 * 4096.0 + 100.0 * 8192.0) / 2.0);
        let sum_ns = 300.0 * 301.0 / 2.0 * 1e3 + 100.0 * 1e6;
        assert_eq!(result.mean_latency_ns(), sum_ns / 400.0);
        assert_eq!(result.latency().count(), 400);
        assert_eq!(result.latency().mean_ns(), result.mean_latency_ns());
        let median = result.quantile_ns(0.5).unwrap();
        assert!(median.abs_diff(200_000) <= 100, "{median}");
        assert_eq!(result.quantile_ns(1.0), Some(1_000_000));
        assert_eq!((result.depth.mean, result.depth.max), (1.5, 2));
        assert_eq!(result.utilization(&result.components[0]), 0.025);
        assert_eq!(result.bottleneck(), Some(("arm 0", 0.95)));
    }

    #[test]
    fn an_empty_result_has_figures_and_none_is_nan() {
        let result = empty();
        assert_eq!((result.throughput_per_s(), result.throughput_bytes_per_s()), (0.0, 0.0));
        assert_eq!((result.mean_latency_ns(), result.quantile_ns(0.5)), (0.0, None));
        assert_eq!(result.utilization(&Component { name: String::new(), servers: 0, busy_ns: 5, waited_ns: 0 }), 0.0);
        assert_eq!((result.bottleneck(), result.depth.mean), (None, 0.0));
        assert!(result.passed());
        assert_eq!(RunResult::from_json(&result.to_json().unwrap()).unwrap(), result);
        let mut idle = filled();
        idle.components.iter_mut().for_each(|component| component.busy_ns = 0);
        assert_eq!(idle.bottleneck(), None);
    }

    #[test]
    fn streams_bear_their_names_and_those_of_one_name_are_one() {
        let mut result = empty();
        let stream = |count| {
            let mut stream = StreamResult::default();
            stream.kinds.read.count = count;
            stream
        };
        result.streams = vec![stream(1), stream(10), stream(100)];
        result.name_streams(&["log".to_owned(), "data".to_owned(), "log".to_owned()]);
        let named: Vec<_> = result.streams.iter().map(|one| (one.name.as_str(), one.kinds.read.count)).collect();
        assert_eq!(named, [("log", 101), ("data", 10)]);
    }

    #[test]
    fn one_failed_check_fails_the_run() {
        let mut result = filled();
        assert!(result.passed());
        result.checks.push(Check { name: "little".to_owned(), passed: false, detail: "4 against 5".to_owned() });
        assert!(!result.passed());
    }

    #[test]
    fn errors_fail_a_measurement_and_not_a_simulation() {
        let mut result = filled();
        assert!(result.errors() > 0 && result.passed(), "simulated faults fail requests on purpose");
        result.mode = Mode::Measured;
        assert!(!result.passed());
        result.kinds.write.errors = 0;
        assert!(result.passed());
    }

    #[test]
    fn figures_of_energy_need_time_requests_and_energy() {
        let mut result = filled();
        result.energy = Some(Energy::default());
        assert_eq!(
            (result.mean_watts(), result.joules_per_request(), result.io_per_watt()),
            (Some(0.0), Some(0.0), None)
        );
        result.energy = Some(Energy { joules: 0.5, ..Energy::default() });
        assert_eq!(result.io_per_watt(), Some(800.0));
        result.duration_ns = 0;
        assert_eq!(result.mean_watts(), None);
        result.duration_ns = 1;
        assert_eq!(result.mean_watts(), Some(5e8));
        let mut result = empty();
        result.energy = Some(Energy { joules: 0.5, ..Energy::default() });
        assert_eq!(result.joules_per_request(), None);
        result.kinds.read.count = 1;
        assert_eq!(result.joules_per_request(), Some(0.5));
    }

    #[test]
    fn the_bottleneck_is_the_busiest_per_server() {
        let mut result = filled();
        let component =
            |name: &str, servers, busy_ns| Component { name: name.to_owned(), servers, busy_ns, waited_ns: 0 };
        result.components = vec![component("cpu", 4, 4_000_000_000), component("arm", 1, 1_500_000_000)];
        assert_eq!(result.bottleneck(), Some(("arm", 0.75)));
        assert_eq!(result.utilization(&result.components[0]), 0.5);
        result.components = vec![component("cpu", 0, 1)];
        assert_eq!(result.bottleneck().map(|(name, _)| name), Some("cpu"));
    }

    #[test]
    fn a_mean_over_kinds_weighs_requests() {
        let mut result = empty();
        result.kinds.read.latency.record(10);
        assert_eq!(result.mean_latency_ns(), 10.0);
        result.kinds.flush.latency.record(40);
        result.kinds.flush.latency.record(40);
        assert_eq!(result.mean_latency_ns(), 30.0);
        assert!(result.response_without_stalls().is_none());
    }
}
