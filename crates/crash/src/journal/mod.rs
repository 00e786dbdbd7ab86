//! The journal of a live export: a file to which records are only ever added.
//!
//! All numbers are little-endian. The file begins with what the device is:
//!
//! | at | bytes | |
//! | --- | --- | --- |
//! | 0 | 8 | `hs-crash` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | length of all this, with the name and the checksum |
//! | 16 | 8 | capacity in bytes |
//! | 24 | 4 | bytes of a logical block |
//! | 28 | 4 | bytes that are written as a whole or not at all, 0 for a block |
//! | 32 | 1 | 1: the cache is volatile |
//! | 33 | 1 | the device began with 0: zeros, 1: an image |
//! | 34 | 2 | length of the image's name |
//! | 36 | | its name |
//! | | 8 | XXH3 of all before |
//!
//! Then come records, each of a head of 40 bytes, what it carries, and a checksum:
//!
//! | at | bytes | |
//! | --- | --- | --- |
//! | 0 | 1 | 1 write, 2 zeros, 3 trim, 4 flush, 5 answer, 6 mark, 7 power off, 8 power on, 9 end |
//! | 1 | 1 | of changes: 1 FUA, 2 metadata; of an answer: 1 failed |
//! | 2 | 2 | of an answer that failed: the number of the error |
//! | 4 | 4 | bytes that it carries: data of a write, text of a mark |
//! | 8 | 8 | number of the change or flush, counted from 0 in the order of the file; of the end: how many there were |
//! | 16 | 8 | of changes: offset in bytes |
//! | 24 | 8 | of changes: length in bytes |
//! | 32 | 8 | nanoseconds of the session's clock |
//! | 40 | | what it carries |
//! | | 8 | XXH3 of all this |
//!
//! The order of the records is the order of events. A file that was cut off anywhere is read up to its last whole record.

mod reader;
mod writer;

pub(crate) use reader::read;
pub use writer::{JournalWriter, QUEUE_BYTES};

use twox_hash::XxHash3_64;

use crate::{Device, Start};

/// Magic number of a journal.
pub const MAGIC: [u8; 8] = *b"hs-crash";
const VERSION: u32 = 1;
/// Length of the device's description without the name of its image.
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

    /// `None` if the type is unknown.
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

/// Returns the header of a file; `None` if the name of the image is too long.
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
