//! Wall time, and what of it is the model's.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id, thread_schedule_policy,
};

/// What a thread of a session does that has to be on time, by priority: all are above what runs by default, and below the
/// kernel's own watchdogs and migration threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// It tells the time.
    Clock,
    /// It receives requests or sends replies: a long copy there must not hold up the clock.
    Path,
    /// It looks at how the others are.
    Watch,
}

impl Duty {
    fn priority(self) -> ThreadPriority {
        let priority: u8 = match self {
            Duty::Clock => 50,
            Duty::Path => 49,
            Duty::Watch => 48,
        };
        ThreadPriority::Crossplatform(priority.try_into().expect("below 100"))
    }
}

const REALTIME: ThreadSchedulePolicy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);

/// How the model's time follows the wall's.
#[derive(Clone, Copy, Debug)]
pub struct Wall {
    start: Instant,
    /// Nanoseconds of the model in one of the wall.
    speed: f64,
}

impl Wall {
    /// A model whose time 0 is now.
    pub fn starting_now(speed: f64) -> Wall {
        Wall { start: Instant::now(), speed }
    }

    /// Nanoseconds of the model until `at`.
    #[inline]
    pub fn model_ns(&self, at: Instant) -> u64 {
        let wall_ns = at.saturating_duration_since(self.start).as_nanos() as u64;
        // The usual speed must not cost a nanosecond of a session's hours.
        if self.speed == 1.0 { wall_ns } else { (wall_ns as f64 * self.speed) as u64 }
    }

    /// When the model's time is `model_ns`; `None` for never.
    #[inline]
    pub fn at(&self, model_ns: u64) -> Option<Instant> {
        let wall_ns = if self.speed == 1.0 { model_ns } else { (model_ns as f64 / self.speed).ceil() as u64 };
        (model_ns != u64::MAX).then(|| self.start + Duration::from_nanos(wall_ns))
    }

    /// Nanoseconds of the model in one of the wall.
    pub fn speed(&self) -> f64 {
        self.speed
    }
}

/// What the scheduler does for a punctual thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// SCHED_FIFO: it runs when it wakes.
    Realtime,
    /// It shares with others, whose time slices it may have to wait for: 4 ms at 250 Hz.
    Shared,
}

/// Has the scheduler wake this thread on time: to the nanosecond rather than within 50 us (timer slack), and before all
/// others where the process may ask for that (CAP_SYS_NICE). Threads that it starts inherit this.
pub fn be_punctual(duty: Duty, realtime: bool) -> Scheduling {
    // A kernel that knows no slack wakes on time anyway.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    if realtime && set_thread_priority_and_policy(thread_native_id(), duty.priority(), REALTIME).is_ok() {
        Scheduling::Realtime
    } else {
        Scheduling::Shared
    }
}

/// Steps behind the clock, whose class a thread has inherited that was started by a punctual one.
pub fn step_behind_the_clock() {
    let is_realtime = thread_schedule_policy().is_ok_and(|policy| policy == REALTIME);
    be_punctual(Duty::Path, is_realtime);
}

/// How a thread is awake in time. A processor that slept needs tens of microseconds to be awake, hundreds where it is a
/// virtual one that was halted for long: so much before the time is awaited awake as it has needed of late. Of no use without
/// SCHED_FIFO, where a thread that waits awake only uses up its time slice.
#[derive(Debug)]
pub struct Awake {
    margin: Duration,
    since: Instant,
    spent: Duration,
}

impl Awake {
    const MARGIN_MIN: Duration = Duration::from_micros(40);
    const MARGIN_MAX: Duration = Duration::from_millis(1);
    /// At most one part in so many of a core's time goes into it.
    const SHARE: u32 = 5;

    /// Nothing is known yet of the processor.
    pub fn new() -> Awake {
        Awake { margin: Duration::from_micros(100), since: Instant::now(), spent: Duration::ZERO }
    }

    /// How long before its time a thread should be awake, at `now`; nothing where it has waited awake for too long. The
    /// account starts anew every second, so that a quiet night buys no busy morning.
    pub fn margin(&mut self, now: Instant) -> Duration {
        let elapsed = now - self.since;
        if elapsed > Duration::from_secs(1) {
            (self.since, self.spent) = (now, Duration::ZERO);
        }
        if self.spent * Awake::SHARE <= elapsed { self.margin } else { Duration::ZERO }
    }

    /// It slept so much longer than it wanted: the margin follows the worst at once, and forgets it slowly.
    pub fn overslept(&mut self, by: Duration) {
        let wanted = by + by / 4;
        let forgotten = self.margin - self.margin / 64;
        self.margin = wanted.max(forgotten).clamp(Awake::MARGIN_MIN, Awake::MARGIN_MAX);
    }

    /// Waits awake until `due`, or until there are news.
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

impl Default for Awake {
    fn default() -> Self {
        Awake::new()
    }
}
