//! The loop of one thread: closed, where each completion is followed by the next request, or open, where requests have
//! arrival times.

use headstack_driver::{ClosedLoop, Loop, OpenLoop};
use headstack_result::{LatencyHistogram, Measuring};
use headstack_workload::{Generator, Request, WarmUp};

use crate::LoadError;
use crate::clock::LOOK_NS;
use crate::engine::Wait;
use crate::flow::Turns;
use crate::job::{Job, JobEnd};
use crate::nvme::words_of;
use crate::rig::{Rig, WarmedUp};
use crate::zones::Tending;

/// Limit of a warm-up by request count of at most the default.
const COUNTED_WARM_UP_NS: u64 = 1_000_000_000;

/// Statistics of a loop in addition to those of the rig.
#[derive(Default)]
pub struct LoopStats {
    /// Requests that found no free slot at their arrival.
    pub late_arrivals: u64,
    /// Whether the backlog grew beyond random fluctuation since the warm-up.
    pub saturated: bool,
    /// Arrivals waiting for a slot at the end.
    pub backlog: u64,
    /// Time from the intended arrival to submission, of requests that found a free slot: delays caused by this program.
    pub lateness: LatencyHistogram,
    /// Notes on failed side operations.
    pub notes: Vec<String>,
}

/// Wait of a job that is ahead of its flow and has nothing under way, unless it has its own.
const FLOW_LOOK_NS: u64 = 20_000;

/// Runs a job to its end.
///
/// # Errors
/// When the workload cannot be generated, or the kernel accepts no more requests.
pub fn work(job: &Job, rig: &mut Rig) -> Result<LoopStats, LoadError> {
    let generator = Generator::new(&job.workload, job.span()?, job.block_bytes(), job.seed)?;
    let tending = Tending::new(job)?;
    let end = tending.as_ref().map_or_else(|| job.end(), |tending| Ok(job.end_by(tending.pass_bytes())))?;
    let mut stints = Stints::new(job);
    stints.forget_cached(rig);
    rig.tend_zones(tending);
    let start_ns = rig.now_ns;
    let control = RunControl { warm_up: job.workload.warm_up, end, start_ns };
    rig.errors_rule = job.errors;
    rig.watch(job.bounds);
    rig.write_content(&job.content);
    if job.times_handing_over {
        rig.time_handing_over();
    }
    let mut loop_stats = match Loop::new(&job.workload, generator, job.rates_per_s, job.seed)? {
        Loop::Closed(requests) => closed(rig, &control, requests, &mut stints),
        Loop::Open(requests) => open(rig, &control, requests, &mut stints),
    }?;
    if rig.has_run_dry {
        let why = "its zones had no more data to read or reset";
        loop_stats.notes.push(format!("{} ended: {why}", job.name));
    } else if let Some(broken) = &rig.broken {
        loop_stats.notes.push(format!("{} ended: {}", job.name, broken.message));
    } else if rig.is_ended_by_error {
        loop_stats.notes.push(format!("{} ended at its first error; use continue_on_error to continue", job.name));
    } else if job.flushes_at_end && job.writes() && rig.drain()? {
        let result = rig.flush();
        if result < 0 {
            let why = words_of(-result);
            loop_stats.notes.push(format!("{}: the flush at its end failed: {why}", job.target()));
        }
    }
    loop_stats.notes.extend(stints.failed);
    Ok(loop_stats)
}

/// Passes of a job over its part, with an emptied page cache between them, and its turns in a flow.
struct Stints<'a> {
    job: &'a Job,
    turns: Option<Turns<'a>>,
    left_bytes: u64,
    /// Why the page cache could not be emptied.
    failed: Option<String>,
}

impl<'a> Stints<'a> {
    fn new(job: &'a Job) -> Stints<'a> {
        let turns = job.flow.as_ref().map(|flow| flow.begin());
        Stints { job, turns, left_bytes: job.invalidates_every_bytes.unwrap_or(u64::MAX), failed: None }
    }

    /// Whether a request may be issued now. A pass begins when all requests have completed; a job that is ahead of its
    /// flow waits.
    #[inline]
    fn lets(&mut self, rig: &mut Rig) -> bool {
        if self.left_bytes == 0 && !self.begins_anew(rig) {
            return false;
        }
        match &mut self.turns {
            Some(turns) => turns.takes(),
            None => true,
        }
    }

    #[cold]
    fn begins_anew(&mut self, rig: &mut Rig) -> bool {
        if rig.under_way() > 0 {
            return false;
        }
        self.forget_cached(rig);
        true
    }

    /// Empties the page cache if the job requests that; the time does not count as a request's.
    fn forget_cached(&mut self, rig: &mut Rig) {
        let Some(every_bytes) = self.job.invalidates_every_bytes else { return };
        self.left_bytes = every_bytes;
        for target in &self.job.targets {
            if let Err(error) = target.forget_cached() {
                self.failed.get_or_insert(format!("could not drop {} from the page cache ({error})", target.name()));
            }
        }
        rig.look();
        rig.count_depth(rig.now_ns);
    }

    #[inline]
    fn count(&mut self, request: &Request) {
        self.left_bytes = self.left_bytes.saturating_sub(request.length_bytes.into());
    }

    /// Wait while requests are under way, or none was allowed.
    #[inline]
    fn wait(&self, rig: &Rig) -> Wait {
        match &self.job.flow {
            Some(flow) => Wait::Until(rig.now_ns + if flow.sleep_ns > 0 { flow.sleep_ns } else { FLOW_LOOK_NS }),
            None => Wait::One,
        }
    }
}

/// Limits and phases of a run.
pub struct RunControl {
    /// The warm-up, which is excluded.
    pub warm_up: WarmUp,
    /// End of the run.
    pub end: JobEnd,
    /// Start of the run.
    pub start_ns: u64,
}

impl RunControl {
    /// Ends the warm-up, or the run, when it is time; returns whether to continue.
    #[inline]
    pub fn goes_on(&self, rig: &mut Rig) -> bool {
        if rig.is_stopped() || rig.is_ended_by_error || rig.has_run_dry {
            rig.start_measuring(0);
            rig.close(rig.now_ns);
            return false;
        }
        let Some(measuring) = &rig.measuring else {
            if self.is_warm(rig) {
                let WarmUp { requests, .. } = self.warm_up;
                let time_ns = rig.now_ns - self.start_ns;
                rig.warmed_up = WarmedUp { requests: rig.completed, requests_asked: requests, time_ns };
                rig.start_measuring(self.end.run.time_ns);
            }
            rig.tell(|_| 0.0);
            return true;
        };
        let completed = measuring.completed + rig.errors.iter().sum::<u64>();
        let transfers = completed - rig.flushes;
        if transfers >= self.end.transfers
            || rig.bytes >= self.end.bytes
            || self.end.run.is_reached(measuring, completed)
        {
            rig.close(rig.now_ns);
        }
        rig.count_depth(rig.now_ns);
        rig.tell(|rig| self.share(rig));
        !rig.is_over()
    }

    /// Whether the warm-up is over. A warm-up of few requests, such as the default, is also limited in time, so that it
    /// does not hide much of a slow device's time.
    #[inline]
    fn is_warm(&self, rig: &Rig) -> bool {
        let WarmUp { requests, time_ns } = self.warm_up;
        let passed_ns = rig.now_ns - self.start_ns;
        let is_bounded = time_ns == 0 && requests <= WarmUp::default().requests;
        self.warm_up.is_over(rig.completed, passed_ns) || (is_bounded && passed_ns >= COUNTED_WARM_UP_NS)
    }

    fn share(&self, rig: &Rig) -> f64 {
        let Some(measuring) = &rig.measuring else {
            return 0.0;
        };
        let transfers = measuring.completed as f64 / self.end.transfers as f64;
        let share = self.end.run.share_done(measuring, rig.now_ns);
        share.max(transfers).max(rig.bytes as f64 / self.end.bytes as f64)
    }

    /// Whether another request still belongs to the run: no more are issued than measured, so that a run with a number
    /// of requests or bytes issues exactly these.
    #[inline]
    pub fn takes_more(&self, rig: &Rig) -> bool {
        let Some(measuring) = &rig.measuring else {
            return true;
        };
        let requests = measuring.completed + rig.errors.iter().sum::<u64>() + rig.under_way();
        let transfers = requests - rig.flushes - rig.flushes_under_way;
        requests < self.end.run.requests
            && transfers < self.end.transfers
            && rig.bytes + rig.bytes_under_way < self.end.bytes
    }

    /// Time at which the limits must be checked next.
    #[inline]
    pub fn look_again_ns(&self, rig: &Rig) -> u64 {
        let end_ns = match &rig.measuring {
            Some(measuring) => measuring.start_ns.saturating_add(self.end.run.time_ns),
            // If only requests are missing, each of them is checked anyway.
            None => Some(self.start_ns.saturating_add(self.warm_up.time_ns))
                .filter(|&warm_ns| warm_ns > rig.now_ns)
                .unwrap_or(u64::MAX),
        };
        end_ns.min(rig.now_ns + LOOK_NS)
    }
}

/// Closed loop.
fn closed(
    rig: &mut Rig,
    control: &RunControl,
    mut requests: ClosedLoop,
    stints: &mut Stints,
) -> Result<LoopStats, LoadError> {
    let (mut result, start_ns, thinks) = (LoopStats::default(), control.start_ns, requests.thinks());
    while control.goes_on(rig) {
        while requests.next_due_ns() <= rig.now_ns - start_ns
            && control.takes_more(rig)
            && !rig.has_run_dry
            && stints.lets(rig)
        {
            rig.look_before_issuing();
            let next = requests.take(rig.now_ns - start_ns).expect("a request is due");
            if thinks {
                result.lateness.record(rig.now_ns - start_ns - next.due_ns);
            }
            rig.issue(rig.now_ns, &next.request);
            stints.count(&next.request);
        }
        let wait = match thinks {
            true => {
                // Requests that are due but no longer belong to the run wait for nothing.
                let due_ns = if control.takes_more(rig) { requests.next_due_ns() } else { u64::MAX };
                Wait::Until(start_ns.saturating_add(due_ns).max(rig.now_ns).min(control.look_again_ns(rig)))
            }
            false => stints.wait(rig),
        };
        rig.wait(wait)?;
        rig.settle(|ended| requests.completed(ended.at_ns - start_ns));
    }
    Ok(result)
}

/// Open loop.
fn open(
    rig: &mut Rig,
    control: &RunControl,
    mut requests: OpenLoop,
    stints: &mut Stints,
) -> Result<LoopStats, LoadError> {
    let (mut result, start_ns) = (LoopStats::default(), control.start_ns);
    let mut until_ns = start_ns + requests.next_arrival_ns();
    // The measured part begins now and not with the first arrival.
    control.goes_on(rig);
    loop {
        // An arrival while others wait, or without a free slot, is late because of the target, however soon a slot
        // becomes free.
        let room = if rig.waiting > 0 { 0 } else { rig.room() };
        rig.wait(Wait::Until(until_ns.min(control.look_again_ns(rig))))?;
        let arrived = arrive(rig, &mut requests, start_ns);
        rig.settle(|_| {});
        if let Some(measuring) = &mut rig.measuring {
            measuring.arrived += arrived;
        }
        if !control.goes_on(rig) {
            break;
        }
        let in_time = arrived.min(room);
        let mut handed = 0;
        while rig.waiting > 0 && rig.has_room() && control.takes_more(rig) && !rig.has_run_dry && stints.lets(rig) {
            rig.look_before_issuing();
            let next = requests.take(rig.now_ns - start_ns).expect("a request waits");
            if next.is_extra {
                rig.issue(rig.now_ns, &next.request);
                continue;
            }
            rig.waiting = requests.waiting();
            let due_ns = start_ns + next.due_ns;
            if handed < in_time {
                result.lateness.record(rig.now_ns - due_ns);
            }
            rig.issue(due_ns, &next.request);
            stints.count(&next.request);
            handed += 1;
        }
        if rig.measuring.is_some() {
            result.late_arrivals += arrived - in_time;
        }
        until_ns = if rig.has_room() { start_ns + requests.next_arrival_ns() } else { u64::MAX };
    }
    result.backlog = rig.waiting;
    let piled_up = |measuring: &Measuring| measuring.has_piled_up(rig.waiting + rig.under_way());
    result.saturated = rig.measuring.as_ref().is_some_and(piled_up);
    if let Some(measuring) = &mut rig.measuring {
        requests.into_waiting().for_each(|due_ns| measuring.still_outstanding(start_ns + due_ns));
    }
    Ok(result)
}

/// Adds the arrivals up to now, and returns their number.
fn arrive(rig: &mut Rig, requests: &mut OpenLoop, start_ns: u64) -> u64 {
    let mut arrived = 0;
    loop {
        let at_ns = start_ns + requests.next_arrival_ns();
        // Arrivals after the end do not belong to the run, however late this thread wakes.
        if at_ns > rig.now_ns || at_ns >= rig.deadline_ns() {
            return arrived;
        }
        rig.count_depth(at_ns);
        requests.arrive();
        rig.waiting = requests.waiting();
        arrived += 1;
    }
}
