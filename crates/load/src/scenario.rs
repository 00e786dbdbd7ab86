//! Runs a scenario on files and devices ([`ScenarioSpec`]): clients of several kinds, the host's processors, and the
//! network in front of the host. Waits of clients outside of the targets take wall-clock time, by the same rules as in
//! virtual time, and use no processor of this machine.

use std::sync::Arc;

use headstack_driver::{ClientIssue, Clients, ClientsReport, Owner};
use headstack_result::{Finished, RunResult, SystemRecord};
use headstack_workload::scenario::Scenario;
use headstack_workload::{Kind, Span, WorkloadError};

use crate::clock::LOOK_NS;
use crate::engine::{EngineKind, Wait};
use crate::load_loop::{
    Ended, LoadLoop, SLOTS_MAX, VERIFIED_BYTES, VERIFIED_SLOTS_MAX, WarmedUp, WorkerSpec, buffer_bytes,
};
use crate::measured::{Measured, join};
use crate::queue::Queue;
use crate::synchronized_start::Start;
use crate::target::Target;
use crate::target_map::TargetMap;
use crate::threads::{WorkerContext, measure, run_workers};
use crate::verification::{Verification, begin, end};
use crate::worker::LoopStats;
use crate::{LoadError, Progress};

/// Targets and settings of a scenario.
#[derive(Clone)]
pub struct ScenarioSpec {
    /// Description of the targets for results.
    pub system: SystemRecord,
    /// The LUNs by name, each with its file or device, in address order.
    pub luns: Vec<(String, Arc<Target>)>,
    /// The clients.
    pub scenario: Scenario,
    /// Engine that submits the requests.
    pub engine: EngineKind,
    /// Queue depth, 1 to 32,768; further requests wait in the host.
    pub slots: u32,
    /// Seed of the clients' random choices.
    pub seed: u64,
    /// Length of the intervals of the time series, in ns.
    pub interval_ns: Option<u64>,
    /// Expected data of the targets ([`Verification::of_blocks`]). If set, writes carry stamps, reads are checked, and
    /// each request needs its own buffer, so a request longer than 1 MiB ends the run.
    pub verification: Option<Arc<Verification>>,
}

/// Runs a scenario to its end. `progress` receives the state and returns whether to continue. If the user or an error
/// ends the run early, the results so far are returned.
///
/// # Errors
/// Returns an error if the scenario is impossible, a LUN has no target, clients write to a read-only target, or the
/// kernel refuses the engine.
pub fn play_scenario(spec: &ScenarioSpec, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, LoadError> {
    let scenario = &spec.scenario;
    let targets: Vec<Arc<Target>> = spec.luns.iter().map(|(_, target)| Arc::clone(target)).collect();
    let block_bytes = Target::common_block_bytes(&targets);
    let luns = spans(&spec.luns, block_bytes);
    let clients = Clients::new(scenario, &luns, block_bytes, spec.seed)?;
    check_writes(spec)?;
    let slots_max = if spec.verification.is_some() { VERIFIED_SLOTS_MAX } else { SLOTS_MAX };
    if !(1..=slots_max).contains(&spec.slots) {
        let message = format!("queue depth {}; must be 1 to {slots_max}", spec.slots);
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
    let play = |context: &WorkerContext| -> Result<(Measured, ClientsReport), LoadError> {
        let mut reported = None;
        let measured = measure(&worker, context, |load_loop| {
            let mut runner = Runner::new(scenario, clients, load_loop);
            if let Err(error) = runner.play(load_loop) {
                load_loop.give_up(error.to_string());
            }
            let (loop_stats, report) = runner.finish(load_loop);
            reported = Some(report);
            Ok::<_, LoadError>(loop_stats)
        })?;
        Ok((measured, reported.expect("a measured run has a report")))
    };
    let time = Target::common_time(&targets)?;
    let (played, ran) = run_workers(vec![play], &targets, time, Start::Together, progress)?;
    let (measured, reports): (Vec<Measured>, Vec<ClientsReport>) = played.into_iter().unzip();
    let record = serde_json::to_value(scenario).expect("a scenario can be written as JSON");
    let mut result = join(&spec.system, &record, spec.seed, &measured, &ran);
    for report in reports {
        report.write_to(&mut result);
    }
    end(spec.verification.as_deref(), &mut result);
    Ok(result)
}

/// Returns the address ranges of the LUNs, one after another.
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

/// Returns an error if a client writes to a read-only target.
fn check_writes(spec: &ScenarioSpec) -> Result<(), LoadError> {
    for (index, stream) in spec.scenario.streams.iter().enumerate().filter(|(_, stream)| stream.kind.writes()) {
        let is_used = |name: &String| stream.lun.as_ref().is_none_or(|lun| lun == name);
        let refused = spec.luns.iter().find(|(name, target)| is_used(name) && !target.is_writable());
        spec.luns.iter().filter(|(name, _)| is_used(name)).try_for_each(|(_, target)| target.check_untended())?;
        if let Some((_, target)) = refused {
            let message = format!(
                "{} writes to {}, which is opened read-only: use --destroy to write a device, --overwrite to write a file",
                stream.name,
                target.name()
            );
            return Err(WorkloadError { key: format!("streams[{index}]"), message }.into());
        }
    }
    Ok(())
}

/// The clients and their pending actions.
struct Runner<'s> {
    scenario: &'s Scenario,
    clients: Clients,
    queue: Queue<Owner>,
    /// Time at which the clients' clock was 0, in ns.
    start_ns: u64,
}

impl<'s> Runner<'s> {
    fn new(scenario: &'s Scenario, clients: Clients, load_loop: &mut LoadLoop) -> Self {
        load_loop.look();
        Runner { scenario, clients, queue: Queue::new(load_loop), start_ns: load_loop.now_ns }
    }

    /// Runs to the end, or until the user stops it.
    fn play(&mut self, load_loop: &mut LoadLoop) -> Result<(), LoadError> {
        self.maybe_start_measuring(load_loop);
        let (queue, start_ns) = (&mut self.queue, self.start_ns);
        self.clients.begin(|next| arrive(queue, load_loop, start_ns, next));
        let mut done: Vec<(Owner, Ended)> = Vec::new();
        while !load_loop.is_stopped() && !load_loop.is_over() {
            load_loop.look();
            self.ask_all(load_loop);
            self.queue.hand_over(load_loop, |_, _| {});
            let until_ns = self.next_due_ns().min(load_loop.now_ns + LOOK_NS).min(load_loop.deadline_ns());
            load_loop.wait(Wait::Until(until_ns))?;
            // Actions of clients up to now precede completions that are noticed now.
            self.ask_all(load_loop);
            self.queue.settle(load_loop, &mut done);
            for (owner, ended) in done.drain(..) {
                self.complete(load_loop, owner, &ended);
            }
            self.maybe_start_measuring(load_loop);
            self.maybe_end(load_loop);
            load_loop.count_depth(load_loop.now_ns.max(self.start_ns));
            load_loop.update_progress(|load_loop| {
                let measuring = load_loop.measuring.as_ref();
                measuring.map_or(0.0, |measuring| self.clients.end().share_done(measuring, load_loop.now_ns))
            });
        }
        Ok(())
    }

    /// Returns the time at which a client must be polled next, on the load loop's clock, in ns.
    fn next_due_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.clients.next_due_ns())
    }

    /// Polls all clients that are due.
    fn ask_all(&mut self, load_loop: &mut LoadLoop) {
        while self.next_due_ns() <= load_loop.now_ns {
            self.clients.issue_next(|next| arrive(&mut self.queue, load_loop, self.start_ns, next));
        }
    }

    fn complete(&mut self, load_loop: &mut LoadLoop, owner: Owner, ended: &Ended) {
        let request = &ended.flight.request;
        match ended {
            Ended { counted: false, .. } => {}
            Ended { failed: true, .. } => self.clients.fail(owner, request.kind as usize),
            Ended { failed: false, .. } => self.clients.record(
                owner,
                &Finished {
                    kind: request.kind as usize,
                    length_bytes: request.length_bytes,
                    intended_ns: ended.flight.intended_ns,
                    started_ns: ended.flight.started_ns,
                    at_ns: ended.at_ns,
                },
            ),
        }
        let at_ns = ended.at_ns - self.start_ns;
        self.clients.completed(owner, at_ns, |next| arrive(&mut self.queue, load_loop, self.start_ns, next));
    }

    fn maybe_start_measuring(&mut self, load_loop: &mut LoadLoop) {
        let time_ns = load_loop.now_ns - self.start_ns;
        if load_loop.measuring.is_some() || !self.clients.is_warm(load_loop.completed, time_ns) {
            return;
        }
        let requests_asked = self.scenario.warm_up.requests;
        load_loop.warmed_up = WarmedUp { requests: load_loop.completed, requests_asked, time_ns };
        load_loop.requests_max = self.clients.end().requests;
        load_loop.start_measuring(self.clients.end().time_ns);
        self.clients.start_measuring(time_ns);
    }

    fn maybe_end(&self, load_loop: &mut LoadLoop) {
        if let Some(measuring) = &load_loop.measuring
            && self.clients.is_over(measuring, measuring.completed + load_loop.errors.iter().sum::<u64>())
        {
            load_loop.close(load_loop.now_ns);
        }
    }

    fn finish(self, load_loop: &mut LoadLoop) -> (LoopStats, ClientsReport) {
        load_loop.start_measuring(0);
        let saturated = self.clients.has_piled_up();
        let loop_stats = self.queue.finish(load_loop, saturated);
        let end_ns = load_loop.measuring.as_ref().and_then(|measuring| measuring.end_ns).unwrap_or(load_loop.now_ns);
        (loop_stats, self.clients.finish(end_ns.saturating_sub(self.start_ns)))
    }
}

fn arrive(queue: &mut Queue<Owner>, load_loop: &mut LoadLoop, start_ns: u64, next: &ClientIssue) {
    let mut request = next.request;
    if request.kind == Kind::Flush {
        // All targets are flushed.
        request.offset_bytes = 0;
    }
    queue.arrive(load_loop, start_ns + next.due_ns, &request, next.owner);
}
