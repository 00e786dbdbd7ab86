//! A measurement: concurrent jobs, each in its own thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use headstack_jobfiles::{Content, Verify};
use headstack_result::RunResult;
use headstack_workload::Arrivals;

use crate::LoadError;
use crate::job::Job;
use crate::load_loop::WorkerSpec;
use crate::log::Log;
use crate::measured::{join, streams};
use crate::progress::Progress;
use crate::spec::Spec;
use crate::synchronized_start::Start;
use crate::target::Target;
use crate::threads::{WorkerContext, measure, run_workers};
use crate::verification::{LedgerPlace, Verification, begin};
use crate::verify::finish;
use crate::worker::work;

/// Runs the measurement. `progress` receives the state and returns whether to continue. If the user or an error ends
/// the run early, the results so far are returned, and [`RunResult::ended_early`] has the reason.
///
/// # Errors
/// Returns an error if a job cannot start: its part does not exist, its workload is impossible, or the kernel refuses
/// its engine.
pub fn run(spec: &Spec, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, LoadError> {
    run_logged(spec, None, progress)
}

/// Does the same as [`run`]; `log` records the individual requests of the measured part.
///
/// # Errors
/// Returns the errors of [`run`].
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
            let measured = measure(&worker, context, |load_loop| {
                load_loop.log = log.map(|log| (Arc::clone(log), number));
                work(job, load_loop)
            });
            if spec.ends_with_first {
                context.stop.store(true, Ordering::Relaxed);
            }
            measured
        }
    });
    let targets: Vec<Arc<Target>> = spec.jobs.iter().flat_map(|job| job.targets.iter().map(Arc::clone)).collect();
    let (measured, ran) = run_workers(works.collect(), &targets, time, Start::Together, progress)?;
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

/// Returns notes about requests to targets whose sectors are larger than the job's blocks.
fn notes_of_alignment(job: &Job) -> impl Iterator<Item = String> {
    let note = |target: &Arc<Target>| job.workload.note_of_alignment(job.block_bytes(), target.physical_block_bytes());
    job.targets.iter().filter_map(note)
}

fn offered_per_s(spec: &Spec) -> Option<f64> {
    let rate = |job: &Job| match job.workload.arrivals {
        Arrivals::Open { rate_per_s, .. } => Some(rate_per_s),
        Arrivals::Closed { .. } => None,
    };
    spec.jobs.iter().map(rate).sum()
}
