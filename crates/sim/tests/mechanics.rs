//! Compares spindle, seek curves and positioning with their closed forms.

use crate::common;
use crate::common::{CYLINDERS, MS, bare_drive};
use headstack_sim::drive::description::{Mechanics, SeekCurve};
use headstack_sim::drive::mechanics::{Arm, Spindle, mean_seek_ns, seek_ns};

const TURN: u64 = 1 << 32;

#[test]
fn spindle_turns_without_drift() {
    for rpm in [300.0, 3_600.0, 5_400.0, 7_200.0, 10_025.0, 15_000.0] {
        let spindle = Spindle::new(rpm);
        let turn_ns = 60e9 / rpm;
        assert!((spindle.revolution_ns() as f64 - turn_ns).abs() <= 1.0, "{rpm} rpm");
        for time_ns in [0, 1, 12_345_678, 3_600_000_000_000, 86_400_000_000_000] {
            let expected = (time_ns as f64 / turn_ns).rem_euclid(1.0);
            let found = f64::from(spindle.angle_at(time_ns)) / TURN as f64;
            let apart = (found - expected).rem_euclid(1.0);
            assert!(apart.min(1.0 - apart) < 1e-5, "{rpm} rpm at {time_ns} ns: {found}, expected {expected}");
        }
    }
}

#[test]
fn a_wait_ends_at_its_angle() {
    let spindle = Spindle::new(7_200.0);
    for now_ns in (0..200).map(|i| i * 7_654_321) {
        for angle in (0..64u32).map(|i| i << 26) {
            let wait_ns = spindle.wait_ns(now_ns, angle);
            assert!(wait_ns <= spindle.revolution_ns());
            let past = spindle.angle_at(now_ns + wait_ns).wrapping_sub(angle);
            // Two nanoseconds: 2^-22 turns.
            assert!(past.wrapping_add(1 << 11) < 1 << 12, "{past}");
        }
    }
}

/// Half a turn on average: the mean of the wait over all angles.
#[test]
fn mean_wait_is_half_a_turn() {
    let spindle = Spindle::new(10_000.0);
    let mean = (0..10_000u32).map(|i| spindle.wait_ns(123_456_789, i * 429_497) as f64).sum::<f64>() / 10_000.0;
    common::assert_close(mean, 3e6, 0.05, "mean wait at 10,000 rpm");
}

#[test]
fn sectors_that_pass_are_counted() {
    let spindle = Spindle::new(10_000.0);
    let sector = (TURN / 100) as u32;
    for (elapsed_ns, expected) in [(0, 0), (59_000, 0), (61_000, 1), (6_001_000, 100), (600_030_000, 10_000)] {
        assert_eq!(spindle.sectors_in(elapsed_ns, sector), expected, "{elapsed_ns} ns");
    }
}

#[test]
fn two_piece_curve_is_that_of_the_hp_97560() {
    // Ruemmler and Wilkes 1994: 3.24 + 0.400 sqrt(d) ms below 383 cylinders, 8.00 + 0.008 d from there.
    let curve = |first_ns| SeekCurve::TwoPiece {
        boundary_cylinders: 383,
        short_ns: 3.24e6,
        short_ns_per_sqrt: 0.4e6,
        long_ns: 8.0e6,
        long_ns_per_cylinder: 8e3,
        first_ns,
    };
    for distance in 1..1962 {
        let d = f64::from(distance);
        let expected = if distance < 383 { 3.24 + 0.4 * d.sqrt() } else { 8.0 + 0.008 * d };
        assert_eq!(f64::from(seek_ns(&curve(vec![]), distance, 1962)), (expected * 1e6).round(), "{distance}");
    }
    let overridden = curve(vec![2 * MS, 3 * MS]);
    let table: Vec<u32> = (0..4).map(|distance| seek_ns(&overridden, distance, 1962)).collect();
    assert_eq!(table, [0, 2_000_000, 3_000_000, ((3.24 + 0.4 * 3f64.sqrt()) * 1e6).round() as u32]);
}

#[test]
fn measured_points_are_joined_by_lines() {
    let curve = SeekCurve::Points(vec![(2, 1_000_000), (4, 3_000_000), (10, 2_400_000), (20, 4_400_000)]);
    let found: Vec<u32> = [0, 1, 2, 3, 4, 7, 10, 15, 20, 25].iter().map(|&d| seek_ns(&curve, d, 100)).collect();
    let expected = [0, 500_000, 1_000_000, 2_000_000, 3_000_000, 2_700_000, 2_400_000, 3_400_000, 4_400_000, 5_400_000];
    assert_eq!(found, expected);
    assert_eq!(seek_ns(&SeekCurve::Points(vec![(5, MS)]), 9, 100), 1_000_000);
    assert_eq!([0, 1, 99].map(|d| seek_ns(&SeekCurve::Constant(7), d, 100)), [0, 7, 7]);
}

/// Lee and Katz determine their curve by these three values: at one cylinder, over the full stroke, and on average over
/// uniform pairs.
#[test]
fn three_parameter_curve_has_its_three_values() {
    for (minimum_ns, average_ns, maximum_ns) in
        [(MS, 5 * MS, 10 * MS), (600_000, 8_500_000, 18 * MS), (2 * MS, 10 * MS, 20 * MS)]
    {
        let curve = SeekCurve::ThreeParameter { minimum_ns, average_ns, maximum_ns };
        let cylinders = 20_000u32;
        let n = f64::from(cylinders);
        assert_eq!(u64::from(seek_ns(&curve, 1, cylinders)), minimum_ns);
        common::assert_close(f64::from(seek_ns(&curve, cylinders - 1, cylinders)), maximum_ns as f64, 0.1, "maximum");
        let mean: f64 =
            (1..cylinders).map(|d| 2.0 * (n - f64::from(d)) / (n * n) * f64::from(seek_ns(&curve, d, cylinders))).sum();
        common::assert_close(mean, average_ns as f64, 0.5, "average");
    }
}

#[test]
fn mean_seek_is_the_sum_over_all_pairs() {
    let table: Vec<u32> = (0..300u32).map(|d| seek_ns(&bare_drive().mechanics.seek, d, 300)).collect();
    let sectors: Vec<u64> = (0..300).map(|cylinder| 2000 - 3 * cylinder).collect();
    let total: u64 = sectors.iter().sum();
    let mut sum = 0.0;
    for (a, &of_a) in sectors.iter().enumerate() {
        for (b, &of_b) in sectors.iter().enumerate() {
            sum += f64::from(table[a.abs_diff(b)]) * of_a as f64 * of_b as f64;
        }
    }
    // Cells of one cylinder: exact but for two places in the same one, 1 % of the pairs.
    common::assert_close(mean_seek_ns(&table, &sectors), sum / (total as f64).powi(2), 0.2, "mean seek");
}

#[test]
fn a_head_switch_is_hidden_in_a_longer_seek() {
    let mechanics = |read_settle_ns, write_settle_ns| Mechanics {
        head_switch_ns: 2 * MS,
        read_settle_ns,
        write_settle_ns,
        ..bare_drive().mechanics
    };
    let arm = Arm::new(&mechanics(0, 0), CYLINDERS as u32);
    // One cylinder takes 1.5 ms, 200 take 4 ms.
    let cases = [(0, false, 0), (0, true, 2 * MS), (1, false, 1_500_000), (1, true, 2 * MS), (200, true, 4 * MS)];
    for (distance, head_change, expected) in cases {
        assert_eq!(arm.position_ns(distance, head_change, false), expected, "{distance} {head_change}");
    }
    let arm = Arm::new(&mechanics(100, -500_000), CYLINDERS as u32);
    for (distance, head_change, moved) in cases {
        let settled = |settle: i64| if moved == 0 { 0 } else { (moved as i64 + settle) as u64 };
        assert_eq!(arm.position_ns(distance, head_change, false), settled(100), "read {distance} {head_change}");
        assert_eq!(arm.position_ns(distance, head_change, true), settled(-500_000), "write {distance} {head_change}");
    }
}
