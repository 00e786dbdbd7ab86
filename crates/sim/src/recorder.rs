//! [`Recorder`]: passes on the requests of a run in the order in which they were issued.

use std::collections::VecDeque;

use headstack_workload::Recorded;

use crate::drive::Completion;
use crate::pending_requests::PendingRequest;

/// A request as stored in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Arrival, request and completion. A request in flight at the end of the run has no completion.
    pub recorded: Recorded,
    /// Time from arrival until the system started to work on the request; `None` if there is no completion.
    pub wait_ns: Option<u64>,
    /// Number of the client in a scenario, otherwise 0.
    pub client: u32,
    /// Number of the stream in a scenario, otherwise 0.
    pub stream: u32,
}

/// Receives every request of a run, including warm-up, in order of issue, which is the order of arrival.
pub type Sink<'a> = dyn FnMut(&Observed) + 'a;

/// Holds back each request until all earlier ones have completed, so that a trace is in order of arrival and requests
/// that arrive at the same time keep their order.
#[derive(Debug)]
pub struct Recorder<S> {
    sink: S,
    /// Requests from the oldest one in flight on, with whether each has completed.
    window: VecDeque<(Observed, bool)>,
    /// Number of requests passed on so far.
    first: u64,
    /// Number of the request for each id in use.
    numbers: Vec<u64>,
}

impl<S: FnMut(&Observed)> Recorder<S> {
    /// Creates an empty recorder.
    pub fn new(sink: S) -> Self {
        Recorder { sink, window: VecDeque::new(), first: 0, numbers: Vec::new() }
    }

    /// Records that a request is issued under `id`.
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

    /// Records the completion of a request.
    pub fn completed(&mut self, completion: &Completion) {
        let number = self.numbers[completion.id as usize];
        let (observed, complete) = &mut self.window[(number - self.first) as usize];
        let arrival_ns = observed.recorded.arrival_ns;
        observed.recorded.completion_ns = Some(completion.at_ns);
        observed.wait_ns = Some(completion.started_ns.max(arrival_ns) - arrival_ns);
        *complete = true;
        self.hand_out();
    }

    /// Records that a request will never complete, so that it is passed on without a completion.
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

    /// Passes on the remaining requests, with or without a completion.
    pub fn finish(mut self) {
        for (observed, _) in self.window {
            (self.sink)(&observed);
        }
    }
}
