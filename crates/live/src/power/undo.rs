//! [`UndoLog`]: pre-images of all writes that a power cut could still undo.
//!
//! Each stretch of the address space has a stack of pre-images, one per change, the newest on top. A change that
//! becomes durable drops everything below it; one that is lost passes its pre-image to the change above, or to the
//! contents if there is none. So changes may be settled in any order.
//!
//! Restored data need space on a disk that may be full by then: a trimmed stretch is overwritten with zeros, and its
//! space is freed only when nothing can be restored there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

use headstack_sim::power_cut::{CHANGE_BYTES_MAX, Fate, LostWrites, Verdict, joined};
use headstack_workload::Span;

use crate::contents::Contents;

/// Zeros are detected by page.
const PAGE_BYTES: u64 = 4096;
/// Bytes read or compared at a time.
const CHUNK_BYTES: u64 = 1 << 20;
/// Losses of a power cut are reported by sector.
const SECTOR_BYTES: usize = 512;
/// Overhead of a pre-image.
const VERSION_BYTES: u64 = 128;
/// The change of a request to contents.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// Writes these bytes.
    Data(&'a [u8]),
    /// Writes zeros that occupy space.
    Fill,
    /// Frees written data.
    Zero,
}

impl Change<'_> {
    /// Applies the change.
    ///
    /// # Errors
    /// The file system's error.
    pub fn apply(self, contents: &Contents, span: Span) -> io::Result<()> {
        match self {
            Change::Data(data) => contents.write(span.start_bytes, data),
            Change::Fill => contents.fill(span.start_bytes, span.length_bytes),
            Change::Zero => contents.zero(span.start_bytes, span.length_bytes),
        }
    }
}

/// Data in a stretch before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PreImage {
    /// Nothing.
    Hole,
    /// Zeros that occupy space.
    Zeros,
    Bytes(Vec<u8>),
}

impl PreImage {
    fn part(&self, range: Range<u64>) -> PreImage {
        match self {
            PreImage::Hole => PreImage::Hole,
            PreImage::Zeros => PreImage::Zeros,
            PreImage::Bytes(data) => PreImage::Bytes(data[range.start as usize..range.end as usize].to_vec()),
        }
    }

    /// Copies the data from `from_bytes` on into `into`.
    pub(super) fn copy(&self, from_bytes: u64, into: &mut [u8]) {
        match self {
            PreImage::Hole | PreImage::Zeros => into.fill(0),
            PreImage::Bytes(data) => into.copy_from_slice(&data[from_bytes as usize..][..into.len()]),
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let data = if let PreImage::Bytes(data) = self { data.capacity() as u64 } else { 0 };
        data + VERSION_BYTES
    }
}

#[derive(Clone, Debug)]
pub(super) struct Version {
    pub change: u64,
    pub before: PreImage,
    /// If it is to be undone, whether it had been acknowledged.
    pub lost: Option<bool>,
}

impl Version {
    fn part(&self, range: Range<u64>) -> Version {
        Version { before: self.before.part(range), ..*self }
    }
}

#[derive(Debug)]
pub(super) struct Stretch {
    pub end_bytes: u64,
    /// Oldest first, never empty.
    pub versions: Vec<Version>,
    /// Whether the present zeros need no space once nothing can be restored.
    pub gives_back: bool,
}

/// Changes to contents in order, as far as they can be undone.
#[derive(Debug, Default)]
pub struct UndoLog {
    /// By their first byte; they do not overlap.
    stretches: BTreeMap<u64, Stretch>,
    changes: u64,
    pub(super) memory_bytes: u64,
    /// Ranges of permanent changes that are not reported yet.
    changed_for_good: Vec<Span>,
}

impl UndoLog {
    /// Changes contents, and returns the number by which the change can be settled.
    ///
    /// # Errors
    /// The file system's error: nothing is changed then.
    pub fn apply(&mut self, contents: &Contents, span: Span, change: Change<'_>) -> io::Result<u64> {
        let number = self.changes;
        if span.length_bytes > CHANGE_BYTES_MAX {
            change.apply(contents, span)?;
            self.settle(contents, &[Verdict { number, span, fate: Fate::Durable }])?;
        } else {
            let parts = before(contents, span)?;
            let data: Vec<Span> = parts
                .iter()
                .filter(|(_, before)| matches!(before, PreImage::Bytes(_)))
                .map(|(part, _)| *part)
                .collect();
            parts.into_iter().for_each(|(part, before)| self.push(part, number, before));
            let done = match change {
                Change::Zero => data.iter().try_for_each(|part| contents.fill(part.start_bytes, part.length_bytes)),
                Change::Data(_) | Change::Fill => change.apply(contents, span),
            };
            if let Err(error) = done {
                self.settle(contents, &[Verdict { number, span, fate: Fate::Lost { acknowledged: false } }])?;
                return Err(error);
            }
            for start_bytes in self.within(span) {
                self.stretch(start_bytes).gives_back = matches!(change, Change::Zero);
            }
        }
        self.changes += 1;
        Ok(number)
    }

    /// Changes contents permanently, together with all earlier changes there: it cannot be undone.
    ///
    /// # Errors
    /// The file system's error: nothing is changed then.
    pub fn apply_for_good(&mut self, contents: &Contents, span: Span, data: &[u8]) -> io::Result<()> {
        let number = self.apply(contents, span, Change::Data(data))?;
        self.keep(contents, number, span);
        self.changed_for_good.push(span);
        Ok(())
    }

    /// Ranges of permanent changes since the last call.
    pub fn take_changed_for_good(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.changed_for_good)
    }

    /// Replaces parts of `into`, which has the contents from `start_bytes` on, by the data before the first of some
    /// changes.
    pub fn read_before(&self, changes: &BTreeSet<u64>, start_bytes: u64, into: &mut [u8]) {
        let end_bytes = start_bytes + into.len() as u64;
        let first = self.stretches.range(..=start_bytes).next_back().map_or(start_bytes, |(&start, _)| start);
        for (&at_bytes, stretch) in self.stretches.range(first..end_bytes) {
            let (from, to) = (at_bytes.max(start_bytes), stretch.end_bytes.min(end_bytes));
            let version = stretch.versions.iter().find(|version| changes.contains(&version.change));
            if let Some(version) = version.filter(|_| from < to) {
                let part = (from - start_bytes) as usize..(to - start_bytes) as usize;
                version.before.copy(from - at_bytes, &mut into[part]);
            }
        }
    }

    /// Applies the outcomes of changes: durable ones stay together with everything they replaced; lost ones are undone
    /// unless a change that replaced them is durable. Returns the acknowledged data that were lost.
    ///
    /// # Errors
    /// The file system's error.
    pub fn settle(&mut self, contents: &Contents, verdicts: &[Verdict]) -> io::Result<LostWrites> {
        let mut is_lost = false;
        for &Verdict { number, span, fate } in verdicts {
            match fate {
                Fate::Durable => self.keep(contents, number, span),
                Fate::Lost { acknowledged } => {
                    is_lost = true;
                    for start_bytes in self.within(span) {
                        let versions = &mut self.stretch(start_bytes).versions;
                        versions.iter_mut().filter(|version| version.change == number).for_each(|version| {
                            version.lost = Some(acknowledged);
                        });
                    }
                }
            }
        }
        let mut finding = Finding::default();
        if is_lost {
            let has_lost = |stretch: &Stretch| stretch.versions.iter().any(|version| version.lost.is_some());
            let starts = self.stretches.iter().filter(|(_, stretch)| has_lost(stretch)).map(|(&start, _)| start);
            for start_bytes in starts.collect::<Vec<_>>() {
                self.take_back(contents, start_bytes, &mut finding)?;
            }
        }
        Ok(LostWrites { writes: finding.changes.len() as u64, spans: joined(finding.spans) })
    }

    /// Makes change `number` durable within `span`, together with everything it replaced.
    pub(super) fn keep(&mut self, contents: &Contents, number: u64, span: Span) {
        for start_bytes in self.within(span) {
            let stretch = self.stretch(start_bytes);
            if stretch.versions.iter().all(|version| version.change != number) {
                // It was undone before: older changes are as undecided as before.
                continue;
            }
            let newer = stretch.versions.partition_point(|version| version.change <= number);
            let freed: u64 = stretch.versions.drain(..newer).map(|version| version.before.memory_bytes()).sum();
            let Stretch { end_bytes, gives_back, .. } = *stretch;
            if stretch.versions.is_empty() {
                self.stretches.remove(&start_bytes);
                if gives_back {
                    // Space that cannot be freed is no loss: zeros are there.
                    let _ = contents.zero(start_bytes, end_bytes - start_bytes);
                }
            }
            self.memory_bytes -= freed;
        }
    }

    /// Undoes the lost changes of a stretch.
    pub(super) fn take_back(&mut self, contents: &Contents, start_bytes: u64, finding: &mut Finding) -> io::Result<()> {
        let stretch = self.stretch(start_bytes);
        let span = Span { start_bytes, length_bytes: stretch.end_bytes - start_bytes };
        let before_bytes: u64 = stretch.versions.iter().map(|version| version.before.memory_bytes()).sum();
        // The data after the restore; the data of the newest acknowledged change, and of later ones that were under
        // way: the present data if absent.
        let (mut there, mut allowed, mut acknowledged) = (None, Vec::new(), None);
        while let Some(version) = stretch.versions.pop_if(|version| version.lost.is_some()) {
            let after = there.replace(version.before);
            if acknowledged.is_none() {
                allowed.push(after);
                acknowledged = (version.lost == Some(true)).then_some(version.change);
            }
        }
        // Below an undecided change, the pre-image moves to the next change above.
        for at in (0..stretch.versions.len()).rev() {
            if stretch.versions[at].lost.is_some() {
                let passed_on = stretch.versions.remove(at).before;
                stretch.versions[at].before = passed_on;
            }
        }
        let after_bytes: u64 = stretch.versions.iter().map(|version| version.before.memory_bytes()).sum();
        let is_settled = stretch.versions.is_empty();
        if there.is_some() {
            stretch.gives_back = there == Some(PreImage::Hole);
        }
        if is_settled {
            self.stretches.remove(&start_bytes);
        }
        self.memory_bytes -= before_bytes - after_bytes;
        let Some(there) = there else { return Ok(()) };
        if let Some(change) = acknowledged {
            finding.compare(contents, span, change, &allowed, &there)?;
        }
        match there {
            // Older data may still be restored, and need the space.
            PreImage::Hole if is_settled => contents.zero(span.start_bytes, span.length_bytes),
            PreImage::Hole | PreImage::Zeros => contents.fill(span.start_bytes, span.length_bytes),
            PreImage::Bytes(data) => contents.write(span.start_bytes, &data),
        }
    }

    /// Whether nothing can be undone.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Memory of the log.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    pub(super) fn stretch(&mut self, start_bytes: u64) -> &mut Stretch {
        self.stretches.get_mut(&start_bytes).expect("a stretch that was just found")
    }

    /// Pushes `before` onto the stacks of a span.
    fn push(&mut self, span: Span, change: u64, mut before: PreImage) {
        let (mut at_bytes, end_bytes) = (span.start_bytes, end_of(span));
        let mut found = self.within(span).into_iter().peekable();
        while at_bytes < end_bytes {
            let next_bytes = found.peek().copied().unwrap_or(end_bytes);
            let until_bytes = if next_bytes == at_bytes { self.stretches[&at_bytes].end_bytes } else { next_bytes };
            let is_all = until_bytes - at_bytes == span.length_bytes;
            let range = at_bytes - span.start_bytes..until_bytes - span.start_bytes;
            // Zeros whose space is about to be freed do not occupy space.
            let is_trimmed = next_bytes == at_bytes && self.stretches[&at_bytes].gives_back;
            let part = match &mut before {
                _ if is_trimmed => PreImage::Hole,
                before if is_all => std::mem::replace(before, PreImage::Hole),
                before => before.part(range),
            };
            self.memory_bytes += part.memory_bytes();
            let version = Version { change, before: part, lost: None };
            if next_bytes == at_bytes {
                found.next();
                self.stretch(at_bytes).versions.push(version);
            } else {
                let stretch = Stretch { end_bytes: until_bytes, versions: vec![version], gives_back: false };
                self.stretches.insert(at_bytes, stretch);
            }
            at_bytes = until_bytes;
        }
    }

    /// Starts of the stretches within a span, after splitting those that cross its ends.
    pub(super) fn within(&mut self, span: Span) -> Vec<u64> {
        self.split_at(span.start_bytes);
        self.split_at(end_of(span));
        self.stretches.range(span.start_bytes..end_of(span)).map(|(&start_bytes, _)| start_bytes).collect()
    }

    fn split_at(&mut self, at_bytes: u64) {
        let Some((&start_bytes, stretch)) = self.stretches.range_mut(..at_bytes).next_back() else { return };
        if stretch.end_bytes <= at_bytes {
            return;
        }
        let (first, whole) = (at_bytes - start_bytes, stretch.end_bytes - start_bytes);
        let behind: Vec<Version> = stretch.versions.iter().map(|version| version.part(first..whole)).collect();
        let memory = |versions: &[Version]| versions.iter().map(|version| version.before.memory_bytes()).sum::<u64>();
        let unsplit_bytes = memory(&stretch.versions);
        // A part of a buffer would keep all of it.
        stretch.versions.iter_mut().for_each(|version| *version = version.part(0..first));
        self.memory_bytes += memory(&stretch.versions) + memory(&behind) - unsplit_bytes;
        let end_bytes = std::mem::replace(&mut stretch.end_bytes, at_bytes);
        let gives_back = stretch.gives_back;
        self.stretches.insert(at_bytes, Stretch { end_bytes, versions: behind, gives_back });
    }
}

/// Losses found so far.
#[derive(Default)]
pub(super) struct Finding {
    changes: BTreeSet<u64>,
    spans: Vec<Span>,
}

impl Finding {
    /// Compares, sector by sector, the data of `change` or of those allowed instead (`allowed`; the present data if
    /// absent) with the data after the restore.
    fn compare(
        &mut self,
        contents: &Contents,
        span: Span,
        change: u64,
        allowed: &[Option<PreImage>],
        there: &PreImage,
    ) -> io::Result<()> {
        let length = span.length_bytes.min(CHUNK_BYTES) as usize;
        let (mut was, mut will_be, mut missing) = (vec![0; length], vec![0; length], Vec::new());
        for from_bytes in (0..span.length_bytes).step_by(CHUNK_BYTES as usize) {
            let length = (span.length_bytes - from_bytes).min(CHUNK_BYTES) as usize;
            let (was, will_be) = (&mut was[..length], &mut will_be[..length]);
            there.copy(from_bytes, will_be);
            missing.clear();
            missing.resize(length.div_ceil(SECTOR_BYTES), true);
            for after in allowed {
                match after {
                    Some(after) => after.copy(from_bytes, was),
                    None => contents.read(span.start_bytes + from_bytes, was)?,
                }
                let sectors = was.chunks(SECTOR_BYTES).zip(will_be.chunks(SECTOR_BYTES));
                missing.iter_mut().zip(sectors).for_each(|(missing, (was, will_be))| *missing &= was != will_be);
            }
            for (number, _) in missing.iter().enumerate().filter(|(_, missing)| **missing) {
                let start_bytes = span.start_bytes + from_bytes + (number * SECTOR_BYTES) as u64;
                let length_bytes = (length - number * SECTOR_BYTES).min(SECTOR_BYTES) as u64;
                self.changes.insert(change);
                match self.spans.last_mut() {
                    Some(last) if end_of(*last) == start_bytes => last.length_bytes += length_bytes,
                    _ => self.spans.push(Span { start_bytes, length_bytes }),
                }
            }
        }
        Ok(())
    }
}

pub(super) fn end_of(span: Span) -> u64 {
    span.start_bytes + span.length_bytes
}

/// Returns the data in a span, as consecutive stretches.
fn before(contents: &Contents, span: Span) -> io::Result<Vec<(Span, PreImage)>> {
    let mut parts: Vec<(Span, PreImage)> = Vec::new();
    let mut add = |start_bytes: u64, until_bytes: u64, what: PreImage| {
        let length_bytes = until_bytes - start_bytes;
        match (parts.last_mut(), what) {
            (Some((last, PreImage::Hole)), PreImage::Hole) | (Some((last, PreImage::Zeros)), PreImage::Zeros) => {
                last.length_bytes += length_bytes;
            }
            (_, what) => parts.push((Span { start_bytes, length_bytes }, what)),
        }
    };
    let (mut at_bytes, end_bytes) = (span.start_bytes, end_of(span));
    let mut chunk = Vec::new();
    while at_bytes < end_bytes {
        let data_bytes = contents.next_data(at_bytes, end_bytes)?;
        if data_bytes > at_bytes {
            add(at_bytes, data_bytes, PreImage::Hole);
        }
        let until_bytes = end_bytes.min(data_bytes + CHUNK_BYTES);
        chunk.resize((until_bytes - data_bytes) as usize, 0);
        contents.read(data_bytes, &mut chunk)?;
        at_bytes = data_bytes;
        while at_bytes < until_bytes {
            let run_bytes = run(&chunk[(at_bytes - data_bytes) as usize..], at_bytes);
            let data = &chunk[(at_bytes - data_bytes) as usize..][..run_bytes as usize];
            if !is_zero(data) {
                add(at_bytes, at_bytes + run_bytes, PreImage::Bytes(data.to_vec()));
                at_bytes += run_bytes;
                continue;
            }
            // Unwritten space, or zeros: a page at a time, since holes end where data begin.
            let zeros_until_bytes = at_bytes + run_bytes;
            while at_bytes < zeros_until_bytes {
                let data_bytes = contents.next_data(at_bytes, zeros_until_bytes)?;
                let page_bytes = (zeros_until_bytes - at_bytes).min(PAGE_BYTES - at_bytes % PAGE_BYTES);
                let (length_bytes, what) = match data_bytes - at_bytes {
                    0 => (page_bytes, PreImage::Zeros),
                    hole_bytes => (hole_bytes, PreImage::Hole),
                };
                add(at_bytes, at_bytes + length_bytes, what);
                at_bytes += length_bytes;
            }
        }
    }
    Ok(parts)
}

/// Length of the run of pages at the start of `data`, which is at `at_bytes`, that consists only of zeros or only of
/// other data.
fn run(data: &[u8], at_bytes: u64) -> u64 {
    let first = (PAGE_BYTES - at_bytes % PAGE_BYTES).min(data.len() as u64);
    let (head, rest) = data.split_at(first as usize);
    let is_empty = is_zero(head);
    let same = rest.chunks(PAGE_BYTES as usize).take_while(|page| is_zero(page) == is_empty);
    first + same.map(|page| page.len() as u64).sum::<u64>()
}

fn is_zero(data: &[u8]) -> bool {
    // Many bytes at a time: all zeros have to be checked.
    data.chunks(256).all(|part| part.iter().fold(0, |any, byte| any | byte) == 0)
}
