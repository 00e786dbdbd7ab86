//! [`Player`]: decides which request is issued next and when.

use std::collections::{BTreeMap, VecDeque};

use headstack_result::Fidelity;

use crate::dependencies::{Dependencies, Rule};
use crate::issue::{Arrived, Issue, Slot};
use crate::mode::{Replay, ReplayError, ReplayMode};
use crate::recording::{Recording, Source};

/// When the next request is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Due at this time on the player's clock or later; earlier only if a request completes before then.
    At(u64),
    /// Not due until a request completes.
    AfterCompletion,
    /// Never due: all requests of the trace are issued and complete.
    Never,
}

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct Played {
    /// How closely the replay matched the trace.
    pub fidelity: Fidelity,
    /// Offered IOPS, independent of whether the system kept up; only in [`ReplayMode::Timed`].
    pub offered_per_s: Option<f64>,
    /// Notes on changes to the trace's requests.
    pub notes: Vec<String>,
}

/// A replay in progress. The caller owns the system: the caller asks when the next request is due, [takes](Self::take)
/// and issues the request, and reports each [issue](Self::issued) and [completion](Self::completed).
///
/// The caller also owns the player's clock, which starts at 0, counts nanoseconds below 2^63 and never decreases. The
/// trace is read as the clock advances, so memory is bounded by the number of requests that have arrived and are not
/// complete. In [`ReplayMode::Closed`] and [`ReplayMode::Dependent`] this includes requests that wait for others, which
/// accumulate if the system is slower than the recorded system.
pub struct Player<'a, E> {
    recording: Recording<'a, E>,
    plan: Plan,
    mode: ReplayMode,
    outstanding: u64,
    /// Requests whose flush is in flight.
    flushing: BTreeMap<Slot, Issue>,
    /// Requests whose flush is complete, in order of completion; issued before all others.
    flushed: VecDeque<Issue>,
    /// Latest time reported by the caller, in ns.
    now_ns: u64,
}

/// How the next request is scheduled.
enum Plan {
    Timed,
    Asap { depth: u64 },
    Dependent(Box<Dependencies>),
}

impl<'a, E: From<ReplayError>> Player<'a, E> {
    /// Creates a player at the beginning of the trace that `source` yields. The system has `capacity_bytes`; only its
    /// whole blocks of `block_bytes` are used.
    ///
    /// # Errors
    /// Returns an error if [`Replay::check`] fails, `block_bytes` is 0, the trace has no requests, its first request
    /// cannot be replayed, or `source` fails.
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
    /// Returns an error if the source fails or a request cannot be replayed.
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
        // With nothing in flight, the queue has room and no request waits for another, so the trace is at its end.
        Ok(match next_ns {
            Some(at_ns) => Due::At(at_ns),
            None if self.outstanding == 0 => Due::Never,
            None => Due::AfterCompletion,
        })
    }

    /// Returns the next request that is due by `now_ns`, if any. There may be none even at the time that
    /// [`next_due`](Self::next_due) returned, which does not read ahead. The caller issues the request now or when
    /// there is room, and reports the time with [`issued`](Self::issued).
    ///
    /// # Errors
    /// Returns an error if the source fails, a request cannot be replayed, or the mode needs completions and the trace
    /// has none.
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

    /// Records that a taken request is issued at `at_ns`. A recorded request with a flush before it counts as issued
    /// when the flush is issued.
    #[inline]
    pub fn issued(&mut self, issue: &Issue, at_ns: u64) {
        if !issue.is_after_flush {
            self.recording.books.issued(issue, at_ns);
        }
    }

    /// Records that the issued request in `slot` completed or failed at `at_ns`. If this was a flush before a write,
    /// the write becomes due.
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

    /// Returns the result so far.
    pub fn finish(self) -> Played {
        let scale = self.mode.time_scale();
        let fidelity = self.recording.books.fidelity(scale);
        let rate = fidelity.recorded_per_s.filter(|_| matches!(self.plan, Plan::Timed));
        let offered_per_s = rate.map(|rate| rate / scale).filter(|rate| rate.is_finite());
        Played { offered_per_s, notes: self.recording.notes(), fidelity }
    }
}
