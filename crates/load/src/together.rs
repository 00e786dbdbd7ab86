//! Runs of several processes that begin at one moment: hosts that load one system.

use std::sync::OnceLock;

use crate::clock::{Clock, calibrate_tsc, now_ns};

/// Stands between a run that is ready and its beginning.
pub trait Gate: Send + Sync {
    /// Targets are open and engines set up. Returns when the run is to begin, on the clock of [`clock_ns`]; it begins at
    /// once where that has passed, and ends at once where there is no such moment.
    fn ready(&self) -> Option<u64>;
    /// When the run did begin.
    fn began(&self, at_ns: u64);
}

/// When a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// As soon as it can.
    AtOnce,
    /// When the gate of this process opens, where it has one.
    Together,
}

/// A process measures for one session of hosts, and then ends.
static GATE: OnceLock<Box<dyn Gate>> = OnceLock::new();

/// Has every load of this process wait at `gate` from now on; false where there is a gate already. Passes that only read
/// what a load has left do not wait.
pub fn begin_together(gate: Box<dyn Gate>) -> bool {
    // What is told to others must not change its pace with the first run.
    calibrate_tsc();
    GATE.set(gate).is_ok()
}

/// The time of measurements, in nanoseconds since some moment before this process began.
pub fn clock_ns() -> u64 {
    now_ns()
}

impl Start {
    /// Returns when the run is to begin; false where it is not to begin at all.
    pub(crate) fn wait(self, clock: &Clock) -> bool {
        let Some(gate) = self.gate() else { return true };
        let begins_ns = gate.ready();
        begins_ns.inspect(|&at_ns| clock.sleep_until(at_ns)).is_some()
    }

    /// Says when it did.
    pub(crate) fn tell(self, began_ns: u64) {
        if let Some(gate) = self.gate() {
            gate.began(began_ns);
        }
    }

    fn gate(self) -> Option<&'static dyn Gate> {
        match self {
            Start::AtOnce => None,
            Start::Together => GATE.get().map(|gate| &**gate),
        }
    }
}
