//! Derives the power of a drive from the idle and active power in its sheet, or from its disks if the sheet states
//! none.

use headstack_sim::drive::description::{DriveDescription, Power, SpinChange};
use headstack_sim::drive::mechanics::seek_ns;
use headstack_workload::InputError;
use headstack_workload::quantity::DurationNs;

use super::{Resolver, ns, seek::Strokes};
use crate::constants::{
    ACTIVE_OVER_IDLE_W, AIRFLOW_K_PER_W, AMBIENT_CELSIUS, ELECTRONICS_W, HELIUM_DRAG, HELIUM_PLATTERS, HELIUM_SINCE,
    POWER_ANCHOR, Spindle,
};
use crate::file::PowerTable;

/// Returns the power that keeps a stack of disks spinning in air, in W.
///
/// The air drag is proportional to rpm^2.8, diameter^4.6 and the number of disks (Gurumurthi, Sivasubramaniam, Kandemir
/// and Franke 2003, from turbulent friction on a disk). The scale is from the Ultrastar 36Z15, the only drive whose
/// spindle power is known: it consumes 10.2 W idle and 2.5 W with its spindle stopped, so six disks of 70 mm at 15,000
/// rpm need 7.7 W.
pub fn spindle_w(spindle: &Spindle) -> f64 {
    let anchor = &POWER_ANCHOR;
    (anchor.idle_w - anchor.standby_w)
        * libm::pow(spindle.rpm / anchor.spindle.rpm, 2.8)
        * libm::pow(spindle.media_diameter_mm / anchor.spindle.media_diameter_mm, 4.6)
        * (spindle.platters / anchor.spindle.platters)
}

const AS_ANCHOR: &str = "proportional to idle power, as in the Ultrastar 36Z15";

/// Returns the usual diameter of a disk in mm by speed: 95 mm (called 3.5 inch) up to 7,200 rpm, 84 mm (3 inch) at
/// 10,000 rpm, and 65 mm (2.5 inch) at 15,000 rpm, where arms and motors cannot handle larger disks. General knowledge,
/// high confidence for 3.5-inch drives; files of 2.5-inch and other drives state the diameter.
fn usual_diameter_mm(rpm: f64) -> f64 {
    match rpm {
        12_500.0.. => 65.0,
        8_500.0.. => 84.0,
        _ => 95.0,
    }
}

impl Resolver<'_> {
    /// Returns the power of the drive; `None` for a file that states neither power nor a year, such as an imported one.
    ///
    /// - The spindle consumes [`spindle_w`], less in helium, but never more than idle minus standby power. The
    ///   electronics consume the rest of the idle power.
    /// - Standby power and the energies of spin-down and spin-up have the same ratio to idle power as in the 36Z15.
    /// - The arm adds active minus idle power to the mean power of random reads, one at a time. It moves during the
    ///   seek's fraction of seek and half a turn, so its power is 4 to 8 W (A IBM Ultrastar XP, manualshive 4140650:
    ///   43 mJ per seek on 12 V, about 5 W). Sheets measure seeking this way (A Seagate Barracuda 7200.7 manual,
    ///   manualsdump 136838, and Barracuda XT manual, manualsbrain 1183661). Where sheets state seeking and operation
    ///   separately, the two agree within 4 % (7200.7: 12.5 and 12.0 W; A IBM Deskstar 75GXP, PC Guide: 11.4 and
    ///   11.5 W).
    /// - Continuous transfers also add active minus idle power. Operation is 40 % seeking, 40 % reading and writing, and
    ///   20 % idle (the same manuals), so the 7200.7 consumes 6 W more than idle for transfers and 5 W for seeks.
    pub(super) fn power(&mut self, drive: &DriveDescription) -> Result<Option<Power>, InputError> {
        let table = self.file.power.clone();
        if table == PowerTable::default() && self.file.year.is_none() {
            return Ok(None);
        }
        let (electronics_w, spindle_w) = self.idle_power(&table, drive)?;
        let idle_w = electronics_w + spindle_w;
        let to_anchor = idle_w / POWER_ANCHOR.idle_w;
        let active_over_idle_w = table.active_w.map_or(ACTIVE_OVER_IDLE_W, |active_w| (active_w - idle_w).max(0.0));
        let stated = if table.active_w.is_some() { "active minus idle" } else { "usual active minus idle" };
        let seek_w = self.given_or(
            table.seek_w,
            "power.seek_w",
            &format!("{stated} divided by the fraction of random reads in which the arm moves"),
            |resolver| Ok(round(active_over_idle_w / arm_share(drive, resolver.file.seek.read_average).unwrap_or(1.0))),
        )?;
        let transfer_w =
            self.given_or(table.transfer_w, "power.transfer_w", stated, |_| Ok(round(active_over_idle_w)))?;
        let standby_w = self.given_or(table.standby_w, "power.standby_w", AS_ANCHOR, |_| {
            Ok(round(to_anchor * POWER_ANCHOR.standby_w))
        })?;
        let (spin_down, spin_up) = self.spin_changes(&table, to_anchor)?;
        let ambient_celsius =
            self.given_or(table.ambient_celsius, "power.ambient_celsius", "a cool room", |_| Ok(AMBIENT_CELSIUS))?;
        let airflow_k_per_w = self.given_or(
            table.airflow_k_per_w,
            "power.airflow_k_per_w",
            "from the difference between two drives of 2001 (S0.79)",
            |_| Ok(AIRFLOW_K_PER_W),
        )?;
        Ok(Some(Power {
            electronics_w,
            spindle_w,
            seek_w,
            transfer_w,
            standby_w,
            spin_down,
            spin_up,
            idle_timeout_ns: table.idle_timeout.map(ns),
            ambient_celsius,
            airflow_k_per_w,
        }))
    }

    /// Returns the spin-down and the spin-up.
    fn spin_changes(&mut self, table: &PowerTable, to_anchor: f64) -> Result<(SpinChange, SpinChange), InputError> {
        let anchor = &POWER_ANCHOR;
        let mut energy = |stated_value: Option<f64>, key: &str, joules: f64| {
            self.given_or(stated_value, key, AS_ANCHOR, |_| Ok(round(to_anchor * joules)))
        };
        let down_joules = energy(table.spin_down_j, "power.spin_down_j", anchor.spin_down_j)?;
        let up_joules = energy(table.spin_up_j, "power.spin_up_j", anchor.spin_up_j)?;
        let mut time = |stated_value: Option<DurationNs>, key: &str, usual: DurationNs| {
            self.given_or(stated_value, key, "same as the Ultrastar 36Z15", |_| Ok(usual)).map(ns)
        };
        let down_ns = time(table.spin_down, "power.spin_down", anchor.spin_down)?;
        let up_ns = time(table.spin_up, "power.spin_up", anchor.spin_up)?;
        Ok((SpinChange { joules: down_joules, ns: down_ns }, SpinChange { joules: up_joules, ns: up_ns }))
    }

    /// Returns the power of the electronics and of the spindle, in W.
    fn idle_power(&mut self, table: &PowerTable, drive: &DriveDescription) -> Result<(f64, f64), InputError> {
        let spindle_w = match table.spindle_w {
            Some(stated) => stated,
            None => {
                let by_disks = self.spindle_by_disks(drive)?;
                let standby_w =
                    |idle_w: f64| table.standby_w.unwrap_or(idle_w * POWER_ANCHOR.standby_w / POWER_ANCHOR.idle_w);
                let most = table.idle_w.map_or(f64::INFINITY, |idle_w| (idle_w - standby_w(idle_w)).max(0.0));
                let spindle_w = round(by_disks.min(most));
                self.record("power.spindle_w", spindle_w, "rpm^2.8 diameter^4.6 platters, as the Ultrastar 36Z15")
            }
        };
        let (rule, rest_w) = match table.idle_w {
            Some(idle_w) => ("idle minus spindle", (idle_w - spindle_w).max(0.0)),
            None => ("usual", ELECTRONICS_W),
        };
        let electronics_w = self.given_or(table.electronics_w, "power.electronics_w", rule, |_| Ok(round(rest_w)))?;
        Ok((electronics_w, spindle_w))
    }

    fn spindle_by_disks(&mut self, drive: &DriveDescription) -> Result<f64, InputError> {
        let rpm = drive.mechanics.rpm;
        let media_diameter_mm = self.given_or(
            self.file.geometry.media_diameter_mm,
            "geometry.media_diameter_mm",
            "usual at this speed",
            |_| Ok(usual_diameter_mm(rpm)),
        )?;
        let platters = self.file.geometry.platters.unwrap_or(drive.geometry.heads.div_ceil(2));
        let in_air = spindle_w(&Spindle { rpm, media_diameter_mm, platters: f64::from(platters) });
        let helium = platters >= HELIUM_PLATTERS && self.file.year.is_some_and(|year| year >= HELIUM_SINCE);
        Ok(if helium { in_air * HELIUM_DRAG } else { in_air })
    }
}

/// Returns the fraction of time in which the arm moves during random reads, one at a time, with half a turn after each
/// seek; `None` if it never moves.
fn arm_share(drive: &DriveDescription, sheet_average: Option<DurationNs>) -> Option<f64> {
    let mean_ns = sheet_average.map_or_else(|| mean_by_curve_ns(drive), |average| ns(average) as f64);
    (mean_ns > 0.0).then(|| mean_ns / (mean_ns + 0.5 * 60e9 / drive.mechanics.rpm))
}

fn mean_by_curve_ns(drive: &DriveDescription) -> f64 {
    let (curve, cylinders) = (&drive.mechanics.seek, drive.geometry.cylinders);
    Strokes::of(&drive.geometry).mean_ns(|distance| seek_ns(curve, distance, cylinders))
}

/// Rounds to milliwatts, because derived values are not more precise.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
