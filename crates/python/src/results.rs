//! [`Results`]: the results of one or more runs, as a sequence and as tables.

use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, Field as ArrowField};
use headstack_result::{
    CurvePoint, Fact, Interval, KindResult, ModelError, RunResult, StreamResult, demerit_of_histograms_ms, knee,
    throughput_at_response,
};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use serde_json::Value;

use crate::error::{input_error, json_error};
use crate::field::Field;
use crate::plain::{Plain, plain};
use crate::table::{Table, columns, dict, fields_of};
use headstack_result::tables::{
    BIN_COLUMNS, Bin, FACT_COLUMNS, FactRow, INTERVAL_COLUMNS, IntervalRow, NS_PER_MS, OPERATION_COLUMNS, OperationRow,
    RUN_COLUMNS, Row, RunSettings, STREAM_COLUMNS, StreamRow,
};

/// The results of runs, in the requested order.
#[pyclass(frozen, sequence, module = "headstack._native")]
pub struct Results {
    rows: Vec<Row>,
    table: OnceLock<Py<Table>>,
}

/// Returns the labels of runs as columns, in order of first occurrence.
pub fn labelled(settings: &[&RunSettings]) -> Vec<(ArrowField, ArrayRef)> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in settings.iter().flat_map(|settings| &settings.labels) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let column = |name: &String| -> (ArrowField, ArrayRef) {
        let text = |settings: &&RunSettings| {
            settings.labels.iter().find(|label| label.0 == *name).map(|label| label.1.clone())
        };
        let texts: StringArray = settings.iter().map(text).collect();
        (ArrowField::new(name, DataType::Utf8, true), Arc::new(texts))
    };
    names.into_iter().map(column).collect()
}

impl Results {
    /// Creates results from pairs of settings and result.
    pub fn new(results: Vec<(RunSettings, RunResult)>) -> Self {
        let rows = results.into_iter().map(|(settings, result)| Row::new(settings, result)).collect();
        Self { rows, table: OnceLock::new() }
    }

    /// Returns the index of a run; negative indices count from the end.
    fn place(&self, index: isize) -> PyResult<usize> {
        let length = self.rows.len() as isize;
        let at = if index < 0 { index + length } else { index };
        let place = usize::try_from(at).ok().filter(|&at| at < self.rows.len());
        place.ok_or_else(|| PyIndexError::new_err(format!("run {index} of {length}")))
    }

    fn row(&self, index: isize) -> PyResult<&Row> {
        Ok(&self.rows[self.place(index)?])
    }

    /// Returns all streams, each with the index and the result of its run.
    fn streams_by_run(&self) -> impl Iterator<Item = (usize, &RunResult, &StreamResult)> {
        let runs = self.rows.iter().enumerate();
        runs.flat_map(|(run, Row { result, .. })| result.streams.iter().map(move |stream| (run, result, stream)))
    }

    fn points(&self, runs: &[isize]) -> PyResult<Vec<CurvePoint>> {
        runs.iter().map(|&run| Ok(self.row(run)?.curve_point())).collect()
    }

    fn run_table(&self) -> Table {
        let mut table = columns(RUN_COLUMNS, &self.rows);
        let settings: Vec<&RunSettings> = self.rows.iter().map(Row::settings).collect();
        table.extend(labelled(&settings));
        Table::new(table)
    }
}

#[pymethods]
impl Results {
    /// Parses one result, or a list of them, from JSON.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Results> {
        let value: Value = serde_json::from_str(text).map_err(json_error)?;
        let texts = match value {
            Value::Array(results) => results.iter().map(Value::to_string).collect(),
            one => vec![one.to_string()],
        };
        let read = |text: &String| RunResult::from_json(text).map_err(input_error);
        let results = texts.iter().map(read).collect::<PyResult<Vec<_>>>()?;
        let settings = |result| (RunSettings::default(), result);
        Ok(Results::new(results.into_iter().map(settings).collect()))
    }

    /// Concatenates two sets of results.
    fn and_(&self, others: &Results) -> Results {
        Results::new(self.rows.iter().chain(&others.rows).map(Row::into_parts).collect())
    }

    /// Selects results, in the order of `indices`.
    fn chosen(&self, indices: Vec<isize>) -> PyResult<Results> {
        let rows = indices.into_iter().map(|index| Ok(self.row(index)?.into_parts()));
        Ok(Results::new(rows.collect::<PyResult<_>>()?))
    }

    /// Returns these results with the error of each run's model relative to its device, if known.
    fn with_model_errors(&self, errors: Vec<Option<Plain<ModelError>>>) -> Results {
        let with = |(row, error): (&Row, Option<Plain<ModelError>>)| {
            let (settings, mut result) = row.into_parts();
            result.model_error = error.map(|error| error.0);
            (settings, result)
        };
        Results::new(self.rows.iter().zip(errors).map(with).collect())
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    /// Returns the row of one run in the table of results, as a dict.
    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyDict>> {
        let row = self.row(index)?;
        let cells = dict(py, RUN_COLUMNS, row)?;
        for (name, text) in &row.settings().labels {
            cells.set_item(name, text)?;
        }
        Ok(cells)
    }

    /// Returns the complete result of one run as one line of JSON, in headstack's schema.
    fn to_json(&self, index: isize) -> PyResult<String> {
        self.row(index)?.result.to_json().map_err(input_error)
    }

    /// Returns the complete result of one run as a dict with the keys of [`to_json`](Self::to_json).
    fn whole<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.row(index)?.result)
    }

    /// Returns the table of results: one row per run.
    fn table(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        if let Some(table) = self.table.get() {
            return Ok(table.clone_ref(py));
        }
        let table = Py::new(py, self.run_table())?;
        Ok(self.table.get_or_init(|| table).clone_ref(py))
    }

    /// Returns histograms of response and service times: one row per run, kind, figure and non-empty bin.
    fn histograms(&self) -> Table {
        let mut bins = Vec::new();
        for (run, row) in self.rows.iter().enumerate() {
            for (kind, KindResult { latency, service, .. }) in row.result.kinds.all() {
                for (figure, histogram) in [("latency", latency), ("service", service)] {
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

    /// Returns the time series of the runs: one row per run and interval.
    fn intervals(&self) -> Table {
        let mut rows = Vec::new();
        for (run, row) in self.rows.iter().enumerate() {
            rows.extend(row.result.intervals.iter().map(|interval| IntervalRow::new(run, &row.result, interval)));
        }
        Table::new(columns(INTERVAL_COLUMNS, &rows))
    }

    /// Returns the streams of scenarios: one row per run and stream.
    fn streams(&self) -> Table {
        let rows: Vec<StreamRow> =
            self.streams_by_run().map(|(run, result, stream)| StreamRow::new(run, result, stream)).collect();
        Table::new(columns(STREAM_COLUMNS, &rows))
    }

    /// Returns operations on files and folders: one row per run and kind.
    fn operations(&self) -> Table {
        let mut rows = Vec::new();
        for (run, Row { result, .. }) in self.rows.iter().enumerate() {
            rows.extend(result.operations.iter().map(|operation| OperationRow::new(run, result, operation)));
        }
        Table::new(columns(OPERATION_COLUMNS, &rows))
    }

    /// Returns the operations of one run as dicts.
    fn operations_of<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let run = self.place(index)?;
        let result = &self.rows[run].result;
        let cells = |operation| dict(py, OPERATION_COLUMNS, &OperationRow::new(run, result, operation));
        result.operations.iter().map(cells).collect()
    }

    /// Returns the stream-specific figures, such as dropped frames: one row per run, stream and figure.
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

    /// Returns the streams of one run as dicts, with stream-specific figures by name under `facts`.
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

    /// Returns the time series of one run, as dicts.
    fn intervals_of<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let run = self.place(index)?;
        let result = &self.rows[run].result;
        let cells = |interval: &Interval| dict(py, INTERVAL_COLUMNS, &IntervalRow::new(run, result, interval));
        result.intervals.iter().map(cells).collect()
    }

    /// Returns the demerit figure in ms of the response times of one run, as a prediction of the response times of
    /// another run: the root mean square horizontal distance of their distributions. `None` if a run has no response
    /// times.
    fn demerit_ms(&self, index: isize, measured: &Results, measured_index: isize) -> PyResult<Option<f64>> {
        Ok(demerit_of_histograms_ms(&self.row(index)?.latency, &measured.row(measured_index)?.latency))
    }

    /// Returns the quantile `q` (0 to 1) of the response times of one run in ms; `None` if there are no requests or the
    /// quantile exceeds the histogram's range.
    fn quantile_ms(&self, index: isize, q: f64) -> PyResult<Option<f64>> {
        Ok(self.row(index)?.quantile_ms(q))
    }

    /// Returns the knee of the saturation curve through the given runs; `None` if the curve did not reach it.
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

    /// Returns the maximum throughput of the saturation curve through the given runs, in requests per second, at a
    /// response time of at most `limit_ns`, in the mean or at a quantile (0 to 1); and whether even the heaviest load
    /// meets the limit.
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
                // A value above the histogram's range exceeds any limit.
                let ms = self.row(run)?.quantile_ms(quantile).unwrap_or(f64::MAX / NS_PER_MS);
                point.response_ns = ms * NS_PER_MS;
            }
        }
        let within = throughput_at_response(&points, limit_ns);
        Ok(within.map(|within| (within.throughput_per_s, within.is_at_least)))
    }

    /// Returns the distinct notes of the runs that may require action.
    fn notes(&self) -> Vec<String> {
        distinct(self.rows.iter().flat_map(|row| &row.result.notes))
    }

    /// Returns the distinct notes on how the runs were made.
    fn method_notes(&self) -> Vec<String> {
        distinct(self.rows.iter().flat_map(|row| &row.result.method_notes))
    }

    /// Returns the failed checks of one run, one line each.
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

/// Returns the columns of the tables of results by table name: runs (without labels), bins, intervals, streams and
/// stream-specific figures.
#[pyfunction]
pub fn result_fields() -> Vec<(&'static str, Vec<Field>)> {
    vec![
        ("results", fields_of(RUN_COLUMNS)),
        ("intervals", fields_of(INTERVAL_COLUMNS)),
        ("streams", fields_of(STREAM_COLUMNS)),
        ("operations", fields_of(OPERATION_COLUMNS)),
        ("facts", fields_of(FACT_COLUMNS)),
        ("histograms", fields_of(BIN_COLUMNS)),
    ]
}

/// Returns the distinct texts, in the order of their first occurrence.
fn distinct<'t>(texts: impl Iterator<Item = &'t String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for text in texts {
        if !kept.contains(text) {
            kept.push(text.clone());
        }
    }
    kept
}
