//! Converts run definitions to phases: which workloads run on which storage, how often and at which rate.

use headstack_workload::{Arrivals, InputError, QUEUE_DEPTH_MAX, Think};

use super::definitions::{Load, RunDefinition, Storage};
use super::job::{Placed, job};
use super::values::{Override, Rate, Seek};
use super::{Definitions, Parameter};
use crate::{CurvePoint, Job, Phase, Remark};

/// Maximum number of phases; a higher number indicates a mistake in the file.
pub(super) const PHASES_MAX: usize = 10_000;
const JOBS_MAX: usize = 50_000;
const LINES_MAX: usize = 2_000_000;

/// Tolerance of vdbench for sums of skew, in percent (`HandleSkew.java`).
const SKEW_TOLERANCE: f64 = 0.0001;

/// Returns all runs of a file, in order.
pub(super) fn phases(definitions: &mut Definitions) -> Result<Vec<Phase>, InputError> {
    let mut phases: Vec<Phase> = Vec::new();
    let (mut jobs, mut lines) = (0usize, 0usize);
    let mut pause_ns = 0;
    let mut last_max = None;
    let mut remarks = Vec::new();
    for run in &definitions.runs.all {
        let Some(place) = &run.place else { continue };
        check(run, place)?;
        let loads = loads(definitions, run, place)?;
        for overrides in combinations(&run.loops, place)? {
            for rate in rates(run) {
                let name = name(run, &overrides, rate);
                let mut phase = Runner { definitions, run, place, overrides: &overrides }.phase(&loads, rate, name)?;
                if let Some(point) = &mut phase.curve_point {
                    point.max_phase = last_max.ok_or_else(|| {
                        place.error("the rate is a percentage of an earlier run's result; define that run before it")
                    })?;
                } else {
                    last_max = Some(phases.len());
                }
                // A run's pause follows the run.
                phase.jobs.iter_mut().for_each(|job| job.start_delay_ns = pause_ns);
                pause_ns = run.pause_ns;
                jobs += phase.jobs.len();
                lines += phase.jobs.iter().map(|job| job.workload.specification.lines.len()).sum::<usize>();
                if phases.len() >= PHASES_MAX || jobs > JOBS_MAX || lines > LINES_MAX {
                    let message =
                        format!("the file expands to more than {PHASES_MAX} runs or {JOBS_MAX} jobs; split the file");
                    return Err(place.error(message));
                }
                phases.push(phase);
            }
        }
        remarks.extend(remarks_on(definitions, run, place, &loads));
    }
    definitions.general.remarks.extend(remarks);
    Ok(phases)
}

/// Makes the checks that vdbench makes before a run.
fn check(run: &RunDefinition, place: &Parameter) -> Result<(), InputError> {
    if run.rates.is_empty() {
        return Err(place.error("has no iorate; add iorate=max, iorate=curve or a number"));
    }
    if run.interval_ns == 0 || run.elapsed_ns / run.interval_ns < 2 {
        return Err(place.error("elapsed must be at least twice the interval, and the interval must not be 0"));
    }
    if !run.elapsed_ns.is_multiple_of(run.interval_ns) || !run.warm_up_ns.is_multiple_of(run.interval_ns) {
        return Err(place.error("elapsed and warmup must be multiples of the interval"));
    }
    Ok(())
}

fn remarks_on(definitions: &Definitions, run: &RunDefinition, place: &Parameter, loads: &[Load]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut remark = |option: &str, message: &str| {
        let line = u32::try_from(place.line).unwrap_or(u32::MAX);
        remarks.push(Remark { line, option: option.to_owned(), message: message.to_owned() });
    };
    if run.max_data.is_some() && loads.len() > 1 {
        remark("maxdata", "each workload ends after its own share of the data");
    }
    let sizeless = |name: &String| {
        definitions.storages.all.iter().any(|storage| matches(name, &storage.name) && storage.size_bytes.is_none())
    };
    let unknown = |load: &Load| load.storages.iter().any(sizeless);
    if run.max_data.is_some_and(|data| data < 100.0) && loads.iter().any(unknown) {
        remark("maxdata", "the storage size is unknown; the run ends after its time");
    }
    if loads.iter().any(|load| load.seek == Seek::UntilEnd && unknown(load)) {
        remark("seekpct", "the storage size is unknown; the run ends after its time");
    }
    remarks
}

/// Returns the workloads of a run, with the storage that the run assigns to them.
fn loads(definitions: &Definitions, run: &RunDefinition, place: &Parameter) -> Result<Vec<Load>, InputError> {
    let mut loads: Vec<Load> = Vec::new();
    if run.loads.is_empty() && run.storages.is_some() {
        loads.push(definitions.loads.default.clone());
    } else if run.loads.is_empty() {
        return Err(place.error("has no workload; add wd=NAME"));
    }
    for wanted in &run.loads {
        let found = loads.len();
        loads.extend(definitions.loads.all.iter().filter(|load| matches(wanted, &load.name)).cloned());
        if loads.len() == found {
            return Err(place.error(format!(
                "there is no wd={wanted}; allowed: {}",
                names(&definitions.loads.all, |load| &load.name)
            )));
        }
    }
    if let Some(storages) = &run.storages {
        loads.iter_mut().for_each(|load| load.storages.clone_from(storages));
    }
    if let Some(load) = loads.iter().find(|load| load.streams > 1).filter(|_| loads.len() > 1) {
        return Err(place.error(format!("wd={} has streams, so it must be the only workload of the run", load.name)));
    }
    Ok(loads)
}

/// Whether a name matches. An asterisk is a wildcard only at the end.
pub(super) fn matches(wanted: &str, name: &str) -> bool {
    wanted.strip_suffix('*').map_or(wanted == name, |beginning| name.starts_with(beginning))
}

pub(super) fn names<T>(known: &[T], name: impl Fn(&T) -> &String) -> String {
    known.iter().map(|one| name(one).as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns all combinations of the lists of a run; the first list is the outermost loop.
pub(super) fn combinations<T: Clone>(
    loops: &[(&'static str, Vec<T>)],
    place: &Parameter,
) -> Result<Vec<Vec<T>>, InputError> {
    let mut all: Vec<Vec<T>> = vec![Vec::new()];
    for (keyword, values) in loops {
        if all.len().saturating_mul(values.len()) > PHASES_MAX {
            return Err(
                place.error(format!("{keyword} expands the file to more than {PHASES_MAX} runs; split the file"))
            );
        }
        let with = |known: Vec<T>| {
            values.iter().map(move |value| known.iter().cloned().chain([value.clone()]).collect()).collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(with).collect();
    }
    Ok(all)
}

/// The rate of a run, which may be a point of a curve.
#[derive(Clone, Copy)]
enum Run {
    At(Rate),
    CurvePoint(f64),
}

fn rates(run: &RunDefinition) -> impl Iterator<Item = Run> {
    let with_points = |&rate: &Rate| {
        let points = if rate == Rate::Curve { run.curve_percent.as_slice() } else { &[] };
        [Run::At(rate)].into_iter().chain(points.iter().map(|&percent| Run::CurvePoint(percent)))
    };
    run.rates.iter().flat_map(with_points)
}

/// Returns the name of a run and its loops, as in vdbench.
fn name(run: &RunDefinition, overrides: &[Override], rate: Run) -> String {
    let mut name = run.name.clone();
    if let Run::CurvePoint(percent) = rate {
        name += &format!("_({percent}%)");
    }
    let text = |value: &Override| match value {
        Override::Size(bytes) => format!("xfersize={}", headstack_workload::quantity::format_bytes(u64::from(*bytes))),
        Override::Threads(threads) => format!("threads={threads}"),
        Override::ReadPercent(percent) => format!("rdpct={percent}"),
        Override::Seek(Seek::Random(percent)) => format!("seekpct={percent}"),
        Override::Seek(Seek::UntilEnd) => "seekpct=eof".to_owned(),
    };
    let mut texts: Vec<String> = Vec::new();
    for ((_, values), value) in run.loops.iter().zip(overrides) {
        texts.extend((values.len() > 1).then(|| text(value)));
    }
    if run.rates.len() > 1 {
        texts.extend(match rate {
            Run::At(Rate::Max) => Some("iorate=max".to_owned()),
            Run::At(Rate::PerSecond(rate)) => Some(format!("iorate={rate}")),
            Run::At(Rate::Percent(percent)) => Some(format!("iorate={percent}%")),
            Run::At(Rate::Curve) | Run::CurvePoint(_) => None,
        });
    }
    [name].into_iter().chain(texts).collect::<Vec<_>>().join(" ")
}

/// Converts a run definition to phases.
struct Runner<'d> {
    definitions: &'d Definitions,
    run: &'d RunDefinition,
    place: &'d Parameter,
    overrides: &'d [Override],
}

/// A generator: a workload on some storage.
struct Generator<'d> {
    load: Load,
    /// Storage definitions; several if they are concatenated.
    storages: Vec<&'d Storage>,
    /// Percentage of the requests, among the workloads without their own rate.
    share_percent: f64,
    group: u32,
    /// Number of threads of the storage, shared with other generators.
    threads: u32,
}

impl Runner<'_> {
    fn phase(&self, loads: &[Load], rate: Run, name: String) -> Result<Phase, InputError> {
        let generators = self.generators(loads)?;
        let is_controlled = loads.iter().any(|load| load.skew_percent > 0.0 || load.rate_per_s.is_some());
        let mut jobs =
            generators.iter().map(|generator| self.job(generator)).collect::<Result<Vec<Job>, InputError>>()?;
        let at_max = matches!(rate, Run::At(Rate::Max | Rate::Curve) | Run::CurvePoint(_));
        let unlimited = generators.iter().filter(|generator| generator.load.rate_per_s.is_none()).count();
        let is_pooled = is_controlled && at_max && unlimited > 1;
        for (index, (generator, job)) in generators.iter().zip(&mut jobs).enumerate() {
            let slots = threads_of(&generators, index);
            job.slots = slots;
            let open = |rate_per_s: f64| Arrivals::Open { rate_per_s, process: self.run.process };
            job.workload.arrivals = match (generator.load.rate_per_s, rate) {
                (Some(rate_per_s), _) => open(rate_per_s / generator.siblings(&generators)),
                (None, Run::At(Rate::PerSecond(rate_per_s))) => open(rate_per_s * generator.share_percent / 100.0),
                (None, _) => Arrivals::Closed { queue_depth: slots, think: Think::None },
            };
            job.share_percent = (is_pooled && generator.load.rate_per_s.is_none()).then_some(generator.share_percent);
        }
        let pool = is_pooled.then(|| pool(&generators));
        let point = |percent| CurvePoint {
            max_phase: 0,
            percent,
            process: self.run.process,
            stop_response_ns: self.run.stop_response_ns,
        };
        let curve_point = match rate {
            Run::CurvePoint(percent) | Run::At(Rate::Percent(percent)) => Some(point(percent)),
            Run::At(_) => None,
        };
        Ok(Phase { name, jobs, pool, curve_point, ..Phase::default() })
    }

    /// Returns a generator for each workload and storage, with the skew distributed over the generators.
    fn generators(&self, loads: &[Load]) -> Result<Vec<Generator<'_>>, InputError> {
        let skews = self.skews(loads)?;
        let mut generators: Vec<Generator> = Vec::new();
        for (group, (load, skew)) in loads.iter().zip(skews).enumerate() {
            let storages = self.storages(load)?;
            let mut load = load.clone();
            let mut threads = None;
            for value in self.overrides {
                match *value {
                    Override::Size(bytes) => load.sizes.shares = vec![(bytes, 100.0)],
                    Override::ReadPercent(percent) => load.read_percent = percent,
                    Override::Seek(seek) => load.seek = seek,
                    Override::Threads(count) => threads = Some(count),
                }
            }
            let place = load.place.as_ref().unwrap_or(self.place);
            if load.threads.is_some() && !self.definitions.general.is_concatenated {
                return Err(place.error(
                    "threads in a workload definition need concatenatesds=yes; otherwise set threads in the sd",
                ));
            }
            let parts: Vec<Vec<&Storage>> = match self.definitions.general.is_concatenated {
                true => vec![storages],
                false => storages.into_iter().map(|storage| vec![storage]).collect(),
            };
            let count = parts.len() as f64;
            for storages in parts {
                let own = storages.iter().map(|storage| storage.threads).fold(0u32, u32::saturating_add);
                let threads = threads.or(load.threads).unwrap_or(own).clamp(1, QUEUE_DEPTH_MAX);
                let share_percent = skew / count;
                generators.push(Generator {
                    load: load.clone(),
                    storages,
                    share_percent,
                    group: group as u32,
                    threads,
                });
            }
        }
        Ok(generators)
    }

    /// Returns the skew of each workload, in percent. Workloads without skew divide the rest evenly
    /// (`HandleSkew.spreadWdSkew`).
    fn skews(&self, loads: &[Load]) -> Result<Vec<f64>, InputError> {
        let mut skews: Vec<f64> = loads.iter().map(|load| load.skew_percent).collect();
        let free = |load: &Load| load.rate_per_s.is_none();
        if !loads.iter().any(free) {
            return Ok(skews);
        }
        let given: f64 = skews.iter().sum();
        let open = loads.iter().filter(|load| free(load) && load.skew_percent == 0.0).count();
        for (load, skew) in loads.iter().zip(&mut skews) {
            if free(load) && *skew == 0.0 {
                *skew = (100.0 - given) / open as f64;
            }
        }
        let sum: f64 = skews.iter().sum();
        if (sum - 100.0).abs() > SKEW_TOLERANCE
            || skews.iter().zip(loads).any(|(skew, load)| free(load) && *skew <= 0.0)
        {
            let message = format!(
                "the skew of its workloads sums to {}; it must sum to 100 with a share above 0 for each",
                given.max(sum)
            );
            return Err(self.place.error(message));
        }
        skews.iter_mut().for_each(|skew| *skew *= 100.0 / sum);
        Ok(skews)
    }

    /// Returns the storage of a workload.
    fn storages(&self, load: &Load) -> Result<Vec<&Storage>, InputError> {
        let place = load.place.as_ref().unwrap_or(self.place);
        let mut storages: Vec<&Storage> = Vec::new();
        for wanted in &load.storages {
            let mut found =
                self.definitions.storages.all.iter().filter(|storage| matches(wanted, &storage.name)).peekable();
            if found.peek().is_none() {
                let known = names(&self.definitions.storages.all, |storage| &storage.name);
                return Err(place.error(format!("there is no sd={wanted}; allowed: {known}")));
            }
            for storage in found {
                if storages.iter().any(|known| known.name == storage.name) {
                    return Err(
                        place.error(format!("sd={} is named more than once; remove the duplicate", storage.name))
                    );
                }
                storages.push(storage);
            }
        }
        match storages.is_empty() {
            true => Err(place.error(format!("wd={} has no storage; add sd=NAME", load.name))),
            false => Ok(storages),
        }
    }

    fn job(&self, generator: &Generator) -> Result<Job, InputError> {
        let Generator { load, storages, share_percent, group, threads } = generator;
        let place = load.place.as_ref().unwrap_or(self.place);
        let placed = Placed {
            load,
            storages,
            run: self.run,
            place,
            share_percent: *share_percent,
            threads: *threads,
            verify: self.definitions.general.verify,
        };
        Ok(Job { group: Some(*group), ..job(&placed)? })
    }
}

impl Generator<'_> {
    /// Returns the number of generators of this generator's workload.
    fn siblings(&self, generators: &[Generator]) -> f64 {
        generators.iter().filter(|other| other.group == self.group).count() as f64
    }

    fn shares_threads_with(&self, other: &Generator) -> bool {
        self.storages.iter().map(|storage| &storage.name).eq(other.storages.iter().map(|storage| &storage.name))
    }
}

/// Returns the number of threads of a generator. A storage's threads are divided among its generators by their shares;
/// the largest remainders get the rest, and each generator has at least one.
fn threads_of(generators: &[Generator], index: usize) -> u32 {
    let own = &generators[index];
    let sharing: Vec<usize> = (0..generators.len()).filter(|&i| generators[i].shares_threads_with(own)).collect();
    let total: f64 = sharing.iter().map(|&i| generators[i].share_percent).sum();
    let exact = |i: usize| match total > 0.0 {
        true => f64::from(own.threads) * generators[i].share_percent / total,
        false => f64::from(own.threads) / sharing.len() as f64,
    };
    let given: u32 = sharing.iter().map(|&i| exact(i).floor() as u32).sum();
    let mut by_remainder = sharing.clone();
    by_remainder.sort_by(|&a, &b| exact(b).fract().total_cmp(&exact(a).fract()));
    let rank = by_remainder.iter().position(|&i| i == index).unwrap_or(usize::MAX);
    let extra = u32::from(rank < own.threads.saturating_sub(given) as usize);
    (exact(index).floor() as u32 + extra).clamp(1, QUEUE_DEPTH_MAX)
}

/// Returns the number of threads of all storage.
fn pool(generators: &[Generator]) -> u32 {
    let first =
        |index: &usize| generators[..*index].iter().all(|other| !other.shares_threads_with(&generators[*index]));
    let threads = (0..generators.len()).filter(first).map(|index| generators[index].threads);
    threads.fold(0u32, u32::saturating_add).clamp(1, QUEUE_DEPTH_MAX)
}
