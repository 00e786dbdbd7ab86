//! The model by the wall clock: one thread owns it, others hand requests in and give orders.
//!
//! Exports copy data before they hand a request in ([`Submitter`]), and send what is large from threads of their own, so
//! that a megabyte on its way makes nobody else late: on the clock's thread ([`clock`]) happens nothing but the model.

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
use headstack_sim::timeline::Touch;
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
use crate::power::gate::Gate;
use crate::witness::Scene;

pub use commander::Commander;
pub use session::{Session, SessionOptions};
pub use submitter::Submitter;

/// How the sender of a request hears of its end: a way to export says it in its own words.
pub trait Answer: std::fmt::Debug + Send {
    /// Tells what became of the request, for which the model `took` so much of the wall's time. On the clock thread: it
    /// must be quick and wait for nobody.
    fn send(self: Box<Self>, outcome: Outcome, took: Duration);

    /// The bytes that a read brings, and where in the system the first of them is: a fault may make others of them.
    fn data(&mut self) -> Option<(u64, &mut [u8])> {
        None
    }
}

/// A word to another thread, for programs that are no export.
impl Answer for mpsc::Sender<Outcome> {
    fn send(self: Box<Self>, outcome: Outcome, _: Duration) {
        // Who has gone does not need to know.
        let _ = mpsc::Sender::send(&self, outcome);
    }
}

/// A request on its way to the clock thread.
#[derive(Debug)]
struct Arrival {
    /// When it was issued: before it was received, by what the path costs.
    issued: Instant,
    received: Instant,
    /// When its data were copied.
    copied: Instant,
    request: Request,
    touch: Touch,
    /// Its number in the journal.
    journal: Option<u64>,
    answer: Box<dyn Answer>,
}

/// An order, and who waits for its answer.
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
    /// The largest of the paths'.
    floor_ns: AtomicU64,
    /// Something is in the inbox.
    has_news: AtomicBool,
    /// Requests that needed no clock.
    at_once: AtomicU64,
    gate: Gate,
    budget: Budget,
    /// Who else is there.
    scene: Arc<Scene>,
    /// Nanoseconds of the model in one of the wall.
    speed: f64,
    /// SCHED_FIFO is asked for.
    realtime: bool,
    /// What a power cut takes from, once there is an export.
    contents: OnceLock<Contents>,
    /// What faults look for in what is written.
    patterns: RwLock<Vec<Box<[u8]>>>,
    looks_for_patterns: AtomicBool,
    /// Every request takes no time at all.
    is_instant: bool,
}

impl Shared {
    fn inbox(&self) -> std::sync::MutexGuard<'_, Inbox> {
        self.inbox.lock().expect("nobody panics with the inbox in hand")
    }

    fn wake(&self) {
        self.has_news.store(true, Ordering::Release);
        if let Some(clock) = &*self.clock.read().expect("nobody panics with it") {
            clock.unpark();
        }
    }

    /// Which of the patterns that faults look for are in what is written, a bit each.
    fn patterns_in(&self, change: Change<'_>) -> u64 {
        let Change::Data(data) = change else { return 0 };
        if !self.looks_for_patterns.load(Ordering::Acquire) {
            return 0;
        }
        let patterns = self.patterns.read().expect("nobody panics with them");
        let found = patterns.iter().enumerate().filter(|(_, pattern)| memmem::find(data, pattern).is_some());
        found.fold(0, |bits, (bit, _)| bits | 1 << bit)
    }

    /// The journal cannot be written any more.
    fn journal_trouble(&self) -> Option<String> {
        let is_broken = self.gate.note(Journal::is_broken).unwrap_or(false);
        is_broken.then(|| "the journal cannot be written any more".to_owned())
    }

    /// Faults look for these from now on.
    fn look_for(&self, patterns: &[Box<[u8]>]) {
        *self.patterns.write().expect("nobody panics with them") = patterns.to_vec();
        self.looks_for_patterns.store(!patterns.is_empty(), Ordering::Release);
    }

    /// What is to be said of the session so far.
    fn fidelity(&self, ledger: &Ledger) -> Fidelity {
        let mut path = ledger.path(self.floor_ns.load(Ordering::Relaxed), self.speed);
        path.requests += self.at_once.load(Ordering::Relaxed);
        let memory = self.budget.gauge();
        path.memory_waits = memory.waited;
        path.memory_wait_mean_ns = memory.waited_ns / memory.waited.max(1);
        Fidelity::new(path, self.scene.seen())
    }
}
