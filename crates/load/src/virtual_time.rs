//! [`VirtualClock`]: time that passes only while all threads of a run sleep. An hour takes milliseconds, and every run
//! is identical.
//!
//! Only one thread is awake at any time. When it falls asleep, time advances to the earliest wake-up, and that thread
//! continues; of several, the one with the first clock.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Start of virtual time, in ns; not 0, as with a wall clock.
const BEGIN_NS: u64 = 1_000_000_000;

/// A thread's participation in virtual time, which ends when this value is dropped.
#[derive(Debug)]
pub struct VirtualClock {
    shared: Arc<Hall>,
    number: usize,
    /// Delay of each wake-up, in ns.
    late_ns: u64,
}

#[derive(Debug)]
struct Hall {
    state: Mutex<State>,
    turned: Condvar,
}

#[derive(Debug)]
struct State {
    now_ns: u64,
    /// Wake-up time of each thread, in ns; `None` for threads that have left.
    wakes_ns: Vec<Option<u64>>,
    awake: Option<usize>,
}

impl State {
    fn wake_next(&mut self) {
        let sleepers =
            self.wakes_ns.iter().enumerate().filter_map(|(number, wakes_ns)| wakes_ns.map(|at| (at, number)));
        let next = sleepers.min();
        self.awake = next.map(|(_, number)| number);
        if let Some((wakes_ns, _)) = next {
            debug_assert!(wakes_ns >= self.now_ns, "a wake-up time is not in the past");
            self.now_ns = wakes_ns;
        }
    }
}

impl VirtualClock {
    /// Returns the clocks of a run's threads, the first of which is awake.
    pub fn all(count: usize, late_ns: u64) -> Vec<VirtualClock> {
        let mut state = State { now_ns: BEGIN_NS, wakes_ns: vec![Some(BEGIN_NS); count], awake: None };
        state.wake_next();
        let shared = Arc::new(Hall { state: Mutex::new(state), turned: Condvar::new() });
        (0..count).map(|number| VirtualClock { shared: Arc::clone(&shared), number, late_ns }).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("the lock is not poisoned")
    }

    /// Returns the current time, in ns.
    pub fn now_ns(&self) -> u64 {
        self.state().now_ns
    }

    /// Waits for this thread's turn. From then on, others wait until it sleeps.
    pub fn begin(&self) {
        drop(self.until_awake(self.state()));
    }

    /// Sleeps until `at_ns` plus the delay of each wake-up. Returns at once if that time has passed.
    pub fn sleep_until(&self, at_ns: u64) {
        let mut state = self.state();
        assert_eq!(state.awake, Some(self.number), "only the thread that is awake can go to sleep");
        if at_ns > state.now_ns {
            state.wakes_ns[self.number] = Some(at_ns.saturating_add(self.late_ns));
            state.wake_next();
            self.shared.turned.notify_all();
            drop(self.until_awake(state));
        }
    }

    fn until_awake<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let is_anothers = |state: &mut State| state.awake != Some(self.number);
        self.shared.turned.wait_while(state, is_anothers).expect("the lock is not poisoned")
    }
}

impl Drop for VirtualClock {
    fn drop(&mut self) {
        let mut state = self.state();
        state.wakes_ns[self.number] = None;
        if state.awake == Some(self.number) {
            state.wake_next();
            self.shared.turned.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn threads_wake_in_the_order_of_their_times_and_then_of_their_seats() {
        for _ in 0..20 {
            let (say, heard) = channel();
            std::thread::scope(|scope| {
                for (number, clock) in VirtualClock::all(3, 0).into_iter().enumerate() {
                    let say = say.clone();
                    scope.spawn(move || {
                        clock.begin();
                        // The wake-ups are at 3, 6, 9 s; 2, 4, 6 s; and 3, 6, 9 s.
                        let step_ns = [3, 2, 3][number] * 1_000_000_000;
                        for _ in 0..3 {
                            clock.sleep_until(clock.now_ns() + step_ns);
                            say.send(((clock.now_ns() - BEGIN_NS) / 1_000_000_000, number)).unwrap();
                        }
                    });
                }
            });
            drop(say);
            let order: Vec<_> = heard.iter().collect();
            assert_eq!(order, [(2, 1), (3, 0), (3, 2), (4, 1), (6, 0), (6, 1), (6, 2), (9, 0), (9, 2)]);
        }
    }

    #[test]
    fn a_thread_that_never_starts_blocks_none() {
        let mut clocks = VirtualClock::all(3, 7);
        let last = clocks.pop().unwrap();
        drop(clocks);
        last.begin();
        last.sleep_until(BEGIN_NS + 5);
        assert_eq!(last.now_ns(), BEGIN_NS + 12, "the thread wakes late");
        last.sleep_until(BEGIN_NS);
        assert_eq!(last.now_ns(), BEGIN_NS + 12, "time does not go back");
    }
}
