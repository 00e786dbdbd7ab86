//! [`Accelerated`]: the shape of seek curves since 2007. The arm accelerates over half the distance and brakes over the
//! other half.

use super::sheet::{MS_TO_NS, Sheet};

/// The curve `start + root * (sqrt(x) - sqrt(step)) + linear * (x - step)`, with x as the fraction of the stroke.
///
/// The seek time of an arm that is driven with constant force is proportional to the square root of the distance.
/// Hitachi data sheets that state all three figures agree closely with this: an average of 11 or 12 ms and 1 ms to the
/// next track yield a full-stroke seek time of 19.8 or 21.6 ms, and the sheets state 20 ms (Travelstar 5K160, 5K320 and
/// 7K320). A longer full-stroke seek time on a sheet belongs to an arm that coasts at maximum speed in the middle of a
/// long seek, which adds a part proportional to the distance (Seagate drives of 2009 and 2010: 2.1 to 2.3 times the
/// average).
pub struct Accelerated {
    /// Time to the next cylinder in ns, which is settling.
    start: f64,
    root: f64,
    linear: f64,
    /// Fraction of the stroke that is one cylinder.
    step: f64,
}

/// Number of points per decade of distances; linear interpolation between them is within 0.2 % of a square root.
const POINTS_PER_DECADE: i32 = 8;

impl Accelerated {
    /// Creates the curve that matches the sheet. `mean` returns the mean of a function of the fraction of the stroke
    /// over random pairs of blocks; `step` is the fraction of one cylinder.
    pub fn new(sheet: &Sheet, step: f64, mean: impl Fn(&dyn Fn(f64) -> f64) -> f64) -> Accelerated {
        // There is no seek if both blocks are on the same cylinder.
        let moves = mean(&|share| f64::from(u8::from(share > 0.0)));
        let mean_root = mean(&|share| (share.sqrt() - step.sqrt()).max(0.0));
        let mean_linear = mean(&|share| (share - step).max(0.0));
        let average = sheet.average - sheet.single_cylinder * moves;
        let (root, linear) = match sheet.full_stroke {
            None => (average / mean_root, 0.0),
            Some(full_stroke) => {
                let (full, full_root, full_linear) =
                    (full_stroke - sheet.single_cylinder, 1.0 - step.sqrt(), 1.0 - step);
                let determinant = mean_root * full_linear - mean_linear * full_root;
                (
                    (average * full_linear - mean_linear * full) / determinant,
                    (mean_root * full - average * full_root) / determinant,
                )
            }
        };
        Accelerated { start: sheet.single_cylinder, root, linear, step }
    }

    /// Returns the seek time at a fraction of the stroke, in ns.
    pub fn at(&self, share: f64) -> f64 {
        self.start + self.root * (share.sqrt() - self.step.sqrt()) + self.linear * (share - self.step)
    }

    /// Returns the points of the curve as fractions of the stroke, from one cylinder to the full stroke.
    pub fn corners(step: f64) -> Vec<f64> {
        let decades = -libm::log10(step);
        let count = (decades * f64::from(POINTS_PER_DECADE)).ceil() as i32;
        (0..=count).map(|at| libm::pow(10.0, -f64::from(at) / f64::from(POINTS_PER_DECADE))).collect()
    }

    /// Whether the seek time never decreases with the distance.
    pub fn is_possible(&self) -> bool {
        self.root > 0.0 && self.root / 2.0 + self.linear >= 0.0
    }

    /// Returns the curve's parameters and its rule.
    pub fn describe(&self) -> (String, String) {
        let size = format!(
            "{:.3} ms + {:.3} ms sqrt(x) + {:.3} ms x",
            self.start / MS_TO_NS,
            self.root / MS_TO_NS,
            self.linear / MS_TO_NS
        );
        (
            size,
            "constant acceleration since 2007, with the sheet's average, single-cylinder and full-stroke times"
                .to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mean over pairs on a stroke without zones, where the density of the distance is 2 (1 - x).
    fn mean(f: &dyn Fn(f64) -> f64) -> f64 {
        let n = 20_000;
        (0..n).map(|i| (f64::from(i) + 0.5) / f64::from(n)).map(|x| f(x) * 2.0 * (1.0 - x) / f64::from(n)).sum()
    }

    #[test]
    fn the_figures_of_the_sheet_are_met() {
        for full_stroke in [None, Some(14.0e6), Some(17.06e6)] {
            let sheet = Sheet { average: 7.5e6, single_cylinder: 0.23e6, full_stroke };
            let curve = Accelerated::new(&sheet, 1e-5, mean);
            assert!((mean(&|share| curve.at(share)) / 7.5e6 - 1.0).abs() < 1e-6);
            assert!((curve.at(1e-5) / 0.23e6 - 1.0).abs() < 1e-9);
            assert!(full_stroke.is_none_or(|full| (curve.at(1.0) / full - 1.0).abs() < 1e-9));
            assert!(curve.is_possible());
        }
    }

    /// The mean of the square root over random pairs is 8 / 15.
    #[test]
    fn without_a_full_stroke_the_arm_accelerates_all_the_way() {
        let sheet = Sheet { average: 8.2e6, single_cylinder: 0.8e6, full_stroke: None };
        let full_ms = Accelerated::new(&sheet, 1e-5, mean).at(1.0) / 1e6;
        assert!((full_ms - (0.8 + 7.4 * 15.0 / 8.0)).abs() < 0.05, "{full_ms}");
    }

    #[test]
    fn no_arm_takes_less_time_for_a_longer_way() {
        let sheet = Sheet { average: 8.0e6, single_cylinder: 0.2e6, full_stroke: Some(9e6) };
        assert!(!Accelerated::new(&sheet, 1e-5, mean).is_possible());
    }
}
