//! Tests of files divided into zones, with real writes.

use std::sync::Arc;

use crate::engine::support::*;
use headstack_jobfiles::{Limits, Verify, Zoning};
use headstack_load::{EngineKind, Job, Target, run};
use headstack_result::RunResult;
use serde_json::json;

const ZONES: u64 = 8;
const UNIT: u32 = 16 * KIB;

fn zoning() -> Zoning {
    Zoning { size_bytes: Some(MIB), ..Zoning::default() }
}

fn tended(targets: &[Arc<Target>], read_percent: f64, random_percent: f64, limits: Limits, zones: Zoning) -> Job {
    let changes = json!({"arrivals": {"closed": {"queue_depth": 8}}, "line": {"random_percent": random_percent}});
    Job { zones: Some(zones), ..job(targets, EngineKind::Auto, workload(UNIT, read_percent, &changes), limits) }
}

fn counter(result: &RunResult, name: &str) -> u64 {
    result.counters.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
}

fn passes(count: f64) -> Limits {
    Limits { passes: Some(count), ..Limits::default() }
}

#[test]
fn jobs_that_share_zones_verify_writes_and_resets() {
    for engine in [EngineKind::Ring, EngineKind::Psync] {
        let file = TestFile::holes(ZONES * MIB);
        let target = file.open(true);
        let zones = Zoning { open_max: 3, ..zoning() };
        let random = tended(&[Arc::clone(&target)], 30.0, 100.0, requests(3000), zones);
        let sequential = tended(&[target], 0.0, 0.0, requests(1500), zones);
        let jobs = [random, sequential].map(|job| Job { engine, verify: Verify::StampAndRead, ..job });
        let result = run(&spec(jobs.into()), &mut |_| true).unwrap();
        assert_sound(&result);
        let integrity = result.integrity.as_ref().unwrap();
        assert_eq!((integrity.damaged, integrity.lost), (0, 0), "{:?}", integrity.findings);
        assert!(counter(&result, "zone_resets") > 3 * ZONES, "{} resets", counter(&result, "zone_resets"));
        assert!(counter(&result, "zone_reset_max_ns") > 0);
    }
}

#[test]
fn a_pass_writes_the_zone_capacity_and_reads_it_back() {
    let file = TestFile::holes(ZONES * MIB);
    let target = file.open(true);
    let zones = Zoning { capacity_bytes: Some(MIB / 2), ..zoning() };
    let result = run(&spec(vec![tended(&[Arc::clone(&target)], 0.0, 0.0, passes(1.0), zones)]), &mut |_| true).unwrap();
    assert_sound(&result);
    assert_eq!(result.kinds.write.bytes, ZONES * MIB / 2);
    assert_eq!(counter(&result, "zone_resets"), 0);
    let content = std::fs::read(&file.0).unwrap();
    for (zone, bytes) in content.chunks(MIB as usize).enumerate() {
        let (below, above) = bytes.split_at(MIB as usize / 2);
        assert!(below.chunks(UNIT as usize).all(|unit| unit.iter().any(|&byte| byte != 0)), "zone {zone} is full");
        assert!(above.iter().all(|&byte| byte == 0), "zone {zone} has nothing above its capacity");
    }
    let result = run(&spec(vec![tended(&[target], 100.0, 0.0, passes(1.0), zones)]), &mut |_| true).unwrap();
    assert_eq!(result.kinds.read.bytes, ZONES * MIB / 2);
}

#[test]
fn a_reader_of_empty_zones_ends_with_a_note() {
    let file = TestFile::holes(ZONES * MIB);
    let result = run(&spec(vec![tended(&[file.open(true)], 100.0, 100.0, requests(100), zoning())]), &mut |_| true);
    let result = result.unwrap();
    assert_eq!(result.kinds.read.count + result.kinds.read.errors, 0);
    assert!(result.notes.iter().any(|note| note.contains("its zones had no more data")), "{:?}", result.notes);
}

#[test]
fn zones_that_do_not_fit_are_refused() {
    let file = TestFile::holes(ZONES * MIB);
    let target = file.open(true);
    let refusal = |zones| {
        let job = tended(&[Arc::clone(&target)], 0.0, 100.0, requests(100), zones);
        run(&spec(vec![job]), &mut |_| true).unwrap_err().to_string()
    };
    assert!(refusal(Zoning::default()).contains("zonesize"), "{}", refusal(Zoning::default()));
    let large = Zoning { size_bytes: Some(9 * MIB), ..zoning() };
    assert!(refusal(large).contains("has room for 0 zones"), "{}", refusal(large));
    let full = Zoning { capacity_bytes: Some(2 * MIB), ..zoning() };
    assert!(refusal(full).contains("the capacity at most the size"), "{}", refusal(full));
}
