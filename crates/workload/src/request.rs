//! [`Request`]: one read, write, trim or flush.

use crate::span::Span;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Transfers data from the system.
    Read,
    /// Transfers data to the system.
    Write,
    /// Informs the system that the range no longer holds data (ATA TRIM, SCSI UNMAP).
    Trim,
    /// Requests that all writes completed so far reach stable storage; has no range.
    Flush,
}

impl Kind {
    /// All kinds, in declaration order, so that `kind as usize` is the index.
    pub const ALL: [Kind; 4] = [Kind::Read, Kind::Write, Kind::Trim, Kind::Flush];

    /// Returns the kind's name in results and reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Trim => "trim",
            Kind::Flush => "flush",
        }
    }
}

/// A request to a system, without the time of its issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its kind.
    pub kind: Kind,
    /// First byte, from the start of the system; 0 for a flush.
    pub offset_bytes: u64,
    /// Length in bytes; 0 for a flush.
    pub length_bytes: u32,
    /// Whether a write must be on stable storage before it completes (FUA); for a flush, whether it includes metadata,
    /// as fsync(2) does and fdatasync(2) does not.
    pub force_unit_access: bool,
    /// Whether it is an ordered command: everything queued before it is done first, everything after it waits (SCSI's
    /// ordered task attribute).
    pub ordered: bool,
}

impl Request {
    /// Returns the bytes that it touches.
    pub fn span(&self) -> Span {
        Span { start_bytes: self.offset_bytes, length_bytes: u64::from(self.length_bytes) }
    }
}

/// A request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Time of arrival, in nanoseconds of the trace's own clock, whose zero is arbitrary.
    pub arrival_ns: u64,
    /// Time of completion on the same clock, if it was recorded.
    pub completion_ns: Option<u64>,
    /// The request.
    pub request: Request,
    /// Whether the system flushes its cache before this request (PREFLUSH in Linux), as it does before the commit block
    /// of a journal.
    pub pre_flush: bool,
}
