//! [`StartBarrier`]: a common start of runs in several processes, on hosts that load one system.

use std::sync::OnceLock;

use crate::clock::{Clock, calibrate_tsc, now_ns};

/// A gate between a run that is ready and its start.
pub trait StartBarrier: Send + Sync {
    /// Called when targets are open and engines set up. Returns the start time on the clock of [`clock_ns`]. The run
    /// starts at once if that has passed, and ends at once for `None`.
    fn ready(&self) -> Option<u64>;
    /// Called with the actual start of the run.
    fn began(&self, at_ns: u64);
}

/// When a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// As soon as it can.
    AtOnce,
    /// When the gate of this process opens, if it has one.
    Together,
}

/// A process measures for one session of hosts, and then exits.
static GATE: OnceLock<Box<dyn StartBarrier>> = OnceLock::new();

/// Makes every load of this process wait at `gate` from now on; returns false if there already is a gate. Passes that
/// only read the data of a load do not wait.
pub fn begin_together(gate: Box<dyn StartBarrier>) -> bool {
    // The clock that other hosts synchronize with must not change its rate with the first run.
    calibrate_tsc();
    GATE.set(gate).is_ok()
}

/// Time of measurements, in nanoseconds since a moment before this process began.
pub fn clock_ns() -> u64 {
    now_ns()
}

impl Start {
    /// Waits for the start of the run; returns false if it is not to start.
    pub(crate) fn wait(self, clock: &Clock) -> bool {
        let Some(gate) = self.gate() else { return true };
        let begins_ns = gate.ready();
        begins_ns.inspect(|&at_ns| clock.sleep_until(at_ns)).is_some()
    }

    /// Reports the actual start to the gate.
    pub(crate) fn report_start(self, began_ns: u64) {
        if let Some(gate) = self.gate() {
            gate.began(began_ns);
        }
    }

    fn gate(self) -> Option<&'static dyn StartBarrier> {
        match self {
            Start::AtOnce => None,
            Start::Together => GATE.get().map(|gate| &**gate),
        }
    }
}
