//! [`Workload`]: access specification, addresses, arrivals and run length, as read from a file.

use serde::{Deserialize, Serialize};

use crate::access::{AccessLine, AccessSpecification};
use crate::addresses::Addresses;
use crate::arrivals::{Arrivals, RunLength, Think, WarmUp};
use crate::document::{Document, InputError};
use crate::error::WorkloadError;
use crate::quantity::format_bytes;

/// Maximum number of sequential streams in a workload.
const STREAMS_MAX: u32 = 65_536;

/// A load with one access specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "WorkloadForm", into = "WorkloadForm")]
pub struct Workload {
    /// Name of the workload in the catalogue.
    pub name: String,
    /// Source of the workload's figures.
    pub source: String,
    /// Sizes, kinds and randomness of the requests.
    pub specification: AccessSpecification,
    /// Distribution of random addresses.
    pub addresses: Addresses,
    /// Number of sequential pointers, which requests use in turn. Iometer's worker has one.
    pub streams: u32,
    /// Number of consecutive requests at a pointer before the next pointer's turn.
    pub stream_turn: u32,
    /// Number of writes between two flushes; 0 for no flushes.
    pub flush_every: u64,
    /// Number of writes between two flushes of data and metadata, as with fsync(2); 0 for none. If both kinds of flush
    /// are due, only this one is issued.
    pub sync_every: u64,
    /// Number of writes from one that must be on stable storage before it completes, as with O_DSYNC, to the next one;
    /// 1 for all writes, 0 for none.
    pub dsync_every: u64,
    /// Order of the requests.
    pub sequence: Sequence,
    /// How requests arrive.
    pub arrivals: Arrivals,
    /// Warm-up, which results exclude.
    pub warm_up: WarmUp,
    /// Length of a run.
    pub run_length: RunLength,
}

/// Order of requests, beyond their sizes and kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sequence {
    /// Whether sequential requests continue after the last request of the same kind instead of the last request of any
    /// kind.
    pub kinds_apart: bool,
    /// Whether each position is first trimmed and then written.
    pub trim_then_write: bool,
    /// Length of a run of requests whose last one has a random address; 0 if only the lines decide which requests are
    /// random.
    pub run: u32,
    /// Whether the other requests of a run repeat the previous address instead of continuing after it.
    pub repeats: bool,
    /// Length after which the same requests repeat in the same order; `None` for no repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looped: Option<LoopLength>,
}

/// Length of a repeating loop of requests. The first limit reached ends the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoopLength {
    /// Number of requests other than flushes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<u64>,
    /// Total size of the requests in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Total size of the requests, as a multiple of the size of the used part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passes: Option<f64>,
}

impl LoopLength {
    /// Returns the limits on transfers and bytes for a part of `part_bytes`.
    pub(crate) fn on(self, part_bytes: u64) -> (u64, u64) {
        let by_passes = self.passes.map_or(u64::MAX, |passes| (part_bytes as f64 * passes).round() as u64);
        let bytes = self.bytes.unwrap_or(u64::MAX).min(by_passes);
        (self.transfers.unwrap_or(u64::MAX).max(1), bytes.max(1))
    }
}

/// A workload as written in TOML and JSON, with the specification's lines at the top level.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadForm {
    name: String,
    #[serde(default)]
    source: String,
    /// Name of the specification if it differs from the workload's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    specification: Option<String>,
    #[serde(default)]
    addresses: Addresses,
    #[serde(default = "one_stream")]
    streams: u32,
    #[serde(default = "one_request", skip_serializing_if = "is_one")]
    stream_turn: u32,
    #[serde(default)]
    flush_every: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    sync_every: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    dsync_every: u64,
    #[serde(default, skip_serializing_if = "is_plain")]
    sequence: Sequence,
    #[serde(default)]
    arrivals: Arrivals,
    #[serde(default)]
    warm_up: WarmUp,
    #[serde(default)]
    run_length: RunLength,
    lines: Vec<AccessLine>,
}

fn one_stream() -> u32 {
    1
}

fn one_request() -> u32 {
    1
}

// Serde requires a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(requests: &u32) -> bool {
    *requests == 1
}

#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) fn is_none(requests: &u64) -> bool {
    *requests == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) fn is_plain(sequence: &Sequence) -> bool {
    *sequence == Sequence::default()
}

impl From<WorkloadForm> for Workload {
    fn from(form: WorkloadForm) -> Workload {
        Workload {
            specification: AccessSpecification {
                name: form.specification.unwrap_or_else(|| form.name.clone()),
                lines: form.lines,
            },
            name: form.name,
            source: form.source,
            addresses: form.addresses,
            streams: form.streams,
            stream_turn: form.stream_turn,
            flush_every: form.flush_every,
            sync_every: form.sync_every,
            dsync_every: form.dsync_every,
            sequence: form.sequence,
            arrivals: form.arrivals,
            warm_up: form.warm_up,
            run_length: form.run_length,
        }
    }
}

impl From<Workload> for WorkloadForm {
    fn from(workload: Workload) -> WorkloadForm {
        let AccessSpecification { name, lines } = workload.specification;
        WorkloadForm {
            specification: (name != workload.name).then_some(name),
            name: workload.name,
            source: workload.source,
            addresses: workload.addresses,
            streams: workload.streams,
            stream_turn: workload.stream_turn,
            flush_every: workload.flush_every,
            sync_every: workload.sync_every,
            dsync_every: workload.dsync_every,
            sequence: workload.sequence,
            arrivals: workload.arrivals,
            warm_up: workload.warm_up,
            run_length: workload.run_length,
            lines,
        }
    }
}

impl Workload {
    /// Reads and checks a workload. Errors name the file as `file`.
    ///
    /// # Errors
    /// Returns an error if the text is not TOML, or a key is misspelled, missing or has an invalid value.
    pub fn from_toml(file: &str, text: &str) -> Result<Workload, InputError> {
        let document = Document::parse(file, text)?;
        let workload: Workload = document.read()?;
        workload.validate().map_err(|error| document.error(&error.key, error.message))?;
        Ok(workload)
    }

    /// Checks everything that does not depend on the system.
    ///
    /// # Errors
    /// Returns an error for the first key with an invalid value.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        if !(1..=STREAMS_MAX).contains(&self.streams) {
            return Err(WorkloadError {
                key: "streams".to_owned(),
                message: format!("{} is out of range; must be 1 to {STREAMS_MAX}", self.streams),
            });
        }
        if self.stream_turn == 0 {
            let message = "0 is out of range; must be 1 or more".to_owned();
            return Err(WorkloadError { key: "stream_turn".to_owned(), message });
        }
        self.specification.validate()?;
        self.addresses.validate()?;
        self.arrivals.validate()?;
        self.run_length.validate()?;
        Ok(())
    }

    /// Whether clients of a closed loop pause between a completion and the next request, for think time or a line's
    /// delay.
    pub fn thinks(&self) -> bool {
        let has_delay = self.specification.lines.iter().any(|line| line.delay_ns > 0);
        matches!(self.arrivals, Arrivals::Closed { think, .. } if has_delay || think != Think::None)
    }

    /// Returns a note if random requests of at least a physical sector may start inside one. Most such requests touch
    /// an additional sector, and such writes are read-modify-write. `logical_bytes` is the alignment of lines that
    /// state none.
    pub fn note_of_alignment(&self, logical_bytes: u32, physical_bytes: u32) -> Option<String> {
        let straddles = |line: &&AccessLine| {
            let step = line.align_bytes.unwrap_or(logical_bytes).max(1);
            line.random_percent > 0.0
                && line.size_bytes.is_multiple_of(physical_bytes)
                && !step.is_multiple_of(physical_bytes)
        };
        if physical_bytes <= logical_bytes {
            return None;
        }
        let line = self.specification.lines.iter().find(straddles)?;
        let [size, step, sector] = [line.size_bytes, line.align_bytes.unwrap_or(logical_bytes), physical_bytes]
            .map(|bytes| format_bytes(bytes.into()));
        Some(format!(
            "{}: requests of {size} start at multiples of {step}, but physical sectors are {sector}: most start or \
             end inside a sector, and such writes are read-modify-write; use align = \"{sector}\"",
            self.name
        ))
    }
}
