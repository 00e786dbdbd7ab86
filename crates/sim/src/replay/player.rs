//! The loop of a replay: what the mode says is due goes to the system, and what comes back is told to both.

use headstack_result::RunResult;

use super::fidelity::Books;
use super::tape::{Arrived, Tape};
use super::waits::{Rule, Waits};
use super::{ReplayMode, ReplaySpec};
use crate::SimError;
use crate::drive::Completion;
use crate::flights::Flight;
use crate::rig::{Progress, Rig, note_of_tail};

/// Plays a recording on a system to the completion of its last request.
///
/// # Errors
/// Of the recording; [`SimError::Stopped`].
pub fn play<E: From<SimError>>(
    spec: &ReplaySpec,
    rig: Rig,
    tape: Tape<E>,
    progress: &Progress,
) -> Result<RunResult, E> {
    let plan = Plan::new(spec.replay.mode);
    let mut player = Player { rig, tape, plan, under_way: Vec::new(), late_arrivals: 0, piled_up: false };
    player.go(spec, progress)?;
    Ok(player.finish(spec))
}

/// When the next request is issued.
enum Plan {
    Timed,
    Asap { depth: u64 },
    Waits(Box<Waits>),
}

/// The node of requests that have none.
const NO_NODE: u32 = u32::MAX;

impl Plan {
    fn new(mode: ReplayMode) -> Plan {
        match mode {
            ReplayMode::Timed { .. } => Plan::Timed,
            ReplayMode::Asap { depth } => Plan::Asap { depth: u64::from(depth) },
            ReplayMode::Closed => Plan::Waits(Box::new(Waits::new(Rule::Closed))),
            ReplayMode::Dependent { min_ns, max_ns } => {
                Plan::Waits(Box::new(Waits::new(Rule::Dependent { min_ns, max_ns })))
            }
        }
    }

    /// When the next request comes, with `outstanding` of them at `now_ns`; `u64::MAX` for not before `until_ns`.
    #[inline]
    fn next_ns<E: From<SimError>>(
        &mut self,
        tape: &mut Tape<E>,
        (now_ns, outstanding): (u64, u64),
        until_ns: u64,
    ) -> Result<u64, E> {
        Ok(match self {
            Plan::Timed => tape.peek()?.map_or(u64::MAX, |next| next.scheduled_ns),
            Plan::Asap { depth } if outstanding < *depth && tape.peek()?.is_some() => now_ns,
            Plan::Asap { .. } => u64::MAX,
            Plan::Waits(waits) => waits.next_ns(tape, until_ns)?,
        })
    }

    /// The request that comes next, with its node.
    #[inline]
    fn pop<E: From<SimError>>(&mut self, tape: &mut Tape<E>) -> Result<Option<(Arrived, u32)>, E> {
        Ok(match self {
            Plan::Timed | Plan::Asap { .. } => tape.take()?.map(|arrived| (arrived, NO_NODE)),
            Plan::Waits(waits) => waits.pop(),
        })
    }

    #[inline]
    fn completed(&mut self, node: u32, at_ns: u64) {
        if let Plan::Waits(waits) = self {
            waits.completed(node, at_ns);
        }
    }
}

struct Player<'r, 't, E> {
    rig: Rig<'r>,
    tape: Tape<'t, E>,
    plan: Plan,
    /// What is under way, with its node, by id.
    under_way: Vec<(Arrived, u32)>,
    late_arrivals: u64,
    /// Requests had piled up at the last arrival.
    piled_up: bool,
}

impl<E: From<SimError>> Player<'_, '_, E> {
    fn go(&mut self, spec: &ReplaySpec, progress: &Progress) -> Result<(), E> {
        if self.tape.peek()?.is_none() && self.tape.books.recorded == 0 {
            return Err(SimError::Replay("there is no request in the recording".to_owned()).into());
        }
        let requests_max = spec.replay.requests_max.unwrap_or(u64::MAX);
        let mut done = Vec::with_capacity(64);
        while !self.rig.is_over() {
            let event_ns = self.rig.system.next_event_ns();
            let issue_ns = self.next_ns(event_ns)?;
            if issue_ns == u64::MAX && self.rig.outstanding() == 0 && self.tape.peek()?.is_none() {
                break;
            }
            // The system first: what it finishes at this moment makes room for what is issued at it.
            if event_ns <= issue_ns {
                assert!(event_ns != u64::MAX, "requests are outstanding, yet nothing will ever happen");
                self.system_event(event_ns, &mut done)?;
            } else {
                self.rig.now_ns = issue_ns;
                self.issue()?;
            }
            self.rig.tell(progress, |rig| rig.flights.completed as f64 / requests_max as f64)?;
        }
        // There may have been none to issue.
        self.rig.start_measuring();
        self.rig.close();
        Ok(())
    }

    #[inline]
    fn next_ns(&mut self, until_ns: u64) -> Result<u64, E> {
        let now = (self.rig.now_ns, self.rig.outstanding());
        self.plan.next_ns(&mut self.tape, now, until_ns)
    }

    fn system_event(&mut self, at_ns: u64, done: &mut Vec<Completion>) -> Result<(), E> {
        self.rig.advance(at_ns, done);
        let places = done.len();
        for completion in done.drain(..) {
            self.rig.complete(&completion);
            let (arrived, node) = self.under_way[completion.id as usize];
            self.tape.books.completed(&arrived, completion.at_ns);
            self.plan.completed(node, completion.at_ns);
        }
        for _ in 0..places {
            if self.next_ns(at_ns)? <= at_ns {
                self.issue()?;
            }
        }
        self.rig.settle();
        Ok(())
    }

    /// Issues the next request now.
    fn issue(&mut self) -> Result<(), E> {
        let Some((arrived, node)) = self.plan.pop(&mut self.tape)? else {
            return Ok(());
        };
        self.rig.start_measuring();
        let now_ns = self.rig.now_ns;
        self.tape.books.issued(&arrived, now_ns);
        let flight = Flight { intended_ns: now_ns, request: arrived.request, client: 0, stream: 0 };
        let (id, admitted) = self.rig.issue(flight);
        let slot = id as usize;
        if slot == self.under_way.len() {
            self.under_way.push((arrived, node));
        }
        self.under_way[slot] = (arrived, node);
        let backlog = self.rig.outstanding();
        if let (Plan::Timed, Some(measuring)) = (&self.plan, &mut self.rig.measuring) {
            self.late_arrivals += u64::from(!admitted);
            measuring.arrived += 1;
            self.piled_up = measuring.has_piled_up(backlog);
        }
        Ok(())
    }

    fn finish(self, spec: &ReplaySpec) -> RunResult {
        let record = serde_json::to_value(&spec.replay).expect("replays are plain data");
        let mut result = self.rig.finish(&spec.system_name, &spec.system, record, spec.seed);
        let (books, scale) = (self.tape.books, spec.replay.mode.time_scale());
        let fidelity = books.fidelity(scale);
        if let Plan::Timed = self.plan {
            result.offered_per_s = fidelity.recorded_per_s.map(|rate| rate / scale).filter(|rate| rate.is_finite());
            result.late_arrivals = self.late_arrivals;
            result.saturated = self.piled_up;
        }
        result.fidelity = Some(fidelity);
        result.notes.extend(notes(&books, spec));
        result.notes.extend(note_of_tail(&spec.system));
        result
    }
}

/// What was done to the recording's requests, in words.
fn notes(books: &Books, spec: &ReplaySpec) -> Vec<String> {
    let (block, capacity) = (spec.system.block_bytes(), spec.system.capacity_bytes());
    let of = books.recorded;
    let counts = [
        (books.rounded, format!("widened to whole blocks of {block} bytes")),
        (books.folded, format!("folded onto the {capacity} bytes of the system")),
        (books.dropped, format!("left out: they lie outside the {capacity} bytes of the system")),
        (books.without_completion, "recorded without their completion".to_owned()),
    ];
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} of {of} requests {what}")).collect()
}
