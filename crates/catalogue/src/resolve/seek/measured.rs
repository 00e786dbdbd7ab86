//! [`Fit`]: the shapes of measured seek curves, for drives up to 2006.

use super::sheet::{MS_TO_NS, Sheet};
use crate::constants::interpolate;

/// Fraction of the stroke up to which a curve is adjusted to the sheet's single-cylinder time.
const SINGLE_CYLINDER_END: f64 = 0.01;

/// Fraction of the full stroke above which a measured seek curve is adjusted to the full-stroke seek time of the data
/// sheet.
const BEND_START: f64 = 2.0 / 3.0;

/// Measured seek times in ms by distance in cylinders, and the drive's last cylinder (sampled from the DiskSim 4.0
/// validation parameters of Carnegie Mellon University).
struct Measured {
    last_cylinder: f64,
    points_ms: &'static [(f64, f64)],
}

const CHEETAH_9LP: Measured = Measured {
    last_cylinder: 6961.0,
    points_ms: &[
        (1.0, 0.83),
        (2.0, 1.00),
        (5.0, 1.27),
        (10.0, 1.45),
        (20.0, 1.53),
        (50.0, 1.80),
        (100.0, 2.15),
        (200.0, 2.52),
        (500.0, 3.23),
        (1000.0, 4.12),
        (2000.0, 5.28),
        (3000.0, 6.35),
        (5000.0, 8.49),
        (6000.0, 9.70),
        (6961.0, 10.69),
    ],
};

const ATLAS_10K: Measured = Measured {
    last_cylinder: 10_041.0,
    points_ms: &[
        (1.0, 1.25),
        (2.0, 1.16),
        (5.0, 1.36),
        (10.0, 1.53),
        (20.0, 1.62),
        (50.0, 1.86),
        (100.0, 2.01),
        (200.0, 2.65),
        (500.0, 3.21),
        (1000.0, 3.82),
        (2000.0, 4.84),
        (3000.0, 5.64),
        (5000.0, 6.81),
        (6000.0, 7.53),
        (10_041.0, 11.17),
    ],
};

const BARRACUDA_4LP: Measured = Measured {
    last_cylinder: 5171.0,
    points_ms: &[
        (1.0, 1.94),
        (2.0, 1.96),
        (5.0, 2.18),
        (10.0, 2.35),
        (20.0, 2.55),
        (50.0, 3.77),
        (100.0, 4.16),
        (200.0, 5.31),
        (500.0, 6.14),
        (1000.0, 8.11),
        (2000.0, 10.09),
        (3000.0, 12.47),
        (5000.0, 16.72),
        (5171.0, 17.24),
    ],
};

const RZ26: Measured = Measured {
    last_cylinder: 2598.0,
    points_ms: &[
        (1.0, 1.01),
        (2.0, 1.90),
        (5.0, 2.66),
        (10.0, 2.88),
        (20.0, 3.36),
        (50.0, 4.27),
        (100.0, 5.49),
        (200.0, 6.91),
        (500.0, 8.96),
        (1000.0, 11.66),
        (2000.0, 16.19),
        (2598.0, 19.10),
    ],
};

/// Seek time in ms by fraction of the stroke: the mean of measured curves.
pub struct Shape {
    name: &'static str,
    measured: &'static [Measured],
}

/// Class of arms with the same curve shape: settling, then acceleration (square root of the distance), then coasting.
#[derive(Clone, Copy, Debug)]
pub enum Class {
    /// 9,000 rpm and more.
    Fast,
    /// 6,500 to 9,000 rpm.
    Usual,
    /// Less than 6,500 rpm.
    Slow,
}

/// Number of classes.
pub const CLASSES: usize = 3;

impl Class {
    /// Returns the class of a drive by its spindle speed.
    pub fn of(rpm: f64) -> Class {
        match rpm {
            9000.0.. => Class::Fast,
            6500.0.. => Class::Usual,
            _ => Class::Slow,
        }
    }

    /// Returns the curve shape of the class.
    pub fn shape(self) -> Shape {
        match self {
            Class::Fast => Shape { name: "Cheetah 9LP and Atlas 10K", measured: &[CHEETAH_9LP, ATLAS_10K] },
            Class::Usual => Shape { name: "Barracuda 4LP", measured: &[BARRACUDA_4LP] },
            Class::Slow => Shape { name: "RZ26", measured: &[RZ26] },
        }
    }
}

impl Shape {
    fn at(&self, share: f64) -> f64 {
        let sum: f64 =
            self.measured.iter().map(|curve| interpolate(curve.points_ms, share * curve.last_cylinder)).sum();
        sum / self.measured.len() as f64
    }

    /// Returns the corners of the curve as fractions of the stroke.
    fn corners(&self) -> impl Iterator<Item = f64> {
        self.measured.iter().flat_map(|curve| curve.points_ms.iter().map(|&(at, _)| at / curve.last_cylinder))
    }
}

/// The curve `factor * shape(x) + stretch * far(x)`, with x as the fraction of the stroke, adjusted near 0 to the
/// single-cylinder time.
///
/// On data sheets, the full-stroke seek time is often 2.2 to 2.5 times the average, but on measured curves only 1.85 to
/// 2.0. Stretching the whole curve would make short seeks much too short: the mean over half the capacity would be 0.60
/// to 0.65 of the full mean (as with Lee and Katz 1993), whereas measured curves have 0.72 to 0.77. Therefore only the
/// part above [`BEND_START`] is adjusted. Such seeks are rare, and a drive that uses half its capacity makes none.
pub struct Fit {
    shape: Shape,
    factor: f64,
    stretch: f64,
    single_cylinder: f64,
    /// Fraction of the stroke that is one cylinder.
    step: f64,
}

/// Returns 0 up to [`BEND_START`], then rises linearly to 1 at the full stroke.
fn far(share: f64) -> f64 {
    ((share - BEND_START) / (1.0 - BEND_START)).max(0.0)
}

/// Returns 1 at one cylinder, then falls linearly to 0 at [`SINGLE_CYLINDER_END`].
fn near(share: f64, step: f64) -> f64 {
    ((SINGLE_CYLINDER_END - share) / (SINGLE_CYLINDER_END - step).max(step)).clamp(0.0, 1.0)
}

/// Means of the parts of a curve over random pairs of blocks.
#[derive(Debug)]
pub struct Means {
    near: f64,
    shape: f64,
    far: f64,
}

impl Means {
    /// Computes the means of a shape. `mean` returns the mean of a function of the fraction of the stroke; `step` is
    /// the fraction of one cylinder.
    pub fn new(shape: &Shape, step: f64, mean: impl Fn(&dyn Fn(f64) -> f64) -> f64) -> Means {
        Means { near: mean(&|share| near(share, step)), shape: mean(&|share| shape.at(share)), far: mean(&far) }
    }
}

impl Fit {
    /// Creates the curve. Factor and stretch solve the equations "mean over random pairs of blocks = average" and "time
    /// at 1 = full stroke".
    pub fn new(class: Class, sheet: &Sheet, step: f64, means: &Means) -> Fit {
        let shape = class.shape();
        let mean_shape = means.shape - shape.at(step) * means.near;
        let wanted = sheet.average - sheet.single_cylinder * means.near;
        let (factor, stretch) = match sheet.full_stroke {
            None => (wanted / mean_shape, 0.0),
            Some(full) => {
                let factor = (wanted - full * means.far) / (mean_shape - shape.at(1.0) * means.far);
                (factor, full - factor * shape.at(1.0))
            }
        };
        Fit { shape, factor, stretch, single_cylinder: sheet.single_cylinder, step }
    }

    /// Returns the seek time at a fraction of the stroke, in ns.
    pub fn at(&self, share: f64) -> f64 {
        let pull = near(share, self.step) * (self.single_cylinder - self.factor * self.shape.at(self.step));
        self.factor * self.shape.at(share) + self.stretch * far(share) + pull
    }

    /// Returns the corners of the curve as fractions of the stroke.
    pub fn corners(&self) -> Vec<f64> {
        self.shape.corners().chain([SINGLE_CYLINDER_END, BEND_START]).collect()
    }

    /// Whether the curve rises with the distance.
    pub fn is_possible(&self) -> bool {
        self.factor > 0.0
    }

    /// Returns the curve's size and its rule.
    pub fn describe(&self) -> (String, String) {
        let rule = format!(
            "shape of the {} scaled to the sheet's average, single-cylinder and full-stroke times",
            self.shape.name
        );
        (format!("{:.3} times the shape", self.factor / MS_TO_NS), rule)
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
    fn measured_shapes_have_the_published_means() {
        // Means over uniform pairs of cylinders computed from the full curves: 5.47, 5.60, 9.32 and 10.5 ms.
        for (measured, expected) in [(CHEETAH_9LP, 5.47), (ATLAS_10K, 5.60), (BARRACUDA_4LP, 9.32), (RZ26, 10.5)] {
            let mean_ms = mean(&|share| interpolate(measured.points_ms, share * measured.last_cylinder));
            assert!((mean_ms / expected - 1.0).abs() < 0.02, "{mean_ms} against {expected}");
        }
    }

    #[test]
    fn fit_meets_all_three_figures() {
        for rpm in [15_000.0, 7200.0, 5400.0] {
            let class = Class::of(rpm);
            let shape = class.shape();
            for full_stroke in [None, Some(9.5e6), Some(11e6)] {
                let sheet = Sheet { average: 4.5e6, single_cylinder: 0.4e6, full_stroke };
                let fit = Fit::new(class, &sheet, 1e-4, &Means::new(&shape, 1e-4, mean));
                assert!((mean(&|share| fit.at(share)) / 4.5e6 - 1.0).abs() < 1e-9);
                assert!((fit.at(1e-4) / 0.4e6 - 1.0).abs() < 1e-9);
                assert!(full_stroke.is_none_or(|full| (fit.at(1.0) / full - 1.0).abs() < 1e-9));
                // Between the two ends, the curve has the measured shape.
                let (a, b) = (0.1, 0.4);
                assert!((fit.at(a) / fit.at(b) / (shape.at(a) / shape.at(b)) - 1.0).abs() < 1e-9);
            }
        }
    }
}
