//! [`Measured`]: the results of individual threads, and how they are merged.

use std::collections::BTreeMap;

use headstack_result::{
    Check, Counter, DepthResult, Estimate, Fact, Interval, Kinds, LatencyHistogram, Mode, RunResult, Sampling, Stalls,
    StreamResult, SystemRecord, TooShort,
};
use headstack_workload::quantity::{counted, format_bytes};
use headstack_workload::{GENERATOR_NAME, Kind};
use serde_json::Value;

use crate::error_log::ErrorLog;
use crate::load_loop::{LoadLoop, LostRequest, PATIENCE_NS, WarmedUp, WorkerSpec, with_errors};
use crate::samples::Samples;
use crate::stamping::Checked;
use crate::target::Target;
use crate::usage::Usage;
use crate::worker::LoopStats;

/// Queue depths that separate the classes in which a thread's time is counted: powers of two, as in fio's
/// `iodepth_level`.
const DEPTHS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Maximum number of lost requests that are reported individually.
const LOST_TOLD: usize = 16;

/// Results of one thread.
pub struct Measured {
    name: String,
    kinds: Kinds,
    /// Result of the load loop.
    pub result: RunResult,
    loop_stats: LoopStats,
    error_log: ErrorLog,
    usage: Usage,
    /// Error number of the violated limit that ended the thread.
    errno: Option<i32>,
    samples: Samples,
    issued: u64,
    completed: u64,
    /// Requests that never completed.
    pub lost: Vec<LostRequest>,
    warmed_up: WarmedUp,
    engine: String,
    /// Reason why another engine than the usual one submitted the requests.
    instead_of: Option<String>,
    interval_ns: Option<u64>,
    /// Notes on the thread's targets.
    targets: Vec<String>,
    /// Counters of zone operations.
    zones: Vec<Counter>,
    /// Verdicts on the reads, if they were verified.
    pub integrity: Option<Checked>,
}

/// Start and end of a run.
pub struct Ran {
    /// Start of the first thread, in ns.
    pub began_ns: u64,
    /// Whether the user stopped the run.
    pub by_somebody: bool,
    /// Use of a target by another process that began during the run.
    pub in_use: Option<String>,
}

/// Collects the results of a thread. Its load loop must have no request in flight, or must have abandoned the lost
/// ones.
pub fn gather(
    worker: &WorkerSpec,
    load_loop: LoadLoop,
    loop_stats: LoopStats,
    usage: Usage,
    all_back: bool,
) -> Measured {
    let nothing = SystemRecord::new("", "", Value::Null);
    let mut result = RunResult::new(Mode::Measured, nothing, Value::Null, worker.seed, GENERATOR_NAME);
    let (errors, error_log, engine) = (load_loop.errors, load_loop.error_log.clone(), load_loop.engine());
    let instead_of = load_loop.instead_of();
    let (issued, completed) = (load_loop.issued, load_loop.completed);
    let errno = load_loop.broken.as_ref().map(|broken| broken.errno);
    let zones = load_loop.zone_counters();
    let mut load_loop = load_loop;
    let mut samples = std::mem::take(&mut load_loop.samples);
    if let Some(measuring) = load_loop.measuring.take() {
        samples.end(measuring.end_ns.unwrap_or(load_loop.now_ns), measuring.kinds());
        measuring.write_to(&mut result);
    }
    load_loop.store_counts();
    let integrity = load_loop.take_integrity();
    let (lost, warmed_up) = (load_loop.lost(), load_loop.warmed_up);
    assert_eq!(lost.len() as u64, issued - completed, "every issued request either completed or is lost");
    let handing_over = load_loop.handing_over.take();
    if !all_back {
        load_loop.into_engine().abandon();
    }
    let mut kinds = with_errors(std::mem::take(&mut result.kinds), &errors);
    if let Some(handing_over) = handing_over {
        handing_over
            .into_iter()
            .enumerate()
            .for_each(|(kind, times)| kinds.of(kind).handing_over = Some(Box::new(times)));
    }
    Measured {
        name: worker.name.to_owned(),
        kinds,
        result,
        loop_stats,
        error_log,
        usage,
        errno,
        samples,
        issued,
        completed,
        lost,
        warmed_up,
        engine,
        instead_of,
        interval_ns: worker.interval_ns,
        zones,
        targets: worker.targets.iter().flat_map(|target| target_notes(target)).collect(),
        integrity,
    }
}

/// Merges the results of all threads.
pub fn join(system: &SystemRecord, load: &Value, seed: u64, all: &[Measured], ran: &Ran) -> RunResult {
    let Ran { began_ns, by_somebody, ref in_use } = *ran;
    let mut result = RunResult::new(Mode::Measured, system.clone(), load.clone(), seed, GENERATOR_NAME);
    // The times of a job that never finished its warm-up are meaningless.
    let spans = || all.iter().filter(|one| one.result.duration_ns > 0).map(|one| &one.result);
    let start_ns = spans().map(|one| one.start_ns).min().unwrap_or(0);
    let end_ns = spans().map(|one| one.start_ns + one.duration_ns).max().unwrap_or(start_ns);
    result.duration_ns = end_ns - start_ns;
    result.start_ns = start_ns.saturating_sub(began_ns);
    join_depths(&mut result, all);
    join_intervals(&mut result, all, began_ns, all.first().and_then(|one| one.interval_ns));
    join_sampling(&mut result, all);
    let since_began = all.iter().filter_map(|one| Some((-(began_ns as i64), one.result.stalls.as_ref()?)));
    result.stalls = Stalls::joined(since_began);
    let (mut error_log, mut usage, mut lateness) = (ErrorLog::default(), Usage::default(), LatencyHistogram::new());
    for one in all {
        result.kinds.merge(&one.kinds);
        result.late_arrivals += one.loop_stats.late_arrivals;
        result.backlog += one.loop_stats.backlog + one.lost.len() as u64;
        result.saturated |= one.loop_stats.saturated;
        lateness.merge(&one.loop_stats.lateness);
        error_log.merge(one.error_log.clone());
        usage.add(&one.usage);
    }
    result.counters = usage.counters();
    result.counters.extend(lateness_counters(&lateness));
    result.counters.extend(zone_counters(all));
    result.streams = streams(all);
    if result.streams.len() < 2 {
        result.streams.clear();
    }
    result.checks = checks(all);
    result.method_notes = method_notes(all);
    result.notes = notes(all, &error_log, &lateness);
    result.integrity = checked(all).map(Checked::integrity);
    let by_hand = || by_somebody.then(|| "stopped by hand".to_owned());
    let has_hung = || all.iter().any(|one| !one.lost.is_empty()).then(|| "requests never completed".to_owned());
    result.ended_early = error_log.fatal.or_else(|| in_use.clone()).or_else(by_hand).or_else(has_hung);
    result
}

fn join_depths(result: &mut RunResult, all: &[Measured]) {
    if let [only] = all {
        result.depth = only.result.depth.clone();
        return;
    }
    let weight = |one: &Measured| one.result.duration_ns as f64 / (result.duration_ns as f64).max(1.0);
    result.depth = DepthResult {
        mean: all.iter().map(|one| one.result.depth.mean * weight(one)).sum(),
        max: all.iter().map(|one| one.result.depth.max).sum(),
        time_at_depth_ns: Vec::new(),
    };
}

fn join_intervals(result: &mut RunResult, all: &[Measured], began_ns: u64, interval_ns: Option<u64>) {
    let each = all.iter().flat_map(|one| one.result.intervals.iter());
    let since_began = each.map(|interval| (interval.start_ns.saturating_sub(began_ns), interval));
    result.intervals = joined_intervals(since_began, interval_ns);
}

/// Merges the intervals of several results. Each result has a start on the common clock, which is rounded to the
/// nearest interval of the result that began first. Most begin within microseconds of each other, some after a delay or
/// a longer warm-up.
pub fn joined_intervals<'a>(
    each: impl Iterator<Item = (u64, &'a Interval)> + Clone,
    interval_ns: Option<u64>,
) -> Vec<Interval> {
    let interval_ns = interval_ns.unwrap_or(u64::MAX).max(1);
    let Some(first_ns) = each.clone().map(|(start_ns, _)| start_ns).min() else { return Vec::new() };
    let mut joined: BTreeMap<u64, (Interval, LatencyHistogram)> = BTreeMap::new();
    for (start_ns, interval) in each {
        let index = (start_ns - first_ns).saturating_add(interval_ns / 2) / interval_ns;
        let (sum, latency) = joined
            .entry(index)
            .or_insert_with(|| (Interval { start_ns, ..Interval::default() }, LatencyHistogram::new()));
        sum.count += interval.count;
        sum.bytes += interval.bytes;
        sum.duration_ns = sum.duration_ns.max(interval.duration_ns);
        latency.merge(&interval.latency.open());
    }
    joined.into_values().map(|(sum, latency)| Interval { latency: latency.store(), ..sum }).collect()
}

/// Merges the sampling errors of the mean. Threads share devices, so a slow period affects all of them; in the worst
/// case their errors add up.
fn join_sampling(result: &mut RunResult, all: &[Measured]) {
    if let [only] = all {
        result.sampling = only.result.sampling.clone();
        return;
    }
    result.sampling = Sampling::nothing(TooShort::SeveralThreads);
    let count = |one: &Measured| one.kinds.all().iter().map(|(_, kind)| kind.count).sum::<u64>() as f64;
    let total: f64 = all.iter().map(count).sum();
    let (mut low_ns, mut high_ns) = (0.0, 0.0);
    for one in all.iter().filter(|one| count(one) > 0.0) {
        match one.result.sampling.mean {
            Estimate::Between { low_ns: low, high_ns: high } => {
                low_ns += low * count(one) / total;
                high_ns += high * count(one) / total;
            }
            too_short @ Estimate::TooShort(_) => {
                result.sampling.mean = too_short;
                return;
            }
        }
        result.sampling.warm_up_requests += one.result.sampling.warm_up_requests;
    }
    if total > 0.0 {
        result.sampling.mean = Estimate::Between { low_ns, high_ns };
    }
}

fn lateness_counters(lateness: &LatencyHistogram) -> Vec<Counter> {
    let counter = |name: &str, value| Counter { name: name.to_owned(), value };
    if lateness.count() == 0 {
        return Vec::new();
    }
    vec![
        counter("issue_lateness_p50_ns", lateness.quantile_ns(0.5).unwrap_or(0)),
        counter("issue_lateness_p99_ns", lateness.quantile_ns(0.99).unwrap_or(0)),
        counter("issue_lateness_max_ns", lateness.max_ns()),
    ]
}

/// Merges the zone counters of all threads: counts are added, and the maximum of the times is kept.
fn zone_counters(all: &[Measured]) -> Vec<Counter> {
    let mut counters: Vec<Counter> = Vec::new();
    for Counter { name, value } in all.iter().flat_map(|one| &one.zones) {
        match counters.iter_mut().find(|known| known.name == *name) {
            Some(known) if name.ends_with("_ns") => known.value = known.value.max(*value),
            Some(known) => known.value += value,
            None => counters.push(Counter { name: name.clone(), value: *value }),
        }
    }
    counters
}

/// Returns the results per job. Threads with the same name belong to one job.
pub fn streams(all: &[Measured]) -> Vec<StreamResult> {
    let mut names: Vec<&str> = Vec::new();
    for one in all {
        if !names.contains(&one.name.as_str()) {
            names.push(&one.name);
        }
    }
    let text = |name: &str| {
        let (mut kinds, mut usage, mut samples) = (Kinds::default(), Usage::default(), Samples::default());
        let (mut duration_ns, mut threads_ns, mut threads) = (0, 0, 0u32);
        let mut depth_ns = [0; DEPTHS.len()];
        for one in all.iter().filter(|one| one.name == name) {
            kinds.merge(&one.kinds);
            usage.add(&one.usage);
            samples.merge(&one.samples);
            duration_ns = duration_ns.max(one.result.duration_ns);
            threads_ns += one.result.duration_ns;
            threads += 1;
            one.result.depth.time_at_depth_ns.iter().enumerate().skip(1).for_each(|(depth, time_ns)| {
                depth_ns[DEPTHS.partition_point(|least| *least <= depth) - 1] += time_ns;
            });
        }
        let fact = |name: &str, value: f64| Fact { name: name.to_owned(), value };
        let mut facts = vec![fact("duration_s", duration_ns as f64 / 1e9)];
        let errno = all.iter().filter(|one| one.name == name).find_map(|one| one.errno);
        facts.extend(errno.map(|errno| fact("errno", f64::from(errno))));
        facts.push(fact("threads", f64::from(threads)));
        facts.push(fact("threads_s", threads_ns as f64 / 1e9));
        facts.extend(usage.facts());
        let at_depths = DEPTHS.iter().zip(depth_ns).filter(|(_, time_ns)| *time_ns > 0);
        facts.extend(at_depths.map(|(depth, time_ns)| fact(&format!("depth_{depth}_s"), time_ns as f64 / 1e9)));
        facts.extend(samples.facts());
        StreamResult { name: name.to_owned(), kinds, facts }
    };
    names.into_iter().map(text).collect()
}

/// Returns the merged verdicts on the reads of all threads; `None` if nothing was verified.
pub fn checked(all: &[Measured]) -> Option<Checked> {
    all.iter().filter_map(|one| one.integrity.clone()).reduce(Checked::and)
}

fn checks(all: &[Measured]) -> Vec<Check> {
    let (issued, completed) = all.iter().fold((0, 0), |sum, one| (sum.0 + one.issued, sum.1 + one.completed));
    // Every lost request is listed, so none goes unnoticed.
    let given_up: u64 = all.iter().map(|one| one.lost.len() as u64).sum();
    let text = if given_up > 0 { format!(", {given_up} given up") } else { String::new() };
    let conserved = Check {
        name: "requests in = requests out".to_owned(),
        passed: issued == completed + given_up,
        detail: format!("{issued} in, {completed} out{text}"),
    };
    let own = all.iter().flat_map(|one| one.result.checks.iter());
    let failed = own.clone().find(|check| !check.passed).or_else(|| own.clone().next());
    std::iter::once(conserved).chain(failed.cloned()).collect()
}

/// Returns the notes on how the requests were made.
fn method_notes(all: &[Measured]) -> Vec<String> {
    let usual = all.first().filter(|first| first.instead_of.is_none());
    let mut notes: Vec<String> = usual.map(|first| first.engine.clone()).into_iter().collect();
    if all.len() > 1 {
        notes.push(format!("{} threads: the queue depth is the sum over threads, without a distribution", all.len()));
    }
    let WarmedUp { requests, requests_asked, time_ns } = warmed_up(all);
    if time_ns > 0 && requests >= requests_asked {
        notes.push(format!("warm-up, excluded: {} in {:.2} s", counted(requests, "request"), time_ns as f64 / 1e9));
    }
    notes
}

/// Returns the notes that may require action.
fn notes(all: &[Measured], error_log: &ErrorLog, lateness: &LatencyHistogram) -> Vec<String> {
    let mut notes = Vec::new();
    let instead = |first: &Measured| Some(format!("{}: {}", first.instead_of.as_ref()?, first.engine));
    notes.extend(all.first().and_then(instead));
    if error_log.count > 0 {
        notes.push(format!(
            "{} failed; the first: {}",
            counted(error_log.count, "request"),
            error_log.first.join("; ")
        ));
    }
    let lost: Vec<LostRequest> = all.iter().flat_map(|one| one.lost.iter().cloned()).collect();
    notes.extend(describe_lost(&lost));
    notes.extend(describe_short_warm_up(all));
    for text in all.iter().flat_map(|one| &one.targets) {
        if !notes.contains(text) {
            notes.push(text.clone());
        }
    }
    all.iter().flat_map(|one| &one.loop_stats.notes).for_each(|note| notes.push(note.clone()));
    let late_ns = lateness.quantile_ns(0.99).unwrap_or(0);
    if late_ns > 1_000_000 {
        notes.push(format!("headstack issued 1 % of the requests more than {:.1} ms late", late_ns as f64 / 1e6));
    }
    notes
}

/// Describes the lost requests in one line: the number of each kind, and the oldest requests individually.
pub fn describe_lost(lost: &[LostRequest]) -> Option<String> {
    let when = match lost.first()?.as_asked {
        true => "when they were abandoned, as requested".to_owned(),
        false => format!("{} s after the end and were abandoned", PATIENCE_NS / 1_000_000_000),
    };
    let count = |kind: Kind| lost.iter().filter(|one| one.request.kind == kind).count();
    let counts = Kind::ALL.iter().filter(|&&kind| count(kind) > 0).map(|&kind| match count(kind) {
        1 => format!("1 {}", kind.name()),
        count if kind == Kind::Flush => format!("{count} flushes"),
        count => format!("{count} {}s", kind.name()),
    });
    let counts = counts.collect::<Vec<_>>().join(", ");
    let mut oldest: Vec<&LostRequest> = lost.iter().collect();
    oldest.sort_by_key(|one| std::cmp::Reverse(one.age_ns));
    let text = oldest.iter().take(LOST_TOLD).map(|LostRequest { target, request, age_ns, .. }| {
        let what = match request.kind {
            Kind::Flush => format!("flush of {target}"),
            kind => {
                let (length, offset) = (format_bytes(request.length_bytes.into()), request.offset_bytes);
                format!("{} of {length} at byte {offset} of {target}", kind.name())
            }
        };
        format!("{what}, {:.2} s in flight", *age_ns as f64 / 1e9)
    });
    let text = text.collect::<Vec<_>>().join("; ");
    let more = match lost.len().saturating_sub(LOST_TOLD) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Some(format!("{} had not completed {when} ({counts}): {text}{more}", counted(lost.len() as u64, "request")))
}

/// Returns the requests of the warm-up of all threads, and the longest time.
fn warmed_up(all: &[Measured]) -> WarmedUp {
    all.iter().map(|one| one.warmed_up).fold(WarmedUp::default(), |sum, one| WarmedUp {
        requests: sum.requests + one.requests,
        requests_asked: sum.requests_asked + one.requests_asked,
        time_ns: sum.time_ns.max(one.time_ns),
    })
}

/// Describes a warm-up that ended before all its requests completed.
fn describe_short_warm_up(all: &[Measured]) -> Option<String> {
    let WarmedUp { requests, requests_asked, time_ns } = warmed_up(all);
    let seconds = time_ns as f64 / 1e9;
    (time_ns > 0 && requests < requests_asked).then(|| {
        format!(
            "warm-up: ended after {seconds:.2} s with {requests} of {requests_asked} requests, which are excluded; set a \
             time, such as 10s, for a longer warm-up"
        )
    })
}

/// Returns the notes on a target.
fn target_notes(target: &Target) -> Vec<String> {
    target.notes().iter().map(|note| format!("{}: {note}", target.name())).collect()
}
