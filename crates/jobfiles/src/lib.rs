//! Job files of other programs as one model: what fio, Iometer and vdbench are told to do, in headstack's words.
//!
//! A [`JobFile`] is a sequence of [`Phase`]s, each of them [`Job`]s that run at the same time. What a file asks for and
//! the model cannot say is not dropped in silence: it is a [`Remark`].

/// Replaces the message of an error in an included file, which may be any file of this machine: no line of it is printed.
const IN_INCLUDED: &str = "is not accepted; the line is not printed, since it is of a file that the job file includes";

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

/// What a job file asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobFile {
    /// One after another.
    pub phases: Vec<Phase>,
    /// Loads on files in folders, one after another; a file has these or the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tree_phases: Vec<TreePhase>,
    /// What is not done as the file asks, in order of lines.
    pub remarks: Vec<Remark>,
    /// What the file states for all of its jobs, as written: what fio prints as `global options`.
    pub global: Vec<(String, String)>,
}

/// Jobs that run at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The phase's name, where the program gives it one: a vdbench run definition.
    pub name: String,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Requests outstanding of all jobs together that have a share: they take turns by their shares, and their own
    /// arrivals mean nothing. Absent where no job has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<u32>,
    /// Where its rate depends on what an earlier phase has reached: [`Phase::at_observed`] makes it a phase that can be
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve_point: Option<CurvePoint>,
    /// Whether all of them end when one of them does.
    pub ends_with_first: bool,
    /// True for another loop of the previous phase: written blocks are verified before they are written again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loops_previous: bool,
}

/// Something that a file asks for and that is not done, or done otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// Line of the file, or number of the argument, from 1; 0 where none is meant.
    pub line: u32,
    /// The option's name as written.
    pub option: String,
    /// What becomes of it.
    pub message: String,
}

/// One workload on one set of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Jobs of equal groups are reported as one; `None` reports each by itself.
    pub group: Option<u32>,
    /// So many of it at once, each with requests of its own (fio's `numjobs`).
    pub copies: u32,
    /// The number of the first of them among jobs of this name, from 0. Copies that have files or places of their own
    /// are jobs of their own; a copy's random choices depend on its number.
    pub first_copy: u32,
    /// Files or devices. Their address spaces lie one after another; empty where the file names none.
    pub targets: Vec<String>,
    /// Size of each file that is to exist, created where it does not; absent, targets are taken as they are.
    pub file_bytes: Option<u64>,
    /// The part of the targets that is used.
    pub part: Part,
    /// How requests are handed over.
    pub engine: JobEngine,
    /// Whether the page cache is bypassed (`O_DIRECT`).
    pub direct: bool,
    /// When a write is complete.
    pub sync: Sync,
    /// Sizes, places, arrivals. Its run length is that of a simulation; measuring goes by `limits`.
    pub workload: Workload,
    /// Its limits.
    pub limits: Limits,
    /// Requests a second of reads, writes and trims, where each kind keeps to a rate of its own; the rate of the workload
    /// is their sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates_per_s: Option<[f64; 3]>,
    /// What holds it back, or others for it (fio's `flow`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// How failed requests affect it.
    #[serde(default)]
    pub errors: Errors,
    /// Limits of the job: exceeding one ends the job with an error.
    #[serde(default, skip_serializing_if = "Bounds::is_none")]
    pub bounds: Bounds,
    /// What is written where nothing is verified.
    #[serde(default)]
    pub content: Content,
    /// Whether data and metadata of its targets are flushed when it ends (fio's `end_fsync`).
    #[serde(default)]
    pub flushes_at_end: bool,
    /// Its part of the requests of the phase's pool, in percent (vdbench's skew).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<f64>,
    /// Nothing is issued before this time.
    pub start_delay_ns: u64,
    /// Queue depth of an open loop: later requests wait in the host.
    pub slots: u32,
    /// Whether what is written can be told from anything else when it is read, and is read.
    pub verify: Verify,
    /// How zones of its targets are tended; absent, they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<Zoning>,
    /// Seed of its random choices; absent, that of the run.
    pub seed: Option<u64>,
    /// Whether files that the job created are removed when it is over.
    pub unlink: bool,
    /// Whether the page cache is emptied of the targets before the job.
    pub invalidate: bool,
    /// Percentiles of latency to report, in percent; empty where the file states none.
    pub percentiles: Vec<f64>,
    /// Its options as written, which fio prints as `job options`.
    pub as_written: Vec<(String, String)>,
}

/// Jobs of one flow keep their requests in proportion to their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Which flow it is in.
    pub id: u64,
    /// Its weight.
    pub weight: u32,
    /// How long it waits when it is ahead of the others.
    pub sleep_ns: u64,
}

/// What failed requests do to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Whether it goes on after a read that failed.
    pub reads_go_on: bool,
    /// Whether it goes on after a write, trim or flush that failed.
    pub writes_go_on: bool,
    /// Whether its end by an error ends all jobs.
    pub end_all: bool,
}

impl Default for Errors {
    fn default() -> Errors {
        Errors { reads_go_on: true, writes_go_on: true, end_all: false }
    }
}

/// Limits whose violation ends a job with an error, for reads, writes and trims; 0 sets none (fio's `max_latency`,
/// `rate_min` and `rate_iops_min`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// The longest time from handing a request over to its end.
    pub latency_max_ns: [u64; 3],
    /// The lowest rate in requests per second.
    pub iops_min: [u64; 3],
    /// The lowest rate in bytes per second.
    pub bytes_per_s_min: [u64; 3],
    /// The time over which a rate is the mean.
    pub cycle_ns: u64,
}

impl Bounds {
    /// Returns true if there is no limit.
    pub fn is_none(&self) -> bool {
        [self.latency_max_ns, self.iops_min, self.bytes_per_s_min].iter().flatten().all(|limit| *limit == 0)
    }
}

/// How the zones of a target are tended: writes go to write pointers, full zones are reset (fio's `zonemode=zbd`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Zoning {
    /// Size of a zone; absent, that of the device. What is no zoned device is divided into zones of it.
    pub size_bytes: Option<u64>,
    /// How much a zone holds, of targets that have no zones of their own; absent, its size.
    pub capacity_bytes: Option<u64>,
    /// What a sequential job leaves out behind each zone.
    pub skip_bytes: u64,
    /// Zones that may be open at a time; 0 for as many as the device allows.
    pub open_max: u32,
    /// The same of each job alone.
    pub job_open_max: u32,
    /// Whether what the device allows counts for nothing.
    pub ignores_limits: bool,
    /// Whether reads go anywhere, not below write pointers alone.
    pub reads_beyond_pointer: bool,
    /// From this share of a part's bytes written on, some writes reset their zones.
    pub reset_threshold: f64,
    /// The share of writes that do; 0 for none.
    pub reset_frequency: f64,
    /// Whether what is left of a zone is written where it is less than the shortest request.
    pub writes_remainder: bool,
}

/// What is written where nothing is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Random bytes, no two requests alike.
    #[default]
    Random,
    /// These bytes again and again, from the start of each request.
    Pattern(Vec<u8>),
}

/// A part of an address space, in bytes or in percent of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Where it begins.
    pub start: Extent,
    /// How long it is; absent, to the end.
    pub length: Option<Extent>,
}

impl Part {
    /// The bytes that it stands for in an address space of `whole_bytes`, in whole blocks of `block_bytes`, and whether it
    /// was cut at the end.
    ///
    /// # Errors
    /// When no block is left of it, in words.
    pub fn within(&self, whole_bytes: u64, block_bytes: u64) -> Result<(Span, bool), String> {
        let start_bytes = self.start.of(whole_bytes);
        let available_bytes = whole_bytes.saturating_sub(start_bytes);
        let length_bytes = self.length.map_or(available_bytes, |length| length.of(whole_bytes));
        if available_bytes == 0 || length_bytes == 0 {
            let [start, length, whole] = [start_bytes, length_bytes, whole_bytes].map(format_bytes);
            return Err(format!("it begins at {start} and holds {length}; there are {whole}"));
        }
        let end_bytes = start_bytes + length_bytes.min(available_bytes);
        // A place in percent may fall between blocks.
        let round = |bytes: u64| if bytes == whole_bytes { bytes } else { bytes / block_bytes * block_bytes };
        let (start_bytes, end_bytes) = (round(start_bytes), round(end_bytes));
        if start_bytes >= end_bytes {
            return Err("it is smaller than a sector".to_owned());
        }
        Ok((Span { start_bytes, length_bytes: end_bytes - start_bytes }, length_bytes > available_bytes))
    }
}

/// A place or a length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// In bytes.
    Bytes(u64),
    /// In percent of the whole.
    Percent(f64),
}

impl Extent {
    /// In bytes, of an address space of `whole_bytes`.
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

/// How requests are handed to the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEngine {
    /// By io_uring, which stands for libaio and all other asynchronous engines.
    #[default]
    Ring,
    /// By system calls that return when the request is complete.
    Psync,
    /// Not at all: every request is complete at once.
    Null,
}

/// When a write is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// When the system says so; flushes are requests of their own.
    #[default]
    No,
    /// When its data are on stable storage (`O_DSYNC`).
    Data,
    /// When data and metadata are (`O_SYNC`).
    File,
}

/// What ends a job, whichever comes first; one that states nothing ends when its part was gone through once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Requests issued.
    pub requests: Option<u64>,
    /// Requests issued that are no flushes (fio's `number_ios`).
    #[serde(default)]
    pub transfers: Option<u64>,
    /// Bytes of requests issued.
    pub bytes: Option<u64>,
    /// Bytes of requests issued, as a multiple of the part's length: 2 goes through it twice, 0.5 through half of it.
    pub passes: Option<f64>,
    /// Time after the warm-up.
    pub time_ns: Option<u64>,
}

/// What is done to find out whether what is read is what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Nothing.
    #[default]
    No,
    /// Writes carry a pattern that describes itself.
    Stamp,
    /// The same, and when the writes are done everything written is read and checked.
    StampAndRead,
    /// Reads check the pattern that an earlier run has left.
    Check,
}
