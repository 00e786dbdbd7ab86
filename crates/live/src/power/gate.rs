//! Where exports and the clock meet over contents and power: what changes contents, and what takes changes back.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock};
use std::time::Instant;

use headstack_sim::faults::Fault;
use headstack_sim::faults::contents::{Damage, Spoil};
use headstack_sim::power_cut::{Fate, Lost, Verdict};
use headstack_workload::Span;

use super::damage::{self, Older};
use super::undo::{Change, UndoLog};
use crate::LiveError;
use crate::budget::{Budget, Share};
use crate::contents::Contents;
use crate::journal::Journal;

/// Power, and the undo log of the contents that lose something with it.
#[derive(Debug)]
pub struct Gate {
    kept: Mutex<Kept>,
    /// What a request has done can be lost.
    keeps_log: AtomicBool,
    /// Reads may bring what is not stored: their replies have room for all of it.
    spoils_reads: AtomicBool,
    /// What has become of changes, for whoever changes something next: the clock has no time to free pre-images.
    settled: Mutex<Vec<Verdict>>,
    is_on: AtomicBool,
    cuts: AtomicU32,
    /// What is kept of everything that happens to contents, if somebody asked for it.
    journal: RwLock<Option<Journal>>,
    keeps_journal: bool,
}

/// A change of contents, as a request asks for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// Where.
    pub span: Span,
    /// What.
    pub change: Change<'a>,
    /// It must be durable when it is acknowledged.
    pub forced: bool,
    /// When it was issued.
    pub issued: Instant,
}

/// By which numbers a change that was made is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Made {
    /// In the undo log, if there is one.
    pub undo: Option<u64>,
    /// In the journal, if there is one.
    pub journal: Option<u64>,
}

/// Pre-images, and the memory that they take.
#[derive(Debug)]
struct Kept {
    log: UndoLog,
    /// For reads that find what was there before.
    older: Older,
    share: Share,
}

impl Kept {
    /// The log has grown by what `from` was taken for, or has shrunk.
    fn balance(&mut self, from: Option<&mut Share>) {
        let (has, needs) = (self.share.bytes(), self.log.memory_bytes() + self.older.memory_bytes);
        match from {
            Some(from) if needs > has => self.share.take_over(from, needs - has),
            _ => self.share.shrink(needs),
        }
    }

    /// What faults have kept has grown, whoever waits for memory.
    fn count(&mut self, budget: &Budget) {
        self.balance(Some(&mut budget.share()));
    }

    fn settle(&mut self, contents: &Contents, verdicts: &[Verdict]) -> io::Result<Lost> {
        let lost = self.log.settle(contents, verdicts);
        self.balance(None);
        lost
    }
}

impl Gate {
    /// Power is on. With `keeps_log`, changes can be taken back, for memory of the budget.
    pub(crate) fn new(keeps_log: bool, journal: Option<Journal>, budget: &Budget) -> Gate {
        let kept = Kept { log: UndoLog::default(), older: Older::default(), share: budget.share() };
        Gate {
            kept: Mutex::new(kept),
            keeps_log: AtomicBool::new(keeps_log),
            spoils_reads: AtomicBool::new(false),
            settled: Mutex::default(),
            is_on: AtomicBool::new(true),
            cuts: AtomicU32::new(0),
            keeps_journal: journal.is_some(),
            journal: RwLock::new(journal),
        }
    }

    /// Has the journal say something, if there is one.
    pub(crate) fn note<T>(&self, say: impl FnOnce(&Journal) -> T) -> Option<T> {
        if !self.keeps_journal {
            return None;
        }
        self.journal.read().expect("nobody panics with it").as_ref().map(say)
    }

    /// The journal is whole: nothing more comes.
    ///
    /// # Errors
    /// It could not be written.
    pub fn finish_journal(&self) -> Result<(), LiveError> {
        self.journal.write().expect("nobody panics with it").take().map_or(Ok(()), Journal::finish)
    }

    /// A fault may come: what it needs is kept from now on.
    pub fn expect(&self, fault: &Fault) {
        self.keeps_log.fetch_or(fault.changes_contents(), Ordering::AcqRel);
        self.spoils_reads.fetch_or(fault.spoils_reads(), Ordering::AcqRel);
    }

    /// Reads may bring what is not stored.
    pub fn spoils_reads(&self) -> bool {
        self.spoils_reads.load(Ordering::Acquire)
    }

    /// Power is on.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// How often power failed: what was agreed before the last time is void.
    pub fn cuts(&self) -> u32 {
        self.cuts.load(Ordering::Acquire)
    }

    /// What was there before a change is kept.
    pub fn keeps_log(&self) -> bool {
        self.keeps_log.load(Ordering::Acquire)
    }

    /// Changes contents and has `hand_in` tell the clock of it, as one step: a power cut finds both or neither. It hears
    /// the change's numbers; of none where nothing is kept, or there is no power, which the clock knows. What was there before
    /// is kept in memory that is taken from `share`.
    ///
    /// # Errors
    /// What the file system says: nothing is changed then, and nothing handed in.
    pub(crate) fn change(
        &self,
        contents: &Contents,
        asked: &Asked<'_>,
        share: &mut Share,
        hand_in: impl FnOnce(Made, &mut Share),
    ) -> io::Result<()> {
        let Asked { span, change, forced, issued } = *asked;
        let keeps_log = self.keeps_log();
        if !keeps_log && !self.keeps_journal {
            if self.is_on() {
                change.apply(contents, span)?;
            }
            hand_in(Made::default(), share);
            return Ok(());
        }
        let mut kept = self.kept();
        if keeps_log {
            kept.settle(contents, &self.take_settled())?;
        }
        let mut made = Made::default();
        if self.is_on() {
            if keeps_log {
                let number = kept.log.apply(contents, span, change);
                kept.balance(Some(share));
                made.undo = Some(number?);
            } else {
                change.apply(contents, span)?;
            }
            made.journal = self.note(|journal| journal.changed(issued, span, change, forced)).flatten();
        }
        hand_in(made, share);
        Ok(())
    }

    /// Frees what nobody can take back any more, in memory and on the disk.
    ///
    /// # Errors
    /// What the file system says.
    pub fn tidy(&self, contents: &Contents) -> io::Result<()> {
        if !self.keeps_log() {
            return Ok(());
        }
        self.kept().settle(contents, &self.take_settled()).map(drop)
    }

    /// Faults have damaged contents: that is done at once.
    ///
    /// # Errors
    /// What the file system says.
    pub fn damage(&self, damages: &mut Vec<Damage>, contents: &Contents, budget: &Budget) -> io::Result<()> {
        if !self.keeps_log() {
            damages.clear();
            return Ok(());
        }
        let mut kept = self.kept();
        kept.settle(contents, &self.take_settled())?;
        let Kept { log, older, .. } = &mut *kept;
        let places: Vec<Span> = damages.iter().flat_map(damage::places).collect();
        let done = damages.drain(..).try_for_each(|damage| log.damage(contents, &damage, older));
        kept.count(budget);
        done?;
        self.note(|journal| journal.became(&places, contents)).unwrap_or(Ok(()))
    }

    /// Has what was read be what faults make of it, where it was read: its first byte, and the data.
    ///
    /// # Errors
    /// What the file system says.
    pub fn spoil(&self, read: Option<(u64, &mut [u8])>, spoils: &[Spoil], contents: &Contents) -> io::Result<()> {
        let mut kept = self.kept();
        let done =
            read.map_or(Ok(()), |(start_bytes, data)| damage::spoil(data, start_bytes, spoils, contents, &kept.older));
        kept.older.was_read(spoils);
        kept.balance(None);
        done
    }

    /// What has become of changes: what is lost is taken back at once, and told.
    ///
    /// # Errors
    /// What the file system says when contents cannot be what they were.
    pub fn settle(&self, verdicts: &mut Vec<Verdict>, contents: &Contents) -> io::Result<Option<Lost>> {
        let is_lost = verdicts.iter().any(|verdict| verdict.fate != Fate::Durable);
        if !is_lost || !self.keeps_log() {
            self.settled.lock().expect("nobody panics with it").append(verdicts);
            return Ok(None);
        }
        let mut kept = self.kept();
        let gone = verdicts.iter().filter(|verdict| verdict.fate != Fate::Durable);
        let places: Vec<Span> = gone.map(|verdict| verdict.span).collect();
        let mut before = self.take_settled();
        before.append(verdicts);
        let lost = kept.settle(contents, &before)?;
        self.note(|journal| journal.became(&places, contents)).unwrap_or(Ok(()))?;
        Ok(Some(lost))
    }

    /// Power failed, for the `cuts`th time: contents do not change any more, and whoever was changing them has told the clock.
    pub fn close(&self, cuts: u32) {
        self.cuts.store(cuts, Ordering::Release);
        self.is_on.store(false, Ordering::Release);
        drop(self.kept());
    }

    /// Power is back.
    pub fn open(&self) {
        self.is_on.store(true, Ordering::Release);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("nobody panics with the undo log in hand")
    }

    fn take_settled(&self) -> Vec<Verdict> {
        std::mem::take(&mut *self.settled.lock().expect("nobody panics with it"))
    }
}
