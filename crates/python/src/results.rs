//! The results of one or more runs, as a sequence and as tables.

use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, Field};
use headstack_result::{
    CurvePoint, Fact, Fidelity, Interval, KindResult, Known, LatencyHistogram, RunResult, StreamResult,
    demerit_of_histograms_ms, knee, throughput_at_response,
};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{input_error, json_error};
use crate::table::{Column, Table, columns, count, dict, figure, flag, text};

const NS_PER_MS: f64 = 1e6;
const BYTES_PER_MB: f64 = 1e6;
const BYTES_PER_GB: f64 = 1e9;

/// What was asked for that the result does not say.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Asked {
    /// What distinguishes the run from others of a sweep.
    pub labels: Vec<(String, String)>,
    /// The clients of a scenario, where their number was asked for.
    pub clients: Option<u64>,
    /// Of a simulated system, bytes that the run may use: all that it exports, or a part.
    pub capacity_bytes: Option<u64>,
}

/// A run in the table of results: what was asked for, what came of it, and the response times of all kinds together.
pub struct Row {
    asked: Asked,
    result: RunResult,
    response: LatencyHistogram,
}

impl Row {
    /// The row of a result.
    pub fn new(asked: Asked, result: RunResult) -> Row {
        Row { asked, response: result.response(), result }
    }

    /// What was asked for.
    fn asked(&self) -> &Asked {
        &self.asked
    }

    /// The same, without what came of it.
    pub fn into_asked(self) -> Asked {
        self.asked
    }

    /// What it is made of, for other results.
    fn taken(&self) -> (Asked, RunResult) {
        (self.asked.clone(), self.result.clone())
    }

    fn quantile_ms(&self, q: f64) -> Option<f64> {
        self.response.quantile_ns(q).map(|ns| ns as f64 / NS_PER_MS)
    }

    fn percentile(&self, percent: f64) -> Option<&Known> {
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

    /// Requests outstanding (closed loop) or clients (scenario), else requests a second offered (open loop).
    fn load(&self) -> f64 {
        self.result.offered_per_s.unwrap_or_else(|| self.depth().unwrap_or(0) as f64)
    }

    fn depth(&self) -> Option<u64> {
        let outstanding = || self.workload("/arrivals/closed/outstanding")?.as_u64();
        let replayed = || self.workload("/mode/asap/depth")?.as_u64();
        self.asked.clients.or_else(outstanding).or_else(replayed)
    }

    /// The mode of a replay: a word, or the name of an object.
    fn mode(&self) -> Option<String> {
        match self.workload("/mode")? {
            Value::String(mode) => Some(mode.clone()),
            Value::Object(mode) => mode.keys().next().cloned(),
            _ => None,
        }
    }

    fn fidelity<T>(&self, figure: impl Fn(&Fidelity) -> T) -> Option<T> {
        self.result.fidelity.as_ref().map(figure)
    }

    fn curve_point(&self) -> CurvePoint {
        CurvePoint {
            load: self.load(),
            throughput_per_s: self.result.throughput_per_s(),
            response_ns: self.result.mean_response_ns(),
        }
    }
}

fn low_ms(known: &Known) -> Option<f64> {
    known.between_ns().map(|(low_ns, _)| low_ns / NS_PER_MS)
}

fn high_ms(known: &Known) -> Option<f64> {
    known.between_ns().map(|(_, high_ns)| high_ns / NS_PER_MS)
}

/// Why nothing is known of the long run, in words.
fn too_short(known: &Known) -> Option<String> {
    match known {
        Known::Between { .. } => None,
        Known::TooShort(why) => Some(why.words()),
    }
}

/// One row a run. Throughput and times are those of all kinds of request together.
const RUN_COLUMNS: &[Column<Row>] = &[
    text("system", |row| Some(row.result.system.name.clone())),
    text("workload", |row| Some(row.workload("/name")?.as_str()?.to_owned())),
    figure("capacity_gb", |row| Some(row.asked.capacity_bytes? as f64 / BYTES_PER_GB)),
    count("depth", Row::depth),
    figure("rate_per_s", |row| row.result.offered_per_s),
    count("seed", |row| Some(row.result.seed)),
    count("requests", |row| Some(row.result.count())),
    figure("iops", |row| Some(row.result.throughput_per_s())),
    figure("mb_per_s", |row| Some(row.result.throughput_bytes_per_s() / BYTES_PER_MB)),
    figure("mean_ms", |row| Some(row.result.mean_response_ns() / NS_PER_MS)),
    figure("half_width_ms", |row| row.result.sampling.mean.half_width_ns().map(|ns| ns / NS_PER_MS)),
    figure("mean_low_ms", |row| low_ms(&row.result.sampling.mean)),
    figure("mean_high_ms", |row| high_ms(&row.result.sampling.mean)),
    text("sampling", |row| too_short(&row.result.sampling.mean)),
    count("warm_up_requests", |row| Some(row.result.sampling.warm_up_requests)),
    figure("p50_ms", |row| row.quantile_ms(0.5)),
    figure("p50_low_ms", |row| low_ms(row.percentile(50.0)?)),
    figure("p50_high_ms", |row| high_ms(row.percentile(50.0)?)),
    figure("p90_ms", |row| row.quantile_ms(0.9)),
    figure("p90_low_ms", |row| low_ms(row.percentile(90.0)?)),
    figure("p90_high_ms", |row| high_ms(row.percentile(90.0)?)),
    figure("p95_ms", |row| row.quantile_ms(0.95)),
    figure("p95_low_ms", |row| low_ms(row.percentile(95.0)?)),
    figure("p95_high_ms", |row| high_ms(row.percentile(95.0)?)),
    figure("p99_ms", |row| row.quantile_ms(0.99)),
    figure("p99_low_ms", |row| low_ms(row.percentile(99.0)?)),
    figure("p99_high_ms", |row| high_ms(row.percentile(99.0)?)),
    figure("p999_ms", |row| row.quantile_ms(0.999)),
    figure("p999_low_ms", |row| low_ms(row.percentile(99.9)?)),
    figure("p999_high_ms", |row| high_ms(row.percentile(99.9)?)),
    figure("max_ms", |row| Some(row.response.max_ns() as f64 / NS_PER_MS)),
    figure("mean_depth", |row| Some(row.result.depth.mean)),
    figure("utilisation_percent", |row| Some(100.0 * row.result.bottleneck()?.1)),
    text("bottleneck", |row| Some(row.result.bottleneck()?.0.to_owned())),
    figure("watts", |row| row.result.mean_watts()),
    figure("joules_per_request", |row| row.result.joules_per_request()),
    figure("io_per_s_per_watt", |row| row.result.io_per_watt()),
    figure("case_celsius", |row| row.result.energy.as_ref()?.case_celsius),
    count("read_hits", |row| row.counter("read_hits")),
    count("read_partial_hits", |row| row.counter("read_partial_hits")),
    count("cached_writes", |row| row.counter("cached_writes")),
    count("late_arrivals", |row| Some(row.result.late_arrivals)),
    count("backlog", |row| Some(row.result.backlog)),
    flag("saturated", |row| Some(row.result.saturated)),
    flag("checks_passed", |row| Some(row.result.passed())),
    count("errors", |row| Some(row.result.errors())),
    text("data_loss", |row| row.result.data_loss.clone()),
    text("ended_early", |row| row.result.ended_early.clone()),
    figure("duration_s", |row| Some(row.result.duration_ns as f64 / 1e9)),
    text("mode", Row::mode),
    figure("lateness_p50_ms", |row| row.fidelity(|replay| replay.lateness_p50_ns as f64 / NS_PER_MS)),
    figure("lateness_p99_ms", |row| row.fidelity(|replay| replay.lateness_p99_ns as f64 / NS_PER_MS)),
    figure("lateness_max_ms", |row| row.fidelity(|replay| replay.lateness_max_ns as f64 / NS_PER_MS)),
    figure("recorded_per_s", |row| row.result.fidelity.as_ref()?.recorded_per_s),
    figure("rate_ratio", |row| row.result.fidelity.as_ref()?.rate_ratio),
    figure("recorded_depth_mean", |row| row.result.fidelity.as_ref()?.recorded_depth_mean),
    figure("achieved_depth_mean", |row| row.result.fidelity.as_ref().map(|_| row.result.depth.mean)),
    count("causality_violations", |row| row.fidelity(|replay| replay.causality_violations)),
    count("reordered", |row| row.fidelity(|replay| replay.reordered)),
    count("folded", |row| row.fidelity(|replay| replay.folded)),
    count("dropped", |row| row.fidelity(|replay| replay.dropped)),
    count("rounded", |row| row.fidelity(|replay| replay.rounded)),
    count("without_completion", |row| row.fidelity(|replay| replay.without_completion)),
    text("description_hash", |row| Some(row.result.system.hash.clone())),
    text("generator", |row| Some(row.result.generator.clone())),
    text("version", |row| Some(row.result.version.clone())),
];

/// A bin of a histogram.
struct Bin {
    run: u64,
    system: String,
    kind: &'static str,
    figure: &'static str,
    middle_ns: u64,
    count: u64,
}

static BIN_COLUMNS: &[Column<Bin>] = &[
    count("run", |bin| Some(bin.run)),
    text("system", |bin| Some(bin.system.clone())),
    text("kind", |bin| Some(bin.kind.to_owned())),
    text("figure", |bin| Some(bin.figure.to_owned())),
    figure("middle_ms", |bin| Some(bin.middle_ns as f64 / NS_PER_MS)),
    count("count", |bin| Some(bin.count)),
];

/// An interval of a run.
struct IntervalRow {
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
    fn new(run: usize, result: &RunResult, interval: &Interval) -> Self {
        // Opened once and dropped: only the stored forms of many intervals fit into memory.
        let response = interval.response.open();
        IntervalRow {
            run: run as u64,
            system: result.system.name.clone(),
            start_ns: interval.start_ns,
            duration_ns: interval.duration_ns,
            requests: interval.count,
            bytes: interval.bytes,
            mean_ns: response.mean_ns(),
            p99_ns: response.quantile_ns(0.99),
            max_ns: response.max_ns(),
        }
    }

    fn per_s(&self, amount: u64) -> Option<f64> {
        let duration_s = self.duration_ns as f64 / 1e9;
        (duration_s > 0.0).then(|| amount as f64 / duration_s)
    }
}

static INTERVAL_COLUMNS: &[Column<IntervalRow>] = &[
    count("run", |row| Some(row.run)),
    text("system", |row| Some(row.system.clone())),
    figure("start_s", |row| Some(row.start_ns as f64 / 1e9)),
    figure("duration_s", |row| Some(row.duration_ns as f64 / 1e9)),
    count("requests", |row| Some(row.requests)),
    figure("iops", |row| row.per_s(row.requests)),
    figure("mb_per_s", |row| Some(row.per_s(row.bytes)? / BYTES_PER_MB)),
    figure("mean_ms", |row| Some(row.mean_ns / NS_PER_MS)),
    figure("p99_ms", |row| Some(row.p99_ns? as f64 / NS_PER_MS)),
    figure("max_ms", |row| Some(row.max_ns as f64 / NS_PER_MS)),
];

/// A stream of a scenario's run.
struct StreamRow {
    run: u64,
    system: String,
    stream: String,
    requests: u64,
    bytes: u64,
    duration_ns: u64,
    response: LatencyHistogram,
}

impl StreamRow {
    fn new(run: usize, result: &RunResult, stream: &StreamResult) -> Self {
        let mut row = StreamRow {
            run: run as u64,
            system: result.system.name.clone(),
            stream: stream.name.clone(),
            requests: 0,
            bytes: 0,
            duration_ns: result.duration_ns,
            response: LatencyHistogram::new(),
        };
        for (_, kind) in stream.kinds.all() {
            row.requests += kind.count;
            row.bytes += kind.bytes;
            row.response.merge(&kind.response);
        }
        row
    }

    fn per_s(&self, amount: u64) -> Option<f64> {
        let duration_s = self.duration_ns as f64 / 1e9;
        (duration_s > 0.0).then(|| amount as f64 / duration_s)
    }
}

/// As the columns of runs, for one stream.
static STREAM_COLUMNS: &[Column<StreamRow>] = &[
    count("run", |row| Some(row.run)),
    text("system", |row| Some(row.system.clone())),
    text("stream", |row| Some(row.stream.clone())),
    count("requests", |row| Some(row.requests)),
    figure("iops", |row| row.per_s(row.requests)),
    figure("mb_per_s", |row| Some(row.per_s(row.bytes)? / BYTES_PER_MB)),
    figure("mean_ms", |row| Some(row.response.mean_ns() / NS_PER_MS)),
    figure("p99_ms", |row| Some(row.response.quantile_ns(0.99)? as f64 / NS_PER_MS)),
];

/// A figure of a stream's own.
struct FactRow {
    run: u64,
    system: String,
    stream: String,
    fact: Fact,
}

static FACT_COLUMNS: &[Column<FactRow>] = &[
    count("run", |row| Some(row.run)),
    text("system", |row| Some(row.system.clone())),
    text("stream", |row| Some(row.stream.clone())),
    text("name", |row| Some(row.fact.name.clone())),
    figure("value", |row| Some(row.fact.value)),
];

/// The results of runs, in the order in which they were asked for.
#[pyclass(frozen, sequence, module = "headstack._native")]
pub struct Results {
    rows: Vec<Row>,
    table: OnceLock<Py<Table>>,
}

/// The labels of runs as columns, in the order in which they first occur.
pub fn labelled(asked: &[&Asked]) -> Vec<(Field, ArrayRef)> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in asked.iter().flat_map(|asked| &asked.labels) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let column = |name: &String| -> (Field, ArrayRef) {
        let text = |asked: &&Asked| asked.labels.iter().find(|label| label.0 == *name).map(|label| label.1.clone());
        let texts: StringArray = asked.iter().map(text).collect();
        (Field::new(name, DataType::Utf8, true), Arc::new(texts))
    };
    names.into_iter().map(column).collect()
}

impl Results {
    /// The columns of the table of results, but for the labels.
    pub const COLUMNS: &[Column<Row>] = RUN_COLUMNS;

    /// Results with what was asked for.
    pub fn new(results: Vec<(Asked, RunResult)>) -> Self {
        let rows = results.into_iter().map(|(asked, result)| Row::new(asked, result)).collect();
        Self { rows, table: OnceLock::new() }
    }

    /// The place of a run, which may be counted from the end.
    fn place(&self, index: isize) -> PyResult<usize> {
        let length = self.rows.len() as isize;
        let at = if index < 0 { index + length } else { index };
        let place = usize::try_from(at).ok().filter(|&at| at < self.rows.len());
        place.ok_or_else(|| PyIndexError::new_err(format!("run {index} of {length}")))
    }

    fn row(&self, index: isize) -> PyResult<&Row> {
        Ok(&self.rows[self.place(index)?])
    }

    /// Every stream, with the place of its run and that run's result.
    fn streams_by_run(&self) -> impl Iterator<Item = (usize, &RunResult, &StreamResult)> {
        let runs = self.rows.iter().enumerate();
        runs.flat_map(|(run, Row { result, .. })| result.streams.iter().map(move |stream| (run, result, stream)))
    }

    fn points(&self, runs: &[isize]) -> PyResult<Vec<CurvePoint>> {
        runs.iter().map(|&run| Ok(self.row(run)?.curve_point())).collect()
    }

    fn run_table(&self) -> Table {
        let mut table = columns(RUN_COLUMNS, &self.rows);
        let asked: Vec<&Asked> = self.rows.iter().map(Row::asked).collect();
        table.extend(labelled(&asked));
        Table::new(table)
    }
}

#[pymethods]
impl Results {
    /// Results from their JSON: of one, or a list of them.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Results> {
        let value: Value = serde_json::from_str(text).map_err(json_error)?;
        let texts = match value {
            Value::Array(results) => results.iter().map(Value::to_string).collect(),
            one => vec![one.to_string()],
        };
        let read = |text: &String| RunResult::from_json(text).map_err(input_error);
        let results = texts.iter().map(read).collect::<PyResult<Vec<_>>>()?;
        let asked = |result| (Asked::default(), result);
        Ok(Results::new(results.into_iter().map(asked).collect()))
    }

    /// These, and then others.
    fn and_(&self, others: &Results) -> Results {
        Results::new(self.rows.iter().chain(&others.rows).map(Row::taken).collect())
    }

    /// Some of these, in the order of `indices`.
    fn chosen(&self, indices: Vec<isize>) -> PyResult<Results> {
        let rows = indices.into_iter().map(|index| Ok(self.row(index)?.taken()));
        Ok(Results::new(rows.collect::<PyResult<_>>()?))
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    /// The row of one run in the table of results, as a dict.
    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyDict>> {
        let row = self.row(index)?;
        let cells = dict(py, RUN_COLUMNS, row)?;
        for (name, text) in &row.asked.labels {
            cells.set_item(name, text)?;
        }
        Ok(cells)
    }

    /// The whole result of one run as one line of JSON, in the schema of the project.
    fn to_json(&self, index: isize) -> PyResult<String> {
        self.row(index)?.result.to_json().map_err(input_error)
    }

    /// The table of results: one row a run.
    fn table(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        if let Some(table) = self.table.get() {
            return Ok(table.clone_ref(py));
        }
        let table = Py::new(py, self.run_table())?;
        Ok(self.table.get_or_init(|| table).clone_ref(py))
    }

    /// The histograms of response and service times: one row for each run, kind, figure and bin in use.
    fn histograms(&self) -> Table {
        let mut bins = Vec::new();
        for (run, row) in self.rows.iter().enumerate() {
            for (kind, KindResult { response, service, .. }) in row.result.kinds.all() {
                for (figure, histogram) in [("response", response), ("service", service)] {
                    bins.extend(histogram.bins().map(|(middle_ns, count)| Bin {
                        run: run as u64,
                        system: row.result.system.name.clone(),
                        kind,
                        figure,
                        middle_ns,
                        count,
                    }));
                }
            }
        }
        Table::new(columns(BIN_COLUMNS, &bins))
    }

    /// The runs over time: one row for each run and interval.
    fn intervals(&self) -> Table {
        let mut rows = Vec::new();
        for (run, row) in self.rows.iter().enumerate() {
            rows.extend(row.result.intervals.iter().map(|interval| IntervalRow::new(run, &row.result, interval)));
        }
        Table::new(columns(INTERVAL_COLUMNS, &rows))
    }

    /// The streams of scenarios: one row for each run and stream.
    fn streams(&self) -> Table {
        let rows: Vec<StreamRow> =
            self.streams_by_run().map(|(run, result, stream)| StreamRow::new(run, result, stream)).collect();
        Table::new(columns(STREAM_COLUMNS, &rows))
    }

    /// The figures of the streams' own, such as frames dropped: one row for each run, stream and figure.
    fn facts(&self) -> Table {
        let mut rows = Vec::new();
        for (run, result, stream) in self.streams_by_run() {
            rows.extend(stream.facts.iter().map(|fact| FactRow {
                run: run as u64,
                system: result.system.name.clone(),
                stream: stream.name.clone(),
                fact: fact.clone(),
            }));
        }
        Table::new(columns(FACT_COLUMNS, &rows))
    }

    /// The streams of one run as dicts, with the figures of their own by name under `facts`.
    fn streams_of<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let run = self.place(index)?;
        let result = &self.rows[run].result;
        let cells = |stream: &StreamResult| {
            let cells = dict(py, STREAM_COLUMNS, &StreamRow::new(run, result, stream))?;
            let facts = PyDict::new(py);
            for Fact { name, value } in &stream.facts {
                facts.set_item(name, value)?;
            }
            cells.set_item("facts", facts)?;
            Ok(cells)
        };
        result.streams.iter().map(cells).collect()
    }

    /// One run over time, as dicts.
    fn intervals_of<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let run = self.place(index)?;
        let result = &self.rows[run].result;
        let cells = |interval: &Interval| dict(py, INTERVAL_COLUMNS, &IntervalRow::new(run, result, interval));
        result.intervals.iter().map(cells).collect()
    }

    /// The demerit figure of the response times of one run, as a prediction, against those of another, in ms: the root
    /// mean square horizontal distance of their distributions. `None` where one has none.
    fn demerit_ms(&self, index: isize, measured: &Results, measured_index: isize) -> PyResult<Option<f64>> {
        Ok(demerit_of_histograms_ms(&self.row(index)?.response, &measured.row(measured_index)?.response))
    }

    /// The quantile `q` (0 to 1) of the response times of one run in ms; `None` without requests and beyond the
    /// histogram's range.
    fn quantile_ms(&self, index: isize, q: f64) -> PyResult<Option<f64>> {
        Ok(self.row(index)?.quantile_ms(q))
    }

    /// The knee of the saturation curve through the given runs, or `None` where it was not reached.
    fn knee<'py>(&self, py: Python<'py>, runs: Vec<isize>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(knee) = knee(&self.points(&runs)?) else {
            return Ok(None);
        };
        let figures = PyDict::new(py);
        figures.set_item("load", knee.load)?;
        figures.set_item("iops", knee.throughput_per_s)?;
        figures.set_item("mean_ms", knee.response_ns / NS_PER_MS)?;
        figures.set_item("at_first_point", knee.at_first_point)?;
        Ok(Some(figures))
    }

    /// The largest throughput of the saturation curve through the given runs, in requests a second, at a response time
    /// of at most `limit_ns`, in the mean or at a quantile (0 to 1); and whether the heaviest load is within it too.
    #[pyo3(signature = (runs, limit_ns, quantile=None))]
    fn iops_at_response(
        &self,
        runs: Vec<isize>,
        limit_ns: f64,
        quantile: Option<f64>,
    ) -> PyResult<Option<(f64, bool)>> {
        let mut points = self.points(&runs)?;
        if let Some(quantile) = quantile {
            for (point, &run) in points.iter_mut().zip(&runs) {
                // Beyond the histogram's range is beyond any limit.
                let ms = self.row(run)?.quantile_ms(quantile).unwrap_or(f64::MAX / NS_PER_MS);
                point.response_ns = ms * NS_PER_MS;
            }
        }
        let within = throughput_at_response(&points, limit_ns);
        Ok(within.map(|within| (within.throughput_per_s, within.is_at_least)))
    }

    /// What the runs remark on themselves, each remark once.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for note in self.rows.iter().flat_map(|row| &row.result.notes) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        notes
    }

    /// The checks of one run that did not hold, each as one line.
    fn failed_checks(&self, index: isize) -> PyResult<Vec<String>> {
        let checks = self.row(index)?.result.checks.iter();
        Ok(checks.filter(|check| !check.passed).map(|check| format!("{}: {}", check.name, check.detail)).collect())
    }

    /// Exports the table of results as an Arrow C stream.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.table(py)?.get().__arrow_c_stream__(py, requested_schema)
    }
}
