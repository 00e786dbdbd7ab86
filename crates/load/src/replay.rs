//! Replays a trace on files and devices in wall-clock time ([`ReplaySpec`]). See docs/design/replay.md.
//!
//! One thread reads ahead, so that neither a slow disk nor decompression delays requests. The replaying thread sleeps
//! until shortly before a request is due and then spins; its schedule is relative to the first request, so that one
//! late request does not delay the next.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use headstack_replay::{Due, Issue, Played, Player, Replay, ReplayError, ReplayMode};
use headstack_result::{RunResult, SystemRecord};
use headstack_workload::{Kind, Recorded};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::clock::{LOOK_NS, go_first};
use crate::engine::{EngineKind, Wait};
use crate::load_loop::{Ended, LoadLoop, SLOTS_MAX, VERIFIED_BYTES, VERIFIED_SLOTS_MAX, WorkerSpec, buffer_bytes};
use crate::measured::{Measured, join};
use crate::queue::Queue;
use crate::synchronized_start::Start;
use crate::target::Target;
use crate::target_map::TargetMap;
use crate::threads::{WorkerContext, measure, run_workers};
use crate::verification::{Verification, begin, end};
use crate::worker::LoopStats;
use crate::{LoadError, Progress};

/// Number of batches read ahead; a batch has some thousands of requests.
const BATCHES_AHEAD: usize = 8;

/// How recorded writes are replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Writes {
    /// Writes and trims are executed as recorded.
    #[default]
    AsRecorded,
    /// Writes and trims are skipped, and so are flushes that some writes require before them.
    Skip,
    /// Writes become reads of the same range, and trims are skipped.
    AsReads,
}

impl Writes {
    /// All variants.
    pub const ALL: [Writes; 3] = [Writes::AsRecorded, Writes::Skip, Writes::AsReads];

    /// Returns the name of the variant.
    pub fn name(self) -> &'static str {
        match self {
            Writes::AsRecorded => "as-recorded",
            Writes::Skip => "skip",
            Writes::AsReads => "as-reads",
        }
    }
}

/// Targets and settings of a replay.
#[derive(Clone)]
pub struct ReplaySpec {
    /// Description of the target for results.
    pub system: SystemRecord,
    /// The targets, whose address spaces are concatenated.
    pub targets: Vec<Arc<Target>>,
    /// How to replay the trace, whose clock starts with the first request.
    pub replay: Replay,
    /// How writes are treated.
    pub writes: Writes,
    /// Engine that submits the requests.
    pub engine: EngineKind,
    /// Queue depth, 1 to 32,768; further requests wait in the host. [`ReplayMode::Asap`] has its own depth.
    pub slots: u32,
    /// Whether the replaying thread has priority over all other threads of the machine (`SCHED_FIFO`). For 30,000
    /// requests at 1,500/s on a loop device of a busy machine with two processors, 1 request in 1,000 was late by 1.3
    /// to 3.1 ms without priority, and by 0.06 ms with it.
    pub realtime: bool,
    /// Length of the intervals of the time series, in ns.
    pub interval_ns: Option<u64>,
    /// Expected data of the targets ([`Verification::of_blocks`]). If set, writes carry stamps, reads are checked, and
    /// each request needs its own buffer, so a request longer than 1 MiB ends the replay.
    pub verification: Option<Arc<Verification>>,
}

/// A replayed request. Times are relative to the first request.
#[derive(Clone, Copy, Debug)]
pub struct Observed {
    /// Number of the request in the trace, from 1, without omitted requests.
    pub number: u64,
    /// Number of requests issued before it.
    pub sequence: u64,
    /// Time at which the request was due, in ns.
    pub due_ns: u64,
    /// The request, with its times of issue and completion.
    pub recorded: Recorded,
    /// Whether the request failed.
    pub failed: bool,
}

/// Receives replayed requests in order of completion, in the replaying thread; a slow sink may delay the next request.
pub type Sink<'a> = dyn FnMut(&Observed) + Send + 'a;

/// Replays a trace. `progress` receives the state and returns whether to continue; `sink` receives every replayed
/// request. The measurement lasts from the first request to the completion of the last one. Response times start when a
/// request is due.
///
/// Requests are widened to whole blocks of the targets. A request longer than 2 GiB, which the kernel transfers only in
/// part, counts as failed. If the user or an error ends the replay after the first request, the results so far are
/// returned.
///
/// # Errors
/// Returns an error before the first request if `source` fails, with [`ReplayError`], if the kernel refuses the engine,
/// or if the part of the trace known by then writes to a read-only target.
pub fn replay<E>(
    spec: &ReplaySpec,
    source: &mut (dyn FnMut(&mut Vec<Recorded>) -> Result<bool, E> + Send),
    progress: &mut dyn FnMut(&Progress) -> bool,
    sink: Option<&mut Sink>,
) -> Result<RunResult, E>
where
    E: From<LoadError> + From<ReplayError> + Display + Send,
{
    let replay = Replay { start_ns: 0, ..spec.replay.clone() };
    replay.check()?;
    let slots = match replay.mode {
        ReplayMode::Asap { depth } => depth,
        _ => spec.slots,
    };
    let slots_max = if spec.verification.is_some() { VERIFIED_SLOTS_MAX } else { SLOTS_MAX };
    if !(1..=slots_max).contains(&slots) {
        let message = format!("queue depth {slots}; must be 1 to {slots_max}");
        return Err(ReplayError::Settings(message).into());
    }
    let mut written = spec.targets.iter().filter(|target| spec.writes == Writes::AsRecorded && target.is_writable());
    written.try_for_each(|target| target.check_untended())?;
    let (block_bytes, time) = (Target::common_block_bytes(&spec.targets), Target::common_time(&spec.targets)?);
    let worker = WorkerSpec {
        name: &replay.name,
        targets: &spec.targets,
        map: TargetMap::of(&spec.targets, block_bytes),
        engine: spec.engine,
        slots,
        buffer_bytes: if spec.verification.is_some() { VERIFIED_BYTES } else { buffer_bytes(slots) },
        start_delay_ns: 0,
        seed: 0,
        interval_ns: spec.interval_ns,
        own_buffers: spec.verification.is_some(),
        verification: spec.verification.as_deref(),
    };
    begin(spec.verification.as_deref())?;
    let mut stencil = Stencil::new(spec);
    let (full, batches) = sync_channel(BATCHES_AHEAD);
    let (give_back, empty) = sync_channel(BATCHES_AHEAD + 2);
    let (played, ran) = std::thread::scope(|scope| {
        let stencil = &mut stencil;
        scope.spawn(move || read_ahead(source, stencil, full, empty));
        let recording = Recording { batches, give_back, block_bytes };
        let play = |context: &WorkerContext| play(&worker, &replay, recording, context, sink, spec.realtime);
        run_workers(vec![play], &spec.targets, time, Start::Together, progress)
    })?;
    let mut record = json!(replay);
    record["writes"] = json!(spec.writes);
    let (measured, played): (Vec<Measured>, Vec<Played>) = played.into_iter().unzip();
    let mut result = join(&spec.system, &record, worker.seed, &measured, &ran);
    for played in played {
        (result.offered_per_s, result.fidelity) = (played.offered_per_s, Some(played.fidelity));
        result.notes.extend(played.notes);
    }
    end(spec.verification.as_deref(), &mut result);
    result.notes.extend(stencil.notes());
    Ok(result)
}

/// Reads ahead until the end, an error, or until the receiver is gone.
fn read_ahead<E: From<ReplayError>>(
    source: &mut (dyn FnMut(&mut Vec<Recorded>) -> Result<bool, E> + Send),
    stencil: &mut Stencil,
    full: SyncSender<Result<Vec<Recorded>, E>>,
    empty: Receiver<Vec<Recorded>>,
) {
    loop {
        let mut batch: Vec<Recorded> = empty.try_recv().unwrap_or_default();
        batch.clear();
        let next = match source(&mut batch) {
            Ok(true) => stencil.apply(&mut batch).map(|()| batch).map_err(E::from),
            Ok(false) => return,
            Err(error) => Err(error),
        };
        let was_last = next.is_err();
        if full.send(next).is_err() || was_last {
            return;
        }
    }
}

/// Source of batches, and the channel that returns used batches.
struct Recording<E> {
    batches: Receiver<Result<Vec<Recorded>, E>>,
    give_back: SyncSender<Vec<Recorded>>,
    block_bytes: u32,
}

/// Replays the batches in one thread.
fn play<E: From<LoadError> + From<ReplayError> + Display>(
    worker: &WorkerSpec,
    replay: &Replay,
    recording: Recording<E>,
    context: &WorkerContext,
    mut sink: Option<&mut Sink>,
    realtime: bool,
) -> Result<(Measured, Played), E> {
    let capacity_bytes = worker.map.capacity_bytes();
    let mut source = |batch: &mut Vec<Recorded>| match recording.batches.recv() {
        Ok(next) => {
            let used = std::mem::replace(batch, next?);
            // The channel has room for all batches, so this cannot fail.
            let _ = recording.give_back.try_send(used);
            Ok(true)
        }
        Err(_) => Ok(false),
    };
    let mut played = None;
    let measured = measure(worker, context, |load_loop| {
        if realtime {
            let denied = |source| LoadError::Io { target: worker.target(), action: "real-time priority", source };
            go_first().map_err(denied)?;
        }
        let mut stage: Stage<E> =
            Stage::new(Player::new(replay, capacity_bytes, recording.block_bytes, &mut source)?, load_loop, replay);
        if let Err(error) = stage.play(load_loop, &mut sink) {
            // Requests that have arrived are completed first. If the kernel accepts no more requests, that error is
            // reported.
            let wound_up = stage.wind_up(load_loop, &mut sink);
            if load_loop.completed == 0 {
                return Err(wound_up.err().unwrap_or(error));
            }
            load_loop.give_up(wound_up.err().unwrap_or(error).to_string());
        }
        let (loop_stats, came_of_it) = stage.finish(load_loop);
        played = Some(came_of_it);
        Ok(loop_stats)
    })?;
    Ok((measured, played.expect("a measured run has replay results")))
}

/// A player and its load loop.
struct Stage<'t, E> {
    player: Player<'t, E>,
    queue: Queue<Issue>,
    done: Vec<(Issue, Ended)>,
    /// Time at which the player's clock was 0, in ns.
    start_ns: u64,
    is_timed: bool,
    requests_max: u64,
    /// Whether there was a backlog at the last arrival.
    piled_up: bool,
}

impl<'t, E: From<LoadError> + From<ReplayError>> Stage<'t, E> {
    /// Starts the clock now; the first batch has been read.
    fn new(player: Player<'t, E>, load_loop: &mut LoadLoop, replay: &Replay) -> Self {
        load_loop.look();
        load_loop.start_measuring(u64::MAX);
        let is_timed = matches!(replay.mode, ReplayMode::Timed { .. });
        let (queue, requests_max) = (Queue::new(load_loop), replay.requests_max.unwrap_or(u64::MAX));
        Stage { player, queue, done: Vec::new(), start_ns: load_loop.now_ns, is_timed, requests_max, piled_up: false }
    }

    /// Replays until the last request has completed or the user stops it.
    fn play(&mut self, load_loop: &mut LoadLoop, sink: &mut Option<&mut Sink>) -> Result<(), E> {
        while !load_loop.is_stopped() {
            load_loop.look();
            self.arrive(load_loop)?;
            self.hand_over(load_loop);
            let due_ns = match self.player.next_due()? {
                // Without a free slot, a completion must come first.
                Due::At(at_ns) if load_loop.has_room() => self.start_ns.saturating_add(at_ns),
                Due::At(_) | Due::AfterCompletion => u64::MAX,
                Due::Never => break,
            };
            load_loop.wait(Wait::Until(due_ns.min(load_loop.now_ns + LOOK_NS)))?;
            // Arrivals up to now precede completions that are noticed now.
            let arrived = self.arrive(load_loop);
            self.settle(load_loop, sink);
            arrived?;
            load_loop.update_progress(|load_loop| (load_loop.completed as f64 / self.requests_max as f64).min(1.0));
        }
        Ok(())
    }

    /// Completes the requests that have arrived, without reading more of the trace.
    fn wind_up(&mut self, load_loop: &mut LoadLoop, sink: &mut Option<&mut Sink>) -> Result<(), E> {
        while !load_loop.is_stopped() && load_loop.waiting + load_loop.under_way() > 0 {
            load_loop.look();
            self.hand_over(load_loop);
            load_loop.wait(Wait::Until(load_loop.now_ns + LOOK_NS))?;
            self.settle(load_loop, sink);
        }
        Ok(())
    }

    fn hand_over(&mut self, load_loop: &mut LoadLoop) {
        let (player, start_ns) = (&mut self.player, self.start_ns);
        self.queue.hand_over(load_loop, |issue, at_ns| player.issued(issue, at_ns - start_ns));
    }

    fn settle(&mut self, load_loop: &mut LoadLoop, sink: &mut Option<&mut Sink>) {
        self.queue.settle(load_loop, &mut self.done);
        for (issue, ended) in self.done.drain(..) {
            self.player.completed(issue.slot, ended.at_ns - self.start_ns);
            if let Some(sink) = sink {
                sink(&observed(&issue, &ended, self.start_ns));
            }
        }
    }

    /// Lets all requests that are due by now arrive.
    fn arrive(&mut self, load_loop: &mut LoadLoop) -> Result<(), E> {
        while let Some(issue) = self.player.take(load_loop.now_ns - self.start_ns)? {
            self.queue.arrive(load_loop, self.start_ns + issue.due_ns, &issue.request, issue);
            self.piled_up = self.is_timed && self.queue.has_piled_up(load_loop);
        }
        Ok(())
    }

    fn finish(self, load_loop: &mut LoadLoop) -> (LoopStats, Played) {
        (self.queue.finish(load_loop, self.piled_up), self.player.finish())
    }
}

fn observed(issue: &Issue, ended: &Ended, start_ns: u64) -> Observed {
    let (arrival_ns, completion_ns) = (ended.flight.started_ns - start_ns, Some(ended.at_ns - start_ns));
    let recorded = Recorded { arrival_ns, completion_ns, request: issue.request, pre_flush: false };
    let (number, sequence) = (issue.number, ended.flight.sequence);
    Observed { number, sequence, due_ns: issue.due_ns, recorded, failed: ended.failed }
}

/// Modifies the requests of a trace before they are replayed.
struct Stencil {
    writes: Writes,
    /// Name of a target that must not be written.
    read_only: Option<String>,
    read: u64,
    skipped: u64,
    as_reads: u64,
    ordered: u64,
}

impl Stencil {
    fn new(spec: &ReplaySpec) -> Stencil {
        let read_only = spec.targets.iter().find(|target| !target.is_writable());
        let read_only = read_only.map(|target| target.name().to_owned());
        Stencil { writes: spec.writes, read_only, read: 0, skipped: 0, as_reads: 0, ordered: 0 }
    }

    fn apply(&mut self, batch: &mut Vec<Recorded>) -> Result<(), ReplayError> {
        let mut refused = None;
        batch.retain_mut(|Recorded { request, .. }| {
            self.read += 1;
            self.ordered += u64::from(request.ordered);
            match (request.kind, self.writes) {
                (Kind::Read | Kind::Flush, _) => true,
                (Kind::Write | Kind::Trim, Writes::AsRecorded) => {
                    if self.read_only.is_some() {
                        refused.get_or_insert((self.read, request.kind.name()));
                    }
                    true
                }
                (Kind::Write, Writes::AsReads) => {
                    self.as_reads += 1;
                    (request.kind, request.force_unit_access) = (Kind::Read, false);
                    true
                }
                (Kind::Trim, _) | (_, Writes::Skip) => {
                    self.skipped += 1;
                    false
                }
            }
        });
        match (refused, &self.read_only) {
            (Some((number, kind)), Some(target)) => Err(ReplayError::Request {
                number,
                message: format!(
                    "is a {kind}, and {target} is opened read-only: use --destroy to write a device, --overwrite to write a \
                     file, --writes skip to omit writes, or --writes as-reads to read instead"
                ),
            }),
            _ => Ok(()),
        }
    }

    fn notes(&self) -> Vec<String> {
        let counts = [
            (self.skipped, "write or trim omitted, as requested", "writes and trims omitted, as requested"),
            (self.as_reads, "write replayed as a read, as requested", "writes replayed as reads, as requested"),
            (
                self.ordered,
                "ordered request issued without its barrier, which Linux does not support",
                "ordered requests issued without their barrier, which Linux does not support",
            ),
        ];
        let some = counts.into_iter().filter(|(count, ..)| *count > 0);
        some.map(|(count, one, several)| format!("{count} {}", if count == 1 { one } else { several })).collect()
    }
}
