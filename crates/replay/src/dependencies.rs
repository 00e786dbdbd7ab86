//! [`Dependencies`]: which completions a recorded request waited for, inferred from the trace and waited for again.

use std::collections::VecDeque;

use crate::earliest_queue::EarliestQueue;
use crate::fidelity::ReplayCounts;
use crate::issue::{Arrived, Slot};
use crate::mode::{ReplayError, ReplayMode};
use crate::recording::Recording;

/// Rule by which dependencies are inferred.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// A request belongs to the virtual client whose last request was complete last before it arrived (of several, the
    /// one that had arrived first): each request is waited for by at most one other.
    Closed,
    /// A request waited for the last completions at least `min_ns` before it without another arrival in between.
    LastRun { min_ns: u64 },
    /// A request waited for all that were complete between `min_ns` and `max_ns` before it arrived.
    Within { min_ns: u64, max_ns: u64 },
}

impl Rule {
    /// Returns the allowed age of completions.
    fn age_ns(self) -> (u64, u64) {
        match self {
            Rule::Closed => (0, u64::MAX),
            Rule::LastRun { min_ns } => (min_ns, ReplayMode::REACTION_MAX_NS),
            Rule::Within { min_ns, max_ns } => (min_ns, max_ns),
        }
    }
}

/// A trace with this many requests without a completion is assumed to have no completions.
const UNPAIRED_MAX: u64 = 1 << 14;

/// A request from the moment at which it is read until it is complete and no other can wait for it any more.
#[derive(Default)]
struct Node {
    arrived: Arrived,
    /// Requests that it still waits for.
    missing: u32,
    /// Latest completion of those that it waited for.
    ready_ns: u64,
    /// Time from there to its issue, as recorded.
    slack_ns: u64,
    /// Time at which the replay completed it.
    done_ns: Option<u64>,
    /// Whether requests that are not read yet may wait for it.
    awaited: bool,
    /// Requests that wait for it.
    waiters: Vec<Slot>,
}

impl Node {
    /// Whether it is still that of request `number`, for which others may wait.
    fn is_awaited(&self, number: u64) -> bool {
        self.arrived.number == number && self.awaited
    }
}

/// Requests that were read, and their dependencies. The largest times are below 2^63, so that differences of them fit.
pub struct Dependencies {
    rule: Rule,
    /// Nodes by their slots.
    nodes: Vec<Node>,
    /// Requests complete when the last one arrived, but younger than the least age, by (recorded completion, slot).
    young: VecDeque<(u64, Slot)>,
    most_in_flight: usize,
    /// Earlier completions that the next requests may wait for, by (recorded completion, slot), latest last.
    finished: VecDeque<(u64, Slot)>,
    /// For [`Rule::LastRun`]: whether a request has arrived since the last of those completions, so that the next
    /// completion begins a new run.
    is_answered: bool,
    /// Requests that wait only for their time: (issue, number, slot).
    due: EarliestQueue<(u64, u64, Slot)>,
    /// By how much awaited requests were completed later than recorded, if that is known to be earlier than others:
    /// (lag, number, slot). The next request read is due no sooner than the smallest lag, nor, as it may wait for none,
    /// than recorded.
    lags: EarliestQueue<(i64, u64, Slot)>,
    read: u64,
    with_completion: u64,
}

impl Dependencies {
    /// Creates an empty set.
    pub fn new(rule: Rule) -> Self {
        Dependencies {
            rule,
            nodes: Vec::new(),
            young: VecDeque::new(),
            most_in_flight: 0,
            finished: VecDeque::new(),
            is_answered: false,
            due: EarliestQueue::default(),
            lags: EarliestQueue::default(),
            read: 0,
            with_completion: 0,
        }
    }

    /// Returns the time before which no request is due, according to completions up to now; `None` if that depends on a
    /// completion. Reads nothing.
    ///
    /// # Errors
    /// Those of the trace.
    #[inline]
    pub fn next_ns<E: From<ReplayError>>(&mut self, recording: &mut Recording<E>) -> Result<Option<u64>, E> {
        let unread_ns = self.unread_ns(recording)?;
        Ok(self.due_ns().into_iter().chain(unread_ns).min())
    }

    /// Returns the next request that is due by `now_ns`, with its due time and its slot. Reads all that may come before
    /// it.
    ///
    /// # Errors
    /// Those of the trace.
    #[inline]
    pub fn take<E: From<ReplayError>>(
        &mut self,
        recording: &mut Recording<E>,
        now_ns: u64,
    ) -> Result<Option<(u64, Slot, &Arrived)>, E> {
        while let Some(unread_ns) = self.unread_ns(recording)?
            && unread_ns <= self.due_ns().unwrap_or(u64::MAX).min(now_ns)
            && let Some((slot, arrived)) = recording.take(|at_ns, slot| self.young.push_back((at_ns, slot)))?
        {
            self.note(slot, arrived);
            self.add(slot, &mut recording.books);
            if self.with_completion == 0 {
                self.demand_completions(if recording.peek()?.is_some() { UNPAIRED_MAX } else { 1 })?;
            }
        }
        Ok(match self.due.first() {
            Some((due_ns, _, slot)) if due_ns <= now_ns => {
                self.due.pop();
                Some((due_ns, slot, &self.nodes[slot.index()].arrived))
            }
            _ => None,
        })
    }

    /// Returns when the first of those that wait only for their time is due.
    #[inline]
    fn due_ns(&self) -> Option<u64> {
        self.due.first().map(|(at_ns, ..)| at_ns)
    }

    /// Returns the time before which no unread request is due; `None` at the end.
    #[inline]
    fn unread_ns<E: From<ReplayError>>(&mut self, recording: &mut Recording<E>) -> Result<Option<u64>, E> {
        let Some(next) = recording.peek()? else {
            return Ok(None);
        };
        // A request that waits for nothing arrives at its recorded time, which is a lag of 0.
        Ok(Some(next.arrival_ns.saturating_add_signed(self.least_lag_ns().min(0))))
    }

    /// Records that the replay has completed a request.
    pub fn completed(&mut self, slot: Slot, at_ns: u64, books: &mut ReplayCounts) {
        let done = &mut self.nodes[slot.index()];
        done.done_ns = Some(at_ns);
        let (number, awaited, completion_ns) = (done.arrived.number, done.awaited, done.arrived.completion_ns);
        if !done.waiters.is_empty() {
            self.wake(slot, at_ns);
        }
        match completion_ns {
            Some(recorded_ns) if awaited => {
                // After a client that pauses for good, stale entries never reach the top.
                if self.lags.len() > 2 * self.nodes.len() {
                    let nodes = &self.nodes;
                    self.lags.retain(|&(_, number, slot)| nodes[slot.index()].is_awaited(number));
                }
                if at_ns < recorded_ns {
                    self.lags.push((at_ns as i64 - recorded_ns as i64, number, slot));
                }
            }
            _ => books.release(slot),
        }
    }

    /// Releases those that waited for a request: they wait for one less.
    fn wake(&mut self, slot: Slot, at_ns: u64) {
        let mut waiters = std::mem::take(&mut self.nodes[slot.index()].waiters);
        for waiter in waiters.drain(..) {
            let waiting = &mut self.nodes[waiter.index()];
            waiting.missing -= 1;
            waiting.ready_ns = waiting.ready_ns.max(at_ns);
            if waiting.missing == 0 {
                self.due.push((waiting.ready_ns.saturating_add(waiting.slack_ns), waiting.arrived.number, waiter));
            }
        }
        // Keeps the list: a node is reused without allocating.
        self.nodes[slot.index()].waiters = waiters;
    }

    /// Fails if none of `unpaired` requests has a completion to infer from.
    fn demand_completions(&self, unpaired: u64) -> Result<(), ReplayError> {
        if self.read >= unpaired {
            let read = self.read;
            return Err(ReplayError::Settings(format!(
                "none of {read} requests has a recorded completion to infer dependencies from; use the mode timed or asap"
            )));
        }
        Ok(())
    }

    /// Adds a request that was read, which waits for nothing yet.
    fn note(&mut self, slot: Slot, arrived: &Arrived) {
        // Slots are assigned consecutively.
        if slot.index() == self.nodes.len() {
            self.nodes.push(Node::default());
        }
        let node = &mut self.nodes[slot.index()];
        (node.missing, node.ready_ns, node.done_ns) = (0, 0, None);
        node.awaited = arrived.completion_ns.is_some();
        node.arrived = *arrived;
        self.read += 1;
        self.with_completion += u64::from(node.awaited);
    }

    /// Infers its dependencies.
    fn add(&mut self, slot: Slot, books: &mut ReplayCounts) {
        let Arrived { number, arrival_ns, completion_ns, .. } = self.nodes[slot.index()].arrived;
        self.finish_until(arrival_ns, books);
        let mut latest_ns = None;
        match self.rule {
            Rule::Closed => {
                if let Some((completion_ns, client)) = self.finished.pop_back() {
                    latest_ns = Some(completion_ns);
                    self.wait_for(slot, client);
                    self.forget(client, books);
                }
            }
            Rule::LastRun { .. } | Rule::Within { .. } => {
                let most = self.most_in_flight + 1;
                for index in self.finished.len().saturating_sub(most)..self.finished.len() {
                    let (completion_ns, parent) = self.finished[index];
                    latest_ns = Some(completion_ns);
                    self.wait_for(slot, parent);
                }
            }
        }
        self.is_answered = true;
        let new = &mut self.nodes[slot.index()];
        new.slack_ns = arrival_ns - latest_ns.unwrap_or(0);
        if new.missing == 0 {
            self.due.push((new.ready_ns.saturating_add(new.slack_ns), number, slot));
        }
        if completion_ns.is_some() {
            self.most_in_flight = self.most_in_flight.max(books.in_flight() + self.young.len());
        }
    }

    #[inline]
    fn wait_for(&mut self, slot: Slot, parent: Slot) {
        match self.nodes[parent.index()].done_ns {
            Some(done_ns) => {
                let ready_ns = &mut self.nodes[slot.index()].ready_ns;
                *ready_ns = (*ready_ns).max(done_ns);
            }
            None => {
                self.nodes[parent.index()].waiters.push(slot);
                self.nodes[slot.index()].missing += 1;
            }
        }
    }

    /// Records that no later request can wait for this one.
    fn forget(&mut self, slot: Slot, books: &mut ReplayCounts) {
        let forgotten = &mut self.nodes[slot.index()];
        forgotten.awaited = false;
        if forgotten.done_ns.is_some() {
            books.release(slot);
        }
    }

    /// Advances the trace's state to an arrival: what was complete, and which completions may be waited for.
    fn finish_until(&mut self, arrival_ns: u64, books: &mut ReplayCounts) {
        let (min_ns, max_ns) = self.rule.age_ns();
        while let Some(&(completion_ns, slot)) = self.young.front()
            && completion_ns.saturating_add(min_ns) <= arrival_ns
        {
            self.young.pop_front();
            match self.rule {
                // They are in order of arrival, and of equals the first to arrive is on top.
                Rule::Closed => {
                    let before = |other: &&(u64, Slot)| other.0 == completion_ns;
                    let equals = self.finished.iter().rev().take_while(before).count();
                    match equals {
                        0 => self.finished.push_back((completion_ns, slot)),
                        _ => self.finished.insert(self.finished.len() - equals, (completion_ns, slot)),
                    }
                }
                // Those of one run are in flight together, so none of them waited for another.
                Rule::LastRun { .. } => {
                    if std::mem::take(&mut self.is_answered) {
                        while let Some((_, answered)) = self.finished.pop_front() {
                            self.forget(answered, books);
                        }
                    }
                    self.finished.push_back((completion_ns, slot));
                }
                Rule::Within { .. } => {
                    self.drop_transitive(slot, min_ns, books);
                    self.finished.push_back((completion_ns, slot));
                }
            }
        }
        while let Some(&(completion_ns, slot)) = self.finished.front()
            && completion_ns.saturating_add(max_ns) < arrival_ns
        {
            self.finished.pop_front();
            self.forget(slot, books);
        }
    }

    /// Drops dependencies that are implied: a request that waits for this one waits for all that it waited for itself.
    /// Those were complete before it arrived, so they are the first of the list, and no other request needs them: this
    /// one stays longer.
    fn drop_transitive(&mut self, slot: Slot, min_ns: u64, books: &mut ReplayCounts) {
        let Arrived { number, arrival_ns, .. } = self.nodes[slot.index()].arrived;
        while let Some(&(completion_ns, earlier)) = self.finished.front()
            && completion_ns.saturating_add(min_ns) <= arrival_ns
            && self.nodes[earlier.index()].arrived.number < number
        {
            self.finished.pop_front();
            self.forget(earlier, books);
        }
    }

    #[inline]
    fn least_lag_ns(&mut self) -> i64 {
        if self.lags.is_empty() {
            return i64::MAX;
        }
        self.find_least_lag_ns()
    }

    fn find_least_lag_ns(&mut self) -> i64 {
        while let Some((lag_ns, number, slot)) = self.lags.first() {
            if self.nodes[slot.index()].is_awaited(number) {
                return lag_ns;
            }
            self.lags.pop();
        }
        i64::MAX
    }
}
