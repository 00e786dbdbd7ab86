//! Tests of writing runs whose target others begin to use meanwhile.

use std::sync::Arc;

use headstack_jobfiles::{Bounds, Content, Errors, Limits, Sync, Verify};
use headstack_load::{EngineKind, Job, Pass, Permission, Spec, Target, WRITING_STOPPED, run, stream};
use headstack_result::{RunResult, SystemRecord};
use headstack_workload::Kind;
use serde_json::{Value, json};

use crate::MIB;
use crate::bench::{Attached, Scratch, attach};

const MINUTE_NS: u64 = 60_000_000_000;

fn target(path: &str, write: bool) -> Arc<Target> {
    let permission = Permission { write, create_bytes: Some(MIB), overwrite: true, ..Permission::default() };
    Arc::new(Target::open(path, false, Sync::No, &permission, &|_| true).unwrap())
}

/// Runs one request at a time within these limits; calls `meanwhile` as soon as one request is complete.
fn ran(target: &Arc<Target>, limits: Limits, meanwhile: &mut dyn FnMut()) -> RunResult {
    let read_percent = if target.is_writable() { 0 } else { 100 };
    let workload = json!({
        "name": "test", "warm_up": {}, "arrivals": {"closed": {"queue_depth": 1}},
        "lines": [{"size": 4096, "read_percent": read_percent, "random_percent": 100, "align": 4096}],
    });
    let job = Job {
        name: "job".into(),
        targets: vec![Arc::clone(target)],
        span: None,
        workload: serde_json::from_value(workload).unwrap(),
        limits,
        engine: EngineKind::Auto,
        slots: 1,
        start_delay_ns: 0,
        seed: 7,
        invalidates_every_bytes: None,
        target_bytes_max: u64::MAX,
        rates_per_s: None,
        flow: None,
        errors: Errors::default(),
        content: Content::default(),
        bounds: Bounds::default(),
        flushes_at_end: false,
        times_handing_over: false,
        zones: None,
        verify: Verify::No,
    };
    let spec = Spec {
        system: SystemRecord::new("", "", Value::Null),
        workload: Value::Null,
        jobs: vec![job],
        seed: 7,
        interval_ns: None,
        ends_with_first: false,
        tells_streams: false,
        verification: None,
    };
    let mut is_done = false;
    run(&spec, &mut |now| {
        if now.completed > 0 && !is_done {
            is_done = true;
            meanwhile();
        }
        true
    })
    .unwrap()
}

fn count(result: &RunResult) -> u64 {
    result.kinds.all().iter().map(|(_, kind)| kind.count).sum()
}

#[track_caller]
fn assert_stopped(ended: Option<&str>, path: &str, why: &str) {
    let line = ended.expect("the run was stopped");
    assert!(line.starts_with(path) && line.contains(WRITING_STOPPED) && line.contains(why), "{line}");
    assert!(!line.contains('\n'), "{line}");
}

#[test]
fn a_run_stops_when_its_target_becomes_a_loop_device() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    let target = target(&path, true);
    let mut made: Option<Attached> = None;
    let limits = Limits { time_ns: Some(MINUTE_NS), ..Limits::default() };
    let result = ran(&target, limits, &mut || made = attach(&path));
    if made.is_none() {
        return;
    }
    assert_stopped(result.ended_early.as_deref(), &path, "it is behind loop");
    // The measurements up to that point are the result.
    assert!(count(&result) > 0 && result.duration_ns < MINUTE_NS, "{} ns", result.duration_ns);
    // The next run does not start writing either, except to find this out.
    let again = ran(&target, Limits { requests: Some(1), ..Limits::default() }, &mut || {});
    assert_stopped(again.ended_early.as_deref(), &path, "it is behind loop");
}

#[test]
fn a_run_that_is_over_at_once_is_looked_at_when_it_ends() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    let one = Limits { requests: Some(1), ..Limits::default() };
    let (writing, reading) = (target(&path, true), target(&path, false));
    assert_eq!(ran(&writing, one, &mut || {}).ended_early, None);
    let Some(made) = attach(&path) else { return };
    assert_stopped(ran(&writing, one, &mut || {}).ended_early.as_deref(), &path, "it is behind loop");
    // A run that only reads is not affected.
    assert_eq!(ran(&reading, one, &mut || {}).ended_early, None);
    drop(made);
    assert_eq!(ran(&writing, one, &mut || {}).ended_early, None);
}

#[test]
fn a_pass_over_a_module_is_looked_at_when_it_ends() {
    let scratch = Scratch::new();
    let path = scratch.path("file");
    let targets = vec![target(&path, true)];
    let pass = Pass {
        targets,
        engines: vec![EngineKind::Auto],
        kind: Kind::Write,
        block_bytes: 65_536,
        ahead: 2,
        device_bytes: u64::MAX,
        start_bytes: 0,
        interval_ns: 1_000_000,
    };
    let passed = || stream(&pass, &mut |_| {}, &mut |_| true).unwrap();
    assert_eq!(passed().ended_early, None);
    let Some(_made) = attach(&path) else { return };
    let passed = passed();
    assert_stopped(passed.ended_early.as_deref(), &path, "it is behind loop");
}
