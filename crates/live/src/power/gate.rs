//! Where exports and the clock meet over contents and power: what changes contents, and what takes changes back.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use headstack_sim::power_cut::{Fate, Lost, Verdict};
use headstack_workload::Span;

use super::undo::{Change, UndoLog};
use crate::budget::{Budget, Share};
use crate::contents::Contents;

/// Power, and the undo log of the contents that lose something with it.
#[derive(Debug)]
pub struct Gate {
    /// None where nothing can be lost that a request has done.
    kept: Option<Mutex<Kept>>,
    /// What has become of changes, for whoever changes something next: the clock has no time to free pre-images.
    settled: Mutex<Vec<Verdict>>,
    is_on: AtomicBool,
    cuts: AtomicU32,
}

/// Pre-images, and the memory that they take.
#[derive(Debug)]
struct Kept {
    log: UndoLog,
    share: Share,
}

impl Kept {
    /// The log has grown by what `from` was taken for, or has shrunk.
    fn balance(&mut self, from: Option<&mut Share>) {
        let (has, needs) = (self.share.bytes(), self.log.memory_bytes());
        match from {
            Some(from) if needs > has => self.share.take_over(from, needs - has),
            _ => self.share.shrink(needs),
        }
    }

    fn settle(&mut self, contents: &Contents, verdicts: &[Verdict]) -> io::Result<Lost> {
        let lost = self.log.settle(contents, verdicts);
        self.balance(None);
        lost
    }
}

impl Gate {
    /// Power is on. With `keeps_log`, changes can be taken back, for memory of the budget.
    pub fn new(keeps_log: bool, budget: &Budget) -> Gate {
        let kept = keeps_log.then(|| Mutex::new(Kept { log: UndoLog::default(), share: budget.share() }));
        Gate { kept, settled: Mutex::default(), is_on: AtomicBool::new(true), cuts: AtomicU32::new(0) }
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
        self.kept.is_some()
    }

    /// Changes contents and has `hand_in` tell the clock of it, as one step: a power cut finds both or neither. It hears
    /// the change's number in the undo log; of none where there is no log, or no power, which the clock knows. What was
    /// there before is kept in memory that is taken from `share`.
    ///
    /// # Errors
    /// What the file system says: nothing is changed then, and nothing handed in.
    pub fn change(
        &self,
        contents: &Contents,
        span: Span,
        change: Change<'_>,
        share: &mut Share,
        hand_in: impl FnOnce(Option<u64>, &mut Share),
    ) -> io::Result<()> {
        let Some(kept) = &self.kept else {
            if self.is_on() {
                change.apply(contents, span)?;
            }
            hand_in(None, share);
            return Ok(());
        };
        let mut kept = lock(kept);
        kept.settle(contents, &self.take_settled())?;
        let number = if self.is_on() {
            let number = kept.log.apply(contents, span, change);
            kept.balance(Some(share));
            Some(number?)
        } else {
            None
        };
        hand_in(number, share);
        Ok(())
    }

    /// Frees what nobody can take back any more, in memory and on the disk.
    ///
    /// # Errors
    /// What the file system says.
    pub fn tidy(&self, contents: &Contents) -> io::Result<()> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let mut kept = lock(kept);
        kept.settle(contents, &self.take_settled()).map(drop)
    }

    /// What has become of changes: what is lost is taken back at once, and told.
    ///
    /// # Errors
    /// What the file system says when contents cannot be what they were.
    pub fn settle(&self, verdicts: &mut Vec<Verdict>, contents: &Contents) -> io::Result<Option<Lost>> {
        let is_lost = verdicts.iter().any(|verdict| verdict.fate != Fate::Durable);
        let Some(kept) = self.kept.as_ref().filter(|_| is_lost) else {
            self.settled.lock().expect("nobody panics with it").append(verdicts);
            return Ok(None);
        };
        let mut kept = lock(kept);
        let mut before = self.take_settled();
        before.append(verdicts);
        kept.settle(contents, &before).map(Some)
    }

    /// Power failed, for the `cuts`th time: contents do not change any more, and whoever was changing them has told the clock.
    pub fn close(&self, cuts: u32) {
        self.cuts.store(cuts, Ordering::Release);
        self.is_on.store(false, Ordering::Release);
        if let Some(kept) = &self.kept {
            drop(lock(kept));
        }
    }

    /// Power is back.
    pub fn open(&self) {
        self.is_on.store(true, Ordering::Release);
    }

    fn take_settled(&self) -> Vec<Verdict> {
        std::mem::take(&mut *self.settled.lock().expect("nobody panics with it"))
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().expect("nobody panics with the undo log in hand")
}
