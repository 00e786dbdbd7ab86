//! [`Request`]: a read, write, trim or flush.

use crate::span::Span;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Transfers data from the system.
    Read,
    /// Transfers data to the system.
    Write,
    /// Discards the data of the range (ATA TRIM, SCSI UNMAP).
    Trim,
    /// Flushes all writes completed so far to stable storage; has no range.
    Flush,
}

impl Kind {
    /// Every kind, in declaration order, so that `kind as usize` is its index.
    pub const ALL: [Kind; 4] = [Kind::Read, Kind::Write, Kind::Trim, Kind::Flush];

    /// The kind's name in results and reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Trim => "trim",
            Kind::Flush => "flush",
        }
    }
}

/// One request to a system, without the time of its issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its kind.
    pub kind: Kind,
    /// First byte, from the start of the system; 0 for a flush.
    pub offset_bytes: u64,
    /// Length in bytes; 0 for a flush.
    pub length_bytes: u32,
    /// A write that must be on stable storage before it completes (FUA); for a flush, also of metadata, as fsync(2)
    /// compared with fdatasync(2).
    pub force_unit_access: bool,
    /// An ordered command: everything queued before it completes first, everything after it waits (SCSI's ordered task
    /// attribute).
    pub ordered: bool,
}

impl Request {
    /// The bytes that it touches.
    pub fn span(&self) -> Span {
        Span { start_bytes: self.offset_bytes, length_bytes: u64::from(self.length_bytes) }
    }
}

/// A request of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// When it arrived, in nanoseconds of the recording's own clock, whose zero means nothing.
    pub arrival_ns: u64,
    /// Time of completion on the same clock, if recorded.
    pub completion_ns: Option<u64>,
    /// The request.
    pub request: Request,
    /// The system flushes its cache before this request (PREFLUSH in Linux), as it does before the commit block of a journal.
    pub pre_flush: bool,
}
