//! [`Player`]: returns when the next request is due, and which one that is.

use std::collections::{BTreeMap, VecDeque};

use headstack_result::Fidelity;

use crate::dependencies::{Dependencies, Rule};
use crate::issue::{Arrived, Issue, Slot};
use crate::mode::{Replay, ReplayError, ReplayMode};
use crate::recording::{Recording, Source};

/// When the next request is to be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// At this time on the player's clock, or later; sooner only if a request completes before.
    At(u64),
    /// Not before a request completes.
    AfterCompletion,
    /// Never: the whole trace is issued and complete.
    Never,
}

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct Played {
    /// How faithful it was.
    pub fidelity: Fidelity,
    /// IOPS that were offered whether or not the system kept up; only in [`ReplayMode::Timed`].
    pub offered_per_s: Option<f64>,
    /// Notes on changes to the trace's requests.
    pub notes: Vec<String>,
}

/// A trace that is being played on a system, which belongs to the caller: the caller asks what is due, issues what it
/// [takes](Self::take), and reports what is [issued](Self::issued) and [complete](Self::completed).
///
/// The player's clock is the caller's too. It starts at 0, counts nanoseconds below 2^63 and never decreases. The trace
/// is read as the clock advances, so memory is bounded by the requests that have arrived and are not complete: those in
/// the system, and in [`ReplayMode::Closed`] and [`ReplayMode::Dependent`] those that wait for others, which pile up if
/// the system is slower than the recorded one.
pub struct Player<'a, E> {
    recording: Recording<'a, E>,
    plan: Plan,
    mode: ReplayMode,
    outstanding: u64,
    /// Requests whose flush is in flight.
    flushing: BTreeMap<Slot, Issue>,
    /// Requests whose flush is complete, in that order: they are issued before all others.
    flushed: VecDeque<Issue>,
    /// The latest reported time.
    now_ns: u64,
}

/// When the next request is issued.
enum Plan {
    Timed,
    Asap { depth: u64 },
    Dependent(Box<Dependencies>),
}

impl<'a, E: From<ReplayError>> Player<'a, E> {
    /// Creates a player at the beginning of the trace that `source` yields, on the whole blocks of `block_bytes` of a
    /// system of `capacity_bytes`.
    ///
    /// # Errors
    /// Those of [`Replay::check`]; blocks of no bytes; a trace without requests, or whose first cannot be replayed;
    /// those of `source`.
    pub fn new(
        replay: &Replay,
        capacity_bytes: u64,
        block_bytes: u32,
        source: &'a mut Source<'a, E>,
    ) -> Result<Self, E> {
        replay.check()?;
        let Some(blocks) = capacity_bytes.checked_div(u64::from(block_bytes)) else {
            return Err(ReplayError::Settings("block_bytes must be at least 1, not 0".to_owned()).into());
        };
        let capacity_bytes = blocks * u64::from(block_bytes);
        let plan = match replay.mode {
            ReplayMode::Timed { .. } => Plan::Timed,
            ReplayMode::Asap { depth } => Plan::Asap { depth: u64::from(depth) },
            ReplayMode::Closed => Plan::Dependent(Box::new(Dependencies::new(Rule::Closed))),
            ReplayMode::Dependent { min_ns, max_ns } => {
                let rule = match max_ns {
                    Some(max_ns) => Rule::Within { min_ns, max_ns },
                    None => Rule::LastRun { min_ns },
                };
                Plan::Dependent(Box::new(Dependencies::new(rule)))
            }
        };
        let mut recording = Recording::new(replay, capacity_bytes, block_bytes, source);
        if recording.peek()?.is_none() && recording.books.recorded == 0 {
            return Err(ReplayError::Settings("the trace has no requests".to_owned()).into());
        }
        let (flushing, flushed) = (BTreeMap::new(), VecDeque::new());
        Ok(Player { recording, plan, mode: replay.mode, outstanding: 0, flushing, flushed, now_ns: 0 })
    }

    /// Returns when the next request is due.
    ///
    /// # Errors
    /// Errors of the source; a request that cannot be replayed.
    #[inline]
    pub fn next_due(&mut self) -> Result<Due, E> {
        if let Some(write) = self.flushed.front() {
            return Ok(Due::At(write.due_ns));
        }
        let next_ns = match &mut self.plan {
            Plan::Timed => self.recording.peek()?.map(|next| next.scheduled_ns),
            Plan::Asap { depth } if self.outstanding < *depth => self.recording.peek()?.map(|_| self.now_ns),
            Plan::Asap { .. } => None,
            Plan::Dependent(dependencies) => dependencies.next_ns(&mut self.recording)?,
        };
        // With nothing in flight there is room, and no request waits for another.
        Ok(match next_ns {
            Some(at_ns) => Due::At(at_ns),
            None if self.outstanding == 0 => Due::Never,
            None => Due::AfterCompletion,
        })
    }

    /// Returns the next of the requests that are due by `now_ns`; `None` if there is none, possibly even at the time
    /// that [`next_due`](Self::next_due) returned: that does not read ahead. The caller issues it, now or when there is
    /// room, and reports [when](Self::issued).
    ///
    /// # Errors
    /// Those of the source; a request that cannot be replayed; a trace without completions where they are needed.
    #[inline]
    pub fn take(&mut self, now_ns: u64) -> Result<Option<Issue>, E> {
        self.now_ns = now_ns;
        if let Some(write) = self.flushed.pop_front() {
            return Ok(Some(write));
        }
        let next = match &mut self.plan {
            Plan::Timed if self.recording.peek()?.is_none_or(|next| next.scheduled_ns > now_ns) => None,
            Plan::Timed => self.recording.take(|_, _| {})?.map(|(slot, arrived)| (arrived.scheduled_ns, slot, arrived)),
            Plan::Asap { depth } if self.outstanding < *depth => {
                self.recording.take(|_, _| {})?.map(|(slot, arrived)| (now_ns, slot, arrived))
            }
            Plan::Asap { .. } => None,
            Plan::Dependent(dependencies) => dependencies.take(&mut self.recording, now_ns)?,
        };
        Ok(next.map(|(due_ns, slot, arrived)| {
            self.outstanding += 1;
            let Arrived { number, arrival_ns, scheduled_ns, request, pre_flush, .. } = *arrived;
            let issue = Issue { request, due_ns, number, arrival_ns, scheduled_ns, slot, is_after_flush: false };
            if !pre_flush {
                return issue;
            }
            self.flushing.insert(slot, issue);
            issue.flush_before()
        }))
    }

    /// Records that a taken request is issued at `at_ns`. A recorded request with a flush before it counts when its
    /// flush is issued.
    #[inline]
    pub fn issued(&mut self, issue: &Issue, at_ns: u64) {
        if !issue.is_after_flush {
            self.recording.books.issued(issue, at_ns);
        }
    }

    /// Records that the issued request in `slot` completed or failed at `at_ns`. After a flush that a write waits for,
    /// that write is due.
    #[inline]
    pub fn completed(&mut self, slot: Slot, at_ns: u64) {
        self.now_ns = at_ns;
        if !self.flushing.is_empty()
            && let Some(write) = self.flushing.remove(&slot)
        {
            self.flushed.push_back(write.after_flush(at_ns));
            return;
        }
        self.outstanding = self.outstanding.saturating_sub(1);
        let books = &mut self.recording.books;
        books.completed(slot, at_ns);
        match &mut self.plan {
            Plan::Timed | Plan::Asap { .. } => books.release(slot),
            Plan::Dependent(dependencies) => dependencies.completed(slot, at_ns, books),
        }
    }

    /// Returns the result up to now.
    pub fn finish(self) -> Played {
        let scale = self.mode.time_scale();
        let fidelity = self.recording.books.fidelity(scale);
        let rate = fidelity.recorded_per_s.filter(|_| matches!(self.plan, Plan::Timed));
        let offered_per_s = rate.map(|rate| rate / scale).filter(|rate| rate.is_finite());
        Played { offered_per_s, notes: self.recording.notes(), fidelity }
    }
}
