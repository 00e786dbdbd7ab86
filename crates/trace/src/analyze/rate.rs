//! Requests over time: [`Series`] for rates in time bins, [`Arrivals`] for burstiness at every time scale.

use serde::{Deserialize, Serialize};

use super::histogram::{Bin, Powers, Summary, Values};
use crate::record::{NOT_RECORDED, Operation, Record};

const S: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * S;
/// Bin lengths in ns. Each is a multiple of the previous one, so bins can be merged. One second is included so that
/// timestamps in whole seconds are distributed evenly.
const LADDER_NS: [u64; 25] = [
    10_000,
    20_000,
    100_000,
    200_000,
    1_000_000,
    2_000_000,
    10_000_000,
    20_000_000,
    100_000_000,
    200_000_000,
    S,
    2 * S,
    10 * S,
    20 * S,
    60 * S,
    120 * S,
    600 * S,
    1_200 * S,
    3_600 * S,
    7_200 * S,
    14_400 * S,
    DAY,
    10 * DAY,
    100 * DAY,
    1_000 * DAY,
];
/// Maximum number of bins of a series.
const BINS_MAX: usize = 2_000;
/// Minimum number of complete bins for a meaningful variance at a scale.
const BINS_MIN: u64 = 8;
/// Minimum number of complete bins for a point of the Hurst exponent fit.
const FIT_BINS_MIN: u64 = 32;
const FIT_POINTS_MIN: usize = 4;

/// Arrivals in a time bin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateBin {
    /// Number of requests.
    pub requests: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Bytes of all requests.
    pub bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Mean latency of the requests that arrived in the bin; null if none is recorded.
    pub mean_latency_ns: Option<f64>,
    /// Mean queue depth during the bin; null if no latency is recorded.
    pub mean_depth: Option<f64>,
}

/// Counters of a bin. Integers, so the order of summation does not matter.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Counts {
    requests: u64,
    reads: u64,
    writes: u64,
    bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
    responses: u64,
    response_ns: u128,
    depth_ns: u128,
}

impl Counts {
    fn merge(&mut self, other: &Counts) {
        self.requests += other.requests;
        self.reads += other.reads;
        self.writes += other.writes;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(other.written_bytes);
        self.responses += other.responses;
        self.response_ns += other.response_ns;
        self.depth_ns += other.depth_ns;
    }

    /// Returns the report of a bin of `length_ns`.
    fn report(&self, length_ns: u64, has_responses: bool) -> RateBin {
        RateBin {
            requests: self.requests,
            reads: self.reads,
            writes: self.writes,
            bytes: self.bytes,
            read_bytes: self.read_bytes,
            written_bytes: self.written_bytes,
            mean_latency_ns: (self.responses > 0).then(|| self.response_ns as f64 / self.responses as f64),
            mean_depth: (has_responses && length_ns > 0).then(|| self.depth_ns as f64 / length_ns as f64),
        }
    }
}

/// Rates over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateReport {
    /// Bin length, in ns. The first bin begins at the first arrival; the last bin ends with the trace.
    pub bin_ns: u64,
    /// All bins, including empty ones.
    pub bins: Vec<RateBin>,
}

/// Rates over time, in bins whose length grows with the trace.
#[derive(Serialize, Deserialize)]
pub(crate) struct Series {
    rung: usize,
    bins: Vec<Counts>,
}

impl Series {
    pub(crate) fn new() -> Series {
        Series { rung: 0, bins: Vec::new() }
    }

    #[inline]
    pub(crate) fn add(&mut self, since_start_ns: u64, record: &Record) {
        let bytes = u64::from(record.length_bytes);
        let bin = self.bin(since_start_ns);
        bin.requests += 1;
        bin.bytes = bin.bytes.saturating_add(bytes);
        match record.operation {
            Operation::Read => {
                bin.reads += 1;
                bin.read_bytes = bin.read_bytes.saturating_add(bytes);
            }
            Operation::Write => {
                bin.writes += 1;
                bin.written_bytes = bin.written_bytes.saturating_add(bytes);
            }
            _ => {}
        }
        if record.response_ns != NOT_RECORDED {
            bin.responses += 1;
            bin.response_ns += u128::from(record.response_ns);
        }
    }

    /// Adds a queue depth that lasted from `from_ns` to `to_ns`, relative to the start.
    pub(crate) fn add_depth(&mut self, from_ns: u64, to_ns: u64, depth: usize) {
        let mut at = from_ns;
        while at < to_ns {
            // Done first because it may lengthen the bins.
            self.bin(at);
            let width = LADDER_NS[self.rung];
            let end = (at / width + 1).saturating_mul(width).min(to_ns);
            self.bin(at).depth_ns += u128::from(end - at) * depth as u128;
            at = end;
        }
    }

    #[inline]
    fn bin(&mut self, at_ns: u64) -> &mut Counts {
        let mut index = (at_ns / LADDER_NS[self.rung]) as usize;
        if index >= self.bins.len() {
            while index >= BINS_MAX {
                self.coarsen();
                index = (at_ns / LADDER_NS[self.rung]) as usize;
            }
            self.bins.resize(self.bins.len().max(index + 1), Counts::default());
        }
        &mut self.bins[index]
    }

    fn coarsen(&mut self) {
        let factor = (LADDER_NS[self.rung + 1] / LADDER_NS[self.rung]) as usize;
        self.rung += 1;
        let sum = |bins: &[Counts]| {
            let mut sum = Counts::default();
            bins.iter().for_each(|bin| sum.merge(bin));
            sum
        };
        self.bins = self.bins.chunks(factor).map(sum).collect();
    }

    /// Merges a series with the same start.
    pub(crate) fn merge(&mut self, mut other: Series) {
        while self.rung < other.rung {
            self.coarsen();
        }
        while other.rung < self.rung {
            other.coarsen();
        }
        self.bins.resize(self.bins.len().max(other.bins.len()), Counts::default());
        self.bins.iter_mut().zip(&other.bins).for_each(|(bin, other)| bin.merge(other));
    }

    /// Returns bins no shorter than the clock's resolution. `last_ns` is the last arrival relative to the start.
    pub(crate) fn finish(mut self, resolution_ns: u64, last_ns: u64) -> RateReport {
        while LADDER_NS[self.rung] < resolution_ns && self.rung + 1 < LADDER_NS.len() {
            self.coarsen();
        }
        let width = LADDER_NS[self.rung];
        let has_responses = self.bins.iter().any(|bin| bin.responses > 0);
        let length_ns = |index: usize| width.min(last_ns.saturating_sub(index as u64 * width));
        let bins = self.bins.iter().enumerate().map(|(index, bin)| bin.report(length_ns(index), has_responses));
        RateReport { bin_ns: width, bins: bins.collect() }
    }
}

/// Number of requests per bin, for one bin length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScaleReport {
    /// Bin length, in ns.
    pub bin_ns: u64,
    /// Number of bins, including empty ones and the last, shorter bin.
    pub bins: u64,
    /// Mean number of requests per bin length over the whole trace.
    pub mean: f64,
    /// Maximum number of requests in a bin, divided by the mean.
    pub peak_over_mean: f64,
    /// Variance of the requests per bin, divided by their mean: 1 for Poisson arrivals at every bin length. The last
    /// bin counts in proportion to its length.
    pub index_of_dispersion: f64,
}

/// Self-similarity, from the variance of mean rates over bins of increasing length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HurstReport {
    /// Hurst exponent: 0.5 if counts of distant bins are independent; closer to 1 the longer bursts last.
    pub exponent: f64,
    /// Shortest bin length of the fit, in ns.
    pub from_ns: u64,
    /// Longest bin length of the fit, in ns.
    pub to_ns: u64,
    /// Number of bin lengths in the fit.
    pub points: u32,
    /// Share of the variance explained by the fitted line (R squared).
    pub r_squared: f64,
}

/// The arrival process. Figures below the clock's resolution are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ArrivalReport {
    /// Mean gap between requests, in ns; null if there is only one request.
    pub mean_gap_ns: Option<f64>,
    /// Coefficient of variation of the gaps: 1 for Poisson arrivals, 0 for regular ones.
    pub gap_variation: Option<f64>,
    /// Percentiles of the gaps, in ns.
    pub gaps_ns: Option<Summary>,
    /// Histogram of the gaps by powers of two.
    pub gap_histogram_ns: Option<Vec<Bin>>,
    /// Number of requests per bin, by increasing bin length.
    pub scales: Vec<ScaleReport>,
    /// Self-similarity; null if there are too few bins to fit.
    pub hurst: Option<HurstReport>,
}

/// Bins of one length: the current bin, and statistics of earlier bins.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Scale {
    index: u64,
    count: u64,
    /// Index of the first complete bin, and its requests. The bin may have begun in an earlier part of the trace.
    first: Option<(u64, u64)>,
    sum: u64,
    squares: u128,
    peak: u64,
}

impl Scale {
    /// Adds the current bin to the statistics.
    fn book(&mut self) {
        let count = std::mem::take(&mut self.count);
        if self.first.is_none() {
            self.first = Some((self.index, count));
        } else {
            self.add(count);
        }
    }

    fn add(&mut self, count: u64) {
        self.sum += count;
        self.squares += u128::from(count).pow(2);
        self.peak = self.peak.max(count);
    }

    fn merge(&mut self, later: &Scale) {
        let (index, count) = later.first.unwrap_or((later.index, later.count));
        if self.index != index {
            self.book();
            self.index = index;
        }
        self.count += count;
        if later.first.is_some() {
            self.book();
            self.sum += later.sum;
            self.squares += later.squares;
            self.peak = self.peak.max(later.peak);
            (self.index, self.count) = (later.index, later.count);
        }
    }
}

/// Gaps between arrivals, and counts in bins of every length.
#[derive(Serialize, Deserialize)]
pub(crate) struct Arrivals {
    first_ns: Option<u64>,
    last_ns: u64,
    gaps: Values,
    powers: Powers,
    gap_squares: u128,
    scales: [Scale; LADDER_NS.len()],
    /// Whether each scale's current bin includes the counts of unfinished shorter bins.
    is_settled: bool,
}

impl Arrivals {
    pub(crate) fn new() -> Arrivals {
        Arrivals {
            first_ns: None,
            last_ns: 0,
            gaps: Values::new(),
            powers: Powers::new(),
            gap_squares: 0,
            scales: [Scale::default(); LADDER_NS.len()],
            is_settled: false,
        }
    }

    /// Adds a request.
    #[inline]
    pub(crate) fn add(&mut self, since_start_ns: u64) {
        if self.first_ns.is_some() {
            self.add_gap(since_start_ns);
        } else {
            self.first_ns = Some(since_start_ns);
            for (scale, bin_ns) in self.scales.iter_mut().zip(LADDER_NS) {
                scale.index = since_start_ns / bin_ns;
            }
        }
        self.last_ns = since_start_ns;
        let index = since_start_ns / LADDER_NS[0];
        if index != self.scales[0].index {
            self.close(0);
            self.scales[0].index = index;
        }
        self.scales[0].count += 1;
    }

    /// Returns the first arrival, if any.
    pub(crate) fn first_ns(&self) -> Option<u64> {
        self.first_ns
    }

    #[inline]
    fn add_gap(&mut self, until_ns: u64) {
        let gap_ns = until_ns - self.last_ns;
        self.gaps.add(gap_ns);
        self.powers.add(gap_ns);
        self.gap_squares += u128::from(gap_ns).pow(2);
    }

    /// Completes a bin, and closes longer bins that end at the same time.
    fn close(&mut self, level: usize) {
        let scale = &mut self.scales[level];
        let (count, closed) = (scale.count, scale.index);
        scale.book();
        if level + 1 == LADDER_NS.len() {
            return;
        }
        let index = closed / (LADDER_NS[level + 1] / LADDER_NS[level]);
        if self.scales[level + 1].index != index {
            self.close(level + 1);
            self.scales[level + 1].index = index;
        }
        self.scales[level + 1].count += count;
    }

    /// Brings every scale up to the last arrival. Nothing may be added afterwards.
    fn settle(&mut self) {
        if std::mem::replace(&mut self.is_settled, true) {
            return;
        }
        // Bins before the one with the last arrival are complete.
        for (level, bin_ns) in LADDER_NS.into_iter().enumerate() {
            let index = self.last_ns / bin_ns;
            if self.scales[level].index < index {
                self.close(level);
                self.scales[level].index = index;
            }
        }
        // The last bin of each length also includes the counts that shorter bins have not passed on yet.
        for level in 1..LADDER_NS.len() {
            self.scales[level].count += self.scales[level - 1].count;
        }
    }

    /// Appends a later part with the same start.
    pub(crate) fn merge(&mut self, mut later: Arrivals) {
        let Some(first_ns) = later.first_ns else { return };
        self.settle();
        later.settle();
        if self.first_ns.is_some() {
            self.add_gap(first_ns);
        }
        self.first_ns.get_or_insert(first_ns);
        self.last_ns = later.last_ns;
        self.gaps.merge(&later.gaps);
        self.powers.merge(&later.powers);
        self.gap_squares += later.gap_squares;
        self.scales.iter_mut().zip(&later.scales).for_each(|(scale, later)| scale.merge(later));
    }

    pub(crate) fn finish(mut self, resolution_ns: u64) -> ArrivalReport {
        self.settle();
        for scale in &mut self.scales {
            if let Some((_, count)) = scale.first.take() {
                scale.add(count);
            }
        }
        let gaps = self.gaps.summary();
        let mean_gap_ns = gaps.map(|gaps| gaps.mean);
        let is_fine = mean_gap_ns.is_some_and(|mean| mean >= resolution_ns as f64 && mean > 0.0);
        let variation = gaps.map(|gaps| {
            let variance = self.gap_squares as f64 / gaps.count as f64 - gaps.mean.powi(2);
            variance.max(0.0).sqrt() / gaps.mean
        });
        let scales: Vec<ScaleReport> = (0..LADDER_NS.len())
            .filter(|&level| LADDER_NS[level] >= resolution_ns)
            .filter_map(|level| self.scale(level, resolution_ns))
            .collect();
        ArrivalReport {
            mean_gap_ns,
            gap_variation: variation.filter(|_| is_fine),
            gaps_ns: gaps.filter(|_| is_fine),
            gap_histogram_ns: is_fine.then(|| self.powers.bins()),
            hurst: hurst(&scales, mean_gap_ns.unwrap_or(0.0)),
            scales,
        }
    }

    /// Returns the report of one bin length. The trace ends one step of its clock after its last arrival.
    fn scale(&self, level: usize, resolution_ns: u64) -> Option<ScaleReport> {
        let (bin_ns, scale) = (LADDER_NS[level], &self.scales[level]);
        let complete = self.last_ns / bin_ns;
        let bins_long = (self.last_ns + resolution_ns.max(1)) as f64 / bin_ns as f64;
        let mean = (scale.sum + scale.count) as f64 / bins_long;
        let of_complete = scale.squares as f64 - 2.0 * mean * scale.sum as f64 + mean.powi(2) * complete as f64;
        let of_last = (scale.count as f64 - mean * (bins_long - complete as f64)).powi(2);
        let variance = (of_complete + of_last).max(0.0) / bins_long;
        (complete >= BINS_MIN && mean > 0.0).then(|| ScaleReport {
            bin_ns,
            bins: complete + 1,
            mean,
            peak_over_mean: scale.peak.max(scale.count) as f64 / mean,
            index_of_dispersion: variance / mean,
        })
    }
}

/// Fits the Hurst exponent H by the aggregated variance method: the variance of mean rates is proportional to the bin
/// length to the power of 2H - 2.
///
/// Uses only bin lengths with at least one expected request. In shorter bins, counts are 0 or 1 and carry no
/// information on dependence.
fn hurst(scales: &[ScaleReport], mean_gap_ns: f64) -> Option<HurstReport> {
    let fitted: Vec<&ScaleReport> = scales
        .iter()
        .filter(|scale| scale.bins >= FIT_BINS_MIN && scale.bin_ns as f64 >= mean_gap_ns)
        .filter(|scale| scale.index_of_dispersion > 0.0)
        .collect();
    let (first, last) = (fitted.first()?, fitted.last()?);
    let count = fitted.len() as f64;
    let point = |scale: &&ScaleReport| {
        let variance = scale.index_of_dispersion / scale.mean;
        ((scale.bin_ns as f64).ln(), variance.ln())
    };
    let points: Vec<(f64, f64)> = fitted.iter().map(point).collect();
    let (mean_x, mean_y) = points.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0 / count, sum.1 + p.1 / count));
    let sum = |of: fn(f64, f64) -> f64| points.iter().map(|p| of(p.0 - mean_x, p.1 - mean_y)).sum::<f64>();
    let (xx, xy, yy) = (sum(|x, _| x * x), sum(|x, y| x * y), sum(|_, y| y * y));
    (fitted.len() >= FIT_POINTS_MIN).then(|| HurstReport {
        exponent: 1.0 + xy / xx / 2.0,
        from_ns: first.bin_ns,
        to_ns: last.bin_ns,
        points: fitted.len() as u32,
        r_squared: if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 },
    })
}
