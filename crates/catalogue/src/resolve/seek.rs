//! Derives a seek curve from the figures of a data sheet and the curve shape of the drive's era.

mod accelerated;
mod measured;
mod sheet;

use std::sync::{Arc, Mutex, OnceLock};

use headstack_sim::drive::description::{Geometry, SeekCurve, Zone};
use headstack_sim::drive::mechanics::Distances;
use headstack_workload::InputError;
use headstack_workload::quantity::DurationNs;

use super::{Resolver, mechanics::Motion, ns};
use crate::constants::{ACCELERATED_SINCE, DESKTOP_SEEK, DESKTOP_SEEK_RATIO, QUIET_SEEKS_SINCE};
use accelerated::Accelerated;
use measured::{CLASSES, Class, Fit, Means};
use sheet::Sheet;

/// A seek curve that matches the figures of a sheet.
enum Curve {
    /// Shape of measured drives, used for all drives up to 2006 and for later drives of 10,000 rpm and more.
    Measured(Fit),
    /// Shape used for other drives since 2007.
    Accelerated(Accelerated),
}

impl Curve {
    fn new(sheet: &Sheet, strokes: &Strokes, rpm: f64, year: Option<u32>) -> Curve {
        let step = 1.0 / f64::from(strokes.last());
        let class = Class::of(rpm);
        match class {
            Class::Usual | Class::Slow if year.is_some_and(|year| year >= ACCELERATED_SINCE) => {
                Curve::Accelerated(Accelerated::new(sheet, step, |f| strokes.mean(f)))
            }
            Class::Fast | Class::Usual | Class::Slow => {
                Curve::Measured(Fit::new(class, sheet, step, strokes.means(class)))
            }
        }
    }

    /// Returns the seek time at a fraction of the stroke, in ns.
    fn at(&self, share: f64) -> f64 {
        match self {
            Curve::Measured(fit) => fit.at(share),
            Curve::Accelerated(curve) => curve.at(share),
        }
    }

    /// Returns fractions of the stroke between which linear interpolation is as precise as the curve.
    fn corners(&self, step: f64) -> Vec<f64> {
        match self {
            Curve::Measured(fit) => fit.corners(),
            Curve::Accelerated(_) => Accelerated::corners(step),
        }
    }

    /// Whether a drive can have this curve: every seek takes time, and none is longer than the longest of existing
    /// drives.
    fn is_possible(&self) -> bool {
        match self {
            Curve::Measured(fit) => fit.is_possible(),
            Curve::Accelerated(curve) => curve.is_possible(),
        }
    }

    /// Returns the size of the curve and its rule for users.
    fn describe(&self) -> (String, String) {
        match self {
            Curve::Measured(fit) => fit.describe(),
            Curve::Accelerated(curve) => curve.describe(),
        }
    }
}

impl Resolver<'_> {
    /// Returns the mean seek time of the drive: the one of its sheet, or the longer one of a quiet desktop drive. A stated
    /// rate or full stroke says how the drive really moves, and a sheet may state a longer time.
    fn mean_seek(&self, stated: DurationNs) -> DurationNs {
        let is_known = self.file.seek.read_full_stroke.is_some() || self.file.stated.random_read.is_some();
        let is_quiet = self.family().is_quiet() && self.file.year.is_some_and(|year| year >= QUIET_SEEKS_SINCE);
        let longest = DurationNs((stated.0 as f64 * DESKTOP_SEEK_RATIO).round() as i64);
        let quiet = stated.max(longest.min(DESKTOP_SEEK));
        if is_quiet && !is_known { quiet } else { stated }
    }

    /// Returns the stated curve, or the one derived from the sheet with the shape of the drive's era.
    pub(super) fn seek_curve(&mut self, motion: &Motion, geometry: &Geometry) -> Result<SeekCurve, InputError> {
        if let Some(curve) = &motion.curve {
            return Ok(curve.clone());
        }
        let Some(stated) = self.file.seek.read_average else {
            let why = "set the mean read seek time of the data sheet, or a curve: points, two_piece, three_parameter or constant";
            return self.missing("seek.read_average", why);
        };
        let average = self.mean_seek(stated);
        let sheet = Sheet {
            average: ns(average) as f64,
            single_cylinder: motion.single_cylinder_ns as f64,
            full_stroke: self.file.seek.read_full_stroke.map(|time| ns(time) as f64),
        };
        let strokes = Strokes::of(geometry);
        let last = strokes.last();
        let curve = Curve::new(&sheet, &strokes, motion.rpm, self.file.year);
        let mut distances: Vec<u32> = curve
            .corners(1.0 / f64::from(last))
            .into_iter()
            .map(|share| (share * f64::from(last)).round() as u32)
            .chain([1, last])
            .filter(|distance| (1..=last).contains(distance))
            .collect();
        distances.sort_unstable();
        distances.dedup();
        let times: Vec<f64> = distances.iter().map(|&d| curve.at(f64::from(d) / f64::from(last))).collect();
        if !curve.is_possible() || times.iter().any(|&time| time <= 0.0) {
            let message = "no usual curve has this average, single-cylinder and full-stroke time; check these values";
            return Err(self.document.error("seek.read_average", message));
        }
        let (size, mut rule) = curve.describe();
        if matches!(curve, Curve::Measured(_)) {
            rule += match Class::of(motion.rpm) {
                Class::Fast if self.file.year.is_some_and(|year| year >= ACCELERATED_SINCE) => {
                    "; also for drives of 10,000 rpm and more: fitted to the OLTP results of an array of 2016 (S0.97, S0.102)"
                }
                Class::Usual | Class::Slow => {
                    "; slower drives keep it until 2007: chosen to match the results of an ATA drive of 2001 \
                     (S0.59, S0.60, S0.61, S0.62, S0.63, S0.77, storagereview.ranking)"
                }
                Class::Fast => "",
            };
        }
        if average > stated {
            rule += QUIET_RULE;
        }
        self.record("seek.points", format!("{} points, {size}", distances.len()), &rule);
        Ok(SeekCurve::Points(distances.into_iter().zip(times.into_iter().map(|time| time.round() as u64)).collect()))
    }
}

/// Rule of the mean seek time of desktop drives.
const QUIET_RULE: &str = "; desktop drives since 2010 seek quietly and need 1.38 times the 8.5 ms of their sheets (two \
     measured: 1.25 and 1.53), unless a random_read or full stroke is stated";

/// Number of cached geometries; more than the kinds of drives in an array.
const CACHE_ENTRIES: usize = 16;

static STROKES_CACHE: Mutex<Vec<Arc<Strokes>>> = Mutex::new(Vec::new());

/// The zones of a geometry, which determine the distances.
#[derive(PartialEq)]
struct Zones {
    cylinders: u32,
    heads: u32,
    /// First and last cylinder, and sectors per track, of each zone.
    zones: Vec<(u32, u32, u32)>,
}

/// Distribution of the distances between random blocks of a geometry, and values that depend only on it. They take a
/// millisecond or two to compute and are needed repeatedly by the points of a sweep.
pub(super) struct Strokes {
    zones: Zones,
    last: u32,
    distances: Distances,
    means: [OnceLock<Means>; CLASSES],
}

impl Strokes {
    /// Returns the distances in a geometry, from a cache if possible.
    pub fn of(geometry: &Geometry) -> Arc<Strokes> {
        let zone = |zone: &Zone| (zone.first_cylinder, zone.last_cylinder, zone.sectors_per_track);
        let zones = Zones {
            cylinders: geometry.cylinders,
            heads: geometry.heads,
            zones: geometry.zones.iter().map(zone).collect(),
        };
        let strokes_cache = || STROKES_CACHE.lock().expect("no thread panics while it holds the lock");
        if let Some(strokes) = strokes_cache().iter().find(|strokes| strokes.zones == zones) {
            return Arc::clone(strokes);
        }
        let strokes = Arc::new(Strokes {
            distances: Distances::new(&sectors_by_cylinder(geometry)),
            last: geometry.cylinders.saturating_sub(1).max(1),
            means: Default::default(),
            zones,
        });
        let mut strokes_cache = strokes_cache();
        if strokes_cache.len() == CACHE_ENTRIES {
            strokes_cache.remove(0);
        }
        strokes_cache.push(Arc::clone(&strokes));
        strokes
    }

    /// Returns the maximum distance, in cylinders.
    fn last(&self) -> u32 {
        self.last
    }

    /// Returns the mean of `seek_ns`, a function of the distance in cylinders, over random pairs of blocks.
    pub fn mean_ns(&self, seek_ns: impl Fn(u32) -> u32) -> f64 {
        self.distances.mean_ns(self.last, seek_ns)
    }

    /// Returns the mean of a function of the fraction of the stroke over random pairs of blocks.
    fn mean(&self, f: &dyn Fn(f64) -> f64) -> f64 {
        let last = f64::from(self.last);
        self.mean_ns(|distance| (f(f64::from(distance) / last) * MEAN_SCALE).round() as u32) / MEAN_SCALE
    }

    /// Returns the means to which the shape of a class is fitted.
    fn means(&self, class: Class) -> &Means {
        self.means[class as usize]
            .get_or_init(|| Means::new(&class.shape(), 1.0 / f64::from(self.last), |f| self.mean(f)))
    }
}

/// Factor by which values are multiplied for [`Distances::mean_ns`], which accepts only integers.
const MEAN_SCALE: f64 = 1e7;

/// Returns the number of sectors of each cylinder; 0 for an unused cylinder.
fn sectors_by_cylinder(geometry: &Geometry) -> Vec<u64> {
    let mut sectors = vec![0; geometry.cylinders as usize];
    for zone in &geometry.zones {
        sectors[zone.first_cylinder as usize..=zone.last_cylinder as usize]
            .fill(u64::from(zone.sectors_per_track) * u64::from(geometry.heads));
    }
    sectors
}
