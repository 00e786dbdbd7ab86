//! [`run`]: a run of one system under one workload, in a closed or an open loop.

use std::panic::{AssertUnwindSafe, catch_unwind};

use headstack_driver::{End, Loop};
use headstack_result::{RunResult, Sampling, TooShort};
use headstack_workload::{Arrivals, Generator, RunLength, Span, WarmUp, Workload};
use rayon::prelude::*;

use crate::drive::Completion;
use crate::error::SimError;
use crate::in_service;
use crate::load_loop::{LoadLoop, Machine, waiting_max};
use crate::notes::{note_of_alignment, note_of_osd_cpu, note_of_shingled_rebuild, note_of_tail};
use crate::pending_requests::{PendingRequest, PendingRequests};
use crate::progress::Progress;
use crate::recorder::Sink;
use crate::run_spec::{Demand, RunSpec};
use crate::scenario;
use crate::system::System;

/// Runs one specification to its end.
///
/// # Errors
/// An impossible drive, workload or range, or [`SimError::Stopped`].
pub fn run(spec: &RunSpec, progress: &Progress) -> Result<RunResult, SimError> {
    run_with(spec, progress, None)
}

/// Runs one specification to its end and passes every request to `sink`, warm-up included.
///
/// # Errors
/// As for [`run`].
pub fn record<'a>(spec: &RunSpec, progress: &Progress, sink: &'a mut Sink<'a>) -> Result<RunResult, SimError> {
    run_with(spec, progress, Some(sink))
}

fn run_with<'a>(spec: &RunSpec, progress: &Progress, sink: Option<&'a mut Sink<'a>>) -> Result<RunResult, SimError> {
    let workload = match &spec.demand {
        Demand::Workload(workload) => workload,
        Demand::Scenario(scenario) => return scenario::run(spec, scenario, progress, sink),
    };
    let mut runner = Runner::new(spec, workload, progress, sink)?;
    runner.go(progress)?;
    Ok(runner.finish(spec, workload))
}

/// Runs one specification to its end; a panic of the simulator becomes an error of this run only.
///
/// # Errors
/// As for [`run`], and [`SimError::Panicked`].
pub fn run_contained(spec: &RunSpec, progress: &Progress) -> Result<RunResult, SimError> {
    // No state outlives a run that another could find half-changed.
    contained(|| run(spec, progress)).unwrap_or_else(|panic| Err(SimError::Panicked(panic)))
}

/// Runs `work`, which must leave no state behind, and catches its panics.
///
/// # Errors
/// The message of its panic.
pub fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
    })
}

/// Runs many specifications on all cores; results are in the order of the specifications.
pub fn run_all(specs: &[RunSpec], progress: &(dyn Fn(usize, f64) -> bool + Sync)) -> Vec<Result<RunResult, SimError>> {
    specs
        .par_iter()
        .enumerate()
        .with_max_len(1)
        .map(|(index, spec)| run_contained(spec, &|share| progress(index, share)))
        .collect()
}

struct Runner<'a> {
    load_loop: LoadLoop<'a>,
    requests: Loop,
    warm_up: WarmUp,
    end: End,
    /// Most requests of an open loop that may wait.
    waiting_max: u64,
    late_arrivals: u64,
}

impl<'a> Runner<'a> {
    fn new(
        spec: &RunSpec,
        workload: &Workload,
        progress: &Progress,
        sink: Option<&'a mut Sink<'a>>,
    ) -> Result<Self, SimError> {
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
        let mut system = System::new(&spec.system, spec.seed)?;
        let goes_on = |_: f64| progress(0.0);
        if spec.preload > 0 {
            let mut past = Generator::new(workload, span, spec.system.block_bytes(), !spec.seed)?;
            in_service::bring(
                &mut system,
                &mut || Some(past.next()),
                spec.preload,
                &mut |system, requests, number| Self::pilot(spec, workload, span, (system, requests, number), &goes_on),
            )?;
        }
        let machine = Machine::new(system, &spec.system, spec.faults.as_ref())?;
        let mut load_loop = LoadLoop::new(machine, spec.interval_ns, sink);
        load_loop.preloaded = spec.preload;
        Self::on(load_loop, workload, generator, spec.seed)
    }

    fn on(mut load_loop: LoadLoop<'a>, workload: &Workload, generator: Generator, seed: u64) -> Result<Self, SimError> {
        if let Arrivals::Closed { queue_depth, .. } = workload.arrivals {
            load_loop.flights = PendingRequests::with_capacity(queue_depth as usize);
        }
        let requests = Loop::new(workload, generator, None, seed)?;
        let end = workload.run_length.into();
        let waiting_max = waiting_max(&end);
        Ok(Runner { load_loop, requests, warm_up: workload.warm_up, end, waiting_max, late_arrivals: 0 })
    }

    /// Returns by how many pages more a system's cache is dirty after a number of requests of the workload.
    fn pilot(
        spec: &RunSpec,
        workload: &Workload,
        span: Span,
        (system, requests, number): (System, u64, u64),
        progress: &Progress,
    ) -> Result<i64, SimError> {
        let short = Workload {
            warm_up: WarmUp { requests: requests / in_service::WARM_UP_DIVISOR, time_ns: 0 },
            run_length: RunLength::Requests(requests),
            ..workload.clone()
        };
        let seed = (!spec.seed).wrapping_sub(number);
        let generator = Generator::new(&short, span, spec.system.block_bytes(), seed)?;
        let load_loop = LoadLoop::new(Machine::new(system, &spec.system, None)?, None, None);
        let mut runner = Runner::on(load_loop, &short, generator, seed)?;
        runner.go(progress)?;
        Ok(runner.load_loop.dirtied())
    }

    fn go(&mut self, progress: &Progress) -> Result<(), SimError> {
        self.maybe_start_measuring();
        while self.requests.has_answer() {
            self.issue();
        }
        let mut done = Vec::with_capacity(64);
        while !self.load_loop.is_over() {
            let due_ns = self.requests.next_due_ns();
            let event_ns = self.load_loop.next_event_ns();
            let mut limit_ns = due_ns;
            if self.end.time_ns != u64::MAX {
                if self.load_loop.time_is_up_before(self.end.time_ns, event_ns.min(due_ns)) {
                    break;
                }
                let start_ns = self.load_loop.measuring.as_ref().map(|measuring| measuring.start_ns);
                limit_ns = limit_ns.min(start_ns.map_or(u64::MAX, |start_ns| start_ns + self.end.time_ns));
            }
            // The system is first: its completions of this moment make room for requests that are issued at it.
            if event_ns <= due_ns {
                if event_ns == u64::MAX {
                    self.load_loop.never_answers();
                    break;
                }
                self.system_events(limit_ns, &mut done);
            } else {
                self.load_loop.now_ns = due_ns;
                self.issue();
            }
            let end = &self.end;
            self.load_loop.report_progress(progress, |load_loop| load_loop.share_done(end))?;
        }
        Ok(())
    }

    #[inline]
    fn system_events(&mut self, limit_ns: u64, done: &mut Vec<Completion>) {
        self.load_loop.advance(limit_ns, done);
        for completion in done.iter() {
            if self.load_loop.is_over() {
                break;
            }
            self.complete(completion);
        }
        done.clear();
        self.load_loop.settle();
    }

    /// Issues the request that is due now.
    #[inline]
    fn issue(&mut self) {
        let next = self.requests.take(self.load_loop.now_ns).expect("a request is due");
        let flight = PendingRequest { intended_ns: next.due_ns, request: next.request, client: 0, stream: 0 };
        if let Loop::Open(_) = self.requests
            && let Some(measuring) = &mut self.load_loop.measuring
        {
            measuring.arrived += 1;
            self.late_arrivals += u64::from(!self.load_loop.issue(flight).1);
        } else {
            self.load_loop.issue(flight);
        }
        if self.load_loop.outstanding() > self.waiting_max / 2 && matches!(self.requests, Loop::Open(_)) {
            self.end_if_overloaded();
        }
    }

    /// Ends a run whose system cannot sustain the offered load, once too many requests wait: its warm-up would never be
    /// over.
    #[cold]
    fn end_if_overloaded(&mut self) {
        self.load_loop.start_measuring();
        if self.load_loop.outstanding() > self.waiting_max {
            self.load_loop.end_overloaded(self.waiting_max);
        }
    }

    #[inline]
    fn complete(&mut self, completion: &Completion) {
        self.load_loop.complete(completion);
        self.maybe_start_measuring();
        self.maybe_end();
        if !self.load_loop.is_over() {
            self.requests.completed(self.load_loop.now_ns);
            if self.requests.has_answer() {
                self.issue();
            }
        }
    }

    #[inline]
    fn maybe_start_measuring(&mut self) {
        if self.warm_up.is_over(self.load_loop.flights.completed, self.load_loop.now_ns) {
            self.load_loop.start_measuring();
        }
    }

    #[inline]
    fn maybe_end(&mut self) {
        if let Some(measuring) = &self.load_loop.measuring
            && self.end.is_reached(measuring, measuring.completed + measuring.failed)
        {
            self.load_loop.close();
        }
    }

    fn finish(self, spec: &RunSpec, workload: &Workload) -> RunResult {
        let record = serde_json::to_value(workload).expect("workloads are plain data");
        let backlog = self.load_loop.outstanding();
        let is_overloaded = self.load_loop.is_overloaded;
        let measuring = self.load_loop.measuring.as_ref();
        let piled_up = is_overloaded || measuring.is_some_and(|measuring| measuring.has_piled_up(backlog));
        let mut result = self.load_loop.finish(&spec.system_name, &spec.system, record, spec.seed);
        result.late_arrivals = self.late_arrivals;
        if let Arrivals::Open { rate_per_s, .. } = workload.arrivals {
            result.offered_per_s = Some(rate_per_s);
            result.saturated = piled_up;
            if piled_up {
                result.sampling = Sampling::nothing(TooShort::Saturated);
            }
        }
        result.notes.extend(note_of_alignment(&spec.system, workload));
        result.notes.extend(note_of_shingled_rebuild(&spec.system, &result));
        result.notes.extend(note_of_osd_cpu(&spec.system, &result));
        result.notes.extend(note_of_tail(&spec.system));
        result
    }
}
