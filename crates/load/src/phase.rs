//! Runs a phase of a job file on files and devices ([`PhaseSpec`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use headstack_jobfiles::{JobEngine, Phase, Verify};
use headstack_result::{RunResult, SystemRecord};
use headstack_workload::{Arrivals, Span};
use serde_json::{Value, json};

use crate::engine::EngineKind;
use crate::flow::{Flow, Member};
use crate::job::{Job, unit_bytes, whole_pass_bytes};
use crate::log::Log;
use crate::run::run_logged;
use crate::scenario::{ScenarioSpec, play_scenario};
use crate::spec::Spec;
use crate::target::{Target, TargetKind};
use crate::{LoadError, Progress};

/// A phase and its targets.
#[derive(Clone)]
pub struct PhaseSpec {
    /// Description of the targets for results.
    pub system: SystemRecord,
    /// The phase. Convert a point of a curve with [`Phase::at_observed`] first.
    pub phase: Phase,
    /// The targets of each job, in the order of the jobs.
    pub targets: Vec<Vec<Arc<Target>>>,
    /// Service time of a request on a null target, in ns.
    pub null_service_ns: u64,
    /// Seed of jobs that do not state one.
    pub seed: u64,
    /// Length of the intervals of the time series, in ns.
    pub interval_ns: Option<u64>,
    /// Whether the submission time of requests is measured.
    pub times_handing_over: bool,
}

/// Measures a phase. `progress` receives the state of the run and returns whether to continue. `log` records individual
/// requests, numbered by job copy. Each copy of a job has a thread; jobs that share a pool have one thread and share
/// its queue depth. Results name streams as [`Phase::stream_names`] does.
///
/// # Errors
/// Returns an error if the phase cannot run on these targets (a part does not exist, requests do not fit, or a job
/// writes to a read-only target), or if the kernel refuses the engine.
pub fn play_phase(
    spec: &PhaseSpec,
    log: Option<&Arc<Log>>,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, LoadError> {
    let threads = spec.check()?;
    match spec.phase.pool {
        Some(queue_depth) => play_pool(spec, queue_depth, progress),
        None => play_jobs(spec, threads, log, progress),
    }
}

impl PhaseSpec {
    /// Returns the threads of the phase, after all checks that are possible before the start.
    ///
    /// # Errors
    /// Returns the errors of [`play_phase`], except for refusals of the kernel.
    pub fn check(&self) -> Result<Threads, LoadError> {
        let PhaseSpec { phase, targets, .. } = self;
        let impossible = |message: &str| LoadError::Job { job: phase.name.clone(), message: message.to_owned() };
        if phase.jobs.is_empty() || targets.len() != phase.jobs.len() {
            return Err(impossible("has no job with targets"));
        }
        if phase.curve_point.is_some() {
            return Err(impossible("is a percentage of another phase's result; that phase must run first"));
        }
        for (job, targets) in phase.jobs.iter().zip(targets) {
            check_writes(job, targets)?;
        }
        let threads = threads(self)?;
        threads.jobs.iter().try_for_each(Job::check)?;
        Ok(threads)
    }
}

/// Threads of a phase.
pub struct Threads {
    jobs: Vec<Job>,
    /// Notes about settings that are only approximated.
    notes: Vec<String>,
}

fn threads(spec: &PhaseSpec) -> Result<Threads, LoadError> {
    let mut jobs = Vec::new();
    let mut notes = Vec::new();
    let names = spec.phase.stream_names();
    let mut flows: BTreeMap<u64, Arc<Flow>> = BTreeMap::new();
    for ((job, targets), names) in spec.phase.jobs.iter().zip(&spec.targets).zip(names) {
        let span = span(job, targets, &mut notes)?;
        let flow = job.flow.map(|asked| (flows.entry(asked.id).or_default(), asked));
        for (copy, name) in (0..job.copies.max(1)).zip(names) {
            jobs.push(Job {
                name,
                targets: targets.clone(),
                span: Some(span),
                workload: job.workload.clone(),
                limits: limits(job),
                engine: engine(job, targets, spec.null_service_ns),
                slots: job.slots,
                start_delay_ns: job.start_delay_ns,
                seed: job.seed_of(copy, spec.seed),
                verify: job.verify,
                invalidates_every_bytes: job.invalidate.then(|| pass_bytes(job, span)),
                target_bytes_max: target_bytes_max(job),
                rates_per_s: job.rates_per_s,
                flow: flow.as_ref().map(|(flow, asked)| Member::new(flow, asked.weight, asked.sleep_ns)),
                errors: job.errors,
                bounds: job.bounds,
                content: job.content.clone(),
                flushes_at_end: job.flushes_at_end,
                times_handing_over: spec.times_handing_over,
                zones: job.zones,
            });
        }
    }
    Ok(Threads { jobs, notes })
}

fn play_jobs(
    spec: &PhaseSpec,
    Threads { jobs, notes }: Threads,
    log: Option<&Arc<Log>>,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, LoadError> {
    let spec = Spec {
        system: spec.system.clone(),
        workload: record(&spec.phase),
        jobs,
        seed: spec.seed,
        interval_ns: spec.interval_ns,
        ends_with_first: spec.phase.ends_with_first,
        tells_streams: true,
        verification: None,
    };
    let mut result = run_logged(&spec, log, progress)?;
    result.notes.extend(notes);
    Ok(result)
}

/// Returns the number of bytes after which a time-based job through the page cache restarts with an emptied cache, as
/// fio does for each loop.
fn pass_bytes(job: &headstack_jobfiles::Job, span: Span) -> u64 {
    let is_by_time = limits(job)
        == headstack_jobfiles::Limits { time_ns: job.limits.time_ns, ..headstack_jobfiles::Limits::default() };
    let visits = if job.workload.sequence.trim_then_write { 2 } else { 1 };
    if is_by_time && job.direct {
        u64::MAX
    } else {
        whole_pass_bytes(&job.workload, span.length_bytes).saturating_mul(visits)
    }
}

/// Returns the limits of a job. A job without limits passes once over its part.
fn limits(job: &headstack_jobfiles::Job) -> headstack_jobfiles::Limits {
    match job.limits == headstack_jobfiles::Limits::default() {
        true => headstack_jobfiles::Limits { passes: Some(1.0), ..job.limits },
        false => job.limits,
    }
}

/// Runs jobs that alternate by their shares as clients of a scenario, whose pool belongs to a single thread.
fn play_pool(
    spec: &PhaseSpec,
    queue_depth: u32,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, LoadError> {
    let PhaseSpec { phase, .. } = spec;
    let mut distinct: Vec<Arc<Target>> = Vec::new();
    for target in spec.targets.iter().flatten() {
        if !distinct.iter().any(|known| Arc::ptr_eq(known, target)) {
            distinct.push(Arc::clone(target));
        }
    }
    let block_bytes = Target::common_block_bytes(&distinct);
    let start_of = |wanted: &Arc<Target>| {
        let before = distinct.iter().take_while(|known| !Arc::ptr_eq(known, wanted));
        before.map(|target| target.whole_bytes(block_bytes)).sum::<u64>()
    };
    let mut notes = Vec::new();
    let mut spans = Vec::new();
    for (job, targets) in phase.jobs.iter().zip(&spec.targets) {
        let mut end_bytes = start_of(&targets[0]);
        for target in targets {
            if start_of(target) != end_bytes {
                let message =
                    "shares a pool with jobs on only some of its targets; use the same targets for all jobs of a pool"
                        .to_owned();
                return Err(LoadError::Job { job: job.name.clone(), message });
            }
            end_bytes += target.whole_bytes(block_bytes);
        }
        let own = span(job, targets, &mut notes)?;
        spans.push(Span { start_bytes: start_of(&targets[0]) + own.start_bytes, ..own });
    }
    let capacity_bytes = distinct.iter().map(|target| target.whole_bytes(block_bytes)).sum();
    let (scenario, streams, remarks) = phase.clients(&spans, capacity_bytes)?;
    let open_slots = phase.jobs.iter().filter(|job| matches!(job.workload.arrivals, Arrivals::Open { .. }));
    let slots = open_slots.map(|job| job.slots).fold(queue_depth, u32::saturating_add);
    let luns = distinct.iter().enumerate().map(|(index, target)| (index.to_string(), Arc::clone(target)));
    let mut result = play_scenario(
        &ScenarioSpec {
            system: spec.system.clone(),
            luns: luns.collect(),
            scenario,
            engine: engine(&phase.jobs[0], &distinct, spec.null_service_ns),
            slots: slots.min(crate::load_loop::SLOTS_MAX),
            seed: spec.seed,
            interval_ns: spec.interval_ns,
            verification: None,
        },
        progress,
    )?;
    result.name_streams(&streams);
    result.workload = record(phase);
    result.notes.extend(notes);
    result.notes.extend(remarks.into_iter().map(|remark| remark.message));
    if phase.jobs.iter().any(|job| job.verify != Verify::No) {
        result.notes.push("jobs that share a pool do not verify what they write".to_owned());
    }
    Ok(result)
}

fn check_writes(job: &headstack_jobfiles::Job, targets: &[Arc<Target>]) -> Result<(), LoadError> {
    let writes = job.workload.specification.lines.iter().any(|line| line.read_percent < 100.0);
    match targets.iter().find(|target| writes && !target.is_writable()) {
        Some(target) => {
            let message = format!(
                "writes to {}, which is opened read-only: use --destroy to write a device, --overwrite to write a file",
                target.name()
            );
            Err(LoadError::Job { job: job.name.clone(), message })
        }
        None => Ok(()),
    }
}

/// Returns the maximum number of bytes used on each target of a job; with several files, the job states it per file.
fn target_bytes_max(job: &headstack_jobfiles::Job) -> u64 {
    job.file_bytes.filter(|_| job.targets.len() > 1).unwrap_or(u64::MAX)
}

/// Returns the part of the targets that a job uses.
fn span(job: &headstack_jobfiles::Job, targets: &[Arc<Target>], notes: &mut Vec<String>) -> Result<Span, LoadError> {
    let block_bytes = unit_bytes(&job.workload, targets, job.verify == Verify::No && job.zones.is_none());
    let most_bytes = target_bytes_max(job) / u64::from(block_bytes) * u64::from(block_bytes);
    let bytes_of = |target: &Arc<Target>| target.whole_bytes(block_bytes).min(most_bytes);
    let whole_bytes = targets.iter().map(bytes_of).fold(0u64, u64::saturating_add);
    let within = job.part.within(whole_bytes, u64::from(block_bytes));
    let (span, is_cut) = within.map_err(|message| {
        let message = format!("invalid part of the targets: {message}");
        LoadError::Job { job: job.name.clone(), message }
    })?;
    if is_cut {
        notes.push(format!("the part of {} is cut to the size of its targets", job.name));
    }
    Ok(span)
}

fn engine(job: &headstack_jobfiles::Job, targets: &[Arc<Target>], null_service_ns: u64) -> EngineKind {
    if targets.iter().any(|target| target.kind() == TargetKind::Null) {
        return EngineKind::Null { service_ns: null_service_ns };
    }
    match job.engine {
        // Threads replace io_uring where it is forbidden.
        JobEngine::Ring => EngineKind::Auto,
        JobEngine::Psync => EngineKind::Psync,
        JobEngine::Null => EngineKind::Null { service_ns: 0 },
    }
}

/// Returns the description of the load for results: the workload of a single job, or the phase.
fn record(phase: &Phase) -> Value {
    let name = if phase.name.is_empty() { phase.jobs[0].name.clone() } else { phase.name.clone() };
    let plain = "workloads and phases can be written as JSON";
    let mut record = match &phase.jobs[..] {
        [only] if only.copies <= 1 => serde_json::to_value(&only.workload).expect(plain),
        _ => json!({ "phase": serde_json::to_value(phase).expect(plain) }),
    };
    record["name"] = json!(name);
    record
}
