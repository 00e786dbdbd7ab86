//! [`Record`]: a recorded request, the common representation for all formats and analyses.

use headstack_workload::{Kind, Recorded, Request};
use serde::{Deserialize, Serialize};

/// Value of a time that is not recorded. Never a valid time, because 2^64 ns are 584 years.
pub const NOT_RECORDED: u64 = u64::MAX;

/// Operation of a recorded request. Formats distinguish more or fewer operations than [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Operation {
    /// Transfers data from the device.
    Read,
    /// Transfers data to the device.
    Write,
    /// Discards the data of a range.
    Trim,
    /// Flushes completed writes to stable storage.
    Flush,
    /// Another operation, such as a pass-through command or zone management.
    Other,
    /// Not recorded.
    Unknown,
}

impl Operation {
    /// All operations, in declaration order, so that `operation as usize` is the index.
    pub const ALL: [Operation; 6] =
        [Operation::Read, Operation::Write, Operation::Trim, Operation::Flush, Operation::Other, Operation::Unknown];

    /// Returns the name in files, options and reports.
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

    /// Returns the corresponding kind of request to a system, if there is one.
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

/// Attributes of a request other than its operation, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Flags(pub u16);

impl Flags {
    /// Synchronous: a process waits for the request.
    pub const SYNC: Flags = Flags(1);
    /// Force unit access (FUA): data must be on stable storage before the request completes.
    pub const FUA: Flags = Flags(1 << 1);
    /// Read-ahead.
    pub const READ_AHEAD: Flags = Flags(1 << 2);
    /// File system metadata.
    pub const METADATA: Flags = Flags(1 << 3);
    /// The request completed with an error.
    pub const ERROR: Flags = Flags(1 << 4);
    /// A write preceded by a flush of the device's cache (PREFLUSH).
    pub const PRE_FLUSH: Flags = Flags(1 << 5);
    /// A pass-through command from a program instead of a file system.
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

    /// Returns whether all bits of `other` are set.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flags without the bits of `other`.
    #[must_use]
    pub fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Returns the flags with the bits of `other`.
    #[must_use]
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// One recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Arrival time on the clock of [`crate::Meta::clock`], in ns.
    pub arrival_ns: u64,
    /// Time from arrival to completion, in ns, or [`NOT_RECORDED`].
    pub response_ns: u64,
    /// Time from arrival until the device received the request, in ns, or [`NOT_RECORDED`].
    pub wait_ns: u64,
    /// Time from arrival until the kernel allocated a request (blktrace's G), in ns, or [`NOT_RECORDED`].
    pub got_ns: u64,
    /// Time from arrival until insertion into the scheduler's queue (blktrace's I), in ns, or [`NOT_RECORDED`].
    pub inserted_ns: u64,
    /// Offset from the start of the device, in bytes.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u32,
    /// Index in [`crate::Meta::devices`].
    pub device: u32,
    /// Index in [`crate::Meta::processes`] plus 1; 0 if not recorded.
    pub process: u32,
    /// Attributes of the request.
    pub flags: Flags,
    /// Operation of the request.
    pub operation: Operation,
}

impl Record {
    /// Creates a request with only the mandatory fields; other fields are not recorded.
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

    /// Returns the completion time, if recorded.
    pub fn completion_ns(&self) -> Option<u64> {
        (self.response_ns != NOT_RECORDED).then(|| self.arrival_ns.saturating_add(self.response_ns))
    }

    /// Returns the request as it can be replayed on a system, with its times; `None` for [`Operation::Other`] and
    /// [`Operation::Unknown`].
    ///
    /// A flush applies to the whole system, so its range is dropped. Only writes can force unit access or be preceded
    /// by a flush. No format records whether a command was ordered.
    pub fn recorded(&self) -> Option<Recorded> {
        let kind = self.operation.kind()?;
        let (offset_bytes, length_bytes) =
            if kind == Kind::Flush { (0, 0) } else { (self.offset_bytes, self.length_bytes) };
        let force_unit_access = kind == Kind::Write && self.flags.contains(Flags::FUA);
        let request = Request { kind, offset_bytes, length_bytes, force_unit_access, ordered: false };
        let pre_flush = kind == Kind::Write && self.flags.contains(Flags::PRE_FLUSH);
        Some(Recorded { arrival_ns: self.arrival_ns, completion_ns: self.completion_ns(), request, pre_flush })
    }

    /// Returns the end of the request's range. Cannot overflow, because readers reject ranges that end above 2^63.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + u64::from(self.length_bytes)
    }
}

const _: () = assert!(size_of::<Record>() == 64, "traces in memory consist of records, so their size matters");

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
