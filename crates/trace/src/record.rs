//! [`Record`]: the recorded request, the common form of all formats and analyses.

use headstack_workload::{Kind, Recorded, Request};
use serde::{Deserialize, Serialize};

/// Value of a time that a trace does not have. It is never a valid time: 2^64 ns are 584 years.
pub const NOT_RECORDED: u64 = u64::MAX;

/// Operation of a recorded request. Formats distinguish more and fewer than a [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Operation {
    /// Transferred data from the device.
    Read,
    /// Transferred data to the device.
    Write,
    /// Discarded the data of a range.
    Trim,
    /// Flushed completed writes to stable storage.
    Flush,
    /// Another operation: pass-through commands, zone management.
    Other,
    /// Not recorded.
    Unknown,
}

impl Operation {
    /// All operations, in declaration order, so that `operation as usize` is the index.
    pub const ALL: [Operation; 6] =
        [Operation::Read, Operation::Write, Operation::Trim, Operation::Flush, Operation::Other, Operation::Unknown];

    /// Name in files, options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Trim => "trim",
            Operation::Flush => "flush",
            Operation::Other => "other",
            Operation::Unknown => "unknown",
        }
    }

    /// Returns the operation with that name.
    pub fn from_name(name: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// The corresponding request to a system, if there is one.
    pub fn kind(self) -> Option<Kind> {
        match self {
            Operation::Read => Some(Kind::Read),
            Operation::Write => Some(Kind::Write),
            Operation::Trim => Some(Kind::Trim),
            Operation::Flush => Some(Kind::Flush),
            Operation::Other | Operation::Unknown => None,
        }
    }
}

impl From<Kind> for Operation {
    fn from(kind: Kind) -> Operation {
        match kind {
            Kind::Read => Operation::Read,
            Kind::Write => Operation::Write,
            Kind::Trim => Operation::Trim,
            Kind::Flush => Operation::Flush,
        }
    }
}

/// Attributes of a request besides its operation, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Flags(pub u16);

impl Flags {
    /// A process waits for it.
    pub const SYNC: Flags = Flags(1);
    /// Must be on stable storage before it completes (FUA).
    pub const FUA: Flags = Flags(1 << 1);
    /// Read-ahead.
    pub const READ_AHEAD: Flags = Flags(1 << 2);
    /// File system metadata.
    pub const METADATA: Flags = Flags(1 << 3);
    /// Completed with an error.
    pub const ERROR: Flags = Flags(1 << 4);
    /// A write preceded by a flush of the device's cache (PREFLUSH).
    pub const PRE_FLUSH: Flags = Flags(1 << 5);
    /// A pass-through command of a program, not of a file system.
    pub const PASS_THROUGH: Flags = Flags(1 << 6);

    /// All flags with their names.
    pub const ALL: [(Flags, &'static str); 7] = [
        (Flags::SYNC, "sync"),
        (Flags::FUA, "fua"),
        (Flags::READ_AHEAD, "read-ahead"),
        (Flags::METADATA, "metadata"),
        (Flags::ERROR, "error"),
        (Flags::PRE_FLUSH, "pre-flush"),
        (Flags::PASS_THROUGH, "pass-through"),
    ];

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Removes the bits of `other`.
    #[must_use]
    pub fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Adds the bits of `other`.
    #[must_use]
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// One recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Arrival time on the clock of [`crate::Meta::clock`].
    pub arrival_ns: u64,
    /// From arrival to completion; [`NOT_RECORDED`] if the trace has none.
    pub response_ns: u64,
    /// From arrival until the device received it; [`NOT_RECORDED`] if the trace has none.
    pub wait_ns: u64,
    /// From arrival until the kernel allocated a request for it (blktrace's G), or [`NOT_RECORDED`].
    pub got_ns: u64,
    /// From arrival until its insertion into the scheduler's queue (blktrace's I), or [`NOT_RECORDED`].
    pub inserted_ns: u64,
    /// Offset from the start of its device.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u32,
    /// Index in [`crate::Meta::devices`].
    pub device: u32,
    /// Index in [`crate::Meta::processes`] plus 1; 0 if not recorded.
    pub process: u32,
    /// Flags.
    pub flags: Flags,
    /// Operation.
    pub operation: Operation,
}

impl Record {
    /// Creates a request with only the mandatory fields.
    pub fn new(arrival_ns: u64, operation: Operation, offset_bytes: u64, length_bytes: u32) -> Record {
        Record {
            arrival_ns,
            response_ns: NOT_RECORDED,
            wait_ns: NOT_RECORDED,
            got_ns: NOT_RECORDED,
            inserted_ns: NOT_RECORDED,
            offset_bytes,
            length_bytes,
            device: 0,
            process: 0,
            flags: Flags::default(),
            operation,
        }
    }

    /// Time of completion, if recorded.
    pub fn completion_ns(&self) -> Option<u64> {
        (self.response_ns != NOT_RECORDED).then(|| self.arrival_ns.saturating_add(self.response_ns))
    }

    /// Returns the request in the form in which a system can be asked for it again, with its times; `None` for
    /// [`Operation::Other`] and [`Operation::Unknown`].
    ///
    /// A flush is of the whole system, so its range is dropped. Only writes can force unit access or be preceded by a
    /// flush. No format records whether a command was ordered.
    pub fn recorded(&self) -> Option<Recorded> {
        let kind = self.operation.kind()?;
        let (offset_bytes, length_bytes) =
            if kind == Kind::Flush { (0, 0) } else { (self.offset_bytes, self.length_bytes) };
        let force_unit_access = kind == Kind::Write && self.flags.contains(Flags::FUA);
        let request = Request { kind, offset_bytes, length_bytes, force_unit_access, ordered: false };
        let pre_flush = kind == Kind::Write && self.flags.contains(Flags::PRE_FLUSH);
        Some(Recorded { arrival_ns: self.arrival_ns, completion_ns: self.completion_ns(), request, pre_flush })
    }

    /// End of its range. Readers refuse ranges that end beyond 2^63, so it cannot overflow.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + u64::from(self.length_bytes)
    }
}

const _: () = assert!(size_of::<Record>() == 64, "a record is what traces in memory are made of");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_a_system_can_serve_are_replayed() {
        for operation in Operation::ALL {
            let mut record = Record::new(10, operation, 4_096, 512);
            assert_eq!(record.recorded().map(|recorded| recorded.request.kind), operation.kind());
            (record.response_ns, record.flags) = (5, Flags::FUA.with(Flags::SYNC).with(Flags::PRE_FLUSH));
            let Some(recorded) = record.recorded() else { continue };
            assert_eq!((recorded.arrival_ns, recorded.completion_ns), (10, Some(15)));
            let is_flush = operation == Operation::Flush;
            let range = (recorded.request.offset_bytes, recorded.request.length_bytes);
            assert_eq!(range, if is_flush { (0, 0) } else { (4_096, 512) });
            assert_eq!(recorded.request.force_unit_access, operation == Operation::Write);
            assert_eq!(recorded.pre_flush, operation == Operation::Write);
        }
        assert_eq!(Record::new(10, Operation::Read, 0, 512).recorded().unwrap().completion_ns, None);
    }
}
