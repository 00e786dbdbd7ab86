//! [`Clients`]: the clients of a scenario, with the host's processors and the network in front of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_result::{Check, Component, Finished, Kinds, Measuring, RunResult, Servers, StreamResult, piles_up};
use headstack_workload::scenario::{Scenario, ScenarioLength, ScenarioRun, Step};
use headstack_workload::{Rate, Span, WarmUp, WorkloadError};

use crate::end::End;
use crate::issue::{ClientIssue, Owner};

/// The running clients of a scenario, with their next steps and the results of each stream.
///
/// The caller submits each request that clients issue to the system, runs the next client when it is
/// [due](Self::next_due_ns), and reports [completions](Self::completed). Time that clients spend on processors and the
/// network passes only on the driver's clock; nothing is computed or sent.
///
/// The simulator and the load engine differ in one respect. In virtual time, one client runs between two events of the
/// system. In real time, all due clients run before anything else, each as of its due time, so that delays of the
/// program do not add up.
pub struct Clients {
    run: ScenarioRun,
    /// Times at which clients run next, as (time, order, client).
    due_clients: BinaryHeap<Reverse<(u64, u64, u32)>>,
    polls: u64,
    processors: Servers,
    network: Servers,
    /// Rate of the network; without a rate, transfers take no time.
    rate: Option<Rate>,
    /// Work of processors and network before measuring started.
    before: [Component; 2],
    streams: Vec<Kinds>,
    open: OpenStreams,
    warm_up: WarmUp,
    end: End,
    ends_when_all_are_done: bool,
}

/// Requests of open loops, and their number when measuring started.
#[derive(Clone, Copy, Debug, Default)]
struct OpenStreams {
    arrived: u64,
    completed: u64,
    arrived_before: u64,
    waited_before: u64,
}

impl OpenStreams {
    fn waiting(&self) -> u64 {
        self.arrived - self.completed
    }
}

impl Clients {
    /// Creates the clients of `scenario` on a system with these LUNs, which are consecutive in the system's address
    /// space.
    ///
    /// # Errors
    /// Returns the error of [`ScenarioRun::new`] if the scenario cannot run on this system.
    pub fn new(
        scenario: &Scenario,
        luns: &[(String, Span)],
        block_bytes: u32,
        seed: u64,
    ) -> Result<Clients, WorkloadError> {
        let run = ScenarioRun::new(scenario, luns, block_bytes, seed)?;
        let (processors, network) = (Servers::new(scenario.cpus), Servers::new(1));
        Ok(Clients {
            due_clients: BinaryHeap::new(),
            polls: 0,
            before: [&processors, &network].map(|servers| servers.component("")),
            processors,
            network,
            rate: scenario.network,
            streams: vec![Kinds::default(); run.stream_names().len()],
            run,
            open: OpenStreams::default(),
            warm_up: scenario.warm_up,
            end: scenario.run_length.into(),
            ends_when_all_are_done: scenario.run_length == ScenarioLength::AllDone,
        })
    }

    /// Starts all clients at time 0.
    pub fn begin(&mut self, mut issue: impl FnMut(&ClientIssue)) {
        (0..self.run.clients()).for_each(|client| self.go_on(client, 0, &mut issue));
    }

    /// Returns when the next client is due, or `u64::MAX` if none is due before a completion.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        self.due_clients.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns)
    }

    /// Runs the client that is due next, as of its due time.
    pub fn issue_next(&mut self, mut issue: impl FnMut(&ClientIssue)) {
        if let Some(Reverse((at_ns, _, client))) = self.due_clients.pop() {
            self.go_on(client, at_ns, &mut issue);
        }
    }

    /// Records that a request completed or failed. The client continues if it was waiting for this request.
    pub fn completed(&mut self, owner: Owner, at_ns: u64, mut issue: impl FnMut(&ClientIssue)) {
        self.open.completed += u64::from(self.run.is_open(owner.client));
        if self.run.complete(owner.client) {
            self.go_on(owner.client, at_ns, &mut issue);
        }
    }

    /// Counts a completed request of the measured part in its stream.
    #[inline]
    pub fn record(&mut self, owner: Owner, finished: &Finished) {
        self.streams[owner.stream as usize].record(finished);
    }

    /// Counts a failed request of the measured part in its stream, as an error without a latency.
    #[cold]
    pub fn fail(&mut self, owner: Owner, kind: usize) {
        self.streams[owner.stream as usize].of(kind).errors += 1;
    }

    /// Runs a client until it has to wait.
    fn go_on(&mut self, client: u32, now_ns: u64, issue: &mut impl FnMut(&ClientIssue)) {
        let until_ns = loop {
            let step = self.run.next(client, now_ns);
            while let Some(woken) = self.run.take_woken() {
                self.polls += 1;
                self.due_clients.push(Reverse((now_ns, self.polls, woken)));
            }
            match step {
                Step::Io { stream, request } => {
                    self.open.arrived += u64::from(self.run.is_open(client));
                    issue(&ClientIssue { due_ns: now_ns, request, owner: Owner { client, stream } });
                }
                Step::Await | Step::AwaitClient | Step::Done => return,
                Step::Think { until_ns } => break until_ns,
                Step::Cpu { busy_ns } => break self.processors.work(now_ns, busy_ns),
                Step::Transfer { bytes } => {
                    let bytes_per_s = self.rate.map_or(f64::INFINITY, |rate| rate.0);
                    break self.network.work(now_ns, (bytes as f64 / bytes_per_s * 1e9).round() as u64);
                }
            }
        };
        debug_assert!(until_ns >= now_ns, "a wake-up time is in the future");
        self.polls += 1;
        self.due_clients.push(Reverse((until_ns, self.polls, client)));
    }

    /// Whether the warm-up is over, after `completed` requests and `now_ns` since the start.
    #[inline]
    pub fn is_warm(&self, completed: u64, now_ns: u64) -> bool {
        self.warm_up.is_over(completed, now_ns)
    }

    /// Starts the measured part at `now_ns`; later calls have no effect.
    pub fn start_measuring(&mut self, now_ns: u64) {
        self.run.start_measuring(now_ns);
        (self.open.arrived_before, self.open.waited_before) = (self.open.arrived, self.open.waiting());
        self.before = [&self.processors, &self.network].map(|servers| servers.component(""));
    }

    /// Returns the limits of the measured part. The part ends earlier if all clients are [done](Self::is_over).
    #[inline]
    pub fn end(&self) -> &End {
        &self.end
    }

    /// Whether the measured part is over, after `ended` completed or failed requests.
    #[inline]
    pub fn is_over(&self, measuring: &Measuring, ended: u64) -> bool {
        self.end.is_reached(measuring, ended) || (self.ends_when_all_are_done && self.run.all_done())
    }

    /// Returns the number of open-loop requests that have arrived and not completed.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.open.waiting()
    }

    /// Whether the backlog of open-loop requests has grown since measuring started by more than chance explains.
    pub fn has_piled_up(&self) -> bool {
        let OpenStreams { arrived, arrived_before, waited_before, .. } = self.open;
        piles_up(self.waiting().saturating_sub(waited_before), arrived - arrived_before)
    }

    /// Returns the report on the clients for the measured part, which ended at `end_ns`.
    pub fn finish(self, end_ns: u64) -> ClientsReport {
        let mut components = vec![self.processors.component("host processors").since(&self.before[0])];
        if self.rate.is_some() {
            components.push(self.network.component("client network").since(&self.before[1]));
        }
        let reports = self.run.report(end_ns).into_iter().zip(self.streams);
        let streams = reports.map(|(report, kinds)| StreamResult::new(report.name, kinds, report.facts.figures()));
        ClientsReport { streams: streams.collect(), components }
    }
}

/// The part of a scenario's result that comes from the clients.
#[derive(Clone, Debug)]
pub struct ClientsReport {
    streams: Vec<StreamResult>,
    components: Vec<Component>,
}

impl ClientsReport {
    /// Adds the report to the result of the run, and checks that the streams' requests add up to the total.
    pub fn write_to(self, result: &mut RunResult) {
        result.components.extend(self.components);
        result.streams.extend(self.streams);
        let all = result.streams.iter().flat_map(|stream| stream.kinds.all());
        let completed: u64 = all.map(|(_, kind)| kind.count).sum();
        result.checks.push(Check {
            name: "streams add up".to_owned(),
            passed: completed == result.count(),
            detail: format!("{completed} in streams, {} in total", result.count()),
        });
    }
}
