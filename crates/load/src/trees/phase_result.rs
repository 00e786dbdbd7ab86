//! Merges the results of the threads of a phase.

use std::time::Duration;

use headstack_result::{
    Check, Counter, Fact, Interval, KindResult, LatencyHistogram, Mode, RunResult, Sampling, StreamResult,
    SystemRecord, TooShort, piles_up,
};
use headstack_workload::GENERATOR_NAME;
use serde_json::{Value, json};

use super::contents::Judged;
use super::pace::Paces;
use super::shape::SECTOR_BYTES;
use super::spec::TreeSpec;
use super::steps::{Step, Steps};
use super::worker::{Grown, ThreadResults};
use crate::measured::Ran;
use crate::usage::Usage;

/// Returns the result of a phase, in which reads, writes and flushes also count as requests.
pub fn phase_result(
    spec: &TreeSpec,
    paces: &Paces,
    dones: Vec<(usize, ThreadResults)>,
    ran: &Ran,
    notes: Vec<String>,
) -> RunResult {
    let phase = &spec.phase;
    let anchors: Vec<&str> = phase.trees.iter().map(|tree| tree.anchor.as_str()).collect();
    let system = SystemRecord::new(anchors.join(", "), "folder", json!({ "trees": phase.trees }));
    let workload = json!({ "name": phase.name, "trees": phase });
    let mut result = RunResult::new(Mode::Measured, system, workload, spec.seed, GENERATOR_NAME);
    result.notes = notes;
    result.sampling = Sampling::nothing(TooShort::FileOperations);
    let Some(end_ns) = dones.iter().map(|(_, done)| done.end_ns).max() else { return result };
    result.start_ns = phase.warm_up_ns;
    result.duration_ns = (end_ns.saturating_sub(paces.start_ns())).saturating_sub(phase.warm_up_ns).min(phase.time_ns);
    let (mut steps, mut usage, mut judged) = (Steps::default(), Usage::default(), Judged::default());
    let (mut first, mut failed, mut opened, mut closed) = (Vec::new(), 0, 0, 0);
    let mut by_load: Vec<(Steps, Usage, u32)> = phase.loads.iter().map(|_| Default::default()).collect();
    let mut intervals: Vec<(Interval, LatencyHistogram)> = Vec::new();
    for (number, done) in dones {
        let (own, own_usage, threads) = &mut by_load[number];
        own.merge(&done.steps);
        own_usage.add(&done.usage);
        *threads += 1;
        steps.merge(&done.steps);
        usage.add(&done.usage);
        judged.merge(done.judged);
        merge_intervals(&mut intervals, done.intervals);
        result.late_arrivals += if phase.rate_per_s.is_some() { done.late } else { 0 };
        first.extend(done.failures.0);
        failed += done.failures.1;
        (opened, closed) = (opened + done.opened, closed + done.closed);
        result.notes.extend(done.note.filter(|note| !result.notes.contains(note)));
        if let Some(fatal) = done.fatal {
            result.ended_early.get_or_insert(fatal);
        }
    }
    into_kinds(&steps, &mut result);
    result.operations = steps.operation_results();
    result.streams =
        phase.loads.iter().zip(&by_load).map(|(load, loads_results)| stream(&load.name, loads_results)).collect();
    if result.streams.len() < 2 {
        result.streams.clear();
    }
    result.intervals =
        intervals.into_iter().map(|(sum, latency)| Interval { latency: latency.store(), ..sum }).collect();
    result.counters = usage.counters();
    result.offered_per_s = phase.rate_per_s;
    if let Some(rate_per_s) = phase.rate_per_s {
        result.backlog = paces.backlog(end_ns);
        let arrived = rate_per_s * (phase.warm_up_ns + result.duration_ns) as f64 / 1e9;
        result.saturated = piles_up(result.backlog, arrived as u64);
        result.counters.push(Counter { name: "operations_not_begun".to_owned(), value: result.backlog });
    }
    if failed > 0 {
        first.truncate(4);
        result.notes.push(format!("{failed} operations failed; the first: {}", first.join("; ")));
    }
    if ran.by_somebody {
        result.ended_early.get_or_insert("stopped by hand".to_owned());
    }
    result.integrity = phase.verify.then_some(judged.report);
    result.checks = vec![Check {
        name: "files opened = files closed".to_owned(),
        // If a copy fails, its files are closed without being counted.
        passed: opened == closed || failed > 0,
        detail: format!("{opened} opened or created, {closed} closed"),
    }];
    result
}

/// Returns the result of checking a tree without a load.
pub fn judged_alone(tree: &Grown, judged: Judged, took: Duration) -> RunResult {
    let system = SystemRecord::new(tree.place.name(), "folder", Value::Null);
    let workload = json!({ "name": "verify" });
    let mut result = RunResult::new(Mode::Measured, system, workload, 0, GENERATOR_NAME);
    result.duration_ns = took.as_nanos() as u64;
    result.kinds.read.bytes = (judged.report.checked - judged.report.lost.min(judged.report.checked)) * SECTOR_BYTES;
    result.integrity = Some(judged.report);
    result
}

fn into_kinds(steps: &Steps, result: &mut RunResult) {
    let take = |step| -> KindResult { steps.get(step).clone() };
    (result.kinds.read, result.kinds.write, result.kinds.flush) =
        (take(Step::Read), take(Step::Write), take(Step::Flush));
}

fn stream(name: &str, (steps, usage, threads): &(Steps, Usage, u32)) -> StreamResult {
    let mut stream = StreamResult { name: name.to_owned(), ..StreamResult::default() };
    let take = |step| -> KindResult { steps.get(step).clone() };
    (stream.kinds.read, stream.kinds.write, stream.kinds.flush) =
        (take(Step::Read), take(Step::Write), take(Step::Flush));
    let fact = |name: String, value: f64| Fact { name, value };
    stream.facts.push(fact("threads".to_owned(), f64::from(*threads)));
    stream.facts.extend(usage.facts());
    for one in steps.operation_results() {
        stream.facts.push(fact(format!("{}_count", one.name), one.count as f64));
        stream.facts.push(fact(format!("{}_mean_ms", one.name), one.latency.mean_ns() / 1e6));
    }
    stream
}

fn merge_intervals(all: &mut Vec<(Interval, LatencyHistogram)>, own: Vec<(Interval, LatencyHistogram)>) {
    for (index, (interval, latency)) in own.into_iter().enumerate() {
        match all.get_mut(index) {
            Some((sum, joined)) => {
                sum.count += interval.count;
                sum.bytes += interval.bytes;
                joined.merge(&latency);
            }
            None => all.push((interval, latency)),
        }
    }
}
