//! The clock thread: it owns the model, hears of arrivals, and answers each request when the model says so.
//!
//! Nothing else happens there. Exports copy data before they hand a request in, and send what is large from threads of
//! their own, so that a megabyte on its way makes nobody else late.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use headstack_catalogue::faults::{faults_to_toml, read_map};
use headstack_sim::faults::contents::{Damage, Spoil};
use headstack_sim::faults::{FaultsToEnd, Schedule, Timed};
use headstack_sim::power_cut::{Changed, Verdict};
use headstack_sim::timeline::{Finished, Listener, Timeline, Touch};
use headstack_sim::{Model, Outcome};
use headstack_workload::{Kind, Request};
use memchr::memmem;
use serde_json::{Value, json};

use crate::LiveError;
use crate::budget::{Budget, Share};
use crate::contents::Contents;
use crate::fidelity::Fidelity;
use crate::journal::{Journal, JournalPlan};
use crate::ledger::Ledger;
use crate::orders::Order;
use crate::power::Change;
use crate::power::gate::{Asked, Gate};
use crate::smart;
use crate::stream::Stream;
use crate::telemetry::{self, Figures};
use crate::wall::{Awake, Duty, Scheduling, Wall, be_punctual};
use crate::witness::{Client, Scene, Witness};

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
        Fidelity::new(path, self.scene.seen())
    }
}

/// Hands requests in.
#[derive(Clone, Debug)]
pub struct Submitter {
    shared: Arc<Shared>,
    floor: Duration,
}

impl Submitter {
    /// The same for a path that costs so much of the wall's time: what comes by it counts as issued so long before it is
    /// received.
    pub fn with_floor_ns(&self, floor_ns: u64) -> Submitter {
        self.shared.floor_ns.fetch_max(floor_ns, Ordering::Relaxed);
        Submitter { floor: Duration::from_nanos(floor_ns), ..self.clone() }
    }

    /// Whether every request takes no time at all: exports may answer by themselves then, and only count.
    pub fn is_instant(&self) -> bool {
        self.shared.is_instant
    }

    /// Requests were answered without the clock.
    pub fn count_at_once(&self, requests: u64) {
        self.shared.at_once.fetch_add(requests, Ordering::Relaxed);
    }

    /// Memory for requests.
    pub fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    /// A client has come over `stream`, or over another one that is relayed to it.
    pub(crate) fn meet(&self, stream: &Stream, is_relayed: bool) -> Arc<Client> {
        self.shared.scene.meet(stream, is_relayed)
    }

    /// Has this thread keep up with the clock, behind it, where answers take any time.
    pub(crate) fn keep_up(&self) {
        if !self.shared.is_instant {
            be_punctual(Duty::Path, self.shared.realtime);
        }
    }

    /// Power, and what it does to contents.
    pub fn gate(&self) -> &Gate {
        &self.shared.gate
    }

    /// A request was received at `at`; its answer comes from the clock thread.
    pub fn submit(&self, at: Instant, request: Request, answer: Box<dyn Answer>) {
        let is_flush = request.kind == Kind::Flush;
        let noted = if is_flush { self.gate().note(|journal| journal.flush(self.issued(at))) } else { None };
        self.hand_in(at, request, (Touch::default(), noted.flatten()), answer);
    }

    /// When what was received at `at` was issued.
    fn issued(&self, at: Instant) -> Instant {
        at.checked_sub(self.floor).unwrap_or(at)
    }

    /// As above, of a request that changes contents, which is `forced` to the media before it is acknowledged or not. What
    /// is kept of what was there is taken from `share`, of which `answer` gets the rest.
    ///
    /// # Errors
    /// What the file system says: nothing is changed then, and no answer made.
    pub(crate) fn submit_change(
        &self,
        at: Instant,
        request: Request,
        (contents, change, forced): (&Contents, Change<'_>, bool),
        share: &mut Share,
        answer: impl FnOnce(&mut Share) -> Box<dyn Answer>,
    ) -> std::io::Result<()> {
        let holds = self.shared.patterns_in(change);
        let asked = Asked { span: request.span(), change, forced, issued: self.issued(at) };
        self.shared.gate.change(contents, &asked, share, |made, share| {
            let changed = made.undo.map(|number| Changed { number, forced });
            self.hand_in(at, request, (Touch { changed, holds }, made.journal), answer(share));
        })
    }

    fn hand_in(&self, at: Instant, request: Request, (touch, journal): (Touch, Option<u64>), answer: Box<dyn Answer>) {
        let mut inbox = self.shared.inbox();
        if inbox.closing {
            drop(inbox);
            return answer.send(Outcome::Vanished, Duration::ZERO);
        }
        let copied = Instant::now();
        let issued = self.issued(at);
        inbox.arrivals.push(Arrival { issued, received: at, copied, request, touch, journal, answer });
        // The first of a batch wakes the clock; the others find it awake.
        let first = inbox.arrivals.len() == 1;
        drop(inbox);
        if first {
            self.shared.wake();
        }
    }
}

/// Gives orders, from any thread.
#[derive(Clone, Debug)]
pub struct Commander {
    shared: Arc<Shared>,
}

impl Commander {
    /// Has an order carried out at the present moment of the model, and returns its answer.
    ///
    /// # Errors
    /// What is wrong with the order; a session that is over.
    pub fn order(&self, order: Order) -> Result<Value, LiveError> {
        if order == Order::Status { Ok(self.figures()?.status) } else { Ok(self.ask(order)?.0) }
    }

    /// Notes a line of text in the journal, and returns when it is in the file: its moment of the model.
    ///
    /// # Errors
    /// No journal is kept; it cannot be written.
    pub fn mark(&self, text: &str) -> Result<u64, LiveError> {
        let marked = self.shared.gate.note(|journal| journal.mark(text));
        marked.unwrap_or_else(|| Err(LiveError::Asked("mark: no journal is kept; give --journal FILE".to_owned())))
    }

    /// What is going on, with what was counted.
    ///
    /// # Errors
    /// A session that is over.
    pub(crate) fn figures(&self) -> Result<Figures, LiveError> {
        let (mut status, ledger) = self.ask(Order::Status)?;
        let ledger = ledger.expect("what was counted comes with the status");
        // The clock has no time for sums.
        telemetry::tell(&mut status, &ledger, &self.shared.fidelity(&ledger));
        Ok(Figures { status, ledger })
    }

    fn ask(&self, mut order: Order) -> Result<(Value, Option<Ledger>), LiveError> {
        // The clock's thread opens no files.
        if let Order::Inject { fault, .. } = &mut order {
            if self.shared.is_instant {
                let why = "everything is answered at once here, and meets no fault: a system that takes time is needed";
                return Err(LiveError::Asked(why.to_owned()));
            }
            read_map(fault, Path::new(""))?;
            self.shared.gate.expect(fault);
        }
        let (answer, heard) = mpsc::channel();
        let over = || LiveError::Asked("the session is over".to_owned());
        let mut inbox = self.shared.inbox();
        if inbox.closing {
            return Err(over());
        }
        inbox.orders.push((order, answer));
        drop(inbox);
        self.shared.wake();
        heard.recv().unwrap_or_else(|_| Err(over()))
    }
}

/// A model that runs by the wall clock.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    clock: JoinHandle<Ledger>,
}

impl Session {
    /// Starts the clock at model time 0. `listener` hears of every request.
    ///
    /// # Errors
    /// What is impossible in the model; a fault that cannot strike it; a thread that could not be had.
    pub fn start(model: &Model, options: SessionOptions, listener: Option<Listener>) -> Result<Session, LiveError> {
        let is_instant = matches!(model, Model::Constant(constant) if constant.latency_ns == 0)
            && options.schedule.faults.is_empty()
            && options.journal.is_none();
        let wall = Wall::starting_now(options.speed);
        let mut timeline = Timeline::new(model, options.seed, listener)?;
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
            gate: Gate::new(matches!(model, Model::System(_)), journal, &options.budget),
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
        let clock = Clock {
            timeline,
            wall,
            shared: Arc::clone(&shared),
            ledger: Ledger::new(),
            arrivals: Vec::new(),
            finished: Vec::new(),
            verdicts: Vec::new(),
            damages: Vec::new(),
            trouble: None,
            awake: Awake::new(),
        };
        let spawned =
            thread::Builder::new().name("headstack-clock".to_owned()).spawn(move || clock.run(options.realtime));
        let clock = spawned.map_err(LiveError::io("the clock's thread"))?;
        *shared.clock.write().expect("nobody panics with it") = Some(clock.thread().clone());
        Ok(Session { shared, clock })
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

/// A request under way.
#[derive(Debug)]
struct Ticket {
    answer: Box<dyn Answer>,
    /// When the answer could leave at the soonest, and when its data were copied.
    received: Instant,
    copied: Instant,
    /// Its number in the journal.
    journal: Option<u64>,
}

struct Clock {
    timeline: Timeline<Ticket>,
    wall: Wall,
    shared: Arc<Shared>,
    ledger: Ledger,
    /// What came, while it is read.
    arrivals: Vec<Arrival>,
    /// What is complete, while it is answered.
    finished: Vec<Finished<Ticket>>,
    /// What has become of changes to contents, while it is told.
    verdicts: Vec<Verdict>,
    /// What faults have done to contents, while it is done.
    damages: Vec<Damage>,
    /// Why contents are not what a power cut should have left.
    trouble: Option<String>,
    awake: Awake,
}

impl Clock {
    fn run(mut self, realtime: bool) -> Ledger {
        self.ledger.scheduling = be_punctual(Duty::Clock, realtime);
        while !self.take_arrivals() {
            let orders = std::mem::take(&mut self.shared.inbox().orders);
            for (order, answer) in orders {
                // What was done before is told before: an order may cut the power.
                self.catch_up(self.wall.model_ns(Instant::now()));
                // Who has gone needs no answer.
                let counted = (order == Order::Status).then(|| self.ledger.clone());
                let told = self.obey(order).map(|told| (told, counted));
                let _ = answer.send(told);
            }
            self.catch_up(self.wall.model_ns(Instant::now()));
            self.sleep();
        }
        self.timeline.finish();
        self.ledger
    }

    /// Tells the model of what came; returns whether this is the end.
    fn take_arrivals(&mut self) -> bool {
        let closing = {
            self.shared.has_news.store(false, Ordering::Release);
            let mut inbox = self.shared.inbox();
            std::mem::swap(&mut inbox.arrivals, &mut self.arrivals);
            inbox.closing
        };
        for Arrival { issued, received, copied, request, touch, journal, answer } in self.arrivals.drain(..) {
            if closing {
                answer.send(Outcome::Vanished, Duration::ZERO);
                continue;
            }
            let ticket = Ticket { answer, received, copied, journal };
            self.timeline.arrive(self.wall.model_ns(issued), request, touch, ticket);
            self.ledger.outstanding(self.timeline.outstanding());
        }
        closing
    }

    /// Lets the model work up to `now_ns`, and answers what is complete. Where power fails, who was answered before that
    /// hears it while he is still connected: what he was told is what a cut is judged by.
    fn catch_up(&mut self, now_ns: u64) {
        let mut finished = std::mem::take(&mut self.finished);
        self.timeline.advance(now_ns, &mut finished);
        self.damage();
        let power_fails = self.timeline.power_cuts() != self.shared.gate.cuts();
        if power_fails {
            let told = finished.extract_if(.., |finished| finished.outcome != Outcome::Vanished);
            told.collect::<Vec<_>>().into_iter().for_each(|finished| self.answer(finished));
        }
        self.settle();
        finished.drain(..).for_each(|finished| self.answer(finished));
        self.finished = finished;
    }

    /// Does to contents what faults have done, before anybody is answered who would look.
    fn damage(&mut self) {
        self.timeline.take_damages(&mut self.damages);
        if let Some(contents) = self.shared.contents.get()
            && !self.damages.is_empty()
            && let Err(error) = self.shared.gate.damage(&mut self.damages, contents, &self.shared.budget)
        {
            self.trouble = Some(format!("what faults do to contents could not be done: {error}"));
        }
        self.damages.clear();
    }

    /// Follows the timeline where power went or came, and has contents be what it says that they are.
    fn settle(&mut self) {
        let shared = Arc::clone(&self.shared);
        let cuts = self.timeline.power_cuts();
        if cuts != shared.gate.cuts() {
            shared.gate.close(cuts);
            shared.gate.note(|journal| journal.power(self.wall.model_ns(Instant::now()), false));
            // Whoever was changing contents has handed that in by now.
            self.take_arrivals();
            self.damage();
        }
        self.timeline.take_verdicts(&mut self.verdicts);
        if !self.verdicts.is_empty()
            && let Some(contents) = shared.contents.get()
        {
            match shared.gate.settle(&mut self.verdicts, contents) {
                Ok(lost) => lost.iter().for_each(|lost| self.timeline.note_lost(lost)),
                Err(error) => {
                    self.trouble = Some(format!("what a power cut takes could not be taken back: {error}"));
                }
            }
            // Pre-images that nobody needs any more are freed by who waits for their memory.
            shared.budget.tell();
        }
        self.verdicts.clear();
        if self.timeline.has_power() && !shared.gate.is_on() {
            shared.gate.note(|journal| journal.power(self.wall.model_ns(Instant::now()), true));
            shared.gate.open();
        }
    }

    /// Carries out an order at the present moment of the model.
    fn obey(&mut self, order: Order) -> Result<Value, LiveError> {
        let now_ns = self.wall.model_ns(Instant::now());
        match order {
            Order::Status => Ok(json!({
                "model_ns": now_ns,
                "outstanding": self.timeline.outstanding(),
                "power": self.timeline.has_power(),
                "trouble": self.trouble.clone().or_else(|| self.shared.journal_trouble()),
                "memory": self.shared.budget.gauge(),
                "gauges": self.timeline.gauges(now_ns),
                "faults": self.timeline.injections().active(),
            })),
            Order::Inject { fault, lasts, when } => {
                if let Some(lasts) = lasts.filter(|lasts| lasts.0 <= 0) {
                    return Err(LiveError::Asked(format!("for: {lasts}: more than 0ns is allowed")));
                }
                let timed = Timed { from: None, until: None, lasts, trigger: *when, fault };
                let injected = self.timeline.inject_at(now_ns, timed);
                self.shared.look_for(self.timeline.patterns());
                let (number, at_ns) = injected?;
                self.settled(now_ns)?;
                let mut told = json!({ "number": number, "at_ns": at_ns });
                if let Some(loss) = self.timeline.loss_of(number) {
                    told["loss"] = json!(loss);
                }
                Ok(told)
            }
            Order::Release => Ok(json!({ "ended": self.timeline.end_faults(now_ns, FaultsToEnd::Hangs) })),
            Order::Clear { number } => {
                let which = number.map_or(FaultsToEnd::All, FaultsToEnd::One);
                let ended = self.timeline.end_faults(now_ns, which);
                self.settled(now_ns)?;
                Ok(json!({ "ended": ended }))
            }
            Order::Smart => Ok(json!({ "devices": smart::reports(&self.timeline, now_ns) })),
            Order::Injections => {
                let log = self.timeline.injections();
                Ok(json!({ "seed": log.seed, "injections": log.injections, "schedule": faults_to_toml(&log) }))
            }
        }
    }

    /// Has contents be what the timeline says before anybody is told of it.
    fn settled(&mut self, now_ns: u64) -> Result<(), LiveError> {
        self.catch_up(now_ns);
        self.trouble.clone().map_or(Ok(()), |trouble| Err(LiveError::Asked(trouble)))
    }

    fn answer(&mut self, finished: Finished<Ticket>) {
        let Finished { mut ticket, at_ns, arrival_ns, outcome, request, spoils, .. } = finished;
        if !spoils.is_empty() {
            self.spoil(&mut ticket, &spoils, outcome);
        }
        if outcome == Outcome::Vanished {
            return ticket.answer.send(outcome, Duration::ZERO);
        }
        if let Some(number) = ticket.journal {
            self.shared.gate.note(|journal| journal.ends(at_ns, number, outcome));
        }
        let due = self.wall.at(at_ns).expect("what is finished has a time");
        let below_floor = due < ticket.received;
        let can_leave = due.max(ticket.received);
        let copied = ticket.copied.saturating_duration_since(can_leave);
        let late = Instant::now().saturating_duration_since(can_leave + copied);
        let took = Duration::from_nanos(((at_ns - arrival_ns) as f64 / self.wall.speed()) as u64);
        ticket.answer.send(outcome, took);
        self.shared.scene.answered();
        self.ledger.answered(late.as_nanos() as u64, copied.as_nanos() as u64, below_floor);
        self.ledger.served(&request, at_ns - arrival_ns, outcome != Outcome::Done);
    }

    /// Has a read bring what faults make of what is stored.
    fn spoil(&mut self, ticket: &mut Ticket, spoils: &[Spoil], outcome: Outcome) {
        let read = if outcome == Outcome::Done { ticket.answer.data() } else { None };
        if let Some(contents) = self.shared.contents.get()
            && let Err(error) = self.shared.gate.spoil(read, spoils, contents)
        {
            self.trouble = Some(format!("what faults do to a read could not be done: {error}"));
        }
    }

    /// Until the next event, or until somebody comes.
    fn sleep(&mut self) {
        let Some(due) = self.wall.at(self.timeline.next_ns()) else {
            return thread::park();
        };
        let is_realtime = self.ledger.scheduling == Scheduling::Realtime;
        let now = Instant::now();
        let margin = if is_realtime { self.awake.margin(now) } else { Duration::ZERO };
        if due > now + margin {
            let wanted = due - now - margin;
            thread::park_timeout(wanted);
            // Who was woken by others did not oversleep.
            if is_realtime && !self.shared.has_news.load(Ordering::Relaxed) {
                self.awake.overslept(now.elapsed().saturating_sub(wanted));
            }
        }
        if !margin.is_zero() {
            self.awake.until(due, &self.shared.has_news);
        }
    }
}
