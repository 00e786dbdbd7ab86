//! Tests that results of every schema version can be read. `fixtures/schema-N.json` was written by a headstack of that
//! time.

use std::fs;
use std::path::Path;

use headstack_result::{ResultError, RunResult, SCHEMA_VERSION, Sampling, SystemRecord, TooShort};
use serde_json::{Value, json};

fn fixture(version: u32) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/schema-{version}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("a fixture is valid JSON")
}

/// Lists the values of `old` that are missing in `new`. Additional values in `new` come from upgrades.
fn lost(old: &Value, new: &Value, at: &str, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                match new.get(key) {
                    Some(other) => lost(value, other, &format!("{at}/{key}"), found),
                    None => found.push(format!("{at}/{key}")),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (value, other)) in old.iter().zip(new).enumerate() {
                lost(value, other, &format!("{at}/{index}"), found);
            }
        }
        _ if old != new => found.push(at.to_owned()),
        _ => {}
    }
}

/// Returns a result with the current names of the keys that schema 7 renamed.
fn with_current_names(result: Value) -> Value {
    let text =
        result.to_string().replace("\"response\":", "\"latency\":").replace("\"outstanding\":", "\"queue_depth\":");
    serde_json::from_str(&text).expect("only names changed")
}

#[test]
fn keys_that_schema_7_renamed_are_read() {
    let mut old = fixture(6);
    old["system"]["description"] = json!({"array": {"groups": [{"stripe_unit_bytes": 65_536, "members": [0]}]}});
    let range = json!({"low": 1.0, "high": 2.0});
    old["model_error"] = json!({
        "level": 0.9, "learnt_from": "", "throughput_per_s": null,
        "mean_response_ns": range, "p50_response_ns": null, "p99_response_ns": null,
    });
    let stall = json!({"start_ns": 5, "duration_ns": 200_000_000, "outstanding": 3});
    old["stalls"] = json!({"longest": [stall], "response": old["kinds"]["read"]["response"]});
    let read = RunResult::from_json(&old.to_string()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.system.description["array"]["groups"][0], json!({"chunk_bytes": 65_536, "members": [0]}));
    let again = SystemRecord::new("", "", read.system.description.as_ref().clone());
    assert_eq!(read.system.hash, again.hash, "the hash is that of the description with current names");
    let model = read.model_error.as_ref().expect("the result has one");
    assert_eq!((model.mean_latency_ns.map(|range| range.high), model.p99_latency_ns), (Some(2.0), None));
    let stalls = read.stalls.as_ref().expect("the result has some");
    assert_eq!((stalls.latency.open(), stalls.longest[0].queue_depth), (read.kinds.read.latency.clone(), 3));
}

#[test]
fn queue_depths_of_earlier_workloads_and_scenarios_are_read() {
    let mut old = fixture(6);
    let scenario = |name: &str| {
        json!({"pool": {"closed": {name: 15}}, "streams": [
            {"access": {"arrivals": {"closed": {name: 2, "think": {"fixed": "1ms"}}}}},
            {"boot": {"phases": [{"requests": 9, name: 3}, {"requests": 9, name: 4}]}},
            {"prefill": {name: 5}}, {"sequential": {name: 6}}, {"video": {name: 7}},
            {"settings": {"outstanding": "8"}},
        ]})
    };
    old["workload"] = scenario("outstanding");
    let read = RunResult::from_json(&old.to_string()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.workload, scenario("queue_depth"), "keys of other tables stay");
}

#[test]
fn notes_on_the_method_of_earlier_results_are_split_off() {
    let method = [
        "requests were submitted by io_uring",
        "4 threads: the queue depth is the sum over threads, without a distribution",
        "warm-up, excluded: 14 requests in 0.10 s",
        "the trees, 120 files, were prepared in 0.31 s",
        "/tmp/mail: removed 120 files, 7 directories",
        "/tmp/data: verified 1.5 MB of written data in 0.02 s",
    ];
    let others = [
        "io_uring is not available (ENOSYS): requests were submitted by psync",
        "warm-up: ended after 60.00 s with 3 of 200 requests, which are excluded; set a time",
        "3 requests failed; the first: EIO",
    ];
    let mut old = fixture(6);
    old["notes"] = method.iter().chain(&others).copied().collect();
    let read = RunResult::from_json(&old.to_string()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        (read.method_notes, read.notes),
        (method.map(str::to_owned).to_vec(), others.map(str::to_owned).to_vec())
    );
}

#[test]
fn every_schema_version_is_read_without_loss() {
    for version in 1..=SCHEMA_VERSION {
        let old = fixture(version);
        assert_eq!(old["schema"], version);
        let read = RunResult::from_json(&old.to_string()).unwrap_or_else(|error| panic!("schema {version}: {error}"));
        assert_eq!((read.schema, read.count()), (SCHEMA_VERSION, 100), "schema {version}");
        assert!(read.mean_latency_ns() > 0.0 && read.quantile_ns(0.99) > read.quantile_ns(0.5));
        let written = read.to_json().expect("a result that was read can be written");
        let new = serde_json::from_str(&written).expect("the output is valid JSON");
        let mut found = Vec::new();
        let old = with_current_names(old);
        lost(&old, &new, "", &mut found);
        let expected: &[&str] = match version {
            7 => &[],
            5 | 6 => &["/schema"],
            // Sampling errors are reliable since schema 5.
            _ => &["/mean_response_half_width_ns", "/schema"],
        };
        assert_eq!(found, expected, "schema {version}");
        assert_eq!(RunResult::from_json(&written).expect("the output has the current schema"), read);
    }
}

#[test]
fn what_old_versions_did_not_know_is_unknown() {
    let first = RunResult::from_json(&fixture(1).to_string()).expect("a result of schema 1 can be read");
    assert!(!first.components.is_empty());
    assert!(first.components.iter().all(|component| (component.servers, component.waited_ns) == (1, 0)));
    assert!(
        first.streams.is_empty() && first.energy.is_none() && first.fidelity.is_none() && first.integrity.is_none()
    );
    assert_eq!(first.sampling, Sampling::nothing(TooShort::NotKept));
}

#[test]
fn versions_that_are_not_known_are_refused() {
    for version in [0, u64::from(SCHEMA_VERSION) + 1, u64::MAX] {
        let mut result = fixture(SCHEMA_VERSION);
        result["schema"] = version.into();
        let error = RunResult::from_json(&result.to_string()).expect_err("the version is unknown");
        assert!(matches!(error, ResultError::Schema { found } if found == version));
        let expected = format!("result: schema {version}; this version reads schemas 1 to {SCHEMA_VERSION}");
        assert_eq!(error.to_string(), expected);
    }
}
