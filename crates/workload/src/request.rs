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

    /// Returns the name of the kind in results and reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Trim => "trim",
            Kind::Flush => "flush",
        }
    }
}

/// A request to a system, without its time of issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Kind of the request.
    pub kind: Kind,
    /// Offset of the first byte in the system. A flush in a system with files covers the file at this offset; at 0, and
    /// in all other systems, it covers everything.
    pub offset_bytes: u64,
    /// Length in bytes; 0 for a flush.
    pub length_bytes: u32,
    /// For a write, whether it must be on stable storage before it completes (FUA). For a flush, whether it includes
    /// metadata, as with fsync(2) but not fdatasync(2).
    pub force_unit_access: bool,
    /// Whether the request is an ordered command (SCSI's ordered task attribute): earlier commands are done first, and
    /// later ones wait.
    pub ordered: bool,
}

impl Request {
    /// Returns the bytes that the request touches.
    pub fn span(&self) -> Span {
        Span { start_bytes: self.offset_bytes, length_bytes: u64::from(self.length_bytes) }
    }
}

/// A request in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Arrival time in ns by the trace's own clock, whose zero is arbitrary.
    pub arrival_ns: u64,
    /// Completion time by the same clock, if it was recorded.
    pub completion_ns: Option<u64>,
    /// The request.
    pub request: Request,
    /// Whether the system flushes its cache before this request (PREFLUSH in Linux), for example before the commit
    /// block of a journal.
    pub pre_flush: bool,
}
