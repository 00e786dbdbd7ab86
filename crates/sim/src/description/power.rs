//! [`Power`] and [`SsdPower`]: power of disks and SSDs in each state, and their cooling.

use serde::{Deserialize, Serialize};

use crate::error::{InvalidDescription, require};

/// Power and cooling of a disk drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Power of the electronics while the spindle turns, in W.
    pub electronics_w: f64,
    /// Power to keep the spindle turning, in W.
    pub spindle_w: f64,
    /// Additional power while the arm moves, in W.
    pub seek_w: f64,
    /// Additional power while data pass under the heads, in W.
    pub transfer_w: f64,
    /// Total power with the spindle at rest, in W.
    pub standby_w: f64,
    /// Spin-down, with the energy of the whole drive.
    pub spin_down: SpinChange,
    /// Spin-up, with the energy of the whole drive.
    pub spin_up: SpinChange,
    /// Idle time after which the spindle stops, in ns; the next command waits for the spin-up. `None` for never.
    pub idle_timeout_ns: Option<u64>,
    /// Temperature of the air around the drive, in °C.
    pub ambient_celsius: f64,
    /// Temperature rise of the case above the air, in K/W.
    pub airflow_k_per_w: f64,
}

/// Spin-up or spin-down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpinChange {
    /// Energy used by the whole drive during the change, in J.
    pub joules: f64,
    /// Duration, in ns.
    pub ns: u64,
}

/// Power and cooling of an SSD.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdPower {
    /// Idle power, in W.
    pub idle_w: f64,
    /// Power with every die busy, in W; proportionally less with fewer busy dies.
    pub active_w: f64,
    /// Temperature of the air around the drive, in °C.
    pub ambient_celsius: f64,
    /// Temperature rise of the case above the air, in K/W.
    pub airflow_k_per_w: f64,
}

impl Power {
    /// Returns the power of an idle drive with a turning spindle, in W.
    pub fn idle_w(&self) -> f64 {
        self.electronics_w + self.spindle_w
    }

    /// Returns the steady temperature of a case that dissipates `mean_w` watts, in °C.
    pub fn case_celsius(&self, mean_w: f64) -> f64 {
        self.ambient_celsius + self.airflow_k_per_w * mean_w
    }

    /// Returns an error for an impossible value.
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
            require((0.0..1e6).contains(&amount), key, || format!("{amount} is out of range; must be 0 to 1,000,000"))?;
        }
        check_ambient(self.ambient_celsius)?;
        let times = [
            ("power.spin_down", self.spin_down.ns),
            ("power.spin_up", self.spin_up.ns),
            ("power.idle_timeout", self.idle_timeout_ns.unwrap_or(0)),
        ];
        times.iter().try_for_each(|&(key, ns)| require(ns <= YEAR_NS, key, || "must be 0 s to one year".to_owned()))
    }
}

impl SsdPower {
    /// Returns an error for an impossible value.
    pub(crate) fn check(&self) -> Result<(), InvalidDescription> {
        require((0.0..1e6).contains(&self.idle_w), "power.idle_w", || {
            format!("{} is out of range; must be 0 to 1,000,000", self.idle_w)
        })?;
        require((self.idle_w..1e6).contains(&self.active_w), "power.active_w", || {
            format!("{} is out of range; must be {} (idle_w) to 1,000,000", self.active_w, self.idle_w)
        })?;
        require((0.0..1e6).contains(&self.airflow_k_per_w), "power.airflow_k_per_w", || {
            format!("{} is out of range; must be 0 to 1,000,000", self.airflow_k_per_w)
        })?;
        check_ambient(self.ambient_celsius)
    }

    /// Returns the states of an equivalent disk that never turns, and that transfers data while the dies are busy.
    pub(crate) fn states(&self) -> Power {
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
        format!("{celsius} is out of range; must be -100 to 200")
    })
}
