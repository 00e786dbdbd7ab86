//! A measurement: jobs at the same time, each in a thread of its own.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::Thread;

use headstack_jobfiles::{Content, Verify};
use headstack_result::{RunResult, SystemRecord};
use headstack_workload::Arrivals;
use serde_json::Value;

use crate::LoadError;
use crate::clock::{Clock, LOOK_NS, Time, calibrate_tsc, set_timer_slack};
use crate::engine::{Engine, Setup};
use crate::job::Job;
use crate::log::Log;
use crate::measured::{Measured, gather, join, streams};
use crate::progress::{Progress, WorkerProgress};
use crate::rig::{Rig, WorkerSpec};
use crate::target::Target;
use crate::usage::Usage;
use crate::verification::{LedgerPlace, Verification, begin};
use crate::verify::finish;
use crate::waker::Waker;
use crate::watch::watched;
use crate::worker::{LoopStats, work};

/// Between two reports of progress.
const REPORT_EVERY_NS: u64 = 50_000_000;

/// What has not come back this long after the end is given up.
pub const PATIENCE_NS: u64 = 10_000_000_000;

/// And this long after somebody gave it up ([`Target::give_up`](crate::Target::give_up)).
pub const GIVEN_UP_NS: u64 = 500_000_000;

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
    let time = Target::common_time(spec.jobs.iter().flat_map(|job| &job.targets))?;
    let verification = match &spec.verification {
        Some(known) => Some(Arc::clone(known)),
        None => Verification::of_jobs(&spec.jobs.iter().collect::<Vec<_>>(), &LedgerPlace::Memory)?.map(Arc::new),
    };
    let verification = verification.as_deref();
    begin(verification)?;
    let works = spec.jobs.iter().zip(0..).map(|(job, number): (&Job, u32)| {
        move |context: &WorkerContext| {
            let Job { name, targets, engine, start_delay_ns, seed, .. } = job;
            let worker = WorkerSpec {
                name,
                targets,
                map: job.target_map(),
                engine: *engine,
                slots: job.depth(),
                buffer_bytes: job.longest_bytes(),
                start_delay_ns: *start_delay_ns,
                seed: *seed,
                interval_ns: spec.interval_ns,
                own_buffers: job.verify != Verify::No || job.content != Content::Random,
                verification: verification.filter(|_| job.verify != Verify::No),
            };
            let measured = measure(&worker, context, |rig| {
                rig.log = log.map(|log| (Arc::clone(log), number));
                work(job, rig)
            });
            if spec.ends_with_first {
                context.stop.store(true, Ordering::Relaxed);
            }
            measured
        }
    });
    let targets: Vec<Arc<Target>> = spec.jobs.iter().flat_map(|job| job.targets.iter().map(Arc::clone)).collect();
    let (measured, ran) = run_workers(works.collect(), &targets, time, progress)?;
    let mut result = join(&spec.system, &spec.workload, spec.seed, &measured, &ran);
    result.offered_per_s = offered_per_s(spec);
    if spec.tells_streams {
        result.streams = streams(&measured);
    }
    for note in spec.jobs.iter().flat_map(notes_of_alignment) {
        if !result.notes.contains(&note) {
            result.notes.push(note);
        }
    }
    if let Some(known) = verification {
        finish(spec, known, &measured, &mut result, progress);
    }
    Ok(result)
}

/// What is to be known of a job's requests on targets whose sectors are larger than its blocks.
fn notes_of_alignment(job: &Job) -> impl Iterator<Item = String> {
    let note = |target: &Arc<Target>| job.workload.note_of_alignment(job.block_bytes(), target.physical_block_bytes());
    job.targets.iter().filter_map(note)
}

/// What a thread of a run shares with others, and how they hear of each other.
pub struct WorkerContext<'a> {
    live: &'a WorkerProgress,
    waker: &'a Waker,
    stop: &'a AtomicBool,
    barrier: &'a Barrier,
    /// When the first of all began.
    began: &'a AtomicU64,
    clock: &'a Clock,
}

/// How a run went.
pub struct Ran {
    /// When the first of its threads began.
    pub began_ns: u64,
    /// Whether somebody ended it.
    pub by_somebody: bool,
    /// What others have come to need a target for that was written.
    pub in_use: Option<String>,
}

/// Carries out each work in a thread of its own, all at the same time, as long as `progress` says so and nobody else needs
/// those of `targets` that are written; what they came to, in their order.
///
/// # Errors
/// The first work's that failed.
pub fn run_workers<T: Send, E: From<LoadError> + Send>(
    works: Vec<impl FnOnce(&WorkerContext) -> Result<T, E> + Send>,
    targets: &[Arc<Target>],
    time: Time,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(Vec<T>, Ran), E> {
    calibrate_tsc();
    let all_progress: Vec<WorkerProgress> = works.iter().map(|_| WorkerProgress::default()).collect();
    let wakers = works.iter().map(|_| Waker::new()).collect::<Result<Vec<_>, _>>()?;
    let stop = AtomicBool::new(false);
    let barrier = Barrier::new(works.len() + 1);
    let began = AtomicU64::new(u64::MAX);
    let results: Mutex<Vec<(usize, Result<T, E>)>> = Mutex::new(Vec::new());
    let mut ran = Ran { began_ns: 0, by_somebody: false, in_use: None };
    let supervisor = std::thread::current();
    let mut clocks = Clock::of_threads(time, works.len() + 1);
    let own = clocks.pop().expect("one more than works");
    let load = || {
        std::thread::scope(|scope| {
            let parts = all_progress.iter().zip(&wakers).zip(clocks);
            for (index, (work, ((live, waker), clock))) in works.into_iter().zip(parts).enumerate() {
                let (stop, barrier, began, results, supervisor) = (&stop, &barrier, &began, &results, &supervisor);
                scope.spawn(move || {
                    // Virtual time goes on when all is said.
                    let clock = clock;
                    let _end = EndOfWorker { live, supervisor };
                    let outcome = work(&WorkerContext { live, waker, stop, barrier, began, clock: &clock });
                    if outcome.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    results.lock().expect("nobody panics with the lock").push((index, outcome));
                });
            }
            barrier.wait();
            own.begin();
            ran.began_ns = own.now_ns();
            let mut is_over = false;
            while !is_over {
                own.rest(REPORT_EVERY_NS);
                // The last report is of all that was done.
                is_over = all_progress.iter().all(WorkerProgress::is_over);
                let mut now = Progress { elapsed_ns: own.now_ns() - ran.began_ns, share: 1.0, ..Progress::default() };
                all_progress.iter().for_each(|live| live.add_to(&mut now));
                now.is_ending = stop.load(Ordering::Relaxed);
                if !progress(&now) && !ran.by_somebody && !is_over {
                    ran.by_somebody = true;
                    stop.store(true, Ordering::Relaxed);
                }
                wakers.iter().for_each(Waker::wake);
            }
        })
    };
    let ((), in_use) = watched(targets, &stop, load);
    ran.in_use = in_use;
    // Whoever is first past the barrier begins the run, be the one who watches still asleep.
    ran.began_ns = ran.began_ns.min(began.into_inner());
    let mut results = results.into_inner().expect("nobody panics with the lock");
    results.sort_by_key(|&(index, _)| index);
    let measured = results.into_iter().map(|(_, result)| result).collect::<Result<Vec<_>, _>>()?;
    Ok((measured, ran))
}

/// Says that a thread is over, however it ends.
struct EndOfWorker<'a> {
    live: &'a WorkerProgress,
    supervisor: &'a Thread,
}

impl Drop for EndOfWorker<'_> {
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
    worker: &WorkerSpec,
    context: &WorkerContext,
    load: impl FnOnce(&mut Rig) -> Result<LoopStats, E>,
) -> Result<Measured, E> {
    set_timer_slack();
    let setup = Setup {
        map: worker.map.clone(),
        slots: worker.slots,
        longest_bytes: worker.buffer_bytes,
        own_buffers: worker.own_buffers,
        name: worker.target(),
    };
    let engine = Engine::new(worker.engine, setup, context.waker);
    // Whoever cannot begin must not keep the others waiting.
    context.barrier.wait();
    let engine = engine?;
    let clock = context.clock;
    clock.begin();
    context.began.fetch_min(clock.now_ns(), Ordering::Relaxed);
    let start_ns = clock.now_ns().saturating_add(worker.start_delay_ns);
    while clock.now_ns() < start_ns && !context.stop.load(Ordering::Relaxed) {
        clock.sleep_until(start_ns.min(clock.now_ns() + LOOK_NS));
    }
    let before = Usage::of_this_thread();
    let mut rig = Rig::new(engine, worker, context.live, context.stop, clock)?;
    let (loop_stats, all_back) = match load(&mut rig).and_then(|loop_stats| Ok((loop_stats, rig.drain()?))) {
        Ok(ended) => ended,
        Err(error) if rig.completed == 0 => return Err(error),
        // The kernel takes no requests any more: what was measured until then is kept.
        Err(error) => {
            rig.error_log.fatal.get_or_insert(error.to_string());
            context.stop.store(true, Ordering::Relaxed);
            rig.start_measuring(0);
            rig.close(rig.now_ns);
            (LoopStats::default(), false)
        }
    };
    let usage = Usage::of_this_thread().since(&before);
    Ok(gather(worker, rig, loop_stats, usage, all_back))
}

fn offered_per_s(spec: &Spec) -> Option<f64> {
    let rate = |job: &Job| match job.workload.arrivals {
        Arrivals::Open { rate_per_s, .. } => Some(rate_per_s),
        Arrivals::Closed { .. } => None,
    };
    spec.jobs.iter().map(rate).sum()
}
