//! [`Journal`]: the journal of an export, with each change and flush, its outcome, and marks, in the order of the
//! contents.
//!
//! A change is recorded in the step that makes it, under the lock of the [gate](crate::power::gate), and its outcome
//! just before it is reported. Changes of the contents by a power cut or a fault are recorded as changes by the device
//! itself, so that replaying the whole journal yields the contents.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use headstack_crash::journal::JournalWriter;
use headstack_crash::{Device, Fate, Start};
use headstack_sim::power_cut::{atom_bytes, joined};
use headstack_sim::{Model, Outcome, faults};
use headstack_workload::Span;

use crate::LiveError;
use crate::budget::{Budget, Share};
use crate::contents::Contents;
use crate::power::Change;
use crate::wall::Wall;

/// Linux error numbers.
const EIO: u16 = 5;
const ENOSPC: u16 = 28;
const EROFS: u16 = 30;
const ETIMEDOUT: u16 = 110;

/// Bytes copied at a time.
const CHUNK_BYTES: u64 = 1 << 20;

/// A requested journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalPlan {
    /// Path of its file.
    pub path: PathBuf,
    /// Name of the image with the contents at the start; `None` if they are zeros.
    pub image: Option<String>,
}

/// The journal of a session. A write error is reported once, at the end.
#[derive(Debug)]
pub struct Journal {
    writer: JournalWriter,
    block_bytes: u64,
    wall: Wall,
    is_broken: AtomicBool,
    /// Its buffer memory.
    _share: Share,
}

impl Journal {
    /// Starts the journal of a session of this model, which may lose acknowledged data in a power cut.
    ///
    /// # Errors
    /// When the file cannot be created there.
    pub fn create(
        model: &Model,
        may_lose_data: bool,
        plan: &JournalPlan,
        wall: Wall,
        budget: &Budget,
    ) -> Result<Journal, LiveError> {
        let (capacity_bytes, block_bytes, atomic_bytes) = match model {
            Model::Constant(constant) => (constant.capacity_bytes, 512, 0),
            Model::System(system) => {
                (system.capacity_bytes(), system.block_bytes(), u32::try_from(atom_bytes(system)).unwrap_or(0))
            }
        };
        let has_volatile_cache = may_lose_data;
        let start = plan.image.clone().map_or(Start::Zeros, Start::Image);
        let device = Device { capacity_bytes, block_bytes, atomic_bytes, has_volatile_cache, start };
        let writer =
            JournalWriter::create(&plan.path, &device).map_err(|error| LiveError::Invalid(error.to_string()))?;
        let mut share = budget.share();
        share.take_over(&mut budget.share(), JournalWriter::MEMORY_BYTES as u64);
        let block_bytes = u64::from(block_bytes);
        Ok(Journal { writer, block_bytes, wall, is_broken: AtomicBool::new(false), _share: share })
    }

    /// Records a change; returns its number.
    pub(crate) fn changed(&self, issued: Instant, span: Span, change: Change<'_>, is_forced: bool) -> Option<u64> {
        let at_ns = self.wall.model_ns(issued);
        let Span { start_bytes, length_bytes } = span;
        self.log_failure(match change {
            Change::Data(data) => self.writer.write(at_ns, start_bytes, data, is_forced),
            Change::Fill => self.writer.zeros(at_ns, start_bytes, length_bytes, is_forced),
            Change::Zero => self.writer.trim(at_ns, start_bytes, length_bytes, is_forced),
        })
    }

    /// Records a flush; returns its number.
    pub(crate) fn flush(&self, issued: Instant) -> Option<u64> {
        self.log_failure(self.writer.flush(self.wall.model_ns(issued)))
    }

    /// Records the outcome of a change or a flush; a vanished device gives none.
    pub(crate) fn ends(&self, at_ns: u64, number: u64, outcome: Outcome) {
        let fate = match outcome {
            Outcome::Done => Fate::Acknowledged,
            Outcome::Failed(_) => Fate::Failed(EIO),
            Outcome::Refused(errno) => Fate::Failed(match errno {
                faults::Errno::Io => EIO,
                faults::Errno::NoSpace => ENOSPC,
                faults::Errno::TimedOut => ETIMEDOUT,
                faults::Errno::ReadOnly => EROFS,
            }),
            Outcome::Vanished => return,
        };
        self.log_failure(self.writer.answered(at_ns, number, fate));
    }

    /// Records the contents of these ranges, as changed by the device itself.
    ///
    /// # Errors
    /// The file system's error on reading the contents.
    pub(crate) fn became(&self, spans: &[Span], contents: &Contents) -> io::Result<()> {
        let at_ns = self.wall.model_ns(Instant::now());
        let mut data = Vec::new();
        // A device stores whole blocks, even if only a part was hit.
        let whole = |span: &Span| {
            let start_bytes = span.start_bytes / self.block_bytes * self.block_bytes;
            let end_bytes = (span.start_bytes + span.length_bytes).next_multiple_of(self.block_bytes);
            Span { start_bytes, length_bytes: end_bytes - start_bytes }
        };
        for span in joined(spans.iter().map(whole).collect()) {
            let end_bytes = span.start_bytes + span.length_bytes;
            for start_bytes in (span.start_bytes..end_bytes).step_by(CHUNK_BYTES as usize) {
                let length_bytes = CHUNK_BYTES.min(end_bytes - start_bytes);
                let number = if contents.is_hole(start_bytes, length_bytes) {
                    self.log_failure(self.writer.zeros(at_ns, start_bytes, length_bytes, true))
                } else {
                    data.resize(length_bytes as usize, 0);
                    contents.read(start_bytes, &mut data)?;
                    self.log_failure(self.writer.write(at_ns, start_bytes, &data, true))
                };
                if let Some(number) = number {
                    self.log_failure(self.writer.answered(at_ns, number, Fate::Acknowledged));
                }
            }
        }
        Ok(())
    }

    /// Records that power is on or off from this moment of the model on.
    pub(crate) fn power(&self, at_ns: u64, is_on: bool) {
        self.log_failure(if is_on { self.writer.power_on(at_ns) } else { self.writer.power_off(at_ns) });
    }

    /// Records a line of text, and returns when it is in the file.
    ///
    /// # Errors
    /// When it is no single line, or the file cannot be written.
    pub fn mark(&self, text: &str) -> Result<u64, LiveError> {
        let at_ns = self.wall.model_ns(Instant::now());
        self.writer.mark(at_ns, text).map_err(|error| LiveError::Invalid(format!("mark: {error}")))?;
        Ok(at_ns)
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// When the file could not be written, now or before.
    pub fn finish(self) -> Result<(), LiveError> {
        self.writer.finish().map_err(|error| LiveError::Invalid(error.to_string()))
    }

    /// Whether writing has failed.
    pub fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Keeps the session running if the journal cannot be written; the error is reported at the end.
    fn log_failure<T>(&self, written: io::Result<T>) -> Option<T> {
        written.inspect_err(|_| self.is_broken.store(true, Ordering::Relaxed)).ok()
    }
}
