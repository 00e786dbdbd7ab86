//! [`Power`] and [`SsdPower`]: power of disks and SSDs in each of their states, and their cooling.

use serde::{Deserialize, Serialize};

use crate::error::{InvalidDescription, require};

/// Power and cooling of a disk drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Power of the electronics while the spindle turns, in W.
    pub electronics_w: f64,
    /// Power that keeps the spindle turning, in W.
    pub spindle_w: f64,
    /// Additional power while the arm moves, in W.
    pub seek_w: f64,
    /// Additional power while data pass the heads, in W.
    pub transfer_w: f64,
    /// Total power with the spindle at rest, in W.
    pub standby_w: f64,
    /// Spin-down of the spindle, with the total energy.
    pub spin_down: SpinChange,
    /// Spin-up of the spindle, with the total energy.
    pub spin_up: SpinChange,
    /// Time without work after which the spindle stops; the next command waits until it turns again. `None` for never.
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
    /// Energy of the whole drive during it.
    pub joules: f64,
    /// Duration.
    pub ns: u64,
}

/// Power and cooling of an SSD.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdPower {
    /// Power without work, in W.
    pub idle_w: f64,
    /// Power with every die busy, in W; proportionally less with fewer.
    pub active_w: f64,
    /// Temperature of the air around the drive, in °C.
    pub ambient_celsius: f64,
    /// Temperature rise of the case above the air, in K/W.
    pub airflow_k_per_w: f64,
}

impl Power {
    /// Returns the power of an idle drive whose spindle turns, in W.
    pub fn idle_w(&self) -> f64 {
        self.electronics_w + self.spindle_w
    }

    /// Returns the steady temperature of a case that dissipates `mean_w`.
    pub fn case_celsius(&self, mean_w: f64) -> f64 {
        self.ambient_celsius + self.airflow_k_per_w * mean_w
    }

    /// Rejects impossible values.
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
    /// Rejects impossible values.
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

    /// Returns the states of an equivalent drive that never turns, and transfers while its dies are busy.
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
        format!("{celsius}; -100 to 200 are allowed")
    })
}
