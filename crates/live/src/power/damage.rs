//! Effects of faults on contents: changes that were not stored, or not as sent, and older data returned by reads.
//!
//! A fault is known when its request reaches the clock; by then others may have changed the same place. So the damage
//! applies to the data that this change left there, which the undo log knows, and not to the present data.

use std::collections::BTreeMap;
use std::io;

use headstack_sim::faults::contents::{Alteration, Damage, ReadCorruption};
use headstack_workload::Span;

use super::undo::{Change, Finding, PreImage, UndoLog, end_of};
use crate::contents::Contents;

/// Previous data of changes, for reads that return them.
#[derive(Debug, Default)]
pub struct PreviousData {
    /// By the change that replaced them.
    data: BTreeMap<u64, Replaced>,
    /// Memory of these data.
    pub memory_bytes: u64,
}

/// Data that a change replaced.
#[derive(Debug, Default)]
struct Replaced {
    /// Parts by their first bytes.
    parts: Vec<(u64, Vec<u8>)>,
    /// Number of reads under way that return it.
    awaited: u32,
    /// Whether no further read will.
    is_forgotten: bool,
}

impl PreviousData {
    /// Copies the data from before a change into a read at `start_bytes`, as far as they are kept.
    fn copy(&self, change: u64, span: Span, start_bytes: u64, into: &mut [u8]) {
        for (at_bytes, data) in self.data.get(&change).iter().flat_map(|replaced| &replaced.parts) {
            let from = (*at_bytes).max(span.start_bytes).max(start_bytes);
            let to = (at_bytes + data.len() as u64).min(end_of(span)).min(start_bytes + into.len() as u64);
            if from < to {
                let there = &data[(from - at_bytes) as usize..(to - at_bytes) as usize];
                into[(from - start_bytes) as usize..(to - start_bytes) as usize].copy_from_slice(there);
            }
        }
    }

    fn drop_unneeded(&mut self, change: u64) {
        let is_unneeded = |replaced: &Replaced| replaced.is_forgotten && replaced.awaited == 0;
        if self.data.get(&change).is_some_and(is_unneeded) {
            let gone = self.data.remove(&change).expect("it was seen");
            self.memory_bytes -= gone.parts.iter().map(|(_, data)| data.len() as u64).sum::<u64>();
        }
    }

    /// Notes that a read that needed these data has been answered.
    pub fn was_read(&mut self, spoils: &[ReadCorruption]) {
        for change in spoils.iter().filter_map(ReadCorruption::change) {
            if let Some(replaced) = self.data.get_mut(&change) {
                replaced.awaited -= 1;
            }
            self.drop_unneeded(change);
        }
    }
}

/// Ranges whose contents the damage changes.
pub fn places(damage: &Damage) -> Vec<Span> {
    match damage {
        Damage::Undone { span, .. } => vec![*span],
        Damage::Altered { how, .. } => vec![how.span],
        Damage::Astray { span, to_bytes, .. } => {
            vec![*span, Span { start_bytes: *to_bytes, length_bytes: span.length_bytes }]
        }
        // The owner of the members determines the effect of a member's damage on contents.
        Damage::OfMember { .. } => Vec::new(),
        Damage::Kept { .. } | Damage::Awaited { .. } | Damage::Forgotten { .. } => Vec::new(),
    }
}

impl UndoLog {
    /// Applies damage to contents.
    ///
    /// # Errors
    /// The file system's error.
    pub fn damage(&mut self, contents: &Contents, damage: &Damage, older: &mut PreviousData) -> io::Result<()> {
        match damage {
            Damage::Undone { change, span } => self.undo(contents, *change, *span),
            Damage::Altered { change: Some(change), how } => self.alter(contents, *change, how),
            Damage::Altered { change: None, how } => {
                for start_bytes in self.within(how.span) {
                    self.stretch(start_bytes).gives_back = false;
                }
                altered(contents, how)
            }
            Damage::OfMember { .. } => unreachable!("the member store applies this"),
            Damage::Astray { change, span, to_bytes } => {
                let data = self.left_by(contents, *change, *span)?;
                self.undo(contents, *change, *span)?;
                let elsewhere = Span { start_bytes: *to_bytes, length_bytes: span.length_bytes };
                // It is on the media, below every cache.
                let number = self.apply(contents, elsewhere, Change::Data(&data))?;
                self.keep(contents, number, elsewhere);
                Ok(())
            }
            Damage::Kept { change, span } => {
                for start_bytes in self.within(*span) {
                    let stretch = self.stretch(start_bytes);
                    let mut data = vec![0; (stretch.end_bytes - start_bytes) as usize];
                    let Some(version) = stretch.versions.iter().find(|version| version.change == *change) else {
                        continue;
                    };
                    version.before.copy(0, &mut data);
                    older.memory_bytes += data.len() as u64;
                    older.data.entry(*change).or_default().parts.push((start_bytes, data));
                }
                Ok(())
            }
            Damage::Awaited { change } => {
                older.data.entry(*change).or_default().awaited += 1;
                Ok(())
            }
            Damage::Forgotten { change } => {
                if let Some(replaced) = older.data.get_mut(change) {
                    replaced.is_forgotten = true;
                }
                older.drop_unneeded(*change);
                Ok(())
            }
        }
    }

    /// Undoes only a change's effect in a range.
    fn undo(&mut self, contents: &Contents, change: u64, span: Span) -> io::Result<()> {
        for start_bytes in self.within(span) {
            let versions = &mut self.stretch(start_bytes).versions;
            let Some(version) = versions.iter_mut().find(|version| version.change == change) else { continue };
            version.lost = Some(false);
            self.take_back(contents, start_bytes, &mut Finding::default())?;
        }
        Ok(())
    }

    /// Alters the data that a change left.
    fn alter(&mut self, contents: &Contents, change: u64, how: &Alteration) -> io::Result<()> {
        for start_bytes in self.within(how.span) {
            let stretch = self.stretch(start_bytes);
            let length_bytes = stretch.end_bytes - start_bytes;
            let Some(at) = stretch.versions.iter().position(|version| version.change == change) else { continue };
            let Some(newer) = stretch.versions.get_mut(at + 1) else {
                // Zeros whose space was to be freed are no zeros any more.
                stretch.gives_back = false;
                altered(
                    contents,
                    &Alteration { span: Span { start_bytes, length_bytes }, with: how.part(start_bytes) },
                )?;
                continue;
            };
            let mut data = vec![0; length_bytes as usize];
            newer.before.copy(0, &mut data);
            how.apply(start_bytes, &mut data);
            let was_bytes = newer.before.memory_bytes();
            newer.before = PreImage::Bytes(data);
            let is_bytes = newer.before.memory_bytes();
            self.memory_bytes = self.memory_bytes + is_bytes - was_bytes;
        }
        Ok(())
    }

    /// Returns the data that a change left.
    pub fn left_by(&mut self, contents: &Contents, change: u64, span: Span) -> io::Result<Vec<u8>> {
        let mut data = vec![0; span.length_bytes as usize];
        contents.read(span.start_bytes, &mut data)?;
        for start_bytes in self.within(span) {
            let stretch = self.stretch(start_bytes);
            let end_bytes = stretch.end_bytes;
            let at = stretch.versions.iter().position(|version| version.change == change);
            if let Some(newer) = at.and_then(|at| stretch.versions.get(at + 1)) {
                let place = (start_bytes - span.start_bytes) as usize..(end_bytes - span.start_bytes) as usize;
                newer.before.copy(0, &mut data[place]);
            }
        }
        Ok(data)
    }
}

/// Alters the present data.
fn altered(contents: &Contents, how: &Alteration) -> io::Result<()> {
    let mut data = vec![0; how.span.length_bytes as usize];
    contents.read(how.span.start_bytes, &mut data)?;
    how.apply(how.span.start_bytes, &mut data);
    contents.write(how.span.start_bytes, &data)
}

/// Alters `data`, which were read at `start_bytes`, as faults require.
///
/// # Errors
/// The file system's error.
pub fn spoil(
    data: &mut [u8],
    start_bytes: u64,
    spoils: &[ReadCorruption],
    contents: &Contents,
    older: &PreviousData,
) -> io::Result<()> {
    for spoil in spoils {
        match spoil {
            ReadCorruption::Altered(how) => how.apply(start_bytes, data),
            ReadCorruption::From { span, from_bytes } => {
                let at = (span.start_bytes - start_bytes) as usize;
                contents.read(*from_bytes, &mut data[at..at + span.length_bytes as usize])?;
            }
            ReadCorruption::Before { span, change } => older.copy(*change, *span, start_bytes, data),
        }
    }
    Ok(())
}
