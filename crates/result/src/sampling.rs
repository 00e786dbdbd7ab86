//! [`Sampling`]: steady-state confidence intervals from a single run, or why the run is too short for them.
//!
//! The means of batches of successive requests are tested for correlation. The interval is computed from batches four
//! times as long as those that passed, and corrected for skewness and for correlation that the test may have missed.
//! These are the steps of N-Skart (Tafazzoli, Steiger and Wilson, 2011), on batches that are collected during the run.
//! The warm-up is left out: by the levels of the system's caches, and by MSER (White, 1997) if the test of Heidelberger
//! and Welch (1983) finds that the beginning differs. docs/sampling.md documents the choices and their validation.

use serde::{Deserialize, Serialize};

use crate::LatencyHistogram;
use crate::batches::{Batches, Binned, FREE_FLASH, LEVEL_NAMES, MIN_BATCHES};

/// The percentiles for which an interval is computed.
pub const PERCENTS: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// Numbers of batches that are tested for independence, largest first.
const TESTED: [usize; 3] = [64, 32, 16];
/// Ratio of the length of the interval's batches to that of the tested batches. N-Skart uses two; a ratio of four
/// halves hidden correlation again, because correlated batches of a run that looks calm by chance can pass the test.
const BATCH_LENGTH_FACTOR: usize = 4;
/// Normal quantile for the test's one-sided level of 20 %, as in N-Skart.
const VON_NEUMANN_Z: f64 = 0.841_621_233_572_914;
/// Upper limit of the correlation that is corrected for.
const CORRELATION_MAX: f64 = 0.6;
/// The 99 % point of the Cramér-von Mises statistic of a Brownian bridge (Anderson and Darling, 1952).
const CRAMER_VON_MISES_99: f64 = 0.743_46;
/// Largest relative change of a level that counts as constant, while the number of requests served grows by a factor of
/// e.
const LEVEL_DRIFT_MAX: f64 = 0.01;
/// Number of standard deviations (of the sum of its steps) by which a level must move to count as changed.
const LEVEL_SIGMAS: f64 = 3.0;
/// Minimum number of events that determine a figure. A rate of rare events that were observed three times is uncertain
/// by a factor of four (Poisson, 95 %: 0.6 to 8.8).
const EVENTS_MIN: usize = 4;
/// Share of the variance between batches above which a few events dominate.
const DECISIVE: f64 = 0.5;
/// Relative change of the mean below which events are immaterial: repeated measurements of one device differ by as
/// much.
const MATERIAL: f64 = 0.02;
/// Minimum number of requests above a percentile for an estimate of that percentile.
const BEYOND_MIN: f64 = 10.0;

/// The confidence interval of a figure in the steady state, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Estimate {
    /// The 95 % confidence interval.
    Between {
        /// Lower bound, in ns.
        low_ns: f64,
        /// Upper bound, in ns.
        high_ns: f64,
    },
    /// No interval, with the reason.
    TooShort(TooShort),
}

impl Estimate {
    /// Returns the half-width of the interval, in ns; `None` without an interval.
    pub fn half_width_ns(&self) -> Option<f64> {
        self.between_ns().map(|(low_ns, high_ns)| (high_ns - low_ns) / 2.0)
    }

    /// Returns the bounds of the interval, in ns; `None` without an interval.
    pub fn between_ns(&self) -> Option<(f64, f64)> {
        match *self {
            Estimate::Between { low_ns, high_ns } => Some((low_ns, high_ns)),
            Estimate::TooShort(_) => None,
        }
    }
}

/// The reason why there is no confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TooShort {
    /// The run has fewer requests than the minimum number of batches.
    FewRequests,
    /// The fill level of a write cache still changed.
    WriteCacheMoves,
    /// The fill level of a read cache still changed.
    ReadCacheMoves,
    /// The fill level of flash or of a disk's media cache still changed.
    MediaCacheMoves,
    /// A virtual array still moved data between its levels.
    PoolMoves,
    /// An SSD still wrote to erased flash, and garbage collection had not begun.
    FreeFlashFalls,
    /// Response times drifted during the whole run.
    Drifts,
    /// Slow phases last longer than a batch.
    Correlated,
    /// Too few requests were above the percentile.
    FewBeyond,
    /// A few events, such as device stalls, dominate the figure.
    FewEvents,
    /// Requests pile up, so there is no steady state.
    Saturated,
    /// Not computed for several threads.
    SeveralThreads,
    /// Not computed for operations on files and directories.
    FileOperations,
    /// Not recorded by the version that wrote the result.
    NotKept,
}

impl TooShort {
    fn for_level(level: usize) -> TooShort {
        const BY_LEVEL: [TooShort; LEVEL_NAMES.len()] = [
            TooShort::WriteCacheMoves,
            TooShort::ReadCacheMoves,
            TooShort::MediaCacheMoves,
            TooShort::PoolMoves,
            TooShort::FreeFlashFalls,
        ];
        BY_LEVEL[level]
    }

    /// Returns the code of the reason in results, such as `few_beyond`.
    pub fn code(self) -> String {
        let code = serde_json::to_value(self).expect("the reason can be written as JSON");
        code.as_str().expect("a variant without fields is a string").to_owned()
    }

    /// Returns the reason as text.
    pub fn describe(self) -> String {
        let moves = |level: usize| format!("run too short: {} still changed", LEVEL_NAMES[level]);
        match self {
            TooShort::FewRequests => "run too short: fewer than 64 requests".to_owned(),
            TooShort::WriteCacheMoves => moves(0),
            TooShort::ReadCacheMoves => moves(1),
            TooShort::MediaCacheMoves => moves(2),
            TooShort::PoolMoves => moves(3),
            TooShort::FreeFlashFalls => {
                "not steady: writes used up erased flash, and garbage collection has not begun".to_owned()
            }
            TooShort::Drifts => "run too short: response times drifted during the whole run".to_owned(),
            TooShort::Correlated => "run too short: response times are correlated over too long a time".to_owned(),
            TooShort::FewBeyond => "run too short: too few requests above this percentile".to_owned(),
            TooShort::FewEvents => "run too short: a few events, such as stalls, dominate".to_owned(),
            TooShort::Saturated => "no steady state: the queue keeps growing".to_owned(),
            TooShort::SeveralThreads => "not computed for several threads".to_owned(),
            TooShort::FileOperations => "not computed for operations on files".to_owned(),
            TooShort::NotKept => "not recorded by the version that wrote this result".to_owned(),
        }
    }
}

/// Confidence intervals of the steady state from a single run. They cover only the sampling error, not the error of the
/// model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// Measured requests that turned out to belong to the warm-up. The intervals exclude them; all other figures of the
    /// result include them.
    pub warm_up_requests: u64,
    /// Confidence interval of the mean response time.
    pub mean: Estimate,
    /// Confidence intervals of the percentiles 50, 90, 95, 99 and 99.9.
    pub percentiles: Vec<Percentile>,
}

/// The confidence interval of a percentile of the response times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Percentile {
    /// The percentile, 0 to 100.
    pub percent: f64,
    /// Confidence interval of the percentile's value.
    pub value: Estimate,
}

impl Sampling {
    /// Returns a sampling without intervals, for the reason `why`.
    pub fn nothing(why: TooShort) -> Sampling {
        let percentile = |percent| Percentile { percent, value: Estimate::TooShort(why) };
        let percentiles = PERCENTS.into_iter().map(percentile).collect();
        Sampling { warm_up_requests: 0, mean: Estimate::TooShort(why), percentiles }
    }

    /// Computes all intervals from the batches of a run; `responses` are all measured latencies. With `is_device`, rare
    /// events are not taken for warm-up, and no interval depends on them.
    pub fn of(batches: &Batches, responses: &LatencyHistogram, is_device: bool) -> Sampling {
        let first = match warm_up(batches, &calm_means(batches, is_device)) {
            Ok(first) => first,
            Err(why) => return Sampling::nothing(why),
        };
        let binned = batches.distribution(first);
        let percentile = |percent| Percentile {
            percent,
            value: estimate(percentile(batches, &binned, first, percent / 100.0, responses, is_device)),
        };
        Sampling {
            warm_up_requests: first as u64 * batches.batch_len(),
            mean: estimate(mean_from(batches, first, is_device)),
            percentiles: PERCENTS.into_iter().map(percentile).collect(),
        }
    }

    /// Computes only the confidence interval of the mean.
    pub fn for_mean(batches: &Batches, is_device: bool) -> Estimate {
        let first = warm_up(batches, &calm_means(batches, is_device));
        estimate(first.and_then(|first| mean_from(batches, first, is_device)))
    }

    /// Returns all numbers of the intervals, which must be representable in JSON.
    pub(crate) fn figures(&self) -> impl Iterator<Item = f64> + '_ {
        let known = std::iter::once(&self.mean).chain(self.percentiles.iter().map(|percentile| &percentile.value));
        known.filter_map(Estimate::between_ns).flat_map(|(low_ns, high_ns)| [low_ns, high_ns])
    }
}

fn estimate(computed: Result<(f64, f64), TooShort>) -> Estimate {
    match computed {
        Ok((low_ns, high_ns)) => Estimate::Between { low_ns, high_ns },
        Err(why) => Estimate::TooShort(why),
    }
}

/// Returns the interval of the mean. With long latencies, errors are proportional to the mean: a run that saw few long
/// latencies underestimates both the mean and the error. The error is therefore taken relative to the mean, as an
/// interval of its logarithm.
fn mean_from(batches: &Batches, first: usize, is_device: bool) -> Result<(f64, f64), TooShort> {
    // All figures include every measured request, so an early event that counts as warm-up by chance affects them too.
    let all = batches.means_ns();
    if is_device && !(events(&all).is_empty() && events(&all[first..]).is_empty()) {
        return Err(TooShort::FewEvents);
    }
    let Spread { mean, down, up } = Spread::of(&all[first..]).ok_or(TooShort::Correlated)?;
    if mean <= 0.0 {
        return Ok((0.0, 0.0));
    }
    Ok((mean * libm::exp(-down / mean), mean * libm::exp(up / mean)))
}

/// Returns the interval of a quantile, computed from the interval of the share of requests above it and the inverse of
/// the distribution (Heidelberger and Lewis, 1984, by batches). The share is counted at the nearest bin boundary.
fn percentile(
    batches: &Batches,
    binned: &[Binned],
    first: usize,
    quantile: f64,
    responses: &LatencyHistogram,
    is_device: bool,
) -> Result<(f64, f64), TooShort> {
    let requests = ((batches.complete() - first) as u64 * batches.batch_len()) as f64;
    if (1.0 - quantile) * requests < BEYOND_MIN {
        return Err(TooShort::FewBeyond);
    }
    let distance = |share: f64| (share - quantile).abs();
    let border = binned.iter().min_by(|one, other| distance(one.share).total_cmp(&distance(other.share)));
    let border = border.expect("a complete batch has a used bin");
    // The boundary must be so close that slow phases at it are slow phases at the quantile too.
    let near = |share: f64, wanted: f64| (0.5..=2.0).contains(&(share / wanted));
    if !(near(1.0 - border.share, 1.0 - quantile) && near(border.share, quantile)) {
        let bin = binned.iter().find(|bin| bin.share >= quantile).expect("the last bin includes all requests");
        let (least_ns, most_ns) = (responses.min_ns() as f64, responses.max_ns() as f64);
        return Ok(((bin.begins_ns as f64).max(least_ns), (bin.ends_ns as f64).min(most_ns)));
    }
    let shares = batches.shares_beyond(first, border.bin);
    if is_device && !events(&shares).is_empty() {
        return Err(TooShort::FewEvents);
    }
    let spread = Spread::of(&shares).ok_or(TooShort::Correlated)?;
    let scale = (quantile * (1.0 - quantile) / (border.share * (1.0 - border.share))).sqrt();
    let (low, high) = (quantile - scale * spread.down, quantile + scale * spread.up);
    if high > 1.0 - 1.0 / requests {
        return Err(TooShort::FewBeyond);
    }
    let at = |share: f64| {
        if first == 0 {
            return responses.quantile_ns(share).map(|ns| ns as f64);
        }
        let share = share.max(f64::MIN_POSITIVE);
        let after = binned.partition_point(|bin| bin.share < share);
        let before = after.checked_sub(1).map_or(0.0, |before| binned[before].share);
        let bin = binned.get(after)?;
        let within = (share - before) / (bin.share - before);
        Some(bin.begins_ns as f64 + within * (bin.ends_ns - bin.begins_ns) as f64)
    };
    at(low).zip(at(high)).ok_or(TooShort::FewBeyond)
}

/// Returns the batches that cause half of the variance about the median and move the mean, if they are fewer than
/// [`EVENTS_MIN`]; otherwise an empty list.
fn events(series: &[f64]) -> Vec<usize> {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted[sorted.len() / 2];
    let mut squares: Vec<(f64, usize)> =
        series.iter().enumerate().map(|(place, value)| ((value - middle).powi(2), place)).collect();
    squares.sort_by(|one, other| other.0.total_cmp(&one.0));
    let all: f64 = squares.iter().map(|(square, _)| square).sum();
    let few: f64 = squares.iter().take(EVENTS_MIN - 1).map(|(square, _)| square).sum();
    let sum: f64 = series.iter().sum();
    let moved: f64 = squares.iter().take(EVENTS_MIN - 1).map(|&(_, place)| series[place] - middle).sum();
    if few <= DECISIVE * all || moved.abs() <= MATERIAL * sum {
        return Vec::new();
    }
    squares.into_iter().take(EVENTS_MIN - 1).map(|(_, place)| place).collect()
}

/// Returns the mean latency of each batch in ns. On a device, batches with rare events get the median instead, so that
/// they do not affect the detection of the warm-up.
fn calm_means(batches: &Batches, is_device: bool) -> Vec<f64> {
    let mut means = batches.means_ns();
    if is_device && !means.is_empty() {
        let mut sorted = means.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted[sorted.len() / 2];
        events(&means).into_iter().for_each(|place| means[place] = middle);
    }
    means
}

/// Returns the first batch after the warm-up: from there on every level is constant, and the batch means `means` are
/// stationary.
fn warm_up(batches: &Batches, means: &[f64]) -> Result<usize, TooShort> {
    if batches.complete() < MIN_BATCHES {
        return Err(TooShort::FewRequests);
    }
    if free_flash_falls(batches) {
        return Err(TooShort::FreeFlashFalls);
    }
    let mut first = 0;
    for level in 0..LEVEL_NAMES.len() {
        first = first.max(first_constant_batch(batches, level)?);
    }
    let means = &means[first..];
    let Some(variance) = variance_of_late(means) else {
        return Err(TooShort::Drifts);
    };
    if cramer_von_mises(means, variance) < CRAMER_VON_MISES_99 {
        return Ok(first);
    }
    let cut = mser(means);
    if cut > means.len() / 2 || cramer_von_mises(&means[cut..], variance) >= CRAMER_VON_MISES_99 {
        return Err(TooShort::Drifts);
    }
    Ok(first + cut)
}

/// Returns the first batch at whose start the level was already within its range in the second half of the run.
fn first_constant_batch(batches: &Batches, level: usize) -> Result<usize, TooShort> {
    let (before, levels) = batches.level(level);
    let middle = levels.len() / 2;
    let late = &levels[middle - 1..];
    let (moved, steps) = moved_and_steps(late);
    let most = late.iter().copied().max().unwrap_or(0).max(1) as f64;
    let growth = batches.requests_served(levels.len()) as f64 / batches.requests_served(middle) as f64;
    if moved.powi(2) > LEVEL_SIGMAS.powi(2) * steps && moved.abs() / most >= LEVEL_DRIFT_MAX * libm::log(growth) {
        return Err(TooShort::for_level(level));
    }
    let (least, most) = late.iter().fold((u64::MAX, 0), |(least, most), &level| (least.min(level), most.max(level)));
    let at_begin = std::iter::once(before).chain(levels);
    Ok(at_begin.take_while(|level| !(least..=most).contains(level)).count())
}

/// Returns whether an SSD's erased flash falls at all during the second half of the run.
fn free_flash_falls(batches: &Batches) -> bool {
    let (_, levels) = batches.level(FREE_FLASH);
    let (moved, steps) = moved_and_steps(&levels[levels.len() / 2 - 1..]);
    moved < 0.0 && moved.powi(2) > LEVEL_SIGMAS.powi(2) * steps
}

/// Returns the total change of a level, and the sum of the squares of its steps.
fn moved_and_steps(levels: &[u64]) -> (f64, f64) {
    let moved = levels[levels.len() - 1] as f64 - levels[0] as f64;
    (moved, levels.windows(2).map(|step| (step[1] as f64 - step[0] as f64).powi(2)).sum())
}

/// Returns the long-run variance of the batch means, estimated from their second half in groups of four.
fn variance_of_late(means: &[f64]) -> Option<f64> {
    let late = paired(&means[means.len() / 2..], 4);
    let (_, variance) = mean_and_variance(&late);
    let variance = 4.0 * variance * inflation(&late);
    variance.is_finite().then_some(variance)
}

/// Returns the Cramér-von Mises statistic: how far the cumulative sums of a series deviate from a straight line.
fn cramer_von_mises(means: &[f64], variance: f64) -> f64 {
    let (mean, own_variance) = mean_and_variance(means);
    if own_variance == 0.0 {
        return 0.0;
    }
    let mut sum = 0.0;
    let squares: f64 = means
        .iter()
        .map(|value| {
            sum += value - mean;
            sum * sum
        })
        .sum();
    squares / (means.len() as f64).powi(2) / variance
}

/// Returns the cut that minimizes the standard error of the remaining batches.
fn mser(means: &[f64]) -> usize {
    let (mut sum, mut squares, mut best) = (0.0, 0.0, (f64::INFINITY, 0));
    let (mean, _) = mean_and_variance(means);
    for (left, (at, value)) in means.iter().enumerate().rev().enumerate() {
        let count = (left + 1) as f64;
        sum += value - mean;
        squares += (value - mean).powi(2);
        let error = (squares - sum * sum / count) / (count * count);
        // The last few cuts are unreliable: White, Cobb and Spratt exclude five.
        if left >= 5 && error <= best.0 {
            best = (error, at);
        }
    }
    best.1
}

/// Mean of a series of batch means, and the distances from it to the interval's lower and upper bounds.
struct Spread {
    mean: f64,
    down: f64,
    up: f64,
}

impl Spread {
    /// Computes the mean and its margins; `None` if even long batches are correlated.
    fn of(series: &[f64]) -> Option<Spread> {
        let tested = TESTED.into_iter().filter(|&tested| series.len() >= tested);
        let batches =
            tested.map(|tested| paired(series, series.len() / tested)).find(|batches| are_independent(batches))?;
        let (mean, _) = mean_and_variance(series);
        let longer = paired(&batches, BATCH_LENGTH_FACTOR);
        let (_, variance) = mean_and_variance(&longer);
        let error = (variance * inflation(&longer) / longer.len() as f64).sqrt();
        let skew = skewness(&batches) / (6.0 * (batches.len() as f64).sqrt());
        let t = student_t_975(longer.len() as f64 - 1.0);
        let (down, up) = (skewed(t, skew) * error, -skewed(-t, skew) * error);
        // With a strong skew the cube root can change sign, so the margins are kept from becoming negative.
        Some(Spread { mean, down: down.max(0.0), up: up.max(0.0) })
    }
}

/// Returns the means of `count` successive values each, grouped from the end; a remainder at the beginning is dropped.
fn paired(series: &[f64], count: usize) -> Vec<f64> {
    series[series.len() % count..].chunks(count).map(|chunk| chunk.iter().sum::<f64>() / count as f64).collect()
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0))
}

/// Returns whether von Neumann's ratio shows no correlation between neighbors.
fn are_independent(values: &[f64]) -> bool {
    let count = values.len() as f64;
    let (_, variance) = mean_and_variance(values);
    if variance == 0.0 {
        return true;
    }
    let differences: f64 = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let ratio = 1.0 - differences / (2.0 * variance * (count - 1.0));
    ratio * ((count * count - 1.0) / (count - 2.0)).sqrt() < VON_NEUMANN_Z
}

/// Returns the factor by which correlation increases the variance of a mean, assuming a first-order autoregressive
/// process.
fn inflation(values: &[f64]) -> f64 {
    let (mean, variance) = mean_and_variance(values);
    if variance == 0.0 {
        return 1.0;
    }
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let count = values.len() as f64;
    // The estimated correlation is too low by about 1/n for n values.
    let correlation = (products / (variance * (count - 1.0)) + 1.0 / count).clamp(0.0, CORRELATION_MAX);
    (1.0 + correlation) / (1.0 - correlation)
}

/// Returns the sample skewness, with a correction that is unbiased for normal samples.
fn skewness(values: &[f64]) -> f64 {
    let (mean, variance) = mean_and_variance(values);
    if variance == 0.0 {
        return 0.0;
    }
    let count = values.len() as f64;
    let cubes: f64 = values.iter().map(|value| (value - mean).powi(3)).sum();
    cubes * count / ((count - 1.0) * (count - 2.0) * libm::pow(variance, 1.5))
}

/// Returns Student's t adjusted for a skewed sample (Hall, 1992; Willink, 2005). `skew` is the sample's skewness
/// divided by 6 sqrt(n).
fn skewed(t: f64, skew: f64) -> f64 {
    if skew.abs() < 1e-6 { t } else { (libm::cbrt(1.0 + 6.0 * skew * (t - skew)) - 1.0) / (2.0 * skew) }
}

/// Returns the 97.5 % point of Student's t, by expansion about the normal quantile (Abramowitz and Stegun 26.7.5). It
/// is accurate to one part in 800 for 3 or more degrees of freedom.
fn student_t_975(degrees: f64) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    let (z3, z5, z7, z9) = (Z.powi(3), Z.powi(5), Z.powi(7), Z.powi(9));
    Z + (z3 + Z) / (4.0 * degrees)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * degrees.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / (384.0 * degrees.powi(3))
        + (79.0 * z9 + 776.0 * z7 + 1482.0 * z5 - 1920.0 * z3 - 945.0 * Z) / (92160.0 * degrees.powi(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the printed table of the 97.5 % points.
    #[test]
    fn students_t_is_that_of_the_tables() {
        let table = [(3.0, 3.182_446, 2e-3), (5.0, 2.570_582, 2e-4), (10.0, 2.228_139, 1e-5), (30.0, 2.042_272, 1e-6)];
        for (degrees, exact, within) in table {
            let t = student_t_975(degrees);
            assert!((t / exact - 1.0).abs() < within, "{degrees} degrees of freedom: {t}, not {exact}");
        }
    }

    #[test]
    fn equal_values_have_neither_skewness_nor_correlation() {
        assert_eq!((skewness(&[5.0; 10]), inflation(&[5.0; 10])), (0.0, 1.0));
    }

    #[test]
    fn a_level_that_moves_is_named() {
        for (level, name) in LEVEL_NAMES.iter().enumerate().filter(|&(level, _)| level != FREE_FLASH) {
            let words = TooShort::for_level(level).describe();
            assert_eq!(words, format!("run too short: {name} still changed"));
        }
    }

    /// White's rule as published: the cut that minimizes the sum of squares about the mean of the remaining values,
    /// divided by the square of their number.
    #[test]
    fn the_warm_up_ends_at_the_least_standard_error() {
        let error = |rest: &[f64]| {
            let mean = rest.iter().sum::<f64>() / rest.len() as f64;
            rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
        };
        for begin in 0..20 {
            let series: Vec<f64> =
                (0..60).map(|at| (at * at * 7 % 13) as f64 + if at < begin { 40.0 - at as f64 } else { 0.0 }).collect();
            let cuts = 0..series.len() - 5;
            let least = cuts.min_by(|&a, &b| error(&series[a..]).total_cmp(&error(&series[b..]))).unwrap();
            assert_eq!(mser(&series), least, "{begin} at the beginning");
            // The cut does not depend on the unit.
            let small: Vec<f64> = series.iter().map(|value| value / 1_024.0).collect();
            assert_eq!(mser(&small), least, "{begin} at the beginning");
        }
    }

    fn assert_near(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value}, not {expected}");
    }

    #[test]
    fn batches_are_paired_from_the_last_backwards() {
        assert_eq!(paired(&[9.0, 1.0, 3.0, 5.0, 7.0], 2), [2.0, 6.0]);
        assert_eq!(paired(&[1.0, 3.0], 1), [1.0, 3.0]);
    }

    /// Figures of an independent calculation in Python, by the published formulas.
    #[test]
    fn moments_of_a_sample_are_those_of_the_formulas() {
        assert_eq!(mean_and_variance(&[1.0, 2.0, 6.0]), (3.0, 7.0));
        assert_near(skewness(&[1.0, 2.0, 3.0, 10.0]), 1.763_632_614_803_888_4);
        // A correlation of 0.55, and of 0.07; 0.9 counts as 0.6, and a negative one as none.
        assert_near(inflation(&[1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0, 2.0]), 3.444_444_444_444_445);
        assert_near(inflation(&[1.0, 3.0, 2.0, 4.0, 3.0, 5.0, 2.0, 1.0]), 1.150_121_065_375_303);
        assert_near(inflation(&(0..20).map(f64::from).collect::<Vec<_>>()), 4.0);
        assert_eq!(inflation(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0]), 1.0);
        assert_near(skewed(2.0, 0.1), 1.443_293_712_710_488_3);
        assert_near(skewed(-2.0, 0.1), -8.191_252_149_429_955);
        assert_near(skewed(2.0, -0.2), 5.448_184_269_985_183);
        assert_eq!((skewed(2.0, 9e-7), skewed(2.0, -9e-7)), (2.0, 2.0));
        assert_ne!(skewed(2.0, 1.1e-6), 2.0);
    }

    /// Two series on either side of von Neumann's ratio at the 20 % level: 0.836 and 0.845, where 0.842 is the limit.
    #[test]
    fn neighbours_are_correlated_above_the_level_of_the_test() {
        assert!(are_independent(&[8.0, 9.0, 9.0, 5.0, 7.0, 9.0, 0.0, 3.0]));
        assert!(!are_independent(&[8.0, 5.0, 6.0, 4.0, 5.0, 5.0, 4.0, 5.0]));
        assert!(are_independent(&[4.0; 8]));
    }

    #[test]
    fn deviations_from_a_straight_line_are_summed_up() {
        // Deviations -1.5, -2, -1.5, 0: squares of 8.5, divided by 16 and by the variance of 2.
        assert_eq!(cramer_von_mises(&[1.0, 2.0, 3.0, 4.0], 2.0), 8.5 / 32.0);
        assert_eq!(cramer_von_mises(&[4.0, 1.0, 5.0, 0.0, 0.0], 0.5), 2.0);
        assert_eq!(cramer_von_mises(&[4.0; 5], 0.0), 0.0);
        // In groups of four, from the second half.
        let series = |count: usize| (0..count).map(|at| (at * at * 7 % 13) as f64).collect::<Vec<_>>();
        assert_near(variance_of_late(&series(64)).unwrap(), 2.745_535_714_285_714_4);
        assert_near(variance_of_late(&series(75)).unwrap(), 7.298_611_111_111_111);
    }

    /// Figures of an independent calculation in Python.
    #[test]
    fn the_error_of_a_mean_is_that_of_the_shortest_independent_batches() {
        let spread = |series: Vec<usize>| {
            let series: Vec<f64> = series.into_iter().map(|value| value as f64).collect();
            Spread::of(&series).map(|Spread { mean, down, up }| [mean, down, up])
        };
        let assert_spread = |series, expected: [f64; 3]| {
            let estimate = spread(series).expect("independent batches");
            estimate.iter().zip(expected).for_each(|(&value, expected)| assert_near(value, expected));
        };
        let alone = (0..64).map(|at| at * at * 7 % 13).collect();
        assert_spread(alone, [5.984_375, 0.617_503_626_462_683_5, 0.596_115_324_206_386_1]);
        let few = (0..40).map(|at| 50 + at * at * 7 % 13).collect();
        assert_spread(few, [55.85, 0.960_477_173_962_210_9, 0.912_888_111_336_576_5]);
        let in_threes = (0..96).map(|at| (at / 3) * (at / 3) * 7 % 13 + at % 2).collect();
        assert_spread(in_threes, [6.437_5, 1.251_921_074_621_610_5, 1.166_918_039_776_016_6]);
        let in_fours = (0..64).map(|at| (at / 4) * (at / 4) * 7 % 13 + at % 2).collect();
        assert_spread(in_fours, [5.937_5, 1.957_705_162_067_837, 1.851_185_988_995_028_4]);
        assert!(spread((0..64).collect()).is_none(), "values that rise all along");
        assert!(spread((0..15).map(|at| at % 2).collect()).is_none(), "fewer than 16");
        assert_spread((0..16).map(|_| 3).collect(), [3.0, 0.0, 0.0]);
    }

    #[test]
    fn a_few_batches_that_decide_the_mean_are_events() {
        let series = |peaks: &[(usize, f64)]| {
            let mut series: Vec<f64> = (0..64).map(|at| 100.0 + (at % 2) as f64).collect();
            peaks.iter().for_each(|&(place, value)| series[place] = value);
            let mut estimate = events(&series);
            estimate.sort_unstable();
            estimate
        };
        assert!(series(&[]).is_empty(), "equal batches");
        let three = [(5, 900.0), (20, 800.0), (40, 700.0)];
        assert_eq!(series(&three), [5, 20, 40]);
        // Six of equal height: three of them have half of the variance, which is not more than half.
        assert!(series(&[1, 11, 21, 31, 41, 51].map(|place| (place, 501.0))).is_empty());
        assert_eq!(series(&[1, 11, 21, 31, 41].map(|place| (place, 501.0))).len(), 3);
        // Peaks that move the sum of 6,400 by less than 2 % of it are not material.
        assert!(series(&[(5, 150.0), (20, 150.0)]).is_empty());
        assert_eq!(series(&[(5, 200.0), (20, 200.0)]).len(), 3);
    }
}
