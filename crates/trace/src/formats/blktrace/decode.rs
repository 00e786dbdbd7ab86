//! Decodes binary records of any version and byte order, and the data between them ([`Stream`]).

use super::events::{Event, EventKind, category, flags, operation};
use super::pairing::Pairing;
use crate::collect::Collector;
use crate::error::{Place, TraceError};
use crate::input::Head;
use crate::record::Flags;

/// The upper three bytes of a record's first word; the lowest is the version.
const MAGIC: u32 = 0x6561_7400;
/// Bit of an event whose pdu begins with a cgroup id.
const CGROUP: u64 = 0x100;
/// Events of a notify record.
const NOTE_PROCESS: u64 = 0;
const NOTE_WALL_CLOCK: u64 = 1;
const CGROUP_BYTES: usize = 8;
/// Bytes used to distinguish the layout of version 7 from the hybrid: a hundred records.
const UNDECIDED_BYTES: usize = 100 * V7_BYTES;
/// Longest pdu of the kernel's own events: a cgroup id and the 16 bytes of a remap, and additions of drivers.
const HYBRID_PDU_BYTES_MAX: u64 = 64;
/// Longest line about lost events.
const LOST_LINE_BYTES_MAX: usize = 64;
/// Largest backward step of time that concurrent events can explain.
const DISORDER_NS_MAX: u64 = 1_000_000_000;

const V7_BYTES: usize = 48;
const V8_BYTES: usize = 64;

/// Layout of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    V7,
    V8,
    /// The output of tracefs from Linux 6.19 on: the header of version 7 on the body of version 8, cut to 48 bytes, so
    /// that error and pdu length are missing.
    Hybrid,
}

/// A file or stream of records.
#[derive(Debug)]
pub(crate) struct Stream {
    file: String,
    /// Bytes that are not decoded yet.
    pub(crate) buffer: Vec<u8>,
    /// Position of the first of them.
    at: u64,
    is_big_endian: bool,
    version: u8,
    layout: Option<Layout>,
    /// Position of the first byte that belongs to no record.
    garbage_from: Option<u64>,
    last_ns: u64,
}

/// The used fields of a record.
struct Raw {
    at_ns: u64,
    sector: u64,
    bytes: u32,
    action: u64,
    pid: u32,
    device: u32,
    has_error: bool,
    pdu_bytes: usize,
}

/// Whether the head begins with a record, or with a line about lost events.
pub(super) fn fits(head: Head<'_>) -> bool {
    let mut bytes = head.bytes;
    while let Some(Some((_, length))) = lost_line(bytes, true) {
        bytes = &bytes[length..];
    }
    magic(bytes).is_some()
}

/// Version and byte order of the record at the start of `bytes`.
#[inline]
fn magic(bytes: &[u8]) -> Option<(u8, bool)> {
    let word = *bytes.first_chunk::<4>()?;
    let (little, big) = (u32::from_le_bytes(word), u32::from_be_bytes(word));
    if little & !0xff == MAGIC {
        Some((little as u8, false))
    } else if big & !0xff == MAGIC {
        Some((big as u8, true))
    } else {
        None
    }
}

/// Number of lost events and length of the line `CPU:1 [LOST 1716 EVENTS]`. `None` if the bytes are no such line;
/// `Some(None)` if more bytes are needed.
fn lost_line(bytes: &[u8], is_last: bool) -> Option<Option<(u64, usize)>> {
    const START: &[u8] = b"CPU:";
    let common = bytes.len().min(START.len());
    if bytes[..common] != START[..common] {
        return None;
    }
    let line = &bytes[..bytes.len().min(LOST_LINE_BYTES_MAX)];
    let Some(end) = line.iter().position(|&byte| byte == b'\n') else {
        return (!is_last && line.len() < LOST_LINE_BYTES_MAX).then_some(None);
    };
    let text = std::str::from_utf8(&line[START.len()..end]).ok()?;
    let (cpu, rest) = text.split_once(" [LOST ")?;
    cpu.parse::<u32>().ok()?;
    let lost = rest.strip_suffix(" EVENTS]")?.parse().ok()?;
    Some(Some((lost, end + 1)))
}

impl Stream {
    pub(crate) fn new(file: &str) -> Stream {
        Stream {
            file: file.to_owned(),
            buffer: Vec::new(),
            at: 0,
            is_big_endian: false,
            version: 0,
            layout: None,
            garbage_from: None,
            last_ns: 0,
        }
    }

    /// Decodes all complete records in the buffer; the rest remains there, unless this `is_last`. Names go to `pairing`
    /// at once.
    ///
    /// # Errors
    /// When a version is unknown, or bytes belong to no record, unless they are to be skipped.
    pub(crate) fn decode(
        &mut self,
        is_last: bool,
        events: &mut Vec<Event>,
        pairing: &mut Pairing,
        out: &mut Collector,
    ) -> Result<(), TraceError> {
        let buffer = std::mem::take(&mut self.buffer);
        let was_big_endian = self.is_big_endian;
        let decoded = if was_big_endian {
            self.decode_all::<true>(&buffer, is_last, events, pairing, out)
        } else {
            self.decode_all::<false>(&buffer, is_last, events, pairing, out)
        };
        self.buffer = buffer;
        let used = decoded?;
        self.buffer.drain(..used);
        self.at += used as u64;
        if self.is_big_endian == was_big_endian { Ok(()) } else { self.decode(is_last, events, pairing, out) }
    }

    /// Returns the number of bytes used, up to the first record with another byte order.
    fn decode_all<const BIG: bool>(
        &mut self,
        buffer: &[u8],
        is_last: bool,
        events: &mut Vec<Event>,
        pairing: &mut Pairing,
        out: &mut Collector,
    ) -> Result<usize, TraceError> {
        let mut used = 0;
        while used < buffer.len() {
            let bytes = &buffer[used..];
            match magic(bytes) {
                Some((version, big)) if self.version == 0 => {
                    self.begin(version, big)?;
                    if big != BIG {
                        return Ok(used);
                    }
                }
                Some((version, big)) if version == self.version && big == BIG => {}
                _ => match self.skip(bytes, used as u64, is_last, out)? {
                    0 => break,
                    skipped => {
                        used += skipped;
                        continue;
                    }
                },
            }
            self.end_garbage(used as u64, out)?;
            let Some(layout) = self.layout.or_else(|| self.decide(bytes, is_last)) else { break };
            let Some((raw, length)) = Raw::read::<BIG>(bytes, layout).filter(|(_, length)| *length <= bytes.len())
            else {
                if !is_last {
                    break;
                }
                let place = Place::Byte(self.at + used as u64);
                out.reject(&self.file, place, ("", "the last record is cut off".to_owned()))?;
                return Ok(buffer.len());
            };
            let pdu = &bytes[length - raw.pdu_bytes..length];
            self.record::<BIG>(&raw, pdu, used as u64, events, pairing, out)?;
            used += length;
        }
        if is_last {
            self.end_garbage(used as u64, out)?;
        }
        Ok(used)
    }

    fn begin(&mut self, version: u8, is_big_endian: bool) -> Result<(), TraceError> {
        (self.version, self.is_big_endian) = (version, is_big_endian);
        match version {
            7 => Ok(()),
            8 => {
                self.layout = Some(Layout::V8);
                Ok(())
            }
            _ => Err(TraceError {
                file: self.file.clone(),
                place: Place::Byte(self.at),
                field: "version",
                message: format!("must be 7 or 8, not {version}"),
            }),
        }
    }

    /// Distinguishes version 7 from the hybrid by which of them yields valid values in most of the records; `None` if
    /// there are too few.
    fn decide(&mut self, bytes: &[u8], is_last: bool) -> Option<Layout> {
        let start = &bytes[..bytes.len().min(UNDECIDED_BYTES)];
        let (mut v7, mut hybrid) = (0, 0);
        for at in 0..start.len() {
            if magic(&start[at..]).is_none_or(|found| found != (self.version, self.is_big_endian)) {
                continue;
            }
            let fits = |layout| {
                let raw = if self.is_big_endian {
                    Raw::read::<true>(&start[at..], layout)
                } else {
                    Raw::read::<false>(&start[at..], layout)
                };
                raw.is_some_and(|(raw, _)| raw.is_plausible())
            };
            v7 += u32::from(fits(Layout::V7));
            hybrid += u32::from(fits(Layout::Hybrid));
        }
        let is_clear = (v7 == 0) != (hybrid == 0);
        if !is_clear && !is_last && bytes.len() < UNDECIDED_BYTES {
            return None;
        }
        self.layout = Some(if hybrid > v7 { Layout::Hybrid } else { Layout::V7 });
        self.layout
    }

    /// Length of the data between records; 0 if more bytes are needed.
    fn skip(&mut self, bytes: &[u8], used: u64, is_last: bool, out: &mut Collector) -> Result<usize, TraceError> {
        if let Some(line) = lost_line(bytes, is_last) {
            let Some((lost, length)) = line else { return Ok(0) };
            self.end_garbage(used, out)?;
            out.meta.count("lost events", lost);
            return Ok(length);
        }
        if bytes.len() < 4 && !is_last {
            return Ok(0);
        }
        self.garbage_from.get_or_insert(self.at + used);
        let next = (1..bytes.len()).find(|&at| {
            let found = magic(&bytes[at..]);
            let is_record = found.is_some_and(|found| self.version == 0 || found == (self.version, self.is_big_endian));
            is_record || bytes[at..].starts_with(b"CPU:")
        });
        let unknown = if is_last { bytes.len() } else { bytes.len() - 3 };
        Ok(next.unwrap_or(unknown))
    }

    /// Rejects the data before the record that begins here. The hybrid does not state the length of a pdu, so a pdu is
    /// accepted.
    #[inline]
    fn end_garbage(&mut self, used: u64, out: &mut Collector) -> Result<(), TraceError> {
        let Some(from) = self.garbage_from.take() else { return Ok(()) };
        let length = self.at + used - from;
        if self.layout == Some(Layout::Hybrid) && length <= HYBRID_PDU_BYTES_MAX {
            return Ok(());
        }
        out.reject(&self.file, Place::Byte(from), ("", format!("{length} bytes are not a record of a block trace")))
    }

    #[inline]
    fn record<const BIG: bool>(
        &mut self,
        raw: &Raw,
        pdu: &[u8],
        used: u64,
        events: &mut Vec<Event>,
        pairing: &mut Pairing,
        out: &mut Collector,
    ) -> Result<(), TraceError> {
        let categories = raw.action >> 16;
        let number = raw.action & 0xffff & !CGROUP;
        let pdu = if raw.action & CGROUP == 0 { pdu } else { pdu.get(CGROUP_BYTES..).unwrap_or_default() };
        if categories & category::NOTIFY != 0 {
            note::<BIG>(raw, number, pdu, pairing, out);
            return Ok(());
        }
        let Some(what) = EventKind::from_number(number) else { return Ok(()) };
        if raw.at_ns.saturating_add(DISORDER_NS_MAX) < self.last_ns {
            out.meta.note(format!(
                "{}: time goes back by more than a second; name the files of several CPUs separately",
                self.file
            ));
        }
        self.last_ns = raw.at_ns;
        let mut flags = flags(categories, raw.bytes);
        if what == EventKind::Complete && raw.has_error {
            flags = flags.with(Flags::ERROR);
        }
        // The kernel writes its additions in network byte order.
        let second_sector = pdu.first_chunk().map_or(0, |sector| u64::from_be_bytes(*sector));
        let event = Event {
            at_ns: raw.at_ns,
            sector: raw.sector,
            second_sector,
            bytes: raw.bytes,
            device: raw.device,
            pid: raw.pid,
            flags,
            operation: operation(categories, raw.bytes),
            what,
        };
        match event.checked() {
            Ok(event) => {
                events.push(event);
                Ok(())
            }
            Err(problem) => out.reject(&self.file, Place::Byte(self.at + used), problem),
        }
    }
}

/// Processes the kernel's notes: names of processes, the time of day. Unlike the rest they are in the host's byte
/// order.
fn note<const BIG: bool>(raw: &Raw, number: u64, pdu: &[u8], pairing: &mut Pairing, out: &mut Collector) {
    match number {
        NOTE_PROCESS => {
            let name = pdu.split(|&byte| byte == 0).next().unwrap_or_default();
            pairing.name(raw.pid, &String::from_utf8_lossy(name), out);
        }
        NOTE_WALL_CLOCK => {
            let (Some(seconds), Some(ns)) = (word::<BIG>(pdu, 0), word::<BIG>(pdu, 4)) else { return };
            let unix_ns = u64::from(seconds) * 1_000_000_000 + u64::from(ns);
            if out.meta.zero_unix_ns.is_none() {
                out.meta.zero_unix_ns = unix_ns.checked_sub(raw.at_ns);
            }
        }
        _ => {}
    }
}

#[inline]
fn word<const BIG: bool>(bytes: &[u8], at: usize) -> Option<u32> {
    let word = *bytes.get(at..)?.first_chunk()?;
    Some(if BIG { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
}

#[inline]
fn long<const BIG: bool>(bytes: &[u8], at: usize) -> Option<u64> {
    let long = *bytes.get(at..)?.first_chunk()?;
    Some(if BIG { u64::from_be_bytes(long) } else { u64::from_le_bytes(long) })
}

#[inline]
fn half<const BIG: bool>(bytes: &[u8], at: usize) -> Option<u16> {
    let half = *bytes.get(at..)?.first_chunk()?;
    Some(if BIG { u16::from_be_bytes(half) } else { u16::from_le_bytes(half) })
}

impl Raw {
    /// Parses the record at the start; returns it with its length including the pdu, which may be incomplete.
    #[inline]
    fn read<const BIG: bool>(bytes: &[u8], layout: Layout) -> Option<(Raw, usize)> {
        let length = if layout == Layout::V8 { V8_BYTES } else { V7_BYTES };
        let fixed = bytes.get(..length)?;
        let (action, pid, device, error, pdu_bytes) = match layout {
            Layout::V7 => (
                u64::from(word::<BIG>(fixed, 28)?),
                word::<BIG>(fixed, 32)?,
                word::<BIG>(fixed, 36)?,
                half::<BIG>(fixed, 44)?,
                half::<BIG>(fixed, 46)?,
            ),
            Layout::V8 => (
                long::<BIG>(fixed, 32)?,
                word::<BIG>(fixed, 28)?,
                word::<BIG>(fixed, 40)?,
                half::<BIG>(fixed, 48)?,
                half::<BIG>(fixed, 50)?,
            ),
            Layout::Hybrid => (long::<BIG>(fixed, 32)?, word::<BIG>(fixed, 28)?, word::<BIG>(fixed, 40)?, 0, 0),
        };
        let raw = Raw {
            at_ns: long::<BIG>(fixed, 8)?,
            sector: long::<BIG>(fixed, 16)?,
            bytes: word::<BIG>(fixed, 24)?,
            action,
            pid,
            device,
            // A negative error number in 16 bits: any value except 0 is an error.
            has_error: error != 0,
            pdu_bytes: usize::from(pdu_bytes),
        };
        Some((raw, length + usize::from(pdu_bytes)))
    }

    /// Whether the action is valid: a known event, and a category.
    fn is_plausible(&self) -> bool {
        let (number, categories) = (self.action & 0xffff & !CGROUP, self.action >> 16);
        let is_note = categories & category::NOTIFY != 0 && number <= 2;
        (is_note || (1..=17).contains(&number)) && categories != 0 && categories < category::END
    }
}
