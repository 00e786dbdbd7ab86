//! Electricity and heat: what a device takes in each of its states, and what a run's counters make of it.
//!
//! A disk takes its electronics and its spindle all the time it turns, and more while the arm moves or data pass the
//! heads. Nothing is added up along the way: energy is the time in each state, which the counters hold, times its watts.

use headstack_result::Energy;
use serde::{Deserialize, Serialize};

use crate::drive::{Counters, InvalidDescription, require};

/// What a disk drive takes, and what cools it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Electronics of a drive that turns.
    pub electronics_w: f64,
    /// Keeping the spindle turning.
    pub spindle_w: f64,
    /// More while the arm moves.
    pub seek_w: f64,
    /// More while data pass the heads.
    pub transfer_w: f64,
    /// All of it with the spindle at rest.
    pub standby_w: f64,
    /// All of it while the spindle stops.
    pub spin_down: SpinChange,
    /// All of it while the spindle starts.
    pub spin_up: SpinChange,
    /// Time without work after which the spindle stops; the next command waits until it turns again. Never where absent.
    pub idle_timeout_ns: Option<u64>,
    /// Temperature of the air where the drive sits.
    pub ambient_celsius: f64,
    /// How much warmer than the air the case gets, a watt.
    pub airflow_k_per_w: f64,
}

/// The spindle stops or starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpinChange {
    /// Energy of the whole drive meanwhile.
    pub joules: f64,
    /// How long it takes.
    pub ns: u64,
}

/// What a solid-state drive takes, and what cools it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdPower {
    /// Without work.
    pub idle_w: f64,
    /// With every die busy; in proportion with fewer.
    pub active_w: f64,
    /// Temperature of the air where the drive sits.
    pub ambient_celsius: f64,
    /// How much warmer than the air the case gets, a watt.
    pub airflow_k_per_w: f64,
}

impl Power {
    /// Watts of a drive that turns without work.
    pub fn idle_w(&self) -> f64 {
        self.electronics_w + self.spindle_w
    }

    /// Steady temperature of a case that gives off `mean_w`.
    pub fn case_celsius(&self, mean_w: f64) -> f64 {
        self.ambient_celsius + self.airflow_k_per_w * mean_w
    }

    /// What is impossible in it.
    pub(crate) fn check(&self) -> Result<(), InvalidDescription> {
        const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;
        let amounts = [
            ("power.electronics_w", self.electronics_w),
            ("power.spindle_w", self.spindle_w),
            ("power.seek_w", self.seek_w),
            ("power.transfer_w", self.transfer_w),
            ("power.standby_w", self.standby_w),
            ("power.spin_down_j", self.spin_down.joules),
            ("power.spin_up_j", self.spin_up.joules),
            ("power.airflow_k_per_w", self.airflow_k_per_w),
        ];
        for (key, amount) in amounts {
            require((0.0..1e6).contains(&amount), key, || format!("{amount}; 0 to 1,000,000 are allowed"))?;
        }
        check_ambient(self.ambient_celsius)?;
        let times = [
            ("power.spin_down", self.spin_down.ns),
            ("power.spin_up", self.spin_up.ns),
            ("power.idle_timeout", self.idle_timeout_ns.unwrap_or(0)),
        ];
        times.iter().try_for_each(|&(key, ns)| require(ns <= YEAR_NS, key, || "0 s to a year are allowed".to_owned()))
    }
}

impl SsdPower {
    /// What is impossible in it.
    pub(crate) fn check(&self) -> Result<(), InvalidDescription> {
        require((0.0..1e6).contains(&self.idle_w), "power.idle_w", || {
            format!("{}; 0 or more is allowed", self.idle_w)
        })?;
        require((self.idle_w..1e6).contains(&self.active_w), "power.active_w", || {
            format!("{}; the idle power, {}, or more is allowed", self.active_w, self.idle_w)
        })?;
        require((0.0..1e6).contains(&self.airflow_k_per_w), "power.airflow_k_per_w", || {
            format!("{}; 0 or more is allowed", self.airflow_k_per_w)
        })?;
        check_ambient(self.ambient_celsius)
    }

    /// As a drive that never turns, and transfers while its dies are busy.
    fn states(&self) -> Power {
        Power {
            electronics_w: self.idle_w,
            spindle_w: 0.0,
            seek_w: 0.0,
            transfer_w: self.active_w - self.idle_w,
            standby_w: 0.0,
            spin_down: SpinChange::default(),
            spin_up: SpinChange::default(),
            idle_timeout_ns: None,
            ambient_celsius: self.ambient_celsius,
            airflow_k_per_w: self.airflow_k_per_w,
        }
    }
}

fn check_ambient(celsius: f64) -> Result<(), InvalidDescription> {
    require((-100.0..=200.0).contains(&celsius), "power.ambient_celsius", || {
        format!("{celsius}; -100 to 200 are allowed")
    })
}

/// How long a device has been in the states that change what it takes, up to a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    power: Power,
    seek_ns: u64,
    transfer_ns: u64,
    /// From the order to stop to the order to start, both booked with the latter.
    standby_ns: u64,
    spin_ups: u64,
    /// When the spindle stops, or has, without having started since.
    stops_ns: u64,
}

impl Meter {
    /// A disk drive's, whose spindle stops at `stops_ns` if no command comes before.
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

    /// A solid-state drive's, of whose dies each has been busy for `die_busy_ns` on average.
    pub fn ssd(power: &SsdPower, die_busy_ns: u64) -> Meter {
        let power = power.states();
        Meter { power, seek_ns: 0, transfer_ns: die_busy_ns, standby_ns: 0, spin_ups: 0, stops_ns: u64::MAX }
    }

    /// Time at rest and orders to stop up to `now_ns`.
    fn rested(&self, now_ns: u64) -> (u64, u64) {
        let rests_ns = now_ns.saturating_sub(self.stops_ns);
        (self.standby_ns + rests_ns, self.spin_ups + u64::from(rests_ns > 0))
    }

    /// What it took from `start_ns`, when it read `before`, to `end_ns`.
    fn energy_since(&self, before: &Meter, start_ns: u64, end_ns: u64) -> Energy {
        let (power, duration_ns) = (&self.power, end_ns - start_ns);
        let joules = |watts: f64, ns: u64| watts * (ns as f64 / 1e9);
        let seek_ns = self.seek_ns - before.seek_ns;
        // The work of a die is booked when it begins, and taken back when a read interrupts it.
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

/// What all devices took from `start_ns`, when they read `before`, to `end_ns`, when they read `after`; nothing where a device does
/// not tell, since a sum without it would mislead.
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
