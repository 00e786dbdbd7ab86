//! [`Spindle`] and [`Arm`]: angles over time, seek time over distance.

use std::sync::atomic::{AtomicU32, Ordering};

use super::geometry::Angle;
use crate::description::drive::{Mechanics, SeekCurve};

/// Deviation of a spindle from its description: no two drives of a kind turn alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpindleVariation {
    /// Angle at time 0, in 2^-64 turns.
    pub phase: u64,
    /// Speed as a multiple of the stated speed.
    pub speed: f64,
}

/// A spindle that turns forever at one speed.
#[derive(Clone, Copy, Debug)]
pub struct Spindle {
    /// Speed in 2^-64 turns per nanosecond: the angle at time t is `phase + t * turns_per_ns` modulo 2^64, without
    /// drift.
    turns_per_ns: u64,
    /// Angle at time 0, in 2^-64 turns.
    phase: u64,
    /// Time of 2^-32 turns, in 2^-36 ns.
    ns_per_angle: u64,
}

impl Spindle {
    /// Creates a spindle with a speed of `rpm`, 300 or more. Its angle at time 0 is 0.
    pub fn new(rpm: f64) -> Self {
        let turn_ns = 60e9 / rpm;
        Spindle {
            turns_per_ns: (18_446_744_073_709_551_616.0 / turn_ns).round() as u64,
            phase: 0,
            ns_per_angle: (turn_ns * 16.0).round() as u64,
        }
    }

    /// Creates a spindle of a drive whose description states `rpm`.
    pub fn varied(rpm: f64, variation: SpindleVariation) -> Self {
        Spindle { phase: variation.phase, ..Spindle::new(rpm * variation.speed) }
    }

    /// Returns the angle under the heads at a time.
    #[inline]
    pub fn angle_at(&self, time_ns: u64) -> Angle {
        (time_ns.wrapping_mul(self.turns_per_ns).wrapping_add(self.phase) >> 32) as u32
    }

    /// Returns the time to turn by `angle` (2^32 = a whole turn), rounded up.
    #[inline]
    pub fn turn_ns(&self, angle: u64) -> u64 {
        // At most 2^32 (a whole turn) times 2^31.6 (200 ms, 300 rpm): the product fits.
        (angle * self.ns_per_angle + ((1 << 36) - 1)) >> 36
    }

    /// Returns the time from `now_ns` until `angle` is under the heads; 0 if it passed within the last [`Self::SLACK`].
    #[inline]
    pub fn wait_ns(&self, now_ns: u64, angle: Angle) -> u64 {
        let ahead = angle.wrapping_sub(self.angle_at(now_ns)).wrapping_add(Self::SLACK).saturating_sub(Self::SLACK);
        self.turn_ns(u64::from(ahead))
    }

    /// Returns when `angle` is under the heads, at or after `now_ns`. An angle that passed within the last
    /// [`Self::SLACK`] was met then, a few nanoseconds ago: the rounding of one sector's end never adds to the next
    /// one's.
    #[inline]
    pub fn meet_ns(&self, now_ns: u64, angle: Angle) -> u64 {
        let passed = self.angle_at(now_ns).wrapping_sub(angle);
        if passed < Self::SLACK {
            now_ns - ((u64::from(passed) * self.ns_per_angle) >> 36)
        } else {
            now_ns + self.turn_ns(u64::from(passed.wrapping_neg()))
        }
    }

    /// Tolerance for rounding: times are rounded up to whole nanoseconds, so a sector that follows without a gap may
    /// seem to have passed by a few of them: 2^-20 turns, 6 ns at 10,000 rpm, where the gap between two sectors is
    /// hundreds.
    pub const SLACK: Angle = 1 << 12;

    /// Returns the time of one turn.
    #[inline]
    pub fn revolution_ns(&self) -> u64 {
        self.turn_ns(1 << 32)
    }

    /// Returns the whole sectors of `sector_span` that pass in `elapsed_ns`.
    #[inline]
    pub fn sectors_in(&self, elapsed_ns: u64, sector_span: u32) -> u64 {
        // 2^-32 turns in 64 bits are enough for a year at 15,000 rpm.
        let turned = ((u128::from(elapsed_ns) * u128::from(self.turns_per_ns)) >> 32) as u64;
        turned / u64::from(sector_span.max(1))
    }
}

/// Mark of a seek time that is not computed yet; no seek takes as long: [`whole_ns`].
const UNKNOWN: u32 = u32::MAX;

/// Positioning times as a function of distance.
#[derive(Debug)]
pub struct Arm {
    curve: SeekCurve,
    /// Seek time of each distance, [`UNKNOWN`] until it is first needed: a short run needs few of half a million, and a
    /// long one soon finds all of them here. Concurrent writers would write the same value.
    seek_ns: Box<[AtomicU32]>,
    head_switch_ns: u32,
    read_settle_ns: i32,
    write_settle_ns: i32,
}

impl Arm {
    /// Creates the arm of a drive with `cylinders`.
    pub fn new(mechanics: &Mechanics, cylinders: u32) -> Self {
        Arm {
            curve: mechanics.seek.clone(),
            seek_ns: (0..cylinders.max(1)).map(|_| AtomicU32::new(UNKNOWN)).collect(),
            head_switch_ns: u32::try_from(mechanics.head_switch_ns).unwrap_or(u32::MAX),
            read_settle_ns: mechanics.read_settle_ns as i32,
            write_settle_ns: mechanics.write_settle_ns as i32,
        }
    }

    /// Returns the time to move over `distance` cylinders and, with `head_change`, to another surface, settling
    /// included: the longer of seek and head switch, plus the settling of the kind of access if anything moved.
    #[inline]
    pub fn position_ns(&self, distance: u32, head_change: bool, write: bool) -> u64 {
        let seek = self.seek_ns(distance);
        let moved = if head_change { seek.max(self.head_switch_ns) } else { seek };
        if moved == 0 {
            return 0;
        }
        let settle = if write { self.write_settle_ns } else { self.read_settle_ns };
        (i64::from(moved) + i64::from(settle)).max(0) as u64
    }

    /// Returns the time to move over `distance` cylinders, without settling.
    #[inline]
    pub fn seek_ns(&self, distance: u32) -> u32 {
        let cached_ns = self.seek_ns[distance as usize].load(Ordering::Relaxed);
        if cached_ns == UNKNOWN { self.first_seek_ns(distance) } else { cached_ns }
    }

    #[cold]
    fn first_seek_ns(&self, distance: u32) -> u32 {
        let cylinders = self.seek_ns.len() as u32;
        let seek = seek_ns(&self.curve, distance, cylinders);
        self.seek_ns[distance as usize].store(seek, Ordering::Relaxed);
        seek
    }
}

/// Returns the seek time over `distance` cylinders of a drive with `cylinders`, without the access kind's own settling.
pub fn seek_ns(curve: &SeekCurve, distance: u32, cylinders: u32) -> u32 {
    if distance == 0 {
        return 0;
    }
    let ns = match curve {
        SeekCurve::Constant(ns) => *ns as f64,
        SeekCurve::Points(points) => interpolate(points, distance),
        SeekCurve::TwoPiece {
            boundary_cylinders,
            short_ns,
            short_ns_per_sqrt,
            long_ns,
            long_ns_per_cylinder,
            first_ns,
        } => {
            let d = f64::from(distance);
            if let Some(&ns) = first_ns.get(distance as usize - 1) {
                ns as f64
            } else if distance < *boundary_cylinders {
                short_ns + short_ns_per_sqrt * d.sqrt()
            } else {
                long_ns + long_ns_per_cylinder * d
            }
        }
        SeekCurve::ThreeParameter { minimum_ns, average_ns, maximum_ns } => {
            let (min, avg, max) = (*minimum_ns as f64, *average_ns as f64, *maximum_ns as f64);
            let n = f64::from(cylinders.max(2));
            let d = f64::from(distance) - 1.0;
            let a = (-10.0 * min + 15.0 * avg - 5.0 * max) / (3.0 * n.sqrt());
            let b = (7.0 * min - 15.0 * avg + 8.0 * max) / (3.0 * n);
            a * d.sqrt() + b * d + min
        }
    };
    whole_ns(ns)
}

fn whole_ns(ns: f64) -> u32 {
    ns.round().clamp(0.0, f64::from(u32::MAX >> 1)) as u32
}

fn interpolate(points: &[(u32, u64)], distance: u32) -> f64 {
    match points.partition_point(|&(d, _)| d < distance) {
        _ if points.is_empty() => 0.0,
        at if at < points.len() => on_line(points, at, distance),
        _ if points.len() == 1 => points[0].1 as f64,
        at => on_line(points, at - 1, distance),
    }
}

/// Returns the value of the line that ends at point `end`; the first begins at 0.
#[inline]
fn on_line(points: &[(u32, u64)], end: usize, distance: u32) -> f64 {
    let (x0, y0) = if end == 0 { (0, 0) } else { points[end - 1] };
    let (x1, y1) = points[end];
    let (x0, y0, x1, y1) = (f64::from(x0), y0 as f64, f64::from(x1), y1 as f64);
    y0 + (y1 - y0) * (f64::from(distance) - x0) / (x1 - x0)
}

/// Returns the mean seek time over uniformly random pairs of blocks, in ns: the data sheet's "average seek", weighted
/// by the sectors of each cylinder.
pub fn mean_seek_ns(table_ns: &[u32], sectors_by_cylinder: &[u64]) -> f64 {
    let last = table_ns.len() as u32 - 1;
    Distances::new(sectors_by_cylinder).mean_ns(last, |distance| table_ns[distance as usize])
}

/// Distribution of distances between uniformly random pairs of blocks.
pub struct Distances {
    /// Cylinders per cell.
    per_cell: f64,
    /// Number of pairs of blocks by their distance in cells, each counted once.
    pairs: Vec<f64>,
    /// Number of blocks.
    total: f64,
}

/// Most cells that the cylinders are divided into: 10^5 cylinders cost 10^6 steps.
const CELLS_MAX: usize = 2048;

/// Lags that are summed in parallel, each in the same order as it would be by itself.
const LAGS: usize = 8;

impl Distances {
    /// Creates the distribution for the given number of blocks in each cylinder.
    pub fn new(sectors_by_cylinder: &[u64]) -> Distances {
        let cells = sectors_by_cylinder.len().clamp(1, CELLS_MAX);
        let per_cell = sectors_by_cylinder.len() as f64 / cells as f64;
        let mut weight = vec![0f64; cells];
        for (cylinder, &sectors) in sectors_by_cylinder.iter().enumerate() {
            weight[((cylinder as f64 / per_cell) as usize).min(cells - 1)] += sectors as f64;
        }
        Distances { per_cell, pairs: autocorrelation(&weight), total: weight.iter().sum() }
    }

    /// Returns the mean of `seek_ns`, a function of the distance in cylinders, at most `last`.
    pub fn mean_ns(&self, last: u32, seek_ns: impl Fn(u32) -> u32) -> f64 {
        let at = |distance: f64| {
            let clamped = distance.clamp(0.0, f64::from(last));
            let low = clamped.floor() as u32;
            let (low_ns, high_ns) = (f64::from(seek_ns(low)), f64::from(seek_ns((low + 1).min(last))));
            low_ns + (clamped - f64::from(low)) * (high_ns - low_ns)
        };
        let mut sum = 0.0;
        for (lag, pairs) in self.pairs.iter().enumerate() {
            // Two random places in the same cell are on average 1/3 of a cell apart.
            let seek = if lag == 0 { at(self.per_cell / 3.0) } else { at(lag as f64 * self.per_cell) };
            sum += seek * pairs * if lag == 0 { 1.0 } else { 2.0 };
        }
        sum / (self.total * self.total)
    }
}

/// Returns for each lag the sum of the products of weights at that distance.
fn autocorrelation(weight: &[f64]) -> Vec<f64> {
    let mut sums = Vec::with_capacity(weight.len() + LAGS);
    for first in (0..weight.len()).step_by(LAGS) {
        let mut sum = [0f64; LAGS];
        let common = weight.len().saturating_sub(first + LAGS - 1);
        for (&near, far) in weight.iter().zip(weight[first.min(weight.len())..].windows(LAGS)).take(common) {
            for (sum, &far) in sum.iter_mut().zip(far) {
                *sum += near * far;
            }
        }
        for (lag, sum) in (first..).zip(&mut sum) {
            for i in common..weight.len().saturating_sub(lag) {
                *sum += weight[i] * weight[i + lag];
            }
        }
        sums.extend(sum);
    }
    sums.truncate(weight.len());
    sums
}
