//! Journals that are made of recordings: another form of the same, and one of a single state, with all that it takes to have
//! it again.

use std::path::Path;

use headstack_files::AtomicFile;
use serde::{Deserialize, Serialize};

use crate::error::refused;
use crate::image::{Image, parts};
use crate::journal::JournalWriter;
use crate::recording::{Change, Event, Fate, Recording, Start, Stored};
use crate::states::state::Kept;
use crate::states::walk::Walk;
use crate::states::{CrashState, Rules, Torn};
use crate::{CrashError, Device};

/// What the last mark of a reproducer begins with.
const STATE: &str = "headstack-crash-state ";

/// Writes a recording as a journal.
///
/// # Errors
/// The recording cannot be read, or the file not written.
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

/// How a check is shown a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Over {
    /// As a file of its own.
    #[default]
    File,
    /// By the address of an NBD server.
    Nbd,
    /// As a file of a FUSE file system.
    Fuse,
}

/// A state with what is to be said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reproduced {
    /// The state, in the numbers of the reproducer.
    pub state: CrashState,
    /// What the device promises.
    pub rules: Rules,
    /// The check that it violates, as it was named.
    pub check: String,
    /// How that was shown the state.
    #[serde(default)]
    pub over: Over,
    /// What it said.
    pub message: String,
}

/// Writes a journal that holds what is durable in a state, what is open, the marks before it, and the state: nothing else is
/// needed to have it again. `image` goes through the same recording and is brought into another state by this.
///
/// # Errors
/// The recording cannot be read, or the file not written.
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
            // What lies beneath something durable is left out, which may leave parts.
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
                match found.state.kept_of(&recording, atom_bytes, open.change, range) {
                    Kept::All => {}
                    Kept::Nothing => state.missing.push(part),
                    Kept::Atoms(kept) => state.torn.push(Torn { change: part, kept }),
                }
            }
        }
        state.events = events;
        let said = serde_json::to_string(&Reproduced { state, ..found.clone() }).expect("it has text and numbers only");
        io(path, journal.mark(0, &format!("{STATE}{said}")))
    })
}

/// The state of a reproducer; nothing where a recording is none.
///
/// # Errors
/// What it says of the state is nothing that was written so.
pub fn reproduced(recording: &Recording) -> Result<Option<Reproduced>, CrashError> {
    let Some(said) = recording.marks.last().and_then(|mark| mark.strip_prefix(STATE)) else { return Ok(None) };
    let found: Reproduced = serde_json::from_str(said)
        .map_err(|error| CrashError::of(recording.path(), format!("its state cannot be read: {error}")))?;
    Ok(Some(found))
}

/// An input or output error.
const EIO: u16 = 5;

/// A journal that has its name when it is whole.
fn whole(
    path: &Path,
    device: &Device,
    write: impl FnOnce(&JournalWriter) -> Result<(), CrashError>,
) -> Result<(), CrashError> {
    let file = AtomicFile::create(path).map_err(refused)?;
    let draft = file.draft().ok_or_else(|| CrashError::of(path, "a journal is a regular file, which this is not"))?;
    let journal = JournalWriter::create(draft, device)?;
    write(&journal)?;
    io(path, journal.finish())?;
    file.finish().map_err(refused)
}

fn copied(journal: &JournalWriter, recording: &Recording, number: u32) -> Result<u64, CrashError> {
    let change = &recording.changes[number as usize];
    copied_part(journal, recording, number, change)
}

/// Copies what a change does in a range of its own.
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
