//! A run: one system under one workload, in a closed or an open loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_result::{Mode, RunResult, SystemRecord};
use headstack_workload::scenario::Scenario;
use headstack_workload::{ArrivalClock, Arrivals, GENERATOR_NAME, Generator, RunLength, Span, Workload};
use rayon::prelude::*;

use crate::SimError;
use crate::device::DeviceDescription;
use crate::drive::Completion;
use crate::drive::description::SlowProcesses;
use crate::flights::{Flight, Flights};
use crate::measuring::Measuring;
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

/// Hears how far a run is, 0 to 1, and says whether it goes on.
pub type Progress<'a> = dyn Fn(f64) -> bool + Sync + 'a;

/// Runs one specification to its end.
///
/// # Errors
/// An impossible drive, workload or range, or [`SimError::Stopped`].
pub fn run(spec: &RunSpec, progress: &Progress) -> Result<RunResult, SimError> {
    let workload = match &spec.demand {
        Demand::Workload(workload) => workload,
        Demand::Scenario(scenario) => return scenario::run(spec, scenario, progress),
    };
    let mut runner = Runner::new(spec, workload)?;
    runner.go(progress)?;
    Ok(runner.finish(spec, workload))
}

/// Runs many specifications on all cores; results stand in the order of the specifications, whatever core they ran on.
pub fn run_all(specs: &[RunSpec], progress: &(dyn Fn(usize, f64) -> bool + Sync)) -> Vec<Result<RunResult, SimError>> {
    specs
        .par_iter()
        .enumerate()
        .with_max_len(1)
        .map(|(index, spec)| run(spec, &|share| progress(index, share)))
        .collect()
}

/// Completions between two looks at the clock of the outside world.
pub const PROGRESS_EVERY: u64 = 1 << 13;
/// Completions between two looks at the confidence interval.
const CONFIDENCE_EVERY: u64 = 1 << 10;

struct Runner {
    system: System,
    generator: Generator,
    clock: Option<ArrivalClock>,
    next_arrival_ns: u64,
    outstanding_limit: u32,
    thinks: bool,
    /// Issues of the closed loop that wait for their think time.
    thinking: BinaryHeap<Reverse<u64>>,
    flights: Flights,
    done: Vec<Completion>,
    warm_up: headstack_workload::WarmUp,
    run_length: RunLength,
    interval_ns: u64,
    late_arrivals: u64,
    measuring: Option<Measuring>,
    now_ns: u64,
}

impl Runner {
    fn new(spec: &RunSpec, workload: &Workload) -> Result<Self, SimError> {
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
        let mut runner = Runner {
            system,
            generator,
            clock,
            next_arrival_ns: u64::MAX,
            outstanding_limit,
            thinks,
            thinking: BinaryHeap::new(),
            flights: Flights::with_capacity(outstanding_limit as usize),
            done: Vec::with_capacity(64),
            warm_up: workload.warm_up,
            run_length: workload.run_length,
            interval_ns: spec.interval_ns.unwrap_or(u64::MAX).max(1),
            late_arrivals: 0,
            measuring: None,
            now_ns: 0,
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
        let mut next_progress = PROGRESS_EVERY;
        while !self.is_over() {
            let issue_ns = self.thinking.peek().map_or(u64::MAX, |&Reverse(at_ns)| at_ns);
            let outside_ns = issue_ns.min(self.next_arrival_ns);
            let event_ns = self.system.next_event_ns();
            if self.time_is_up_before(event_ns.min(outside_ns)) {
                break;
            }
            // The system first: what it finishes at this moment makes room for what is issued at it.
            if event_ns <= outside_ns {
                assert!(event_ns != u64::MAX, "requests are outstanding, yet nothing will ever happen");
                self.system_event(event_ns);
            } else if issue_ns <= self.next_arrival_ns {
                self.now_ns = issue_ns;
                self.thinking.pop();
                self.issue(issue_ns);
            } else {
                self.now_ns = self.next_arrival_ns;
                self.arrive();
            }
            if self.flights.completed >= next_progress {
                next_progress = self.flights.completed + PROGRESS_EVERY;
                if !progress(self.share_done()) {
                    return Err(SimError::Stopped);
                }
            }
        }
        Ok(())
    }

    /// Ends a run of a given time if that is over before `next_ns`, when something happens next.
    #[inline]
    fn time_is_up_before(&mut self, next_ns: u64) -> bool {
        if let RunLength::TimeNs(limit_ns) = self.run_length
            && let Some(measuring) = &mut self.measuring
            && next_ns > measuring.start_ns + limit_ns
        {
            measuring.close(measuring.start_ns + limit_ns, self.flights.outstanding());
            return true;
        }
        false
    }

    #[inline]
    fn system_event(&mut self, at_ns: u64) {
        self.now_ns = at_ns;
        let mut done = std::mem::take(&mut self.done);
        self.system.advance(at_ns, &mut done);
        for completion in done.drain(..) {
            if self.is_over() {
                break;
            }
            self.complete(&completion);
        }
        self.done = done;
        if self.system.data_loss().is_some() {
            self.end_by_loss();
        }
    }

    /// Data are gone: what was measured until now is the result.
    #[cold]
    fn end_by_loss(&mut self) {
        let backlog = self.flights.outstanding();
        let (now_ns, interval_ns) = (self.now_ns, self.interval_ns);
        let before = || Measuring::new(now_ns, self.system.snapshot(), backlog, interval_ns);
        self.measuring.get_or_insert_with(before).close(now_ns, backlog);
    }

    /// An open-loop arrival.
    fn arrive(&mut self) {
        let at_ns = self.next_arrival_ns;
        self.next_arrival_ns = self.clock.as_mut().map_or(u64::MAX, ArrivalClock::next_ns);
        if let Some(measuring) = &mut self.measuring {
            measuring.arrived += 1;
        }
        self.issue(at_ns);
    }

    /// The closed loop's next request: now, or after its think time.
    #[inline]
    fn think_or_issue(&mut self) {
        if self.thinks {
            let think_ns = self.generator.think_ns();
            self.thinking.push(Reverse(self.now_ns + think_ns));
        } else {
            self.issue(self.now_ns);
        }
    }

    #[inline]
    fn issue(&mut self, at_ns: u64) {
        self.count_depth(at_ns);
        let request = self.generator.next();
        let id = self.flights.issue(Flight { intended_ns: at_ns, request, client: 0, stream: 0 });
        let admitted = self.system.submit(at_ns, id, &request);
        if !admitted && self.measuring.is_some() && self.clock.is_some() {
            self.late_arrivals += 1;
        }
    }

    #[inline]
    fn complete(&mut self, completion: &Completion) {
        self.count_depth(completion.at_ns);
        let flight = self.flights.complete(completion.id);
        if let Some(measuring) = &mut self.measuring {
            measuring.record(&flight.request, flight.intended_ns, completion);
        }
        self.maybe_start_measuring();
        self.maybe_end();
        if self.clock.is_none() && !self.is_over() {
            self.think_or_issue();
        }
    }

    /// Books the time since the last change at the depth that held.
    #[inline]
    fn count_depth(&mut self, at_ns: u64) {
        if let Some(measuring) = &mut self.measuring {
            measuring.count_depth(at_ns, (self.flights.outstanding()) as usize);
        }
    }

    #[inline]
    fn maybe_start_measuring(&mut self) {
        let warm = self.flights.completed >= self.warm_up.requests && self.now_ns >= self.warm_up.time_ns;
        if self.measuring.is_none() && warm {
            let backlog = self.flights.outstanding();
            self.measuring = Some(Measuring::new(self.now_ns, self.system.snapshot(), backlog, self.interval_ns));
        }
    }

    #[inline]
    fn maybe_end(&mut self) {
        let backlog = self.flights.outstanding();
        let Some(measuring) = &mut self.measuring else {
            return;
        };
        let over = match self.run_length {
            RunLength::Requests(limit) => measuring.completed >= limit,
            RunLength::TimeNs(_) => false,
            RunLength::Confidence { percent, max_requests } => {
                measuring.completed >= max_requests
                    || (measuring.completed.is_multiple_of(CONFIDENCE_EVERY) && measuring.is_known_within(percent))
            }
        };
        if over {
            measuring.close(self.now_ns, backlog);
        }
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.measuring.as_ref().is_some_and(|measuring| measuring.end_ns.is_some())
    }

    fn share_done(&self) -> f64 {
        let Some(measuring) = &self.measuring else {
            return 0.0;
        };
        let share = match self.run_length {
            RunLength::Requests(limit) => measuring.completed as f64 / limit as f64,
            RunLength::TimeNs(limit_ns) => (self.now_ns - measuring.start_ns) as f64 / limit_ns as f64,
            RunLength::Confidence { max_requests, .. } => measuring.completed as f64 / max_requests as f64,
        };
        share.min(1.0)
    }

    fn finish(self, spec: &RunSpec, workload: &Workload) -> RunResult {
        let description = serde_json::to_value(&spec.system).expect("descriptions are plain data");
        let record = serde_json::to_value(workload).expect("workloads are plain data");
        let system = SystemRecord::new(&*spec.system_name, spec.system.kind(), description);
        let mut result = RunResult::new(Mode::Simulated, system, record, spec.seed, GENERATOR_NAME);
        result.checks = self.flights.checks();
        result.late_arrivals = self.late_arrivals;
        result.backlog = self.flights.outstanding();
        let mut measuring = self.measuring.expect("a run ends by its measured part");
        self.flights.under_way().for_each(|flight| measuring.still_outstanding(flight.intended_ns));
        if let Arrivals::Open { rate_per_s, .. } = workload.arrivals {
            result.offered_per_s = Some(rate_per_s);
            result.saturated = measuring.has_piled_up(result.backlog);
        }
        measuring.write_to(&mut result, self.system.snapshot());
        result.data_loss = self.system.data_loss().map(str::to_owned);
        if has_no_slow_processes(&spec.system) {
            let note = "beyond p99 the tail is geometry and queueing only: retries, recalibration and scans are off";
            result.notes.push(note.to_owned());
        }
        result
    }
}

/// Nothing in the system makes a tail of its own.
fn has_no_slow_processes(system: &SystemDescription) -> bool {
    let quiet = |device: &DeviceDescription| match device {
        DeviceDescription::Disk(drive) => drive.slow == SlowProcesses::default(),
        DeviceDescription::Ssd(_) => false,
    };
    match system {
        SystemDescription::Drive(device) => quiet(device),
        SystemDescription::Array(array) => array.devices.iter().all(quiet),
    }
}
