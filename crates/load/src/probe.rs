//! Probes of files and devices in wall-clock time. The times of each request are on the machine's monotonic clock, so
//! that probes can be compared.

use std::sync::Arc;

use headstack_driver::{Answer, Pace, Probe, Probing};

use crate::clock::{LOOK_NS, go_first};
use crate::engine::{EngineKind, Wait};
use crate::load_loop::{LoadLoop, WorkerSpec, buffer_bytes};
use crate::synchronized_start::Start;
use crate::target::Target;
use crate::target_map::TargetMap;
use crate::threads::{WorkerContext, measure, run_workers};
use crate::worker::LoopStats;
use crate::{LoadError, Progress};

/// Maximum queue depth of a probe with given issue times.
const TIMED_SLOTS_MAX: u32 = 1 << 10;

/// Runs a probe on a target as long as `progress` returns true. Returns the answers in the order of the requests, up to
/// the point where the user stopped.
///
/// On a busy machine requests are issued late: [`Answer::issued_ns`] is the actual submission time, or with
/// [`Pace::Times`](headstack_driver::Pace::Times) the due time. With `realtime` the thread has priority over all
/// others.
///
/// # Errors
/// Returns an error if the probe does not fit the target or writes to a read-only target, or if the kernel refuses the
/// engine.
pub fn probe(
    target: &Arc<Target>,
    probe: &Probe,
    engine: EngineKind,
    realtime: bool,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Vec<Answer>, LoadError> {
    let targets = std::slice::from_ref(target);
    let (block_bytes, time) = (Target::common_block_bytes(targets), Target::common_time(targets)?);
    let map = TargetMap::of(targets, block_bytes);
    let refused = |message: String| LoadError::Target { target: target.name().to_owned(), message };
    if let Some(fault) = probe.fault(map.capacity_bytes(), block_bytes) {
        return Err(refused(fault));
    }
    if !target.is_writable() && probe.writes() {
        return Err(refused("a writing probe needs a writable target".to_owned()));
    }
    let slots = probe.slots().min(TIMED_SLOTS_MAX);
    let longest = probe.requests.iter().map(|request| request.length_bytes).max().unwrap_or(0);
    let worker = WorkerSpec {
        name: "probe",
        targets,
        map,
        engine,
        slots,
        buffer_bytes: buffer_bytes(slots).max(longest),
        start_delay_ns: 0,
        seed: 0,
        interval_ns: None,
        own_buffers: false,
        verification: None,
    };
    let mut answers = vec![None; probe.requests.len()];
    let work = |context: &WorkerContext| {
        measure(&worker, context, |load_loop| {
            if realtime {
                let denied = |source| LoadError::Io { target: worker.target(), action: "real-time priority", source };
                go_first().map_err(denied)?;
            }
            carry_out(probe, load_loop, &mut answers)
        })
    };
    run_workers(vec![work], targets, time, Start::AtOnce, progress)?;
    // The list ends at the first request that was not issued or never completed.
    Ok(answers.into_iter().map_while(|answer| answer).collect())
}

fn carry_out(probe: &Probe, load_loop: &mut LoadLoop, answers: &mut [Option<Answer>]) -> Result<LoopStats, LoadError> {
    load_loop.look();
    load_loop.start_measuring(u64::MAX);
    let start_ns = load_loop.now_ns;
    let mut probing = Probing::new(probe);
    let mut numbers: Vec<usize> = Vec::new();
    let is_timed = matches!(probe.pace, Pace::Times(_));
    while !load_loop.is_stopped() && (!probing.is_over() || load_loop.under_way() > 0) {
        load_loop.look();
        while load_loop.has_room()
            && let Some((number, due_ns, request)) = probing.take(load_loop.now_ns - start_ns)
        {
            let intended_ns = if is_timed { start_ns + due_ns } else { load_loop.now_ns };
            let slot = load_loop.issue(intended_ns, request) as usize;
            if slot >= numbers.len() {
                numbers.resize(slot + 1, 0);
            }
            numbers[slot] = number;
        }
        let due_ns = if load_loop.has_room() { probing.next_due_ns().saturating_add(start_ns) } else { u64::MAX };
        load_loop.wait(Wait::Until(due_ns.min(load_loop.now_ns + LOOK_NS)))?;
        load_loop.settle(|ended| {
            let (issued_ns, completed_ns) = (ended.flight.intended_ns, ended.at_ns);
            answers[numbers[ended.slot as usize]] = Some(Answer { issued_ns, completed_ns, failed: ended.failed });
            probing.completed(ended.at_ns - start_ns);
        });
        let share = probing.share();
        load_loop.update_progress(|_| share);
    }
    load_loop.close(load_loop.now_ns);
    Ok(LoopStats::default())
}
