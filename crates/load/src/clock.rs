//! The time of a measurement: nanoseconds of the monotonic clock, which all threads share.

use std::io;
use std::mem::MaybeUninit;

/// Threads wake up late from a sleep, by tens of microseconds; what must be on time is awaited awake from this long
/// before it. Half of a core's time at most goes into it at 10,000 arrivals a second.
pub const SPIN_NS: u64 = 50_000;

/// Nobody waits longer than this without a look at whether somebody wants it to end.
pub const LOOK_NS: u64 = 100_000_000;

/// Nanoseconds since some moment before this process began (`CLOCK_MONOTONIC`).
#[inline]
pub fn now_ns() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the kernel fills the structure; this clock exists on every Linux.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Asks for wake-ups as exact as the hardware's timers, where threads by default may be woken 50 us late (`prctl(2)`).
pub fn sharpen_timers() {
    // SAFETY: changes a number of this thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Puts the calling thread before all that are not real-time themselves (`sched(7)`).
///
/// # Errors
/// When this user may not: it takes `CAP_SYS_NICE`, or a limit of real-time priorities.
pub fn go_first() -> io::Result<()> {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: reads a structure; changes this thread alone.
    let failed = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) } < 0;
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns at `at_ns` or shortly after.
pub fn sleep_until(at_ns: u64) {
    loop {
        let left_ns = at_ns.saturating_sub(now_ns());
        if left_ns == 0 {
            return;
        }
        if left_ns > SPIN_NS {
            std::thread::sleep(std::time::Duration::from_nanos(left_ns - SPIN_NS));
        } else {
            std::hint::spin_loop();
        }
    }
}
