//! [`Power`] and [`SsdPower`]: power of HDDs and SSDs in each of their states, and cooling.

use serde::{Deserialize, Serialize};

use crate::error::{InvalidDescription, require};

/// Power and cooling of an HDD.
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
    /// Total power with the spindle at rest.
    pub standby_w: f64,
    /// Total power while the spindle stops.
    pub spin_down: SpinChange,
    /// Total power while the spindle starts.
    pub spin_up: SpinChange,
    /// Idle time after which the spindle stops; the next command waits until it turns again. Never if absent.
    pub idle_timeout_ns: Option<u64>,
    /// Ambient temperature of the drive.
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

/// Power and cooling of an SSD.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdPower {
    /// Without work.
    pub idle_w: f64,
    /// With every die busy; in proportion with fewer.
    pub active_w: f64,
    /// Ambient temperature of the drive.
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

    /// Checks for impossible values.
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
    /// Checks for impossible values.
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

    /// Equivalent power of a drive that never turns, and transfers while its dies are busy.
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
