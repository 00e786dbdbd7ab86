//! [`Bench`]: a system under probes in virtual time, which keeps its state and its clock from one probe to the next.

use headstack_driver::{Answer, Probe, Probing};

use crate::description::system::SystemDescription;
use crate::drive::Completion;
use crate::error::SimError;
use crate::pending_requests::Failed;
use crate::progress::Progress;
use crate::system::System;

/// Requests between two checks whether the caller wants to stop.
const REQUESTS_PER_CHECK: usize = 1 << 13;

/// A system and its clock.
pub struct Bench {
    system: System,
    capacity_bytes: u64,
    block_bytes: u32,
    now_ns: u64,
    done: Vec<Completion>,
    failed: Vec<Failed>,
}

impl Bench {
    /// Creates an idle system at time 0.
    ///
    /// # Errors
    /// The first impossible value in the description.
    pub fn new(description: &SystemDescription, seed: u64) -> Result<Bench, SimError> {
        description.check()?;
        let (capacity_bytes, block_bytes) = (description.capacity_bytes(), description.block_bytes());
        let system = System::new(description, seed)?;
        Ok(Bench { system, capacity_bytes, block_bytes, now_ns: 0, done: Vec::new(), failed: Vec::new() })
    }

    /// Returns the bytes that the system exports.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Returns the block size in bytes: every request is a multiple of it.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Returns the current virtual time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Lets time pass without requests.
    pub fn rest(&mut self, ns: u64) {
        self.now_ns = self.now_ns.saturating_add(ns);
        self.system.advance(self.now_ns, &mut self.done);
        assert!(self.done.is_empty(), "nothing completes where nothing is outstanding");
    }

    /// Runs a probe, which begins now and ends with its last completion. Answers are in the order of its requests.
    ///
    /// # Errors
    /// [`SimError::Range`] for a probe that does not fit the system, [`SimError::Stopped`].
    pub fn carry_out(&mut self, probe: &Probe, progress: &Progress) -> Result<Vec<Answer>, SimError> {
        if let Some(fault) = probe.fault(self.capacity_bytes, self.block_bytes) {
            return Err(SimError::Range(fault));
        }
        let start_ns = self.now_ns;
        let mut probing = Probing::new(probe);
        let mut answers = vec![Answer::default(); probe.requests.len()];
        let (mut outstanding, mut next_check) = (0usize, REQUESTS_PER_CHECK);
        while outstanding > 0 || !probing.is_over() {
            let (event_ns, due_ns) = (self.system.next_event_ns(), probing.next_due_ns().saturating_add(start_ns));
            // The system is first: its completions of this moment make room for requests that are issued at it.
            if event_ns <= due_ns {
                assert!(event_ns < u64::MAX, "requests are in flight, but no event is scheduled");
                self.now_ns = self.system.advance_to_completions(due_ns, &mut self.done);
                outstanding -= self.done.len();
                self.settle(start_ns, &mut answers, &mut probing);
                continue;
            }
            self.now_ns = due_ns;
            let (number, due_ns, request) = probing.take(due_ns - start_ns).expect("it is due");
            answers[number].issued_ns = start_ns + due_ns;
            self.system.submit(self.now_ns, number as u32, request);
            outstanding += 1;
            if number >= next_check {
                next_check += REQUESTS_PER_CHECK;
                if !progress(probing.share()) {
                    return Err(SimError::Stopped);
                }
            }
        }
        Ok(answers)
    }

    /// Records the system's completions.
    fn settle(&mut self, start_ns: u64, answers: &mut [Answer], probing: &mut Probing) {
        for completion in self.done.drain(..) {
            let answer = &mut answers[completion.id as usize];
            answer.completed_ns = completion.at_ns;
            probing.completed(completion.at_ns - start_ns);
        }
        self.system.take_failed(&mut self.failed);
        self.failed.drain(..).for_each(|failed| answers[failed.id as usize].failed = true);
    }
}
