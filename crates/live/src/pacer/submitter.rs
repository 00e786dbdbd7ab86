//! [`Submitter`]: the entry to the session. A request is recorded, changes contents and reaches the clock in one step.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use headstack_sim::Outcome;
use headstack_sim::power_cut::Changed;
use headstack_sim::timeline::ContentEffect;
use headstack_workload::{Kind, Request};

use super::{Answer, Arrival, Shared};
use crate::budget::{Budget, Share};
use crate::contents::Contents;
use crate::power::Change;
use crate::power::gate::{ContentChange, PowerGate};
use crate::stream::Stream;
use crate::wall::{ThreadRole, be_punctual};
use crate::witness::Client;

/// Submits requests.
#[derive(Clone, Debug)]
pub struct Submitter {
    pub(super) shared: Arc<Shared>,
    pub(super) floor: Duration,
}

impl Submitter {
    /// Returns a submitter for a path with that cost in wall-clock time: its requests count as issued that long before
    /// they are received.
    pub fn with_floor_ns(&self, floor_ns: u64) -> Submitter {
        self.shared.floor_ns.fetch_max(floor_ns, Ordering::Relaxed);
        Submitter { floor: Duration::from_nanos(floor_ns), ..self.clone() }
    }

    /// Whether every request takes no time: exports may then answer by themselves, and only count.
    pub fn is_instant(&self) -> bool {
        self.shared.is_instant
    }

    /// Counts requests that were answered without the clock.
    pub fn count_at_once(&self, requests: u64) {
        self.shared.at_once.fetch_add(requests, Ordering::Relaxed);
    }

    /// Memory for requests.
    pub fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    /// Registers a client that connected over `stream`, or over another one that is relayed to it.
    pub(crate) fn meet(&self, stream: &Stream, is_relayed: bool) -> Arc<Client> {
        self.shared.scene.meet(stream, is_relayed)
    }

    /// Gives this thread a priority just below the clock's, if answers take any time.
    pub(crate) fn keep_up(&self) {
        if !self.shared.is_instant {
            be_punctual(ThreadRole::Path, self.shared.realtime);
        }
    }

    /// Power, and its effect on contents.
    pub fn gate(&self) -> &PowerGate {
        &self.shared.gate
    }

    /// Submits a request that was received at `at`; its answer is sent by the clock thread.
    pub fn submit(&self, at: Instant, request: Request, answer: Box<dyn Answer>) {
        let is_flush = request.kind == Kind::Flush;
        let noted = if is_flush { self.gate().note(|journal| journal.flush(self.issued(at))) } else { None };
        self.hand_in(at, request, (ContentEffect::default(), noted.flatten()), answer);
    }

    /// Issue time of a request that was received at `at`.
    fn issued(&self, at: Instant) -> Instant {
        at.checked_sub(self.floor).unwrap_or(at)
    }

    /// Submits a request that changes contents, durably before its acknowledgement if `forced`. Memory for the previous
    /// contents is taken from `share`, and `answer` gets the rest.
    ///
    /// # Errors
    /// The file system's error; then nothing is changed, and no answer is created.
    pub(crate) fn submit_change(
        &self,
        at: Instant,
        request: Request,
        (contents, change, forced): (&Contents, Change<'_>, bool),
        share: &mut Share,
        answer: impl FnOnce(&mut Share) -> Box<dyn Answer>,
    ) -> std::io::Result<()> {
        let holds = self.shared.patterns_in(change);
        let content_change = ContentChange { span: request.span(), change, forced, issued: self.issued(at) };
        self.shared.gate.change(contents, &content_change, share, |made, share| {
            let changed = made.undo.map(|number| Changed { number, forced });
            self.hand_in(at, request, (ContentEffect { changed, holds }, made.journal), answer(share));
        })
    }

    fn hand_in(
        &self,
        at: Instant,
        request: Request,
        (touch, journal): (ContentEffect, Option<u64>),
        answer: Box<dyn Answer>,
    ) {
        let mut inbox = self.shared.inbox();
        if inbox.closing {
            drop(inbox);
            return answer.send(Outcome::Vanished, Duration::ZERO);
        }
        let copied = Instant::now();
        let issued = self.issued(at);
        inbox.arrivals.push(Arrival { issued, received: at, copied, request, touch, journal, answer });
        // The first of a batch wakes the clock; the others find it awake.
        let first = inbox.arrivals.len() == 1;
        drop(inbox);
        if first {
            self.shared.wake();
        }
    }
}
