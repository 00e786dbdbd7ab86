//! [`Budget`]: the memory budget of a process, for connections, payloads while they arrive, replies until they are
//! read, and data that a power cut would restore.
//!
//! Memory is taken before it is used, and granted to waiting requests in order of arrival. Requests that hold a part of
//! their memory could wait for each other forever; so a reserve as large as any one request needs is kept, and granted
//! as a whole to the one that has waited longest. That request then waits for no other, and the next one gets the
//! reserve when it is done.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once};
use std::thread::{self, Thread};
use std::time::Instant;

use serde::Serialize;

/// Largest memory of a request: a payload and the previous contents; or a trim of 64 MiB and the previous contents.
pub const REQUEST_BYTES_MAX: u64 = 65 << 20;
/// Memory of an idle connection: the stacks of its threads, and its read buffer.
pub const CONNECTION_BYTES: u64 = 32 << 10;
/// Smallest budget of a process.
pub const BUDGET_BYTES_MIN: u64 = 128 << 20;
/// Largest default budget.
const BUDGET_BYTES_DEFAULT: u64 = 1 << 30;
/// Largest number of connections, each of which has a thread.
const CONNECTIONS_MAX: usize = 4096;
/// Length of buffers above which the allocator returns them to the system at once.
const LONG_BYTES: i32 = 128 << 10;
/// Share of the budget for idle connections: one in so many.
const CONNECTIONS_SHARE: u64 = 4;

/// A memory budget. A clone refers to the same budget.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit_bytes: u64,
    /// Memory for requests when all possible connections exist.
    requests_bytes: u64,
    state: Mutex<State>,
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    used_bytes: u64,
    peak_bytes: u64,
    /// Waiting requests, the longest first.
    queue: VecDeque<(u64, Thread)>,
    next_ticket: u64,
    /// Whether the reserve has been granted.
    reserve_is_granted: bool,
    /// Number of requests that had to wait, and their total wait.
    waited: u64,
    waited_ns: u64,
}

/// State of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryGauge {
    /// Limit in bytes.
    pub limit_bytes: u64,
    /// Memory held by requests, and by the data for undoing them.
    pub used_bytes: u64,
    /// Highest use so far.
    pub peak_bytes: u64,
    /// Number of waiting requests.
    pub waiting: u64,
    /// Number of waits so far.
    pub waited: u64,
    /// Sum of the waits, in nanoseconds of wall-clock time.
    pub waited_ns: u64,
}

impl Budget {
    /// Creates a budget of `limit_bytes`, but at least the smallest possible one.
    pub fn new(limit_bytes: u64) -> Budget {
        give_back_at_once();
        let limit_bytes = limit_bytes.max(BUDGET_BYTES_MIN);
        let connections_bytes = connections_of(limit_bytes) as u64 * CONNECTION_BYTES;
        let requests_bytes = limit_bytes - connections_bytes;
        assert!(requests_bytes > REQUEST_BYTES_MAX, "the budget has room for one request");
        Budget(Arc::new(Shared { limit_bytes, requests_bytes, state: Mutex::default(), waiting: AtomicUsize::new(0) }))
    }

    /// Creates a budget of 25 % of the free memory, at most 1 GiB.
    pub fn for_this_machine() -> Budget {
        Budget::new((free_bytes().unwrap_or(BUDGET_BYTES_DEFAULT) / 4).min(BUDGET_BYTES_DEFAULT))
    }

    /// Number of connections for which there is memory.
    pub fn connections_max(&self) -> usize {
        connections_of(self.0.limit_bytes)
    }

    /// Limit of the acknowledged bytes kept for undoing: the rest suffices for requests under way.
    pub fn exposed_bytes_max(&self) -> u64 {
        (self.0.requests_bytes - REQUEST_BYTES_MAX) / 2
    }

    /// Whether a request is waiting.
    pub fn is_wanted(&self) -> bool {
        self.0.waiting.load(Ordering::Acquire) > 0
    }

    /// Returns an empty share of the budget.
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0, has_reserve: false }
    }

    /// Wakes the longest-waiting request, because memory that others no longer need can now be freed, or because its
    /// answer is no longer needed.
    pub fn wake_next(&self) {
        if self.is_wanted() {
            self.state().wake_first();
        }
    }

    /// Current state of the budget.
    pub fn gauge(&self) -> MemoryGauge {
        let state = self.state();
        MemoryGauge {
            limit_bytes: self.0.limit_bytes,
            used_bytes: state.used_bytes,
            peak_bytes: state.peak_bytes,
            waiting: self.0.waiting.load(Ordering::Acquire) as u64,
            waited: state.waited,
            waited_ns: state.waited_ns,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("the lock is not poisoned")
    }

    /// Memory that is available without the reserve.
    fn common_bytes(&self) -> u64 {
        self.0.requests_bytes - REQUEST_BYTES_MAX
    }
}

fn connections_of(limit_bytes: u64) -> usize {
    ((limit_bytes / CONNECTIONS_SHARE / CONNECTION_BYTES) as usize).min(CONNECTIONS_MAX)
}

impl State {
    fn take(&mut self, bytes: u64) {
        self.used_bytes += bytes;
        self.peak_bytes = self.peak_bytes.max(self.used_bytes);
    }

    /// Only the longest-waiting request can be served, so the others need not check.
    fn wake_first(&self) {
        if let Some((_, first)) = self.queue.front() {
            first.unpark();
        }
    }
}

/// A share of a budget, returned to it on drop.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    bytes: u64,
    has_reserve: bool,
}

impl Share {
    /// Returns another empty share of its budget.
    pub fn sibling(&self) -> Share {
        self.budget.share()
    }

    /// Size of the share in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Grows the share to `bytes` in all, waiting if necessary. While it waits, `tidy` is called whenever memory that
    /// others no longer need might be freed; it returns false when waiting is no longer useful, and then this function
    /// returns false too.
    ///
    /// # Panics
    /// When no request may take so much.
    pub fn grow(&mut self, bytes: u64, tidy: &mut dyn FnMut() -> bool) -> bool {
        assert!(bytes <= REQUEST_BYTES_MAX, "{bytes} B for one request");
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 || (!self.has_reserve && self.grow_now(bytes)) {
            return true;
        }
        let budget = self.budget.clone();
        let mut state = budget.state();
        if self.has_reserve {
            state.take(more);
            self.bytes += more;
            return true;
        }
        state.waited += 1;
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.queue.push_back((ticket, thread::current()));
        budget.0.waiting.fetch_add(1, Ordering::AcqRel);
        drop(state);
        let began = Instant::now();
        let granted = self.wait(ticket, more, tidy);
        budget.0.waiting.fetch_sub(1, Ordering::AcqRel);
        budget.state().waited_ns += began.elapsed().as_nanos() as u64;
        granted
    }

    fn wait(&mut self, ticket: u64, more: u64, tidy: &mut dyn FnMut() -> bool) -> bool {
        let budget = self.budget.clone();
        loop {
            let is_wanted = tidy();
            let mut state = budget.state();
            let is_first = state.queue.front().is_some_and(|(first, _)| *first == ticket);
            let fits = state.used_bytes + more <= budget.common_bytes();
            // The reserve is granted only while no other request can take it from its new holder.
            let may_have_reserve = !state.reserve_is_granted && state.used_bytes - self.bytes <= budget.common_bytes();
            if !is_wanted || (is_first && (fits || may_have_reserve)) {
                state.queue.retain(|(other, _)| *other != ticket);
                if is_wanted {
                    state.take(more);
                    self.bytes += more;
                    self.has_reserve = !fits;
                    state.reserve_is_granted |= !fits;
                }
                state.wake_first();
                return is_wanted;
            }
            drop(state);
            thread::park();
        }
    }

    /// Grows the share to `bytes` in all without waiting; returns false if it would have to wait.
    pub fn grow_now(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let budget = self.budget.clone();
        let mut state = budget.state();
        let fits = state.queue.is_empty() && state.used_bytes + more <= budget.common_bytes();
        if fits {
            state.take(more);
            self.bytes += more;
        }
        fits
    }

    /// Returns all but `bytes` to the budget.
    pub fn shrink(&mut self, bytes: u64) {
        self.give_back(self.bytes.saturating_sub(bytes));
    }

    /// Takes over `bytes` of another share; the result may be larger than the share of any one request.
    pub fn take_over(&mut self, other: &mut Share, bytes: u64) {
        let moved = bytes.min(other.bytes);
        other.bytes -= moved;
        self.bytes += moved;
        if bytes > moved {
            // Memory that already exists is counted, whichever request it was for.
            self.budget.clone().state().take(bytes - moved);
            self.bytes += bytes - moved;
        }
    }

    /// Returns the excess over `less` bytes to the budget.
    fn give_back(&mut self, less: u64) {
        if less == 0 {
            return;
        }
        self.bytes -= less;
        let budget = self.budget.clone();
        let mut state = budget.state();
        state.used_bytes -= less;
        state.wake_first();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(0);
        if self.has_reserve {
            let budget = self.budget.clone();
            let mut state = budget.state();
            state.reserve_is_granted = false;
            state.wake_first();
        }
    }
}

/// Makes the allocator return long buffers to the system when they are freed. By default, after the first long one,
/// glibc keeps up to 64 MiB of them per arena, which would exceed the budget.
#[allow(unsafe_code)]
fn give_back_at_once() {
    #[cfg(target_env = "gnu")]
    {
        static ONCE: Once = Once::new();
        // SAFETY: it sets a number of the allocator, under its own lock.
        ONCE.call_once(|| {
            unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LONG_BYTES) };
        });
    }
}

/// Free memory of the machine, or of this process's control group.
fn free_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let available = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let available_bytes = available.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10;
    Some(available_bytes.min(group_bytes().unwrap_or(u64::MAX)))
}

/// Memory left to this process's control group, if it has a limit.
fn group_bytes() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = Path::new("/sys/fs/cgroup").join(path);
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn patient() -> bool {
        true
    }

    #[test]
    fn partial_holders_are_served_in_turn() {
        // Each takes half, then wants the other half: together they need ten times the budget.
        let budget = Budget::new(BUDGET_BYTES_MIN);
        let (clients, each) = (40, 32 * MIB);
        let halves = std::sync::Barrier::new(clients);
        let done = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..clients {
                scope.spawn(|| {
                    let mut share = budget.share();
                    assert!(share.grow(MIB / 2, &mut patient));
                    halves.wait();
                    for part in 1..=32 {
                        assert!(share.grow(each / 32 * part, &mut patient));
                        assert!(budget.gauge().used_bytes <= budget.0.requests_bytes);
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(done.into_inner(), clients as u64);
        let gauge = budget.gauge();
        assert_eq!((gauge.used_bytes, gauge.waiting), (0, 0));
        assert!(gauge.waited > 0 && gauge.waited_ns > 0 && gauge.peak_bytes <= gauge.limit_bytes, "{gauge:?}");
        assert!(!budget.state().reserve_is_granted);
    }

    #[test]
    fn memory_is_granted_in_order_of_arrival() {
        let budget = Budget::new(BUDGET_BYTES_MIN);
        let mut holder = budget.share();
        let mut whole = budget.share();
        assert!(holder.grow(budget.common_bytes(), &mut patient));
        assert!(whole.grow(MIB, &mut patient), "the reserve is there for the first who needs it");
        let (served, told) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let budget = &budget;
            for number in 0..3 {
                // The first wants much, and those behind it little: none of them overtakes it.
                let bytes = if number == 0 { 20 * MIB } else { 1 };
                let served = served.clone();
                scope.spawn(move || {
                    let mut share = budget.share();
                    assert!(share.grow(bytes, &mut patient));
                    served.send((number, share)).expect("somebody listens");
                });
                while budget.gauge().waiting <= number {
                    thread::yield_now();
                }
            }
            assert!(told.try_recv().is_err(), "no request is served before there is room");
            // They hold the reserve one after another.
            drop(whole);
            for wanted in 0..3 {
                let (number, share) = told.recv().expect("one of them");
                assert_eq!((number, budget.gauge().waiting), (wanted, 2 - wanted));
                drop(share);
            }
            drop(holder);
        });
    }

    #[test]
    fn a_waiter_receives_released_memory() {
        let budget = Budget::new(BUDGET_BYTES_MIN);
        let kept = Mutex::new(Some(budget.share()));
        let gone = AtomicBool::new(false);
        let mut reserve = budget.share();
        assert!(kept.lock().expect("no panic").as_mut().expect("kept").grow(budget.common_bytes(), &mut patient));
        assert!(reserve.grow(MIB, &mut patient));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut tidy = || {
                    if gone.load(Ordering::Acquire) {
                        drop(kept.lock().expect("no panic").take());
                    }
                    true
                };
                budget.share().grow(MIB, &mut tidy)
            });
            while !budget.is_wanted() {
                thread::yield_now();
            }
            gone.store(true, Ordering::Release);
            budget.wake_next();
            assert!(waiting.join().expect("no panic"));
        });
        assert!(!budget.share().grow(REQUEST_BYTES_MAX, &mut || false) || !budget.is_wanted());
    }

    #[test]
    fn a_budget_is_divided_between_connections_and_requests() {
        let least = Budget::new(1);
        assert_eq!((least.gauge().limit_bytes, least.0.requests_bytes), (BUDGET_BYTES_MIN, 96 * MIB));
        assert_eq!((least.connections_max(), least.exposed_bytes_max()), (1024, 31 * MIB / 2));
        assert_eq!(Budget::new(1 << 30).connections_max(), CONNECTIONS_MAX);
        let of_this_machine = Budget::for_this_machine().gauge().limit_bytes;
        assert!((BUDGET_BYTES_MIN..=BUDGET_BYTES_DEFAULT).contains(&of_this_machine), "{of_this_machine}");
    }

    #[test]
    fn shares_count_as_they_grow_shrink_and_move() {
        let budget = Budget::new(BUDGET_BYTES_MIN);
        let used = || budget.gauge().used_bytes;
        let (mut one, mut other) = (budget.share(), budget.share());
        assert!(one.grow(10 * MIB, &mut patient) && other.grow_now(2 * MIB) && other.grow_now(MIB));
        assert_eq!((used(), one.bytes(), other.bytes()), (12 * MIB, 10 * MIB, 2 * MIB));
        one.shrink(4 * MIB);
        one.shrink(8 * MIB);
        assert_eq!((used(), one.bytes()), (6 * MIB, 4 * MIB));
        other.take_over(&mut one, 3 * MIB);
        assert_eq!((used(), one.bytes(), other.bytes()), (6 * MIB, MIB, 5 * MIB));
        other.take_over(&mut one, 3 * MIB);
        assert_eq!((used(), one.bytes(), other.bytes()), (8 * MIB, 0, 8 * MIB));
        assert!(!one.grow_now(budget.common_bytes() - 8 * MIB + 1) && one.bytes() == 0);
        assert!(one.grow_now(budget.common_bytes() - 8 * MIB));
        let peak_bytes = budget.common_bytes();
        drop((one, other));
        let expected = MemoryGauge { peak_bytes, ..Budget::new(BUDGET_BYTES_MIN).gauge() };
        assert_eq!(budget.gauge(), expected, "no request had to wait");
    }

    #[test]
    fn one_share_has_the_reserve_until_it_is_dropped() {
        let budget = Budget::new(BUDGET_BYTES_MIN);
        let (mut holder, mut first, mut second) = (budget.share(), budget.share(), budget.share());
        assert!(holder.grow(budget.common_bytes(), &mut patient) && first.grow(MIB, &mut patient));
        // Who has the reserve needs no more turns.
        assert!(first.grow(REQUEST_BYTES_MAX, &mut || false));
        assert_eq!((budget.gauge().used_bytes, budget.gauge().waited), (budget.0.requests_bytes, 1));
        let mut looks = 0;
        let mut three_times = || {
            looks += 1;
            thread::current().unpark();
            looks < 3
        };
        assert!(!second.grow(MIB, &mut three_times));
        assert_eq!((looks, second.bytes(), budget.gauge().waiting, budget.gauge().waited), (3, 0, 0, 2));
        assert!(budget.state().queue.is_empty() && !budget.is_wanted());
        drop(first);
        assert!(second.grow(MIB, &mut patient));
        assert_eq!(budget.gauge().used_bytes, budget.common_bytes() + MIB);
    }

    #[test]
    fn the_reserve_waits_until_excess_memory_is_released() {
        let budget = Budget::new(BUDGET_BYTES_MIN);
        let (mut holder, mut other, mut none) = (budget.share(), budget.share(), budget.share());
        assert!(holder.grow(budget.common_bytes(), &mut patient));
        holder.take_over(&mut none, holder.bytes() + 1);
        let mut at_once = true;
        let mut once = || {
            thread::current().unpark();
            std::mem::take(&mut at_once)
        };
        assert!(!other.grow(MIB, &mut once));
        holder.shrink(budget.common_bytes());
        assert!(other.grow(MIB, &mut patient));
    }

    #[test]
    #[should_panic(expected = "B for one request")]
    fn no_request_takes_more_than_the_reserve() {
        Budget::new(BUDGET_BYTES_MIN).share().grow(REQUEST_BYTES_MAX + 1, &mut patient);
    }
}
