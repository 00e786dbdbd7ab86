//! Worker threads of a measurement: common start, progress and stop ([`run_workers`]).

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::Thread;

use crate::LoadError;
use crate::clock::{Clock, LOOK_NS, Time, calibrate_tsc, set_timer_slack};
use crate::engine::Engine;
use crate::load_loop::{LoadLoop, WorkerSpec};
use crate::measured::{Measured, Ran, gather};
use crate::progress::{Progress, WorkerProgress};
use crate::synchronized_start::Start;
use crate::target::Target;
use crate::usage::Usage;
use crate::waker::Waker;
use crate::watch::watched;
use crate::worker::LoopStats;

/// Time between two progress reports, in ns.
const REPORT_EVERY_NS: u64 = 50_000_000;

/// Shared state of the threads of a run, as one worker sees it.
pub struct WorkerContext<'a> {
    live: &'a WorkerProgress,
    waker: &'a Waker,
    /// Whether all threads must stop.
    pub stop: &'a AtomicBool,
    barrier: &'a Barrier,
    /// Time at which the first thread began, in ns.
    began: &'a AtomicU64,
    clock: &'a Clock,
}

impl<'a> WorkerContext<'a> {
    /// Waits until all threads are ready, and starts. Returns the clock of the run.
    pub fn ready(&self) -> &'a Clock {
        set_timer_slack();
        self.barrier.wait();
        self.clock.begin();
        self.began.fetch_min(self.clock.now_ns(), Ordering::Relaxed);
        self.clock
    }

    /// Returns the worker's progress counters.
    pub fn live(&self) -> &'a WorkerProgress {
        self.live
    }
}

/// Runs each of `works` in its own thread. All start together as `start` says, and run while `progress` returns true
/// and no one else uses the written `targets`. Returns their results in order.
///
/// # Errors
/// Returns the error of the first worker that failed.
pub fn run_workers<T: Send, E: From<LoadError> + Send>(
    works: Vec<impl FnOnce(&WorkerContext) -> Result<T, E> + Send>,
    targets: &[Arc<Target>],
    time: Time,
    start: Start,
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
    let mut clocks = Clock::for_threads(time, works.len() + 1);
    let own = clocks.pop().expect("there is one clock more than works");
    let load = || {
        std::thread::scope(|scope| {
            let parts = all_progress.iter().zip(&wakers).zip(clocks);
            for (index, (work, ((live, waker), clock))) in works.into_iter().zip(parts).enumerate() {
                let (stop, barrier, began, results, supervisor) = (&stop, &barrier, &began, &results, &supervisor);
                scope.spawn(move || {
                    // Virtual time advances once this thread drops its clock.
                    let clock = clock;
                    let _end = EndOfWorker { live, supervisor };
                    let outcome = work(&WorkerContext { live, waker, stop, barrier, began, clock: &clock });
                    if outcome.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    results.lock().expect("the lock is not poisoned").push((index, outcome));
                });
            }
            if !start.wait(&own) {
                ran.by_somebody = true;
                stop.store(true, Ordering::Relaxed);
            }
            barrier.wait();
            own.begin();
            ran.began_ns = own.now_ns();
            let mut is_over = false;
            while !is_over {
                own.rest(REPORT_EVERY_NS);
                // The last report must include all of the work.
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
    // The first thread past the barrier starts the run, even if the watching thread is still asleep.
    ran.began_ns = ran.began_ns.min(began.into_inner());
    start.report_start(ran.began_ns);
    let mut results = results.into_inner().expect("the lock is not poisoned");
    results.sort_by_key(|&(index, _)| index);
    let measured = results.into_iter().map(|(_, result)| result).collect::<Result<Vec<_>, _>>()?;
    Ok((measured, ran))
}

/// Marks a thread as ended when dropped, however it ends.
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

/// Runs one worker thread.
///
/// # Errors
/// Returns an error if the engine cannot be set up, and the errors of `load`.
pub fn measure<E: From<LoadError> + Display>(
    worker: &WorkerSpec,
    context: &WorkerContext,
    load: impl FnOnce(&mut LoadLoop) -> Result<LoopStats, E>,
) -> Result<Measured, E> {
    set_timer_slack();
    let setup = worker.setup();
    let engine = Engine::new(worker.engine, setup, context.waker);
    // A thread that cannot begin must not block the others.
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
    let mut load_loop = LoadLoop::new(engine, worker, context.live, context.stop, clock)?;
    let (loop_stats, all_back) = match load(&mut load_loop).and_then(|loop_stats| Ok((loop_stats, load_loop.drain()?)))
    {
        Ok(ended) => ended,
        Err(error) if load_loop.completed == 0 => return Err(error),
        // The kernel accepts no more requests, so the results so far are kept.
        Err(error) => {
            load_loop.error_log.fatal.get_or_insert(error.to_string());
            context.stop.store(true, Ordering::Relaxed);
            load_loop.start_measuring(0);
            load_loop.close(load_loop.now_ns);
            (LoopStats::default(), false)
        }
    };
    let usage = Usage::of_this_thread().since(&before);
    Ok(gather(worker, load_loop, loop_stats, usage, all_back))
}
