//! Logs of the kernel's dm-log-writes, which QEMU's `blklogwrites` writes too.
//!
//! Numbers are little-endian, places and lengths in sectors of the log. The first sector says what it is; each entry begins
//! with a sector of its own, and the data of a write follow it. The kernel holds a write back until a flush that covers it is
//! complete, and logs those writes, in the order of their completion, before that flush. So every write of a log is answered
//! before the next flush is sent: what is allowed by such a log is the worst case.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::CrashError;
use crate::recording::{Change, Device, Ending, Event, Fate, Recording, Start, Stored};

/// The first eight bytes, as a number.
pub const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const HEAD_BYTES: usize = 32;
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;
const METADATA: u64 = 16;
const FLAGS: u64 = FLUSH | FUA | DISCARD | MARK | METADATA;
/// The mark with which the kernel ends a log.
const END: &str = "dm-log-writes-end";

/// The head of an entry.
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

    /// Nothing that a log has: what lies behind its end on a device.
    fn is_none(&self) -> bool {
        let is_empty = (self.sectors, self.flags) == (0, 0);
        is_empty || self.flags & !FLAGS != 0
    }
}

/// Reads the events of a log. How many entries there are is known for sure only of one that was finished: what follows is
/// read as far as it makes sense.
pub(crate) fn read(path: &Path, file: File) -> Result<Recording, CrashError> {
    let failed = CrashError::io(path);
    let mut first = [0; 28];
    file.read_exact_at(&mut first, 0).map_err(&failed)?;
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| first[at + i]));
    let (version, promised) = (u64_at(8), u64_at(16));
    let sector_bytes = u32::from_le_bytes(std::array::from_fn(|i| first[24 + i]));
    if version != VERSION || !sector_bytes.is_power_of_two() || !(512..=1 << 23).contains(&sector_bytes) {
        let message =
            format!("is a log of version {version} with sectors of {sector_bytes} bytes, which nobody writes");
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

/// Adds an entry, and says where the next begins; nothing where there is none.
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
    // The log counts nothing but its own order.
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
        return Err(wrong("lies beyond every device"));
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

/// Of a file or a block device.
fn size(mut file: &File) -> std::io::Result<u64> {
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))
}
