//! [`PowerGate`]: synchronises exports and the clock on contents and power, for changes and their undoing.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock};
use std::time::Instant;

use headstack_sim::array::GroupStatus;
use headstack_sim::array::description::ArrayDescription;
use headstack_sim::faults::Fault;
use headstack_sim::faults::contents::{Damage, ReadCorruption};
use headstack_sim::power_cut::{InterruptedChange, LostWrites, Verdict};
use headstack_workload::Span;

use super::damage::{self, PreviousData};
use super::undo::{Change, UndoLog};
use crate::LiveError;
use crate::budget::{Budget, Share};
use crate::contents::Contents;
use crate::journal::Journal;
use crate::members::{ArrayMembers, GroupMismatches};

/// Callback after a power cut.
struct OnCut(Box<dyn Fn() + Send>);

impl std::fmt::Debug for OnCut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnCut")
    }
}

/// State of power, and the undo log of contents that a power cut affects.
#[derive(Debug)]
pub struct PowerGate {
    kept: Mutex<UndoState>,
    /// Whether changes can be lost.
    keeps_log: AtomicBool,
    /// Whether reads may return other data than stored: their replies then have room for all of it.
    spoils_reads: AtomicBool,
    /// Outcomes of changes, applied by the next thread that changes contents: the clock has no time to free pre-images.
    settled: Mutex<Vec<Verdict>>,
    is_on: AtomicBool,
    cuts: AtomicU32,
    /// Callbacks after each power cut: they disconnect all clients, also those that wait for nothing.
    on_cut: Mutex<Vec<OnCut>>,
    /// Whether members of an array differ from the data implied by the contents.
    members_differ: AtomicBool,
    /// States of groups reported by the model, for the next access to members: the clock does not wait.
    standings: Mutex<Vec<Vec<GroupStatus>>>,
    /// Record of everything that happens to contents, if requested.
    journal: RwLock<Option<Journal>>,
    keeps_journal: bool,
}

/// A requested change of contents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContentChange<'a> {
    /// Range.
    pub span: Span,
    /// New data.
    pub change: Change<'a>,
    /// Whether it must be durable when it is acknowledged.
    pub forced: bool,
    /// Issue time.
    pub issued: Instant,
}

/// Numbers of a change that was made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordedChange {
    /// In the undo log, if there is one.
    pub undo: Option<u64>,
    /// In the journal, if there is one.
    pub journal: Option<u64>,
}

/// Pre-images, and their memory.
#[derive(Debug)]
struct UndoState {
    log: UndoLog,
    members: Option<ArrayMembers>,
    /// Previous data for reads that return them.
    older: PreviousData,
    share: Share,
}

impl UndoState {
    /// Adjusts the memory after the log has grown with memory from `from`, or has shrunk.
    fn balance(&mut self, from: Option<&mut Share>) {
        let members_bytes = self.members.as_ref().map_or(0, ArrayMembers::memory_bytes);
        let (has, needs) = (self.share.bytes(), self.log.memory_bytes() + self.older.memory_bytes + members_bytes);
        match from {
            Some(from) if needs > has => self.share.take_over(from, needs - has),
            _ => self.share.shrink(needs),
        }
    }

    /// Accounts for growth of the data kept for faults and of members' differences, without waiting.
    fn count(&mut self) {
        let mut nothing = self.share.sibling();
        self.balance(Some(&mut nothing));
    }

    fn settle(&mut self, contents: &Contents, verdicts: &[Verdict]) -> io::Result<LostWrites> {
        let lost = self.log.settle(contents, verdicts);
        self.balance(None);
        lost
    }
}

impl PowerGate {
    /// Creates the gate with power on. With `keeps_log`, changes can be undone, with memory of the budget. Members of
    /// `array` can differ from the contents.
    pub(crate) fn new(
        keeps_log: bool,
        array: Option<&ArrayDescription>,
        journal: Option<Journal>,
        budget: &Budget,
    ) -> PowerGate {
        let members = array.map(ArrayMembers::of);
        let kept =
            UndoState { log: UndoLog::default(), members, older: PreviousData::default(), share: budget.share() };
        PowerGate {
            kept: Mutex::new(kept),
            keeps_log: AtomicBool::new(keeps_log),
            spoils_reads: AtomicBool::new(false),
            settled: Mutex::default(),
            is_on: AtomicBool::new(true),
            cuts: AtomicU32::new(0),
            on_cut: Mutex::default(),
            members_differ: AtomicBool::new(false),
            standings: Mutex::default(),
            keeps_journal: journal.is_some(),
            journal: RwLock::new(journal),
        }
    }

    /// Records something in the journal, if there is one.
    pub(crate) fn note<T>(&self, say: impl FnOnce(&Journal) -> T) -> Option<T> {
        if !self.keeps_journal {
            return None;
        }
        self.journal.read().expect("the lock is not poisoned").as_ref().map(say)
    }

    /// Completes the journal.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn finish_journal(&self) -> Result<(), LiveError> {
        self.journal.write().expect("the lock is not poisoned").take().map_or(Ok(()), Journal::finish)
    }

    /// Prepares for a fault: data that it needs are kept from now on.
    pub fn expect(&self, fault: &Fault) {
        self.keeps_log.fetch_or(fault.changes_contents(), Ordering::AcqRel);
        self.spoils_reads.fetch_or(fault.spoils_reads(), Ordering::AcqRel);
    }

    /// Whether reads may return other data than stored.
    pub fn spoils_reads(&self) -> bool {
        self.spoils_reads.load(Ordering::Acquire)
    }

    /// Whether power is on.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Number of power cuts: agreements from before the last one are void.
    pub fn cuts(&self) -> u32 {
        self.cuts.load(Ordering::Acquire)
    }

    /// Whether the previous data of changes are kept.
    pub fn keeps_log(&self) -> bool {
        self.keeps_log.load(Ordering::Acquire)
    }

    /// Changes contents and calls `hand_in` to notify the clock, as one step: a power cut affects both or neither.
    /// `hand_in` receives the change's numbers; none if nothing is kept, or there is no power, which the clock knows.
    /// Memory for the previous data is taken from `share`.
    ///
    /// # Errors
    /// The file system's error; then nothing is changed or submitted.
    pub(crate) fn change(
        &self,
        contents: &Contents,
        content_change: &ContentChange<'_>,
        share: &mut Share,
        hand_in: impl FnOnce(RecordedChange, &mut Share),
    ) -> io::Result<()> {
        let ContentChange { span, change, forced, issued } = *content_change;
        let keeps_log = self.keeps_log();
        if !keeps_log && !self.keeps_journal {
            if self.is_on() {
                change.apply(contents, span)?;
            }
            hand_in(RecordedChange::default(), share);
            return Ok(());
        }
        let mut kept = self.undo_state();
        if keeps_log {
            kept.settle(contents, &self.take_settled())?;
        }
        let mut made = RecordedChange::default();
        if self.is_on() {
            if keeps_log {
                let differ = self.members_differ();
                if differ {
                    self.with_members(&mut kept, contents, |_, _| ())?;
                }
                let number = kept.log.apply(contents, span, change);
                if let Some(members) = kept.members.as_mut().filter(|_| differ && number.is_ok()) {
                    members.written(span);
                    self.members_differ.store(members.differ(), Ordering::Release);
                }
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

    /// Frees data that can no longer be restored, in memory and on the disk.
    ///
    /// # Errors
    /// The file system's error.
    pub fn tidy(&self, contents: &Contents) -> io::Result<()> {
        if !self.keeps_log() {
            return Ok(());
        }
        self.undo_state().settle(contents, &self.take_settled()).map(drop)
    }

    /// Applies damages of faults to contents at once.
    ///
    /// # Errors
    /// The file system's error.
    pub fn damage(&self, damages: &mut Vec<Damage>, contents: &Contents) -> io::Result<()> {
        if !self.keeps_log() {
            damages.clear();
            return Ok(());
        }
        let mut kept = self.undo_state();
        kept.settle(contents, &self.take_settled())?;
        let places: Vec<Span> = damages.iter().flat_map(damage::places).collect();
        let mut done = Ok(());
        for damage in damages.drain(..) {
            let one = match damage {
                Damage::OfMember { member, what } => {
                    let damaged = self
                        .with_members(&mut kept, contents, |members, log| members.damage(member, &what, contents, log));
                    damaged.and_then(|damaged| damaged.unwrap_or(Ok(())))
                }
                damage => {
                    let UndoState { log, older, .. } = &mut *kept;
                    log.damage(contents, &damage, older)
                }
            };
            done = done.and(one);
        }
        kept.count();
        done?;
        self.note(|journal| journal.became(&places, contents)).unwrap_or(Ok(()))
    }

    /// Alters the data of a read, with its address, as faults require.
    ///
    /// # Errors
    /// The file system's error.
    pub fn spoil(
        &self,
        read: Option<(u64, &mut [u8])>,
        spoils: &[ReadCorruption],
        contents: &Contents,
    ) -> io::Result<()> {
        let mut kept = self.undo_state();
        let done =
            read.map_or(Ok(()), |(start_bytes, data)| damage::spoil(data, start_bytes, spoils, contents, &kept.older));
        kept.older.was_read(spoils);
        kept.balance(None);
        done
    }

    /// Applies the outcomes of changes: lost ones are undone at once, and returned. Each member of an array keeps its
    /// own progress of the unfinished changes.
    ///
    /// # Errors
    /// The file system's error if contents cannot be restored.
    pub fn settle(
        &self,
        verdicts: &mut Vec<Verdict>,
        halfway: &[InterruptedChange],
        contents: &Contents,
    ) -> io::Result<Option<LostWrites>> {
        let is_lost = !halfway.is_empty() || verdicts.iter().any(|verdict| verdict.fate.is_lost());
        if !is_lost || !self.keeps_log() {
            self.settled.lock().expect("the lock is not poisoned").append(verdicts);
            return Ok(None);
        }
        let mut kept = self.undo_state();
        let gone = verdicts.iter().filter(|verdict| verdict.fate.is_lost());
        let places: Vec<Span> = gone.map(|verdict| verdict.span).collect();
        let mut before = self.take_settled();
        before.append(verdicts);
        let met = self.with_members(&mut kept, contents, |members, log| members.before_cut(halfway, contents, log))?;
        let unfinished = met.transpose()?.unwrap_or_default();
        let lost = kept.settle(contents, &before)?;
        self.note(|journal| journal.became(&places, contents)).unwrap_or(Ok(()))?;
        self.with_members(&mut kept, contents, |members, log| members.cut(&unfinished, contents, log))?.transpose()?;
        Ok(Some(lost))
    }

    /// Whether members of an array differ from the data implied by the contents.
    #[inline]
    pub fn members_differ(&self) -> bool {
        self.members_differ.load(Ordering::Acquire)
    }

    /// Reads data as a client sees them.
    ///
    /// # Errors
    /// The file system's error.
    pub fn read(&self, contents: &Contents, start_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        if !self.members_differ() {
            return contents.read(start_bytes, into);
        }
        let mut kept = self.undo_state();
        // Members determine the contents: data missing by now may differ from those before.
        self.with_members(&mut kept, contents, |_, _| ())?;
        contents.read(start_bytes, into)?;
        self.with_members(&mut kept, contents, |members, _| members.read(start_bytes, into))?;
        Ok(())
    }

    /// Stores the assignment of members in an array's groups, and the progress of passes.
    pub fn stand(&self, standings: Vec<GroupStatus>) {
        let mut reports = self.standings.lock().expect("the lock is not poisoned");
        let passes =
            |of: &[GroupStatus]| of.iter().map(|own| own.pass.as_ref().map(|pass| pass.number)).collect::<Vec<_>>();
        // The last report is sufficient, but each pass must be followed to its end.
        if reports.last().is_some_and(|last| passes(last) == passes(&standings)) {
            reports.pop();
        }
        reports.push(standings);
    }

    /// Returns the mismatches of each group; empty for anything but an array.
    ///
    /// # Errors
    /// The file system's error.
    pub fn mismatches(&self, contents: &Contents) -> io::Result<Vec<GroupMismatches>> {
        let reports = self.with_members(&mut self.undo_state(), contents, |members, _| members.mismatches())?;
        Ok(reports.unwrap_or_default())
    }

    /// Calls a function with the members of an array in the model's present state, and updates whether they differ.
    fn with_members<T>(
        &self,
        kept: &mut UndoState,
        contents: &Contents,
        what: impl FnOnce(&mut ArrayMembers, &mut UndoLog) -> T,
    ) -> io::Result<Option<T>> {
        let UndoState { log, members: Some(members), .. } = kept else { return Ok(None) };
        let standings = std::mem::take(&mut *self.standings.lock().expect("the lock is not poisoned"));
        for standing in &standings {
            members.follow(standing, contents, log)?;
        }
        let done = what(members, log);
        let changed = log.take_changed_for_good();
        self.members_differ.store(members.differ(), Ordering::Release);
        // Differences are counted, even if there was no memory for them.
        kept.count();
        if !changed.is_empty() {
            self.note(|journal| journal.became(&changed, contents)).unwrap_or(Ok(()))?;
        }
        Ok(Some(done))
    }

    /// Notes the `cuts`th power failure: contents do not change any more, and threads that were changing them have
    /// notified the clock.
    pub fn close(&self, cuts: u32) {
        self.cuts.store(cuts, Ordering::Release);
        self.is_on.store(false, Ordering::Release);
        drop(self.undo_state());
    }

    /// Adds a callback for each power cut. The clock calls it, so it must not wait.
    pub fn on_cut(&self, hang_up: impl Fn() + Send + 'static) {
        self.on_cut.lock().expect("the lock is not poisoned").push(OnCut(Box::new(hang_up)));
    }

    /// Disconnects clients after a power cut.
    pub fn hang_up(&self) {
        self.on_cut.lock().expect("the lock is not poisoned").iter().for_each(|OnCut(hang_up)| hang_up());
    }

    /// Restores power.
    pub fn open(&self) {
        self.is_on.store(true, Ordering::Release);
    }

    fn undo_state(&self) -> MutexGuard<'_, UndoState> {
        self.kept.lock().expect("the lock is not poisoned")
    }

    fn take_settled(&self) -> Vec<Verdict> {
        std::mem::take(&mut *self.settled.lock().expect("the lock is not poisoned"))
    }
}
