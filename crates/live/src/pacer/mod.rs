//! Paces the model by the wall clock: one thread owns it, others submit requests and give orders.
//!
//! Exports copy data before they submit a request ([`Submitter`]), and send large replies from their own threads, so
//! that long copies delay no other reply: the clock thread ([`clock`]) only runs the model.

mod clock;
mod commander;
mod session;
mod submitter;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use headstack_sim::Outcome;
use headstack_sim::timeline::ContentEffect;
use headstack_workload::Request;
use memchr::memmem;
use serde_json::Value;

use crate::LiveError;
use crate::budget::Budget;
use crate::contents::Contents;
use crate::fidelity::Fidelity;
use crate::journal::Journal;
use crate::ledger::Ledger;
use crate::orders::Order;
use crate::power::Change;
use crate::power::gate::PowerGate;
use crate::witness::WitnessState;

pub use commander::Commander;
pub use session::{Session, SessionOptions};
pub use submitter::Submitter;

/// Receives the outcome of a request; each kind of export has its own implementation.
pub trait Answer: std::fmt::Debug + Send {
    /// Called with the outcome of the request, for which the model `took` that much wall-clock time. Runs on the clock
    /// thread: it must be quick and must not wait.
    fn send(self: Box<Self>, outcome: Outcome, took: Duration);

    /// Data of a read, and their address in the system: a fault may alter them.
    fn data(&mut self) -> Option<(u64, &mut [u8])> {
        None
    }
}

/// Sends the outcome to another thread, for programs that are no export.
impl Answer for mpsc::Sender<Outcome> {
    fn send(self: Box<Self>, outcome: Outcome, _: Duration) {
        // The receiver may have left.
        let _ = mpsc::Sender::send(&self, outcome);
    }
}

/// A request on its way to the clock thread.
#[derive(Debug)]
struct Arrival {
    /// Issue time: the time of receipt minus the cost of the path.
    issued: Instant,
    received: Instant,
    /// When its data were copied.
    copied: Instant,
    request: Request,
    touch: ContentEffect,
    /// Its number in the journal.
    journal: Option<u64>,
    answer: Box<dyn Answer>,
}

/// An order, and the channel of its answer.
type Ordered = (Order, mpsc::Sender<Result<(Value, Option<Ledger>), LiveError>>);

#[derive(Debug, Default)]
struct Inbox {
    arrivals: Vec<Arrival>,
    orders: Vec<Ordered>,
    closing: bool,
}

#[derive(Debug)]
struct Shared {
    inbox: Mutex<Inbox>,
    /// The clock thread, once it runs.
    clock: RwLock<Option<Thread>>,
    /// Largest cost of all paths.
    floor_ns: AtomicU64,
    /// Whether the inbox has entries.
    has_news: AtomicBool,
    /// Requests that needed no clock.
    at_once: AtomicU64,
    gate: PowerGate,
    budget: Budget,
    /// Observations of clients and scheduler.
    scene: Arc<WitnessState>,
    /// Nanoseconds of model time per nanosecond of wall-clock time.
    speed: f64,
    /// Whether SCHED_FIFO is requested.
    realtime: bool,
    /// Contents that a power cut affects, once there is an export.
    contents: OnceLock<Contents>,
    /// Patterns that faults search for in written data.
    patterns: RwLock<Vec<Box<[u8]>>>,
    looks_for_patterns: AtomicBool,
    /// Whether requests take no time.
    is_instant: bool,
}

impl Shared {
    fn inbox(&self) -> std::sync::MutexGuard<'_, Inbox> {
        self.inbox.lock().expect("the lock is not poisoned")
    }

    fn wake(&self) {
        self.has_news.store(true, Ordering::Release);
        if let Some(clock) = &*self.clock.read().expect("the lock is not poisoned") {
            clock.unpark();
        }
    }

    /// Returns which patterns of faults are in the written data, one bit each.
    fn patterns_in(&self, change: Change<'_>) -> u64 {
        let Change::Data(data) = change else { return 0 };
        if !self.looks_for_patterns.load(Ordering::Acquire) {
            return 0;
        }
        let patterns = self.patterns.read().expect("the lock is not poisoned");
        let matching = patterns.iter().enumerate().filter(|(_, pattern)| memmem::find(data, pattern).is_some());
        matching.fold(0, |bits, (bit, _)| bits | 1 << bit)
    }

    /// The journal's write error, if any.
    fn journal_trouble(&self) -> Option<String> {
        let is_broken = self.gate.note(Journal::is_broken).unwrap_or(false);
        is_broken.then(|| "the journal can no longer be written".to_owned())
    }

    /// Sets the patterns that faults search for from now on.
    fn look_for(&self, patterns: &[Box<[u8]>]) {
        *self.patterns.write().expect("the lock is not poisoned") = patterns.to_vec();
        self.looks_for_patterns.store(!patterns.is_empty(), Ordering::Release);
    }

    /// Accuracy of the session so far.
    fn fidelity(&self, ledger: &Ledger) -> Fidelity {
        let mut path = ledger.path(self.floor_ns.load(Ordering::Relaxed), self.speed);
        path.requests += self.at_once.load(Ordering::Relaxed);
        let memory = self.budget.gauge();
        path.memory_waits = memory.waited;
        path.memory_wait_mean_ns = memory.waited_ns / memory.waited.max(1);
        Fidelity::new(path, self.scene.statistics())
    }
}
