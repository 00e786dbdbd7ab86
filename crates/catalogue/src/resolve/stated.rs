//! Fits values of a disk to the figures that its sheet promises under `[stated]`.
//!
//! | stated | solved for: the first missing one of |
//! | --- | --- |
//! | `random_read` | the mean seek; the number of commands that the firmware commits itself to |
//! | `random_write` | the extents of the write cache, which is a protected one if the sheet's is switched off and writes are still sorted |
//!
//! If there is no fit, the derived values report the difference.

use std::sync::{Mutex, PoisonError};

use headstack_sim::drive::description::{DriveDescription, WriteCache};
use headstack_sim::{RunSpec, run};
use headstack_workload::quantity::DurationNs;
use headstack_workload::{Arrivals, Document, InputError, RunLength, Think, Workload};

use super::{Derived, complete};
use crate::file::{CacheState, DriveFile, StatedWrites};
use crate::stated::StatedRate;

/// Relative difference from a stated figure above which the stated figures contradict each other.
const CONTRADICTION: f64 = 0.1;

/// Relative difference that counts as a fit. Sheets are rounded to two or three digits, and a trial has its own error.
const FIT_TOLERANCE: f64 = 0.01;

/// Number of requests in a trial, which gives a standard error of the mean service time below 1 %.
const REQUESTS: u64 = 4000;

/// Range of mean seek times of known disks in ms, where a search starts.
const SEEKS_MS: (f64, f64) = (1.5, 30.0);
const USUAL_SEEKS_MS: (f64, f64) = (7.0, 9.0);

/// Maximum number of extents in a fitted write cache: 16 MiB of 4 KiB extents. More would also be slow to simulate.
const EXTENTS_MAX: u32 = 4096;

/// Number of extents of the smaller caches that are simulated for extrapolation.
const FEW_EXTENTS: u32 = 256;
const MANY_EXTENTS: u32 = 1024;

/// Maximum number of steps in a search.
const STEPS: u32 = 6;

/// A file with the fitted values, and their keys.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    pub file: DriveFile,
    pub derived: Vec<Derived>,
}

/// Number of cached files with their solutions, because a sweep resolves the same drive repeatedly.
const CACHE_ENTRIES: usize = 64;

static SOLUTIONS_CACHE: Mutex<Vec<(DriveFile, Solved)>> = Mutex::new(Vec::new());

/// Adds missing values to a file so that the drive meets the figures that the file states.
pub(super) fn solve(document: &Document, file: &DriveFile) -> Result<Solved, InputError> {
    let mut solved = Solved { file: file.clone(), derived: Vec::new() };
    if file.stated.random_read.is_none() && file.stated.random_write.is_none() {
        return Ok(solved);
    }
    let solutions_cache = || SOLUTIONS_CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, solved)) = solutions_cache().iter().find(|(other, _)| other == file) {
        return Ok(solved.clone());
    }
    check(document, file)?;
    let mut solver = Solver { document, solved: &mut solved };
    if let Some(stated) = file.stated.random_read {
        solver.reads(stated)?;
    }
    if let Some(stated) = file.stated.random_write {
        solver.writes(stated)?;
    }
    let mut solutions_cache = solutions_cache();
    if solutions_cache.len() == CACHE_ENTRIES {
        solutions_cache.remove(0);
    }
    solutions_cache.push((file.clone(), solved.clone()));
    Ok(solved)
}

fn check(document: &Document, file: &DriveFile) -> Result<(), InputError> {
    let reads = file.stated.random_read.map(|read| ("stated.random_read", read));
    let writes = file.stated.random_write.map(|write| ("stated.random_write", write.rate()));
    for (key, rate) in [reads, writes].into_iter().flatten() {
        let is_possible = rate.iops > 0.0 && rate.iops < 1e5 && (512..=1 << 24).contains(&rate.bytes());
        if !is_possible || rate.depth == Some(0) {
            let message = "must have iops of 1 to 100,000, a depth of 1 or more and a size of 512 B to 16 MiB";
            return Err(document.error(key, message));
        }
    }
    Ok(())
}

/// Returns where the line through two points crosses zero.
fn zero_of(one: (f64, f64), other: (f64, f64)) -> f64 {
    other.0 - other.1 * (other.0 - one.0) / (other.1 - one.1)
}

fn in_tenths_of_us(ms: f64) -> DurationNs {
    DurationNs((ms * 1e4).round() as i64 * 100)
}

fn in_hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

struct Solver<'a> {
    document: &'a Document,
    solved: &'a mut Solved,
}

impl Solver<'_> {
    fn reads(&mut self, stated: StatedRate) -> Result<(), InputError> {
        let seek = &self.solved.file.seek;
        let rate = if seek.read_average.is_none() && super::mechanics::explicit_curve(seek).is_none() {
            let trial = |file: &mut DriveFile, ms: f64| file.seek.read_average = Some(in_tenths_of_us(ms));
            let (ms, rate) = self.search(stated, SEEKS_MS, USUAL_SEEKS_MS, trial)?;
            let average = in_tenths_of_us(ms);
            self.solved.file.seek.read_average = Some(average);
            self.record("seek.read_average", &average, "I remainder of stated.random_read");
            rate
        } else {
            let rate = self.rate(stated, 100.0)?;
            if rate <= stated.iops * (1.0 + FIT_TOLERANCE) || !self.may_commit() {
                rate
            } else {
                // The more commands are committed, the fewer are left to choose from.
                let most = f64::from(stated.depth.unwrap_or(1));
                let set = |file: &mut DriveFile, n: f64| file.queue.committed = Some(in_hundredths(n));
                let (committed, rate) = self.search(stated, (0.0, most), (0.0, most / 4.0), set)?;
                let committed = in_hundredths(committed);
                self.solved.file.queue.committed = Some(committed);
                self.record("queue.committed", &committed, "I remaining choice that matches stated.random_read");
                rate
            }
        };
        self.compare("stated.random_read", stated, rate);
        Ok(())
    }

    /// Whether the file says nothing about how the firmware chooses commands.
    fn may_commit(&self) -> bool {
        let queue = &self.solved.file.queue;
        queue.committed.is_none() && queue.reordering_strength.is_none() && queue.policy.is_none()
    }

    fn writes(&mut self, stated: StatedWrites) -> Result<(), InputError> {
        let rate = stated.rate();
        let buffer = &self.solved.file.buffer;
        if self.solved.file.media_cache.is_none() && buffer.dirty_extents_max.is_none() {
            let plain = self.rate_with(rate, 0.0, |file| file.buffer.write_cache = Some(WriteCache::Off))?;
            let cache = match stated.cache {
                CacheState::On => WriteCache::On,
                // A drive without a write cache can sort no more writes than its queue holds.
                CacheState::Off if buffer.write_cache.is_none() && rate.iops > plain * (1.0 + CONTRADICTION) => {
                    WriteCache::Protected
                }
                CacheState::Off => {
                    self.compare("stated.random_write", rate, plain);
                    return Ok(());
                }
            };
            if buffer.write_cache.is_none() {
                self.solved.file.buffer.write_cache = Some(cache);
                self.record("buffer.write_cache", &cache, "I needed to reach stated.random_write");
            }
            let (extents, reached) = self.search_extents(rate)?;
            self.solved.file.buffer.dirty_extents_max = Some(extents);
            self.record("buffer.dirty_extents_max", &extents, "I queue needed to reach stated.random_write");
            self.compare("stated.random_write", rate, reached);
        } else {
            let reached = self.rate(rate, 0.0)?;
            self.compare("stated.random_write", rate, reached);
        }
        Ok(())
    }

    /// Records the difference between the drive and the stated figure.
    fn compare(&mut self, key: &str, stated: StatedRate, rate: f64) {
        if (rate / stated.iops - 1.0).abs() > CONTRADICTION {
            let reached = format!("{rate:.0} per second");
            self.record(key, &reached, "contradicts the other stated figures; this is the model's rate with them");
        }
    }

    fn record<T: serde::Serialize>(&mut self, key: &str, value: &T, rule: &str) {
        self.solved.derived.push(Derived::new(key, value, rule));
    }

    /// Returns the value within `range` at which the drive meets the stated figure, or the closest end of the range,
    /// and the rate there. Uses the secant method from two initial guesses, because the rate is nearly linear in the
    /// value.
    fn search(
        &self,
        stated: StatedRate,
        range: (f64, f64),
        guesses: (f64, f64),
        set: impl Fn(&mut DriveFile, f64),
    ) -> Result<(f64, f64), InputError> {
        let error = |value: f64| {
            Ok::<f64, InputError>(libm::log(self.rate_with(stated, 100.0, |file| set(file, value))? / stated.iops))
        };
        let mut last = (guesses.0, error(guesses.0)?);
        let mut best = last;
        let mut next = guesses.1;
        for _ in 0..STEPS {
            let candidate = (next, error(next)?);
            if candidate.1.abs() < best.1.abs() {
                best = candidate;
            }
            if best.1.abs() < FIT_TOLERANCE || candidate.1 == last.1 {
                break;
            }
            next = zero_of(last, candidate).clamp(range.0, range.1);
            if next == candidate.0 {
                break;
            }
            last = candidate;
        }
        Ok((best.0, stated.iops * libm::exp(best.1)))
    }

    /// Returns the number of write cache extents with which the drive meets the stated figure, or the closest limit,
    /// and the rate. The rate is a power of the number of extents and is extrapolated from two small caches, because
    /// simulating a large cache would take half a second.
    fn search_extents(&self, stated: StatedRate) -> Result<(u32, f64), InputError> {
        let error = |extents: u32| {
            let rate = self.rate_with(stated, 0.0, |file| file.buffer.dirty_extents_max = Some(extents))?;
            Ok::<(f64, f64), InputError>((libm::log2(f64::from(extents)), libm::log(rate / stated.iops)))
        };
        let (few, many) = (error(FEW_EXTENTS)?, error(MANY_EXTENTS)?);
        if many.1 <= few.1 {
            return Ok((FEW_EXTENTS, stated.iops * libm::exp(few.1)));
        }
        let log2 = zero_of(few, many).clamp(0.0, libm::log2(f64::from(EXTENTS_MAX)));
        let expected = few.1 + (log2 - few.0) * (many.1 - few.1) / (many.0 - few.0);
        Ok((libm::exp2(log2).round() as u32, stated.iops * libm::exp(expected)))
    }

    fn rate(&self, stated: StatedRate, reads_percent: f64) -> Result<f64, InputError> {
        self.rate_with(stated, reads_percent, |_| ())
    }

    /// Returns the rate of the drive after a change to its file.
    fn rate_with(
        &self,
        stated: StatedRate,
        reads_percent: f64,
        change: impl Fn(&mut DriveFile),
    ) -> Result<f64, InputError> {
        let mut file = self.solved.file.clone();
        change(&mut file);
        let (description, _) = complete(self.document, &file)?;
        Ok(random_rate(description, stated, reads_percent))
    }
}

/// Returns the IOPS of a drive under uniform random requests with the stated size and depth.
pub(super) fn random_rate(description: DriveDescription, stated: StatedRate, reads_percent: f64) -> f64 {
    let entry = crate::workloads()
        .iter()
        .find(|entry| entry.id == "random-read-4k")
        .expect("the catalogue contains random-read-4k");
    let mut workload = Workload::from_toml(entry.file_name, entry.text).expect("the catalogue's files are checked");
    let bytes = stated.bytes() as u32;
    let sector = description.geometry.physical_sector_bytes;
    workload.specification.lines[0].size_bytes = bytes;
    workload.specification.lines[0].align_bytes = Some(if bytes.is_multiple_of(sector) { sector } else { bytes });
    workload.specification.lines[0].read_percent = reads_percent;
    workload.arrivals = Arrivals::Closed { queue_depth: stated.depth.unwrap_or(1), think: Think::None };
    // The rate of a write cache equals that of the media only once the cache is full.
    let dirty = if reads_percent < 100.0 { u64::from(description.buffer.dirty_extents_max) } else { 0 };
    workload.warm_up.requests = 3 * dirty / 2 + 100;
    workload.run_length = RunLength::Requests(if dirty == 0 { REQUESTS } else { REQUESTS / 2 });
    let spec = RunSpec {
        system_name: description.name.clone(),
        system: description.into(),
        demand: workload.into(),
        span: None,
        seed: 1,
        interval_ns: None,
        preload: 0,
        faults: None,
    };
    run(&spec, &|_| true).expect("a complete description runs").throughput_per_s()
}
