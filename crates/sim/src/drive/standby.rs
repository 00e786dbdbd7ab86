//! Standby of a [`Drive`]: the spindle stops when the drive is idle, and the next command waits until it turns again.

use super::Drive;

impl Drive {
    /// Returns when the spindle stops if no command arrives before; `u64::MAX` for never.
    pub(crate) fn stops_ns(&self) -> u64 {
        let timeout_ns = self.params.description.power.and_then(|power| power.idle_timeout_ns);
        match timeout_ns {
            Some(timeout_ns) if self.is_idle() => self.arm_free_ns.max(self.firmware_free_ns) + timeout_ns,
            _ => u64::MAX,
        }
    }

    /// Returns when the spindle turns for a command that arrives at `now_ns`. Time at rest is counted here, by the
    /// command that ends it.
    #[cold]
    pub(super) fn wake(&mut self, now_ns: u64) -> u64 {
        if now_ns < self.ready_ns {
            return self.ready_ns;
        }
        let stops_ns = self.stops_ns();
        let Some(power) = self.params.description.power.filter(|_| stops_ns < now_ns) else {
            return now_ns;
        };
        // A stopping spindle stops completely before it starts again.
        let starts_ns = now_ns.max(stops_ns + power.spin_down.ns);
        self.counters.standby_ns += starts_ns - stops_ns;
        self.counters.spin_ups += 1;
        starts_ns + power.spin_up.ns
    }
}
