//! Where exports and the clock meet over contents and power: what changes contents, and what takes changes back.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use headstack_workload::Span;

use super::exposure::{Fate, Verdict};
use super::undo::{Change, UndoLog};
use crate::contents::Contents;

/// Power, and the undo log of the contents that lose something with it.
#[derive(Debug)]
pub struct Gate {
    /// None where nothing can be lost that a request has done.
    log: Option<Mutex<UndoLog>>,
    /// What has become of changes, for whoever changes something next: the clock has no time to free pre-images.
    settled: Mutex<Vec<Verdict>>,
    is_on: AtomicBool,
    cuts: AtomicU32,
}

impl Gate {
    /// Power is on. With `keeps_log`, changes can be taken back.
    pub fn new(keeps_log: bool) -> Gate {
        let log = keeps_log.then(Mutex::default);
        Gate { log, settled: Mutex::default(), is_on: AtomicBool::new(true), cuts: AtomicU32::new(0) }
    }

    /// Power is on.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// How often power failed: what was agreed before the last time is void.
    pub fn cuts(&self) -> u32 {
        self.cuts.load(Ordering::Acquire)
    }

    /// Changes contents and has `hand_in` tell the clock of it, as one step: a power cut finds both or neither. It hears
    /// the change's number in the undo log; of none where there is no log, or no power, which the clock knows.
    ///
    /// # Errors
    /// What the file system says: nothing is changed then, and nothing handed in.
    pub fn change(
        &self,
        contents: &Contents,
        span: Span,
        change: Change<'_>,
        hand_in: impl FnOnce(Option<u64>),
    ) -> io::Result<()> {
        let Some(log) = &self.log else {
            if self.is_on() {
                change.apply(contents, span)?;
            }
            hand_in(None);
            return Ok(());
        };
        let mut log = lock(log);
        for verdict in self.take_settled() {
            log.keep(verdict.number, verdict.span);
        }
        let number = if self.is_on() { Some(log.apply(contents, span, change)?) } else { None };
        hand_in(number);
        Ok(())
    }

    /// What has become of changes: what is lost is taken back at once.
    ///
    /// # Errors
    /// What the file system says when contents cannot be what they were.
    pub fn settle(&self, verdicts: &mut Vec<Verdict>, contents: &Contents) -> io::Result<()> {
        let is_lost = verdicts.iter().any(|verdict| verdict.fate == Fate::Lost);
        let Some(log) = self.log.as_ref().filter(|_| is_lost) else {
            self.settled.lock().expect("nobody panics with it").append(verdicts);
            return Ok(());
        };
        let mut log = lock(log);
        let mut before = self.take_settled();
        before.append(verdicts);
        for Verdict { number, span, fate } in before {
            match fate {
                Fate::Durable => log.keep(number, span),
                Fate::Lost => log.undo(contents, number, span)?,
            }
        }
        Ok(())
    }

    /// Power failed, for the `cuts`th time: contents do not change any more, and whoever was changing them has told the clock.
    pub fn close(&self, cuts: u32) {
        self.cuts.store(cuts, Ordering::Release);
        self.is_on.store(false, Ordering::Release);
        if let Some(log) = &self.log {
            drop(lock(log));
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

fn lock(log: &Mutex<UndoLog>) -> MutexGuard<'_, UndoLog> {
    log.lock().expect("nobody panics with the undo log in hand")
}
