//! What contents were before: the pre-images of everything written that a power cut could still take back.
//!
//! For each stretch of the address space there is a stack of what was there before each change, the newest on top. A change
//! that becomes durable takes what lies below it along; one that is lost leaves what was before it to the change above, or
//! to the contents if there is none. So changes may be settled in any order.

use std::collections::BTreeMap;
use std::io;

use headstack_workload::Span;

use crate::contents::Contents;

/// Pages of zeros are no data: what was a hole is one again.
const PAGE_BYTES: u64 = 4096;
/// Data that are read at a time.
const CHUNK_BYTES: u64 = 1 << 20;
/// A trim or a run of zeros longer than this is taken for durable: its pre-image could be all there is.
pub(super) const CHANGE_BYTES_MAX: u64 = 64 << 20;

/// What a request does to contents.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// Writes these bytes.
    Data(&'a [u8]),
    /// Writes zeros that take their place.
    Fill,
    /// Gives back what was written.
    Zero,
}

impl Change<'_> {
    /// Does it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn apply(self, contents: &Contents, span: Span) -> io::Result<()> {
        match self {
            Change::Data(data) => contents.write(span.start_bytes, data),
            Change::Fill => contents.fill(span.start_bytes, span.length_bytes),
            Change::Zero => contents.zero(span.start_bytes, span.length_bytes),
        }
    }
}

/// What was in a stretch before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Before {
    Hole,
    Bytes(Vec<u8>),
}

impl Before {
    /// What was behind the first `bytes`.
    fn split_off(&mut self, bytes: u64) -> Before {
        match self {
            Before::Hole => Before::Hole,
            Before::Bytes(data) => Before::Bytes(data.split_off(bytes as usize)),
        }
    }
}

#[derive(Debug)]
struct Version {
    change: u64,
    before: Before,
}

#[derive(Debug)]
struct Stretch {
    end_bytes: u64,
    /// Oldest first, never empty.
    versions: Vec<Version>,
}

/// Changes to contents in the order in which they were made, as far as they can be taken back.
#[derive(Debug, Default)]
pub struct UndoLog {
    /// By their first byte; they do not overlap.
    stretches: BTreeMap<u64, Stretch>,
    changes: u64,
}

impl UndoLog {
    /// Changes contents, and returns the number by which the change can be settled.
    ///
    /// # Errors
    /// What the file system says: nothing is changed then.
    pub fn apply(&mut self, contents: &Contents, span: Span, change: Change<'_>) -> io::Result<u64> {
        let number = self.changes;
        if span.length_bytes > CHANGE_BYTES_MAX {
            change.apply(contents, span)?;
            self.keep(number, span);
        } else {
            for (part, before) in before(contents, span)? {
                self.push(part, number, before);
            }
            if let Err(error) = change.apply(contents, span) {
                self.undo(contents, number, span)?;
                return Err(error);
            }
        }
        self.changes += 1;
        Ok(number)
    }

    /// What change `number` did within `span` is durable, and with it whatever it replaced.
    pub fn keep(&mut self, number: u64, span: Span) {
        for start_bytes in self.within(span) {
            let stretch = self.stretches.get_mut(&start_bytes).expect("a stretch that was just found");
            let newer = stretch.versions.partition_point(|version| version.change <= number);
            stretch.versions.drain(..newer);
            if stretch.versions.is_empty() {
                self.stretches.remove(&start_bytes);
            }
        }
    }

    /// What change `number` did within `span` is lost, as far as nothing that replaced it is durable.
    ///
    /// # Errors
    /// What the file system says.
    pub fn undo(&mut self, contents: &Contents, number: u64, span: Span) -> io::Result<()> {
        for start_bytes in self.within(span) {
            let stretch = self.stretches.get_mut(&start_bytes).expect("a stretch that was just found");
            let Ok(at) = stretch.versions.binary_search_by_key(&number, |version| version.change) else { continue };
            let before = stretch.versions.remove(at).before;
            match (stretch.versions.get_mut(at), before) {
                (Some(newer), before) => newer.before = before,
                (None, Before::Hole) => contents.zero(start_bytes, stretch.end_bytes - start_bytes)?,
                (None, Before::Bytes(data)) => contents.write(start_bytes, &data)?,
            }
            if stretch.versions.is_empty() {
                self.stretches.remove(&start_bytes);
            }
        }
        Ok(())
    }

    /// Nothing can be taken back.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Lays `before` on the stacks of a span.
    fn push(&mut self, span: Span, change: u64, before: Before) {
        let (mut at_bytes, end_bytes, mut rest) = (span.start_bytes, end_of(span), before);
        let mut found = self.within(span).into_iter().peekable();
        while at_bytes < end_bytes {
            let next_bytes = found.peek().copied().unwrap_or(end_bytes);
            let until_bytes = if next_bytes == at_bytes { self.stretches[&at_bytes].end_bytes } else { next_bytes };
            let behind = rest.split_off(until_bytes - at_bytes);
            let version = Version { change, before: rest };
            if next_bytes == at_bytes {
                found.next();
                let stretch = self.stretches.get_mut(&at_bytes).expect("a stretch that was just found");
                stretch.versions.push(version);
            } else {
                self.stretches.insert(at_bytes, Stretch { end_bytes: until_bytes, versions: vec![version] });
            }
            (at_bytes, rest) = (until_bytes, behind);
        }
    }

    /// Starts of the stretches within a span, of which none reaches over its ends after this.
    fn within(&mut self, span: Span) -> Vec<u64> {
        self.split_at(span.start_bytes);
        self.split_at(end_of(span));
        self.stretches.range(span.start_bytes..end_of(span)).map(|(&start_bytes, _)| start_bytes).collect()
    }

    fn split_at(&mut self, at_bytes: u64) {
        let Some((&start_bytes, stretch)) = self.stretches.range_mut(..at_bytes).next_back() else { return };
        if stretch.end_bytes <= at_bytes {
            return;
        }
        let behind = |version: &mut Version| Version {
            change: version.change,
            before: version.before.split_off(at_bytes - start_bytes),
        };
        let versions = stretch.versions.iter_mut().map(behind).collect();
        let end_bytes = std::mem::replace(&mut stretch.end_bytes, at_bytes);
        self.stretches.insert(at_bytes, Stretch { end_bytes, versions });
    }
}

fn end_of(span: Span) -> u64 {
    span.start_bytes + span.length_bytes
}

/// What is in a span, as stretches that follow each other.
fn before(contents: &Contents, span: Span) -> io::Result<Vec<(Span, Before)>> {
    let mut parts: Vec<(Span, Before)> = Vec::new();
    let mut add = |start_bytes: u64, until_bytes: u64, data: Option<&[u8]>| {
        let length_bytes = until_bytes - start_bytes;
        match (parts.last_mut(), data) {
            (Some((last, Before::Hole)), None) => last.length_bytes += length_bytes,
            (Some((last, Before::Bytes(bytes))), Some(data)) => {
                last.length_bytes += length_bytes;
                bytes.extend_from_slice(data);
            }
            (_, data) => {
                let before = data.map_or(Before::Hole, |data| Before::Bytes(data.to_vec()));
                parts.push((Span { start_bytes, length_bytes }, before));
            }
        }
    };
    let (mut at_bytes, end_bytes) = (span.start_bytes, end_of(span));
    let mut chunk = Vec::new();
    while at_bytes < end_bytes {
        let data_bytes = contents.next_data(at_bytes, end_bytes)?;
        if data_bytes > at_bytes {
            add(at_bytes, data_bytes, None);
        }
        let until_bytes = end_bytes.min(data_bytes + CHUNK_BYTES);
        chunk.resize((until_bytes - data_bytes) as usize, 0);
        contents.read(data_bytes, &mut chunk)?;
        at_bytes = data_bytes;
        while at_bytes < until_bytes {
            let page_end_bytes = until_bytes.min((at_bytes / PAGE_BYTES + 1) * PAGE_BYTES);
            let page = &chunk[(at_bytes - data_bytes) as usize..(page_end_bytes - data_bytes) as usize];
            let is_hole = page.iter().all(|&byte| byte == 0);
            add(at_bytes, page_end_bytes, (!is_hole).then_some(page));
            at_bytes = page_end_bytes;
        }
    }
    Ok(parts)
}
