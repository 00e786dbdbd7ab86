//! The events of Linux' block layer that a request's way is told from, and what their bits mean.

use crate::error::{Problem, refused};
use crate::record::{Flags, Operation};
use crate::text::BYTES_END;
use crate::time::TIME_NS_END;

/// The block layer counts in sectors of 512 bytes, whatever the drive's are.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// The first sector that is past 2^63 bytes.
const SECTORS_END: u64 = BYTES_END / SECTOR_BYTES;

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Q: the file system or a program handed it over.
    Queue,
    /// G: the kernel had a request for it.
    Get,
    /// I: it was in the scheduler's queue.
    Insert,
    /// X: it was cut in two.
    Split,
    /// R: the driver gave it back.
    Requeue,
    /// D: the driver was given it.
    Issue,
    /// C: the device is done with it, or with its first part.
    Complete,
}

impl What {
    /// The event of that number in a binary trace; nothing for those that tell nothing of a request's way.
    #[inline]
    pub(crate) fn from_number(number: u64) -> Option<What> {
        match number {
            1 => Some(What::Queue),
            4 => Some(What::Get),
            6 => Some(What::Requeue),
            7 => Some(What::Issue),
            8 => Some(What::Complete),
            12 => Some(What::Insert),
            13 => Some(What::Split),
            _ => None,
        }
    }

    /// The event of that letter in blkparse's text, likewise.
    pub(crate) fn from_letter(letter: &[u8]) -> Option<What> {
        match letter {
            b"Q" => Some(What::Queue),
            b"G" => Some(What::Get),
            b"I" => Some(What::Insert),
            b"R" => Some(What::Requeue),
            b"D" => Some(What::Issue),
            b"C" => Some(What::Complete),
            b"X" => Some(What::Split),
            _ => None,
        }
    }
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at_ns: u64,
    pub(crate) sector: u64,
    /// Where the second part of a split begins.
    pub(crate) second_sector: u64,
    pub(crate) bytes: u32,
    /// Major number << 20 | minor.
    pub(crate) device: u32,
    pub(crate) pid: u32,
    /// What the event says, with [`Flags::ERROR`] of a completion that failed.
    pub(crate) flags: Flags,
    pub(crate) operation: Operation,
    pub(crate) what: What,
}

impl Event {
    /// The event as it is paired. Flushes and pass-through commands have no address: the kernel says 0 or 2^64 - 1, and not
    /// always the same of one request.
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
            return Err(refused("sector", found.as_bytes(), "below 2^54, its request's end included"));
        }
        Ok(self)
    }
}

/// Bits of an action above its event: what kind of request it is, and which stage it is in.
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
    /// There are none above this.
    pub(crate) const END: u64 = 1 << 24;
}

/// What a request of these categories and that length does. One that moves nothing and flushes nothing manages zones; of a
/// pass-through command only the direction is known.
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

/// The flags of a request of these categories and that length.
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
        // What has no bytes writes none through: an empty barrier is a flush.
        if categories & bit != 0 && (bit != FUA || bytes > 0) {
            flags = flags.with(flag);
        }
    }
    // A flush of its own is an operation; with data to write it is asked for before them.
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
            what: What::Queue,
        };
        let last = (1 << 54) - (1 << 23);
        assert!(event(last, Operation::Read).checked().is_ok());
        assert!(event(last + 1, Operation::Read).checked().is_err());
        assert_eq!(event(u64::MAX, Operation::Flush).checked().unwrap().sector, 0);
    }
}
