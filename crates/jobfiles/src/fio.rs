//! fio's job files and command lines.
//!
//! [`read`] and [`from_arguments`] accept every option of fio. Supported options become part of the model. An
//! unsupported option that would have an effect leaves a [`Remark`](super::Remark). An unknown option is an error that
//! suggests the nearest known name. Malformed values are errors, even for unsupported options.
//!
//! fio's defaults apply: sequential reads of 4 KiB with queue depth 1, through the page cache, by pread(2). Random
//! requests touch every block once before they touch any twice. `size` applies to each copy of a job.

mod direction;
mod distribution;
#[cfg(test)]
mod documented;
mod engine;
mod expression;
mod job;
mod layout;
mod mix;
mod options;
mod settings;
mod syntax;
mod values;

use std::collections::BTreeMap;
use std::io;

use headstack_workload::document::InputError;

use super::{Job, JobFile, Limits, Phase};
use settings::{Remarks, Settings};
pub use syntax::KEYWORDS;
use syntax::{Section, Setting};

/// Reads a job file; `file` is its name in errors.
///
/// `environment` returns the values of variables and of the [`KEYWORDS`], as [`surroundings`] does. `include` returns
/// the text of the file that a line `include NAME` names. `chosen` lists the sections to read, like fio's `--section`;
/// an empty list selects all.
///
/// # Errors
/// If a chosen section does not exist, the text is not a job file, a section or an option cannot be measured (for
/// example an engine for neither files nor block devices, or a replay), an option is unknown, or a value is not
/// allowed. The error names file, line and option.
pub fn read(
    file: &str,
    text: &str,
    chosen: &[String],
    environment: &dyn Fn(&str) -> Option<String>,
    include: &dyn Fn(&str) -> io::Result<String>,
) -> Result<JobFile, InputError> {
    let mut sections = syntax::read(file, text, environment, include)?;
    if let Some(missing) = chosen.iter().find(|name| !sections.iter().any(|section| section.name == **name)) {
        let names: Vec<&str> = sections.iter().map(|section| section.name.as_str()).collect();
        let message = format!("there is no [{missing}]; allowed: {}", names.join(", "));
        return Err(InputError { file: file.to_owned(), line: None, key: "section".to_owned(), message });
    }
    let is_chosen = |section: &Section| section.name == "global" || chosen.contains(&section.name);
    sections.retain(|section| chosen.is_empty() || is_chosen(section));
    translate(sections, file, Remarks::default())
}

/// Reads the arguments of fio's command line, with or without the word `fio` before them. Each `--name` starts a job;
/// options before the first `--name` apply to all jobs. Remarks have argument numbers instead of line numbers.
///
/// # Errors
/// Returns the same errors as [`read`], with the name of the option.
pub fn from_arguments(arguments: &[String]) -> Result<JobFile, InputError> {
    let line = syntax::read_arguments(arguments, &surroundings)?;
    let mut remarks = Remarks::default();
    for (option, place) in line.of_program {
        remarks.at(&place, &option, "applies to the program fio, not to its jobs");
    }
    translate(line.sections, "fio", remarks)
}

/// Returns the value on this machine of an environment variable or of one of the [`KEYWORDS`]; `None` if it has no
/// value.
pub fn surroundings(name: &str) -> Option<String> {
    match name {
        "$ncpus" => std::thread::available_parallelism().ok().map(|count| count.to_string()),
        "$pagesize" => page_bytes().map(|bytes| bytes.to_string()),
        "$mb_memory" => memory_mib().map(|mib| mib.to_string()),
        _ => std::env::var(name).ok(),
    }
}

/// Reads the page size from the auxiliary vector that the kernel passes to each process. The vector consists of pairs
/// of words; key 6 (`AT_PAGESZ`) is the page size.
fn page_bytes() -> Option<usize> {
    const WORD_BYTES: usize = size_of::<usize>();
    let vector = std::fs::read("/proc/self/auxv").ok()?;
    let word = |bytes: &[u8]| bytes.try_into().map(usize::from_ne_bytes).ok();
    let pair = vector.chunks_exact(2 * WORD_BYTES).find(|pair| word(&pair[..WORD_BYTES]) == Some(6))?;
    word(&pair[WORD_BYTES..])
}

fn memory_mib() -> Option<u64> {
    let table = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = table.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix("kB")?;
    kib.trim().parse::<u64>().ok().map(|kib| kib / 1024)
}

fn translate(sections: Vec<Section>, source: &str, mut remarks: Remarks) -> Result<JobFile, InputError> {
    let mut plan = Plan::default();
    let mut globals = Settings::default();
    let mut global: Vec<(String, String)> = Vec::new();
    for section in &sections {
        for setting in &section.settings {
            if let Some(message) = setting.remark()? {
                remarks.add(setting, message);
            }
        }
        remarks.section = section.place.clone();
        if section.name == "global" {
            for setting in &section.settings {
                globals.add(setting);
                state(&mut global, setting);
            }
        } else {
            plan.add(section, source, &globals, &mut remarks)?;
        }
    }
    remarks.list.sort_by_key(|remark| remark.line);
    let ends_with_first = plan.ends_with_first;
    let phase = |jobs, loops_previous| Phase { jobs, ends_with_first, loops_previous, ..Phase::default() };
    let mut phases = Vec::new();
    for jobs in plan.phases {
        let (jobs, loops) = verified_loops(jobs);
        phases.push(phase(jobs.clone(), false));
        phases.extend((1..loops).map(|_| phase(jobs.clone(), true)));
    }
    Ok(JobFile { phases, remarks: remarks.list, global, ..JobFile::default() })
}

/// Returns the jobs and the number of loops. If the jobs verify each loop before the next, the jobs are those of a
/// single loop; otherwise they are unchanged and the number is 1.
fn verified_loops(planned: Vec<Planned>) -> (Vec<Job>, u64) {
    let loops = planned.first().map_or(1, |first| first.verified_loops);
    let is_looped = loops > 1 && planned.iter().all(|one| one.verified_loops == loops);
    let mut jobs: Vec<Job> = planned.into_iter().map(|one| one.job).collect();
    if !is_looped {
        return (jobs, 1);
    }
    for job in &mut jobs {
        let Limits { transfers, bytes, passes, .. } = job.limits;
        let shared = |limit: Option<u64>| limit.map(|limit| limit / loops);
        let passes = passes.map(|passes| passes / loops as f64);
        job.limits = Limits { transfers: shared(transfers), bytes: shared(bytes), passes, ..job.limits };
    }
    (jobs, loops)
}

/// Stores a setting as written; a repeated setting replaces the first.
fn state(written: &mut Vec<(String, String)>, setting: &Setting) {
    let (name, value) = (setting.option.name, setting.written.clone());
    match written.iter_mut().find(|(known, _)| known == name) {
        Some(entry) => entry.1 = value,
        None => written.push((name.to_owned(), value)),
    }
}

/// A job, and how many of its loops are each verified before the next loop; 1 if they are not.
#[derive(Clone)]
struct Planned {
    job: Job,
    verified_loops: u64,
}

/// Assignment of jobs to phases.
#[derive(Default)]
struct Plan {
    phases: Vec<Vec<Planned>>,
    /// Phase of jobs that wait for no other job: the phase after the last barrier.
    current: usize,
    /// Phase of each job, by job name.
    phase_of: BTreeMap<String, usize>,
    group: u32,
    jobs: u64,
    files: u64,
    /// fio's `exitall` is a single switch for all jobs of a file.
    ends_with_first: bool,
}

impl Plan {
    fn add(
        &mut self,
        section: &Section,
        source: &str,
        globals: &Settings,
        remarks: &mut Remarks,
    ) -> Result<(), InputError> {
        let mut settings = globals.clone();
        section.settings.iter().for_each(|setting| settings.add(setting));
        // As in fio, a `name` in the global section names no job, and a `name` in a job section names the job's report
        // but not its files.
        let own_name = section.settings.iter().rfind(|setting| setting.option.name == "name");
        let name = own_name.map(|setting| setting.value.trim()).filter(|name| !name.is_empty());
        let name = name.unwrap_or(&section.name).to_owned();
        let mut jobs = job::jobs(&name, &section.name, source, &settings, remarks)?;
        self.count(&jobs, &settings)?;
        let is_barrier = settings.is("stonewall", false) && !self.phases.is_empty();
        if (is_barrier || settings.is("new_group", false)) && !self.phases.is_empty() {
            self.group += 1;
        }
        if is_barrier {
            self.current = self.phases.len();
        }
        let phase = self.phase(&settings, remarks)?;
        let mut as_written = Vec::new();
        section.settings.iter().for_each(|setting| state(&mut as_written, setting));
        for job in &mut jobs {
            job.group = settings.is("group_reporting", false).then_some(self.group);
            job.as_written = as_written.clone();
        }
        self.phases.resize(self.phases.len().max(phase + 1), Vec::new());
        let verified_loops = job::verified_loops(&settings, &jobs, remarks)?;
        self.phases[phase].extend(jobs.into_iter().map(|job| Planned { job, verified_loops }));
        self.phase_of.insert(name, phase);
        self.ends_with_first |= settings.is("exitall", false);
        Ok(())
    }

    fn count(&mut self, jobs: &[Job], settings: &Settings) -> Result<(), InputError> {
        self.jobs += jobs.iter().map(|job| u64::from(job.copies)).sum::<u64>();
        self.files += jobs.iter().map(|job| job.targets.len() as u64).sum::<u64>();
        if self.jobs > job::JOBS_MAX {
            return Err(settings.error(&["numjobs"], format!("yields more than {} jobs; reduce it", job::JOBS_MAX)));
        }
        if self.files > layout::FILES_MAX {
            return Err(
                settings.error(&["nrfiles"], format!("yields more than {} files; reduce it", layout::FILES_MAX))
            );
        }
        Ok(())
    }

    /// Returns the phase of a job: the current one, or the one after the job for which it waits.
    fn phase(&self, settings: &Settings, remarks: &mut Remarks) -> Result<usize, InputError> {
        let Some(setting) = settings.get("wait_for").filter(|setting| !matches!(setting.value.as_str(), "" | "none"))
        else {
            return Ok(self.current);
        };
        let Some(awaited) = self.phase_of.get(setting.value.trim()) else {
            let message = format!("there is no job {:?} before this one", setting.value);
            return Err(setting.error(message));
        };
        if self.phases[*awaited].iter().any(|one| one.job.name != setting.value.trim()) {
            remarks.add(setting, "waits for all jobs that run with the named one");
        }
        Ok(self.current.max(awaited + 1))
    }
}
