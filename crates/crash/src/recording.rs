//! [`Recording`]: the events of a recording in memory. The data stay in the file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::CrashError;

/// The recorded device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Size in bytes.
    pub capacity_bytes: u64,
    /// Logical block in bytes; every change is a multiple of it.
    pub block_bytes: u32,
    /// Writes up to this length that do not cross a multiple of it are atomic in a power failure (NVMe's AWUPF). 0 if
    /// the device guarantees only single blocks.
    pub atomic_bytes: u32,
    /// Whether acknowledged data may be in a volatile cache.
    pub has_volatile_cache: bool,
    /// Contents at the start of the recording.
    pub start: Start,
}

/// Contents of a device at the start of its recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Zeros.
    Zeros,
    /// The contents of the file with this name.
    Image(String),
}

/// Contents of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Data in the recording's file.
    Data {
        /// Offset in the file.
        at_bytes: u64,
    },
    /// Zeros that were written.
    Zeros,
    /// A trim, after which the range reads as zeros.
    Trim,
}

impl Stored {
    /// Whether the range reads as zeros afterwards.
    pub(crate) fn is_zeros(self) -> bool {
        match self {
            Stored::Data { .. } => false,
            Stored::Zeros | Stored::Trim => true,
        }
    }
}

/// A change of the contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// New contents.
    pub stored: Stored,
    /// Offset in bytes.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// Whether it is durable when it is acknowledged (FUA).
    pub is_forced: bool,
    /// Whether the file system marked it as its own metadata (`REQ_META`).
    pub is_metadata: bool,
    /// Time at which it was sent.
    pub submitted_ns: u64,
}

/// Outcome of a change or a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was acknowledged.
    Acknowledged,
    /// It failed, with this error number.
    Failed(u16),
}

/// An event, in the order seen by the device: a client that waits for an answer sends its next request after it in
/// the list, independent of clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A change was sent: its index in [`Recording::changes`].
    Change(u32),
    /// A change was answered.
    Changed(u32, Fate),
    /// A flush was sent: its number among the flushes.
    Flush(u32),
    /// A flush was answered.
    Flushed(u32, Fate),
    /// A mark was set: its index in [`Recording::marks`].
    Mark(u32),
    /// Power failed. Changes until it is back are data that the device itself took back.
    PowerOff,
    /// Power is back: the present data have survived.
    PowerOn,
}

/// How a recording ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was finished.
    Whole,
    /// Between two records: the writer ended before finishing it.
    Unfinished,
    /// Within a record, which is dropped with everything after it.
    CutOff {
        /// End of the last whole record.
        at_bytes: u64,
        /// Bytes after it.
        left_bytes: u64,
    },
}

/// The requests that a device received, and its answers.
#[derive(Debug)]
pub struct Recording {
    /// The device.
    pub device: Device,
    /// Events in order.
    pub events: Vec<Event>,
    /// Time of each event.
    pub times_ns: Vec<u64>,
    /// Changes in the order in which they were sent and applied to the contents.
    pub changes: Vec<Change>,
    /// Number of flushes.
    pub flushes: u32,
    /// Marks in order.
    pub marks: Vec<String>,
    /// How it ends.
    pub ending: Ending,
    path: PathBuf,
    file: File,
}

impl Recording {
    pub(crate) fn new(path: &Path, file: File, device: Device) -> Recording {
        Recording {
            device,
            events: Vec::new(),
            times_ns: Vec::new(),
            changes: Vec::new(),
            flushes: 0,
            marks: Vec::new(),
            ending: Ending::Whole,
            path: path.to_owned(),
            file,
        }
    }

    pub(crate) fn happened(&mut self, at_ns: u64, event: Event) {
        self.events.push(event);
        self.times_ns.push(at_ns);
    }

    pub(crate) fn sent(&mut self, change: Change) -> u32 {
        let number = self.changes.len() as u32;
        let at_ns = change.submitted_ns;
        self.changes.push(change);
        self.happened(at_ns, Event::Change(number));
        number
    }

    pub(crate) fn flush_sent(&mut self, at_ns: u64) -> u32 {
        let number = self.flushes;
        self.flushes += 1;
        self.happened(at_ns, Event::Flush(number));
        number
    }

    pub(crate) fn marked(&mut self, at_ns: u64, text: String) {
        self.marks.push(text);
        self.happened(at_ns, Event::Mark(self.marks.len() as u32 - 1));
    }

    /// Sets the device's capacity to that of its initial image, if the recording does not state one.
    pub fn grow_to(&mut self, capacity_bytes: u64) {
        self.device.capacity_bytes = self.device.capacity_bytes.max(capacity_bytes);
    }

    /// Reads bytes of the file itself.
    pub(crate) fn bytes_at(&self, at_bytes: u64, into: &mut [u8]) -> Result<(), CrashError> {
        self.file.read_exact_at(into, at_bytes).map_err(CrashError::io(&self.path))
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the contents of a change from an offset on.
    ///
    /// # Errors
    /// The file system's error.
    pub fn read(&self, change: u32, from_bytes: u64, into: &mut [u8]) -> Result<(), CrashError> {
        match self.changes[change as usize].stored {
            Stored::Data { at_bytes } => {
                self.file.read_exact_at(into, at_bytes + from_bytes).map_err(CrashError::io(&self.path))
            }
            Stored::Zeros | Stored::Trim => {
                into.fill(0);
                Ok(())
            }
        }
    }
}
