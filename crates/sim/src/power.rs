//! [`Meter`]: power and energy of a device, computed from a run's counters.
//!
//! While its spindle turns, a disk consumes power for electronics and spindle, and more while the arm moves or data are
//! transferred. No energy is summed up during a run: it is the time in each state, known from the counters, times the
//! power in this state.

use headstack_result::Energy;

use crate::description::power::{Power, SsdPower};
use crate::drive::Counters;

/// Time that a device has spent, up to a moment, in each state that affects its power.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    power: Power,
    seek_ns: u64,
    transfer_ns: u64,
    /// Time from each stop of the spindle to the next start, in ns.
    standby_ns: u64,
    spin_ups: u64,
    /// Time at which the spindle stops, or stopped if it has not started since.
    stops_ns: u64,
}

impl Meter {
    /// Returns the meter of a disk whose spindle stops at `stops_ns` if no command arrives before then.
    pub fn disk(power: &Power, counters: &Counters, stops_ns: u64) -> Meter {
        Meter {
            power: *power,
            seek_ns: counters.seek_ns,
            transfer_ns: counters.transfer_ns + counters.read_ahead_ns,
            standby_ns: counters.standby_ns,
            spin_ups: counters.spin_ups,
            stops_ns,
        }
    }

    /// Returns the meter of an SSD whose dies were busy for `die_busy_ns` on average.
    pub fn ssd(power: &SsdPower, die_busy_ns: u64) -> Meter {
        let power = power.states();
        Meter { power, seek_ns: 0, transfer_ns: die_busy_ns, standby_ns: 0, spin_ups: 0, stops_ns: u64::MAX }
    }

    /// Returns the time at rest and the number of stops up to `now_ns`.
    fn rested(&self, now_ns: u64) -> (u64, u64) {
        let rests_ns = now_ns.saturating_sub(self.stops_ns);
        (self.standby_ns + rests_ns, self.spin_ups + u64::from(rests_ns > 0))
    }

    /// Returns the energy used from `start_ns`, when the meter read `before`, to `end_ns`.
    fn energy_since(&self, before: &Meter, start_ns: u64, end_ns: u64) -> Energy {
        let (power, duration_ns) = (&self.power, end_ns - start_ns);
        let joules = |watts: f64, ns: u64| watts * (ns as f64 / 1e9);
        let seek_ns = self.seek_ns - before.seek_ns;
        // A die's work is counted when it starts and subtracted if a read suspends it.
        let transfer_ns = self.transfer_ns.saturating_sub(before.transfer_ns);
        let ((rested_ns, stops), (rested_before_ns, stops_before)) = (self.rested(end_ns), before.rested(start_ns));
        let (standby_ns, stops) = (rested_ns - rested_before_ns, stops - stops_before);
        let starts = self.spin_ups - before.spin_ups;
        let at_rest_ns = standby_ns.saturating_sub(stops * power.spin_down.ns);
        let turning_ns = duration_ns.saturating_sub(standby_ns + starts * power.spin_up.ns);
        let spindle_joules = joules(power.spindle_w, turning_ns)
            + stops as f64 * power.spin_down.joules
            + starts as f64 * power.spin_up.joules;
        let seek_joules = joules(power.seek_w, seek_ns);
        let electronics_joules = joules(power.electronics_w, turning_ns)
            + joules(power.transfer_w, transfer_ns)
            + joules(power.standby_w, at_rest_ns);
        let joules = spindle_joules + seek_joules + electronics_joules;
        let mean_w = if duration_ns == 0 { 0.0 } else { joules / (duration_ns as f64 / 1e9) };
        let case_celsius = Some(power.case_celsius(mean_w));
        Energy { joules, spindle_joules, seek_joules, electronics_joules, case_celsius }
    }
}

/// Returns the energy used by all devices from `start_ns` (meters `before`) to `end_ns` (meters `after`). Returns
/// `None` if the energy of any device is unknown, because a sum without that device would mislead.
pub(crate) fn energy(before: &[Option<Meter>], after: &[Option<Meter>], start_ns: u64, end_ns: u64) -> Option<Energy> {
    let mut total: Option<Energy> = None;
    for (before, after) in before.iter().zip(after) {
        let own = after.as_ref()?.energy_since(before.as_ref()?, start_ns, end_ns);
        let sum = total.get_or_insert_default();
        sum.spindle_joules += own.spindle_joules;
        sum.seek_joules += own.seek_joules;
        sum.electronics_joules += own.electronics_joules;
        sum.case_celsius = Some(sum.case_celsius.unwrap_or(f64::MIN).max(own.case_celsius?));
    }
    let sum = total.as_mut()?;
    sum.joules = sum.spindle_joules + sum.seek_joules + sum.electronics_joules;
    total
}
