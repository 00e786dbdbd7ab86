//! A session from its start to its end: what it is made of, and who may do what with it.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use headstack_sim::array::description::ArrayDescription;
use headstack_sim::faults::Schedule;
use headstack_sim::timeline::{Listener, Timeline};
use headstack_sim::{Model, Progress, SystemDescription};

use super::clock::Clock;
use super::{Commander, Shared, Submitter};
use crate::LiveError;
use crate::budget::Budget;
use crate::contents::Contents;
use crate::fidelity::Fidelity;
use crate::journal::{Journal, JournalPlan};
use crate::ledger::Ledger;
use crate::power::gate::Gate;
use crate::wall::Wall;
use crate::witness::{Scene, Witness};

/// How a session is paced.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Nanoseconds of the model in one of the wall.
    pub speed: f64,
    /// Seed of the system's own random processes.
    pub seed: u64,
    /// Asks for SCHED_FIFO.
    pub realtime: bool,
    /// What goes wrong, and when.
    pub schedule: Schedule,
    /// Memory for requests under way and what a power cut takes back.
    pub budget: Budget,
    /// Everything that happens to contents is kept there.
    pub journal: Option<JournalPlan>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions {
            speed: 1.0,
            seed: 0,
            realtime: true,
            schedule: Schedule::default(),
            budget: Budget::of_this_machine(),
            journal: None,
        }
    }
}

/// A model that runs by the wall clock.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    clock: JoinHandle<Ledger>,
    may_lose_data: bool,
}

impl Session {
    /// Starts the clock at model time 0. `listener` hears of every request.
    ///
    /// # Errors
    /// What is impossible in the model; a fault that cannot strike it; a thread that could not be had.
    pub fn start(model: &Model, options: SessionOptions, listener: Option<Listener>) -> Result<Session, LiveError> {
        Session::start_prepared(model, options, listener, &|_| true)
    }

    /// The same where SSDs may begin in the steady state, which takes minutes: `progress` is called meanwhile with the share
    /// done, and the clock starts afterwards.
    ///
    /// # Errors
    /// As of [`Self::start`], and [`SimError::Stopped`](headstack_sim::SimError::Stopped).
    pub fn start_prepared(
        model: &Model,
        options: SessionOptions,
        listener: Option<Listener>,
        progress: &Progress,
    ) -> Result<Session, LiveError> {
        let is_instant = matches!(model, Model::Constant(constant) if constant.latency_ns == 0)
            && options.schedule.faults.is_empty()
            && options.journal.is_none();
        let mut timeline = Timeline::prepared(model, options.seed, listener, progress)?;
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
            gate: Gate::new(matches!(model, Model::System(_)), array_of(model), journal, &options.budget),
            budget: options.budget.clone(),
            scene: Scene::new(),
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
        *shared.clock.write().expect("nobody panics with it") = Some(clock.thread().clone());
        Ok(Session { shared, clock, may_lose_data })
    }

    /// Whether a power cut may take what was acknowledged.
    pub fn may_lose_data(&self) -> bool {
        self.may_lose_data
    }

    /// A power cut takes from these bytes what the model says.
    ///
    /// # Panics
    /// There are some already.
    pub(crate) fn keeps(&self, contents: Contents) {
        self.shared.contents.set(contents).expect("one device a session");
    }

    /// Who hands requests in.
    pub fn submitter(&self) -> Submitter {
        Submitter { shared: Arc::clone(&self.shared), floor: Duration::ZERO }
    }

    /// Has its clients watched.
    ///
    /// # Errors
    /// A machine that has no threads.
    pub fn witness(&self) -> Result<Witness, LiveError> {
        Witness::start(&self.shared.scene, self.shared.realtime)
    }

    /// Who gives orders.
    pub fn commander(&self) -> Commander {
        Commander { shared: Arc::clone(&self.shared) }
    }

    /// Ends the session: what is under way is never answered. Returns how true it was.
    pub fn stop(self) -> Fidelity {
        self.shared.inbox().closing = true;
        self.shared.wake();
        let ledger = self.clock.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.shared.fidelity(&ledger)
    }
}

/// The array, if a model is one.
fn array_of(model: &Model) -> Option<&ArrayDescription> {
    match model {
        Model::System(SystemDescription::Array(array)) => Some(array),
        Model::System(SystemDescription::Drive(_)) | Model::Constant(_) => None,
    }
}
