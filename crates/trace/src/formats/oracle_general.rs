//! libCacheSim's oracleGeneral: accesses to objects, each with the number of the object's next access. Little-endian,
//! packed, no header.
//!
//! 24 bytes: time u32 in seconds, object u64, size u32, next access i64. The variant with operations,
//! oracleGeneralOpNS, has 27: an operation u8 and a name space u16 before the last field. Accesses are numbered from 1;
//! -1 or the largest i64 means no further access. For traces of block devices the object is the number of the first
//! 512-byte block, and its size is that of the first access to it; for others it is an arbitrary number, or a hash. The
//! file does not say which: numbers are addresses if requests that follow each other prove it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::keys::Numbers;
use super::numbers::little_endian;
use super::units::{Stated, WHOLE_SECONDS};
use crate::collect::Collector;
use crate::error::{Problem, TraceError};
use crate::input::{Head, Input};
use crate::record::{Operation, Record};

const NS_PER_S: u64 = 1_000_000_000;
/// Number of records that must fit for detection.
const RECORDS_MIN: usize = 2;
/// Number of records that must fit if all links lead out of the examined part.
const UNCONFIRMED_MIN: usize = 64;
/// Upper limit of the number of accesses: such a file would have 26 terabytes.
const ACCESSES_MAX: u64 = 1 << 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Plain,
    /// With operations and name spaces.
    OpNs,
}

impl Layout {
    const ALL: [Layout; 2] = [Layout::Plain, Layout::OpNs];

    fn record_bytes(self) -> usize {
        match self {
            Layout::Plain => 24,
            Layout::OpNs => 27,
        }
    }

    fn object(self, record: &[u8]) -> u64 {
        little_endian::<8>(record, 4)
    }

    /// Number of the object's next access, from 1; `None` if there is none.
    fn next_access(self, record: &[u8]) -> Option<u64> {
        let next = little_endian::<8>(record, self.record_bytes() - 8);
        (next != u64::MAX && next != i64::MAX as u64).then_some(next)
    }

    fn operation(self, record: &[u8]) -> Operation {
        match self {
            Layout::Plain => Operation::Unknown,
            Layout::OpNs => operation(record[16]),
        }
    }

    /// Whether all links between the accesses of `head` are right, and none is missing.
    fn links(self, head: Head<'_>) -> bool {
        let records: Vec<&[u8]> = head.bytes.chunks_exact(self.record_bytes()).collect();
        let mut latest: FxHashMap<u64, usize> = FxHashMap::default();
        let mut targets: FxHashSet<u64> = FxHashSet::default();
        let mut are_confirmed = false;
        for (index, record) in records.iter().enumerate() {
            let number = index as u64 + 1;
            if let Some(earlier) = latest.insert(self.object(record), index) {
                if self.next_access(records[earlier]) != Some(number) {
                    return false;
                }
                are_confirmed = true;
            }
            if let Some(next) = self.next_access(record) {
                // An access follows one other access, not two.
                if next <= number || next >= ACCESSES_MAX || !targets.insert(next) {
                    return false;
                }
                let is_of_another = |target: &&[u8]| self.object(target) != self.object(record);
                if records.get(next as usize - 1).is_some_and(is_of_another) {
                    return false;
                }
            }
        }
        are_confirmed || self.is_likely(&records)
    }

    /// Whether `records` look like accesses although no link confirms them, since no object recurs.
    fn is_likely(self, records: &[&[u8]]) -> bool {
        let (seconds, size) = (|record: &&[u8]| little_endian::<4>(record, 0), |record| little_endian::<4>(record, 12));
        let is_last = records.iter().all(|record| self.next_access(record).is_none());
        records.len() >= if is_last { RECORDS_MIN } else { UNCONFIRMED_MIN }
            && records.is_sorted_by_key(seconds)
            && records.iter().all(|record| size(record) > 0)
    }
}

/// An access of a trace of one device, whose unit of addresses is to be determined.
pub(super) fn stated(address: u64, length_bytes: u64) -> Stated {
    Stated { device: 0, address, length_bytes }
}

/// libCacheSim's operations.
pub(super) fn operation(code: u8) -> Operation {
    match code {
        // get, gets, read
        1 | 2 | 12 => Operation::Read,
        // set, add, cas, replace, append, prepend, increment, decrement, write, update
        3..=8 | 10 | 11 | 13 | 14 => Operation::Write,
        // delete
        9 => Operation::Trim,
        _ => Operation::Unknown,
    }
}

/// The layouts with correct links.
fn fitting(head: Head<'_>) -> Vec<Layout> {
    Layout::ALL.into_iter().filter(|layout| layout.links(head)).collect()
}

pub(crate) fn fits(head: Head<'_>) -> bool {
    fitting(head).len() == 1
}

/// A parser of a file.
#[derive(Debug)]
pub(crate) struct OracleGeneral {
    layout: Layout,
    /// Unit of object numbers in bytes, if given.
    said_bytes: Option<u32>,
    numbers: Numbers,
    device: u32,
    /// Number of accesses read from the file.
    accesses: u64,
    latest_s: u64,
}

impl OracleGeneral {
    pub(crate) fn new(said_bytes: Option<u32>, out: &mut Collector) -> OracleGeneral {
        out.meta.resolution_ns = NS_PER_S;
        out.meta.note(WHOLE_SECONDS);
        out.meta.note("each length is that of the first access to the object; later lengths are not recorded");
        let numbers = Numbers::Objects;
        OracleGeneral { layout: Layout::Plain, said_bytes, numbers, device: 0, accesses: 0, latest_s: 0 }
    }

    pub(crate) fn begin(&mut self, input: &Input, out: &mut Collector) -> Result<(), TraceError> {
        let layout = if fitting(input.head()) == [Layout::OpNs] { Layout::OpNs } else { Layout::Plain };
        if layout == Layout::Plain {
            out.meta.note("operations are not recorded");
        }
        let records = input.head().bytes.chunks_exact(layout.record_bytes());
        let stated: Vec<Stated> =
            records.map(|record| stated(layout.object(record), little_endian::<4>(record, 12))).collect();
        let numbers = Numbers::of(self.said_bytes, &stated, &mut out.meta);
        let device = out.device(&input.label);
        *self = OracleGeneral { layout, numbers, device, accesses: 0, latest_s: 0, ..*self };
        out.meta.devices[device as usize].sector_bytes = numbers.block_bytes();
        Ok(())
    }

    pub(crate) fn record_bytes(&self) -> usize {
        self.layout.record_bytes()
    }

    #[inline]
    pub(crate) fn parse(&mut self, record: &[u8]) -> Result<Record, Problem> {
        self.accesses += 1;
        let time_s = little_endian::<4>(record, 0);
        let (object, length) = (self.layout.object(record), little_endian::<4>(record, 12) as u32);
        if let Some(next) = self.layout.next_access(record)
            && !(self.accesses + 1..ACCESSES_MAX).contains(&next)
        {
            let first = self.accesses + 1;
            return Err(("next access", format!("must be {first} to 2^40, or -1 for none, not {}", next as i64)));
        }
        let offset = self.numbers.address(object)?;
        if time_s < self.latest_s {
            return Err(("time", format!("must not go back: {time_s} s after {} s", self.latest_s)));
        }
        self.latest_s = time_s;
        let mut request = Record::new(time_s * NS_PER_S, self.layout.operation(record), offset, length);
        request.device = self.device;
        Ok(request)
    }
}
