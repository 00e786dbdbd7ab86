//! [`Witness`]: observes the environment of a session: upper bounds of clients' measured errors, the scheduler's effect
//! on clients and server, and the experience of a client of ordinary priority. A punctual server proves nothing if its
//! clients are delayed.

mod canary;
mod schedstat;
mod turns;

pub use schedstat::WaitStatistics;
pub use turns::{Issued, Spread, Times, TurnStatistics, Turns};

use std::collections::HashMap;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::LiveError;
use crate::stream::Stream;
use crate::wall::{ThreadRole, be_punctual};
use schedstat::{Process, name_of, pressure};

/// Threads of the server on which answers depend.
const SERVER: &[&str] = &["headstack-clock", "headstack-nbd", "headstack-send", "headstack-fuse", "headstack-ublk"];
/// Sampling interval of the scheduler's statistics, and of idle checks.
const LOOK: Duration = Duration::from_millis(10);
const IDLE_LOOK: Duration = Duration::from_millis(50);
/// Number of samples without news after which traffic has stopped.
const QUIET_LOOKS: u32 = 50;
/// Largest share of a core's time for sampling: one in so many.
const LOOKING_SHARE: u32 = 50;
/// Number of past clients that are remembered: those with the most requests.
const GONE_MAX: usize = 64;

/// Observations of a client when it is judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClientStatistics {
    /// Name of the program, for a local client over a unix socket.
    pub name: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// Statistics of its turns.
    pub turns: TurnStatistics,
    /// Scheduler statistics; `None` if unknown.
    pub waits: Option<WaitStatistics>,
}

/// All observations so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Observations {
    /// NBD clients, those with the most requests first.
    pub clients: Vec<ClientStatistics>,
    /// Waits of the canary in excess of the answer's service time.
    pub canary: Spread,
    /// Scheduler statistics of the server; `None` if unknown.
    pub server: Option<WaitStatistics>,
    /// Share of the time in which a task of this machine waited for a processor (PSI); `None` if unknown.
    pub pressure_share: Option<f64>,
}

/// Shared state of the witness's threads and the session's.
#[derive(Debug)]
pub struct WitnessState {
    flags: Flags,
    clients: Mutex<Clients>,
    processes: Mutex<HashMap<u32, Weak<Mutex<Process>>>>,
    canary: Mutex<Times>,
    server: Mutex<Option<Process>>,
    since: (Instant, Option<Duration>),
}

#[derive(Debug, Default)]
struct Clients {
    here: Vec<Weak<Client>>,
    gone: Vec<ClientStatistics>,
}

#[derive(Debug, Default)]
struct Flags {
    closing: AtomicBool,
    traffic: AtomicBool,
    answers: AtomicU64,
}

impl Flags {
    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    fn has_traffic(&self) -> bool {
        self.traffic.load(Ordering::Relaxed)
    }
}

/// An NBD client, from its first request to the final statistics.
#[derive(Debug)]
pub struct Client {
    /// Its turns.
    pub turns: Turns,
    scene: Arc<WitnessState>,
    pid: Option<u32>,
    name: Option<String>,
    process: Option<Arc<Mutex<Process>>>,
}

impl Drop for Client {
    fn drop(&mut self) {
        let seen = self.statistics();
        let mut clients = self.scene.clients();
        clients.here.retain(|client| client.strong_count() > 0);
        clients.gone.push(seen);
        clients.gone.sort_by_key(|client| std::cmp::Reverse(client.turns.requests));
        clients.gone.truncate(GONE_MAX);
    }
}

impl Client {
    fn statistics(&self) -> ClientStatistics {
        let waits = self.process.as_ref().map(|process| {
            let mut process = process.lock().expect("the lock is not poisoned");
            process.look();
            process.statistics()
        });
        ClientStatistics { name: self.name.clone(), pid: self.pid, turns: self.turns.statistics(), waits }
    }
}

impl WitnessState {
    /// Creates an empty scene.
    pub fn new() -> Arc<WitnessState> {
        Arc::new(WitnessState {
            flags: Flags::default(),
            clients: Mutex::default(),
            processes: Mutex::default(),
            canary: Mutex::default(),
            server: Mutex::default(),
            since: (Instant::now(), pressure()),
        })
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().expect("the lock is not poisoned")
    }

    fn server(&self) -> MutexGuard<'_, Option<Process>> {
        self.server.lock().expect("the lock is not poisoned")
    }

    /// Registers a client that connected over `stream`, or over another one that is relayed to it.
    pub fn meet(self: &Arc<Self>, stream: &Stream, is_relayed: bool) -> Arc<Client> {
        let pid = if is_relayed { None } else { stream.peer() };
        let client = Arc::new(Client {
            turns: Turns::new(pid.map(|_| stream.clone())),
            scene: Arc::clone(self),
            pid,
            name: pid.and_then(name_of),
            process: pid.and_then(|pid| self.process(pid)),
        });
        self.clients().here.push(Arc::downgrade(&client));
        client
    }

    fn process(&self, pid: u32) -> Option<Arc<Mutex<Process>>> {
        let mut processes = self.processes.lock().expect("the lock is not poisoned");
        processes.retain(|_, process| process.strong_count() > 0);
        if let Some(known) = processes.get(&pid).and_then(Weak::upgrade) {
            return Some(known);
        }
        let process = Arc::new(Mutex::new(Process::new(pid, &[])?));
        processes.insert(pid, Arc::downgrade(&process));
        Some(process)
    }

    /// Notes that an answer was sent.
    #[inline]
    pub fn answered(&self) {
        self.flags.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the observations so far.
    pub fn statistics(&self) -> Observations {
        let (mut all, here) = {
            let clients = self.clients();
            (clients.gone.clone(), clients.here.iter().filter_map(Weak::upgrade).collect::<Vec<_>>())
        };
        all.extend(here.iter().map(|client| client.statistics()));
        all.sort_by_key(|client| std::cmp::Reverse(client.turns.requests));
        let (since, pressure_before) = self.since;
        let pressed = pressure().zip(pressure_before).map(|(now, before)| now.saturating_sub(before));
        let wall_s = since.elapsed().as_secs_f64().max(1e-9);
        Observations {
            clients: all,
            canary: self.canary.lock().expect("the lock is not poisoned").spread(),
            server: self.server().as_ref().map(Process::statistics),
            pressure_share: pressed.map(|pressed| (pressed.as_secs_f64() / wall_s).min(1.0)),
        }
    }

    /// Samples everything until the session ends.
    fn watch(&self, realtime: bool) {
        be_punctual(ThreadRole::Watch, realtime);
        *self.server() = Process::new(std::process::id(), SERVER);
        let (mut answers, mut quiet) = (0, QUIET_LOOKS);
        while !self.flags.is_closing() {
            let begun = Instant::now();
            let now_answers = self.flags.answers.load(Ordering::Relaxed);
            quiet = if now_answers == answers { (quiet + 1).min(QUIET_LOOKS) } else { 0 };
            answers = now_answers;
            let has_traffic = quiet < QUIET_LOOKS;
            self.flags.traffic.store(has_traffic, Ordering::Relaxed);
            let clients: Vec<Arc<Client>> = self.clients().here.iter().filter_map(Weak::upgrade).collect();
            clients.iter().for_each(|client| client.turns.look(begun));
            if has_traffic {
                let processes: Vec<Arc<Mutex<Process>>> = self
                    .processes
                    .lock()
                    .expect("the lock is not poisoned")
                    .values()
                    .filter_map(Weak::upgrade)
                    .collect();
                processes.iter().for_each(|process| process.lock().expect("the lock is not poisoned").look());
                if let Some(server) = &mut *self.server() {
                    server.look();
                }
            }
            let look = if has_traffic { LOOK } else { IDLE_LOOK };
            thread::sleep(look.max(begun.elapsed() * LOOKING_SHARE));
        }
    }
}

/// The sampling threads, and the canary.
#[derive(Debug)]
pub struct Witness {
    scene: Arc<WitnessState>,
    canary: UnixStream,
    threads: Vec<JoinHandle<()>>,
}

impl Witness {
    /// Starts observing.
    ///
    /// # Errors
    /// When sockets or threads are not available.
    pub fn start(scene: &Arc<WitnessState>, realtime: bool) -> Result<Witness, LiveError> {
        let (ours, theirs) = UnixStream::pair().map_err(LiveError::io("a socket pair"))?;
        let canary = ours.try_clone().map_err(LiveError::io("a socket pair"))?;
        let mut witness = Witness { scene: Arc::clone(scene), canary, threads: Vec::new() };
        let watching = Arc::clone(scene);
        witness.spawn("headstack-watch", move || watching.watch(realtime))?;
        // The canary ends when its other end is closed.
        witness.spawn("headstack-echo", move || drop(canary::answer(&theirs, realtime)))?;
        let asking = Arc::clone(scene);
        witness.spawn("headstack-asks", move || drop(canary::send_probes(&ours, &asking.flags, &asking.canary)))?;
        Ok(witness)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), LiveError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
        self.threads.push(thread.map_err(LiveError::io("a thread of the witness"))?);
        Ok(())
    }

    /// Stops observing.
    pub fn stop(self) {
        self.scene.flags.closing.store(true, Ordering::Relaxed);
        // Fails if the other end has already left.
        let _ = self.canary.shutdown(Shutdown::Both);
        for thread in self.threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    }
}
