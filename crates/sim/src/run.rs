//! A run: one system under one workload, in a closed or an open loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use headstack_result::{RunResult, Sampling, TooShort};
use headstack_workload::scenario::Scenario;
use headstack_workload::{ArrivalClock, Arrivals, Generator, RunLength, Span, Workload};
use rayon::prelude::*;

use crate::SimError;
use crate::drive::Completion;
use crate::faults::Schedule;
use crate::flights::{Flight, Flights};
use crate::recorder::Sink;
use crate::rig::{Machine, Progress, Rig, note_of_alignment, note_of_tail};
use crate::scenario;
use crate::system::{System, SystemDescription};

/// What is run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The system's name, for people.
    pub system_name: String,
    /// The system.
    pub system: SystemDescription,
    /// What it is put under.
    pub demand: Demand,
    /// The part of the system that the workload touches; the whole where absent.
    pub span: Option<Span>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Length of the intervals that results are also kept for.
    pub interval_ns: Option<u64>,
    /// Requests of the same kind that caches and flash have seen before the run begins, in no time: hours of use that
    /// need not be simulated.
    pub preload: u64,
    /// What goes wrong, and when: from the start of the run on, whose warm-up is part of it.
    pub faults: Option<Schedule>,
}

/// What a system is put under.
#[allow(clippy::large_enum_variant)] // One a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// One access specification, in a closed or an open loop.
    Workload(Workload),
    /// Clients of several kinds at once.
    Scenario(Scenario),
}

impl From<Workload> for Demand {
    fn from(workload: Workload) -> Demand {
        Demand::Workload(workload)
    }
}

impl From<Scenario> for Demand {
    fn from(scenario: Scenario) -> Demand {
        Demand::Scenario(scenario)
    }
}

/// Runs one specification to its end.
///
/// # Errors
/// An impossible drive, workload or range, or [`SimError::Stopped`].
pub fn run(spec: &RunSpec, progress: &Progress) -> Result<RunResult, SimError> {
    run_with(spec, progress, None)
}

/// Runs one specification to its end and hands every request to `sink`, those of the warm-up too.
///
/// # Errors
/// As [`run`].
pub fn record<'a>(spec: &RunSpec, progress: &Progress, sink: &'a mut Sink<'a>) -> Result<RunResult, SimError> {
    run_with(spec, progress, Some(sink))
}

fn run_with<'a>(spec: &RunSpec, progress: &Progress, sink: Option<&'a mut Sink<'a>>) -> Result<RunResult, SimError> {
    let workload = match &spec.demand {
        Demand::Workload(workload) => workload,
        Demand::Scenario(scenario) => return scenario::run(spec, scenario, progress, sink),
    };
    let mut runner = Runner::new(spec, workload, sink)?;
    runner.go(progress)?;
    Ok(runner.finish(spec, workload))
}

/// Runs one specification to its end; a panic of the simulator is this run's error, and nobody else's.
///
/// # Errors
/// As [`run`], and [`SimError::Panicked`].
pub fn run_contained(spec: &RunSpec, progress: &Progress) -> Result<RunResult, SimError> {
    // Nothing outlives a run that another could find half-changed.
    contained(|| run(spec, progress)).unwrap_or_else(|panic| Err(SimError::Panicked(panic)))
}

/// What `work` gives. It leaves nothing behind.
///
/// # Errors
/// The words of its panic.
pub fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
    })
}

/// Runs many specifications on all cores; results stand in the order of the specifications, whatever core they ran on.
pub fn run_all(specs: &[RunSpec], progress: &(dyn Fn(usize, f64) -> bool + Sync)) -> Vec<Result<RunResult, SimError>> {
    specs
        .par_iter()
        .enumerate()
        .with_max_len(1)
        .map(|(index, spec)| run_contained(spec, &|share| progress(index, share)))
        .collect()
}

struct Runner<'a> {
    rig: Rig<'a>,
    generator: Generator,
    clock: Option<ArrivalClock>,
    next_arrival_ns: u64,
    outstanding_limit: u32,
    thinks: bool,
    /// Issues of the closed loop that wait for their think time.
    thinking: BinaryHeap<Reverse<u64>>,
    warm_up: headstack_workload::WarmUp,
    run_length: RunLength,
    late_arrivals: u64,
}

impl<'a> Runner<'a> {
    fn new(spec: &RunSpec, workload: &Workload, sink: Option<&'a mut Sink<'a>>) -> Result<Self, SimError> {
        let mut system = System::new(&spec.system, spec.seed)?;
        let capacity = spec.system.capacity_bytes();
        let span = spec.span.unwrap_or(Span { start_bytes: 0, length_bytes: capacity });
        let end = span.start_bytes.checked_add(span.length_bytes);
        if span.length_bytes == 0 || end.is_none_or(|end| end > capacity) {
            return Err(SimError::Range(format!(
                "{} bytes from {}; the system holds {capacity}",
                span.length_bytes, span.start_bytes
            )));
        }
        workload.validate()?;
        let generator = Generator::new(workload, span, spec.system.block_bytes(), spec.seed)?;
        if spec.preload > 0 {
            let mut past = Generator::new(workload, span, spec.system.block_bytes(), !spec.seed)?;
            (0..spec.preload).for_each(|_| system.warm_with(&past.next()));
        }
        let (outstanding_limit, thinks, clock) = match workload.arrivals {
            Arrivals::Closed { outstanding, think } => {
                let delays = workload.specification.lines.iter().any(|line| line.delay_ns > 0);
                (outstanding, delays || think != headstack_workload::Think::None, None)
            }
            Arrivals::Open { rate_per_s, process } => {
                (0, false, Some(ArrivalClock::new(rate_per_s, process, spec.seed)?))
            }
        };
        let mut rig = Rig::new(Machine::new(system, &spec.system, spec.faults.as_ref())?, spec.interval_ns, sink);
        rig.preloaded = spec.preload;
        rig.flights = Flights::with_capacity(outstanding_limit as usize);
        let mut runner = Runner {
            rig,
            generator,
            clock,
            next_arrival_ns: u64::MAX,
            outstanding_limit,
            thinks,
            thinking: BinaryHeap::new(),
            warm_up: workload.warm_up,
            run_length: workload.run_length,
            late_arrivals: 0,
        };
        if let Some(clock) = &mut runner.clock {
            runner.next_arrival_ns = clock.next_ns();
        }
        Ok(runner)
    }

    fn go(&mut self, progress: &Progress) -> Result<(), SimError> {
        self.maybe_start_measuring();
        for _ in 0..self.outstanding_limit {
            self.think_or_issue();
        }
        let mut done = Vec::with_capacity(64);
        while !self.rig.is_over() {
            let issue_ns = self.thinking.peek().map_or(u64::MAX, |&Reverse(at_ns)| at_ns);
            let outside_ns = issue_ns.min(self.next_arrival_ns);
            let event_ns = self.rig.next_event_ns();
            let mut limit_ns = outside_ns;
            if let RunLength::TimeNs(length_ns) = self.run_length {
                if self.rig.time_is_up_before(length_ns, event_ns.min(outside_ns)) {
                    break;
                }
                let start_ns = self.rig.measuring.as_ref().map(|measuring| measuring.start_ns);
                limit_ns = limit_ns.min(start_ns.map_or(u64::MAX, |start_ns| start_ns + length_ns));
            }
            // The system first: what it finishes at this moment makes room for what is issued at it.
            if event_ns <= outside_ns {
                if event_ns == u64::MAX {
                    self.rig.never_answers();
                    break;
                }
                self.system_events(limit_ns, &mut done);
            } else if issue_ns <= self.next_arrival_ns {
                self.rig.now_ns = issue_ns;
                self.thinking.pop();
                self.issue(issue_ns);
            } else {
                self.rig.now_ns = self.next_arrival_ns;
                self.arrive();
            }
            let run_length = self.run_length;
            self.rig.tell(progress, |rig| share_done(rig, run_length))?;
        }
        Ok(())
    }

    #[inline]
    fn system_events(&mut self, limit_ns: u64, done: &mut Vec<Completion>) {
        self.rig.advance(limit_ns, done);
        for completion in done.iter() {
            if self.rig.is_over() {
                break;
            }
            self.complete(completion);
        }
        done.clear();
        self.rig.settle();
    }

    /// An open-loop arrival.
    fn arrive(&mut self) {
        let at_ns = self.next_arrival_ns;
        self.next_arrival_ns = self.clock.as_mut().map_or(u64::MAX, ArrivalClock::next_ns);
        if let Some(measuring) = &mut self.rig.measuring {
            measuring.arrived += 1;
        }
        self.issue(at_ns);
    }

    /// The closed loop's next request: now, or after its think time.
    #[inline]
    fn think_or_issue(&mut self) {
        if self.thinks {
            let think_ns = self.generator.think_ns();
            self.thinking.push(Reverse(self.rig.now_ns + think_ns));
        } else {
            self.issue(self.rig.now_ns);
        }
    }

    #[inline]
    fn issue(&mut self, at_ns: u64) {
        let request = self.generator.next();
        let (_, admitted) = self.rig.issue(Flight { intended_ns: at_ns, request, client: 0, stream: 0 });
        if !admitted && self.rig.measuring.is_some() && self.clock.is_some() {
            self.late_arrivals += 1;
        }
    }

    #[inline]
    fn complete(&mut self, completion: &Completion) {
        self.rig.complete(completion);
        self.maybe_start_measuring();
        self.maybe_end();
        if self.clock.is_none() && !self.rig.is_over() {
            self.think_or_issue();
        }
    }

    #[inline]
    fn maybe_start_measuring(&mut self) {
        if self.rig.flights.completed >= self.warm_up.requests && self.rig.now_ns >= self.warm_up.time_ns {
            self.rig.start_measuring();
        }
    }

    #[inline]
    fn maybe_end(&mut self) {
        let Some(measuring) = &self.rig.measuring else {
            return;
        };
        let over = match self.run_length {
            RunLength::Requests(limit) => measuring.completed + measuring.failed >= limit,
            RunLength::TimeNs(_) => false,
            RunLength::Confidence { percent, max_requests } => {
                measuring.completed + measuring.failed >= max_requests || measuring.is_known_within(percent)
            }
        };
        if over {
            self.rig.close();
        }
    }

    fn finish(self, spec: &RunSpec, workload: &Workload) -> RunResult {
        let record = serde_json::to_value(workload).expect("workloads are plain data");
        let backlog = self.rig.outstanding();
        let piled_up = self.rig.measuring.as_ref().is_some_and(|measuring| measuring.has_piled_up(backlog));
        let mut result = self.rig.finish(&spec.system_name, &spec.system, record, spec.seed);
        result.late_arrivals = self.late_arrivals;
        if let Arrivals::Open { rate_per_s, .. } = workload.arrivals {
            result.offered_per_s = Some(rate_per_s);
            result.saturated = piled_up;
            if piled_up {
                result.sampling = Sampling::nothing(TooShort::Saturated);
            }
        }
        result.notes.extend(note_of_alignment(&spec.system, workload));
        result.notes.extend(note_of_tail(&spec.system));
        result
    }
}

fn share_done(rig: &Rig, run_length: RunLength) -> f64 {
    let Some(measuring) = &rig.measuring else {
        return 0.0;
    };
    match run_length {
        RunLength::Requests(limit) => measuring.completed as f64 / limit as f64,
        RunLength::TimeNs(limit_ns) => (rig.now_ns - measuring.start_ns) as f64 / limit_ns as f64,
        RunLength::Confidence { max_requests, .. } => measuring.completed as f64 / max_requests as f64,
    }
}
