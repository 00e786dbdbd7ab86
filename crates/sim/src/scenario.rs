//! Runs a scenario ([`run`]): clients of several kinds, the host's processors and the network.

use headstack_driver::{ClientIssue, Clients, Owner};
use headstack_result::{RunResult, Sampling, TooShort};
use headstack_workload::scenario::{Scenario, ScenarioLength, ScenarioRun, Step};
use headstack_workload::{Kind, Request, WarmUp};

use crate::drive::Completion;
use crate::error::SimError;
use crate::in_service;
use crate::load_loop::{LoadLoop, Machine, finished, waiting_max};
use crate::pending_requests::{Outcome, PendingRequest};
use crate::progress::Progress;
use crate::recorder::Sink;
use crate::run_spec::RunSpec;
use crate::system::System;

struct Runner<'r> {
    load_loop: LoadLoop<'r>,
    clients: Clients,
}

/// Runs a scenario to its end.
///
/// # Errors
/// An impossible system or scenario, LUNs that the system lacks, or [`SimError::Stopped`].
pub fn run<'a>(
    spec: &RunSpec,
    scenario: &Scenario,
    progress: &Progress,
    sink: Option<&'a mut Sink<'a>>,
) -> Result<RunResult, SimError> {
    let luns = match spec.span {
        None => spec.system.luns(),
        Some(span) => vec![("range".to_owned(), span)],
    };
    let block_bytes = spec.system.block_bytes();
    let clients = Clients::new(scenario, &luns, block_bytes, spec.seed)?;
    let mut system = System::new(&spec.system, spec.seed)?;
    let goes_on = |_: f64| progress(0.0);
    if spec.preload > 0 {
        let mut past = PastRequests::new(ScenarioRun::new(scenario, &luns, block_bytes, !spec.seed)?);
        in_service::bring(&mut system, &mut || past.next(), spec.preload, &mut |system, requests, number| {
            let short = Scenario {
                warm_up: WarmUp { requests: requests / in_service::WARM_UP_DIVISOR, time_ns: 0 },
                run_length: ScenarioLength::Requests(requests),
                ..scenario.clone()
            };
            let clients = Clients::new(&short, &luns, block_bytes, (!spec.seed).wrapping_sub(number))?;
            let load_loop = LoadLoop::new(Machine::new(system, &spec.system, None)?, None, None);
            let mut runner = Runner { load_loop, clients };
            runner.go(&goes_on)?;
            Ok(runner.load_loop.dirtied())
        })?;
    }
    let load_loop = LoadLoop::new(Machine::new(system, &spec.system, spec.faults.as_ref())?, spec.interval_ns, sink);
    let mut runner = Runner { load_loop, clients };
    runner.load_loop.preloaded = spec.preload;
    runner.go(progress)?;
    Ok(runner.finish(spec, scenario))
}

/// Past requests of the clients: every client in turn, with each answer at once.
struct PastRequests {
    run: ScenarioRun,
    now_ns: u64,
    ended: Vec<bool>,
    client: u32,
}

impl PastRequests {
    fn new(run: ScenarioRun) -> PastRequests {
        let ended = vec![false; run.clients() as usize];
        PastRequests { run, now_ns: 0, ended, client: 0 }
    }

    /// Returns the next request; `None` once all clients are done.
    fn next(&mut self) -> Option<Request> {
        while self.ended.contains(&false) {
            let client = self.client;
            self.client = (client + 1) % self.run.clients();
            if self.ended[client as usize] {
                continue;
            }
            let step = self.run.next(client, self.now_ns);
            // Every client has its turn anyway.
            while self.run.take_woken().is_some() {}
            match step {
                Step::Io { request, .. } => {
                    let _ = self.run.complete(client);
                    return Some(request);
                }
                Step::Think { until_ns } => self.now_ns = until_ns.max(self.now_ns),
                Step::Done => self.ended[client as usize] = true,
                Step::Await | Step::AwaitClient | Step::Cpu { .. } | Step::Transfer { .. } => {}
            }
        }
        None
    }
}

impl Runner<'_> {
    fn go(&mut self, progress: &Progress) -> Result<(), SimError> {
        self.maybe_start_measuring();
        self.clients.begin(|next| issue(&mut self.load_loop, next));
        let mut done = Vec::with_capacity(64);
        while !self.load_loop.is_over() {
            let due_ns = self.clients.next_due_ns();
            let event_ns = self.load_loop.next_event_ns();
            let limit_ns = self.clients.end().time_ns;
            if limit_ns != u64::MAX && self.load_loop.time_is_up_before(limit_ns, event_ns.min(due_ns)) {
                break;
            }
            // The system is first: its completions of this moment make room for requests that are issued at it.
            if event_ns <= due_ns {
                if event_ns == u64::MAX {
                    self.load_loop.never_answers();
                    break;
                }
                self.system_event(event_ns, &mut done);
            } else {
                self.load_loop.now_ns = due_ns;
                self.clients.issue_next(|next| issue(&mut self.load_loop, next));
            }
            self.maybe_start_measuring();
            self.maybe_end();
            self.end_if_overloaded();
            let end = self.clients.end();
            self.load_loop.report_progress(progress, |load_loop| load_loop.share_done(end))?;
        }
        Ok(())
    }

    fn system_event(&mut self, at_ns: u64, done: &mut Vec<Completion>) {
        self.load_loop.advance(at_ns, done);
        for completion in done.drain(..) {
            let (flight, outcome) = self.load_loop.complete(&completion);
            let owner = Owner { client: flight.client, stream: flight.stream };
            if self.load_loop.measuring.is_some() {
                match outcome {
                    Outcome::Done => self.clients.record(owner, &finished(&flight, &completion)),
                    Outcome::Refused(_) | Outcome::Failed(_) | Outcome::Vanished => {
                        self.clients.fail(owner, flight.request.kind as usize);
                    }
                }
            }
            self.clients.completed(owner, completion.at_ns, |next| issue(&mut self.load_loop, next));
        }
        if self.load_loop.system().data_loss().is_some() {
            self.start_measuring();
        }
        self.load_loop.settle();
    }

    fn maybe_start_measuring(&mut self) {
        if self.clients.is_warm(self.load_loop.flights.completed, self.load_loop.now_ns) {
            self.start_measuring();
        }
    }

    fn start_measuring(&mut self) {
        if self.load_loop.measuring.is_none() {
            self.load_loop.start_measuring();
            self.clients.start_measuring(self.load_loop.now_ns);
        }
    }

    fn maybe_end(&mut self) {
        if let Some(measuring) = &self.load_loop.measuring
            && self.clients.is_over(measuring, measuring.completed + measuring.failed)
        {
            self.load_loop.close();
        }
    }

    /// Ends an overloaded run, as [`run`](crate::run) does in an open loop.
    #[inline]
    fn end_if_overloaded(&mut self) {
        let waiting_max = waiting_max(self.clients.end());
        if self.clients.waiting() > waiting_max / 2 {
            self.start_measuring();
            if self.clients.waiting() > waiting_max && !self.load_loop.is_over() {
                self.load_loop.end_overloaded(waiting_max);
            }
        }
    }

    fn finish(self, spec: &RunSpec, scenario: &Scenario) -> RunResult {
        let record = serde_json::to_value(scenario).expect("scenarios are plain data");
        let piled_up = self.load_loop.is_overloaded || self.clients.has_piled_up();
        let report = self.clients.finish(self.load_loop.now_ns);
        let mut result = self.load_loop.finish(&spec.system_name, &spec.system, record, spec.seed);
        if piled_up {
            (result.saturated, result.sampling) = (true, Sampling::nothing(TooShort::Saturated));
        }
        report.write_to(&mut result);
        result
    }
}

fn issue(load_loop: &mut LoadLoop, next: &ClientIssue) {
    let ClientIssue { due_ns, mut request, owner: Owner { client, stream } } = *next;
    if request.kind == Kind::Flush && !matches!(load_loop.system(), System::Stack(_)) {
        request.offset_bytes = 0;
    }
    load_loop.issue(PendingRequest { intended_ns: due_ns, request, client, stream });
}
