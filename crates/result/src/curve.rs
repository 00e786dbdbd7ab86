//! The saturation curve: latency against throughput as the load increases.

use std::f64::consts::{FRAC_PI_4, TAU};

use serde::{Deserialize, Serialize};

/// A run on a saturation curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Offered load: queue depth (closed loop) or IOPS (open loop).
    pub load: f64,
    /// Achieved throughput, in IOPS.
    pub throughput_per_s: f64,
    /// Latency, in ns.
    pub response_ns: f64,
}

/// The knee of a saturation curve: the point where 1 % more throughput costs 1 % more latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Load at the knee, interpolated between the points.
    pub load: f64,
    /// Throughput at the knee, in IOPS.
    pub throughput_per_s: f64,
    /// Latency at the knee, in ns.
    pub response_ns: f64,
    /// Whether the curve is already above the knee at its lightest load, so the true knee is at that load or below it.
    pub at_first_point: bool,
}

/// Returns the knee as Compaq defines it: the load at which a percentage gain in throughput X costs the same percentage
/// in latency R, d ln R / d ln X = 1.
///
/// The knee is the maximum of X/R (Kleinrock's *power*, ICC 1979). First, the point with the largest X/R is found. This
/// is a global maximum, so noise moves it to a neighboring point at worst; where a curve bends backwards, X/R only
/// falls, so the knee is at the bend or before it. Then the curve's direction in the (ln X, ln R) plane, which is given
/// at the middle of the segments on both sides, is interpolated over ln load to 45 degrees. Directions, unlike slopes,
/// stay finite where throughput is constant or falls.
///
/// The points may be in any order. Points with the same load are averaged. Points that are not finite and positive have
/// no logarithm and are skipped.
///
/// Returns `None` if X/R still increases at the heaviest load (the knee was not reached), or if there are fewer than
/// two points.
pub fn knee(points: &[CurvePoint]) -> Option<Knee> {
    let points = by_load(points);
    let power = |at: usize| points[at].throughput_per_s / points[at].response_ns;
    // Reversed, because `max_by` returns the last of equal points and the first is wanted.
    let best = (0..points.len()).rev().max_by(|&a, &b| power(a).total_cmp(&power(b)))?;
    if best + 1 == points.len() {
        return None;
    }
    if best == 0 {
        let CurvePoint { load, throughput_per_s, response_ns } = points[0];
        return Some(Knee { load, throughput_per_s, response_ns, at_first_point: true });
    }
    let [before, here, after] = [best - 1, best, best + 1].map(|at| logarithms(&points[at]));
    // X/R rises up to `here` and does not rise after it, so the directions are within [-135, 45] and [45, 225] degrees.
    let into = direction(before, here);
    let out_of = direction(here, after);
    let out_of = if out_of < -FRAC_PI_4 { out_of + TAU } else { out_of };
    // Both segments have exactly 45 degrees: the knee is anywhere on them, so take the middle.
    let share = if out_of > into { (FRAC_PI_4 - into) / (out_of - into) } else { 0.5 };
    let (middle_in, middle_out) = ((before[0] + here[0]) / 2.0, (here[0] + after[0]) / 2.0);
    let ln_load = middle_in + share * (middle_out - middle_in);
    let other = if ln_load < here[0] { before } else { after };
    let part = (ln_load - here[0]) / (other[0] - here[0]);
    let along = |axis: usize| (here[axis] + part * (other[axis] - here[axis])).exp();
    Some(Knee { load: along(0), throughput_per_s: along(1), response_ns: along(2), at_first_point: false })
}

/// The maximum throughput of a curve under a latency limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WithinLimit {
    /// Throughput, in IOPS.
    pub throughput_per_s: f64,
    /// Whether the heaviest load is also within the limit, so that the true maximum may be higher.
    pub is_at_least: bool,
}

/// Returns the maximum throughput whose latency is within the limit ("IOPS at 25 ms or less"), with linear
/// interpolation between points in order of load. Nothing is extrapolated above the heaviest load: if that point is
/// within the limit, the throughput is a lower bound and marked as such.
///
/// Points are ordered, averaged and skipped as in [`knee`]. Returns `None` if the lightest load is already above the
/// limit, or if there are no points.
pub fn throughput_at_response(points: &[CurvePoint], limit_ns: f64) -> Option<WithinLimit> {
    let points = by_load(points);
    let first = points.first().filter(|point| point.response_ns <= limit_ns)?;
    let mut best = first.throughput_per_s;
    for pair in points.windows(2) {
        let (a, b) = (&pair[0], &pair[1]);
        let (a_within, b_within) = (a.response_ns <= limit_ns, b.response_ns <= limit_ns);
        if b_within {
            best = best.max(b.throughput_per_s);
        }
        if a_within != b_within {
            let part = (limit_ns - a.response_ns) / (b.response_ns - a.response_ns);
            best = best.max(a.throughput_per_s + part * (b.throughput_per_s - a.throughput_per_s));
        }
    }
    let is_at_least = points.last().is_some_and(|last| last.response_ns <= limit_ns);
    Some(WithinLimit { throughput_per_s: best, is_at_least })
}

/// Returns the points in order of load, with the runs at one load averaged.
fn by_load(points: &[CurvePoint]) -> Vec<CurvePoint> {
    let usable = |point: &&CurvePoint| {
        [point.load, point.throughput_per_s, point.response_ns].iter().all(|value| value.is_finite() && *value > 0.0)
    };
    let mut points: Vec<_> = points.iter().filter(usable).copied().collect();
    points.sort_by(|a, b| a.load.total_cmp(&b.load));
    let mean =
        |runs: &[CurvePoint], figure: fn(&CurvePoint) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
    points
        .chunk_by(|a, b| a.load == b.load)
        .map(|runs| CurvePoint {
            load: runs[0].load,
            throughput_per_s: mean(runs, |point| point.throughput_per_s),
            response_ns: mean(runs, |point| point.response_ns),
        })
        .collect()
}

/// Returns ln load, ln throughput and ln latency of a point.
fn logarithms(point: &CurvePoint) -> [f64; 3] {
    [point.load.ln(), point.throughput_per_s.ln(), point.response_ns.ln()]
}

/// Returns the angle, in radians, of the step from one point to the next in the (ln X, ln R) plane.
fn direction(from: [f64; 3], to: [f64; 3]) -> f64 {
    (to[2] - from[2]).atan2(to[1] - from[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(load: f64, throughput_per_s: f64, response_ns: f64) -> CurvePoint {
        CurvePoint { load, throughput_per_s, response_ns }
    }

    /// Returns the curve of an M/M/1 server with a capacity of 100 requests/s: R = 1 / (100 - rate).
    fn mm1(rates: impl IntoIterator<Item = f64>) -> Vec<CurvePoint> {
        rates.into_iter().map(|rate| point(rate, rate, 1e9 / (100.0 - rate))).collect()
    }

    /// Returns the curve of M equal stations in a closed loop of N requests, with 10 ms of service each: R = 10 (M + N
    /// - 1), X = N / R (exact for exponential service).
    fn balanced(stations: f64, loads: impl IntoIterator<Item = f64>) -> Vec<CurvePoint> {
        let response_ns = |n: f64| 1e7 * (stations + n - 1.0);
        loads.into_iter().map(|n| point(n, n * 1e9 / response_ns(n), response_ns(n))).collect()
    }

    /// Returns the asymptotic bounds of a closed network with a total demand of 60 ms, 10 ms of it at the bottleneck.
    fn asymptotic(loads: impl IntoIterator<Item = f64>) -> Vec<CurvePoint> {
        let response_ns = |n: f64| f64::max(6e7, n * 1e7);
        loads.into_iter().map(|n| point(n, n * 1e9 / response_ns(n), response_ns(n))).collect()
    }

    fn assert_near(value: f64, expected: f64, relative: f64) {
        assert!((value / expected - 1.0).abs() <= relative, "{value} against {expected}");
    }

    #[test]
    fn the_knee_of_an_open_server_is_at_half_its_rate() {
        // d ln R / d ln X = rho / (1 - rho) = 1 at rho = 1/2.
        let fine = knee(&mm1((1..100).map(f64::from))).unwrap();
        assert_near(fine.load, 50.0, 0.001);
        assert_near(fine.throughput_per_s, 50.0, 0.001);
        assert_near(fine.response_ns, 2e7, 0.001);
        assert!(!fine.at_first_point);
        // Loads in steps of 10 % of saturation, with and without a point exactly at the knee.
        for offset in [0.0, 2.0, 4.0, 5.0, 8.0] {
            let tenths = mm1((1..10).map(|i| f64::from(i) * 10.0 + offset));
            assert_near(knee(&tenths).unwrap().load, 50.0, 0.02);
        }
    }

    #[test]
    fn the_knee_of_a_balanced_closed_network_is_one_below_its_stations() {
        // d ln R / d ln X = N / (M - 1).
        let every = |stations| knee(&balanced(stations, (1..=64).map(f64::from))).unwrap();
        for stations in [4.0, 9.0, 25.0] {
            assert_near(every(stations).load, stations - 1.0, 0.01);
        }
        let doubling = (0..8).map(|i| f64::from(1 << i));
        assert_near(knee(&balanced(9.0, doubling.clone())).unwrap().load, 8.0, 0.01);
        assert_near(knee(&balanced(13.0, doubling)).unwrap().load, 12.0, 0.06);
    }

    #[test]
    fn the_knee_of_the_asymptotic_bounds_is_their_crossing() {
        // N* = D / D_max = 6, where R changes from constant to proportional.
        assert_near(knee(&asymptotic((1..=12).map(f64::from))).unwrap().load, 6.0, 0.01);
        assert_near(knee(&asymptotic([1.5, 3.0, 6.0, 12.0, 24.0])).unwrap().load, 6.0, 1e-9);
        assert_near(knee(&asymptotic([1.0, 2.0, 4.0, 8.0, 16.0])).unwrap().load, 6.0, 0.1);
    }

    #[test]
    fn pure_queueing_has_its_knee_at_the_first_point() {
        // A single station: throughput is the same at every load, and latency is proportional to the load.
        let curve = balanced(1.0, [1.0, 2.0, 4.0, 8.0]);
        let knee = knee(&curve).unwrap();
        assert!(knee.at_first_point);
        assert_eq!((knee.load, knee.throughput_per_s, knee.response_ns), (1.0, 100.0, 1e7));
    }

    #[test]
    fn a_curve_that_bends_backwards_has_its_knee_before_the_bend() {
        // Throughput collapses above 70 requests/s, while latency increases.
        let mut curve = mm1((1..=70).map(f64::from));
        curve.extend((71..120).map(|load| {
            let load = f64::from(load);
            point(load, 140.0 - load, load * 1e6)
        }));
        assert_near(knee(&curve).unwrap().load, 50.0, 0.001);
        // The curve bends exactly at its knee, so the result is the corner and not a point after it.
        let corner = [point(1.0, 10.0, 1e7), point(2.0, 20.0, 1e7), point(4.0, 18.0, 3e7), point(8.0, 9.0, 9e7)];
        let knee_point = knee(&corner).unwrap();
        assert!((1.4..=2.0).contains(&knee_point.load) && knee_point.throughput_per_s <= 20.0, "{knee_point:?}");
        // Throughput and latency both fall: this is still past the knee.
        let falling = [point(1.0, 10.0, 1e7), point(2.0, 20.0, 1e7), point(4.0, 9.0, 0.9e7)];
        assert!((1.4..=2.0).contains(&knee(&falling).unwrap().load));
    }

    #[test]
    fn a_knee_that_was_not_reached_is_none() {
        assert_eq!(knee(&mm1((1..=45).map(f64::from))), None);
        assert_eq!(knee(&mm1([10.0])), None);
        assert_eq!(knee(&[]), None);
        let odd = [point(0.0, 1.0, 1.0), point(1.0, f64::NAN, 1.0), point(1.0, 1.0, f64::INFINITY)];
        assert_eq!(knee(&odd), None);
    }

    #[test]
    fn order_repeats_and_noise_move_the_knee_little() {
        let mut curve = mm1((1..20).map(|i| f64::from(i) * 5.0));
        let clean = knee(&curve).unwrap();
        curve.reverse();
        assert_eq!(knee(&curve).unwrap(), clean);
        // Runs at one load are averaged: tested in the middle, at the lightest and at the heaviest load.
        let apart =
            |p: &CurvePoint| [0.5, 1.0, 1.5].map(|part| point(p.load, p.throughput_per_s * part, p.response_ns * part));
        let repeated: Vec<_> = curve.iter().flat_map(apart).collect();
        let knee_point = knee(&repeated).unwrap();
        assert_near(knee_point.load, clean.load, 1e-12);
        assert_near(knee_point.response_ns, clean.response_ns, 1e-12);
        assert_eq!(knee(&[curve[0], curve[1], curve[1]]).map(|knee| knee.at_first_point), Some(true));
        assert_eq!(knee(&[curve[17], curve[18], curve[18], curve[17], curve[17]]), None);
        // Both figures vary by 1 % up and down, in 100 patterns. Near the knee X/R changes by 2 % per step, so the knee
        // may move by two steps of 10 % at most.
        let mut state = 1u64;
        for _ in 0..100 {
            let mut noise = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                1.0 + 0.02 * ((state >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
            };
            let noisy: Vec<_> =
                curve.iter().map(|p| point(p.load, p.throughput_per_s * noise(), p.response_ns * noise())).collect();
            assert_near(knee(&noisy).unwrap().load, 50.0, 0.2);
        }
    }

    #[test]
    fn throughput_within_a_response_time_follows_the_line() {
        let within = |points: &[CurvePoint], limit_ns| throughput_at_response(points, limit_ns);
        let exactly = |throughput_per_s| Some(WithinLimit { throughput_per_s, is_at_least: false });
        let at_least = |throughput_per_s| Some(WithinLimit { throughput_per_s, is_at_least: true });
        // With a limit of 40 ms, an M/M/1 server with a capacity of 100/s handles 100 - 1/0.040 = 75 requests/s.
        assert_near(within(&mm1((1..100).map(f64::from)), 4e7).unwrap().throughput_per_s, 75.0, 1e-9);
        assert_near(within(&mm1([74.0, 76.0]), 4e7).unwrap().throughput_per_s, 75.0, 0.001);
        // Halfway on a straight line; the order of the points does not matter.
        let line = [point(2.0, 200.0, 4e7), point(1.0, 100.0, 2e7)];
        assert_near(within(&line, 3e7).unwrap().throughput_per_s, 150.0, 1e-12);
        assert_eq!(within(&line, 2e7), exactly(100.0));
        // All points are within the limit: the result is the highest throughput observed, as a lower bound.
        assert_eq!(within(&line, 9e7), at_least(200.0));
        // The curve bends backwards: the result is the maximum before the bend.
        let bent = [point(1.0, 100.0, 1e7), point(2.0, 180.0, 2e7), point(3.0, 120.0, 4e7)];
        assert_eq!(within(&bent, 3e7), exactly(180.0));
        assert_eq!(within(&bent, 4e7), at_least(180.0));
        assert_eq!(within(&bent, 0.9e7), None);
        assert_eq!(within(&[], 1e9), None);
    }
}
