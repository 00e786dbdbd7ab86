//! [`Score`]: the distance between simulated and measured latency distributions.

use serde::{Deserialize, Serialize};

use crate::{LatencyHistogram, ResultError};

const NS_PER_MS: f64 = 1e6;

/// Figures that compare a simulation with a measurement. The demerit ignores the order of requests; the paired figures
/// do not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Number of measured requests.
    pub requests: u64,
    /// Mean measured latency, in ms.
    pub mean_measured_ms: f64,
    /// Mean simulated latency, in ms.
    pub mean_simulated_ms: f64,
    /// Demerit figure in ms; see [`demerit_ms`].
    pub demerit_ms: f64,
    /// The demerit relative to the measured mean (Ruemmler and Wilkes, *An introduction to disk drive modeling*, 1994).
    pub demerit_relative: f64,
    /// Demerit figure as DiskSim computes it, in ms; see [`demerit_disksim_ms`].
    pub demerit_disksim_ms: f64,
    /// Root mean square error per request, in ms (see [`paired_rms_ms`]); `None` if the samples differ in size.
    pub paired_rms_ms: Option<f64>,
    /// Correlation coefficient (see [`pearson_r`]); `None` if the samples differ in size or one of them is constant.
    pub pearson_r: Option<f64>,
    /// Percentile with the largest error; see [`worst_percentile`].
    pub worst_percentile: f64,
    /// Simulated minus measured latency at that percentile, in ms.
    pub worst_percentile_error_ms: f64,
}

/// Scores simulated against measured latencies, both in ms and in request order.
///
/// # Errors
/// Returns [`ResultError::Sample`] if a sample is empty or contains a negative or non-finite value, or if all measured
/// latencies are zero.
pub fn score(simulated_ms: &[f64], measured_ms: &[f64]) -> Result<Score, ResultError> {
    check("simulated", simulated_ms)?;
    check("measured", measured_ms)?;
    let mean_measured_ms = mean(measured_ms);
    if mean_measured_ms == 0.0 {
        return Err(ResultError::Sample { sample: "measured", reason: "all values are zero".to_owned() });
    }
    let paired = simulated_ms.len() == measured_ms.len();
    let demerit_ms = demerit_ms(simulated_ms, measured_ms);
    let (worst_percentile, worst_percentile_error_ms) = worst_percentile(simulated_ms, measured_ms);
    Ok(Score {
        requests: measured_ms.len() as u64,
        mean_measured_ms,
        mean_simulated_ms: mean(simulated_ms),
        demerit_ms,
        demerit_relative: demerit_ms / mean_measured_ms,
        demerit_disksim_ms: demerit_disksim_ms(simulated_ms, measured_ms),
        paired_rms_ms: paired.then(|| paired_rms_ms(simulated_ms, measured_ms)),
        pearson_r: if paired { pearson_r(simulated_ms, measured_ms) } else { None },
        worst_percentile,
        worst_percentile_error_ms,
    })
}

fn check(sample: &'static str, values_ms: &[f64]) -> Result<(), ResultError> {
    if values_ms.is_empty() {
        return Err(ResultError::Sample { sample, reason: "the sample is empty".to_owned() });
    }
    match values_ms.iter().position(|value| !value.is_finite() || *value < 0.0) {
        Some(at) => {
            let reason = format!("value {} is {}; it must be a finite time in ms, 0 or more", at + 1, values_ms[at]);
            Err(ResultError::Sample { sample, reason })
        }
        None => Ok(()),
    }
}

/// Returns the demerit figure in ms: the root mean square of the horizontal distance between the two cumulative
/// distributions (Ruemmler and Wilkes 1994). The result is exact, without bins: both quantile functions are step
/// functions, and their squared difference is integrated step by step.
///
/// # Panics
/// Panics if a sample is empty.
pub fn demerit_ms(simulated_ms: &[f64], measured_ms: &[f64]) -> f64 {
    assert!(!simulated_ms.is_empty() && !measured_ms.is_empty(), "the demerit needs two samples that are not empty");
    let counted = |sample| sorted(sample).into_iter().map(|ms| (ms, 1)).collect::<Vec<_>>();
    distance_ms(&counted(simulated_ms), &counted(measured_ms))
}

/// Returns the demerit of two histograms in ms, to the 0.1 % precision of their bins; `None` if a histogram is empty or
/// contains latencies above the last bin.
pub fn demerit_of_histograms_ms(simulated: &LatencyHistogram, measured: &LatencyHistogram) -> Option<f64> {
    let is_whole = |histogram: &LatencyHistogram| histogram.count() > 0 && histogram.overflow() == 0;
    let counted = |histogram: &LatencyHistogram| -> Vec<_> {
        histogram.bins().map(|(middle_ns, count)| (middle_ns as f64 / NS_PER_MS, count)).collect()
    };
    (is_whole(simulated) && is_whole(measured)).then(|| distance_ms(&counted(simulated), &counted(measured)))
}

/// Returns the distance between two distributions in ms. Each is a list of times in rising order with their
/// frequencies.
fn distance_ms(simulated: &[(f64, u64)], measured: &[(f64, u64)]) -> f64 {
    let count = |sample: &[(f64, u64)]| sample.iter().map(|&(_, count)| u128::from(count)).sum::<u128>();
    // Cumulative shares are counted in units of 1/(n m), so that steps meet exactly. In samples of equal size each step
    // spans one value of both.
    let (n, m) = (count(simulated), count(measured));
    let (mut i, mut j, mut level, mut integral) = (0, 0, 0, 0.0);
    let (mut end_i, mut end_j) = (u128::from(simulated[0].1) * m, u128::from(measured[0].1) * n);
    while level < n * m {
        let end = end_i.min(end_j);
        integral += (end - level) as f64 * (simulated[i].0 - measured[j].0).powi(2);
        level = end;
        if end_i == end {
            i += 1;
            end_i += simulated.get(i).map_or(0, |&(_, count)| u128::from(count)) * m;
        }
        if end_j == end {
            j += 1;
            end_j += measured.get(j).map_or(0, |&(_, count)| u128::from(count)) * n;
        }
    }
    (integral / (n * m) as f64).sqrt()
}

/// Returns the demerit in ms as DiskSim 4.0's `rms` program computes it from DiskSim's printed histograms, for
/// comparison with published figures. Times are truncated to whole us and counted in 1,750 bins, and cumulative shares
/// are rounded to 6 decimals. The inverse is interpolated linearly within a bin at levels 0.0001, 0.0002, ..., which
/// accumulate rounding errors as in the original.
///
/// # Panics
/// Panics if a sample is empty.
pub fn demerit_disksim_ms(simulated_ms: &[f64], measured_ms: &[f64]) -> f64 {
    assert!(!simulated_ms.is_empty() && !measured_ms.is_empty(), "the demerit needs two samples that are not empty");
    let edges_us = disksim_edges_us();
    let simulated = disksim_cdf(simulated_ms, &edges_us);
    let measured = disksim_cdf(measured_ms, &edges_us);
    let reached = |cdf: &[(f64, f64)], share: f64| cdf.last().is_some_and(|&(_, last)| last >= share);
    let (mut i, mut j, mut squares, mut levels) = (0, 0, 0.0, 0u32);
    let mut share = 0.0001;
    while share <= 1.0 && reached(&simulated, share) && reached(&measured, share) {
        let distance = inverse(&simulated, &mut i, share) - inverse(&measured, &mut j, share);
        squares += distance * distance;
        levels += 1;
        share += 0.0001;
    }
    (squares / f64::from(levels)).sqrt()
}

/// Returns the upper bin edges of DiskSim's `valid/statdefs`: each is 1 us plus 1 % above the previous edge.
fn disksim_edges_us() -> Vec<u64> {
    std::iter::successors(Some(0), |edge| Some(edge + 1 + edge / 100)).take(1750).collect()
}

/// Returns the histogram as DiskSim prints it: bin edge in ms and cumulative share, up to the first share that prints
/// as 1.
fn disksim_cdf(sample_ms: &[f64], edges_us: &[u64]) -> Vec<(f64, f64)> {
    let mut counts = vec![0u64; edges_us.len()];
    for &value_ms in sample_ms {
        let us = (value_ms * 1000.0) as u64;
        counts[edges_us.partition_point(|&edge| edge <= us).min(edges_us.len() - 1)] += 1;
    }
    let (mut cdf, mut cumulative) = (Vec::new(), 0.0);
    for (&edge_us, &count) in edges_us.iter().zip(&counts) {
        cumulative += count as f64 / sample_ms.len() as f64;
        // Formats and parses the share as the original does: no other way rounds a binary fraction to decimals exactly
        // alike.
        let printed = format!("{cumulative:.6}").parse().expect("a formatted number can be parsed");
        cdf.push((edge_us as f64 / 1000.0, printed));
        if printed >= 1.0 {
            break;
        }
    }
    cdf
}

/// Returns the time at a cumulative share, in ms. Advances `at` to the first point that reaches the share; point 0 has
/// share 0, since no time is below its edge of 0 us.
fn inverse(cdf: &[(f64, f64)], at: &mut usize, share: f64) -> f64 {
    while cdf[*at].1 < share {
        *at += 1;
    }
    let ((x0, y0), (x1, y1)) = (cdf[*at - 1], cdf[*at]);
    x0 + (share - y0) / (y1 - y0) * (x1 - x0)
}

/// Returns the root mean square of the errors of individual requests, in ms.
///
/// # Panics
/// Panics if the samples are empty or differ in size.
pub fn paired_rms_ms(simulated_ms: &[f64], measured_ms: &[f64]) -> f64 {
    assert_pairs(simulated_ms, measured_ms);
    let squares: f64 = simulated_ms.iter().zip(measured_ms).map(|(s, m)| (s - m).powi(2)).sum();
    (squares / simulated_ms.len() as f64).sqrt()
}

/// Returns Pearson's correlation of the two samples, request by request; `None` if either is constant.
///
/// # Panics
/// Panics if the samples are empty or differ in size.
pub fn pearson_r(simulated_ms: &[f64], measured_ms: &[f64]) -> Option<f64> {
    assert_pairs(simulated_ms, measured_ms);
    // Compares values with each other and not with the mean, which rounding may move away from equal values.
    let constant = |sample: &[f64]| sample.iter().all(|value| *value == sample[0]);
    if constant(simulated_ms) || constant(measured_ms) {
        return None;
    }
    let (mean_s, mean_m) = (mean(simulated_ms), mean(measured_ms));
    let (mut ss, mut mm, mut sm) = (0.0, 0.0, 0.0);
    for (s, m) in simulated_ms.iter().zip(measured_ms) {
        let (ds, dm) = (s - mean_s, m - mean_m);
        ss += ds * ds;
        mm += dm * dm;
        sm += ds * dm;
    }
    let scale = ss.sqrt() * mm.sqrt();
    (scale > 0.0).then(|| (sm / scale).clamp(-1.0, 1.0))
}

/// Returns the percentile among 1, 2, ..., 99 with the largest difference between the two distributions (the lowest of
/// equals), and the simulated minus measured latency there, in ms.
///
/// # Panics
/// Panics if a sample is empty.
pub fn worst_percentile(simulated_ms: &[f64], measured_ms: &[f64]) -> (f64, f64) {
    assert!(!simulated_ms.is_empty() && !measured_ms.is_empty(), "a percentile needs two samples that are not empty");
    let (simulated, measured) = (sorted(simulated_ms), sorted(measured_ms));
    let at = |sample: &[f64], percent: usize| sample[(percent * sample.len()).div_ceil(100) - 1];
    let mut worst = (1.0, 0.0);
    for percent in 1..=99 {
        let error_ms = at(&simulated, percent) - at(&measured, percent);
        if error_ms.abs() > f64::abs(worst.1) {
            worst = (percent as f64, error_ms);
        }
    }
    worst
}

fn assert_pairs(simulated_ms: &[f64], measured_ms: &[f64]) {
    assert!(
        !simulated_ms.is_empty() && simulated_ms.len() == measured_ms.len(),
        "paired samples have the same size and are not empty"
    );
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use headstack_needs::{Need, lacks};
    use std::path::PathBuf;
    use std::process::Command;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Returns `count` reproducible times in ms, each a whole number of us up to `longest_us`, skewed toward short
    /// times.
    fn times_ms(seed: u64, count: usize, longest_us: f64) -> Vec<f64> {
        let mut state = seed;
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let share = (state >> 11) as f64 / (1u64 << 53) as f64;
                (longest_us * share * share).floor() / 1000.0
            })
            .collect()
    }

    fn assert_near(value: f64, expected: f64, within: f64) {
        assert!((value - expected).abs() <= within, "{value} against {expected}");
    }

    #[test]
    fn a_shift_is_its_own_demerit() {
        let measured = times_ms(1, 1000, 20_000.0);
        for shift in [-3.0, 0.0, 0.25, 40.0] {
            let simulated: Vec<_> = measured.iter().map(|ms| ms + shift).collect();
            assert_near(demerit_ms(&simulated, &measured), shift.abs(), 1e-12);
            assert_near(paired_rms_ms(&simulated, &measured), shift.abs(), 1e-12);
            let (_, error_ms) = worst_percentile(&simulated, &measured);
            assert_near(error_ms, shift, 1e-12);
        }
        // DiskSim's bins are up to 1 % + 1 us wide, which is at most 0.25 ms here.
        let simulated: Vec<_> = measured.iter().map(|ms| ms + 5.0).collect();
        assert_near(demerit_disksim_ms(&simulated, &measured), 5.0, 0.05);
        assert_eq!(demerit_disksim_ms(&measured, &measured), 0.0);
    }

    #[test]
    fn histograms_have_the_demerit_of_their_samples() {
        let histogram = |sample_ms: &[f64]| {
            let mut histogram = LatencyHistogram::new();
            sample_ms.iter().for_each(|ms| histogram.record((ms * NS_PER_MS) as u64));
            histogram
        };
        let (simulated, measured) = (times_ms(3, 700, 30_000.0), times_ms(4, 1_000, 20_000.0));
        let of_samples = demerit_ms(&simulated, &measured);
        let of_bins = |a: &[f64], b: &[f64]| demerit_of_histograms_ms(&histogram(a), &histogram(b));
        assert_near(of_bins(&simulated, &measured).unwrap(), of_samples, 0.002 * of_samples);
        assert_eq!(of_bins(&measured, &measured), Some(0.0));
        assert_eq!((of_bins(&[], &measured), of_bins(&measured, &[4e6])), (None, None));
    }

    #[test]
    fn a_scaled_sample_has_the_rms_of_the_added_part() {
        let measured = times_ms(2, 999, 20_000.0);
        let simulated: Vec<_> = measured.iter().map(|ms| 1.1 * ms).collect();
        let rms = (measured.iter().map(|ms| ms * ms).sum::<f64>() / 999.0).sqrt();
        assert_near(demerit_ms(&simulated, &measured), 0.1 * rms, 1e-9);
        assert_near(demerit_disksim_ms(&simulated, &measured), 0.1 * rms, 0.01);
        assert_near(pearson_r(&simulated, &measured).unwrap(), 1.0, 1e-12);
        // The difference is largest at the longest times.
        assert_eq!(worst_percentile(&simulated, &measured).0, 99.0);
    }

    #[test]
    fn samples_of_different_size_are_integrated_exactly() {
        assert_near(demerit_ms(&[0.0], &[0.0, 1.0]), 0.5f64.sqrt(), 1e-15);
        // Levels 0, 1/3, 1/2, 2/3, 1: distances 0, 1, 0, 1 over 1/3, 1/6, 1/6, 1/3.
        assert_near(demerit_ms(&[2.0, 1.0], &[3.0, 1.0, 2.0]), 0.5f64.sqrt(), 1e-15);
        // Each value of 10, 20, ..., 1000 is 5 above the mean of the ten values that it represents; variance
        // (10^2-1)/12.
        let (coarse, fine): (Vec<_>, Vec<_>) =
            ((1..=100).map(|i| f64::from(i) * 10.0).collect(), (1..=1000).map(f64::from).collect());
        assert_near(demerit_ms(&coarse, &fine), (99.0f64 / 12.0 + 4.5 * 4.5).sqrt(), 1e-9);
    }

    #[test]
    fn the_bins_of_disksim_widen_by_one_percent() {
        let edges = disksim_edges_us();
        assert_eq!((edges[..3].to_vec(), edges[99..103].to_vec()), (vec![0, 1, 2], vec![99, 100, 102, 104]));
        assert_eq!(edges.len(), 1750);
        // The last whole us below an edge falls into the bin that ends there, and the edge itself into the next bin.
        for at in [300, 600] {
            let last = |us: u64| disksim_cdf(&[us as f64 / 1000.0], &edges).last().copied();
            assert_eq!(last(edges[at] - 1), Some((edges[at] as f64 / 1000.0, 1.0)));
            assert_eq!(last(edges[at]), Some((edges[at + 1] as f64 / 1000.0, 1.0)));
        }
        // The last bin holds all longer times.
        let longest_ms = edges[1749] as f64 / 1000.0;
        assert_eq!(disksim_cdf(&[10.0 * longest_ms, 0.0], &edges).last(), Some(&(longest_ms, 1.0)));
    }

    #[test]
    fn the_worst_percentile_is_found_with_its_sign() {
        let measured: Vec<_> = (1..=200).map(f64::from).collect();
        let mut simulated = measured.clone();
        // Values 79 and 80 form the 40th percentile; the order within the sample does not matter.
        (simulated[78], simulated[79]) = (78.0, 78.0);
        simulated.reverse();
        assert_eq!(worst_percentile(&simulated, &measured), (40.0, -2.0));
        assert_eq!(worst_percentile(&measured, &measured), (1.0, 0.0));
    }

    #[test]
    fn correlation_is_one_for_lines_and_none_for_constants() {
        let x = times_ms(3, 500, 9_000.0);
        let down: Vec<_> = x.iter().map(|ms| 50.0 - 2.0 * ms).collect();
        assert_near(pearson_r(&down, &x).unwrap(), -1.0, 1e-12);
        assert_near(pearson_r(&x, &times_ms(4, 500, 9_000.0)).unwrap(), 0.0, 0.15);
        assert_eq!(pearson_r(&x, &[0.1; 500]), None);
        assert_near(pearson_r(&[0.0, 1e-3], &[0.0, 1e-3]).unwrap(), 1.0, 1e-12);
        assert_eq!(pearson_r(&[0.0, 1e-200], &[0.0, 1.0]), None, "squares below the least number");
        // (0,0), (1,2), (2,1): covariance 1/3, variances 2/3.
        assert_near(pearson_r(&[0.0, 1.0, 2.0], &[0.0, 2.0, 1.0]).unwrap(), 0.5, 1e-15);
    }

    #[test]
    fn a_score_holds_every_figure() {
        let measured = [1.0, 2.0, 3.0];
        let score_of = |simulated: &[f64]| score(simulated, &measured).unwrap();
        let same_size = score_of(&[3.0, 3.0, 1.0]);
        assert_eq!((same_size.requests, same_size.mean_measured_ms), (3, 2.0));
        assert_near(same_size.mean_simulated_ms, 7.0 / 3.0, 1e-15);
        assert_near(same_size.demerit_ms, (1.0f64 / 3.0).sqrt(), 1e-15);
        assert_near(same_size.demerit_relative, (1.0f64 / 3.0).sqrt() / 2.0, 1e-15);
        assert_near(same_size.paired_rms_ms.unwrap(), 3.0f64.sqrt(), 1e-15);
        assert_near(same_size.pearson_r.unwrap(), -0.75f64.sqrt(), 1e-15);
        assert_eq!((same_size.worst_percentile, same_size.worst_percentile_error_ms), (34.0, 1.0));
        let other_size = score_of(&[2.0, 2.0]);
        assert_eq!((other_size.paired_rms_ms, other_size.pearson_r), (None, None));
        assert_eq!(score_of(&[2.0, 2.0, 2.0]).pearson_r, None);
    }

    #[test]
    fn samples_that_cannot_be_scored_are_refused() {
        for (simulated, measured, complaint) in [
            (vec![], vec![1.0], "simulated response times: the sample is empty"),
            (vec![1.0], vec![], "measured response times: the sample is empty"),
            (vec![1.0, f64::NAN], vec![1.0], "simulated response times: value 2 is NaN"),
            (vec![1.0], vec![-1.0], "measured response times: value 1 is -1"),
            (vec![f64::INFINITY], vec![1.0], "simulated response times: value 1 is inf"),
            (vec![1.0], vec![0.0, 0.0], "measured response times: all values are zero"),
        ] {
            let error = score(&simulated, &measured).unwrap_err().to_string();
            assert!(error.starts_with(complaint), "{error}");
        }
    }

    /// Runs the independent reference script, which scores `simulated` against a trace of `measured` latencies.
    fn reference(script: &PathBuf, name: &str, simulated_ms: &[f64], measured_ms: &[f64]) -> Value {
        let folder = std::env::temp_dir().join(format!("headstack-demerit-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (trace, sim) = (folder.join("trace"), folder.join("sim"));
        let lines = |values: &[f64], line: fn(f64) -> String| -> String { values.iter().map(|ms| line(*ms)).collect() };
        std::fs::write(&trace, lines(measured_ms, |ms| format!("R Miss 0 8 {} 0\n", (ms * 1000.0).round()))).unwrap();
        std::fs::write(&sim, lines(simulated_ms, |ms| format!("{ms}\n"))).unwrap();
        let output = Command::new("python3").arg(script).arg(&trace).arg("--sim").arg(&sim).arg("--json").output();
        std::fs::remove_dir_all(&folder).unwrap();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let scores: Value = serde_json::from_slice(&output.stdout).unwrap();
        scores[trace.to_str().unwrap()]["score"].clone()
    }

    #[test]
    fn the_figures_equal_the_reference_script() {
        let shared = std::env::var_os("HEADSTACK_SHARED")
            .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")), PathBuf::from);
        let script = shared.join("validation/demerit.py");
        if !script.is_file() {
            lacks(Need::Data, format_args!("no validation data at {}", script.display()));
            return;
        }
        if Command::new("python3").arg("--version").output().is_err() {
            lacks(Need::Programs, "no python3");
            return;
        }
        for (name, simulated, measured) in [
            ("close", times_ms(5, 1000, 21_000.0), times_ms(6, 1000, 20_000.0)),
            ("sizes", times_ms(7, 777, 15_000.0), times_ms(8, 1000, 20_000.0)),
            ("prime", times_ms(9, 997, 300_000.0), times_ms(10, 9973, 20_000.0)),
            ("short", times_ms(11, 100, 50.0), times_ms(12, 100, 90.0)),
            ("single", vec![7.1234], vec![5.0, 5.25]),
            ("minutes", times_ms(13, 50, 3e8), times_ms(14, 70, 2e8)),
        ] {
            let expected = reference(&script, name, &simulated, &measured);
            let score = score(&simulated, &measured).unwrap();
            let figures = [
                ("rms_disksim_ms", Some(score.demerit_disksim_ms)),
                ("rms_exact_ms", Some(score.demerit_ms)),
                ("relative_exact", Some(score.demerit_relative)),
                ("paired_rms_ms", score.paired_rms_ms),
                ("pearson_r", score.pearson_r),
            ];
            for (figure, ours) in figures {
                let theirs = expected[figure].as_f64();
                assert_eq!(ours.is_some(), theirs.is_some(), "{name} {figure}");
                let (Some(ours), Some(theirs)) = (ours, theirs) else {
                    continue;
                };
                assert!((ours - theirs).abs() < 5e-7, "{name} {figure}: {ours} against {theirs}");
            }
        }
    }

    fn sample() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(0.0..100.0, 1..60)
    }

    proptest! {
        #[test]
        fn the_demerit_is_a_distance(a in sample(), b in sample(), c in sample()) {
            let (ab, ba) = (demerit_ms(&a, &b), demerit_ms(&b, &a));
            prop_assert!((ab - ba).abs() < 1e-9);
            prop_assert_eq!(demerit_ms(&a, &a), 0.0);
            prop_assert!(demerit_ms(&a, &c) <= ab + demerit_ms(&b, &c) + 1e-9);
            // The demerit is at least the difference of the means.
            prop_assert!(ab >= (mean(&a) - mean(&b)).abs() - 1e-9);
        }

        #[test]
        fn order_and_repetition_do_not_change_the_demerit(a in sample(), b in sample()) {
            let twice: Vec<_> = a.iter().rev().flat_map(|ms| [*ms; 2]).collect();
            prop_assert!((demerit_ms(&twice, &b) - demerit_ms(&a, &b)).abs() < 1e-9);
        }

        #[test]
        fn pairing_never_beats_sorting(pairs in prop::collection::vec((0.0..100.0, 0.0..100.0), 1..60)) {
            let (simulated, measured): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            prop_assert!(demerit_ms(&simulated, &measured) <= paired_rms_ms(&simulated, &measured) + 1e-9);
        }
    }
}
