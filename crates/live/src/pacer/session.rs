//! [`Session`]: a session from start to end, with its parts and their ownership.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use headstack_sim::Model;
use headstack_sim::array::description::ArrayDescription;
use headstack_sim::faults::Schedule;
use headstack_sim::timeline::{Listener, Timeline};

use super::clock::Clock;
use super::{Commander, Shared, Submitter};
use crate::LiveError;
use crate::budget::Budget;
use crate::contents::Contents;
use crate::fidelity::Fidelity;
use crate::journal::{Journal, JournalPlan};
use crate::ledger::Ledger;
use crate::power::gate::PowerGate;
use crate::wall::Wall;
use crate::witness::{Witness, WitnessState};

/// Options of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Nanoseconds of model time per nanosecond of wall-clock time.
    pub speed: f64,
    /// Seed of the system's random processes.
    pub seed: u64,
    /// Whether to request SCHED_FIFO.
    pub realtime: bool,
    /// Schedule of faults.
    pub schedule: Schedule,
    /// Memory for requests in flight and for data that a power loss would restore.
    pub budget: Budget,
    /// Journal of all changes of the contents; `None` for no journal.
    pub journal: Option<JournalPlan>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions {
            speed: 1.0,
            seed: 0,
            realtime: true,
            schedule: Schedule::default(),
            budget: Budget::for_this_machine(),
            journal: None,
        }
    }
}

/// A running model, paced by the wall clock.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    clock: JoinHandle<Ledger>,
    may_lose_data: bool,
}

impl Session {
    /// Starts the clock at model time 0. `listener` is called for every request.
    ///
    /// # Errors
    /// Returns an error if the model is impossible, a fault of the schedule cannot affect this model, or no thread can
    /// be started.
    pub fn start(model: &Model, options: SessionOptions, listener: Option<Listener>) -> Result<Session, LiveError> {
        let is_instant = matches!(model, Model::Constant(constant) if constant.latency_ns == 0)
            && options.schedule.faults.is_empty()
            && options.journal.is_none();
        let mut timeline = Timeline::new(model, options.seed, listener)?;
        let wall = Wall::starting_now(options.speed);
        timeline.limit_exposure(options.budget.exposed_bytes_max());
        timeline.follow(&options.schedule)?;
        let may_lose_data = timeline.may_lose_data();
        let begin = |plan: &JournalPlan| Journal::create(model, may_lose_data, plan, wall, &options.budget);
        let journal = options.journal.as_ref().map(begin).transpose()?;
        let shared = Arc::new(Shared {
            inbox: Mutex::default(),
            clock: RwLock::default(),
            floor_ns: AtomicU64::new(0),
            has_news: AtomicBool::new(false),
            at_once: AtomicU64::new(0),
            gate: PowerGate::new(matches!(model, Model::System(_)), array_of(model), journal, &options.budget),
            budget: options.budget.clone(),
            scene: WitnessState::new(),
            speed: options.speed,
            realtime: options.realtime,
            contents: OnceLock::new(),
            patterns: RwLock::default(),
            looks_for_patterns: AtomicBool::new(false),
            is_instant,
        });
        options.schedule.faults.iter().for_each(|timed| shared.gate.expect(&timed.fault));
        shared.look_for(timeline.patterns());
        let clock = Clock::new(timeline, wall, Arc::clone(&shared));
        let spawned =
            thread::Builder::new().name("headstack-clock".to_owned()).spawn(move || clock.run(options.realtime));
        let clock = spawned.map_err(LiveError::io("the clock's thread"))?;
        *shared.clock.write().expect("the lock is not poisoned") = Some(clock.thread().clone());
        Ok(Session { shared, clock, may_lose_data })
    }

    /// Whether a power loss may destroy acknowledged data.
    pub fn may_lose_data(&self) -> bool {
        self.may_lose_data
    }

    /// Sets the contents that a power loss in the model affects.
    ///
    /// # Panics
    /// Panics if the contents are already set.
    pub(crate) fn keeps(&self, contents: Contents) {
        self.shared.contents.set(contents).expect("one device a session");
    }

    /// Returns a handle for submitting requests.
    pub fn submitter(&self) -> Submitter {
        Submitter { shared: Arc::clone(&self.shared), floor: Duration::ZERO }
    }

    /// Starts observing the clients of the session.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub fn witness(&self) -> Result<Witness, LiveError> {
        Witness::start(&self.shared.scene, self.shared.realtime)
    }

    /// Returns a handle for orders.
    pub fn commander(&self) -> Commander {
        Commander { shared: Arc::clone(&self.shared) }
    }

    /// Ends the session and returns its accuracy. Requests in flight are never answered.
    pub fn stop(self) -> Fidelity {
        self.shared.inbox().closing = true;
        self.shared.wake();
        let ledger = self.clock.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.shared.fidelity(&ledger)
    }
}

/// Returns the array if the model is an array.
fn array_of(model: &Model) -> Option<&ArrayDescription> {
    match model {
        Model::System(system) => system.array_in_place(),
        Model::Constant(_) => None,
    }
}
