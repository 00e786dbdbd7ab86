//! [`Event`]: the events of Linux' block layer from which requests are reconstructed, and the meaning of their bits.

use crate::error::{Problem, refused};
use crate::record::{Flags, Operation};
use crate::text::BYTES_END;
use crate::time::TIME_NS_END;

/// Sector size of the block layer, for any drive.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// The first sector beyond 2^63 bytes.
const SECTORS_END: u64 = BYTES_END / SECTOR_BYTES;

/// Type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// Q: the file system or a program submitted it.
    Queue,
    /// G: the kernel allocated a request for it.
    Get,
    /// I: it was inserted into the scheduler's queue.
    Insert,
    /// X: it was split in two.
    Split,
    /// R: the driver returned it.
    Requeue,
    /// D: the driver received it.
    Issue,
    /// C: the device completed it, or its first part.
    Complete,
}

impl EventKind {
    /// The event with that number in a binary trace; `None` for those that are not about a stage of a request.
    #[inline]
    pub(crate) fn from_number(number: u64) -> Option<EventKind> {
        match number {
            1 => Some(EventKind::Queue),
            4 => Some(EventKind::Get),
            6 => Some(EventKind::Requeue),
            7 => Some(EventKind::Issue),
            8 => Some(EventKind::Complete),
            12 => Some(EventKind::Insert),
            13 => Some(EventKind::Split),
            _ => None,
        }
    }

    /// The event with that letter in blkparse's text; `None` likewise.
    pub(crate) fn from_letter(letter: &[u8]) -> Option<EventKind> {
        match letter {
            b"Q" => Some(EventKind::Queue),
            b"G" => Some(EventKind::Get),
            b"I" => Some(EventKind::Insert),
            b"R" => Some(EventKind::Requeue),
            b"D" => Some(EventKind::Issue),
            b"C" => Some(EventKind::Complete),
            b"X" => Some(EventKind::Split),
            _ => None,
        }
    }
}

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at_ns: u64,
    pub(crate) sector: u64,
    /// Start of the second part of a split.
    pub(crate) second_sector: u64,
    pub(crate) bytes: u32,
    /// Major number << 20 | minor.
    pub(crate) device: u32,
    pub(crate) pid: u32,
    /// Flags of the event, with [`Flags::ERROR`] for a failed completion.
    pub(crate) flags: Flags,
    pub(crate) operation: Operation,
    pub(crate) what: EventKind,
}

impl Event {
    /// Normalises the event for pairing. Flushes and pass-through commands have no address: the kernel writes 0 or 2^64
    /// - 1, not always the same for one request.
    #[inline]
    pub(crate) fn checked(mut self) -> Result<Event, Problem> {
        if self.operation == Operation::Flush || self.flags.contains(Flags::PASS_THROUGH) {
            self.sector = 0;
        }
        if self.at_ns >= TIME_NS_END {
            return Err(refused("time", self.at_ns.to_string().as_bytes(), "below 2^63 ns"));
        }
        if self.sector > SECTORS_END - (u32::MAX as u64 / SECTOR_BYTES + 1) {
            let found = self.sector.to_string();
            return Err(refused("sector", found.as_bytes(), "below 2^54, including the end of its request"));
        }
        Ok(self)
    }
}

/// Bits of an action above its event: categories of request and stage.
pub(crate) mod category {
    pub(crate) const READ: u64 = 1;
    pub(crate) const WRITE: u64 = 1 << 1;
    pub(crate) const FLUSH: u64 = 1 << 2;
    pub(crate) const SYNC: u64 = 1 << 3;
    pub(crate) const PASS_THROUGH: u64 = 1 << 9;
    pub(crate) const NOTIFY: u64 = 1 << 10;
    pub(crate) const READ_AHEAD: u64 = 1 << 11;
    pub(crate) const METADATA: u64 = 1 << 12;
    pub(crate) const DISCARD: u64 = 1 << 13;
    pub(crate) const FUA: u64 = 1 << 15;
    /// Reset, finish, open or close of a zone, or of all (version 8). An append, bit 16, is a write.
    pub(crate) const ZONE_MANAGEMENT: u64 = 0b1_1111 << 17;
    /// Upper limit of the category bits.
    pub(crate) const END: u64 = 1 << 24;
}

/// Operation of a request with these categories and length. One that moves nothing and flushes nothing manages zones; a
/// pass-through command only has a direction.
#[inline]
pub(crate) fn operation(categories: u64, bytes: u32) -> Operation {
    use category::*;
    let has = |bits: u64| categories & bits != 0;
    if has(PASS_THROUGH | ZONE_MANAGEMENT) {
        Operation::Other
    } else if has(DISCARD) {
        Operation::Trim
    } else if bytes == 0 {
        if has(FLUSH) { Operation::Flush } else { Operation::Other }
    } else if has(WRITE) {
        Operation::Write
    } else if has(READ) {
        Operation::Read
    } else {
        Operation::Other
    }
}

/// Flags of a request with these categories and length.
#[inline]
pub(crate) fn flags(categories: u64, bytes: u32) -> Flags {
    use category::*;
    const FLAGS: [(u64, Flags); 5] = [
        (SYNC, Flags::SYNC),
        (FUA, Flags::FUA),
        (READ_AHEAD, Flags::READ_AHEAD),
        (METADATA, Flags::METADATA),
        (PASS_THROUGH, Flags::PASS_THROUGH),
    ];
    let mut flags = Flags::default();
    for (bit, flag) in FLAGS {
        // FUA without data has no effect: an empty barrier is a flush.
        if categories & bit != 0 && (bit != FUA || bytes > 0) {
            flags = flags.with(flag);
        }
    }
    // A separate flush is an operation; with data to write it precedes them.
    if categories & FLUSH != 0 && bytes > 0 { flags.with(Flags::PRE_FLUSH) } else { flags }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_in_the_categories_and_the_length() {
        use category::*;
        for (categories, bytes, expected) in [
            (READ, 512, Operation::Read),
            (WRITE | SYNC | FUA, 512, Operation::Write),
            (WRITE | FLUSH, 4096, Operation::Write),
            (WRITE | FLUSH | SYNC, 0, Operation::Flush),
            (READ | FLUSH, 0, Operation::Flush),
            (WRITE | DISCARD, 1 << 20, Operation::Trim),
            (READ | PASS_THROUGH, 36, Operation::Other),
            (WRITE | 1 << 16, 4096, Operation::Write),
            (WRITE | 1 << 17, 0, Operation::Other),
            (WRITE, 0, Operation::Other),
        ] {
            assert_eq!(operation(categories, bytes), expected, "{categories:x} {bytes}");
        }
        assert_eq!(flags(WRITE | FLUSH | FUA, 512), Flags::FUA.with(Flags::PRE_FLUSH));
        assert_eq!(flags(WRITE | FLUSH, 0), Flags::default());
    }

    #[test]
    fn addresses_end_below_two_to_the_63() {
        let event = |sector, operation| Event {
            at_ns: 0,
            sector,
            second_sector: 0,
            bytes: u32::MAX,
            device: 0,
            pid: 0,
            flags: Flags::default(),
            operation,
            what: EventKind::Queue,
        };
        let last = (1 << 54) - (1 << 23);
        assert!(event(last, Operation::Read).checked().is_ok());
        assert!(event(last + 1, Operation::Read).checked().is_err());
        assert_eq!(event(u64::MAX, Operation::Flush).checked().unwrap().sector, 0);
    }
}
