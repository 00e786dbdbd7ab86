//! A common model for the job files of fio, Iometer and vdbench.
//!
//! A [`JobFile`] is a sequence of [`Phase`]s, and each phase consists of [`Job`]s that run at the same time. Settings
//! that the model cannot represent are not dropped silently: each leaves a [`Remark`].

/// Replaces the message of an error in an included file. Such a file may be any file on this machine, so none of its
/// lines is printed.
const IN_INCLUDED: &str = "is not valid; the line is not shown because it is in an included file";

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
    /// Phases, which run one after another.
    pub phases: Vec<Phase>,
    /// Phases with loads on files in folders, which run one after another. A file has either these or `phases`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tree_phases: Vec<TreePhase>,
    /// Settings that the model ignores or changes, in line order.
    pub remarks: Vec<Remark>,
    /// Settings for all jobs of the file, as written; fio prints them as `global options`.
    pub global: Vec<(String, String)>,
}

/// Jobs that run at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name of the phase, if the file names it; for example the name of a vdbench run definition.
    pub name: String,
    /// Jobs of the phase.
    pub jobs: Vec<Job>,
    /// Common queue depth of all jobs that have a share. These jobs alternate according to their shares, and their own
    /// arrivals are ignored. `None` if no job has a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<u32>,
    /// Set if the rate depends on an earlier phase; [`Phase::at_observed`] then converts the phase to one that can run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve_point: Option<CurvePoint>,
    /// Whether all jobs end when the first one ends.
    pub ends_with_first: bool,
    /// Whether the phase is another loop of the previous phase, in which written blocks are verified before they are
    /// rewritten.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loops_previous: bool,
}

/// A setting of a file that is unsupported or applied differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// Line number in the file, or argument number, from 1; 0 if there is none.
    pub line: u32,
    /// Name of the option, as written.
    pub option: String,
    /// How the setting is treated.
    pub message: String,
}

/// One workload on one set of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Name of the job.
    pub name: String,
    /// Group of the job: jobs of the same group are reported together. `None` reports the job separately.
    pub group: Option<u32>,
    /// Number of concurrent copies, each with its own requests (fio's `numjobs`).
    pub copies: u32,
    /// Index of the first copy among all copies with this job name, from 0. Copies with their own files or offsets are
    /// separate jobs; a copy's random choices depend on its index.
    pub first_copy: u32,
    /// Files or devices, whose address spaces are concatenated; empty if the file names none.
    pub targets: Vec<String>,
    /// Size of each file in bytes; missing files are created. `None` uses targets as they are.
    pub file_bytes: Option<u64>,
    /// Part of the targets that is used.
    pub part: Part,
    /// Engine that submits the requests.
    pub engine: JobEngine,
    /// Whether requests bypass the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Condition for the completion of a write.
    pub sync: Sync,
    /// Sizes, offsets and arrivals of the requests. The workload's run length is for simulations; measurements use
    /// `limits`.
    pub workload: Workload,
    /// Limits that end the job.
    pub limits: Limits,
    /// Requests per second of reads, writes and trims, if each kind has its own rate. The workload's rate is their sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates_per_s: Option<[f64; 3]>,
    /// Ratio of requests to other jobs (fio's `flow`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// How the job handles failed requests.
    #[serde(default)]
    pub errors: Errors,
    /// Limits whose violation ends the job with an error.
    #[serde(default, skip_serializing_if = "Bounds::is_none")]
    pub bounds: Bounds,
    /// Content of writes that are not verified.
    #[serde(default)]
    pub content: Content,
    /// Whether data and metadata of the targets are flushed at the end (fio's `end_fsync`).
    #[serde(default)]
    pub flushes_at_end: bool,
    /// Share of the pool's requests, in percent (vdbench's skew).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<f64>,
    /// Delay before the first request, in ns.
    pub start_delay_ns: u64,
    /// Maximum queue depth of an open-loop job; more requests wait in the host.
    pub slots: u32,
    /// Whether and how written data is verified.
    pub verify: Verify,
    /// How zones of the targets are managed; `None` if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<Zoning>,
    /// Seed of the job's random choices; `None` uses the run's seed.
    pub seed: Option<u64>,
    /// Whether files that the job created are removed at the end.
    pub unlink: bool,
    /// Whether the targets' pages are dropped from the page cache before the job.
    pub invalidate: bool,
    /// Latency percentiles to report; empty if the file states none.
    pub percentiles: Vec<f64>,
    /// Options of the job, as written; fio prints them as `job options`.
    pub as_written: Vec<(String, String)>,
}

/// Membership in a flow. The jobs of a flow keep their numbers of requests in proportion to their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Number of the flow.
    pub id: u64,
    /// Weight of the job.
    pub weight: u32,
    /// Time that a job sleeps when it is ahead of the others, in ns.
    pub sleep_ns: u64,
}

/// How a job handles failed requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Whether the job continues after a failed read.
    pub reads_go_on: bool,
    /// Whether the job continues after a failed write, trim or flush.
    pub writes_go_on: bool,
    /// Whether all jobs end when an error ends this job.
    pub end_all: bool,
}

impl Default for Errors {
    fn default() -> Errors {
        Errors { reads_go_on: true, writes_go_on: true, end_all: false }
    }
}

/// Limits for reads, writes and trims whose violation ends a job with an error (fio's `max_latency`, `rate_min` and
/// `rate_iops_min`); 0 for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// Maximum time from submission to completion of a request, in ns.
    pub latency_max_ns: [u64; 3],
    /// Minimum rate, in requests per second.
    pub iops_min: [u64; 3],
    /// Minimum rate, in bytes per second.
    pub bytes_per_s_min: [u64; 3],
    /// Averaging time of the rates, in ns.
    pub cycle_ns: u64,
}

impl Bounds {
    /// Whether there is no limit.
    pub fn is_none(&self) -> bool {
        [self.latency_max_ns, self.iops_min, self.bytes_per_s_min].iter().flatten().all(|limit| *limit == 0)
    }
}

/// Management of a target's zones: writes go to write pointers, and full zones are reset (fio's `zonemode=zbd`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Zoning {
    /// Zone size in bytes; `None` uses the device's. Targets that are not zoned devices are divided into such zones.
    pub size_bytes: Option<u64>,
    /// Zone capacity in bytes for targets that are not zoned devices; `None` uses the zone size.
    pub capacity_bytes: Option<u64>,
    /// Number of bytes that a sequential job skips after each zone.
    pub skip_bytes: u64,
    /// Maximum number of open zones; 0 uses the device's limit.
    pub open_max: u32,
    /// Maximum number of open zones per job.
    pub job_open_max: u32,
    /// Whether the device's limits are ignored.
    pub ignores_limits: bool,
    /// Whether reads may go beyond the write pointer.
    pub reads_beyond_pointer: bool,
    /// Fraction of the part that must be written before some writes reset their zones.
    pub reset_threshold: f64,
    /// Fraction of writes that reset their zones; 0 for none.
    pub reset_frequency: f64,
    /// Whether the rest of a zone is written if it is shorter than the shortest request.
    pub writes_remainder: bool,
}

/// Content of writes that are not verified.
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
    /// Length of the part; `None` extends it to the end.
    pub length: Option<Extent>,
}

impl Part {
    /// Returns the part of an address space of `whole_bytes`, rounded to whole blocks of `block_bytes`, and whether it
    /// was cut at the end.
    ///
    /// # Errors
    /// If the part contains no whole block. The error is a text for messages.
    pub fn within(&self, whole_bytes: u64, block_bytes: u64) -> Result<(Span, bool), String> {
        let start_bytes = self.start.of(whole_bytes);
        let available_bytes = whole_bytes.saturating_sub(start_bytes);
        let length_bytes = self.length.map_or(available_bytes, |length| length.of(whole_bytes));
        if available_bytes == 0 || length_bytes == 0 {
            let [start, length, whole] = [start_bytes, length_bytes, whole_bytes].map(format_bytes);
            return Err(format!("the part has {length} from {start}, but the target has only {whole}"));
        }
        let end_bytes = start_bytes + length_bytes.min(available_bytes);
        // A position in percent may fall between blocks.
        let round = |bytes: u64| if bytes == whole_bytes { bytes } else { bytes / block_bytes * block_bytes };
        let (start_bytes, end_bytes) = (round(start_bytes), round(end_bytes));
        if start_bytes >= end_bytes {
            return Err("the part is smaller than a sector".to_owned());
        }
        Ok((Span { start_bytes, length_bytes: end_bytes - start_bytes }, length_bytes > available_bytes))
    }
}

/// A position or length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of the whole.
    Percent(f64),
}

impl Extent {
    /// Returns the position or length in bytes for an address space of `whole_bytes`.
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

/// The engine that submits requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEngine {
    /// io_uring, which replaces libaio and all other asynchronous engines.
    #[default]
    Ring,
    /// System calls that return when the request is complete.
    Psync,
    /// No I/O: every request completes immediately.
    Null,
}

/// Condition for the completion of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// The system reports completion; flushes are separate requests.
    #[default]
    No,
    /// The data is on stable storage (`O_DSYNC`).
    Data,
    /// Data and metadata are on stable storage (`O_SYNC`).
    File,
}

/// Limits of a job. The first limit reached ends the job; a job without limits makes one pass over its part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Maximum number of requests issued.
    pub requests: Option<u64>,
    /// Maximum number of requests issued, not counting flushes (fio's `number_ios`).
    #[serde(default)]
    pub transfers: Option<u64>,
    /// Maximum number of bytes issued.
    pub bytes: Option<u64>,
    /// Maximum number of bytes issued, as a multiple of the part's length: 2 covers the part twice, 0.5 covers half of
    /// it.
    pub passes: Option<f64>,
    /// Time limit after the warm-up, in ns.
    pub time_ns: Option<u64>,
}

/// How written data is verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// No verification.
    #[default]
    No,
    /// Writes carry a self-describing stamp.
    Stamp,
    /// Writes carry stamps; after the writes, everything written is read and checked.
    StampAndRead,
    /// Reads check the stamps that an earlier run left.
    Check,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_blocks_within_the_whole() {
        let within = |start, length: Option<Extent>| {
            let span = Part { start, length }.within(10_300, 512);
            span.map(|(span, is_cut)| (span.start_bytes, span.length_bytes, is_cut))
        };
        use Extent::{Bytes, Percent};
        // The end of the whole need not be that of a block.
        assert_eq!(within(Bytes(0), None), Ok((0, 10_300, false)));
        assert_eq!(within(Percent(50.0), Some(Percent(25.0))), Ok((5_120, 2_560, false)));
        assert_eq!(within(Bytes(8_192), Some(Bytes(2_108))), Ok((8_192, 2_108, false)));
        assert_eq!(within(Bytes(8_192), Some(Bytes(2_109))), Ok((8_192, 2_108, true)));
        let nothing = within(Bytes(10_300), Some(Bytes(512)));
        assert_eq!(nothing, Err("the part has 512B from 10.3KB, but the target has only 10.3KB".to_owned()));
        assert!(within(Bytes(0), Some(Bytes(0))).unwrap_err().contains("has 0B"));
        assert_eq!(within(Bytes(512), Some(Bytes(511))), Err("the part is smaller than a sector".to_owned()));
    }
}
