//! libCacheSim's lcs: accesses to objects behind a header, little-endian and packed, in versions 1 to 8.
//!
//! The header is 8,192 bytes (its source says 1,024, and counts words of eight; a short-lived form had as many bytes), with one
//! magic at its start, another at its end, the version behind the first, and statistics between. A record of version 1 is one of
//! oracleGeneral: time u32 in seconds, object u64, size u32, next access i64. Version 2 has an operation u8 and a tenant of
//! three bytes before the last field, version 3 a size of eight bytes and a time to live u32 too, and versions 4 to 8 have 1, 2,
//! 4, 8 and 16 numbers of four bytes behind them.

use std::io::Read;

use super::keys::Numbers;
use super::numbers::little_endian;
use super::oracle_general::{operation, stated};
use super::units::{Stated, WHOLE_SECONDS};
use crate::collect::Collector;
use crate::error::{Problem, TraceError};
use crate::input::{Head, Input};
use crate::record::{Operation, Record};

const MAGIC: u64 = 0x1234_5678_9abc_def0;
const HEADER_BYTES: [usize; 2] = [8_192, 1_024];
/// Bytes of a record, from version 1 on.
const RECORD_BYTES: [usize; 8] = [24, 28, 36, 40, 44, 52, 68, 100];
const NS_PER_S: u64 = 1_000_000_000;

/// Whether the header is there, in any version.
pub(crate) fn fits(head: Head<'_>) -> bool {
    header_bytes(head.bytes).is_some()
}

/// Length of the header: it ends with the same magic as it begins.
fn header_bytes(bytes: &[u8]) -> Option<usize> {
    let is_magic = |at: usize| bytes.len() >= at + 8 && little_endian::<8>(bytes, at) == MAGIC;
    HEADER_BYTES.into_iter().find(|&length| is_magic(0) && is_magic(length - 8))
}

/// A parser of a file.
#[derive(Debug)]
pub(crate) struct Lcs {
    version: u64,
    /// Unit of object numbers in bytes, if given.
    said_bytes: Option<u32>,
    numbers: Numbers,
    device: u32,
    latest_s: u64,
}

impl Lcs {
    pub(crate) fn new(said_bytes: Option<u32>, out: &mut Collector) -> Lcs {
        out.meta.resolution_ns = NS_PER_S;
        out.meta.note(WHOLE_SECONDS);
        Lcs { version: 1, said_bytes, numbers: Numbers::Objects, device: 0, latest_s: 0 }
    }

    pub(crate) fn begin(&mut self, input: &mut Input, out: &mut Collector) -> Result<(), TraceError> {
        let refused = |why: String| TraceError::of_file(&input.name, why);
        let length = header_bytes(input.head().bytes)
            .ok_or_else(|| refused("it does not begin with an lcs header".to_owned()))?;
        self.version = little_endian::<8>(input.head().bytes, 8);
        if !(1..=RECORD_BYTES.len() as u64).contains(&self.version) {
            return Err(refused(format!("lcs version {} is unknown; allowed: 1 to 8", self.version)));
        }
        let records = input.head().bytes[length..].chunks_exact(self.record_bytes());
        let stated: Vec<Stated> =
            records.map(|record| stated(little_endian::<8>(record, 4), self.size(record))).collect();
        self.numbers = Numbers::of(self.said_bytes, &stated, &mut out.meta);
        let mut header = vec![0; length];
        input.read_exact(&mut header).map_err(|error| input.error(&error))?;
        (self.device, self.latest_s) = (out.device(&input.label), 0);
        out.meta.devices[self.device as usize].sector_bytes = self.numbers.block_bytes();
        if self.version == 1 {
            out.meta.note("operations are not recorded");
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn record_bytes(&self) -> usize {
        RECORD_BYTES[self.version as usize - 1]
    }

    fn size(&self, record: &[u8]) -> u64 {
        if self.version < 3 { little_endian::<4>(record, 12) } else { little_endian::<8>(record, 12) }
    }

    #[inline]
    pub(crate) fn parse(&mut self, record: &[u8]) -> Result<Record, Problem> {
        let time_s = little_endian::<4>(record, 0);
        let size = self.size(record);
        let code = match self.version {
            1 => None,
            2 => Some(record[16]),
            _ => Some(record[20]),
        };
        let size =
            u32::try_from(size).map_err(|_| ("size", format!("must be below 2^32 bytes, not {}", size as i64)))?;
        if time_s < self.latest_s {
            return Err(("time", format!("must not go back: {time_s} s after {} s", self.latest_s)));
        }
        self.latest_s = time_s;
        let address = self.numbers.address(little_endian::<8>(record, 4))?;
        let mut request = Record::new(time_s * NS_PER_S, code.map_or(Operation::Unknown, operation), address, size);
        request.device = self.device;
        Ok(request)
    }
}
