//! Tests cells of the result tables against values computed by hand.

use headstack_result::columns::{Cell, Column};
use headstack_result::tables::{
    INTERVAL_COLUMNS, IntervalRow, OPERATION_COLUMNS, OperationRow, RUN_COLUMNS, Row, RunSettings, STREAM_COLUMNS,
    StreamRow,
};
use headstack_result::{
    Counter, Estimate, Fidelity, Interval, KindResult, Kinds, LatencyHistogram, Mode, OperationResult, Percentile,
    RunResult, Stall, Stalls, StreamResult, SystemRecord, TooShort,
};
use serde_json::{Value, json};

fn cell<R>(columns: &[Column<R>], row: &R, name: &str) -> Value {
    match columns.iter().find(|column| column.name == name).expect("the table has the column").cell {
        Cell::Text(of) => json!(of(row)),
        Cell::Count(of) => json!(of(row)),
        Cell::Figure(of) => json!(of(row)),
        Cell::Flag(of) => json!(of(row)),
    }
}

fn assert_cells<R>(columns: &[Column<R>], row: &R, expected: &[(&str, Value)]) {
    for (name, value) in expected {
        assert_eq!(cell(columns, row, name), *value, "{name}");
    }
}

/// Returns `count` response times of 1 ms.
fn milliseconds(count: u64) -> LatencyHistogram {
    let mut response = LatencyHistogram::new();
    (0..count).for_each(|_| response.record(1_000_000));
    response
}

/// Returns a measurement of two seconds.
fn measured(workload: Value) -> RunResult {
    let system = SystemRecord::new("sda", "target", json!({}));
    let mut result = RunResult::new(Mode::Measured, system, workload, 7, "xoshiro256++");
    result.duration_ns = 2_000_000_000;
    result
}

fn kind(count: u64) -> KindResult {
    KindResult { count, bytes: count * 4_000, response: milliseconds(count), ..KindResult::default() }
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
    let (name, response) = ("create".to_owned(), milliseconds(50));
    let operation = OperationResult { name, count: 50, errors: 2, bytes: 8_000_000, response };
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
    interval.response = milliseconds(100).store();
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
    let closed = json!({"arrivals": {"closed": {"outstanding": 16}}});
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
    result.kinds.read.response.record(900_000_000);
    let mut response = LatencyHistogram::new();
    response.record(900_000_000);
    let longest = vec![Stall { start_ns: 5, duration_ns: 800_000_000, outstanding: 1 }];
    result.stalls = Some(Stalls { longest, response: response.store() });
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
    let expected = [("mean_low_ms", json!(null)), ("sampling", json!("run too short: fewer than 64 requests"))];
    assert_cells(RUN_COLUMNS, &row, &expected);
}
