//! A scenario at work on files and devices: clients of several kinds, the host's processors and the network in front of
//! it. What clients wait for outside of the targets takes its time on the wall clock, by the same rules as in virtual
//! time, and burns no processor of this machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use headstack_result::{Check, Component, Finished, Kinds, RunResult, Servers, StreamResult, SystemRecord};
use headstack_workload::scenario::{Scenario, ScenarioLength, ScenarioRun, Step};
use headstack_workload::{Span, WorkloadError};

use crate::clock::LOOK_NS;
use crate::engine::{EngineKind, Wait};
use crate::measured::{Measured, join};
use crate::queue::Queue;
use crate::rig::{Ended, Rig, SLOTS_MAX, VERIFIED_BYTES, VERIFIED_SLOTS_MAX, WarmedUp, WorkerSpec, buffer_bytes};
use crate::run::{WorkerContext, measure, run_workers};
use crate::target::Target;
use crate::target_map::TargetMap;
use crate::verification::{Verification, begin, end};
use crate::worker::LoopStats;
use crate::{LoadError, Progress};

/// What a scenario is played on.
#[derive(Clone)]
pub struct ScenarioSpec {
    /// The targets, as results tell of them.
    pub system: SystemRecord,
    /// The LUNs by name, each a file or device, in the order of their addresses.
    pub luns: Vec<(String, Arc<Target>)>,
    /// The clients.
    pub scenario: Scenario,
    /// How requests are handed over.
    pub engine: EngineKind,
    /// Requests with the system at a time, 1 to 32,768; later ones wait in the host.
    pub slots: u32,
    /// Seed of the clients' random choices.
    pub seed: u64,
    /// Length of the intervals that results are also kept for.
    pub interval_ns: Option<u64>,
    /// What is known of the data on the targets ([`Verification::of_blocks`]): writes then carry stamps, reads are checked,
    /// and each request needs memory of its own, so that one longer than 1 MiB ends the run.
    pub verification: Option<Arc<Verification>>,
}

/// Plays a scenario to its end, and tells `progress`, which says whether to go on. What was measured is the result also
/// when somebody, or an error, ended it early.
///
/// # Errors
/// An impossible scenario, LUNs that have no target, clients that write where a target was opened for reading, an engine
/// that the kernel refuses.
pub fn play_scenario(spec: &ScenarioSpec, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, LoadError> {
    let scenario = &spec.scenario;
    let targets: Vec<Arc<Target>> = spec.luns.iter().map(|(_, target)| Arc::clone(target)).collect();
    let block_bytes = Target::common_block_bytes(&targets);
    let luns = spans(&spec.luns, block_bytes);
    let clients = ScenarioRun::new(scenario, &luns, block_bytes, spec.seed)?;
    check_writes(spec)?;
    let slots_max = if spec.verification.is_some() { VERIFIED_SLOTS_MAX } else { SLOTS_MAX };
    if !(1..=slots_max).contains(&spec.slots) {
        let message = format!("{} requests at a time; 1 to {slots_max} are allowed", spec.slots);
        return Err(LoadError::Job { job: scenario.name.clone(), message });
    }
    let worker = WorkerSpec {
        name: &scenario.name,
        targets: &targets,
        map: TargetMap::of(&targets, block_bytes),
        engine: spec.engine,
        slots: spec.slots,
        buffer_bytes: if spec.verification.is_some() { VERIFIED_BYTES } else { buffer_bytes(spec.slots) },
        start_delay_ns: 0,
        seed: spec.seed,
        interval_ns: spec.interval_ns,
        own_buffers: spec.verification.is_some(),
        verification: spec.verification.as_deref(),
    };
    begin(spec.verification.as_deref())?;
    let play = |context: &WorkerContext| -> Result<(Measured, Reported), LoadError> {
        let mut reported = None;
        let measured = measure(&worker, context, |rig| {
            let mut runner = Runner::new(scenario, clients, rig);
            if let Err(error) = runner.play(rig) {
                rig.give_up(error.to_string());
            }
            let (loop_stats, report) = runner.finish(rig);
            reported = Some(report);
            Ok::<_, LoadError>(loop_stats)
        })?;
        Ok((measured, reported.expect("what was measured was played")))
    };
    let time = Target::common_time(&targets)?;
    let (played, ran) = run_workers(vec![play], &targets, time, progress)?;
    let (measured, reports): (Vec<Measured>, Vec<Reported>) = played.into_iter().unzip();
    let record = serde_json::to_value(scenario).expect("scenarios are plain data");
    let mut result = join(&spec.system, &record, spec.seed, &measured, &ran);
    for report in reports {
        report.write_to(&mut result);
    }
    end(spec.verification.as_deref(), &mut result);
    Ok(result)
}

/// The LUNs one after another.
fn spans(luns: &[(String, Arc<Target>)], block_bytes: u32) -> Vec<(String, Span)> {
    let mut start_bytes = 0u64;
    let span = |(name, target): &(String, Arc<Target>)| {
        let length_bytes = target.whole_bytes(block_bytes);
        let span = Span { start_bytes, length_bytes };
        start_bytes = start_bytes.saturating_add(length_bytes);
        (name.clone(), span)
    };
    luns.iter().map(span).collect()
}

/// Refuses clients that write where nothing may be written.
fn check_writes(spec: &ScenarioSpec) -> Result<(), LoadError> {
    for (index, stream) in spec.scenario.streams.iter().enumerate().filter(|(_, stream)| stream.kind.writes()) {
        let is_used = |name: &String| stream.lun.as_ref().is_none_or(|lun| lun == name);
        let refused = spec.luns.iter().find(|(name, target)| is_used(name) && !target.is_writable());
        if let Some((_, target)) = refused {
            let message = format!(
                "{} writes to {}, which is open for reading: --destroy lets a device be written, --overwrite a file",
                stream.name,
                target.name()
            );
            return Err(WorkloadError { key: format!("streams[{index}]"), message }.into());
        }
    }
    Ok(())
}

/// Whose request it is.
#[derive(Clone, Copy)]
struct Owner {
    client: u32,
    stream: u32,
}

/// Clients, and what they wait for.
struct Runner<'s> {
    scenario: &'s Scenario,
    clients: ScenarioRun,
    queue: Queue<Owner>,
    /// When clients are asked next: (time, order, client).
    asks: BinaryHeap<Reverse<(u64, u64, u32)>>,
    asked: u64,
    processors: Servers,
    network: Servers,
    /// What processors and network had done when measuring began.
    before: [Component; 2],
    streams: Vec<Kinds>,
    /// When the clients' clock was 0.
    start_ns: u64,
}

impl<'s> Runner<'s> {
    fn new(scenario: &'s Scenario, clients: ScenarioRun, rig: &mut Rig) -> Self {
        rig.look();
        let (processors, network) = (Servers::new(scenario.cpus.max(1)), Servers::new(1));
        Runner {
            scenario,
            queue: Queue::new(rig),
            asks: BinaryHeap::new(),
            asked: 0,
            before: [&processors, &network].map(|servers| servers.component("")),
            processors,
            network,
            streams: vec![Kinds::default(); clients.stream_names().len()],
            clients,
            start_ns: rig.now_ns,
        }
    }

    /// Plays to the end, or until somebody ends it.
    fn play(&mut self, rig: &mut Rig) -> Result<(), LoadError> {
        self.maybe_start_measuring(rig);
        (0..self.clients.clients()).for_each(|client| self.ask(rig, client, 0));
        let mut done: Vec<(Owner, Ended)> = Vec::new();
        while !rig.is_stopped() && !rig.is_over() {
            rig.look();
            self.ask_all(rig);
            self.queue.hand_over(rig, |_, _| {});
            let ask_ns = self.asks.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
            let until_ns = self.start_ns.saturating_add(ask_ns).min(rig.now_ns + LOOK_NS).min(rig.deadline_ns());
            rig.wait(Wait::Until(until_ns))?;
            // What clients did before now came before what is complete now.
            self.ask_all(rig);
            self.queue.settle(rig, &mut done);
            for (owner, ended) in done.drain(..) {
                self.complete(rig, owner, &ended);
            }
            self.maybe_start_measuring(rig);
            self.maybe_end(rig);
            rig.count_depth(rig.now_ns.max(self.start_ns));
            let run_length = self.scenario.run_length;
            rig.tell(|rig| share_done(rig, run_length));
        }
        Ok(())
    }

    /// Asks all clients whose time has come, as of that time: what they wait for next counts from there, so that what
    /// this program is late by does not add up.
    fn ask_all(&mut self, rig: &mut Rig) {
        while let Some(&Reverse((at_ns, _, client))) = self.asks.peek()
            && self.start_ns.saturating_add(at_ns) <= rig.now_ns
        {
            self.asks.pop();
            self.ask(rig, client, at_ns);
        }
    }

    fn ask_later(&mut self, at_ns: u64, client: u32) {
        self.asked += 1;
        self.asks.push(Reverse((at_ns, self.asked, client)));
    }

    /// A client goes on until it waits for something.
    fn ask(&mut self, rig: &mut Rig, client: u32, at_ns: u64) {
        loop {
            match self.clients.next(client, at_ns) {
                Step::Io { stream, request } => {
                    self.queue.arrive(rig, self.start_ns + at_ns, &request, Owner { client, stream });
                }
                Step::Await | Step::Done => return,
                Step::Think { until_ns } => return self.ask_later(until_ns, client),
                Step::Cpu { busy_ns } => {
                    let until_ns = self.processors.work(at_ns, busy_ns);
                    return self.ask_later(until_ns, client);
                }
                Step::Transfer { bytes } => {
                    let rate = self.scenario.network.map_or(f64::INFINITY, |rate| rate.0);
                    let until_ns = self.network.work(at_ns, (bytes as f64 / rate * 1e9).round() as u64);
                    return self.ask_later(until_ns, client);
                }
            }
        }
    }

    fn complete(&mut self, rig: &mut Rig, owner: Owner, ended: &Ended) {
        let kinds = &mut self.streams[owner.stream as usize];
        let request = &ended.flight.request;
        if ended.counted {
            if ended.failed {
                kinds.of(request.kind as usize).errors += 1;
            } else {
                kinds.record(&Finished {
                    kind: request.kind as usize,
                    length_bytes: request.length_bytes,
                    intended_ns: ended.flight.intended_ns,
                    started_ns: ended.flight.started_ns,
                    at_ns: ended.at_ns,
                });
            }
        }
        if self.clients.complete(owner.client) {
            self.ask(rig, owner.client, ended.at_ns - self.start_ns);
        }
    }

    fn maybe_start_measuring(&mut self, rig: &mut Rig) {
        let warm_up = self.scenario.warm_up;
        let is_warm = rig.completed >= warm_up.requests && rig.now_ns - self.start_ns >= warm_up.time_ns;
        if rig.measuring.is_some() || !is_warm {
            return;
        }
        let time_ns = rig.now_ns - self.start_ns;
        rig.warmed_up = WarmedUp { requests: rig.completed, requests_asked: warm_up.requests, time_ns };
        if let ScenarioLength::Requests(limit) = self.scenario.run_length {
            rig.requests_max = limit;
        }
        rig.start_measuring(match self.scenario.run_length {
            ScenarioLength::TimeNs(limit_ns) => limit_ns,
            ScenarioLength::Requests(_) | ScenarioLength::AllDone => u64::MAX,
        });
        self.clients.start_measuring(rig.now_ns - self.start_ns);
        self.before = [&self.processors, &self.network].map(|servers| servers.component(""));
    }

    fn maybe_end(&self, rig: &mut Rig) {
        let Some(measuring) = &rig.measuring else {
            return;
        };
        let over = match self.scenario.run_length {
            ScenarioLength::Requests(limit) => measuring.completed + rig.errors.iter().sum::<u64>() >= limit,
            ScenarioLength::TimeNs(_) => false,
            ScenarioLength::AllDone => self.clients.all_done(),
        };
        if over {
            rig.close(rig.now_ns);
        }
    }

    fn finish(self, rig: &mut Rig) -> (LoopStats, Reported) {
        rig.start_measuring(0);
        let saturated = self.queue.has_piled_up(rig);
        let loop_stats = self.queue.finish(rig, saturated);
        let end_ns = rig.measuring.as_ref().and_then(|measuring| measuring.end_ns).unwrap_or(rig.now_ns);
        let mut components = vec![self.processors.component("host processors").since(&self.before[0])];
        if self.scenario.network.is_some() {
            components.push(self.network.component("client network").since(&self.before[1]));
        }
        let reports = self.clients.report(end_ns.saturating_sub(self.start_ns)).into_iter().zip(self.streams);
        let stream = |report: headstack_workload::scenario::StreamReport, kinds| {
            StreamResult::new(report.name, kinds, report.facts.figures())
        };
        (loop_stats, Reported { streams: reports.map(|(report, kinds)| stream(report, kinds)).collect(), components })
    }
}

/// What clients report beside what the rig keeps.
struct Reported {
    streams: Vec<StreamResult>,
    components: Vec<Component>,
}

impl Reported {
    fn write_to(self, result: &mut RunResult) {
        result.streams = self.streams;
        result.components = self.components;
        let all = result.streams.iter().flat_map(|stream| stream.kinds.all());
        let completed: u64 = all.map(|(_, kind)| kind.count).sum();
        result.checks.push(Check {
            name: "streams add up".to_owned(),
            passed: completed == result.count(),
            detail: format!("{completed} in streams, {} in all", result.count()),
        });
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
