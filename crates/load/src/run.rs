//! A measurement: jobs at the same time, each in a thread of its own.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::Thread;
use std::time::Duration;

use headstack_result::{
    Check, Counter, DepthResult, Fact, Interval, Kinds, LatencyHistogram, Mode, RunResult, StreamResult, SystemRecord,
};
use headstack_workload::jobs::Verify;
use headstack_workload::{Arrivals, GENERATOR_NAME};
use serde_json::Value;

use crate::LoadError;
use crate::clock::{LOOK_NS, now_ns, quicken, sharpen_timers, sleep_until};
use crate::engine::{Engine, Setup};
use crate::job::Job;
use crate::live::{Live, Progress};
use crate::log::Log;
use crate::rig::{Rig, Seat, with_errors};
use crate::samples::Samples;
use crate::stamping::Checked;
use crate::trouble::Trouble;
use crate::usage::Usage;
use crate::verification::{LedgerPlace, Verification, begin};
use crate::verify::finish;
use crate::waker::Waker;
use crate::worker::{Loop, work};

/// Between two reports of progress.
const REPORT_EVERY: Duration = Duration::from_millis(50);
/// What has not come back this long after the end is given up.
pub const PATIENCE_NS: u64 = 10_000_000_000;

/// Depths from which on a thread's time is told apart: powers of two, as in fio's `iodepth_level`.
const DEPTHS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// What is measured.
#[derive(Clone)]
pub struct Spec {
    /// The target, as results tell of it.
    pub system: SystemRecord,
    /// The workload, as results tell of it.
    pub workload: Value,
    /// At the same time.
    pub jobs: Vec<Job>,
    /// Seed of the run.
    pub seed: u64,
    /// Length of the intervals that results are also kept for.
    pub interval_ns: Option<u64>,
    /// Whether the first job that ends ends all of them.
    pub ends_with_first: bool,
    /// Whether results tell of each job also where there is one alone.
    pub tells_streams: bool,
    /// What is known of the data on the targets; where jobs verify and this is absent, the run has ledgers in memory.
    pub verification: Option<Arc<Verification>>,
}

/// What one thread has measured.
pub struct Measured {
    name: String,
    kinds: Kinds,
    /// What the rig has kept.
    pub result: RunResult,
    looped: Loop,
    trouble: Trouble,
    usage: Usage,
    samples: Samples,
    issued: u64,
    completed: u64,
    /// Requests that never came back.
    pub lost: u64,
    engine: String,
    interval_ns: Option<u64>,
    /// What reads were found to be, where they were checked.
    pub integrity: Option<Checked>,
}

/// Measures, and tells `progress`, which says whether to go on. What was measured until then is the result also when
/// somebody, or an error, ended it before its time: [`RunResult::ended_early`] says why.
///
/// # Errors
/// A job that cannot begin: no such part, an impossible workload, an engine that the kernel refuses.
pub fn run(spec: &Spec, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, LoadError> {
    run_logged(spec, None, progress)
}

/// The same; `log` keeps the requests of the measured part one by one.
///
/// # Errors
/// As [`run`].
pub fn run_logged(
    spec: &Spec,
    log: Option<&Arc<Log>>,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, LoadError> {
    spec.jobs.iter().try_for_each(Job::check)?;
    let verification = match &spec.verification {
        Some(known) => Some(Arc::clone(known)),
        None => Verification::of_jobs(&spec.jobs.iter().collect::<Vec<_>>(), &LedgerPlace::Memory)?.map(Arc::new),
    };
    let verification = verification.as_deref();
    begin(verification)?;
    let cached = invalidate(&spec.jobs);
    let works = spec.jobs.iter().zip(0..).map(|(job, number): (&Job, u32)| {
        move |post: &Post| {
            let Job { name, targets, engine, start_delay_ns, seed, .. } = job;
            let seat = Seat {
                name,
                targets,
                ground: job.ground(),
                engine: *engine,
                slots: job.depth(),
                buffer_bytes: job.longest_bytes(),
                start_delay_ns: *start_delay_ns,
                seed: *seed,
                interval_ns: spec.interval_ns,
                own_buffers: job.verify != Verify::No,
                verification: verification.filter(|_| job.verify != Verify::No),
            };
            let measured = measure(&seat, post, |rig| {
                rig.log = log.map(|log| (Arc::clone(log), number));
                work(job, rig)
            });
            if spec.ends_with_first {
                post.stop.store(true, Ordering::Relaxed);
            }
            measured
        }
    });
    let (measured, ran) = together(works.collect(), progress)?;
    let mut result = join(&spec.system, &spec.workload, spec.seed, &measured, &ran);
    result.offered_per_s = offered_per_s(spec);
    if spec.tells_streams {
        result.streams = streams(&measured);
    }
    result.notes.extend(cached);
    if let Some(known) = verification {
        finish(spec, known, &measured, &mut result, progress);
    }
    Ok(result)
}

/// Empties the page cache of what jobs want to read from their devices, each target once; what could not be done.
fn invalidate(jobs: &[Job]) -> Option<String> {
    let mut done: Vec<&str> = Vec::new();
    for target in jobs.iter().filter(|job| job.invalidate).flat_map(|job| &job.targets) {
        if done.contains(&target.name()) {
            continue;
        }
        done.push(target.name());
        if let Err(error) = target.forget_cached() {
            return Some(format!("the page cache could not be emptied of {} ({error})", target.name()));
        }
    }
    None
}

/// What a thread of a run shares with others, and how they hear of each other.
pub struct Post<'a> {
    live: &'a Live,
    waker: &'a Waker,
    stop: &'a AtomicBool,
    barrier: &'a Barrier,
}

/// How a run went.
pub struct Ran {
    /// When all of its threads began.
    pub began_ns: u64,
    /// Whether somebody ended it.
    pub by_somebody: bool,
}

/// Carries out each work in a thread of its own, all at the same time, as long as `progress` says so; what they came
/// to, in their order.
///
/// # Errors
/// The first work's that failed.
pub fn together<T: Send, E: From<LoadError> + Send>(
    works: Vec<impl FnOnce(&Post) -> Result<T, E> + Send>,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(Vec<T>, Ran), E> {
    quicken();
    let lives: Vec<Live> = works.iter().map(|_| Live::default()).collect();
    let wakers = works.iter().map(|_| Waker::new()).collect::<Result<Vec<_>, _>>()?;
    let stop = AtomicBool::new(false);
    let barrier = Barrier::new(works.len() + 1);
    let results: Mutex<Vec<(usize, Result<T, E>)>> = Mutex::new(Vec::new());
    let mut ran = Ran { began_ns: 0, by_somebody: false };
    let supervisor = std::thread::current();
    std::thread::scope(|scope| {
        for (index, (work, (live, waker))) in works.into_iter().zip(lives.iter().zip(&wakers)).enumerate() {
            let (stop, barrier, results, supervisor) = (&stop, &barrier, &results, &supervisor);
            scope.spawn(move || {
                let _ending = Ending { live, supervisor };
                let outcome = work(&Post { live, waker, stop, barrier });
                if outcome.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                results.lock().expect("nobody panics with the lock").push((index, outcome));
            });
        }
        barrier.wait();
        ran.began_ns = now_ns();
        let mut is_over = false;
        while !is_over {
            std::thread::park_timeout(REPORT_EVERY);
            // The last report is of all that was done.
            is_over = lives.iter().all(Live::is_over);
            let mut now = Progress { elapsed_ns: now_ns() - ran.began_ns, share: 1.0, ..Progress::default() };
            lives.iter().for_each(|live| live.add_to(&mut now));
            if !progress(&now) && !ran.by_somebody && !is_over {
                ran.by_somebody = true;
                stop.store(true, Ordering::Relaxed);
            }
            wakers.iter().for_each(Waker::wake);
        }
    });
    let mut results = results.into_inner().expect("nobody panics with the lock");
    results.sort_by_key(|&(index, _)| index);
    let measured = results.into_iter().map(|(_, result)| result).collect::<Result<Vec<_>, _>>()?;
    Ok((measured, ran))
}

/// Says that a thread is over, however it ends.
struct Ending<'a> {
    live: &'a Live,
    supervisor: &'a Thread,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.live.end();
        self.supervisor.unpark();
    }
}

/// What one thread does.
///
/// # Errors
/// When the engine cannot be set up; those of `load`.
pub fn measure<E: From<LoadError> + Display>(
    seat: &Seat,
    post: &Post,
    load: impl FnOnce(&mut Rig) -> Result<Loop, E>,
) -> Result<Measured, E> {
    sharpen_timers();
    let setup = Setup {
        ground: seat.ground.clone(),
        slots: seat.slots,
        longest_bytes: seat.buffer_bytes,
        own_buffers: seat.own_buffers,
        name: seat.target(),
    };
    let engine = Engine::new(seat.engine, setup, post.waker);
    // Whoever cannot begin must not keep the others waiting.
    post.barrier.wait();
    let engine = engine?;
    let start_ns = now_ns().saturating_add(seat.start_delay_ns);
    while now_ns() < start_ns && !post.stop.load(Ordering::Relaxed) {
        sleep_until(start_ns.min(now_ns() + LOOK_NS));
    }
    let before = Usage::of_this_thread();
    let mut rig = Rig::new(engine, seat, post.live, post.stop)?;
    let (looped, all_back) = match load(&mut rig).and_then(|looped| Ok((looped, rig.drain(PATIENCE_NS)?))) {
        Ok(ended) => ended,
        Err(error) if rig.completed == 0 => return Err(error),
        // The kernel takes no requests any more: what was measured until then is kept.
        Err(error) => {
            rig.trouble.fatal.get_or_insert(error.to_string());
            post.stop.store(true, Ordering::Relaxed);
            rig.start_measuring(0);
            rig.close(rig.now_ns);
            (Loop::default(), false)
        }
    };
    let usage = Usage::of_this_thread().since(&before);
    Ok(gather(seat, rig, looped, usage, all_back))
}

fn gather(seat: &Seat, rig: Rig, looped: Loop, usage: Usage, all_back: bool) -> Measured {
    let nothing = SystemRecord::new("", "", Value::Null);
    let mut result = RunResult::new(Mode::Measured, nothing, Value::Null, seat.seed, GENERATOR_NAME);
    let (errors, trouble, engine) = (rig.errors, rig.trouble.clone(), rig.engine());
    let (issued, completed) = (rig.issued, rig.completed);
    let mut rig = rig;
    let mut samples = std::mem::take(&mut rig.samples);
    if let Some(measuring) = rig.measuring.take() {
        samples.end(measuring.end_ns.unwrap_or(rig.now_ns), measuring.kinds());
        measuring.write_to(&mut result);
    }
    rig.tell_counts();
    let integrity = rig.take_integrity();
    let lost = issued - completed;
    if !all_back {
        rig.into_engine().abandon();
    }
    let kinds = with_errors(std::mem::take(&mut result.kinds), &errors);
    Measured {
        name: seat.name.to_owned(),
        kinds,
        result,
        looped,
        trouble,
        usage,
        samples,
        issued,
        completed,
        lost,
        engine,
        interval_ns: seat.interval_ns,
        integrity,
    }
}

/// All threads as one result.
pub fn join(system: &SystemRecord, load: &Value, seed: u64, all: &[Measured], ran: &Ran) -> RunResult {
    let Ran { began_ns, by_somebody } = *ran;
    let mut result = RunResult::new(Mode::Measured, system.clone(), load.clone(), seed, GENERATOR_NAME);
    // A job that never left its warm-up has nothing to say of when.
    let spans = || all.iter().filter(|one| one.result.duration_ns > 0).map(|one| &one.result);
    let start_ns = spans().map(|one| one.start_ns).min().unwrap_or(0);
    let end_ns = spans().map(|one| one.start_ns + one.duration_ns).max().unwrap_or(start_ns);
    result.duration_ns = end_ns - start_ns;
    result.start_ns = start_ns.saturating_sub(began_ns);
    join_depths(&mut result, all);
    join_intervals(&mut result, all, began_ns, all.first().and_then(|one| one.interval_ns));
    join_confidence(&mut result, all);
    let (mut trouble, mut usage, mut lateness) = (Trouble::default(), Usage::default(), LatencyHistogram::new());
    for one in all {
        result.kinds.merge(&one.kinds);
        result.late_arrivals += one.looped.late_arrivals;
        result.backlog += one.looped.backlog + one.lost;
        result.saturated |= one.looped.saturated;
        lateness.merge(&one.looped.lateness);
        trouble.merge(one.trouble.clone());
        usage.add(&one.usage);
    }
    result.counters = usage.counters();
    result.counters.extend(lateness_counters(&lateness));
    result.streams = streams(all);
    if result.streams.len() < 2 {
        result.streams.clear();
    }
    result.checks = checks(all);
    result.notes = notes(all, &trouble, &lateness);
    result.integrity = checked(all).map(Checked::told);
    result.ended_early = trouble.fatal.or_else(|| by_somebody.then(|| "stopped by hand".to_owned()));
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

/// Intervals of several threads by the time they begin at, to the nearest interval of the thread that began first: most
/// begin within microseconds of each other, some after a delay or a longer warm-up.
fn join_intervals(result: &mut RunResult, all: &[Measured], began_ns: u64, interval_ns: Option<u64>) {
    let interval_ns = interval_ns.unwrap_or(u64::MAX).max(1);
    let each = || all.iter().flat_map(|one| one.result.intervals.iter());
    let Some(first_ns) = each().map(|interval| interval.start_ns).min() else { return };
    let mut joined: BTreeMap<u64, (Interval, LatencyHistogram)> = BTreeMap::new();
    for interval in each() {
        let index = (interval.start_ns - first_ns).saturating_add(interval_ns / 2) / interval_ns;
        let (sum, response) = joined.entry(index).or_insert_with(|| {
            let start_ns = interval.start_ns.saturating_sub(began_ns);
            (Interval { start_ns, ..Interval::default() }, LatencyHistogram::new())
        });
        sum.count += interval.count;
        sum.bytes += interval.bytes;
        sum.duration_ns = sum.duration_ns.max(interval.duration_ns);
        response.merge(&interval.response.open());
    }
    let stored = joined.into_values().map(|(sum, response)| Interval { response: response.store(), ..sum });
    result.intervals = stored.collect();
}

/// Half-widths of independent means add as squares.
fn join_confidence(result: &mut RunResult, all: &[Measured]) {
    let count = |one: &Measured| one.kinds.all().iter().map(|(_, kind)| kind.count).sum::<u64>() as f64;
    let total: f64 = all.iter().map(count).sum();
    let mut sum = 0.0;
    for one in all {
        let Some(half_ns) = one.result.mean_response_half_width_ns else { return };
        sum += (half_ns * count(one) / total.max(1.0)).powi(2);
    }
    result.mean_response_half_width_ns = Some(sum.sqrt());
}

fn offered_per_s(spec: &Spec) -> Option<f64> {
    let rate = |job: &Job| match job.workload.arrivals {
        Arrivals::Open { rate_per_s, .. } => Some(rate_per_s),
        Arrivals::Closed { .. } => None,
    };
    spec.jobs.iter().map(rate).sum()
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

/// What each job got; threads of one name are one.
fn streams(all: &[Measured]) -> Vec<StreamResult> {
    let mut names: Vec<&str> = Vec::new();
    for one in all {
        if !names.contains(&one.name.as_str()) {
            names.push(&one.name);
        }
    }
    let told = |name: &str| {
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
        facts.push(fact("threads", f64::from(threads)));
        facts.push(fact("threads_s", threads_ns as f64 / 1e9));
        facts.extend(usage.facts());
        let at_depths = DEPTHS.iter().zip(depth_ns).filter(|(_, time_ns)| *time_ns > 0);
        facts.extend(at_depths.map(|(depth, time_ns)| fact(&format!("depth_{depth}_s"), time_ns as f64 / 1e9)));
        facts.extend(samples.facts());
        StreamResult { name: name.to_owned(), kinds, facts }
    };
    names.into_iter().map(told).collect()
}

/// What reads were found to be, of all threads together.
pub fn checked(all: &[Measured]) -> Option<Checked> {
    all.iter().filter_map(|one| one.integrity.clone()).reduce(Checked::and)
}

fn checks(all: &[Measured]) -> Vec<Check> {
    let (issued, completed) = all.iter().fold((0, 0), |sum, one| (sum.0 + one.issued, sum.1 + one.completed));
    let conserved = Check {
        name: "requests in = requests out".to_owned(),
        passed: issued == completed,
        detail: format!("{issued} in, {completed} out"),
    };
    let own = all.iter().flat_map(|one| one.result.checks.iter());
    let failed = own.clone().find(|check| !check.passed).or_else(|| own.clone().next());
    std::iter::once(conserved).chain(failed.cloned()).collect()
}

fn notes(all: &[Measured], trouble: &Trouble, lateness: &LatencyHistogram) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(first) = all.first() {
        notes.push(first.engine.clone());
    }
    if all.len() > 1 {
        notes.push(format!("{} threads: the depth is the sum of theirs, its distribution is not known", all.len()));
    }
    if trouble.count > 0 {
        notes.push(format!("{} requests failed; the first: {}", trouble.count, trouble.first.join("; ")));
    }
    let lost: u64 = all.iter().map(|one| one.lost).sum();
    if lost > 0 {
        let patience_s = PATIENCE_NS / 1_000_000_000;
        notes.push(format!("{lost} requests had not come back {patience_s} s after the end and were given up"));
    }
    let late_ns = lateness.quantile_ns(0.99).unwrap_or(0);
    if late_ns > 1_000_000 {
        notes.push(format!(
            "1 % of the requests were issued more than {:.1} ms late by this program",
            late_ns as f64 / 1e6
        ));
    }
    notes
}
