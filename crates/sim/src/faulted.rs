//! [`FaultedSystem`]: a system into which a run injects faults in virtual time; the load generator learns the outcome
//! of each request.

use headstack_result::{FaultRecord, LossRecord};
use headstack_workload::{Kind, Request};

use crate::description::model::Model;
use crate::description::system::SystemDescription;
use crate::drive::Completion;
use crate::error::SimError;
use crate::faults::{Injection, Schedule};
use crate::pending_requests::Outcome;
use crate::power_cut::{Changed, LostWrites};
use crate::system::System;
use crate::timeline::{Finished, Timeline};

/// A system and its faults. Time 0 of its schedule is that of the run, including its warm-up.
pub struct FaultedSystem {
    timeline: Timeline<u32>,
    finished: Vec<Finished<u32>>,
    /// Requests that will not be answered, by the load generator's number. They end when the system is there again:
    /// then its connection breaks, or its commands time out, and the load can continue.
    stranded: Vec<u32>,
    /// Changes so far; not counted if none is to be undone.
    changes: Option<u64>,
    losses: u32,
    /// Requests of the last moment that were not done, with their outcome.
    undone: Vec<(u32, Outcome)>,
}

impl FaultedSystem {
    /// Creates an idle system with a schedule of faults.
    ///
    /// # Errors
    /// The first impossible value in the description; a fault that cannot be injected into it.
    pub fn new(system: System, description: &SystemDescription, schedule: &Schedule) -> Result<Self, SimError> {
        let mut timeline = Timeline::of(Model::System(description.clone()), system);
        timeline.follow(schedule)?;
        let wrong = |(index, (key, message))| SimError::Fault(format!("fault[{index}].{key}: {message}"));
        schedule.check_without_contents().map_err(wrong)?;
        let loses = schedule.faults.iter().any(|timed| timed.fault.loses_cached_writes());
        Ok(FaultedSystem {
            timeline,
            finished: Vec::new(),
            stranded: Vec::new(),
            changes: loses.then_some(0),
            losses: 0,
            undone: Vec::new(),
        })
    }

    /// Returns the system into which faults are injected.
    pub fn system(&self) -> &System {
        self.timeline.system().expect("runs are of systems")
    }

    /// Takes a request at `now_ns`, as [`System::submit`] does.
    pub fn submit(&mut self, now_ns: u64, id: u32, request: &Request) -> bool {
        let changed = match (&mut self.changes, request.kind) {
            (Some(changes), Kind::Write | Kind::Trim) => {
                *changes += 1;
                Some(Changed { number: *changes, forced: request.force_unit_access })
            }
            (None, _) | (Some(_), Kind::Read | Kind::Flush) => None,
        };
        self.timeline.take(now_ns, *request, changed, id)
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    pub fn next_event_ns(&self) -> u64 {
        self.timeline.next_ns()
    }

    /// Processes its next events, which all happen at the returned time, at or before `limit_ns`. Appends requests that
    /// end; their outcome is available from [`take_outcome`](Self::take_outcome).
    pub fn advance_by_one(&mut self, limit_ns: u64, done: &mut Vec<Completion>) -> u64 {
        let now_ns = self.next_event_ns();
        debug_assert!(now_ns <= limit_ns, "something happens until then");
        debug_assert!(self.undone.is_empty(), "every outcome is asked after");
        self.timeline.advance(now_ns, &mut self.finished);
        self.timeline.forget_damages();
        self.note_losses();
        for Finished { at_ns, started_ns, outcome, ticket: id, .. } in self.finished.drain(..) {
            match outcome {
                Outcome::Vanished => {
                    self.stranded.push(id);
                    continue;
                }
                Outcome::Refused(_) | Outcome::Failed(_) => self.undone.push((id, outcome)),
                Outcome::Done => {}
            }
            done.push(Completion { at_ns, id, started_ns });
        }
        if !self.stranded.is_empty() && self.timeline.is_there() {
            for id in self.stranded.drain(..) {
                self.undone.push((id, Outcome::Vanished));
                done.push(Completion { at_ns: now_ns, id, started_ns: now_ns });
            }
        }
        now_ns
    }

    /// Returns the outcome of a request that has ended.
    pub fn take_outcome(&mut self, id: u32) -> Outcome {
        let at = self.undone.iter().position(|(undone, _)| *undone == id);
        at.map_or(Outcome::Done, |at| self.undone.remove(at).1)
    }

    /// Records what a power cut, or a flush, lost, by the model only: there are no contents to look at.
    fn note_losses(&mut self) {
        if self.changes.is_none() {
            return;
        }
        let mut verdicts = Vec::new();
        self.timeline.take_verdicts(&mut verdicts);
        if self.timeline.losses() != self.losses {
            self.losses = self.timeline.losses();
            self.timeline.note_lost(&LostWrites::from_verdicts(verdicts));
        }
    }

    /// Returns a record of each fault that was injected, with its consequences.
    pub fn records(&self) -> Vec<FaultRecord> {
        self.timeline.injections().injections.iter().map(record).collect()
    }
}

fn record(injection: &Injection) -> FaultRecord {
    let loss = injection.loss.as_ref().map(|loss| LossRecord {
        lost_writes: loss.lost_writes,
        lost_bytes: loss.lost_bytes,
        lost_extents: loss.lost_extents,
        under_way: loss.under_way,
        absent: loss.absent,
        whole: loss.whole,
        torn: loss.torn.len() as u64,
    });
    FaultRecord {
        number: injection.number,
        at_ns: injection.at_ns,
        until_ns: injection.until_ns,
        fault: serde_json::to_value(&injection.fault).expect("faults are plain data"),
        refused: injection.refused.clone(),
        met: injection.met,
        failed: injection.failed,
        retried_passes: injection.counters.map(|counters| counters.retried_passes),
        uncorrectable_errors: injection.counters.map(|counters| counters.uncorrectable_errors),
        loss,
    }
}
