//! A common model of other programs' job files: those of fio, Iometer and vdbench.
//!
//! A [`JobFile`] is a sequence of [`Phase`]s, each of them [`Job`]s that run at the same time. Settings that the model
//! cannot represent are not dropped silently: each is a [`Remark`].

/// Replaces the message of an error in an included file, which may be any file of this machine, so none of its lines is
/// printed.
const IN_INCLUDED: &str = "is not accepted; the line is not printed, since it is from an included file";

mod copies;
mod curve;
mod demand;
pub mod fio;
pub mod icf;
mod layout;
pub mod trees;
pub mod vdbench;

use serde::{Deserialize, Serialize};

pub use curve::{CurvePoint, curve_rate_per_s};
pub use demand::{Demand, Simulation};
pub use trees::TreePhase;

use headstack_workload::quantity::format_bytes;
use headstack_workload::{Span, Workload};

/// A parsed job file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobFile {
    /// Phases, one after another.
    pub phases: Vec<Phase>,
    /// Loads on files in folders, one after another; a file has either these or `phases`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tree_phases: Vec<TreePhase>,
    /// Differences from the file's settings, in line order.
    pub remarks: Vec<Remark>,
    /// Settings for all jobs of the file, as written: fio prints them as `global options`.
    pub global: Vec<(String, String)>,
}

/// Jobs that run at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name of the phase, if the program has one: a vdbench run definition.
    pub name: String,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Common queue depth of all jobs with a share: they alternate by their shares, and their own arrivals are ignored.
    /// Absent if no job has a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<u32>,
    /// If its rate depends on an earlier phase: [`Phase::at_observed`] converts it to a phase that can be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve_point: Option<CurvePoint>,
    /// Whether the first job that ends ends all of them.
    pub ends_with_first: bool,
    /// Whether it is another loop of the previous phase: written blocks are verified before they are written again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loops_previous: bool,
}

/// A setting of a file that is not supported, or applied differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// Line of the file, or number of the argument, from 1; 0 for none.
    pub line: u32,
    /// Name of the option as written.
    pub option: String,
    /// How it is treated.
    pub message: String,
}

/// One workload on one set of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Jobs with equal groups are reported as one; `None` reports each separately.
    pub group: Option<u32>,
    /// Number of concurrent copies, each with its own requests (fio's `numjobs`).
    pub copies: u32,
    /// Number of the first copy among jobs with this name, from 0. Copies with their own files or offsets are separate
    /// jobs; a copy's random choices depend on its number.
    pub first_copy: u32,
    /// Files or devices. Their address spaces follow one another; empty if the file names none.
    pub targets: Vec<String>,
    /// Size of each file, which is created if it does not exist; if absent, targets are used as they are.
    pub file_bytes: Option<u64>,
    /// The part of the targets that is used.
    pub part: Part,
    /// Engine that submits the requests.
    pub engine: JobEngine,
    /// Whether the page cache is bypassed (`O_DIRECT`).
    pub direct: bool,
    /// When a write completes.
    pub sync: Sync,
    /// Sizes, offsets, arrivals. Its run length is for simulations; measurements use `limits`.
    pub workload: Workload,
    /// Limits of the run.
    pub limits: Limits,
    /// Requests per second of reads, writes and trims, if each kind has its own rate; the rate of the workload is their
    /// sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates_per_s: Option<[f64; 3]>,
    /// Proportion to other jobs (fio's `flow`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// How failed requests affect it.
    #[serde(default)]
    pub errors: Errors,
    /// Limits whose violation ends the job with an error.
    #[serde(default, skip_serializing_if = "Bounds::is_none")]
    pub bounds: Bounds,
    /// Contents of unverified writes.
    #[serde(default)]
    pub content: Content,
    /// Whether data and metadata of its targets are flushed at the end (fio's `end_fsync`).
    #[serde(default)]
    pub flushes_at_end: bool,
    /// Its share of the requests of the phase's pool, in percent (vdbench's skew).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<f64>,
    /// Delay before the first request.
    pub start_delay_ns: u64,
    /// Queue depth of an open loop: further requests wait in the host.
    pub slots: u32,
    /// Whether and how written data are verified.
    pub verify: Verify,
    /// How zones of its targets are managed; absent if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<Zoning>,
    /// Seed of its random choices; that of the run if absent.
    pub seed: Option<u64>,
    /// Whether files that the job created are removed afterwards.
    pub unlink: bool,
    /// Whether the page cache is emptied of the targets before the job.
    pub invalidate: bool,
    /// Percentiles of latency to report, in percent; empty if the file states none.
    pub percentiles: Vec<f64>,
    /// Its options as written: fio prints them as `job options`.
    pub as_written: Vec<(String, String)>,
}

/// Membership of a flow, whose jobs keep their numbers of requests in proportion to their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Number of the flow.
    pub id: u64,
    /// Weight of the job.
    pub weight: u32,
    /// Sleep of a job that is ahead of the others.
    pub sleep_ns: u64,
}

/// How failed requests affect a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Whether it continues after a failed read.
    pub reads_go_on: bool,
    /// Whether it continues after a failed write, trim or flush.
    pub writes_go_on: bool,
    /// Whether its end by an error ends all jobs.
    pub end_all: bool,
}

impl Default for Errors {
    fn default() -> Errors {
        Errors { reads_go_on: true, writes_go_on: true, end_all: false }
    }
}

/// Limits whose violation ends a job with an error, for reads, writes and trims; 0 for none (fio's `max_latency`,
/// `rate_min` and `rate_iops_min`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// Longest time from submission to completion of a request.
    pub latency_max_ns: [u64; 3],
    /// Lowest rate in requests per second.
    pub iops_min: [u64; 3],
    /// Lowest rate in bytes per second.
    pub bytes_per_s_min: [u64; 3],
    /// Averaging time of rates.
    pub cycle_ns: u64,
}

impl Bounds {
    /// Whether there is no limit.
    pub fn is_none(&self) -> bool {
        [self.latency_max_ns, self.iops_min, self.bytes_per_s_min].iter().flatten().all(|limit| *limit == 0)
    }
}

/// Management of a target's zones: writes go to write pointers, full zones are reset (fio's `zonemode=zbd`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Zoning {
    /// Zone size; that of the device if absent. Other targets are divided into zones of this size.
    pub size_bytes: Option<u64>,
    /// Capacity of a zone, for targets without zones of their own; its size if absent.
    pub capacity_bytes: Option<u64>,
    /// Bytes that a sequential job skips after each zone.
    pub skip_bytes: u64,
    /// Limit of open zones; 0 for that of the device.
    pub open_max: u32,
    /// Limit of open zones per job.
    pub job_open_max: u32,
    /// Whether the limits of the device are ignored.
    pub ignores_limits: bool,
    /// Whether reads may go beyond write pointers.
    pub reads_beyond_pointer: bool,
    /// Share of a part's bytes written from which on some writes reset their zones.
    pub reset_threshold: f64,
    /// Share of writes that reset their zones; 0 for none.
    pub reset_frequency: f64,
    /// Whether the rest of a zone is written if it is less than the shortest request.
    pub writes_remainder: bool,
}

/// Contents of unverified writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Random bytes, different for each request.
    #[default]
    Random,
    /// Repetitions of these bytes from the start of each request.
    Pattern(Vec<u8>),
}

/// A part of an address space, in bytes or in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Start of the part.
    pub start: Extent,
    /// Length of the part; to the end if absent.
    pub length: Option<Extent>,
}

impl Part {
    /// Returns the part of an address space of `whole_bytes` in whole blocks of `block_bytes`, and whether it was cut
    /// at the end.
    ///
    /// # Errors
    /// When it contains no whole block; in words.
    pub fn within(&self, whole_bytes: u64, block_bytes: u64) -> Result<(Span, bool), String> {
        let start_bytes = self.start.of(whole_bytes);
        let available_bytes = whole_bytes.saturating_sub(start_bytes);
        let length_bytes = self.length.map_or(available_bytes, |length| length.of(whole_bytes));
        if available_bytes == 0 || length_bytes == 0 {
            let [start, length, whole] = [start_bytes, length_bytes, whole_bytes].map(format_bytes);
            return Err(format!("it has {length} from {start}; the target has {whole}"));
        }
        let end_bytes = start_bytes + length_bytes.min(available_bytes);
        // A position in percent may be between blocks.
        let round = |bytes: u64| if bytes == whole_bytes { bytes } else { bytes / block_bytes * block_bytes };
        let (start_bytes, end_bytes) = (round(start_bytes), round(end_bytes));
        if start_bytes >= end_bytes {
            return Err("it is smaller than a sector".to_owned());
        }
        Ok((Span { start_bytes, length_bytes: end_bytes - start_bytes }, length_bytes > available_bytes))
    }
}

/// A position or a length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// In bytes.
    Bytes(u64),
    /// In percent of the whole.
    Percent(f64),
}

impl Extent {
    /// In bytes, for an address space of `whole_bytes`.
    fn of(self, whole_bytes: u64) -> u64 {
        match self {
            Extent::Bytes(bytes) => bytes,
            Extent::Percent(percent) => (whole_bytes as f64 * (percent / 100.0)) as u64,
        }
    }
}

impl Default for Extent {
    fn default() -> Extent {
        Extent::Bytes(0)
    }
}

/// Engine that submits requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEngine {
    /// io_uring, which replaces libaio and all other asynchronous engines.
    #[default]
    Ring,
    /// System calls that return when the request is complete.
    Psync,
    /// None: every request completes at once.
    Null,
}

/// When a write completes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// When the system reports it; flushes are separate requests.
    #[default]
    No,
    /// When its data are on stable storage (`O_DSYNC`).
    Data,
    /// When its data and metadata are (`O_SYNC`).
    File,
}

/// Limits of a job, of which the first reached ends it; without any, it passes once over its part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Number of issued requests.
    pub requests: Option<u64>,
    /// Number of issued requests without flushes (fio's `number_ios`).
    #[serde(default)]
    pub transfers: Option<u64>,
    /// Bytes of requests issued.
    pub bytes: Option<u64>,
    /// Bytes of issued requests, as a multiple of the part's length: 2 covers it twice, 0.5 half of it.
    pub passes: Option<f64>,
    /// Time after the warm-up.
    pub time_ns: Option<u64>,
}

/// Verification of reads against writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// None.
    #[default]
    No,
    /// Writes carry a self-describing pattern.
    Stamp,
    /// Writes carry stamps, and after them everything written is read and checked.
    StampAndRead,
    /// Reads check the pattern that an earlier run left.
    Check,
}
