//! Writes recordings as journals: a recording in another format, or a reproducer of a single state.

use std::path::Path;

use headstack_files::AtomicFile;
use serde::{Deserialize, Serialize};

use crate::error::refused;
use crate::image::{Image, parts};
use crate::journal::JournalWriter;
use crate::recording::{Change, Event, Fate, Recording, Start, Stored};
use crate::states::state::ChangeOutcome;
use crate::states::walk::Walk;
use crate::states::{CrashState, Rules, Torn};
use crate::{CrashError, Device};

/// Prefix of the last mark of a reproducer.
const STATE: &str = "headstack-crash-state ";

/// Writes a recording as a journal.
///
/// # Errors
/// Returns an error if the recording cannot be read, or the file cannot be written.
pub fn write_journal(recording: &Recording, path: &Path) -> Result<(), CrashError> {
    whole(path, &recording.device, |journal| {
        let (mut changes, mut flushes) = (Vec::new(), Vec::new());
        for (event, &at_ns) in recording.events.iter().zip(&recording.times_ns) {
            match *event {
                Event::Change(number) => changes.push(copied(journal, recording, number)?),
                Event::Changed(number, fate) => io(path, journal.answered(at_ns, changes[number as usize], fate))?,
                Event::Flush(_) => flushes.push(io(path, journal.flush(at_ns))?),
                Event::Flushed(number, fate) => io(path, journal.answered(at_ns, flushes[number as usize], fate))?,
                Event::Mark(mark) => io(path, journal.mark(at_ns, &recording.marks[mark as usize]))?,
                Event::PowerOff => io(path, journal.power_off(at_ns))?,
                Event::PowerOn => io(path, journal.power_on(at_ns))?,
            }
        }
        Ok(())
    })
}

/// How a check accesses a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessMethod {
    /// As a regular file.
    #[default]
    File,
    /// Over NBD, by the address of a server.
    Nbd,
    /// As a file of a FUSE file system.
    Fuse,
}

/// A state with the description of its failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reproduced {
    /// The state, in the numbering of the reproducer.
    pub state: CrashState,
    /// Guarantees of the device.
    pub rules: Rules,
    /// The violated check, by the name that the user gave.
    pub check: String,
    /// How the check accessed the state.
    #[serde(default)]
    pub over: AccessMethod,
    /// Output of the check.
    pub message: String,
}

/// Writes a journal with everything needed to reproduce a state: its durable data, its open changes, the marks before
/// the crash, and the state itself. `image`, which must belong to the same recording, is left in another state.
///
/// # Errors
/// Returns an error if the recording cannot be read, or the file cannot be written.
pub fn write_reproducer(image: &mut Image, found: &Reproduced, path: &Path) -> Result<(), CrashError> {
    let recording = image.recording();
    let mut walk = Walk::default();
    while walk.events < found.state.events {
        walk.step(&recording, |_, _| {});
    }
    let missing = walk.open.iter().map(|open| open.change).collect();
    image.take(&CrashState { events: found.state.events, missing, torn: Vec::new() })?;
    let device = Device { start: Start::Zeros, ..recording.device.clone() };
    whole(path, &device, |journal| {
        for (start, end) in image.data()? {
            for (at, length) in parts(start, end) {
                let mut data = vec![0; length];
                image.read(at, &mut data)?;
                let number = io(path, journal.write(0, at, &data, false))?;
                io(path, journal.answered(0, number, Fate::Acknowledged))?;
            }
        }
        let flush = io(path, journal.flush(0))?;
        io(path, journal.answered(0, flush, Fate::Acknowledged))?;
        for mark in &recording.marks[..walk.marks] {
            io(path, journal.mark(0, mark))?;
        }
        let mut events = 2 * flush as usize + 2 + walk.marks;
        let atom_bytes = found.rules.atom(&recording);
        let mut state = CrashState::default();
        for open in &walk.open {
            // Data covered by durable changes is omitted, which may split a change.
            for &range in &open.left {
                let change = Change {
                    offset_bytes: range.0,
                    length_bytes: range.1 - range.0,
                    ..recording.changes[open.change as usize].clone()
                };
                let number = copied_part(journal, &recording, open.change, &change)?;
                if open.has_failed {
                    io(path, journal.answered(0, number, Fate::Failed(EIO)))?;
                }
                events += 1 + usize::from(open.has_failed);
                // The flush has a number, too.
                let part = (number - 1) as u32;
                match found.state.outcome_of_range(&recording, atom_bytes, open.change, range) {
                    ChangeOutcome::All => {}
                    ChangeOutcome::Nothing => state.missing.push(part),
                    ChangeOutcome::Atoms(kept) => state.torn.push(Torn { change: part, kept }),
                }
            }
        }
        state.events = events;
        let json =
            serde_json::to_string(&Reproduced { state, ..found.clone() }).expect("text and numbers can be serialised");
        io(path, journal.mark(0, &format!("{STATE}{json}")))
    })
}

/// Reads the state of a reproducer; `None` if the recording is not a reproducer.
///
/// # Errors
/// Returns an error if the description of the state is invalid.
pub fn reproduced(recording: &Recording) -> Result<Option<Reproduced>, CrashError> {
    let Some(json) = recording.marks.last().and_then(|mark| mark.strip_prefix(STATE)) else { return Ok(None) };
    let found: Reproduced = serde_json::from_str(json)
        .map_err(|error| CrashError::of(recording.path(), format!("its state is damaged: {error}")))?;
    Ok(Some(found))
}

/// Linux error number for an I/O error.
const EIO: u16 = 5;

/// Writes a journal that gets its name only once it is complete.
fn whole(
    path: &Path,
    device: &Device,
    write: impl FnOnce(&JournalWriter) -> Result<(), CrashError>,
) -> Result<(), CrashError> {
    let file = AtomicFile::create(path).map_err(refused)?;
    let draft =
        file.draft().ok_or_else(|| CrashError::of(path, "is not a regular file; a journal needs a regular file"))?;
    let journal = JournalWriter::create(draft, device)?;
    write(&journal)?;
    io(path, journal.finish())?;
    file.finish().map_err(refused)
}

fn copied(journal: &JournalWriter, recording: &Recording, number: u32) -> Result<u64, CrashError> {
    let change = &recording.changes[number as usize];
    copied_part(journal, recording, number, change)
}

/// Copies the data of a range of a change.
fn copied_part(journal: &JournalWriter, recording: &Recording, number: u32, part: &Change) -> Result<u64, CrashError> {
    let length_bytes = if matches!(part.stored, Stored::Data { .. }) { part.length_bytes } else { 0 };
    let mut data = vec![0; length_bytes as usize];
    let from_bytes = part.offset_bytes - recording.changes[number as usize].offset_bytes;
    recording.read(number, from_bytes, &mut data)?;
    journal.copied(part, &data).map_err(CrashError::io(recording.path()))
}

fn io<T>(path: &Path, done: std::io::Result<T>) -> Result<T, CrashError> {
    done.map_err(CrashError::io(path))
}
