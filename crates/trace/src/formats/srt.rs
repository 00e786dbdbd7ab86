//! HP's SRT (cello and others): a text header that describes the disks, then big-endian records of 32-bit words.
//!
//! A record begins with its own size in bytes and an id, whose upper half is the version, 1 to 4, and whose lower half
//! is the type: 1 an I/O, 4 an I/O with doubtful times. Then time of enqueuing in seconds and microseconds since the
//! header's `tracedate`, start and stop in microseconds after that, bytes, sector, device, driver, cylinder, flags,
//! information, from version 4 on the queue length, and for type 4 one word of error flags. Sectors are the drive's
//! own, of 256 bytes on some, and count from the start of the disk, not of the section.

mod header;

use std::io::BufRead;

use self::header::Header;
use super::numbers::{big_endian, offset_bytes};
use crate::collect::Collector;
use crate::error::{Problem, TraceError};
use crate::input::{Head, Input};
use crate::meta::ResponseSpan;
use crate::record::{Flags, Operation, Record};
use crate::time::TIME_NS_END;

const MAGIC: &[u8] = b"$$TR_";
/// Character at the end of the header.
const FORM_FEED: u8 = 0x0c;
/// Upper limit of the header's length.
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// Size and id, which every record has.
const RECORD_BYTES_MIN: u32 = 8;
/// Longest record; the longest are texts.
const RECORD_BYTES_MAX: u32 = 1 << 20;
const VERSION_MAX: u32 = 4;
const SHORT_IO: u32 = 1;
const SUSPECT_IO: u32 = 4;
const NS_PER_US: u64 = 1_000;
const NS_PER_S: u64 = 1_000_000_000;

/// Flag bits of a record: HP-UX 8's, which files of later systems keep.
mod flag {
    pub(super) const READ: u32 = 0x1;
    pub(super) const ASYNCHRONOUS: u32 = 0x100;
    pub(super) const DELAYED_WRITE: u32 = 0x200;
    pub(super) const ORDERED: u32 = 0x400;
    pub(super) const CACHED: u32 = 0x8000;
    pub(super) const SYNCHRONOUS: u32 = 0x100_0000;
}

pub(crate) fn fits(head: Head<'_>) -> bool {
    head.bytes.starts_with(MAGIC)
}

pub(crate) fn record_bytes(bytes: &[u8]) -> Result<Option<usize>, Problem> {
    if bytes.len() < 4 {
        return Ok(None);
    }
    let size = big_endian(bytes, 0);
    if !(RECORD_BYTES_MIN..=RECORD_BYTES_MAX).contains(&size) {
        let allowed = format!("must be {RECORD_BYTES_MIN} to {RECORD_BYTES_MAX} bytes, not {size}");
        return Err(("size", format!("{allowed}; the rest of the file is unreadable")));
    }
    Ok(Some(size as usize))
}

/// Target of requests to a device number.
#[derive(Clone, Copy, Debug)]
struct Target {
    device: u32,
    sector_bytes: u32,
}

/// A parser of a file.
#[derive(Debug, Default)]
pub(crate) struct Srt {
    header: Header,
    /// Added to the times of this file, which may begin later than the first one.
    start_ns: u64,
    /// Devices that have occurred in this file.
    targets: Vec<(u32, Target)>,
}

impl Srt {
    pub(crate) fn new(out: &mut Collector) -> Srt {
        out.meta.resolution_ns = NS_PER_US;
        out.meta.response = Some(ResponseSpan::EnqueueToDone);
        Srt::default()
    }

    pub(crate) fn begin(&mut self, input: &mut Input, out: &mut Collector) -> Result<(), TraceError> {
        let text = header_text(input)?;
        let refused = |(field, message): Problem| TraceError { field, ..TraceError::of_file(&input.name, message) };
        let header = Header::parse(&text).map_err(refused)?;
        let start_ns = match (out.meta.zero_unix_ns, header.start_unix_ns) {
            (Some(zero_ns), Some(start_ns)) => start_ns.checked_sub(zero_ns).ok_or_else(|| {
                refused((
                    "tracedate",
                    "is before that of the first file; name the files in chronological order".to_owned(),
                ))
            })?,
            _ => 0,
        };
        if out.meta.header.is_none() {
            out.meta.header = Some(text);
            out.meta.zero_unix_ns = header.start_unix_ns;
            if header.start_unix_ns.is_some() {
                out.meta.note("the header's date has no time zone and is treated as UTC");
            }
        }
        *self = Srt { header, start_ns, targets: Vec::new() };
        Ok(())
    }

    #[inline]
    pub(crate) fn parse(&mut self, record: &[u8], out: &mut Collector) -> Result<Option<Record>, Problem> {
        let id = big_endian(record, 4);
        let (version, kind) = (id >> 16, id & 0xffff);
        if !(1..=VERSION_MAX).contains(&version) {
            return Err(("version", format!("must be 1 to {VERSION_MAX}, not {version}")));
        }
        if kind != SHORT_IO && kind != SUSPECT_IO {
            out.meta.count(&format!("records of type {kind}, which is not I/O"), 1);
            return Ok(None);
        }
        let words = 13 + usize::from(version == 4) + usize::from(kind == SUSPECT_IO);
        if record.len() != words * 4 {
            let size = record.len();
            return Err(("size", format!("must be {} for version {version}, type {kind}, not {size}", words * 4)));
        }
        if kind == SUSPECT_IO {
            out.meta.count("suspect I/Os", 1);
        }
        self.request(record, kind, out).map(Some)
    }

    fn request(&mut self, record: &[u8], kind: u32, out: &mut Collector) -> Result<Record, Problem> {
        let word = |index: usize| big_endian(record, index * 4);
        let (seconds, us, start_us, stop_us) = (word(2), word(3), word(4), word(5));
        let (length, sector, number, flags) = (word(6), word(7), word(8), word(11));
        if us >= 1_000_000 {
            return Err(("usec", format!("must be below 1000000, not {us}")));
        }
        if stop_us < start_us {
            return Err(("stop", format!("must not be before start at {start_us} us: {stop_us} us")));
        }
        let since_start_ns = u64::from(seconds) * NS_PER_S + u64::from(us) * NS_PER_US;
        let arrival_ns = self.start_ns.checked_add(since_start_ns).filter(|&ns| ns < TIME_NS_END);
        let arrival_ns = arrival_ns.ok_or_else(|| ("sec", "must be below 2^63 ns".to_owned()))?;
        let target = self.target(number, out)?;
        let offset = offset_bytes(u64::from(sector), target.sector_bytes, length)
            .ok_or_else(|| ("sector", format!("must end below 2^63 bytes, not be {sector}")))?;
        let is = |bit: u32| flags & bit != 0;
        let operation = if is(flag::READ) { Operation::Read } else { Operation::Write };
        let mut request = Record::new(arrival_ns, operation, offset, length);
        (request.wait_ns, request.response_ns) = (u64::from(start_us) * NS_PER_US, u64::from(stop_us) * NS_PER_US);
        request.device = target.device;
        // A request that is not marked otherwise is synchronous.
        if is(flag::SYNCHRONOUS) || !is(flag::ASYNCHRONOUS | flag::DELAYED_WRITE | flag::ORDERED) {
            request.flags = request.flags.with(Flags::SYNC);
        }
        if kind == SUSPECT_IO {
            // The last word: the error flags.
            if word(record.len() / 4 - 1) != 0 {
                request.flags = request.flags.with(Flags::ERROR);
            }
        }
        out.meta.count("found in the cache", u64::from(is(flag::CACHED)));
        Ok(request)
    }

    fn target(&mut self, number: u32, out: &mut Collector) -> Result<Target, Problem> {
        if let Some((_, target)) = self.targets.iter().find(|(known, _)| *known == number) {
            return Ok(*target);
        }
        let disk = self.header.disk(number);
        let sector_bytes = disk.map_or_else(|| self.header.common_sector_bytes(), |disk| disk.sector_bytes);
        let sector_bytes = sector_bytes
            .ok_or_else(|| ("device", format!("must be a disk with a sectorsize in the header, not {number:#010x}")))?;
        let name = match disk {
            Some(disk) => format!("disk{}", disk.number),
            None => format!("{}.{}", number >> 24, number >> 8 & 0xffff),
        };
        let device = out.device(&name);
        let meta = &mut out.meta.devices[device as usize];
        meta.sector_bytes = Some(sector_bytes);
        meta.model = disk.and_then(|disk| disk.model.clone());
        self.targets.push((number, Target { device, sector_bytes }));
        Ok(Target { device, sector_bytes })
    }
}

/// Reads the text before the form feed.
fn header_text(input: &mut Input) -> Result<String, TraceError> {
    let mut bytes = Vec::new();
    let read = std::io::Read::take(&mut *input, HEADER_BYTES_MAX).read_until(FORM_FEED, &mut bytes);
    read.map_err(|error| input.error(&error))?;
    if !bytes.starts_with(MAGIC) || bytes.pop() != Some(FORM_FEED) {
        return Err(TraceError::of_file(&input.name, "has no header from `$$TR_` to a form feed"));
    }
    Ok(String::from_utf8_lossy(&bytes).replace('\0', ""))
}
