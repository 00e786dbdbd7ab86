//! The way in: requests are noted, change contents and reach the clock in one step.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use headstack_sim::Outcome;
use headstack_sim::power_cut::Changed;
use headstack_sim::timeline::Touch;
use headstack_workload::{Kind, Request};

use super::{Answer, Arrival, Shared};
use crate::budget::{Budget, Share};
use crate::contents::Contents;
use crate::power::Change;
use crate::power::gate::{Asked, Gate};
use crate::stream::Stream;
use crate::wall::{Duty, be_punctual};
use crate::witness::Client;

/// Hands requests in.
#[derive(Clone, Debug)]
pub struct Submitter {
    pub(super) shared: Arc<Shared>,
    pub(super) floor: Duration,
}

impl Submitter {
    /// The same for a path that costs so much of the wall's time: what comes by it counts as issued so long before it is
    /// received.
    pub fn with_floor_ns(&self, floor_ns: u64) -> Submitter {
        self.shared.floor_ns.fetch_max(floor_ns, Ordering::Relaxed);
        Submitter { floor: Duration::from_nanos(floor_ns), ..self.clone() }
    }

    /// Whether every request takes no time at all: exports may answer by themselves then, and only count.
    pub fn is_instant(&self) -> bool {
        self.shared.is_instant
    }

    /// Requests were answered without the clock.
    pub fn count_at_once(&self, requests: u64) {
        self.shared.at_once.fetch_add(requests, Ordering::Relaxed);
    }

    /// Memory for requests.
    pub fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    /// A client has come over `stream`, or over another one that is relayed to it.
    pub(crate) fn meet(&self, stream: &Stream, is_relayed: bool) -> Arc<Client> {
        self.shared.scene.meet(stream, is_relayed)
    }

    /// Has this thread keep up with the clock, behind it, where answers take any time.
    pub(crate) fn keep_up(&self) {
        if !self.shared.is_instant {
            be_punctual(Duty::Path, self.shared.realtime);
        }
    }

    /// Power, and what it does to contents.
    pub fn gate(&self) -> &Gate {
        &self.shared.gate
    }

    /// A request was received at `at`; its answer comes from the clock thread.
    pub fn submit(&self, at: Instant, request: Request, answer: Box<dyn Answer>) {
        let is_flush = request.kind == Kind::Flush;
        let noted = if is_flush { self.gate().note(|journal| journal.flush(self.issued(at))) } else { None };
        self.hand_in(at, request, (Touch::default(), noted.flatten()), answer);
    }

    /// When what was received at `at` was issued.
    fn issued(&self, at: Instant) -> Instant {
        at.checked_sub(self.floor).unwrap_or(at)
    }

    /// As above, of a request that changes contents, which is `forced` to the media before it is acknowledged or not. What
    /// is kept of what was there is taken from `share`, of which `answer` gets the rest.
    ///
    /// # Errors
    /// What the file system says: nothing is changed then, and no answer made.
    pub(crate) fn submit_change(
        &self,
        at: Instant,
        request: Request,
        (contents, change, forced): (&Contents, Change<'_>, bool),
        share: &mut Share,
        answer: impl FnOnce(&mut Share) -> Box<dyn Answer>,
    ) -> std::io::Result<()> {
        let holds = self.shared.patterns_in(change);
        let asked = Asked { span: request.span(), change, forced, issued: self.issued(at) };
        self.shared.gate.change(contents, &asked, share, |made, share| {
            let changed = made.undo.map(|number| Changed { number, forced });
            self.hand_in(at, request, (Touch { changed, holds }, made.journal), answer(share));
        })
    }

    fn hand_in(&self, at: Instant, request: Request, (touch, journal): (Touch, Option<u64>), answer: Box<dyn Answer>) {
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
