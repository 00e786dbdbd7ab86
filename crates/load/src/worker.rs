//! One thread's loop: closed, where each completion is followed by the next request, or open, where requests come at
//! their times.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_result::{LatencyHistogram, Measuring};
use headstack_workload::{ArrivalClock, Arrivals, Generator, Think, WarmUp};

use crate::LoadError;
use crate::clock::LOOK_NS;
use crate::engine::Wait;
use crate::job::{End, Job};
use crate::rig::Rig;

/// Completions between two looks at the confidence interval.
const CONFIDENCE_EVERY: u64 = 1 << 10;

/// What a loop has to say beside what the rig keeps.
#[derive(Default)]
pub struct Loop {
    /// Requests that found no slot free when they were to arrive.
    pub late_arrivals: u64,
    /// Arrivals since the warm-up, and whether more piled up than chance does.
    pub saturated: bool,
    /// Arrivals that wait for a slot at the end.
    pub backlog: u64,
    /// From the intended arrival to the moment it was handed over, of requests that found a slot free: what this program
    /// is late by itself.
    pub lateness: LatencyHistogram,
}

/// Runs a job to its end.
///
/// # Errors
/// When the workload cannot be generated, or the kernel takes no requests any more.
pub fn work(job: &Job, rig: &mut Rig) -> Result<Loop, LoadError> {
    let generator = Generator::new(&job.workload, job.span()?, job.block_bytes(), job.seed)?;
    let (end, start_ns) = (job.end()?, rig.now_ns);
    let course = Course { warm_up: job.workload.warm_up, end, start_ns, known_at: Cell::new(0) };
    match job.workload.arrivals {
        Arrivals::Closed { outstanding, think } => {
            let delays = job.workload.specification.lines.iter().any(|line| line.delay_ns > 0);
            let thinks = delays || think != Think::None;
            if thinks {
                thinking(rig, &course, generator, outstanding)
            } else {
                closed(rig, &course, generator, outstanding)
            }
        }
        Arrivals::Open { rate_per_s, process } => {
            open(rig, &course, generator, &|| ArrivalClock::new(rate_per_s, process, job.seed))
        }
    }
}

/// Where in its course a run is.
pub struct Course {
    /// What is left out at the start.
    pub warm_up: WarmUp,
    /// When it is over.
    pub end: End,
    /// When it began.
    pub start_ns: u64,
    /// Completions at which the confidence interval is looked at next: several come at once, so that no number is sure to
    /// be met.
    known_at: Cell<u64>,
}

impl Course {
    /// Ends the warm-up, or the run, where it is time; whether it goes on.
    #[inline]
    pub fn goes_on(&self, rig: &mut Rig) -> bool {
        if rig.is_stopped() {
            rig.start_measuring(0);
            rig.close(rig.now_ns);
            return false;
        }
        let Some(measuring) = &rig.measuring else {
            if rig.completed >= self.warm_up.requests && rig.now_ns >= self.start_ns + self.warm_up.time_ns {
                rig.start_measuring(self.end.time_ns);
            }
            return true;
        };
        let completed = measuring.completed + rig.errors.iter().sum::<u64>();
        if completed >= self.end.requests || rig.bytes >= self.end.bytes || self.is_known(measuring) {
            rig.close(rig.now_ns);
        }
        rig.count_depth(rig.now_ns);
        rig.tell(|rig| self.share(rig));
        !rig.is_over()
    }

    fn is_known(&self, measuring: &Measuring) -> bool {
        let Some(percent) = self.end.confidence_percent else { return false };
        if measuring.completed < self.known_at.get() {
            return false;
        }
        self.known_at.set(measuring.completed + CONFIDENCE_EVERY);
        measuring.is_known_within(percent)
    }

    fn share(&self, rig: &Rig) -> f64 {
        let Some(measuring) = &rig.measuring else {
            return 0.0;
        };
        let time = (rig.now_ns - measuring.start_ns) as f64 / self.end.time_ns as f64;
        let requests = measuring.completed as f64 / self.end.requests as f64;
        time.max(requests).max(rig.bytes as f64 / self.end.bytes as f64)
    }

    /// Whether another request still belongs to the run: no more are issued than are measured, so that a run of so many
    /// requests or bytes makes exactly these.
    #[inline]
    pub fn takes_more(&self, rig: &Rig) -> bool {
        let Some(measuring) = &rig.measuring else {
            return true;
        };
        let requests = measuring.completed + rig.errors.iter().sum::<u64>() + rig.under_way();
        requests < self.end.requests && rig.bytes + rig.bytes_under_way < self.end.bytes
    }

    /// When somebody must look again.
    #[inline]
    pub fn look_again_ns(&self, rig: &Rig) -> u64 {
        let end_ns = match &rig.measuring {
            Some(measuring) => measuring.start_ns.saturating_add(self.end.time_ns),
            // Where only requests are missing, each of them is looked at anyway.
            None => Some(self.start_ns.saturating_add(self.warm_up.time_ns))
                .filter(|&warm_ns| warm_ns > rig.now_ns)
                .unwrap_or(u64::MAX),
        };
        end_ns.min(rig.now_ns + LOOK_NS)
    }
}

/// Closed loop without think time.
fn closed(rig: &mut Rig, course: &Course, mut generator: Generator, outstanding: u32) -> Result<Loop, LoadError> {
    while course.goes_on(rig) {
        while rig.under_way() < u64::from(outstanding) && course.takes_more(rig) {
            let request = generator.next();
            rig.issue(rig.now_ns, &request);
        }
        rig.drive(Wait::One)?;
    }
    Ok(Loop::default())
}

/// Closed loop whose clients think between a completion and the next request.
fn thinking(rig: &mut Rig, course: &Course, mut generator: Generator, outstanding: u32) -> Result<Loop, LoadError> {
    let mut due: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    for _ in 0..outstanding {
        due.push(Reverse(rig.now_ns + generator.think_ns()));
    }
    let mut result = Loop::default();
    while course.goes_on(rig) {
        while let Some(&Reverse(at_ns)) = due.peek()
            && at_ns <= rig.now_ns
            && course.takes_more(rig)
        {
            due.pop();
            result.lateness.record(rig.now_ns - at_ns);
            let request = generator.next();
            rig.issue(rig.now_ns, &request);
        }
        // Those that are due and belong to the run no more wait for nothing.
        let next = due.peek().filter(|_| course.takes_more(rig));
        let next_ns = next.map_or(u64::MAX, |&Reverse(at_ns)| at_ns);
        let until_ns = next_ns.max(rig.now_ns).min(course.look_again_ns(rig));
        rig.wait(Wait::Until(until_ns))?;
        rig.settle(|ended| due.push(Reverse(ended.at_ns + generator.think_ns())));
    }
    Ok(result)
}

/// Open loop. Two clocks run through the same arrivals: one is ahead and counts who has arrived, the other follows and
/// hands them over as there is room, so that a backlog of any length takes no memory.
fn open(
    rig: &mut Rig,
    course: &Course,
    mut generator: Generator,
    clock: &dyn Fn() -> Result<ArrivalClock, headstack_workload::WorkloadError>,
) -> Result<Loop, LoadError> {
    let (mut ahead, mut behind) = (clock()?, clock()?);
    let (mut result, start_ns) = (Loop::default(), rig.now_ns);
    let (mut arrives_ns, mut handed_ns) = (start_ns + ahead.next_ns(), start_ns + behind.next_ns());
    let mut until_ns = arrives_ns;
    // What is measured begins now and not with the first arrival.
    course.goes_on(rig);
    loop {
        // Whoever comes while others wait, or to no free slot, is late by the target, however soon one becomes free.
        let room = if rig.waiting > 0 { 0 } else { rig.room() };
        rig.wait(Wait::Until(until_ns.min(course.look_again_ns(rig))))?;
        let mut arrived = 0;
        // What comes after the end belongs to no run, however late this thread wakes.
        while arrives_ns <= rig.now_ns && arrives_ns < rig.deadline_ns() {
            rig.count_depth(arrives_ns);
            rig.waiting += 1;
            arrived += 1;
            arrives_ns = start_ns + ahead.next_ns();
        }
        rig.settle(|_| {});
        if let Some(measuring) = &mut rig.measuring {
            measuring.arrived += arrived;
        }
        if !course.goes_on(rig) {
            break;
        }
        let in_time = arrived.min(room);
        let mut handed = 0;
        while rig.waiting > 0 && rig.has_room() && course.takes_more(rig) {
            rig.waiting -= 1;
            if handed < in_time {
                result.lateness.record(rig.now_ns - handed_ns);
            }
            let request = generator.next();
            rig.issue(handed_ns, &request);
            handed += 1;
            handed_ns = start_ns + behind.next_ns();
        }
        if rig.measuring.is_some() {
            result.late_arrivals += arrived - in_time;
        }
        until_ns = if rig.has_room() { arrives_ns } else { u64::MAX };
    }
    result.backlog = rig.waiting;
    let piled_up = |measuring: &Measuring| measuring.has_piled_up(rig.waiting + rig.under_way());
    result.saturated = rig.measuring.as_ref().is_some_and(piled_up);
    if let Some(measuring) = &mut rig.measuring {
        for _ in 0..rig.waiting {
            measuring.still_outstanding(handed_ns);
            handed_ns = start_ns + behind.next_ns();
        }
    }
    Ok(result)
}
