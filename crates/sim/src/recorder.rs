//! [`Recorder`]: records the requests of a run in the order in which they were issued.

use std::collections::VecDeque;

use headstack_workload::Recorded;

use crate::drive::Completion;
use crate::pending_requests::PendingRequest;

/// A request as a trace holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Arrival, request and completion. A request that was in flight at the end of the run has no completion.
    pub recorded: Recorded,
    /// Time from its arrival until the system began to work on it; `None` if there is no completion.
    pub wait_ns: Option<u64>,
    /// Client that issued it: its number within a scenario, else 0.
    pub client: u32,
    /// Stream to which it belongs: its number within a scenario, else 0.
    pub stream: u32,
}

/// Receives every request of a run, warm-up included, in the order of issue, which is that of arrival.
pub type Sink<'a> = dyn FnMut(&Observed) + 'a;

/// Holds requests back until all that were issued before them are complete, so that a trace is in order of arrival, and
/// requests of one moment keep their order.
#[derive(Debug)]
pub struct Recorder<S> {
    sink: S,
    /// Requests from the oldest in flight on, and whether each is complete.
    window: VecDeque<(Observed, bool)>,
    /// Number of requests passed on.
    first: u64,
    /// Number of the request with each id.
    numbers: Vec<u64>,
}

impl<S: FnMut(&Observed)> Recorder<S> {
    /// Creates an empty recorder.
    pub fn new(sink: S) -> Self {
        Recorder { sink, window: VecDeque::new(), first: 0, numbers: Vec::new() }
    }

    /// Records a request that is issued under `id`.
    pub fn issued(&mut self, id: u32, flight: &PendingRequest) {
        let slot = id as usize;
        if self.numbers.len() <= slot {
            self.numbers.resize(slot + 1, 0);
        }
        self.numbers[slot] = self.first + self.window.len() as u64;
        let recorded =
            Recorded { arrival_ns: flight.intended_ns, completion_ns: None, request: flight.request, pre_flush: false };
        let observed = Observed { recorded, wait_ns: None, client: flight.client, stream: flight.stream };
        self.window.push_back((observed, false));
    }

    /// Records a completion.
    pub fn completed(&mut self, completion: &Completion) {
        let number = self.numbers[completion.id as usize];
        let (observed, complete) = &mut self.window[(number - self.first) as usize];
        let arrival_ns = observed.recorded.arrival_ns;
        observed.recorded.completion_ns = Some(completion.at_ns);
        observed.wait_ns = Some(completion.started_ns.max(arrival_ns) - arrival_ns);
        *complete = true;
        self.hand_out();
    }

    /// Records that a request will never complete: it is passed on without a completion.
    pub fn vanished(&mut self, id: u32) {
        let number = self.numbers[id as usize];
        self.window[(number - self.first) as usize].1 = true;
        self.hand_out();
    }

    fn hand_out(&mut self) {
        while let Some((observed, true)) = self.window.front() {
            (self.sink)(observed);
            self.window.pop_front();
            self.first += 1;
        }
    }

    /// Ends the recording: the remaining requests are passed on, some without a completion.
    pub fn finish(mut self) {
        for (observed, _) in self.window {
            (self.sink)(&observed);
        }
    }
}
