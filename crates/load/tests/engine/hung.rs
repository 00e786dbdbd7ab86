//! Tests of targets that never answer, and of slow targets whose warm-up must be visible.

use std::sync::Arc;

use headstack_load::{EngineKind, Progress, Spec, Target, Time, run};
use serde_json::json;

use crate::engine::support::{KIB, MS, closed, job, requests, spec, time, virtual_job, workload};

/// Longer than any test waits, in ns.
const NEVER_NS: u64 = 1 << 50;

/// Returns a job on a target that never answers, and this target.
fn hung(depth: u32) -> (Spec, Arc<Target>) {
    let target = Arc::new(Target::null_in(Time::Virtual { late_ns: 0 }, 1 << 30));
    let engine = EngineKind::Null { service_ns: NEVER_NS };
    let job = job(&[Arc::clone(&target)], engine, workload(4 * KIB, 100.0, &closed(depth)), time(NEVER_NS));
    (spec(vec![job]), target)
}

#[test]
fn abandoned_requests_are_named() {
    let (spec, target) = hung(20);
    let mut told: Vec<Progress> = Vec::new();
    let result = run(&spec, &mut |now| {
        told.push(*now);
        // The first stop request ends the run; the second gives up the outstanding requests.
        if now.is_ending {
            target.give_up();
        }
        now.under_way < 20
    })
    .unwrap();
    assert_eq!(result.ended_early.as_deref(), Some("stopped by hand"));
    assert!(told.iter().any(|now| now.is_ending && now.under_way == 20), "{told:?}");
    assert_eq!(result.checks[0].detail, "20 in, 0 out, 20 given up");
    let note = result.notes.iter().find(|note| note.contains("had not completed")).expect("a note lists the requests");
    assert!(
        note.starts_with("20 requests had not completed when they were abandoned, as requested (20 reads): "),
        "{note}"
    );
    assert_eq!(note.matches("read of 4KiB at byte ").count(), 16, "{note}");
    assert_eq!(note.matches(" of null, ").count(), 16, "{note}");
    assert_eq!(note.matches(" s in flight").count(), 16, "{note}");
    assert!(note.ends_with("; and 4 more"), "{note}");
}

#[test]
fn a_counted_warm_up_takes_no_slow_targets_time_unseen() {
    let mut form = workload(4 * KIB, 100.0, &closed(1));
    form.warm_up = serde_json::from_value(json!({"requests": 500})).unwrap();
    // 500 requests would take 50 s.
    let result = run(&spec(vec![virtual_job(100 * MS, form, requests(1))]), &mut |_| true).unwrap();
    assert_eq!(result.count(), 1);
    assert_eq!(result.start_ns, 1000 * MS);
    let note = result.notes.iter().find(|note| note.starts_with("warm-up: ")).expect("a note about the warm-up");
    assert!(note.starts_with("warm-up: ended after 1.00 s with 10 of 500 requests, which are excluded"), "{note}");
}

#[test]
fn a_warm_up_is_reported() {
    let mut form = workload(4 * KIB, 100.0, &closed(1));
    form.warm_up = serde_json::from_value(json!({"requests": 7})).unwrap();
    let two = vec![virtual_job(MS, form.clone(), requests(1)), virtual_job(MS, form, requests(1))];
    let result = run(&spec(two), &mut |_| true).unwrap();
    let note = result
        .method_notes
        .iter()
        .find(|note| note.starts_with("warm-up, excluded: "))
        .expect("a note about the warm-up");
    assert!(note.starts_with("warm-up, excluded: 14 requests in ") && note.ends_with(" s"), "{note}");
    let none = run(&spec(vec![virtual_job(MS, workload(4 * KIB, 100.0, &closed(1)), requests(1))]), &mut |_| true);
    let none = none.unwrap();
    assert!(!none.notes.iter().chain(&none.method_notes).any(|note| note.starts_with("warm-up")));
}
