//! The journal of a live export: an append-only file.
//!
//! All numbers are little-endian. The file begins with a description of the device:
//!
//! | at | bytes | |
//! | --- | --- | --- |
//! | 0 | 8 | `hs-crash` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | length of the whole description, including the name and the checksum |
//! | 16 | 8 | capacity in bytes |
//! | 24 | 4 | bytes per logical block |
//! | 28 | 4 | bytes that are written atomically; 0 for one block |
//! | 32 | 1 | 1 if the cache is volatile |
//! | 33 | 1 | initial contents: 0 for zeros, 1 for an image |
//! | 34 | 2 | length of the image's name |
//! | 36 | | name of the image |
//! | | 8 | XXH3 of all bytes before |
//!
//! Records follow. Each has a header of 40 bytes, a payload, and a checksum:
//!
//! | at | bytes | |
//! | --- | --- | --- |
//! | 0 | 1 | 1 write, 2 zeros, 3 trim, 4 flush, 5 answer, 6 mark, 7 power off, 8 power on, 9 end |
//! | 1 | 1 | flags: 1 FUA and 2 metadata for changes; 1 failed for answers |
//! | 2 | 2 | for an answer that failed: the error number |
//! | 4 | 4 | length of the payload in bytes: the data of a write or the text of a mark |
//! | 8 | 8 | number of the change or flush, counted from 0 in the order of the file; for the end record, their count |
//! | 16 | 8 | for changes: offset in bytes |
//! | 24 | 8 | for changes: length in bytes |
//! | 32 | 8 | time on the session's clock, in ns |
//! | 40 | | payload |
//! | | 8 | XXH3 of the header and the payload |
//!
//! Records are in the order of events. A file that was truncated anywhere is read up to its last complete record.

mod reader;
mod writer;

pub(crate) use reader::read;
pub use writer::{JournalWriter, QUEUE_BYTES};

use twox_hash::XxHash3_64;

use crate::{Device, Start};

/// Magic number of a journal.
pub const MAGIC: [u8; 8] = *b"hs-crash";
const VERSION: u32 = 1;
/// Length in bytes of the device's description without the name of the image.
const HEADER_BYTES: usize = 44;
const HEAD_BYTES: usize = 40;
const SUM_BYTES: usize = 8;
const FORCED: u8 = 1;
const METADATA: u8 = 2;
const FAILED: u8 = 1;

/// Type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Write = 1,
    Zeros,
    Trim,
    Flush,
    Answer,
    Mark,
    PowerOff,
    PowerOn,
    End,
}

impl Kind {
    fn of(code: u8) -> Option<Kind> {
        use Kind::{Answer, End, Flush, Mark, PowerOff, PowerOn, Trim, Write, Zeros};
        [Write, Zeros, Trim, Flush, Answer, Mark, PowerOff, PowerOn, End].into_iter().find(|kind| *kind as u8 == code)
    }
}

/// Header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    kind: Kind,
    flags: u8,
    errno: u16,
    carried_bytes: u32,
    number: u64,
    offset_bytes: u64,
    length_bytes: u64,
    at_ns: u64,
}

impl Head {
    fn new(kind: Kind, at_ns: u64) -> Head {
        Head { kind, flags: 0, errno: 0, carried_bytes: 0, number: 0, offset_bytes: 0, length_bytes: 0, at_ns }
    }

    fn record_bytes(&self) -> usize {
        HEAD_BYTES + self.carried_bytes as usize + SUM_BYTES
    }

    fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[0] = self.kind as u8;
        bytes[1] = self.flags;
        bytes[2..4].copy_from_slice(&self.errno.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.carried_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset_bytes.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.length_bytes.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.at_ns.to_le_bytes());
        bytes
    }

    /// Parses a header; returns `None` if the type is unknown.
    fn from_bytes(bytes: &[u8; HEAD_BYTES]) -> Option<Head> {
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Some(Head {
            kind: Kind::of(bytes[0])?,
            flags: bytes[1],
            errno: u16::from_le_bytes([bytes[2], bytes[3]]),
            carried_bytes: u32::from_le_bytes(std::array::from_fn(|i| bytes[4 + i])),
            number: u64_at(8),
            offset_bytes: u64_at(16),
            length_bytes: u64_at(24),
            at_ns: u64_at(32),
        })
    }
}

fn sum(bytes: &[u8]) -> [u8; SUM_BYTES] {
    XxHash3_64::oneshot(bytes).to_le_bytes()
}

/// Returns the description of a device at the start of a file; `None` if the name of the image is too long.
fn header(device: &Device) -> Option<Vec<u8>> {
    let (start, name) = match &device.start {
        Start::Zeros => (0, ""),
        Start::Image(name) => (1, name.as_str()),
    };
    let name_bytes = u16::try_from(name.len()).ok()?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + name.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(HEADER_BYTES as u32 + u32::from(name_bytes)).to_le_bytes());
    bytes.extend_from_slice(&device.capacity_bytes.to_le_bytes());
    bytes.extend_from_slice(&device.block_bytes.to_le_bytes());
    bytes.extend_from_slice(&device.atomic_bytes.to_le_bytes());
    bytes.extend_from_slice(&[u8::from(device.has_volatile_cache), start]);
    bytes.extend_from_slice(&name_bytes.to_le_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(&sum(&bytes));
    Some(bytes)
}
