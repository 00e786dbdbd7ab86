//! Columns of the result tables: name, unit, meaning, and how to compute them from a result. docs/columns.md is
//! generated from them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::columns::{Column, count, figure, flag, text};
use crate::{
    CurvePoint, Estimate, Fact, Fidelity, Interval, LatencyHistogram, Mode, ModelError, OperationResult, Range,
    RunResult, StreamResult,
};

/// Nanoseconds in a millisecond.
pub const NS_PER_MS: f64 = 1e6;
const BYTES_PER_MB: f64 = 1e6;
const BYTES_PER_GB: f64 = 1e9;

/// Settings of a run that its result does not contain.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct RunSettings {
    /// Labels that distinguish this run from the others of a sweep.
    pub labels: Vec<(String, String)>,
    /// Requested number of clients of a scenario, if any.
    pub clients: Option<u64>,
    /// Bytes of a simulated system that the run may use: its whole capacity or a part.
    pub capacity_bytes: Option<u64>,
}

/// A run in the table of results: its settings, its result, and the latencies of all kinds together.
pub struct Row {
    /// The settings of the run.
    pub asked: RunSettings,
    /// The result of the run.
    pub result: RunResult,
    /// The latencies of all kinds of request.
    pub latency: LatencyHistogram,
}

impl Row {
    /// Creates the row of a result.
    pub fn new(asked: RunSettings, result: RunResult) -> Row {
        Row { asked, latency: result.latency(), result }
    }

    /// Returns the settings of the run.
    pub fn settings(&self) -> &RunSettings {
        &self.asked
    }

    /// Returns the settings without the result.
    pub fn into_settings(self) -> RunSettings {
        self.asked
    }

    /// Returns clones of the settings and the result, for other collections of results.
    pub fn into_parts(&self) -> (RunSettings, RunResult) {
        (self.asked.clone(), self.result.clone())
    }

    /// Returns a quantile of the latencies, in ms.
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        self.latency.quantile_ns(q).map(|ns| ns as f64 / NS_PER_MS)
    }

    /// Returns a quantile without the requests that waited through a stall, in ms; `None` if there was no stall.
    fn calm_ms(&self, q: f64) -> Option<f64> {
        Some(self.result.response_without_stalls()?.quantile_ns(q)? as f64 / NS_PER_MS)
    }

    fn percentile(&self, percent: f64) -> Option<&Estimate> {
        let percentiles = &self.result.sampling.percentiles;
        percentiles.iter().find(|percentile| percentile.percent == percent).map(|percentile| &percentile.value)
    }

    fn counter(&self, name: &str) -> Option<u64> {
        let counter = self.result.counters.iter().find(|counter| counter.name == name)?;
        Some(counter.value)
    }

    fn workload(&self, pointer: &str) -> Option<&Value> {
        self.result.workload.pointer(pointer)
    }

    /// Returns the offered load: queue depth (closed loop), clients (scenario), or IOPS (open loop).
    fn load(&self) -> f64 {
        self.result.offered_per_s.unwrap_or_else(|| self.depth().unwrap_or(0) as f64)
    }

    fn depth(&self) -> Option<u64> {
        let queue_depth = || self.workload("/arrivals/closed/queue_depth")?.as_u64();
        let replayed = || self.workload("/mode/asap/depth")?.as_u64();
        self.asked.clients.or_else(queue_depth).or_else(replayed)
    }

    /// Returns the mode of a replay, which is stored as a string or as the name of an object.
    fn mode(&self) -> Option<String> {
        match self.workload("/mode")? {
            Value::String(mode) => Some(mode.clone()),
            Value::Object(mode) => mode.keys().next().cloned(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
        }
    }

    /// Returns the bounds of the prediction interval of a figure.
    fn model(&self, figure: impl Fn(&ModelError) -> Option<Range>) -> Option<Range> {
        figure(self.result.model_error.as_ref()?)
    }

    fn fidelity<T>(&self, figure: impl Fn(&Fidelity) -> T) -> Option<T> {
        self.result.fidelity.as_ref().map(figure)
    }

    /// Returns the run's point on a saturation curve.
    pub fn curve_point(&self) -> CurvePoint {
        CurvePoint {
            load: self.load(),
            throughput_per_s: self.result.throughput_per_s(),
            response_ns: self.result.mean_latency_ns(),
        }
    }
}

fn low_ms(estimate: &Estimate) -> Option<f64> {
    estimate.between_ns().map(|(low_ns, _)| low_ns / NS_PER_MS)
}

fn high_ms(estimate: &Estimate) -> Option<f64> {
    estimate.between_ns().map(|(_, high_ns)| high_ns / NS_PER_MS)
}

/// Returns the reason why there is no confidence interval, as text.
fn too_short(estimate: &Estimate) -> Option<String> {
    match estimate {
        Estimate::Between { .. } => None,
        Estimate::TooShort(why) => Some(why.describe()),
    }
}

/// Columns of the table of runs. Throughput and times cover all kinds of request together.
pub static RUN_COLUMNS: &[Column<Row>] = &[
    text("system", "", "the system: its name in the catalogue, its file, or the target, with its range", |row| {
        Some(row.result.system.name.clone())
    }),
    text("workload", "", "the workload or scenario, or the trace of a replay", |row| {
        Some(row.workload("/name")?.as_str()?.to_owned())
    }),
    figure("capacity_gb", "10^9 bytes", "the part of a simulated system that the run uses", |row| {
        Some(row.asked.capacity_bytes? as f64 / BYTES_PER_GB)
    }),
    count("depth", "requests", "queue depth of a closed loop; clients of a scenario", Row::depth),
    figure("rate_per_s", "1/s", "offered requests per second; empty in a closed loop", |row| row.result.offered_per_s),
    count("seed", "", "seed of the random numbers", |row| Some(row.result.seed)),
    count("requests", "requests", "requests that completed without error in the measured time", |row| {
        Some(row.result.count())
    }),
    figure("iops", "1/s", "completed requests per second (IOPS)", |row| Some(row.result.throughput_per_s())),
    figure("mb_per_s", "10^6 bytes/s", "bytes transferred per second", |row| {
        Some(row.result.throughput_bytes_per_s() / BYTES_PER_MB)
    }),
    figure("mean_ms", "ms", "mean response time", |row| Some(row.result.mean_latency_ns() / NS_PER_MS)),
    figure("half_width_ms", "ms", "half-width of the 95 % confidence interval of the mean", |row| {
        row.result.sampling.mean.half_width_ns().map(|ns| ns / NS_PER_MS)
    }),
    figure("mean_low_ms", "ms", "lower bound of the confidence interval of the mean", |row| {
        low_ms(&row.result.sampling.mean)
    }),
    figure("mean_high_ms", "ms", "upper bound of the confidence interval of the mean", |row| {
        high_ms(&row.result.sampling.mean)
    }),
    text("sampling", "", "why the mean has no confidence interval", |row| too_short(&row.result.sampling.mean)),
    text("sampling_code", "", "code of this reason, for example `few_requests`", |row| {
        match row.result.sampling.mean {
            Estimate::Between { .. } => None,
            Estimate::TooShort(why) => Some(why.code()),
        }
    }),
    count("warm_up_requests", "requests", "measured requests that still belonged to the warm-up", |row| {
        Some(row.result.sampling.warm_up_requests)
    }),
    figure("p50_ms", "ms", "median of the response times", |row| row.quantile_ms(0.5)),
    figure("p50_low_ms", "ms", "lower bound of the confidence interval of the median", |row| {
        low_ms(row.percentile(50.0)?)
    }),
    figure("p50_high_ms", "ms", "upper bound of the confidence interval of the median", |row| {
        high_ms(row.percentile(50.0)?)
    }),
    figure("p90_ms", "ms", "90th percentile of the response times", |row| row.quantile_ms(0.9)),
    figure("p90_low_ms", "ms", "lower bound of the confidence interval of the 90th percentile", |row| {
        low_ms(row.percentile(90.0)?)
    }),
    figure("p90_high_ms", "ms", "upper bound of the confidence interval of the 90th percentile", |row| {
        high_ms(row.percentile(90.0)?)
    }),
    figure("p95_ms", "ms", "95th percentile of the response times", |row| row.quantile_ms(0.95)),
    figure("p95_low_ms", "ms", "lower bound of the confidence interval of the 95th percentile", |row| {
        low_ms(row.percentile(95.0)?)
    }),
    figure("p95_high_ms", "ms", "upper bound of the confidence interval of the 95th percentile", |row| {
        high_ms(row.percentile(95.0)?)
    }),
    figure("p99_ms", "ms", "99th percentile of the response times", |row| row.quantile_ms(0.99)),
    figure("p99_low_ms", "ms", "lower bound of the confidence interval of the 99th percentile", |row| {
        low_ms(row.percentile(99.0)?)
    }),
    figure("p99_high_ms", "ms", "upper bound of the confidence interval of the 99th percentile", |row| {
        high_ms(row.percentile(99.0)?)
    }),
    figure("p999_ms", "ms", "99.9th percentile of the response times", |row| row.quantile_ms(0.999)),
    figure("p999_low_ms", "ms", "lower bound of the confidence interval of the 99.9th percentile", |row| {
        low_ms(row.percentile(99.9)?)
    }),
    figure("p999_high_ms", "ms", "upper bound of the confidence interval of the 99.9th percentile", |row| {
        high_ms(row.percentile(99.9)?)
    }),
    figure("max_ms", "ms", "longest response time", |row| Some(row.latency.max_ns() as f64 / NS_PER_MS)),
    count("stalls", "", "stalls of a measured device: 0.1 s or more without a completion, 64 at most", |row| {
        (row.result.mode == Mode::Measured)
            .then(|| row.result.stalls.as_ref().map_or(0, |stalls| stalls.longest.len() as u64))
    }),
    figure("stalled_s", "s", "total time of the stalls", |row| {
        Some(row.result.stalls.as_ref()?.total_ns() as f64 / 1e9)
    }),
    figure("mean_calm_ms", "ms", "mean response time without the requests delayed by a stall", |row| {
        Some(row.result.response_without_stalls()?.mean_ns() / NS_PER_MS)
    }),
    figure("p99_calm_ms", "ms", "99th percentile without the requests delayed by a stall", |row| row.calm_ms(0.99)),
    figure("p999_calm_ms", "ms", "99.9th percentile without the requests delayed by a stall", |row| row.calm_ms(0.999)),
    figure("iops_model_low", "1/s", "lower bound of the prediction interval of the device's rate", |row| {
        Some(row.model(|model| model.throughput_per_s)?.low)
    }),
    figure("iops_model_high", "1/s", "upper bound of this interval", |row| {
        Some(row.model(|model| model.throughput_per_s)?.high)
    }),
    figure(
        "mean_model_low_ms",
        "ms",
        "lower bound of the prediction interval of the device's mean response time",
        |row| Some(row.model(|model| model.mean_latency_ns)?.low / NS_PER_MS),
    ),
    figure("mean_model_high_ms", "ms", "upper bound of this interval", |row| {
        Some(row.model(|model| model.mean_latency_ns)?.high / NS_PER_MS)
    }),
    figure("p50_model_low_ms", "ms", "lower bound of the prediction interval of the device's median", |row| {
        Some(row.model(|model| model.p50_latency_ns)?.low / NS_PER_MS)
    }),
    figure("p50_model_high_ms", "ms", "upper bound of this interval", |row| {
        Some(row.model(|model| model.p50_latency_ns)?.high / NS_PER_MS)
    }),
    figure("p99_model_low_ms", "ms", "lower bound of the prediction interval of the device's 99th percentile", |row| {
        Some(row.model(|model| model.p99_latency_ns)?.low / NS_PER_MS)
    }),
    figure("p99_model_high_ms", "ms", "upper bound of this interval", |row| {
        Some(row.model(|model| model.p99_latency_ns)?.high / NS_PER_MS)
    }),
    figure("model_level", "", "share of devices within these prediction intervals, 0 to 1", |row| {
        let model = row.result.model_error.as_ref()?;
        model.has_ranges().then_some(model.level)
    }),
    text("model_error", "", "the devices that the prediction interval was learned from, or why there is none", |row| {
        Some(row.result.model_error.as_ref()?.learnt_from.clone())
    }),
    figure("mean_depth", "requests", "mean queue depth over time", |row| Some(row.result.depth.mean)),
    figure("utilization_percent", "%", "utilization of the busiest component", |row| {
        Some(100.0 * row.result.bottleneck()?.1)
    }),
    text("bottleneck", "", "the busiest component", |row| Some(row.result.bottleneck()?.0.to_owned())),
    figure("watts", "W", "mean electric power of all devices", |row| row.result.mean_watts()),
    figure("joules_per_request", "J", "energy per completed request", |row| row.result.joules_per_request()),
    figure("io_per_s_per_watt", "1/(s W)", "requests per second per watt", |row| row.result.io_per_watt()),
    figure("case_celsius", "degrees C", "case temperature of the warmest device in a steady state", |row| {
        row.result.energy.as_ref()?.case_celsius
    }),
    count("read_hits", "requests", "reads served fully from a cache", |row| row.counter("read_hits")),
    count("read_partial_hits", "requests", "reads served partly from a cache", |row| row.counter("read_partial_hits")),
    count("cached_writes", "requests", "writes absorbed by a cache", |row| row.counter("cached_writes")),
    count("late_arrivals", "requests", "requests issued later than intended", |row| Some(row.result.late_arrivals)),
    count("backlog", "requests", "requests in flight at the end", |row| Some(row.result.backlog)),
    flag("saturated", "", "whether the system could not keep up with the offered load", |row| {
        Some(row.result.saturated)
    }),
    flag("checks_passed", "", "whether the self-checks of the run passed", |row| Some(row.result.passed())),
    count("errors", "requests", "requests that failed", |row| Some(row.result.errors())),
    text("data_loss", "", "the data loss that ended the run", |row| row.result.data_loss.clone()),
    text("ended_early", "", "reason for an early end of a measurement", |row| row.result.ended_early.clone()),
    figure("duration_s", "s", "the measured time, after the warm-up", |row| Some(row.result.duration_ns as f64 / 1e9)),
    text("mode", "", "mode of a replay", Row::mode),
    figure("lateness_p50_ms", "ms", "median lateness of a replay's requests", |row| {
        row.fidelity(|replay| replay.lateness_p50_ns as f64 / NS_PER_MS)
    }),
    figure("lateness_p99_ms", "ms", "99th percentile of the lateness of a replay's requests", |row| {
        row.fidelity(|replay| replay.lateness_p99_ns as f64 / NS_PER_MS)
    }),
    figure("lateness_max_ms", "ms", "largest lateness of a replay's requests", |row| {
        row.fidelity(|replay| replay.lateness_max_ns as f64 / NS_PER_MS)
    }),
    figure("recorded_per_s", "1/s", "arrivals per second in the trace", |row| {
        row.result.fidelity.as_ref()?.recorded_per_s
    }),
    figure("rate_ratio", "", "replayed rate divided by the recorded rate, at the time scale of the replay", |row| {
        row.result.fidelity.as_ref()?.rate_ratio
    }),
    figure("recorded_depth_mean", "requests", "mean queue depth in the trace", |row| {
        row.result.fidelity.as_ref()?.recorded_depth_mean
    }),
    figure("achieved_depth_mean", "requests", "mean queue depth in the replay", |row| {
        row.result.fidelity.as_ref().map(|_| row.result.depth.mean)
    }),
    count("causality_violations", "requests", "requests issued before one that they depended on in the trace", |row| {
        row.fidelity(|replay| replay.causality_violations)
    }),
    count("reordered", "requests", "requests issued after one that had arrived later", |row| {
        row.fidelity(|replay| replay.reordered)
    }),
    count("folded", "requests", "requests outside the system that were moved onto it", |row| {
        row.fidelity(|replay| replay.folded)
    }),
    count("dropped", "requests", "requests outside the system that were dropped", |row| {
        row.fidelity(|replay| replay.dropped)
    }),
    count("rounded", "requests", "requests widened to whole blocks", |row| row.fidelity(|replay| replay.rounded)),
    count("without_completion", "requests", "requests without a recorded completion", |row| {
        row.fidelity(|replay| replay.without_completion)
    }),
    text("description_hash", "", "content hash of the system's description", |row| {
        Some(row.result.system.hash.clone())
    }),
    text("generator", "", "the random number generator", |row| Some(row.result.generator.clone())),
    text("version", "", "version of headstack", |row| Some(row.result.version.clone())),
];

/// A bin of a histogram.
pub struct Bin {
    /// Index of the run, from 0.
    pub run: u64,
    /// Name of the system.
    pub system: String,
    /// Kind of request.
    pub kind: &'static str,
    /// `latency` or `service`.
    pub figure: &'static str,
    /// Middle of the bin, in ns.
    pub middle_ns: u64,
    /// Number of requests in the bin.
    pub count: u64,
}

/// Columns of the table of histogram bins.
pub static BIN_COLUMNS: &[Column<Bin>] = &[
    count("run", "", "index of the run, from 0", |bin| Some(bin.run)),
    text("system", "", "the system", |bin| Some(bin.system.clone())),
    text("kind", "", "kind of request: read, write, trim, flush", |bin| Some(bin.kind.to_owned())),
    text("figure", "", "latency or service time", |bin| Some(bin.figure.to_owned())),
    figure("middle_ms", "ms", "center of the bin", |bin| Some(bin.middle_ns as f64 / NS_PER_MS)),
    count("count", "requests", "requests in the bin", |bin| Some(bin.count)),
];

/// An interval of a run.
pub struct IntervalRow {
    run: u64,
    system: String,
    start_ns: u64,
    duration_ns: u64,
    requests: u64,
    bytes: u64,
    mean_ns: f64,
    p99_ns: Option<u64>,
    max_ns: u64,
}

impl IntervalRow {
    /// Creates the row of an interval of a run.
    pub fn new(run: usize, result: &RunResult, interval: &Interval) -> Self {
        // Opened for this row only: memory holds many intervals only in their stored form.
        let latency = interval.latency.open();
        IntervalRow {
            run: run as u64,
            system: result.system.name.clone(),
            start_ns: interval.start_ns,
            duration_ns: interval.duration_ns,
            requests: interval.count,
            bytes: interval.bytes,
            mean_ns: latency.mean_ns(),
            p99_ns: latency.quantile_ns(0.99),
            max_ns: latency.max_ns(),
        }
    }

    fn per_s(&self, amount: u64) -> Option<f64> {
        let duration_s = self.duration_ns as f64 / 1e9;
        (duration_s > 0.0).then(|| amount as f64 / duration_s)
    }
}

/// Columns of the table of intervals.
pub static INTERVAL_COLUMNS: &[Column<IntervalRow>] = &[
    count("run", "", "index of the run, from 0", |row| Some(row.run)),
    text("system", "", "the system", |row| Some(row.system.clone())),
    figure("start_s", "s", "start of the interval, after the start of the run", |row| Some(row.start_ns as f64 / 1e9)),
    figure("duration_s", "s", "length of the interval", |row| Some(row.duration_ns as f64 / 1e9)),
    count("requests", "requests", "requests completed in the interval without error", |row| Some(row.requests)),
    figure("iops", "1/s", "completed requests per second (IOPS)", |row| row.per_s(row.requests)),
    figure("mb_per_s", "10^6 bytes/s", "bytes transferred per second", |row| {
        Some(row.per_s(row.bytes)? / BYTES_PER_MB)
    }),
    figure("mean_ms", "ms", "mean response time", |row| Some(row.mean_ns / NS_PER_MS)),
    figure("p99_ms", "ms", "99th percentile of the response times", |row| Some(row.p99_ns? as f64 / NS_PER_MS)),
    figure("max_ms", "ms", "longest response time", |row| Some(row.max_ns as f64 / NS_PER_MS)),
];

/// A stream of a scenario's run.
pub struct StreamRow {
    run: u64,
    system: String,
    stream: String,
    requests: u64,
    bytes: u64,
    duration_ns: u64,
    latency: LatencyHistogram,
}

impl StreamRow {
    /// Creates the row of a stream of a run.
    pub fn new(run: usize, result: &RunResult, stream: &StreamResult) -> Self {
        let mut row = StreamRow {
            run: run as u64,
            system: result.system.name.clone(),
            stream: stream.name.clone(),
            requests: 0,
            bytes: 0,
            duration_ns: result.duration_ns,
            latency: LatencyHistogram::new(),
        };
        for (_, kind) in stream.kinds.all() {
            row.requests += kind.count;
            row.bytes += kind.bytes;
            row.latency.merge(&kind.latency);
        }
        row
    }

    fn per_s(&self, amount: u64) -> Option<f64> {
        let duration_s = self.duration_ns as f64 / 1e9;
        (duration_s > 0.0).then(|| amount as f64 / duration_s)
    }
}

/// Columns of the table of streams, like those of runs.
pub static STREAM_COLUMNS: &[Column<StreamRow>] = &[
    count("run", "", "index of the run, from 0", |row| Some(row.run)),
    text("system", "", "the system", |row| Some(row.system.clone())),
    text("stream", "", "the stream's name in the scenario", |row| Some(row.stream.clone())),
    count("requests", "requests", "requests that completed without error", |row| Some(row.requests)),
    figure("iops", "1/s", "completed requests per second (IOPS)", |row| row.per_s(row.requests)),
    figure("mb_per_s", "10^6 bytes/s", "bytes transferred per second", |row| {
        Some(row.per_s(row.bytes)? / BYTES_PER_MB)
    }),
    figure("mean_ms", "ms", "mean response time", |row| Some(row.latency.mean_ns() / NS_PER_MS)),
    figure("p99_ms", "ms", "99th percentile of the response times", |row| {
        Some(row.latency.quantile_ns(0.99)? as f64 / NS_PER_MS)
    }),
];

/// Results of one kind of operation on files and directories, in one run.
pub struct OperationRow {
    run: u64,
    workload: Option<String>,
    duration_ns: u64,
    operation: OperationResult,
}

impl OperationRow {
    /// Creates the row of one kind of operation in a run.
    pub fn new(run: usize, result: &RunResult, operation: &OperationResult) -> Self {
        let workload = result.workload["name"].as_str().map(str::to_owned);
        OperationRow { run: run as u64, workload, duration_ns: result.duration_ns, operation: operation.clone() }
    }

    fn per_s(&self, amount: u64) -> Option<f64> {
        (self.duration_ns > 0).then(|| amount as f64 / (self.duration_ns as f64 / 1e9))
    }

    fn quantile_ms(&self, q: f64) -> Option<f64> {
        Some(self.operation.latency.quantile_ns(q)? as f64 / NS_PER_MS)
    }
}

/// Columns of the table of operations.
pub static OPERATION_COLUMNS: &[Column<OperationRow>] = &[
    count("run", "", "index of the run, from 0", |row| Some(row.run)),
    text("workload", "", "the run's name", |row| row.workload.clone()),
    text("operation", "", "the operation", |row| Some(row.operation.name.clone())),
    count("count", "operations", "operations that ended without error", |row| Some(row.operation.count)),
    count("errors", "operations", "operations that failed", |row| Some(row.operation.errors)),
    figure("count_per_s", "1/s", "completed operations per second", |row| row.per_s(row.operation.count)),
    figure("mb_per_s", "10^6 bytes/s", "bytes transferred per second", |row| {
        Some(row.per_s(row.operation.bytes)? / BYTES_PER_MB)
    }),
    figure("mean_ms", "ms", "mean response time", |row| Some(row.operation.latency.mean_ns() / NS_PER_MS)),
    figure("p50_ms", "ms", "median of the response times", |row| row.quantile_ms(0.5)),
    figure("p99_ms", "ms", "99th percentile of the response times", |row| row.quantile_ms(0.99)),
    figure("p999_ms", "ms", "99.9th percentile of the response times", |row| row.quantile_ms(0.999)),
    figure("max_ms", "ms", "longest response time", |row| {
        (row.operation.count > 0).then(|| row.operation.latency.max_ns() as f64 / NS_PER_MS)
    }),
];

/// A figure specific to a stream.
pub struct FactRow {
    /// Index of the run, from 0.
    pub run: u64,
    /// Name of the system.
    pub system: String,
    /// The stream's name in the scenario.
    pub stream: String,
    /// The figure.
    pub fact: Fact,
}

/// Columns of the table of figures specific to streams.
pub static FACT_COLUMNS: &[Column<FactRow>] = &[
    count("run", "", "index of the run, from 0", |row| Some(row.run)),
    text("system", "", "the system", |row| Some(row.system.clone())),
    text("stream", "", "the stream's name in the scenario", |row| Some(row.stream.clone())),
    text("name", "", "name of the figure, with its unit", |row| Some(row.fact.name.clone())),
    figure("value", "as named", "how much", |row| Some(row.fact.value)),
];
