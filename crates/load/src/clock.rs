//! [`Clock`]: the time of a measurement in nanoseconds, common to all threads.
//!
//! Measurements use wall-clock time. Null targets may use virtual time instead, in which tests compare the load loops
//! with queueing theory on any machine.

use std::io;
use std::mem::MaybeUninit;
use std::sync::Once;
use std::time::Duration;

use crate::virtual_time::VirtualClock;

/// Time before a deadline during which a thread spins instead of sleeping, because threads wake tens of microseconds
/// late. At 10,000 arrivals/s this takes at most half of a core.
pub const SPIN_NS: u64 = 50_000;

/// Maximum wait before a thread checks for a stop request.
pub const LOOK_NS: u64 = 100_000_000;

/// The kind of time that a target uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Time {
    /// Wall-clock time.
    #[default]
    Wall,
    /// Time that advances only while all threads of a run sleep, so work takes no time and every run is identical.
    Virtual {
        /// Delay of each wake-up, as on a busy machine.
        late_ns: u64,
    },
}

/// A thread's view of the run's time.
#[derive(Debug)]
pub enum Clock {
    /// Wall-clock time.
    Wall,
    /// Virtual time.
    Virtual(VirtualClock),
}

impl Clock {
    /// Returns a clock for each of `threads` threads.
    pub fn for_threads(time: Time, threads: usize) -> Vec<Clock> {
        match time {
            Time::Wall => (0..threads).map(|_| Clock::Wall).collect(),
            Time::Virtual { late_ns } => VirtualClock::all(threads, late_ns).into_iter().map(Clock::Virtual).collect(),
        }
    }

    /// Starts the run for this thread.
    pub fn begin(&self) {
        match self {
            Clock::Wall => {}
            Clock::Virtual(clock) => clock.begin(),
        }
    }

    /// Returns the nanoseconds since a moment before the run began, common to all its threads.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match self {
            Clock::Wall => now_ns(),
            Clock::Virtual(clock) => clock.now_ns(),
        }
    }

    /// Sleeps until `at_ns` or shortly after.
    pub fn sleep_until(&self, at_ns: u64) {
        match self {
            Clock::Wall => sleep_until(at_ns),
            Clock::Virtual(clock) => clock.sleep_until(at_ns),
        }
    }

    /// Sleeps for `ns`. In wall-clock time, unparking the thread ends the sleep early.
    pub fn rest(&self, ns: u64) {
        match self {
            Clock::Wall => std::thread::park_timeout(Duration::from_nanos(ns)),
            Clock::Virtual(clock) => clock.sleep_until(clock.now_ns() + ns),
        }
    }
}

/// Returns the nanoseconds since a moment before this process began, common to all threads.
#[inline]
pub fn now_ns() -> u64 {
    match counter::RATE.get() {
        Some(rate) => rate.now_ns(),
        None => kernel_ns(),
    }
}

/// Returns [`now_ns`] as measured by the kernel (`CLOCK_MONOTONIC`).
fn kernel_ns() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the kernel fills the structure; this clock exists on every Linux.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Makes [`now_ns`] read the processor's time stamp counter from now on, if the kernel itself uses the counter as its
/// clock. A read of the counter takes 33 % of the time of a system call, and system calls are most of the cost of a
/// request to a null target. The calibration takes 20 ms once per process and is accurate to one part in a million.
pub fn calibrate_tsc() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Some(rate) = counter::Rate::measured() {
            // The rate is set only here.
            let _ = counter::RATE.set(rate);
        }
    });
}

/// The time stamp counter of x86.
#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::_rdtsc;
    use std::sync::OnceLock;
    use std::time::Duration;

    use super::kernel_ns;

    pub static RATE: OnceLock<Rate> = OnceLock::new();
    /// Path of the kernel's clock source. If this is the counter, the kernel has checked that the counter is constant
    /// and equal on all processors, and keeps checking.
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    const MEASURED_FOR: Duration = Duration::from_millis(20);

    /// Rate of the counter.
    pub struct Rate {
        start_ns: u64,
        start_ticks: u64,
        /// Nanoseconds per tick, times 2^32.
        ns_per_tick: u64,
    }

    impl Rate {
        /// Measures the rate against the kernel's clock; `None` if the kernel does not use the counter.
        pub fn measured() -> Option<Rate> {
            if std::fs::read_to_string(SOURCE).ok()?.trim() != "tsc" {
                return None;
            }
            let (start_ns, start_ticks) = both();
            std::thread::sleep(MEASURED_FOR);
            let (end_ns, end_ticks) = both();
            let ns_per_tick = (u128::from(end_ns - start_ns) << 32).checked_div(u128::from(end_ticks - start_ticks))?;
            Some(Rate { start_ns, start_ticks, ns_per_tick: u64::try_from(ns_per_tick).ok()? })
        }

        #[inline]
        pub fn now_ns(&self) -> u64 {
            let ticks = ticks().saturating_sub(self.start_ticks);
            self.start_ns + ((u128::from(ticks) * u128::from(self.ns_per_tick)) >> 32) as u64
        }
    }

    /// Reads both clocks at the same time. Of several tries, it returns the one with the shortest time between two
    /// reads of the counter.
    fn both() -> (u64, u64) {
        let look = || {
            let (before, ns, after) = (ticks(), kernel_ns(), ticks());
            (after.saturating_sub(before), ns, before / 2 + after / 2)
        };
        let (_, ns, ticks) = (0..32).map(|_| look()).min().expect("there are 32 tries");
        (ns, ticks)
    }

    #[inline]
    fn ticks() -> u64 {
        // SAFETY: reads a counter that every x86-64 processor has.
        unsafe { _rdtsc() }
    }
}

/// Other processors use the kernel's clock.
#[cfg(not(target_arch = "x86_64"))]
mod counter {
    use std::sync::OnceLock;

    pub static RATE: OnceLock<Rate> = OnceLock::new();

    pub enum Rate {}

    impl Rate {
        pub fn measured() -> Option<Rate> {
            None
        }

        pub fn now_ns(&self) -> u64 {
            match *self {}
        }
    }
}

/// Requests wake-ups as exact as the hardware timers allow (`prctl(2)`); by default the kernel may wake threads 50 us
/// late.
pub fn set_timer_slack() {
    // SAFETY: changes only a setting of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Gives the calling thread priority over all threads that are not real-time (`sched(7)`).
///
/// # Errors
/// Returns an error if this user lacks `CAP_SYS_NICE` and has no limit for real-time priorities.
pub fn go_first() -> io::Result<()> {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: passes a valid structure and changes only the calling thread.
    let failed = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) } < 0;
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lowers the calling thread's priority, so that all threads of ordinary priority run first.
pub fn yield_to_others() {
    // SAFETY: takes only numbers; 0 is the calling thread on Linux. The kernel always allows a lower priority.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
}

/// Sleeps until `at_ns` or shortly after.
pub fn sleep_until(at_ns: u64) {
    loop {
        let left_ns = at_ns.saturating_sub(now_ns());
        if left_ns == 0 {
            return;
        }
        if left_ns > SPIN_NS {
            std::thread::sleep(Duration::from_nanos(left_ns - SPIN_NS));
        } else {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_counts_nanoseconds_and_never_goes_back() {
        calibrate_tsc();
        // Another process may run between two reads, so the counter is read between two reads of the kernel's clock.
        let look = || (kernel_ns(), now_ns(), kernel_ns());
        let (start, mut last) = (look(), 0);
        while kernel_ns() - start.0 < 200_000_000 {
            let now = now_ns();
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
        let end = look();
        let (least, ours, most) = (end.0 - start.2, end.1 - start.1, end.2 - start.0);
        let allowed = least as f64 * (1.0 - 1e-3)..most as f64 * (1.0 + 1e-3);
        assert!(allowed.contains(&(ours as f64)), "{ours} ns are {least} to {most} ns of the kernel's");
    }
}
