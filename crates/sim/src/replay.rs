//! Replay of a trace in virtual time ([`replay`]): requests are issued to a system exactly when the player says. See
//! docs/design/replay.md.

use headstack_replay::{Due, Player, Replay, ReplayError, ReplayMode, Slot, Source, in_memory};
use headstack_result::{RunResult, Sampling, TooShort};
use headstack_workload::Recorded;

use crate::description::drive::DriveDescription;
use crate::description::system::SystemDescription;
use crate::drive::Completion;
use crate::error::SimError;
use crate::faults::Schedule;
use crate::load_loop::{LoadLoop, Machine};
use crate::notes::{note_of_osd_cpu, note_of_shingled_rebuild, note_of_tail};
use crate::pending_requests::PendingRequest;
use crate::progress::Progress;
use crate::recorder::{Observed, Sink};
use crate::system::System;

/// Parameters of a replay.
#[derive(Clone, Debug)]
pub struct ReplaySpec {
    /// The system's name, for display.
    pub system_name: String,
    /// The system.
    pub system: SystemDescription,
    /// The replay mode.
    pub replay: Replay,
    /// Seed of the system's own random processes.
    pub seed: u64,
    /// Length of the intervals for which results are also kept, if any.
    pub interval_ns: Option<u64>,
    /// Faults and their times on the clock of the replay, which is that of a trace that began at 0.
    pub faults: Option<Schedule>,
}

/// Replays a trace and measures from its first request to the completion of its last: there is no warm-up. `sink`
/// receives every request as it was replayed.
///
/// Requests are widened to whole blocks of the system; one without bytes, unless it is a flush, to one block. Of
/// requests that arrive at the moment of completions, one for each responds to it and is issued at once, as in a closed
/// loop; the others follow when the system has done its work of that moment.
///
/// # Errors
/// Those of `source`; an impossible system; [`ReplayError`]; [`SimError::Stopped`].
pub fn replay<'a, E: From<SimError> + From<ReplayError>>(
    spec: &ReplaySpec,
    source: &mut Source<E>,
    progress: &Progress,
    sink: Option<&'a mut Sink<'a>>,
) -> Result<RunResult, E> {
    spec.replay.check()?;
    let system = System::new(&spec.system, spec.seed)?;
    let machine = Machine::new(system, &spec.system, spec.faults.as_ref())?;
    let load_loop = LoadLoop::new(machine, spec.interval_ns, sink);
    let (capacity_bytes, block_bytes) = (spec.system.capacity_bytes(), spec.system.block_bytes());
    let player = Player::new(&spec.replay, capacity_bytes, block_bytes, source)?;
    let is_timed = matches!(spec.replay.mode, ReplayMode::Timed { .. });
    let mut stage = Stage { load_loop, player, is_timed, under_way: Vec::new(), late_arrivals: 0, piled_up: false };
    stage.play(spec, progress)?;
    Ok(stage.finish(spec))
}

/// Returns the latencies of a trace that is replayed on a drive by [`ReplayMode::Closed`], in order of issue.
///
/// # Errors
/// As for [`replay`].
pub fn closed_responses_ns(
    drive: &DriveDescription,
    records: impl IntoIterator<Item = Recorded>,
) -> Result<Vec<u64>, SimError> {
    let spec = ReplaySpec {
        system_name: drive.name.clone(),
        system: drive.clone().into(),
        replay: Replay::new("recording", ReplayMode::Closed),
        seed: 0,
        interval_ns: None,
        faults: None,
    };
    let mut responses_ns = Vec::new();
    let mut hear = |observed: &Observed| {
        let Recorded { arrival_ns, completion_ns, .. } = observed.recorded;
        responses_ns.extend(completion_ns.map(|at_ns| at_ns - arrival_ns));
    };
    replay::<SimError>(&spec, &mut in_memory(records), &|_| true, Some(&mut hear))?;
    Ok(responses_ns)
}

/// A system and the player of its trace.
struct Stage<'r, 't, E> {
    load_loop: LoadLoop<'r>,
    player: Player<'t, E>,
    is_timed: bool,
    /// The player's slot of each request in flight, by id.
    under_way: Vec<Slot>,
    late_arrivals: u64,
    /// Whether requests had piled up at the last arrival.
    piled_up: bool,
}

impl<E: From<SimError> + From<ReplayError>> Stage<'_, '_, E> {
    /// Plays the trace to the completion of the last request.
    fn play(&mut self, spec: &ReplaySpec, progress: &Progress) -> Result<(), E> {
        let requests_max = spec.replay.requests_max.unwrap_or(u64::MAX);
        let mut done = Vec::with_capacity(64);
        while !self.load_loop.is_over() {
            let event_ns = self.load_loop.next_event_ns();
            let due_ns = match self.player.next_due()? {
                Due::At(due_ns) => due_ns,
                Due::AfterCompletion => u64::MAX,
                Due::Never => break,
            };
            // The system is first: its completions of this moment make room for requests that are issued at it.
            if due_ns < event_ns {
                self.issue(due_ns)?;
            } else if event_ns < u64::MAX {
                self.system_events(due_ns, &mut done)?;
            } else {
                self.load_loop.never_answers();
                break;
            }
            self.load_loop
                .report_progress(progress, |load_loop| load_loop.flights.completed as f64 / requests_max as f64)?;
        }
        // The trace may have been empty.
        self.load_loop.start_measuring();
        self.load_loop.close();
        Ok(())
    }

    #[inline]
    fn system_events(&mut self, limit_ns: u64, done: &mut Vec<Completion>) -> Result<(), E> {
        self.load_loop.advance(limit_ns, done);
        for completion in done.iter() {
            self.load_loop.complete(completion);
            self.player.completed(self.under_way[completion.id as usize], completion.at_ns);
        }
        for _ in 0..done.len() {
            if !self.issue(self.load_loop.now_ns)? {
                break;
            }
        }
        done.clear();
        self.load_loop.settle();
        Ok(())
    }

    /// Issues the next request if it is due at `now_ns`; returns whether it was.
    #[inline]
    fn issue(&mut self, now_ns: u64) -> Result<bool, E> {
        let Some(issue) = self.player.take(now_ns)? else {
            return Ok(false);
        };
        self.player.issued(&issue, now_ns);
        self.load_loop.now_ns = now_ns;
        self.load_loop.start_measuring();
        let flight = PendingRequest { intended_ns: now_ns, request: issue.request, client: 0, stream: 0 };
        let (id, admitted) = self.load_loop.issue(flight);
        let slot = id as usize;
        if slot == self.under_way.len() {
            self.under_way.push(issue.slot);
        }
        self.under_way[slot] = issue.slot;
        let backlog = self.load_loop.outstanding();
        if let (true, Some(measuring)) = (self.is_timed, &mut self.load_loop.measuring) {
            self.late_arrivals += u64::from(!admitted);
            measuring.arrived += 1;
            self.piled_up = measuring.has_piled_up(backlog);
        }
        Ok(true)
    }

    fn finish(self, spec: &ReplaySpec) -> RunResult {
        let record = serde_json::to_value(&spec.replay).expect("replays are plain data");
        let mut result = self.load_loop.finish(&spec.system_name, &spec.system, record, spec.seed);
        let played = self.player.finish();
        (result.offered_per_s, result.fidelity) = (played.offered_per_s, Some(played.fidelity));
        (result.late_arrivals, result.saturated) = (self.late_arrivals, self.piled_up);
        if self.piled_up {
            result.sampling = Sampling::nothing(TooShort::Saturated);
        }
        result.notes.extend(played.notes);
        result.notes.extend(note_of_shingled_rebuild(&spec.system, &result));
        result.notes.extend(note_of_osd_cpu(&spec.system, &result));
        result.notes.extend(note_of_tail(&spec.system));
        result
    }
}
