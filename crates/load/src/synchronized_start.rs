//! [`StartBarrier`]: a common start of runs in several processes, on hosts that load one system.

use std::sync::OnceLock;

use crate::clock::{Clock, calibrate_tsc, now_ns};

/// A barrier at which a run waits for its start.
pub trait StartBarrier: Send + Sync {
    /// Waits until the run may start. It is called when targets are open and engines are set up. Returns the start time
    /// on the clock of [`clock_ns`]: the run starts at once if this time has passed, and ends at once for `None`.
    fn ready(&self) -> Option<u64>;
    /// Receives the actual start time of the run.
    fn began(&self, at_ns: u64);
}

/// How a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The run starts as soon as it is ready.
    AtOnce,
    /// The run starts when the barrier of this process opens, if there is one.
    Together,
}

/// The barrier of this process, which measures for one session of hosts and then exits.
static GATE: OnceLock<Box<dyn StartBarrier>> = OnceLock::new();

/// Makes every load of this process wait at `gate` from now on. Returns false if there already is a barrier. Passes
/// that only read the data of a load do not wait.
pub fn begin_together(gate: Box<dyn StartBarrier>) -> bool {
    // Other hosts synchronize with this clock, so its rate must not change with the first run.
    calibrate_tsc();
    GATE.set(gate).is_ok()
}

/// Returns the time of measurements, in ns since some moment before this process began.
pub fn clock_ns() -> u64 {
    now_ns()
}

impl Start {
    /// Waits for the start of the run. Returns false if the run must not start.
    pub(crate) fn wait(self, clock: &Clock) -> bool {
        let Some(gate) = self.gate() else { return true };
        let begins_ns = gate.ready();
        begins_ns.inspect(|&at_ns| clock.sleep_until(at_ns)).is_some()
    }

    /// Reports the actual start time to the barrier.
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
