//! [`Engine`]: submits requests to the kernel and collects their completions.

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

pub use done::Completion;
pub use nbd::Nbd;
pub use null::{Null, WHOLE};
pub use passthrough::Passthrough;
pub use psync::Psync;
pub use ring::Ring;
use system_calls::flush;
pub use system_calls::{carry_out, trim};

/// How requests are submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// io_uring, or system calls where io_uring is forbidden; the null engine for a null target.
    #[default]
    Auto,
    /// io_uring.
    Ring,
    /// Blocking system calls, each in its own thread.
    Psync,
    /// The null engine: requests complete after a fixed time. Use it to measure the overhead of the measurement itself.
    Null {
        /// Time from submission to completion, in ns.
        service_ns: u64,
    },
}

/// Condition that ends a wait of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Wait for at least one completion, or until the next check for a stop.
    One,
    /// Wait for at least one completion, or until this time, or until the next check for a stop.
    Until(u64),
}

/// Waits as `wait` says. `pass` waits for a completion, for at most the given time (or without limit), and adds
/// completions to `done`. Until shortly before a deadline this sleeps; then it polls.
#[inline]
fn await_by(
    wait: Wait,
    done: &mut Vec<Completion>,
    mut pass: impl FnMut(Option<u64>, &mut Vec<Completion>) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    match wait {
        Wait::One if done.is_empty() => pass(None, done),
        Wait::Until(at_ns) if done.is_empty() => {
            pass(Some(at_ns.saturating_sub(now_ns()).saturating_sub(SPIN_NS)), done)?;
            // If the thread was woken long before the deadline, it first checks for a stop.
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
    /// The files, as one address space.
    pub map: TargetMap,
    /// Queue depth.
    pub slots: u32,
    /// Longest request in bytes.
    pub longest_bytes: u32,
    /// Whether contents matter, so that every request needs its own buffer.
    pub own_buffers: bool,
    /// Name of the target in error messages.
    pub name: String,
}

/// An engine of any kind.
#[allow(clippy::large_enum_variant)] // One per worker.
pub enum Engine {
    /// io_uring.
    Ring(Ring),
    /// System calls.
    Psync(Psync),
    /// NVMe commands through io_uring.
    Passthrough(Passthrough),
    /// Requests to NBD servers.
    Nbd(Nbd),
    /// The null engine.
    Null(Null),
}

impl Engine {
    /// Sets up the engine in the thread that will use it. `waker` ends its waits.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses a resource.
    pub fn new(kind: EngineKind, setup: Setup, waker: &Waker) -> Result<Engine, LoadError> {
        if !matches!(kind, EngineKind::Null { .. }) && setup.map.pieces().iter().any(|piece| piece.export().is_some()) {
            return Ok(Engine::Nbd(Self::new_nbd(kind, setup, waker)?));
        }
        match kind {
            EngineKind::Null { service_ns } => Ok(Engine::Null(Null::new(setup, vec![service_ns])?)),
            EngineKind::Psync => Ok(Engine::Psync(Psync::new(setup)?)),
            EngineKind::Ring => Engine::by_ring(setup, waker),
            // There is no target to submit to.
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

    /// Returns the description for results.
    pub fn describe(&self) -> String {
        match self {
            Engine::Ring(_) => "requests were submitted by io_uring".to_owned(),
            Engine::Passthrough(_) => "requests were submitted as NVMe commands by io_uring".to_owned(),
            Engine::Psync(_) => "requests were submitted by psync".to_owned(),
            Engine::Nbd(nbd) => {
                let way = if nbd.is_by_ring() { "io_uring" } else { "system calls" };
                format!("requests were sent to the NBD server, and replies received by {way}")
            }
            Engine::Null(_) => "requests were answered by the null engine, which stores nothing".to_owned(),
        }
    }

    /// Returns the reason why this engine is used instead of the usual one.
    pub fn instead_of(&self) -> Option<&str> {
        match self {
            Engine::Psync(psync) => psync.instead_of.as_deref(),
            Engine::Nbd(nbd) => nbd.instead_of.as_deref(),
            Engine::Ring(_) | Engine::Passthrough(_) | Engine::Null(_) => None,
        }
    }

    /// Accepts a request for a free slot; [`drive`](Self::drive) submits the request.
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

    /// Submits the accepted requests without waiting, for callers that measure the submission time.
    #[inline]
    pub fn hand_over(&mut self) {
        match self {
            Engine::Ring(ring) => ring.hand_over(),
            Engine::Passthrough(passthrough) => passthrough.hand_over(),
            Engine::Nbd(nbd) => nbd.hand_over(),
            Engine::Psync(_) | Engine::Null(_) => {}
        }
    }

    /// Returns whether all accepted requests have been submitted; false for engines that submit only while they wait.
    #[inline]
    pub fn has_handed_over(&mut self) -> bool {
        match self {
            Engine::Ring(ring) => ring.has_handed_over(),
            Engine::Passthrough(passthrough) => passthrough.has_handed_over(),
            Engine::Nbd(nbd) => nbd.has_handed_over(),
            Engine::Psync(_) | Engine::Null(_) => false,
        }
    }

    /// Submits the accepted requests, waits, and adds completions to `done`. The kernel waits in wall-clock time,
    /// even if `clock` is virtual.
    ///
    /// # Errors
    /// Returns an error if the kernel accepts no more requests.
    #[inline]
    pub fn drive(&mut self, wait: Wait, clock: &Clock, done: &mut Vec<Completion>) -> Result<(), LoadError> {
        match self {
            Engine::Ring(ring) => ring.drive(wait, done),
            Engine::Psync(psync) => psync.drive(wait, done),
            Engine::Passthrough(passthrough) => passthrough.drive(wait, done),
            Engine::Nbd(nbd) => nbd.drive(wait, done),
            Engine::Null(null) => null.drive(wait, clock, done),
        }
    }

    /// Returns the buffers. Use only those of free slots.
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

    /// Flushes data and metadata of all files in `map` while no request is in flight. Returns 0 or the first negative
    /// error number.
    pub fn flush(&mut self, map: &TargetMap) -> i32 {
        match self {
            Engine::Nbd(nbd) => nbd.flush(),
            Engine::Ring(_) | Engine::Passthrough(_) | Engine::Psync(_) | Engine::Null(_) => flush(map, true),
        }
    }

    /// Leaks an engine whose requests will never complete: the kernel may still write into its buffers, so they must
    /// stay allocated.
    pub fn abandon(self) {
        std::mem::forget(self);
    }
}
