//! Tests cells of the result tables against values computed by hand.

use headstack_result::columns::{Column, Kind, kept_cells};
use headstack_result::tables::{
    BIN_COLUMNS, Bin, FACT_COLUMNS, FactRow, INTERVAL_COLUMNS, IntervalRow, OPERATION_COLUMNS, OperationRow,
    RUN_COLUMNS, Row, RunSettings, STREAM_COLUMNS, StreamRow,
};
use headstack_result::{
    Check, Component, Counter, CurvePoint, DepthResult, Energy, Estimate, Fact, Fidelity, Interval, KindResult, Kinds,
    LatencyHistogram, Mode, ModelError, OperationResult, Percentile, Range, RunResult, Stall, Stalls, StreamResult,
    SystemRecord, TooShort,
};
use serde_json::{Value, json};

fn cell<R>(columns: &[Column<R>], row: &R, name: &str) -> Value {
    json!(columns.iter().find(|column| column.name == name).expect("the table has the column").of(row))
}

fn assert_cells<R>(columns: &[Column<R>], row: &R, expected: &[(&str, Value)]) {
    for (name, value) in expected {
        assert_eq!(cell(columns, row, name), *value, "{name}");
    }
}

/// Returns `count` response times of 1 ms.
fn milliseconds(count: u64) -> LatencyHistogram {
    let mut latency = LatencyHistogram::new();
    (0..count).for_each(|_| latency.record(1_000_000));
    latency
}

/// Returns a measurement of two seconds.
fn measured(workload: Value) -> RunResult {
    let system = SystemRecord::new("sda", "target", json!({}));
    let mut result = RunResult::new(Mode::Measured, system, workload, 7, "xoshiro256++");
    result.duration_ns = 2_000_000_000;
    result
}

fn kind(count: u64) -> KindResult {
    KindResult { count, bytes: count * 4_000, latency: milliseconds(count), ..KindResult::default() }
}

#[test]
fn a_stream_adds_up_its_kinds_of_request() {
    let kinds = Kinds { read: kind(300), write: kind(100), ..Kinds::default() };
    let stream = StreamResult { name: "log".to_owned(), kinds, facts: Vec::new() };
    let expected = [
        ("run", json!(3)),
        ("stream", json!("log")),
        ("requests", json!(400)),
        ("iops", json!(200.0)),
        ("mb_per_s", json!(0.8)),
        ("mean_ms", json!(1.0)),
        ("p99_ms", json!(1.0)),
    ];
    let mut result = measured(json!({}));
    assert_cells(STREAM_COLUMNS, &StreamRow::new(3, &result, &stream), &expected);
    result.duration_ns = 0;
    let idle = StreamRow::new(3, &result, &stream);
    assert_cells(STREAM_COLUMNS, &idle, &[("requests", json!(400)), ("iops", json!(null))]);
}

#[test]
fn operations_on_files_have_rates_and_percentiles() {
    let (name, latency) = ("create".to_owned(), milliseconds(50));
    let operation = OperationResult { name, count: 50, errors: 2, bytes: 8_000_000, latency };
    let mut result = measured(json!({"name": "mail"}));
    let expected = [
        ("run", json!(3)),
        ("workload", json!("mail")),
        ("count", json!(50)),
        ("errors", json!(2)),
        ("count_per_s", json!(25.0)),
        ("mb_per_s", json!(4.0)),
        ("p50_ms", json!(1.0)),
        ("max_ms", json!(1.0)),
    ];
    assert_cells(OPERATION_COLUMNS, &OperationRow::new(3, &result, &operation), &expected);
    result.duration_ns = 0;
    let idle = OperationRow::new(3, &result, &OperationResult::default());
    let expected = [("count_per_s", json!(null)), ("p50_ms", json!(null)), ("max_ms", json!(null))];
    assert_cells(OPERATION_COLUMNS, &idle, &expected);
}

#[test]
fn an_interval_has_rates_over_its_own_duration() {
    let mut interval = Interval {
        start_ns: 1_500_000_000,
        duration_ns: 500_000_000,
        count: 100,
        bytes: 400_000,
        ..Interval::default()
    };
    interval.latency = milliseconds(100).store();
    let expected = [
        ("run", json!(3)),
        ("start_s", json!(1.5)),
        ("duration_s", json!(0.5)),
        ("requests", json!(100)),
        ("iops", json!(200.0)),
        ("mb_per_s", json!(0.8)),
        ("mean_ms", json!(1.0)),
        ("p99_ms", json!(1.0)),
        ("max_ms", json!(1.0)),
    ];
    let result = measured(json!({}));
    assert_cells(INTERVAL_COLUMNS, &IntervalRow::new(3, &result, &interval), &expected);
    let idle = IntervalRow::new(3, &result, &Interval::default());
    assert_cells(INTERVAL_COLUMNS, &idle, &[("iops", json!(null)), ("mb_per_s", json!(null))]);
}

#[test]
fn the_load_of_a_run_is_its_clients_its_queue_depth_or_its_offered_rate() {
    let depth_and_load = |clients, workload, offered_per_s| {
        let mut result = measured(workload);
        result.offered_per_s = offered_per_s;
        let row = Row::new(RunSettings { clients, ..RunSettings::default() }, result);
        (cell(RUN_COLUMNS, &row, "depth"), row.curve_point().load)
    };
    let closed = json!({"arrivals": {"closed": {"queue_depth": 16}}});
    assert_eq!(depth_and_load(None, closed.clone(), None), (json!(16), 16.0));
    assert_eq!(depth_and_load(Some(5), closed, None), (json!(5), 5.0));
    assert_eq!(depth_and_load(None, json!({"mode": {"asap": {"depth": 8}}}), None), (json!(8), 8.0));
    assert_eq!(depth_and_load(None, json!({}), Some(120.5)), (json!(null), 120.5));
    assert_eq!(depth_and_load(None, json!({}), None), (json!(null), 0.0));
}

#[test]
fn a_replay_names_its_mode_and_its_fidelity() {
    let mut result = measured(json!({"mode": {"asap": {"depth": 8}}}));
    result.fidelity = Some(Fidelity { lateness_p99_ns: 2_500_000, dropped: 4, ..Fidelity::default() });
    let row = Row::new(RunSettings::default(), result);
    let expected = [("mode", json!("asap")), ("lateness_p99_ms", json!(2.5)), ("dropped", json!(4))];
    assert_cells(RUN_COLUMNS, &row, &expected);
    let row = Row::new(RunSettings::default(), measured(json!({"mode": "original"})));
    assert_cells(RUN_COLUMNS, &row, &[("mode", json!("original")), ("dropped", json!(null))]);
}

#[test]
fn a_run_has_intervals_counters_and_times_without_stalls() {
    let mut result = measured(json!({}));
    result.kinds.read = kind(300);
    result.kinds.read.count += 1;
    result.kinds.read.latency.record(900_000_000);
    let mut latency = LatencyHistogram::new();
    latency.record(900_000_000);
    let longest = vec![Stall { start_ns: 5, duration_ns: 800_000_000, queue_depth: 1 }];
    result.stalls = Some(Stalls { longest, latency: latency.store() });
    result.counters = vec![Counter { name: "read_hits".to_owned(), value: 12 }];
    result.sampling.mean = Estimate::Between { low_ns: 3e6, high_ns: 5e6 };
    let value = Estimate::Between { low_ns: 6e6, high_ns: 9e6 };
    result.sampling.percentiles = vec![Percentile { percent: 99.0, value }];
    let row = Row::new(RunSettings::default(), result.clone());
    let expected = [
        ("half_width_ms", json!(1.0)),
        ("mean_low_ms", json!(3.0)),
        ("mean_high_ms", json!(5.0)),
        ("sampling", json!(null)),
        ("p99_low_ms", json!(6.0)),
        ("p99_high_ms", json!(9.0)),
        ("p50_low_ms", json!(null)),
        ("max_ms", json!(900.0)),
        ("stalls", json!(1)),
        ("stalled_s", json!(0.8)),
        ("mean_calm_ms", json!(1.0)),
        ("read_hits", json!(12)),
        ("cached_writes", json!(null)),
    ];
    assert_cells(RUN_COLUMNS, &row, &expected);
    // Percentiles are exact to within a bin of the histogram.
    for name in ["p50_ms", "p99_calm_ms", "p999_calm_ms"] {
        let ms = cell(RUN_COLUMNS, &row, name).as_f64().unwrap();
        assert!((ms - 1.0).abs() < 0.001, "{name}: {ms}");
    }
    result.sampling.mean = Estimate::TooShort(TooShort::FewRequests);
    let row = Row::new(RunSettings::default(), result);
    let expected = [
        ("mean_low_ms", json!(null)),
        ("sampling", json!("run too short: fewer than 64 requests")),
        ("sampling_code", json!("few_requests")),
    ];
    assert_cells(RUN_COLUMNS, &row, &expected);
}

/// Latencies of 1, 2, ... 1,000 ms.
fn rising() -> LatencyHistogram {
    let mut latency = LatencyHistogram::new();
    (1..=1_000).for_each(|ms| latency.record(ms * 1_000_000));
    latency
}

/// A measurement of two seconds in which every field that a column shows has a value of its own.
fn full() -> RunResult {
    let mut result = measured(json!({"name": "mail", "mode": "original"}));
    result.version = "9.8.7".to_owned();
    result.system.hash = "cafe".to_owned();
    result.offered_per_s = Some(120.5);
    result.kinds.read = KindResult { count: 1_000, bytes: 4_000_000, latency: rising(), ..KindResult::default() };
    result.kinds.write.errors = 3;
    let between = |low_ms: f64, high_ms: f64| Estimate::Between { low_ns: low_ms * 1e6, high_ns: high_ms * 1e6 };
    let percentile = |percent, low_ms, high_ms| Percentile { percent, value: between(low_ms, high_ms) };
    result.sampling.warm_up_requests = 42;
    result.sampling.mean = between(480.0, 520.0);
    result.sampling.percentiles = vec![
        percentile(50.0, 501.0, 502.0),
        percentile(90.0, 901.0, 902.0),
        percentile(95.0, 951.0, 952.0),
        percentile(99.0, 991.0, 992.0),
        percentile(99.9, 999.1, 999.2),
    ];
    let mut slowest = LatencyHistogram::new();
    (901..=1_000).for_each(|ms| slowest.record(ms * 1_000_000));
    let stall = |start_ns, duration_ns| Stall { start_ns, duration_ns, queue_depth: 1 };
    let longest = vec![stall(5, 800_000_000), stall(900_000_000, 400_000_000)];
    result.stalls = Some(Stalls { longest, latency: slowest.store() });
    let range = |low, high| Some(Range { low, high });
    result.model_error = Some(ModelError {
        level: 0.9,
        learnt_from: "9 disks".to_owned(),
        throughput_per_s: range(450.0, 550.0),
        mean_latency_ns: range(400e6, 600e6),
        p50_latency_ns: range(410e6, 610e6),
        p99_latency_ns: range(900e6, 1_100e6),
    });
    // 0.5 s at depth 0, and 1.5 s at depth 2.
    result.depth = DepthResult::new(vec![500_000_000, 0, 1_500_000_000]);
    let component = |name: &str, servers, busy_ns| Component { name: name.to_owned(), servers, busy_ns, waited_ns: 0 };
    result.components = vec![component("link", 1, 500_000_000), component("arms", 2, 3_000_000_000)];
    result.energy = Some(Energy { joules: 40.0, case_celsius: Some(41.5), ..Energy::default() });
    let counter = |name: &str, value| Counter { name: name.to_owned(), value };
    result.counters = vec![counter("read_hits", 12), counter("read_partial_hits", 13), counter("cached_writes", 14)];
    (result.late_arrivals, result.backlog, result.saturated) = (5, 6, true);
    result.data_loss = Some("two drives".to_owned());
    result.ended_early = Some("a stop".to_owned());
    result.fidelity = Some(Fidelity {
        recorded_per_s: Some(480.0),
        rate_ratio: Some(1.04),
        lateness_p50_ns: 1_500_000,
        lateness_p99_ns: 2_500_000,
        lateness_max_ns: 3_500_000,
        causality_violations: 21,
        reordered: 22,
        folded: 23,
        dropped: 24,
        rounded: 25,
        without_completion: 26,
        recorded_depth_mean: Some(3.25),
        ..Fidelity::default()
    });
    result
}

#[test]
fn every_column_of_a_run_shows_its_own_figure_in_its_unit() {
    let asked = RunSettings { clients: Some(8), capacity_bytes: Some(250_000_000_000), ..RunSettings::default() };
    let row = Row::new(asked, full());
    let expected = [
        ("system", json!("sda")),
        ("workload", json!("mail")),
        ("capacity_gb", json!(250.0)),
        ("depth", json!(8)),
        ("rate_per_s", json!(120.5)),
        ("seed", json!(7)),
        ("requests", json!(1_000)),
        ("iops", json!(500.0)),
        ("mb_per_s", json!(2.0)),
        ("mean_ms", json!(500.5)),
        ("half_width_ms", json!(20.0)),
        ("mean_low_ms", json!(480.0)),
        ("mean_high_ms", json!(520.0)),
        ("sampling", json!(null)),
        ("sampling_code", json!(null)),
        ("warm_up_requests", json!(42)),
        ("p50_ms", json!(500.0)),
        ("p50_low_ms", json!(501.0)),
        ("p50_high_ms", json!(502.0)),
        ("p90_ms", json!(900.0)),
        ("p90_low_ms", json!(901.0)),
        ("p90_high_ms", json!(902.0)),
        ("p95_ms", json!(950.0)),
        ("p95_low_ms", json!(951.0)),
        ("p95_high_ms", json!(952.0)),
        ("p99_ms", json!(990.0)),
        ("p99_low_ms", json!(991.0)),
        ("p99_high_ms", json!(992.0)),
        ("p999_ms", json!(999.0)),
        ("p999_low_ms", json!(999.1)),
        ("p999_high_ms", json!(999.2)),
        ("max_ms", json!(1_000.0)),
        ("stalls", json!(2)),
        ("stalled_s", json!(1.2)),
        ("mean_calm_ms", json!(450.5)),
        ("p99_calm_ms", json!(891.0)),
        ("p999_calm_ms", json!(900.0)),
        ("iops_model_low", json!(450.0)),
        ("iops_model_high", json!(550.0)),
        ("mean_model_low_ms", json!(400.0)),
        ("mean_model_high_ms", json!(600.0)),
        ("p50_model_low_ms", json!(410.0)),
        ("p50_model_high_ms", json!(610.0)),
        ("p99_model_low_ms", json!(900.0)),
        ("p99_model_high_ms", json!(1_100.0)),
        ("model_level", json!(0.9)),
        ("model_error", json!("9 disks")),
        ("mean_depth", json!(1.5)),
        ("utilization_percent", json!(75.0)),
        ("bottleneck", json!("arms")),
        ("watts", json!(20.0)),
        ("joules_per_request", json!(0.04)),
        ("io_per_s_per_watt", json!(25.0)),
        ("case_celsius", json!(41.5)),
        ("read_hits", json!(12)),
        ("read_partial_hits", json!(13)),
        ("cached_writes", json!(14)),
        ("late_arrivals", json!(5)),
        ("backlog", json!(6)),
        ("saturated", json!(true)),
        ("checks_passed", json!(false)),
        ("errors", json!(3)),
        ("data_loss", json!("two drives")),
        ("ended_early", json!("a stop")),
        ("duration_s", json!(2.0)),
        ("mode", json!("original")),
        ("lateness_p50_ms", json!(1.5)),
        ("lateness_p99_ms", json!(2.5)),
        ("lateness_max_ms", json!(3.5)),
        ("recorded_per_s", json!(480.0)),
        ("rate_ratio", json!(1.04)),
        ("recorded_depth_mean", json!(3.25)),
        ("achieved_depth_mean", json!(1.5)),
        ("causality_violations", json!(21)),
        ("reordered", json!(22)),
        ("folded", json!(23)),
        ("dropped", json!(24)),
        ("rounded", json!(25)),
        ("without_completion", json!(26)),
        ("description_hash", json!("cafe")),
        ("generator", json!("xoshiro256++")),
        ("version", json!("9.8.7")),
    ];
    assert_eq!(RUN_COLUMNS.len(), expected.len(), "a new column needs a figure here");
    for (name, value) in expected {
        let shown = cell(RUN_COLUMNS, &row, name);
        match value.as_f64().filter(|_| value.is_f64()) {
            // Percentiles are exact to within a bin of the histogram.
            Some(figure) => assert!((shown.as_f64().unwrap() / figure - 1.0).abs() < 0.000_6, "{name}: {shown}"),
            None => assert_eq!(shown, value, "{name}"),
        }
    }
    let kinds = ["system", "depth", "iops", "saturated"]
        .map(|name| RUN_COLUMNS.iter().find(|column| column.name == name).expect("a column").kind());
    assert_eq!(kinds, Kind::ALL);
    assert_eq!(kinds.map(|kind| kind.to_string()), ["text", "count", "figure", "flag"]);
    assert_eq!(json!(kept_cells(RUN_COLUMNS, &row))[5], json!(7), "cells in the order of the columns");
    let point = CurvePoint { load: 120.5, throughput_per_s: 500.0, response_ns: 500_500_000.0 };
    assert_eq!(row.curve_point(), point);
}

#[test]
fn a_run_that_measured_nothing_has_empty_cells_rather_than_zeros() {
    let mut result = measured(json!({}));
    (result.mode, result.duration_ns) = (Mode::Simulated, 0);
    result.checks = vec![Check { name: "Little's law".to_owned(), passed: true, detail: String::new() }];
    let row = Row::new(RunSettings::default(), result.clone());
    let empty = [
        "workload",
        "capacity_gb",
        "depth",
        "rate_per_s",
        "half_width_ms",
        "p50_ms",
        "stalls",
        "stalled_s",
        "mean_calm_ms",
        "iops_model_low",
        "model_level",
        "model_error",
        "utilization_percent",
        "bottleneck",
        "watts",
        "joules_per_request",
        "io_per_s_per_watt",
        "case_celsius",
        "read_hits",
        "mode",
        "lateness_p50_ms",
        "rate_ratio",
    ];
    empty.iter().for_each(|name| assert_eq!(cell(RUN_COLUMNS, &row, name), json!(null), "{name}"));
    let zero =
        [("requests", json!(0)), ("iops", json!(0.0)), ("checks_passed", json!(true)), ("saturated", json!(false))];
    assert_cells(RUN_COLUMNS, &row, &zero);
    // Only a measured device can stall: its count is 0 rather than empty.
    result.mode = Mode::Measured;
    assert_cells(RUN_COLUMNS, &Row::new(RunSettings::default(), result), &[("stalls", json!(0))]);
}

#[test]
fn bins_and_facts_have_a_row_each() {
    let bin = Bin { run: 3, system: "sda".to_owned(), kind: "read", figure: "service", middle_ns: 2_500_000, count: 9 };
    let expected = [
        ("run", json!(3)),
        ("system", json!("sda")),
        ("kind", json!("read")),
        ("figure", json!("service")),
        ("middle_ms", json!(2.5)),
        ("count", json!(9)),
    ];
    assert_cells(BIN_COLUMNS, &bin, &expected);
    let fact = Fact { name: "transactions/s".to_owned(), value: 88.5 };
    let row = FactRow { run: 3, system: "sda".to_owned(), stream: "log".to_owned(), fact };
    let expected = [
        ("run", json!(3)),
        ("system", json!("sda")),
        ("stream", json!("log")),
        ("name", json!("transactions/s")),
        ("value", json!(88.5)),
    ];
    assert_cells(FACT_COLUMNS, &row, &expected);
}
