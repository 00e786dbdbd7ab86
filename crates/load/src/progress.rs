//! [`Progress`]: the state of a running measurement.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counters that one worker writes and other threads read.
#[derive(Debug, Default)]
pub struct WorkerProgress {
    completed: AtomicU64,
    bytes: AtomicU64,
    response_ns: AtomicU64,
    errors: AtomicU64,
    under_way: AtomicU64,
    /// Completed share of the worker's work, in millionths.
    share: AtomicU64,
    over: AtomicBool,
}

/// The state of a running measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Time since the start, in ns.
    pub elapsed_ns: u64,
    /// Completed share of the work, 0 to 1, of the job that takes longest.
    pub share: f64,
    /// Number of completed requests, including the warm-up.
    pub completed: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Sum of the response times, in ns.
    pub response_ns: u64,
    /// Failed requests.
    pub errors: u64,
    /// Queue depth.
    pub under_way: u64,
    /// Whether the run only waits for outstanding requests.
    pub is_ending: bool,
}

impl WorkerProgress {
    /// Stores the worker's current counts.
    #[inline]
    pub fn store_counts(&self, completed: u64, bytes: u64, response_ns: u64, errors: u64, under_way: u64) {
        self.completed.store(completed, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        self.response_ns.store(response_ns, Ordering::Relaxed);
        self.errors.store(errors, Ordering::Relaxed);
        self.under_way.store(under_way, Ordering::Relaxed);
    }

    /// Stores the completed share of the work.
    #[inline]
    pub fn store_share(&self, share: f64) {
        self.share.store((share.clamp(0.0, 1.0) * 1e6) as u64, Ordering::Relaxed);
    }

    /// Marks the worker as ended.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Whether the worker has ended.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Adds the worker's counts to the totals.
    pub fn add_to(&self, progress: &mut Progress) {
        progress.completed += self.completed.load(Ordering::Relaxed);
        progress.bytes += self.bytes.load(Ordering::Relaxed);
        progress.response_ns += self.response_ns.load(Ordering::Relaxed);
        progress.errors += self.errors.load(Ordering::Relaxed);
        progress.under_way += self.under_way.load(Ordering::Relaxed);
        let share = if self.is_over() { 1.0 } else { self.share.load(Ordering::Relaxed) as f64 / 1e6 };
        progress.share = progress.share.min(share);
    }
}
