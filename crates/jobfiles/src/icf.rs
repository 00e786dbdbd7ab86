//! Iometer's configuration files (`.icf`).
//!
//! Iometer runs the first access specification of all workers at the same time, then the second, and so on. It repeats
//! each as its cycling of workers, targets and queue depth requires. Each of these tests is a [`Phase`]. A worker has a
//! queue depth and a sequential pointer for *each* of its targets, so each target of a worker is a [`Job`], and the
//! jobs of a worker form a group.
//!
//! Settings that only affect Iometer's window (results display, which results to save, how many workers to create) do
//! not change the load and are ignored.

mod cycling;
mod manager;
mod specifications;
mod text;

use headstack_workload::{
    AccessSpecification, Addresses, Arrivals, InputError, QUEUE_DEPTH_MAX, RunLength, Think, WarmUp, Workload,
};

use self::cycling::{Candidate, Cycle, Cycles, STEPS_MAX, Step, TestKind};
use self::manager::Worker;
use self::specifications::Specifications;
use self::text::{Entries, Entry, remark};
use super::{Bounds, Extent, Job, JobEngine, JobFile, Limits, Part, Phase, Remark, Sync, Verify};

/// Size of Iometer's sectors, in bytes.
const SECTOR_BYTES: u64 = 512;

/// Maximum run time in hours, minutes or seconds each: ten years in hours.
const TIME_MAX: u64 = 87_600;

/// Maximum number of jobs of all tests; a higher number indicates a mistake in the file.
const JOBS_MAX: usize = 50_000;

const END_SETUP: &str = "END test setup";

/// Reads an `.icf` file of any version of Iometer.
///
/// Targets keep their names from the file (`C:`, `PHYSICALDRIVE:1`, `sda`); the caller maps them to this machine. If no
/// worker of the file has a target, the jobs have no target names, and the caller chooses the targets.
///
/// # Errors
/// If a line is not valid in Iometer. Returns the first such line with the allowed values.
pub fn read(file: &str, text: &str) -> Result<JobFile, InputError> {
    let mut entries = Entries::new(file, text)?;
    let mut remarks = Vec::new();
    let mut setup = Setup::default();
    let mut specifications = Specifications::new();
    let mut workers = Vec::new();
    let mut in_display = false;
    while let Some(entry) = entries.next() {
        let is = |section: &str| entry.key.to_ascii_uppercase().starts_with(section);
        if is("TEST SETUP") {
            in_display = false;
            setup.read(&mut entries)?;
        } else if is("RESULTS DISPLAY") {
            in_display = true;
        } else if is("ACCESS SPECIFICATIONS") {
            in_display = false;
            match entries.has_names {
                true => specifications.read(&mut entries, &mut remarks)?,
                false => specifications.read_old(&mut entries, &entry)?,
            }
        } else if is("MANAGER LIST") {
            in_display = false;
            manager::read(&mut entries, &mut workers, &mut remarks)?;
        } else if !in_display {
            let sections = "'TEST SETUP, 'RESULTS DISPLAY, 'ACCESS SPECIFICATIONS, 'MANAGER LIST";
            return Err(entries.misplaced(&entry, sections));
        }
    }
    let mut phases = Phases { setup: &setup, phases: Vec::new(), jobs: 0 };
    phases.fill(&entries, &specifications, workers, &mut remarks)?;
    let phases = phases.phases;
    remarks.sort_by_key(|remark| remark.line);
    let mut global = Vec::new();
    if !setup.description.is_empty() {
        global.push(("description".to_owned(), setup.description));
    }
    Ok(JobFile { phases, remarks, global, ..JobFile::default() })
}

/// Settings from the section TEST SETUP.
struct Setup {
    description: String,
    run_time_ns: Option<u64>,
    ramp_up_ns: u64,
    cycles: Cycles,
}

impl Default for Setup {
    fn default() -> Setup {
        let once = Cycle { start: 1, step: 1, exponential: false, line: 0 };
        let cycles = Cycles { kind: TestKind::Normal, workers: once, targets: once, depths: once, last_depth: 1 };
        Setup { description: String::new(), run_time_ns: None, ramp_up_ns: 0, cycles }
    }
}

impl Setup {
    fn read(&mut self, entries: &mut Entries) -> Result<(), InputError> {
        loop {
            let entry = entries.before(END_SETUP)?;
            let is = |key: &str| entry.key.eq_ignore_ascii_case(key);
            if is(END_SETUP) {
                break;
            } else if is("Test Description") {
                self.description = entry.values.first().map_or(String::new(), |value| value.text.to_owned());
            } else if is("Run Time") {
                self.run_time_ns = Some(run_time_ns(entries, &entry)?).filter(|time_ns| *time_ns > 0);
            } else if entry.key.to_ascii_lowercase().starts_with("ramp up time") {
                self.ramp_up_ns = whole(entries, &entry)?.number("seconds", 0..=TIME_MAX * 3_600)? * 1_000_000_000;
            } else if is("Worker Cycling") {
                self.cycles.workers = cycle(entries, &entry)?.0;
            } else if is("Disk Cycling") || is("Target Cycling") {
                self.cycles.targets = cycle(entries, &entry)?.0;
            } else if is("Queue Depth Cycling") {
                (self.cycles.depths, self.cycles.last_depth) = cycle(entries, &entry)?;
            } else if is("Test Type") {
                self.cycles.kind = test_kind(entries, &entry)?;
            } else if !["Default Workers to Spawn", "Default Disk Workers to Spawn"].into_iter().any(is)
                && !["Default Network Workers to Spawn", "Record Results"].into_iter().any(is)
            {
                let allowed = "'Test Description, 'Run Time, 'Ramp Up Time (s), 'Default Disk Workers to Spawn, \
                               'Default Network Workers to Spawn, 'Record Results, 'Worker Cycling, 'Disk Cycling, \
                               'Queue Depth Cycling, 'Test Type, 'END test setup";
                return Err(entries.misplaced(&entry, allowed));
            }
        }
        self.check_cycles(entries)
    }

    /// Checks only the cycles that the kind of test uses.
    fn check_cycles(&self, entries: &Entries) -> Result<(), InputError> {
        let Cycles { kind, workers, targets, depths, .. } = self.cycles;
        let used: &[(&str, Cycle)] = match kind {
            TestKind::Normal => &[],
            TestKind::Workers => &[("Worker Cycling", workers)],
            TestKind::Targets | TestKind::TargetsParallel | TestKind::TargetsSerial => &[("Disk Cycling", targets)],
            TestKind::WorkersAndTargets => &[("Worker Cycling", workers), ("Disk Cycling", targets)],
            TestKind::Depths => &[("Queue Depth Cycling", depths)],
            TestKind::DepthsAndTargets => &[("Disk Cycling", targets), ("Queue Depth Cycling", depths)],
        };
        for (name, cycle) in used {
            if cycle.start == 0 || cycle.step == 0 {
                let message = "start and step must be 1 or more";
                return Err(entries.error(cycle.line, name, message));
            }
        }
        Ok(())
    }
}

/// Returns the fields of a value that may be separated by blanks, as in Iometer's times and cycles.
fn whole<'t>(entries: &Entries<'t>, entry: &Entry<'t>) -> Result<text::Fields<'t>, InputError> {
    let value =
        entry.values.first().copied().ok_or_else(|| entries.error(entry.line, entry.key, "the value is missing"))?;
    Ok(entries.fields_of(entry.key, value, true))
}

fn run_time_ns(entries: &Entries, entry: &Entry) -> Result<u64, InputError> {
    let mut fields = whole(entries, entry)?;
    let mut seconds = 0;
    for (name, unit) in [("hours", 3_600), ("minutes", 60), ("seconds", 1)] {
        seconds += fields.number(name, 0..=TIME_MAX)? * unit;
    }
    Ok(seconds * 1_000_000_000)
}

/// Reads the start, step and kind of step of a cycle. A queue depth cycle has its end as the second field.
fn cycle(entries: &Entries, entry: &Entry) -> Result<(Cycle, u32), InputError> {
    let mut fields = whole(entries, entry)?;
    let start = fields.number_u32("start", 0..=QUEUE_DEPTH_MAX)?;
    let end = match entry.key.eq_ignore_ascii_case("Queue Depth Cycling") {
        true => fields.number_u32("end", 0..=QUEUE_DEPTH_MAX)?,
        false => start,
    };
    let step = fields.number_u32("step", 0..=QUEUE_DEPTH_MAX)?;
    // Old files have numbers instead of words.
    let kinds = [("LINEAR", false), ("EXPONENTIAL", true), ("0", false), ("1", true)];
    let exponential = fields.word("step type", &kinds)?;
    Ok((Cycle { start, step, exponential, line: fields.line() }, end))
}

fn test_kind(entries: &Entries, entry: &Entry) -> Result<TestKind, InputError> {
    let mut fields = whole(entries, entry)?;
    let numbers = ["0", "1", "2", "3", "4", "5", "6", "7"];
    let numbered = numbers.into_iter().zip(TestKind::ALL.map(|(_, kind)| kind));
    fields.word("test type", &TestKind::ALL.into_iter().chain(numbered).collect::<Vec<_>>())
}

/// The tests of a file, in order.
struct Phases<'s> {
    setup: &'s Setup,
    phases: Vec<Phase>,
    /// Number of jobs added so far.
    jobs: usize,
}

impl Phases<'_> {
    fn fill(
        &mut self,
        entries: &Entries,
        specifications: &Specifications,
        mut workers: Vec<Worker>,
        remarks: &mut Vec<Remark>,
    ) -> Result<(), InputError> {
        if workers.is_empty() {
            remarks.push(remark(
                0,
                "MANAGER LIST",
                "the file has no disk worker: one worker runs each of its access \
                specifications at queue depth 1",
            ));
            let mut worker = Worker::new("Worker 1", 0, 0);
            worker.specifications =
                Some(specifications.all().map(|specification| (specification.name.clone(), 0)).collect());
            workers.push(worker);
        }
        self.assign_targets(&mut workers, remarks);
        let assigned = workers.iter().map(|worker| assigned(entries, specifications, worker));
        let assigned = assigned.collect::<Result<Vec<Vec<AccessSpecification>>, InputError>>()?;
        let longest = assigned.iter().map(Vec::len).max().unwrap_or(0);
        for index in 0..longest {
            // A worker does nothing if its specification is idle or it has no more specifications.
            let active = workers.iter().zip(&assigned).filter_map(|(worker, assigned)| {
                assigned
                    .get(index)
                    .filter(|specification| !specification.lines.is_empty())
                    .map(|specification| (worker, specification))
            });
            self.add(entries, &active.collect::<Vec<_>>())?;
        }
        if self.setup.run_time_ns.is_none() && !self.phases.is_empty() {
            remarks.push(remark(
                0,
                "Run Time",
                "the run time is 0, so Iometer would run until stopped: \
                each test ends after one pass over its part of the disk",
            ));
        }
        Ok(())
    }

    /// Assigns the targets. Iometer runs no worker without a target.
    fn assign_targets(&self, workers: &mut Vec<Worker>, remarks: &mut Vec<Remark>) {
        if workers.iter().all(|worker| worker.targets.is_empty()) {
            workers.iter_mut().for_each(|worker| worker.targets.push(String::new()));
            return;
        }
        for worker in workers.iter().filter(|worker| worker.targets.is_empty()) {
            remarks.push(remark(
                worker.line,
                "Target assignments",
                format!("{} has no target and is idle", worker.name),
            ));
        }
        workers.retain(|worker| !worker.targets.is_empty());
    }

    /// Adds the tests of the specifications that run at the same time, with their workers.
    fn add(&mut self, entries: &Entries, active: &[(&Worker, &AccessSpecification)]) -> Result<(), InputError> {
        if active.is_empty() {
            return Ok(());
        }
        let candidate =
            |(worker, _): &(&Worker, _)| Candidate { manager: worker.manager, targets: worker.targets.len() };
        let candidates: Vec<Candidate> = active.iter().map(candidate).collect();
        let steps = self.setup.cycles.steps(&candidates);
        if self.phases.len() + steps.len() > STEPS_MAX {
            let message = format!("the cycling has more than {STEPS_MAX} tests; use larger steps");
            return Err(entries.error(self.setup.cycles.depths.line.max(1), "Test Type", message));
        }
        for step in steps {
            let mut jobs = Vec::new();
            for (group, ((worker, specification), &targets)) in active.iter().zip(&step.targets).enumerate() {
                let targets = worker.targets.iter().take(targets);
                jobs.extend(targets.map(|target| self.job(worker, specification, target, step.depth, group)));
            }
            self.jobs += jobs.len();
            if self.jobs > JOBS_MAX {
                let message = format!("the file has more than {JOBS_MAX} jobs; split the file");
                return Err(entries.error(self.setup.cycles.depths.line.max(1), "Test Type", message));
            }
            if !jobs.is_empty() {
                let name = self.name(active, &step);
                self.phases.push(Phase { name, jobs, ..Phase::default() });
            }
        }
        Ok(())
    }

    fn name(&self, active: &[(&Worker, &AccessSpecification)], step: &Step) -> String {
        let mut names: Vec<&str> = active.iter().map(|(_, specification)| specification.name.as_str()).collect();
        names.dedup();
        let mut name = names.join(" + ");
        if !matches!(self.setup.cycles.kind, TestKind::Normal | TestKind::Depths) {
            let workers = step.targets.iter().filter(|targets| **targets > 0).count();
            name += &format!(", workers {workers}, targets {}", step.targets.iter().sum::<usize>());
        }
        if let Some(depth) = step.depth {
            name += &format!(", outstanding {depth}");
        }
        name
    }

    fn job(
        &self,
        worker: &Worker,
        specification: &AccessSpecification,
        target: &str,
        depth: Option<u32>,
        group: usize,
    ) -> Job {
        let setup = self.setup;
        let queue_depth = depth.unwrap_or(worker.queue_depth);
        let length_bytes = worker.maximum_sectors.saturating_mul(SECTOR_BYTES);
        let name = match worker.targets.len() {
            1 => worker.name.clone(),
            _ => format!("{} {target}", worker.name),
        };
        Job {
            group: u32::try_from(group).ok(),
            copies: 1,
            targets: if target.is_empty() { Vec::new() } else { vec![target.to_owned()] },
            file_bytes: None,
            part: Part {
                start: Extent::Bytes(worker.first_sector.saturating_mul(SECTOR_BYTES)),
                length: (length_bytes > 0).then_some(Extent::Bytes(length_bytes)),
            },
            engine: JobEngine::Ring,
            // Iometer opens disks without the system's cache (`IOTargetDisk.cpp`).
            direct: true,
            sync: Sync::No,
            workload: Workload {
                name: name.clone(),
                source: String::new(),
                specification: specification.clone(),
                addresses: Addresses::Uniform,
                streams: 1,
                stream_turn: 1,
                flush_every: 0,
                sync_every: 0,
                dsync_every: 0,
                sequence: headstack_workload::Sequence::default(),
                arrivals: Arrivals::Closed { queue_depth, think: Think::None },
                warm_up: WarmUp { requests: 0, time_ns: setup.ramp_up_ns },
                run_length: setup.run_time_ns.map_or_else(RunLength::default, RunLength::TimeNs),
            },
            limits: Limits { time_ns: setup.run_time_ns, ..Limits::default() },
            rates_per_s: None,
            flow: None,
            errors: super::Errors::default(),
            content: super::Content::default(),
            bounds: Bounds::default(),
            flushes_at_end: false,
            zones: None,
            share_percent: None,
            start_delay_ns: 0,
            slots: queue_depth,
            verify: Verify::No,
            first_copy: 0,
            unlink: false,
            invalidate: false,
            percentiles: Vec::new(),
            seed: worker.seed,
            as_written: vec![
                ("access specification".to_owned(), specification.name.clone()),
                ("outstanding".to_owned(), queue_depth.to_string()),
            ],
            name,
        }
    }
}

/// Returns the specifications of a worker, in order.
fn assigned(
    entries: &Entries,
    specifications: &Specifications,
    worker: &Worker,
) -> Result<Vec<AccessSpecification>, InputError> {
    let Some(names) = &worker.specifications else {
        return Ok(specifications.by_default().cloned().collect());
    };
    let find = |(name, line): &(String, usize)| {
        specifications.named(name).ok_or_else(|| {
            let message = format!(
                "there is no access specification {name:?}; allowed: {}, or one of Iometer's own",
                specifications.names()
            );
            entries.error(*line, "Assigned access specs", message)
        })
    };
    names.iter().map(find).collect()
}
