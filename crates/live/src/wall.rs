//! [`Wall`]: wall-clock time and its relation to model time; scheduling of punctual threads.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id, thread_schedule_policy,
};

/// Duties of punctual threads, by priority: all are above default priorities, and below the kernel's own watchdogs and
/// migration threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadRole {
    /// The clock thread.
    Clock,
    /// Receives requests or sends replies: a long copy there must not delay the clock.
    Path,
    /// Observes the others.
    Watch,
}

impl ThreadRole {
    fn priority(self) -> ThreadPriority {
        let priority: u8 = match self {
            ThreadRole::Clock => 50,
            ThreadRole::Path => 49,
            ThreadRole::Watch => 48,
        };
        ThreadPriority::Crossplatform(priority.try_into().expect("below 100"))
    }
}

const REALTIME: ThreadSchedulePolicy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);

/// Relation of model time to wall-clock time.
#[derive(Clone, Copy, Debug)]
pub struct Wall {
    start: Instant,
    /// Nanoseconds of model time per nanosecond of wall-clock time.
    speed: f64,
}

impl Wall {
    /// Starts model time 0 now.
    pub fn starting_now(speed: f64) -> Wall {
        Wall { start: Instant::now(), speed }
    }

    /// Model time in nanoseconds at `at`.
    #[inline]
    pub fn model_ns(&self, at: Instant) -> u64 {
        let wall_ns = at.saturating_duration_since(self.start).as_nanos() as u64;
        // At the usual speed, long sessions stay exact to the nanosecond.
        if self.speed == 1.0 { wall_ns } else { (wall_ns as f64 * self.speed) as u64 }
    }

    /// Wall-clock time of the model time `model_ns`; `None` for never.
    #[inline]
    pub fn at(&self, model_ns: u64) -> Option<Instant> {
        let wall_ns = if self.speed == 1.0 { model_ns } else { (model_ns as f64 / self.speed).ceil() as u64 };
        (model_ns != u64::MAX).then(|| self.start + Duration::from_nanos(wall_ns))
    }

    /// Nanoseconds of model time per nanosecond of wall-clock time.
    pub fn speed(&self) -> f64 {
        self.speed
    }
}

/// Scheduling class of a punctual thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// SCHED_FIFO: it runs as soon as it wakes.
    Realtime,
    /// It shares a processor with others, and may wait for their time slices: 4 ms at 250 Hz.
    Shared,
}

/// Makes the scheduler wake this thread on time: to the nanosecond instead of within 50 us (timer slack), and with
/// priority over all others if the process may request that (CAP_SYS_NICE). Threads that it starts inherit this.
pub fn be_punctual(duty: ThreadRole, realtime: bool) -> Scheduling {
    // A kernel without timer slack wakes on time anyway.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    if realtime && set_thread_priority_and_policy(thread_native_id(), duty.priority(), REALTIME).is_ok() {
        Scheduling::Realtime
    } else {
        Scheduling::Shared
    }
}

/// Lowers the priority below the clock's, for a thread that inherited the class of the punctual thread that started it.
pub fn step_behind_the_clock() {
    let is_realtime = thread_schedule_policy().is_ok_and(|policy| policy == REALTIME);
    be_punctual(ThreadRole::Path, is_realtime);
}

/// Wakes a thread in time. A sleeping processor needs tens of microseconds to wake, hundreds if it is a virtual one
/// that was halted for long: the thread spins for as long before the due time as waking has recently taken. Of no use
/// without SCHED_FIFO, where a spinning thread only uses up its time slice.
#[derive(Debug)]
pub struct PunctualSleeper {
    margin: Duration,
    since: Instant,
    spent: Duration,
}

impl PunctualSleeper {
    const MARGIN_MIN: Duration = Duration::from_micros(40);
    const MARGIN_MAX: Duration = Duration::from_millis(1);
    /// Largest share of a core's time for spinning: one in so many.
    const SHARE: u32 = 5;

    /// Creates it without knowledge of the processor.
    pub fn new() -> PunctualSleeper {
        PunctualSleeper { margin: Duration::from_micros(100), since: Instant::now(), spent: Duration::ZERO }
    }

    /// Time before the due time at which a thread should be awake, at `now`; zero if it has spun for too long. The
    /// account restarts every second, so that a quiet night does not permit a busy morning.
    pub fn margin(&mut self, now: Instant) -> Duration {
        let elapsed = now - self.since;
        if elapsed > Duration::from_secs(1) {
            (self.since, self.spent) = (now, Duration::ZERO);
        }
        if self.spent * PunctualSleeper::SHARE <= elapsed { self.margin } else { Duration::ZERO }
    }

    /// Notes that it overslept: the margin follows the worst case at once, and decays slowly.
    pub fn overslept(&mut self, by: Duration) {
        let wanted = by + by / 4;
        let forgotten = self.margin - self.margin / 64;
        self.margin = wanted.max(forgotten).clamp(PunctualSleeper::MARGIN_MIN, PunctualSleeper::MARGIN_MAX);
    }

    /// Spins until `due`, or until there are arrivals.
    pub fn until(&mut self, due: Instant, has_news: &AtomicBool) {
        let begun = Instant::now();
        let mut now = begun;
        while now < due && !has_news.load(Ordering::Relaxed) {
            std::hint::spin_loop();
            now = Instant::now();
        }
        self.spent += now - begun;
    }
}

impl Default for PunctualSleeper {
    fn default() -> Self {
        PunctualSleeper::new()
    }
}
