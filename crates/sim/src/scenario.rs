//! A scenario at work: clients of several kinds, the host's processors and the network in front of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_result::{Component, Kinds, RunResult, Servers, StreamResult};
use headstack_workload::Request;
use headstack_workload::scenario::{Scenario, ScenarioLength, ScenarioRun, Step};

use crate::SimError;
use crate::drive::Completion;
use crate::flights::{Flight, Outcome};
use crate::recorder::Sink;
use crate::rig::{Machine, Progress, Rig, finished};
use crate::run::RunSpec;
use crate::system::System;

struct Runner<'s, 'r> {
    scenario: &'s Scenario,
    rig: Rig<'r>,
    clients: ScenarioRun,
    /// When clients are asked next: (time, order, client).
    asks: BinaryHeap<Reverse<(u64, u64, u32)>>,
    asked: u64,
    processors: Servers,
    network: Servers,
    /// What processors and network had done when measuring began.
    before: [Component; 2],
    streams: Vec<Kinds>,
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
    let clients = ScenarioRun::new(scenario, &luns, spec.system.block_bytes(), spec.seed)?;
    let mut system = System::new(&spec.system, spec.seed)?;
    if spec.preload > 0 {
        let past = ScenarioRun::new(scenario, &luns, spec.system.block_bytes(), !spec.seed)?;
        preload(&mut system, past, spec.preload);
    }
    let (processors, network) = (Servers::new(scenario.cpus.max(1)), Servers::new(1));
    let mut runner = Runner {
        scenario,
        rig: Rig::new(Machine::new(system, &spec.system, spec.faults.as_ref())?, spec.interval_ns, sink),
        asks: BinaryHeap::new(),
        asked: 0,
        before: [&processors, &network].map(|servers| servers.component("")),
        processors,
        network,
        streams: vec![Kinds::default(); clients.stream_names().len()],
        clients,
    };
    runner.rig.preloaded = spec.preload;
    runner.go(progress)?;
    Ok(runner.finish(spec))
}

/// Shows a system what the clients would have asked for in a past of `requests`: every client in turn, each answer at
/// once.
fn preload(system: &mut System, mut past: ScenarioRun, requests: u64) {
    let (mut shown, mut now_ns, mut ended) = (0, 0, vec![false; past.clients() as usize]);
    while shown < requests && ended.contains(&false) {
        for client in 0..past.clients() {
            if ended[client as usize] {
                continue;
            }
            match past.next(client, now_ns) {
                Step::Io { request, .. } => {
                    system.warm_with(&request);
                    let _ = past.complete(client);
                    shown += 1;
                }
                Step::Think { until_ns } => now_ns = until_ns.max(now_ns),
                Step::Done => ended[client as usize] = true,
                Step::Await | Step::Cpu { .. } | Step::Transfer { .. } => {}
            }
        }
    }
}

impl Runner<'_, '_> {
    fn go(&mut self, progress: &Progress) -> Result<(), SimError> {
        self.maybe_start_measuring();
        for client in 0..self.clients.clients() {
            self.ask(client, 0);
        }
        let mut done = Vec::with_capacity(64);
        while !self.rig.is_over() {
            let ask_ns = self.asks.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
            let event_ns = self.rig.next_event_ns();
            if let ScenarioLength::TimeNs(limit_ns) = self.scenario.run_length
                && self.rig.time_is_up_before(limit_ns, event_ns.min(ask_ns))
            {
                break;
            }
            // The system first: what it finishes at this moment makes room for what is issued at it.
            if event_ns <= ask_ns {
                if event_ns == u64::MAX {
                    self.rig.never_answers();
                    break;
                }
                self.system_event(event_ns, &mut done);
            } else if let Some(Reverse((at_ns, _, client))) = self.asks.pop() {
                self.rig.now_ns = at_ns;
                self.ask(client, at_ns);
            }
            self.maybe_start_measuring();
            self.maybe_end();
            let run_length = self.scenario.run_length;
            self.rig.tell(progress, |rig| share_done(rig, run_length))?;
        }
        Ok(())
    }

    fn ask_later(&mut self, at_ns: u64, client: u32) {
        self.asked += 1;
        self.asks.push(Reverse((at_ns, self.asked, client)));
    }

    /// A client goes on until it waits for something.
    fn ask(&mut self, client: u32, now_ns: u64) {
        loop {
            match self.clients.next(client, now_ns) {
                Step::Io { stream, request } => self.issue(now_ns, client, stream, &request),
                Step::Await | Step::Done => return,
                Step::Think { until_ns } => return self.ask_later(until_ns, client),
                Step::Cpu { busy_ns } => {
                    let until_ns = self.processors.work(now_ns, busy_ns);
                    return self.ask_later(until_ns, client);
                }
                Step::Transfer { bytes } => {
                    let rate = self.scenario.network.map_or(f64::INFINITY, |rate| rate.0);
                    let until_ns = self.network.work(now_ns, (bytes as f64 / rate * 1e9).round() as u64);
                    return self.ask_later(until_ns, client);
                }
            }
        }
    }

    fn issue(&mut self, now_ns: u64, client: u32, stream: u32, request: &Request) {
        self.rig.issue(Flight { intended_ns: now_ns, request: *request, client, stream });
    }

    fn system_event(&mut self, at_ns: u64, done: &mut Vec<Completion>) {
        self.rig.advance(at_ns, done);
        for completion in done.drain(..) {
            let (flight, outcome) = self.rig.complete(&completion);
            if self.rig.measuring.is_some() {
                let kinds = &mut self.streams[flight.stream as usize];
                match outcome {
                    Outcome::Done => kinds.record(&finished(&flight, &completion)),
                    Outcome::Failed(_) | Outcome::Vanished => kinds.of(flight.request.kind as usize).errors += 1,
                }
            }
            if self.clients.complete(flight.client) {
                self.ask(flight.client, completion.at_ns);
            }
        }
        if self.rig.system().data_loss().is_some() {
            self.start_measuring();
        }
        self.rig.settle();
    }

    fn maybe_start_measuring(&mut self) {
        let warm_up = self.scenario.warm_up;
        if self.rig.flights.completed >= warm_up.requests && self.rig.now_ns >= warm_up.time_ns {
            self.start_measuring();
        }
    }

    fn start_measuring(&mut self) {
        if self.rig.measuring.is_some() {
            return;
        }
        self.rig.start_measuring();
        self.clients.start_measuring(self.rig.now_ns);
        self.before = [&self.processors, &self.network].map(|servers| servers.component(""));
    }

    fn maybe_end(&mut self) {
        let Some(measuring) = &self.rig.measuring else {
            return;
        };
        let over = match self.scenario.run_length {
            ScenarioLength::Requests(limit) => measuring.completed + measuring.failed >= limit,
            ScenarioLength::TimeNs(_) => false,
            ScenarioLength::AllDone => self.clients.all_done(),
        };
        if over {
            self.rig.close();
        }
    }

    fn finish(self, spec: &RunSpec) -> RunResult {
        let scenario = serde_json::to_value(self.scenario).expect("scenarios are plain data");
        let now_ns = self.rig.now_ns;
        let mut result = self.rig.finish(&spec.system_name, &spec.system, scenario, spec.seed);
        result.components.push(self.processors.component("host processors").since(&self.before[0]));
        if self.scenario.network.is_some() {
            result.components.push(self.network.component("client network").since(&self.before[1]));
        }
        let reports = self.clients.report(now_ns);
        for (report, kinds) in reports.into_iter().zip(self.streams) {
            result.streams.push(StreamResult::new(report.name, kinds, report.facts.figures()));
        }
        let completed: u64 =
            result.streams.iter().flat_map(|stream| stream.kinds.all()).map(|(_, kind)| kind.count).sum();
        result.checks.push(headstack_result::Check {
            name: "streams add up".to_owned(),
            passed: completed == result.count(),
            detail: format!("{completed} in streams, {} in all", result.count()),
        });
        result
    }
}

fn share_done(rig: &Rig, run_length: ScenarioLength) -> f64 {
    let Some(measuring) = &rig.measuring else {
        return 0.0;
    };
    match run_length {
        ScenarioLength::Requests(limit) => measuring.completed as f64 / limit as f64,
        ScenarioLength::TimeNs(limit_ns) => (rig.now_ns - measuring.start_ns) as f64 / limit_ns as f64,
        // Nobody knows before.
        ScenarioLength::AllDone => 0.0,
    }
}
