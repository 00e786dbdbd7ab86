//! [`Paces`]: the times at which the next operations of loads are due, by rate or by share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use headstack_jobfiles::trees::TreePhase;
use headstack_workload::ArrivalClock;

use crate::LoadError;
use crate::clock::{Clock, LOOK_NS};

/// Number of operations by which a load may exceed its share.
const AHEAD: f64 = 64.0;
/// Time that a load that exceeds its share waits before it checks again, in ns.
const WAIT_NS: u64 = 50_000;

/// Pace of one load.
struct Pace {
    /// Arrival times, relative to the start of the phase, if the phase has a rate.
    arrivals: Option<Mutex<ArrivalClock>>,
    /// The load's share of all operations, if loads have shares.
    share: Option<f64>,
    done: AtomicU64,
    is_over: AtomicBool,
    /// Number of active threads of the load.
    threads: AtomicU32,
}

/// Paces of all loads of a phase.
pub struct Paces {
    paces: Vec<Pace>,
    /// Start of the arrivals, in ns.
    start_ns: AtomicU64,
    end_ns: AtomicU64,
}

impl Paces {
    /// Creates the paces of a phase. `seed` determines the arrivals.
    ///
    /// # Errors
    /// Returns an error if a rate is not allowed.
    pub fn new(phase: &TreePhase, seed: u64) -> Result<Paces, LoadError> {
        let even = 100.0 / phase.loads.len().max(1) as f64;
        let pace = |(number, load): (u64, &headstack_jobfiles::trees::TreeLoad)| -> Result<Pace, LoadError> {
            let rate = |rate: f64| rate * load.share_percent.unwrap_or(even) / 100.0;
            let clock = |rate: f64| ArrivalClock::new(rate, phase.process, seed.wrapping_add(number)).map(Mutex::new);
            Ok(Pace {
                arrivals: phase.rate_per_s.map(rate).filter(|rate| *rate > 0.0).map(clock).transpose()?,
                share: load.share_percent.filter(|_| phase.rate_per_s.is_none()).map(|percent| percent / 100.0),
                done: AtomicU64::new(0),
                threads: AtomicU32::new(load.threads),
                is_over: AtomicBool::new(phase.rate_per_s.is_some() && load.share_percent == Some(0.0)),
            })
        };
        let paces = (0..).zip(&phase.loads).map(pace).collect::<Result<_, _>>()?;
        Ok(Paces { paces, start_ns: AtomicU64::new(u64::MAX), end_ns: AtomicU64::new(u64::MAX) })
    }

    /// Starts the phase for a thread; the first thread starts it for all.
    pub fn begin(&self, now_ns: u64, length_ns: u64) {
        let begun = self.start_ns.compare_exchange(u64::MAX, now_ns, Ordering::AcqRel, Ordering::Relaxed);
        if begun.is_ok() {
            self.end_ns.store(now_ns.saturating_add(length_ns), Ordering::Release);
        }
    }

    /// Returns the start of the phase, in ns.
    pub fn start_ns(&self) -> u64 {
        self.start_ns.load(Ordering::Acquire)
    }

    /// Returns the end of the phase, in ns.
    pub fn end_ns(&self) -> u64 {
        self.end_ns.load(Ordering::Acquire)
    }

    /// Waits until the next operation of a load is due. Returns the due time in ns, or `None` when the phase is over.
    pub fn next(&self, load: usize, clock: &Clock, stop: &AtomicBool) -> Option<u64> {
        let pace = &self.paces[load];
        let is_over = || stop.load(Ordering::Relaxed) || clock.now_ns() >= self.end_ns();
        if pace.is_over.load(Ordering::Relaxed) || is_over() {
            return None;
        }
        if let Some(arrivals) = &pace.arrivals {
            let due_ns = self.start_ns() + arrivals.lock().expect("the lock is not poisoned").next_ns();
            if due_ns >= self.end_ns() {
                pace.is_over.store(true, Ordering::Relaxed);
                return None;
            }
            while clock.now_ns() < due_ns {
                if is_over() {
                    return None;
                }
                clock.sleep_until(due_ns.min(clock.now_ns() + LOOK_NS));
            }
            return Some(due_ns);
        }
        while self.is_ahead(pace) {
            if is_over() {
                return None;
            }
            clock.sleep_until(clock.now_ns() + WAIT_NS);
        }
        pace.done.fetch_add(1, Ordering::Relaxed);
        Some(clock.now_ns())
    }

    fn is_ahead(&self, pace: &Pace) -> bool {
        let reached = |pace: &Pace| {
            let share = pace.share.filter(|share| *share > 0.0)?;
            (!pace.is_over.load(Ordering::Relaxed)).then(|| pace.done.load(Ordering::Relaxed) as f64 / share)
        };
        let Some(own) = reached(pace) else { return pace.share == Some(0.0) };
        let least = self.paces.iter().filter_map(reached).fold(f64::INFINITY, f64::min);
        own > least + AHEAD / pace.share.unwrap_or(1.0)
    }

    /// Records that a thread of a load has ended. After its last thread, other loads no longer wait for this load.
    pub fn end(&self, load: usize) {
        if self.paces[load].threads.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.paces[load].is_over.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the number of operations that were due before the phase ended at `now_ns` but were not started.
    pub fn backlog(&self, now_ns: u64) -> u64 {
        let until_ns = now_ns.min(self.end_ns());
        let left = |pace: &Pace| match &pace.arrivals {
            Some(arrivals) if !pace.is_over.load(Ordering::Relaxed) => {
                let mut arrivals = arrivals.lock().expect("the lock is not poisoned");
                (0..).take_while(|_| self.start_ns() + arrivals.next_ns() < until_ns).count() as u64
            }
            _ => 0,
        };
        self.paces.iter().map(left).sum()
    }
}
