//! The loop of one thread. In a closed loop, each completion is followed by the next request; in an open loop, requests
//! have arrival times.

use headstack_driver::{ClosedLoop, Loop, OpenLoop};
use headstack_result::{LatencyHistogram, Measuring};
use headstack_workload::{Generator, Request, WarmUp};

use crate::LoadError;
use crate::clock::LOOK_NS;
use crate::engine::Wait;
use crate::flow::Turns;
use crate::job::{Job, JobEnd};
use crate::load_loop::{LoadLoop, WarmedUp};
use crate::nvme::words_of;
use crate::zones::Tending;

/// Maximum duration of a warm-up by request count, in ns, if the count is at most the default.
const COUNTED_WARM_UP_NS: u64 = 1_000_000_000;

/// Statistics of a loop in addition to those of the load loop.
#[derive(Default)]
pub struct LoopStats {
    /// Number of requests that found no free slot on arrival.
    pub late_arrivals: u64,
    /// Whether the backlog has grown beyond random fluctuation since the warm-up.
    pub saturated: bool,
    /// Number of arrivals that wait for a slot at the end.
    pub backlog: u64,
    /// Times from the intended arrival to submission, for requests that found a free slot: these delays are caused by
    /// this program.
    pub lateness: LatencyHistogram,
    /// Notes on failed auxiliary operations.
    pub notes: Vec<String>,
}

/// Default wait of a job that is ahead of its flow and has no request in flight, in ns.
const FLOW_LOOK_NS: u64 = 20_000;

/// Runs a job to its end.
///
/// # Errors
/// Returns an error if the workload cannot be generated, or if the kernel accepts no more requests.
pub fn work(job: &Job, load_loop: &mut LoadLoop) -> Result<LoopStats, LoadError> {
    let generator = Generator::new(&job.workload, job.span()?, job.block_bytes(), job.seed)?;
    let tending = Tending::new(job)?;
    let end = tending.as_ref().map_or_else(|| job.end(), |tending| Ok(job.end_by(tending.pass_bytes())))?;
    let mut stints = Passes::new(job);
    stints.forget_cached(load_loop);
    load_loop.tend_zones(tending);
    let start_ns = load_loop.now_ns;
    let control = RunControl { warm_up: job.workload.warm_up, end, start_ns };
    load_loop.errors_rule = job.errors;
    load_loop.watch(job.bounds);
    load_loop.write_content(&job.content);
    if job.times_handing_over {
        load_loop.time_handing_over();
    }
    let mut loop_stats = match Loop::new(&job.workload, generator, job.rates_per_s, job.seed)? {
        Loop::Closed(requests) => closed(load_loop, &control, requests, &mut stints),
        Loop::Open(requests) => open(load_loop, &control, requests, &mut stints),
    }?;
    if load_loop.has_run_dry {
        let why = "its zones had no more data to read or reset";
        loop_stats.notes.push(format!("{} ended: {why}", job.name));
    } else if let Some(broken) = &load_loop.broken {
        loop_stats.notes.push(format!("{} ended: {}", job.name, broken.message));
    } else if load_loop.is_ended_by_error {
        loop_stats.notes.push(format!("{} ended at its first error; use continue_on_error to continue", job.name));
    } else if job.flushes_at_end && job.writes() && load_loop.drain()? {
        let result = load_loop.flush();
        if result < 0 {
            let why = words_of(-result);
            loop_stats.notes.push(format!("{}: the flush at its end failed: {why}", job.target()));
        }
    }
    loop_stats.notes.extend(stints.failed);
    Ok(loop_stats)
}

/// Passes of a job over its part, with an emptied page cache between them, and the job's turns in a flow.
struct Passes<'a> {
    job: &'a Job,
    turns: Option<Turns<'a>>,
    left_bytes: u64,
    /// Reason why the page cache could not be emptied.
    failed: Option<String>,
}

impl<'a> Passes<'a> {
    fn new(job: &'a Job) -> Passes<'a> {
        let turns = job.flow.as_ref().map(|flow| flow.begin());
        Passes { job, turns, left_bytes: job.invalidates_every_bytes.unwrap_or(u64::MAX), failed: None }
    }

    /// Returns whether a request may be issued now. A new pass begins only when all requests have completed, and a job
    /// that is ahead of its flow waits.
    #[inline]
    fn lets(&mut self, load_loop: &mut LoadLoop) -> bool {
        if self.left_bytes == 0 && !self.begins_anew(load_loop) {
            return false;
        }
        match &mut self.turns {
            Some(turns) => turns.takes(),
            None => true,
        }
    }

    #[cold]
    fn begins_anew(&mut self, load_loop: &mut LoadLoop) -> bool {
        if load_loop.under_way() > 0 {
            return false;
        }
        self.forget_cached(load_loop);
        true
    }

    /// Empties the page cache if the job requests that. This time does not count as part of a request.
    fn forget_cached(&mut self, load_loop: &mut LoadLoop) {
        let Some(every_bytes) = self.job.invalidates_every_bytes else { return };
        self.left_bytes = every_bytes;
        for target in &self.job.targets {
            if let Err(error) = target.forget_cached() {
                self.failed.get_or_insert(format!("could not drop {} from the page cache ({error})", target.name()));
            }
        }
        load_loop.look();
        load_loop.count_depth(load_loop.now_ns);
    }

    #[inline]
    fn count(&mut self, request: &Request) {
        self.left_bytes = self.left_bytes.saturating_sub(request.length_bytes.into());
    }

    /// Returns how to wait while requests are in flight, or while none was allowed.
    #[inline]
    fn wait(&self, load_loop: &LoadLoop) -> Wait {
        match &self.job.flow {
            Some(flow) => Wait::Until(load_loop.now_ns + if flow.sleep_ns > 0 { flow.sleep_ns } else { FLOW_LOOK_NS }),
            None => Wait::One,
        }
    }
}

/// Limits and phases of a run.
pub struct RunControl {
    /// The warm-up, which is excluded from results.
    pub warm_up: WarmUp,
    /// End of the run.
    pub end: JobEnd,
    /// Start of the run, in ns.
    pub start_ns: u64,
}

impl RunControl {
    /// Ends the warm-up or the run when it is time. Returns whether to continue.
    #[inline]
    pub fn goes_on(&self, load_loop: &mut LoadLoop) -> bool {
        if load_loop.is_stopped() || load_loop.is_ended_by_error || load_loop.has_run_dry {
            load_loop.start_measuring(0);
            load_loop.close(load_loop.now_ns);
            return false;
        }
        let Some(measuring) = &load_loop.measuring else {
            if self.is_warm(load_loop) {
                let WarmUp { requests, .. } = self.warm_up;
                let time_ns = load_loop.now_ns - self.start_ns;
                load_loop.warmed_up = WarmedUp { requests: load_loop.completed, requests_asked: requests, time_ns };
                load_loop.start_measuring(self.end.run.time_ns);
            }
            load_loop.update_progress(|_| 0.0);
            return true;
        };
        let completed = measuring.completed + load_loop.errors.iter().sum::<u64>();
        let transfers = completed - load_loop.flushes;
        if transfers >= self.end.transfers
            || load_loop.bytes >= self.end.bytes
            || self.end.run.is_reached(measuring, completed)
        {
            load_loop.close(load_loop.now_ns);
        }
        load_loop.count_depth(load_loop.now_ns);
        load_loop.update_progress(|load_loop| self.share(load_loop));
        !load_loop.is_over()
    }

    /// Returns whether the warm-up is over. A warm-up of few requests, such as the default, is also limited in time, so
    /// that it does not hide much of a slow device's time.
    #[inline]
    fn is_warm(&self, load_loop: &LoadLoop) -> bool {
        let WarmUp { requests, time_ns } = self.warm_up;
        let passed_ns = load_loop.now_ns - self.start_ns;
        let is_bounded = time_ns == 0 && requests <= WarmUp::default().requests;
        self.warm_up.is_over(load_loop.completed, passed_ns) || (is_bounded && passed_ns >= COUNTED_WARM_UP_NS)
    }

    fn share(&self, load_loop: &LoadLoop) -> f64 {
        let Some(measuring) = &load_loop.measuring else {
            return 0.0;
        };
        let transfers = measuring.completed as f64 / self.end.transfers as f64;
        let share = self.end.run.share_done(measuring, load_loop.now_ns);
        share.max(transfers).max(load_loop.bytes as f64 / self.end.bytes as f64)
    }

    /// Returns whether another request still belongs to the run. No more requests are issued than measured, so a run
    /// limited to a number of requests or bytes issues exactly that many.
    #[inline]
    pub fn takes_more(&self, load_loop: &LoadLoop) -> bool {
        let Some(measuring) = &load_loop.measuring else {
            return true;
        };
        let requests = measuring.completed + load_loop.errors.iter().sum::<u64>() + load_loop.under_way();
        let transfers = requests - load_loop.flushes - load_loop.flushes_under_way;
        requests < self.end.run.requests
            && transfers < self.end.transfers
            && load_loop.bytes + load_loop.bytes_under_way < self.end.bytes
    }

    /// Returns the time at which the limits must be checked next, in ns.
    #[inline]
    pub fn look_again_ns(&self, load_loop: &LoadLoop) -> u64 {
        let end_ns = match &load_loop.measuring {
            Some(measuring) => measuring.start_ns.saturating_add(self.end.run.time_ns),
            // If only requests are missing, the limits are checked after each of them anyway.
            None => Some(self.start_ns.saturating_add(self.warm_up.time_ns))
                .filter(|&warm_ns| warm_ns > load_loop.now_ns)
                .unwrap_or(u64::MAX),
        };
        end_ns.min(load_loop.now_ns + LOOK_NS)
    }
}

/// Runs a closed loop.
fn closed(
    load_loop: &mut LoadLoop,
    control: &RunControl,
    mut requests: ClosedLoop,
    stints: &mut Passes,
) -> Result<LoopStats, LoadError> {
    let (mut result, start_ns, thinks) = (LoopStats::default(), control.start_ns, requests.thinks());
    while control.goes_on(load_loop) {
        while requests.next_due_ns() <= load_loop.now_ns - start_ns
            && control.takes_more(load_loop)
            && !load_loop.has_run_dry
            && stints.lets(load_loop)
        {
            load_loop.look_before_issuing();
            let next = requests.take(load_loop.now_ns - start_ns).expect("a request is due");
            if thinks {
                result.lateness.record(load_loop.now_ns - start_ns - next.due_ns);
            }
            load_loop.issue(load_loop.now_ns, &next.request);
            stints.count(&next.request);
        }
        let wait = match thinks {
            true => {
                // Requests that are due but no longer belong to the run need no wake-up.
                let due_ns = if control.takes_more(load_loop) { requests.next_due_ns() } else { u64::MAX };
                Wait::Until(start_ns.saturating_add(due_ns).max(load_loop.now_ns).min(control.look_again_ns(load_loop)))
            }
            false => stints.wait(load_loop),
        };
        load_loop.wait(wait)?;
        load_loop.settle(|ended| requests.completed(ended.at_ns - start_ns));
    }
    Ok(result)
}

/// Runs an open loop.
fn open(
    load_loop: &mut LoadLoop,
    control: &RunControl,
    mut requests: OpenLoop,
    stints: &mut Passes,
) -> Result<LoopStats, LoadError> {
    let (mut result, start_ns) = (LoopStats::default(), control.start_ns);
    let mut until_ns = start_ns + requests.next_arrival_ns();
    // The measured part begins now and not with the first arrival.
    control.goes_on(load_loop);
    loop {
        // An arrival while others wait, or without a free slot, is late because of the target, however soon a slot
        // becomes free.
        let room = if load_loop.waiting > 0 { 0 } else { load_loop.room() };
        load_loop.wait(Wait::Until(until_ns.min(control.look_again_ns(load_loop))))?;
        let arrived = arrive(load_loop, &mut requests, start_ns);
        load_loop.settle(|_| {});
        if let Some(measuring) = &mut load_loop.measuring {
            measuring.arrived += arrived;
        }
        if !control.goes_on(load_loop) {
            break;
        }
        let in_time = arrived.min(room);
        let mut handed = 0;
        while load_loop.waiting > 0
            && load_loop.has_room()
            && control.takes_more(load_loop)
            && !load_loop.has_run_dry
            && stints.lets(load_loop)
        {
            load_loop.look_before_issuing();
            let next = requests.take(load_loop.now_ns - start_ns).expect("a request is waiting");
            if next.is_extra {
                load_loop.issue(load_loop.now_ns, &next.request);
                continue;
            }
            load_loop.waiting = requests.waiting();
            let due_ns = start_ns + next.due_ns;
            if handed < in_time {
                result.lateness.record(load_loop.now_ns - due_ns);
            }
            load_loop.issue(due_ns, &next.request);
            stints.count(&next.request);
            handed += 1;
        }
        if load_loop.measuring.is_some() {
            result.late_arrivals += arrived - in_time;
        }
        until_ns = if load_loop.has_room() { start_ns + requests.next_arrival_ns() } else { u64::MAX };
    }
    result.backlog = load_loop.waiting;
    let piled_up = |measuring: &Measuring| measuring.has_piled_up(load_loop.waiting + load_loop.under_way());
    result.saturated = load_loop.measuring.as_ref().is_some_and(piled_up);
    if let Some(measuring) = &mut load_loop.measuring {
        requests.into_waiting().for_each(|due_ns| measuring.still_outstanding(start_ns + due_ns));
    }
    Ok(result)
}

/// Adds the arrivals up to now, and returns their number.
fn arrive(load_loop: &mut LoadLoop, requests: &mut OpenLoop, start_ns: u64) -> u64 {
    let mut arrived = 0;
    loop {
        let at_ns = start_ns + requests.next_arrival_ns();
        // Arrivals after the end do not belong to the run, however late this thread wakes.
        if at_ns > load_loop.now_ns || at_ns >= load_loop.deadline_ns() {
            return arrived;
        }
        load_loop.count_depth(at_ns);
        requests.arrive();
        load_loop.waiting = requests.waiting();
        arrived += 1;
    }
}
