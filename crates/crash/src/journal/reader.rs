//! Reads a journal, to its end or as far as its records are complete.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::{FAILED, FORCED, HEAD_BYTES, HEADER_BYTES, Head, Kind, METADATA, SUM_BYTES, VERSION, sum};
use crate::CrashError;
use crate::recording::{Change, Device, Ending, Event, Fate, Recording, Start, Stored};

/// Bytes read at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// Reads the events of a journal.
pub(crate) fn read(path: &Path, file: File) -> Result<Recording, CrashError> {
    let failed = CrashError::io(path);
    let mut from = BufReader::with_capacity(BUFFER_BYTES, file.try_clone().map_err(&failed)?);
    let size_bytes = file.metadata().map_err(&failed)?.len();
    let (device, mut at_bytes) = device(path, &mut from)?;
    let mut recording = Recording::new(path, file, device);
    // Recording numbers of the journal's numbers.
    let mut numbered = Vec::new();
    let mut record = Vec::new();
    recording.ending = Ending::Unfinished;
    while recording.ending == Ending::Unfinished {
        match next(&mut from, size_bytes - at_bytes, &mut record).map_err(&failed)? {
            Next::End => break,
            Next::Torn => recording.ending = Ending::CutOff { at_bytes, left_bytes: size_bytes - at_bytes },
            Next::Record(head) => {
                add(&mut recording, &mut numbered, head, &record, at_bytes)
                    .map_err(|message| CrashError::of(path, format!("the record at byte {at_bytes}: {message}")))?;
                at_bytes += head.record_bytes() as u64;
            }
        }
    }
    Ok(recording)
}

/// A change or a flush, to which an answer refers by its number.
#[derive(Clone, Copy)]
enum Numbered {
    Change(u32),
    Flush(u32),
    Answered,
}

enum Next {
    Record(Head),
    Torn,
    End,
}

/// Reads a record with its payload into `record`, if it is complete.
fn next(from: &mut impl Read, left_bytes: u64, record: &mut Vec<u8>) -> io::Result<Next> {
    if left_bytes == 0 {
        return Ok(Next::End);
    }
    if left_bytes < (HEAD_BYTES + SUM_BYTES) as u64 {
        return Ok(Next::Torn);
    }
    let mut head = [0; HEAD_BYTES];
    from.read_exact(&mut head)?;
    let Some(parsed) = Head::from_bytes(&head) else { return Ok(Next::Torn) };
    // Unwritten space may have any length field.
    if parsed.record_bytes() as u64 > left_bytes {
        return Ok(Next::Torn);
    }
    record.clear();
    record.extend_from_slice(&head);
    record.resize(parsed.record_bytes(), 0);
    from.read_exact(&mut record[HEAD_BYTES..])?;
    let (summed, found) = record.split_at(parsed.record_bytes() - SUM_BYTES);
    Ok(if sum(summed) == *found { Next::Record(parsed) } else { Next::Torn })
}

fn add(
    recording: &mut Recording,
    numbered: &mut Vec<Numbered>,
    head: Head,
    record: &[u8],
    at_bytes: u64,
) -> Result<(), String> {
    let Head { kind, flags, number, offset_bytes, length_bytes, at_ns, .. } = head;
    if matches!(kind, Kind::Write | Kind::Zeros | Kind::Trim | Kind::Flush | Kind::End)
        && number != numbered.len() as u64
    {
        return Err(format!("has number {number}; {} is next", numbered.len()));
    }
    let stored = match kind {
        Kind::Write => Stored::Data { at_bytes: at_bytes + HEAD_BYTES as u64 },
        Kind::Zeros => Stored::Zeros,
        Kind::Trim => Stored::Trim,
        Kind::Flush => {
            numbered.push(Numbered::Flush(recording.flush_sent(at_ns)));
            return Ok(());
        }
        Kind::Answer => return answered(recording, numbered, head),
        Kind::Mark => {
            let text = &record[HEAD_BYTES..record.len() - SUM_BYTES];
            recording.marked(at_ns, String::from_utf8_lossy(text).into_owned());
            return Ok(());
        }
        Kind::PowerOff => {
            recording.happened(at_ns, Event::PowerOff);
            return Ok(());
        }
        Kind::PowerOn => {
            recording.happened(at_ns, Event::PowerOn);
            return Ok(());
        }
        Kind::End => {
            recording.ending = Ending::Whole;
            return Ok(());
        }
    };
    let block_bytes = u64::from(recording.device.block_bytes);
    let is_inside = offset_bytes.checked_add(length_bytes).is_some_and(|end| end <= recording.device.capacity_bytes);
    let carried_bytes = if kind == Kind::Write { length_bytes } else { 0 };
    if !is_inside || (offset_bytes | length_bytes) % block_bytes != 0 || carried_bytes != u64::from(head.carried_bytes)
    {
        return Err(format!(
            "changes {length_bytes} bytes at {offset_bytes}; whole blocks of {block_bytes} bytes within the device are allowed"
        ));
    }
    let change = recording.sent(Change {
        stored,
        offset_bytes,
        length_bytes,
        is_forced: flags & FORCED != 0,
        is_metadata: flags & METADATA != 0,
        submitted_ns: at_ns,
    });
    numbered.push(Numbered::Change(change));
    Ok(())
}

fn answered(recording: &mut Recording, numbered: &mut [Numbered], head: Head) -> Result<(), String> {
    let fate = if head.flags & FAILED == 0 { Fate::Acknowledged } else { Fate::Failed(head.errno) };
    let entry = usize::try_from(head.number).ok().and_then(|number| numbered.get_mut(number));
    let entry = entry.ok_or_else(|| format!("answers request {}, which was not recorded", head.number))?;
    let event = match std::mem::replace(entry, Numbered::Answered) {
        Numbered::Change(change) => Event::Changed(change, fate),
        Numbered::Flush(flush) => Event::Flushed(flush, fate),
        Numbered::Answered => return Err(format!("answers request {} again", head.number)),
    };
    recording.happened(head.at_ns, event);
    Ok(())
}

/// Reads the device, and returns where its description ends.
fn device(path: &Path, from: &mut impl Read) -> Result<(Device, u64), CrashError> {
    let short = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => CrashError::of(path, "ends within the description of the device"),
        _ => CrashError::io(path)(error),
    };
    let mut bytes = vec![0; HEADER_BYTES];
    from.read_exact(&mut bytes).map_err(short)?;
    let u32_at = |bytes: &[u8], at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let (version, length) = (u32_at(&bytes, 8), u32_at(&bytes, 12) as usize);
    if version != VERSION {
        return Err(CrashError::of(path, format!("is a journal of version {version}; version {VERSION} is allowed")));
    }
    let damaged = || CrashError::of(path, "the description of the device is damaged");
    if !(HEADER_BYTES..=HEADER_BYTES + usize::from(u16::MAX)).contains(&length) {
        return Err(damaged());
    }
    bytes.resize(length, 0);
    from.read_exact(&mut bytes[HEADER_BYTES..]).map_err(short)?;
    let (said, found) = bytes.split_at(length - SUM_BYTES);
    let block_bytes = u32_at(said, 24);
    if sum(said) != *found || !block_bytes.is_power_of_two() {
        return Err(damaged());
    }
    let name = String::from_utf8_lossy(&said[HEADER_BYTES - SUM_BYTES..]).into_owned();
    let device = Device {
        capacity_bytes: u64::from_le_bytes(std::array::from_fn(|i| said[16 + i])),
        block_bytes,
        atomic_bytes: u32_at(said, 28),
        has_volatile_cache: said[32] == 1,
        start: if said[33] == 1 { Start::Image(name) } else { Start::Zeros },
    };
    Ok((device, length as u64))
}
