//! What a run tells of itself while it goes on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts that one worker writes and others read.
#[derive(Debug, Default)]
pub struct WorkerProgress {
    completed: AtomicU64,
    bytes: AtomicU64,
    response_ns: AtomicU64,
    errors: AtomicU64,
    under_way: AtomicU64,
    /// Share of its work that is done, in millionths.
    share: AtomicU64,
    over: AtomicBool,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Since the start.
    pub elapsed_ns: u64,
    /// Share of the work that is done, 0 to 1, of the job that needs longest.
    pub share: f64,
    /// Requests completed, those of the warm-up too.
    pub completed: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Sum of their response times.
    pub response_ns: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests with the system.
    pub under_way: u64,
    /// Nothing is issued any more: what is under way is awaited.
    pub is_ending: bool,
}

impl WorkerProgress {
    /// The worker's counts up to now.
    #[inline]
    pub fn tell(&self, completed: u64, bytes: u64, response_ns: u64, errors: u64, under_way: u64) {
        self.completed.store(completed, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        self.response_ns.store(response_ns, Ordering::Relaxed);
        self.errors.store(errors, Ordering::Relaxed);
        self.under_way.store(under_way, Ordering::Relaxed);
    }

    /// The share of its work that is done.
    #[inline]
    pub fn tell_share(&self, share: f64) {
        self.share.store((share.clamp(0.0, 1.0) * 1e6) as u64, Ordering::Relaxed);
    }

    /// It has ended.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Adds the worker to what is told of all.
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
