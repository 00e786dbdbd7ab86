//! Logs of the kernel's dm-log-writes, which QEMU's `blklogwrites` writes too.
//!
//! Numbers are little-endian, offsets and lengths in sectors of the log. The first sector is a superblock; each entry
//! begins with a header sector, followed by the data of a write. The kernel withholds a write until a flush that covers
//! it is complete, and logs those writes, in order of completion, before that flush. So every write of a log is
//! acknowledged before the next flush is sent, and the states that such a log allows are the worst case.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use headstack_files::AtomicFile;

use crate::CrashError;
use crate::error::refused;
use crate::image::parts;
use crate::recording::{Change, Device, Ending, Event, Fate, Recording, Start, Stored};
use crate::states::extents::Range;
use crate::states::walk::{Open, Walk};

/// Magic number: the first eight bytes.
pub const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const HEAD_BYTES: usize = 32;
const SECTOR_BYTES_MIN: u32 = 512;
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;
const METADATA: u64 = 16;
const FLAGS: u64 = FLUSH | FUA | DISCARD | MARK | METADATA;
/// The mark with which the kernel ends a log.
const END: &str = "dm-log-writes-end";

/// Header of an entry.
#[derive(Clone, Copy, Debug)]
struct Entry {
    sector: u64,
    sectors: u64,
    flags: u64,
    carried_bytes: u64,
}

impl Entry {
    fn from_bytes(bytes: &[u8; HEAD_BYTES]) -> Entry {
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Entry { sector: u64_at(0), sectors: u64_at(8), flags: u64_at(16), carried_bytes: u64_at(24) }
    }

    fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        let fields = [self.sector, self.sectors, self.flags, self.carried_bytes];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Whether it is no valid entry, as after the end of a log on a device.
    fn is_none(&self) -> bool {
        let is_empty = (self.sectors, self.flags) == (0, 0);
        is_empty || self.flags & !FLAGS != 0
    }
}

/// Reads the events of a log. The number of entries is reliable only in a finished log: later ones are read as long as
/// they are valid.
pub(crate) fn read(path: &Path, file: File) -> Result<Recording, CrashError> {
    let failed = CrashError::io(path);
    let mut first = [0; 28];
    file.read_exact_at(&mut first, 0).map_err(&failed)?;
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| first[at + i]));
    let (version, promised) = (u64_at(8), u64_at(16));
    let sector_bytes = u32::from_le_bytes(std::array::from_fn(|i| first[24 + i]));
    if version != VERSION || !sector_bytes.is_power_of_two() || !(512..=1 << 23).contains(&sector_bytes) {
        let message = format!(
            "is a log of version {version} with sectors of {sector_bytes} bytes; only version {VERSION} and powers of two from 512 B to 8 MiB are allowed"
        );
        return Err(CrashError::of(path, message));
    }
    let size_bytes = size(&file).map_err(&failed)?;
    let device = Device {
        capacity_bytes: 0,
        block_bytes: sector_bytes,
        atomic_bytes: 0,
        has_volatile_cache: true,
        start: Start::Zeros,
    };
    let mut recording = Recording::new(path, file, device);
    let (mut at_bytes, mut entries) = (u64::from(sector_bytes), 0);
    while at_bytes < size_bytes {
        match entry(&mut recording, at_bytes, size_bytes)? {
            Some(next_bytes) => (at_bytes, entries) = (next_bytes, entries + 1),
            None if entries >= promised => break,
            None => {
                recording.ending = Ending::CutOff { at_bytes, left_bytes: size_bytes - at_bytes };
                return Ok(recording);
            }
        }
    }
    let is_finished = recording.marks.last().is_some_and(|mark| mark == END);
    recording.ending = if is_finished { Ending::Whole } else { Ending::Unfinished };
    if is_finished {
        recording.marks.pop();
        recording.events.pop();
        recording.times_ns.pop();
    }
    Ok(recording)
}

/// Adds an entry, and returns where the next one begins; `None` if there is none.
fn entry(recording: &mut Recording, at_bytes: u64, size_bytes: u64) -> Result<Option<u64>, CrashError> {
    let path = recording.path().to_owned();
    let sector_bytes = u64::from(recording.device.block_bytes);
    let mut head = [0; HEAD_BYTES];
    if size_bytes - at_bytes < sector_bytes {
        return Ok(None);
    }
    recording.bytes_at(at_bytes, &mut head)?;
    let entry = Entry::from_bytes(&head);
    let wrong = |what: &str| CrashError::of(&path, format!("the entry at byte {at_bytes} {what}"));
    let data_bytes = at_bytes + sector_bytes;
    // A log has no clock, only an order.
    let at_ns = recording.events.len() as u64;
    if recording.marks.last().is_some_and(|mark| mark == END) || entry.is_none() {
        return Ok(None);
    }
    if entry.flags & MARK != 0 {
        if entry.carried_bytes > sector_bytes - HEAD_BYTES as u64 {
            return Err(wrong("is a mark that is longer than a sector"));
        }
        let mut text = vec![0; entry.carried_bytes as usize];
        recording.bytes_at(at_bytes + HEAD_BYTES as u64, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        recording.marked(at_ns, text.trim_end_matches('\0').replace('\n', " "));
        return Ok(Some(data_bytes));
    }
    let is_trim = entry.flags & DISCARD != 0;
    let in_bytes = |sectors: u64| sectors.checked_mul(sector_bytes).filter(|bytes| *bytes < 1 << 62);
    let (Some(offset_bytes), Some(length_bytes)) = (in_bytes(entry.sector), in_bytes(entry.sectors)) else {
        return Err(wrong("is above the largest device size"));
    };
    let next_bytes = if is_trim { data_bytes } else { data_bytes + length_bytes };
    if next_bytes > size_bytes {
        return Ok(None);
    }
    if entry.flags & FLUSH != 0 {
        let flush = recording.flush_sent(at_ns);
        recording.happened(at_ns, Event::Flushed(flush, Fate::Acknowledged));
    }
    if length_bytes != 0 {
        recording.device.capacity_bytes = recording.device.capacity_bytes.max(offset_bytes + length_bytes);
        let change = recording.sent(Change {
            stored: if is_trim { Stored::Trim } else { Stored::Data { at_bytes: data_bytes } },
            offset_bytes,
            length_bytes,
            is_forced: entry.flags & FUA != 0,
            is_metadata: entry.flags & METADATA != 0,
            submitted_ns: at_ns,
        });
        recording.happened(at_ns, Event::Changed(change, Fate::Acknowledged));
    }
    Ok(Some(next_bytes))
}

/// Writes a recording as the kernel would have logged it: durable changes in the order of the flushes, then changes
/// that never became durable. Failed changes cannot be represented, and their number is returned. Nor can a power
/// failure: changes by which the device took data back then are written like any other.
///
/// # Errors
/// When a mark is longer than a sector has room for, or the file cannot be written.
pub fn write(recording: &Recording, path: &Path) -> Result<u64, CrashError> {
    let sector_bytes = recording.device.block_bytes.max(SECTOR_BYTES_MIN);
    if sector_bytes != recording.device.block_bytes {
        let message =
            format!("its blocks have {} bytes; sectors of a log have 512 or more", recording.device.block_bytes);
        return Err(CrashError::of(recording.path(), message));
    }
    let (entries, failed) = logged(recording);
    let mut file = AtomicFile::create_whole(path).map_err(refused)?;
    let mut first = Vec::with_capacity(sector_bytes as usize);
    for number in [MAGIC, VERSION, entries.len() as u64] {
        first.extend_from_slice(&number.to_le_bytes());
    }
    first.extend_from_slice(&sector_bytes.to_le_bytes());
    let io = CrashError::io(path);
    file.write_all(&padded(first, sector_bytes)).map_err(&io)?;
    for logged in &entries {
        let mut head = logged.entry(u64::from(sector_bytes)).to_bytes().to_vec();
        if let Payload::Mark(text) = logged.carried {
            // A zero ends it.
            if text.len() >= sector_bytes as usize - HEAD_BYTES {
                let message = format!("the mark {text:?} is longer than a sector of {sector_bytes} bytes");
                return Err(CrashError::of(recording.path(), message));
            }
            head.extend_from_slice(text.as_bytes());
        }
        file.write_all(&padded(head, sector_bytes)).map_err(&io)?;
        if let Payload::Change(number) = logged.carried
            && logged.flags & DISCARD == 0
        {
            let offset_bytes = recording.changes[number as usize].offset_bytes;
            for (at, length) in parts(logged.range.0, logged.range.1) {
                let mut data = vec![0; length];
                recording.read(number, at - offset_bytes, &mut data)?;
                file.write_all(&data).map_err(&io)?;
            }
        }
    }
    file.finish().map_err(refused)?;
    Ok(failed)
}

/// Contents of an entry besides its header.
#[derive(Clone, Copy, Debug)]
enum Payload<'a> {
    Nothing,
    Change(u32),
    Mark(&'a str),
}

#[derive(Clone, Copy, Debug)]
struct LogEntry<'a> {
    range: Range,
    flags: u64,
    carried: Payload<'a>,
}

impl LogEntry<'_> {
    fn entry(&self, sector_bytes: u64) -> Entry {
        Entry {
            sector: self.range.0 / sector_bytes,
            sectors: (self.range.1 - self.range.0) / sector_bytes,
            flags: self.flags,
            carried_bytes: if let Payload::Mark(text) = self.carried { text.len() as u64 } else { 0 },
        }
    }
}

/// Returns the entries of a recording, and the number of failed changes.
fn logged(recording: &Recording) -> (Vec<LogEntry<'_>>, u64) {
    let change = |number: u32, range: Range, more: u64| {
        let change = &recording.changes[number as usize];
        let trim = if change.stored == Stored::Trim { DISCARD } else { 0 };
        let metadata = if change.is_metadata { METADATA } else { 0 };
        LogEntry { range, flags: trim | metadata | more, carried: Payload::Change(number) }
    };
    let bare = |flags, carried| LogEntry { range: (0, 0), flags, carried };
    let (mut entries, mut walk) = (Vec::new(), Walk::default());
    for event in &recording.events {
        // The kernel logs a change that becomes durable with its own acknowledgement as FUA.
        let forced = if matches!(event, Event::Changed(..)) { FUA } else { 0 };
        walk.step(recording, |number, ranges| {
            entries.extend(ranges.iter().map(|&range| change(number, range, forced)));
        });
        match event {
            Event::Flushed(_, Fate::Acknowledged) | Event::PowerOn => entries.push(bare(FLUSH, Payload::Nothing)),
            Event::Mark(mark) => entries.push(bare(MARK, Payload::Mark(&recording.marks[*mark as usize]))),
            Event::Change(_) | Event::Changed(..) | Event::Flush(_) | Event::Flushed(..) | Event::PowerOff => {}
        }
    }
    let (failed, left): (Vec<Open>, Vec<Open>) = walk.open.into_iter().partition(|open| open.has_failed);
    for open in &left {
        entries.extend(open.left.iter().map(|&range| change(open.change, range, 0)));
    }
    entries.push(bare(MARK, Payload::Mark(END)));
    (entries, failed.len() as u64)
}

fn padded(mut bytes: Vec<u8>, sector_bytes: u32) -> Vec<u8> {
    bytes.resize(sector_bytes as usize, 0);
    bytes
}

/// Size of a file or a block device in bytes.
fn size(mut file: &File) -> std::io::Result<u64> {
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))
}
