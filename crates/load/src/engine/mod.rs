//! Handing requests to the kernel and hearing of their end.

mod done;
mod flushes;
mod nbd;
mod null;
mod passthrough;
mod psync;
mod ring;
mod system_calls;
#[cfg(test)]
mod tests;

use headstack_workload::Request;
use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::buffers::Buffers;
use crate::clock::{Clock, SPIN_NS, now_ns};
use crate::target_map::TargetMap;
use crate::waker::Waker;

pub use done::Done;
pub use nbd::Nbd;
pub use null::{Null, WHOLE};
pub use passthrough::Passthrough;
pub use psync::Psync;
pub use ring::Ring;
use system_calls::flush;
pub use system_calls::{carry_out, trim};

/// How requests are handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// io_uring, or system calls where it is forbidden; nothing where the target is null.
    #[default]
    Auto,
    /// io_uring.
    Ring,
    /// System calls that return when the request is complete, each in a thread of its own.
    Psync,
    /// Nothing: a target that answers after a fixed time, to measure what measuring itself costs.
    Null {
        /// From the request to its end.
        service_ns: u64,
    },
}

/// For what an engine waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For one request at least, or for as long as nobody looks whether to go on.
    One,
    /// For one request at least, or this time; sooner when somebody is to look whether to go on.
    Until(u64),
}

/// Waits as `wait` says, by `pass`: it waits for a completion for as long as it is told, or without end, and adds to `done`
/// what has ended. A moment is awaited asleep until shortly before, and then by looking again and again.
#[inline]
fn await_by(
    wait: Wait,
    done: &mut Vec<Done>,
    mut pass: impl FnMut(Option<u64>, &mut Vec<Done>) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    match wait {
        Wait::One if done.is_empty() => pass(None, done),
        Wait::Until(at_ns) if done.is_empty() => {
            pass(Some(at_ns.saturating_sub(now_ns()).saturating_sub(SPIN_NS)), done)?;
            // Whoever was woken long before looks first whether to go on.
            while done.is_empty() && (1..=SPIN_NS).contains(&at_ns.saturating_sub(now_ns())) {
                pass(Some(0), done)?;
            }
            Ok(())
        }
        _ => pass(Some(0), done),
    }
}

/// Settings of an engine for a job.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The files.
    pub map: TargetMap,
    /// Requests at a time.
    pub slots: u32,
    /// The longest request in bytes.
    pub longest_bytes: u32,
    /// Whether contents matter, so that no two requests may share a buffer.
    pub own_buffers: bool,
    /// Name of the target in errors.
    pub name: String,
}

/// One of the ways to hand over requests.
#[allow(clippy::large_enum_variant)] // One a worker.
pub enum Engine {
    /// io_uring.
    Ring(Ring),
    /// System calls.
    Psync(Psync),
    /// NVMe commands by io_uring.
    Passthrough(Passthrough),
    /// Exports of NBD servers.
    Nbd(Nbd),
    /// Nothing.
    Null(Null),
}

impl Engine {
    /// Sets the engine up, in the thread that will use it; `waker` ends its waits.
    ///
    /// # Errors
    /// When the kernel refuses what it needs.
    pub fn new(kind: EngineKind, setup: Setup, waker: &Waker) -> Result<Engine, LoadError> {
        if !matches!(kind, EngineKind::Null { .. }) && setup.map.pieces().iter().any(|piece| piece.export().is_some()) {
            return Ok(Engine::Nbd(Self::new_nbd(kind, setup, waker)?));
        }
        match kind {
            EngineKind::Null { service_ns } => Ok(Engine::Null(Null::new(setup, vec![service_ns])?)),
            EngineKind::Psync => Ok(Engine::Psync(Psync::new(setup)?)),
            EngineKind::Ring => Engine::by_ring(setup, waker),
            // Nothing to hand over to.
            EngineKind::Auto if setup.map.pieces().is_empty() => Ok(Engine::Null(Null::new(setup, vec![0])?)),
            EngineKind::Auto => match Engine::by_ring(setup.clone(), waker) {
                Ok(engine) => Ok(engine),
                Err(LoadError::Io { action: ring::SETUP, source, .. }) => {
                    let mut psync = Psync::new(setup)?;
                    psync.instead_of = Some(format!("io_uring is not available ({source})"));
                    Ok(Engine::Psync(psync))
                }
                Err(error) => Err(error),
            },
        }
    }

    fn by_ring(setup: Setup, waker: &Waker) -> Result<Engine, LoadError> {
        match setup.map.pieces().iter().any(|piece| piece.namespace().is_some()) {
            true => Ok(Engine::Passthrough(Passthrough::new(setup, waker)?)),
            false => Ok(Engine::Ring(Ring::new(setup, waker)?)),
        }
    }

    fn new_nbd(kind: EngineKind, setup: Setup, waker: &Waker) -> Result<Nbd, LoadError> {
        match Nbd::new(setup.clone(), kind != EngineKind::Psync, waker) {
            Err(LoadError::Io { action: ring::SETUP, source, .. }) if kind == EngineKind::Auto => {
                let mut nbd = Nbd::new(setup, false, waker)?;
                nbd.instead_of = Some(format!("io_uring is not available ({source})"));
                Ok(nbd)
            }
            other => other,
        }
    }

    /// Its description in results.
    pub fn describe(&self) -> String {
        match self {
            Engine::Ring(_) => "requests were handed over by io_uring".to_owned(),
            Engine::Passthrough(_) => "requests were handed over as NVMe commands by io_uring".to_owned(),
            Engine::Psync(Psync { instead_of: Some(why), .. }) => format!("{why}: requests were handed over by psync"),
            Engine::Psync(_) => "requests were handed over by psync".to_owned(),
            Engine::Nbd(nbd) => {
                let why = nbd.instead_of.as_ref().map_or_else(String::new, |why| format!("{why}: "));
                let way = if nbd.is_by_ring() { "io_uring" } else { "system calls" };
                format!("{why}requests were sent to the NBD server, and replies awaited by {way}")
            }
            Engine::Null(_) => "requests were answered by the null engine, which stores nothing".to_owned(),
        }
    }

    /// Takes a request for a slot that is free; [`drive`](Self::drive) hands it over.
    #[inline]
    pub fn prepare(&mut self, slot: u32, request: &Request) {
        match self {
            Engine::Ring(ring) => ring.prepare(slot, request),
            Engine::Psync(psync) => psync.prepare(slot, request),
            Engine::Passthrough(passthrough) => passthrough.prepare(slot, request),
            Engine::Nbd(nbd) => nbd.prepare(slot, request),
            Engine::Null(null) => null.prepare(slot, request),
        }
    }

    /// Hands over what was taken without waiting, for whoever wants to know when that was done.
    #[inline]
    pub fn hand_over(&mut self) {
        match self {
            Engine::Ring(ring) => ring.hand_over(),
            Engine::Passthrough(passthrough) => passthrough.hand_over(),
            Engine::Nbd(nbd) => nbd.hand_over(),
            Engine::Psync(_) | Engine::Null(_) => {}
        }
    }

    /// Whether all that was taken was handed over; only engines that hand over before they wait can tell.
    #[inline]
    pub fn has_handed_over(&mut self) -> bool {
        match self {
            Engine::Ring(ring) => ring.has_handed_over(),
            Engine::Passthrough(passthrough) => passthrough.has_handed_over(),
            Engine::Nbd(nbd) => nbd.has_handed_over(),
            Engine::Psync(_) | Engine::Null(_) => false,
        }
    }

    /// Hands over what was taken, waits, and adds to `done` what has ended. The kernel waits by the wall, whatever `clock`
    /// says.
    ///
    /// # Errors
    /// When the kernel takes no requests any more.
    #[inline]
    pub fn drive(&mut self, wait: Wait, clock: &Clock, done: &mut Vec<Done>) -> Result<(), LoadError> {
        match self {
            Engine::Ring(ring) => ring.drive(wait, done),
            Engine::Psync(psync) => psync.drive(wait, done),
            Engine::Passthrough(passthrough) => passthrough.drive(wait, done),
            Engine::Nbd(nbd) => nbd.drive(wait, done),
            Engine::Null(null) => null.drive(wait, clock, done),
        }
    }

    /// The buffers, of whose slots those that are free may be touched.
    #[inline]
    pub fn buffers(&mut self) -> &mut Buffers {
        match self {
            Engine::Ring(ring) => ring.buffers(),
            Engine::Psync(psync) => psync.buffers(),
            Engine::Passthrough(passthrough) => passthrough.buffers(),
            Engine::Nbd(nbd) => nbd.buffers(),
            Engine::Null(null) => null.buffers(),
        }
    }

    /// Flushes data and metadata of all that is in `map`, while nothing is under way; 0 or the first negative error number.
    pub fn flush(&mut self, map: &TargetMap) -> i32 {
        match self {
            Engine::Nbd(nbd) => nbd.flush(),
            Engine::Ring(_) | Engine::Passthrough(_) | Engine::Psync(_) | Engine::Null(_) => flush(map, true),
        }
    }

    /// Forgets an engine with requests under way that will never end: the kernel may still write into its buffers,
    /// which therefore stay.
    pub fn abandon(self) {
        std::mem::forget(self);
    }
}
