//! A recording in memory: its events. The data stay in the file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::CrashError;

/// The device that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its size.
    pub capacity_bytes: u64,
    /// A logical block, of which every change is a multiple.
    pub block_bytes: u32,
    /// A write of up to so many bytes that crosses no multiple of them is there as a whole after a power failure, or not
    /// at all: NVMe's AWUPF. 0 where the device promises no more than a block.
    pub atomic_bytes: u32,
    /// What it acknowledges may be in a volatile cache.
    pub has_volatile_cache: bool,
    /// What it held when the recording began.
    pub start: Start,
}

/// What a device held when its recording began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Zeros.
    Zeros,
    /// What is in the file of this name.
    Image(String),
}

/// What a change puts in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Data, which are so far from the start of the recording's file.
    Data {
        /// Their place in the file.
        at_bytes: u64,
    },
    /// Zeros that were written.
    Zeros,
    /// Nothing more: a trim, after which the range reads as zeros.
    Trim,
}

impl Stored {
    /// Afterwards there are zeros.
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
    /// What it stores.
    pub stored: Stored,
    /// Where.
    pub offset_bytes: u64,
    /// How much.
    pub length_bytes: u64,
    /// It is durable when it is acknowledged (FUA).
    pub is_forced: bool,
    /// The file system said that it is its own (`REQ_META`).
    pub is_metadata: bool,
    /// When it was sent.
    pub submitted_ns: u64,
}

/// How a change or a flush ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was acknowledged.
    Acknowledged,
    /// It failed, with the number of the error.
    Failed(u16),
}

/// What happened, in the order in which the device saw it: a client that waits for an answer before it goes on sends its
/// next request behind that in the list, whatever the clocks say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A change was sent: its place in [`Recording::changes`].
    Change(u32),
    /// A change was answered.
    Changed(u32, Fate),
    /// A flush was sent: its place among the flushes.
    Flush(u32),
    /// A flush was answered.
    Flushed(u32, Fate),
    /// Somebody noted what it had come to: the place in [`Recording::marks`].
    Mark(u32),
    /// Power failed. What changes until it is back is what the device itself took back.
    PowerOff,
    /// Power is back: what is there has survived.
    PowerOn,
}

/// How a recording ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As it was finished.
    Whole,
    /// Between two records: whoever wrote it was ended before it was finished.
    Unfinished,
    /// Within a record, which is left out with whatever follows.
    CutOff {
        /// Where the last whole record ends.
        at_bytes: u64,
        /// How much follows.
        left_bytes: u64,
    },
}

/// What a device was sent, and how it answered.
#[derive(Debug)]
pub struct Recording {
    /// The device.
    pub device: Device,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// When, for each event.
    pub times_ns: Vec<u64>,
    /// Changes in the order in which they were sent, which is the one in which the contents saw them.
    pub changes: Vec<Change>,
    /// Flushes that were sent.
    pub flushes: u32,
    /// Notes, in order.
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

    /// The device is as large as the image that it held at the start, where the recording does not say how large it is.
    pub fn grow_to(&mut self, capacity_bytes: u64) {
        self.device.capacity_bytes = self.device.capacity_bytes.max(capacity_bytes);
    }

    /// Reads bytes of the file itself.
    pub(crate) fn bytes_at(&self, at_bytes: u64, into: &mut [u8]) -> Result<(), CrashError> {
        self.file.read_exact_at(into, at_bytes).map_err(CrashError::io(&self.path))
    }

    /// The file that it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what a change stores, from so many bytes behind its start on.
    ///
    /// # Errors
    /// What the file system says.
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
