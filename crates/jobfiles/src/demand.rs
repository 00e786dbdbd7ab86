//! [`Demand`]: the workload or scenario that puts the load of a phase on a simulated system.

use std::collections::HashSet;

use headstack_workload::scenario::{Access, Load, Mark, Range, Scenario, ScenarioLength, Stream, StreamKind};
use headstack_workload::{
    Addresses, ArrivalProcess, Arrivals, QUEUE_DEPTH_MAX, RunLength, Sequence, Span, Think, WarmUp, Workload,
    WorkloadError,
};

use super::copies::unlike;
use super::layout::Layout;
use super::{Job, JobEngine, Limits, Phase, Remark, Sync, Verify};

/// Maximum number of streams of a simulation; a higher number indicates a mistake in the file.
const STREAMS_MAX: usize = 4_096;

/// The load on a simulated system.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// One job on the whole system.
    Workload(Workload),
    /// Several concurrent jobs, or one job on a part of the system.
    Scenario(Scenario),
}

/// A phase converted for a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// The load of the phase.
    pub demand: Demand,
    /// Differences between the simulation and a measurement of the phase. They refer to no line of the file.
    pub remarks: Vec<Remark>,
    /// Name of each stream of the scenario in results ([`Phase::stream_names`]); empty for a workload.
    pub streams: Vec<String>,
}

fn error<T>(key: impl Into<String>, message: impl Into<String>) -> Result<T, WorkloadError> {
    Err(WorkloadError { key: key.into(), message: message.into() })
}

impl Phase {
    /// Returns the load of this phase on a simulated system of `capacity_bytes`.
    ///
    /// A run lasts as long as the longest time limit of its jobs, or the shortest if the first job to end ends all. If
    /// no job has a time limit, the run has as many requests as the other limits allow, or one pass over the jobs'
    /// parts. The warm-up is the longest of all jobs. Files and devices are placed one after another in the system,
    /// each with its intended length; those of unknown length divide the rest evenly.
    ///
    /// # Errors
    /// If the phase has no job, is a point of a curve (call [`Phase::at_observed`] first), its files and parts do not
    /// fit into the system, or a job's workload is not valid; the key names the job by its index.
    pub fn demand(&self, capacity_bytes: u64) -> Result<Simulation, WorkloadError> {
        if self.jobs.is_empty() {
            return error("jobs", "the phase has no jobs; add a job");
        }
        if self.curve_point.is_some() {
            return error("curve_point", "its rate is a percentage of another phase's result; run that phase first");
        }
        let layout = Layout::new(&self.jobs, capacity_bytes)?;
        let mut spans = Vec::new();
        let mut remarks = layout.remarks();
        for (index, job) in self.jobs.iter().enumerate() {
            job.workload.validate().map_err(|wrong| WorkloadError {
                key: format!("jobs[{index}].{}", wrong.key),
                message: wrong.message,
            })?;
            spans.push(layout.span(index, job, &mut remarks)?);
        }
        self.leave_out(&mut remarks);
        let whole = Span { start_bytes: 0, length_bytes: capacity_bytes };
        let (demand, streams) = match (self.jobs.as_slice(), spans.as_slice()) {
            ([job], [span]) if *span == whole && self.pool.is_none() && merged(job).is_some() => {
                (Demand::Workload(workload(job, *span)?), Vec::new())
            }
            _ => {
                let (scenario, streams) = self.scenario(&spans, whole, &mut remarks)?;
                (Demand::Scenario(scenario), streams)
            }
        };
        Ok(Simulation { demand, remarks, streams })
    }

    /// Returns the clients that put the same load on real targets if the jobs share a pool, with the names of the
    /// clients' streams in results and the differences. `spans` are the jobs' parts of an address space of
    /// `capacity_bytes`.
    ///
    /// # Errors
    /// Returns the same errors as [`demand`](Self::demand).
    pub fn clients(
        &self,
        spans: &[Span],
        capacity_bytes: u64,
    ) -> Result<(Scenario, Vec<String>, Vec<Remark>), WorkloadError> {
        let mut remarks = Vec::new();
        let whole = Span { start_bytes: 0, length_bytes: capacity_bytes };
        let (scenario, streams) = self.scenario(spans, whole, &mut remarks)?;
        Ok((scenario, streams, remarks))
    }

    fn scenario(
        &self,
        spans: &[Span],
        whole: Span,
        remarks: &mut Vec<Remark>,
    ) -> Result<(Scenario, Vec<String>), WorkloadError> {
        let mut streams = Vec::new();
        let mut names = HashSet::new();
        let (reported, mut reports) = (self.names_of_first(STREAMS_MAX as u32), Vec::new());
        for (index, (job, span)) in self.jobs.iter().zip(spans).enumerate() {
            let range = (*span != whole).then(|| Range {
                from: Mark::Bytes(span.start_bytes),
                to: Mark::Bytes(span.start_bytes + span.length_bytes),
            });
            let pooled = self.pool.and(job.share_percent);
            // The pool counts the requests of all its jobs, including those of its copies.
            let (count, arrivals) = match (pooled, merged(job)) {
                (Some(_), _) => (1, job.workload.arrivals),
                (None, Some(arrivals)) => (1, arrivals),
                (None, None) => (job.copies.max(1), job.workload.arrivals),
            };
            if streams.len() + count as usize > STREAMS_MAX {
                return error(
                    format!("jobs[{index}].copies"),
                    format!("more than {STREAMS_MAX} streams; use fewer jobs or copies"),
                );
            }
            for copy in 0..count {
                let name = if count == 1 { job.name.clone() } else { format!("{}.{copy}", job.name) };
                let load = pooled.map_or(Load::Own(arrivals), Load::SharePercent);
                let kind = StreamKind::Access(access(job, load));
                // Several copies in one stream are reported under their common name.
                let is_merged = count == 1 && job.copies > 1 && job.group.is_none();
                reports.push(if is_merged { job.name.clone() } else { reported[index][copy as usize].clone() });
                streams.push(Stream { name: unlike(&mut names, name), lun: None, range, kind });
            }
        }
        let scenario = Scenario {
            name: self.name(),
            source: self.jobs[0].workload.source.clone(),
            cpus: 1,
            network: None,
            pool: self.pool.map(|queue_depth| Arrivals::Closed { queue_depth, think: Think::None }),
            warm_up: WarmUp {
                requests: self.jobs.iter().map(|job| job.workload.warm_up.requests).max().unwrap_or(0),
                time_ns: self.jobs.iter().map(|job| job.workload.warm_up.time_ns).max().unwrap_or(0),
            },
            run_length: self.length(spans, remarks)?,
            streams,
        };
        scenario.validate()?;
        Ok((scenario, reports))
    }

    fn name(&self) -> String {
        if self.name.is_empty() { self.jobs[0].name.clone() } else { self.name.clone() }
    }

    /// Returns the common run length of all jobs.
    fn length(&self, spans: &[Span], remarks: &mut Vec<Remark>) -> Result<ScenarioLength, WorkloadError> {
        let times = || self.jobs.iter().map(|job| job.limits.time_ns);
        if let Some(shortest_ns) = times().flatten().min().filter(|_| self.ends_with_first) {
            return Ok(ScenarioLength::TimeNs(shortest_ns));
        }
        if let Some(longest_ns) = times().flatten().max() {
            if times().any(|time_ns| time_ns != Some(longest_ns)) {
                remarks.push(remark("limits", "all jobs run until the job with the longest time ends"));
            }
            return Ok(ScenarioLength::TimeNs(longest_ns));
        }
        let mut requests = 0u64;
        for (job, span) in self.jobs.iter().zip(spans) {
            requests = requests.saturating_add(requests_of(job, *span).saturating_mul(u64::from(job.copies.max(1))));
        }
        if self.jobs.len() > 1 {
            remarks.push(remark(
                "limits",
                "the run ends after the requests of all jobs together, not each job after its own requests",
            ));
        }
        Ok(ScenarioLength::Requests(requests))
    }

    /// Adds remarks on settings that apply only to measurements, one per kind of setting.
    fn leave_out(&self, remarks: &mut Vec<Remark>) {
        let mut note_ignored = |option: &str, is_left_out: &dyn Fn(&Job) -> bool, message: &str| {
            let jobs: Vec<&str> =
                self.jobs.iter().filter(|job| is_left_out(job)).map(|job| job.name.as_str()).collect();
            if let Some(first) = jobs.first() {
                let others = if jobs.len() > 1 { format!(" and {} more", jobs.len() - 1) } else { String::new() };
                remarks.push(remark(option, format!("{message} ({first}{others})")));
            }
        };
        let earliest_ns = self.jobs.iter().map(|job| job.start_delay_ns).min().unwrap_or(0);
        let is_open = |job: &Job| matches!(job.workload.arrivals, Arrivals::Open { .. });
        let is_both = |job: &Job| {
            job.limits.time_ns.is_some() && job.limits != Limits { time_ns: job.limits.time_ns, ..Limits::default() }
        };
        note_ignored(
            "direct",
            &|job| !job.direct && job.engine != JobEngine::Null,
            "the page cache of the host is not simulated",
        );
        note_ignored(
            "engine",
            &|job| job.engine == JobEngine::Null,
            "requests of the null engine go to the simulated system",
        );
        note_ignored("sync", &|job| job.sync == Sync::File, "writes include data but not timestamps, as with O_DSYNC");
        note_ignored("flow", &|job| job.flow.is_some(), "jobs do not throttle each other");
        note_ignored(
            "rates",
            &|job| job.rates_per_s.is_some(),
            "one schedule covers all kinds of requests; no kind has its own rate",
        );
        note_ignored(
            "zones",
            &|job| job.zones.is_some(),
            "models have no zones: requests keep their addresses, and zones are not reset",
        );
        note_ignored("bounds", &|job| !job.bounds.is_none(), "jobs that miss these limits do not end");
        note_ignored("verify", &|job| job.verify != Verify::No, "a simulation stores no data to verify");
        note_ignored("seed", &|job| job.seed.is_some(), "the seed of the simulation is used, not the job's seed");
        note_ignored("start_delay", &|job| job.start_delay_ns > earliest_ns, "all jobs start together");
        note_ignored("slots", &is_open, "the host submits each request on arrival, at any queue depth");
        note_ignored("limits", &is_both, "the job ends after its time limit, not after its requests or bytes");
    }
}

fn remark(option: &str, message: impl Into<String>) -> Remark {
    Remark { line: 0, option: option.to_owned(), message: message.into() }
}

fn access(job: &Job, load: Load) -> Access {
    Access {
        load,
        lines: job.workload.specification.lines.clone(),
        addresses: job.workload.addresses.clone(),
        pointers: job.workload.streams,
        flush_every: job.workload.flush_every,
        sync_every: job.workload.sync_every,
        dsync_every: dsync_every(job),
        sequence: job.workload.sequence,
    }
}

/// Returns the number of writes from one with O_DSYNC to the next one.
fn dsync_every(job: &Job) -> u64 {
    match job.sync {
        Sync::No => job.workload.dsync_every,
        Sync::Data | Sync::File => 1,
    }
}

/// Whether each copy counts its writes before a flush or a synchronous write.
fn counts_writes(job: &Job) -> bool {
    job.workload.flush_every | job.workload.sync_every > 0 || dsync_every(job) > 1
}

/// Returns the arrivals of one stream that puts the same load as all copies; `None` if each copy needs its own stream
/// because of its sequential pointer, its hot blocks, its count of writes before a flush, or its fixed arrival
/// intervals.
fn merged(job: &Job) -> Option<Arrivals> {
    if job.copies <= 1 {
        return Some(job.workload.arrivals);
    }
    let is_random = job.workload.specification.lines.iter().all(|line| line.random_percent == 100.0 && line.burst == 1);
    let is_memoryless = match job.workload.addresses {
        Addresses::Uniform | Addresses::Normal { .. } | Addresses::HotBands(_) | Addresses::VdbenchHotband { .. } => {
            true
        }
        Addresses::Once
        | Addresses::RandomMap
        | Addresses::Strided { .. }
        | Addresses::Zipf { .. }
        | Addresses::Pareto { .. } => false,
    };
    let is_plain =
        job.workload.sequence == Sequence { kinds_apart: job.workload.sequence.kinds_apart, ..Sequence::default() };
    if !is_random || !is_memoryless || !is_plain || counts_writes(job) {
        return None;
    }
    match job.workload.arrivals {
        Arrivals::Closed { queue_depth, think } => {
            let queue_depth = queue_depth.checked_mul(job.copies).filter(|all| *all <= QUEUE_DEPTH_MAX)?;
            Some(Arrivals::Closed { queue_depth, think })
        }
        // The sum of Poisson processes is a Poisson process; other processes have no such property.
        Arrivals::Open { rate_per_s, process: ArrivalProcess::Poisson } => {
            let rate_per_s = rate_per_s * f64::from(job.copies);
            (rate_per_s <= 1e9).then_some(Arrivals::Open { rate_per_s, process: ArrivalProcess::Poisson })
        }
        Arrivals::Open { .. } => None,
    }
}

/// Returns the workload of a job on the whole system, with all copies merged.
fn workload(job: &Job, span: Span) -> Result<Workload, WorkloadError> {
    let requests = requests_of(job, span).saturating_mul(u64::from(job.copies.max(1)));
    let workload = Workload {
        name: job.name.clone(),
        arrivals: merged(job).unwrap_or(job.workload.arrivals),
        dsync_every: dsync_every(job),
        run_length: job.limits.time_ns.map_or(RunLength::Requests(requests), RunLength::TimeNs),
        ..job.workload.clone()
    };
    workload.validate()?;
    Ok(workload)
}

/// Returns the number of requests of one copy: given by its limits, or else by one pass over its part.
fn requests_of(job: &Job, span: Span) -> u64 {
    let lines = &job.workload.specification.lines;
    let mean_bytes: f64 = lines.iter().map(|line| f64::from(line.size_bytes) * line.share_percent / 100.0).sum();
    let of = |bytes: f64| (bytes / mean_bytes).ceil() as u64;
    let length_bytes = span.length_bytes as f64;
    let of_bytes = job.limits.bytes.map(|bytes| of(bytes as f64));
    let of_passes = job.limits.passes.map(|passes| of(passes * length_bytes));
    let limits = [job.limits.requests, job.limits.transfers, of_bytes, of_passes];
    limits.into_iter().flatten().min().unwrap_or_else(|| of(length_bytes)).max(1)
}
