//! Requests over time: rates in bins, and how bursty they are at every scale.

use serde::Serialize;

use super::histogram::{Bin, Powers, Summary, Values};
use crate::record::{NOT_RECORDED, Operation, Record};

const S: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * S;
/// Lengths of bins. Each is a multiple of the one before, so that bins can be joined, and a second is among them, so that
/// whole-second stamps fall into bins evenly.
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
/// The most bins of a series.
const BINS_MAX: usize = 2_000;
/// Complete bins below which a scale says nothing of variance.
const BINS_MIN: u64 = 8;
/// The same for a point of the fit of the Hurst exponent.
const FIT_BINS_MIN: u64 = 32;
const FIT_POINTS_MIN: usize = 4;

/// What arrived in a bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RateBin {
    /// Requests that arrived.
    pub requests: u64,
    /// Reads among them.
    pub reads: u64,
    /// Writes among them.
    pub writes: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Mean response time of those that arrived; null where none is recorded.
    pub mean_response_ns: Option<f64>,
    /// Mean number of requests in flight during the bin; null where no response is recorded.
    pub mean_depth: Option<f64>,
    #[serde(skip)]
    responses: u64,
    #[serde(skip)]
    response_ns: f64,
    #[serde(skip)]
    depth_ns: f64,
}

impl RateBin {
    fn join(&mut self, other: &RateBin) {
        self.requests += other.requests;
        self.reads += other.reads;
        self.writes += other.writes;
        self.bytes += other.bytes;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.responses += other.responses;
        self.response_ns += other.response_ns;
        self.depth_ns += other.depth_ns;
    }
}

/// Rates over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateReport {
    /// Length of a bin; the first begins with the first arrival, the last ends early.
    pub bin_ns: u64,
    /// The bins, without a gap.
    pub bins: Vec<RateBin>,
}

/// Rates over time, in bins that grow.
pub(crate) struct Series {
    rung: usize,
    bins: Vec<RateBin>,
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
            bin.response_ns += record.response_ns as f64;
        }
    }

    /// So many requests were in flight between two moments since the start.
    pub(crate) fn add_depth(&mut self, from_ns: u64, to_ns: u64, depth: usize) {
        let mut at = from_ns;
        while at < to_ns {
            // First, since it may lengthen the bins.
            self.bin(at);
            let width = LADDER_NS[self.rung];
            let end = (at / width + 1).saturating_mul(width).min(to_ns);
            self.bin(at).depth_ns += (end - at) as f64 * depth as f64;
            at = end;
        }
    }

    #[inline]
    fn bin(&mut self, at_ns: u64) -> &mut RateBin {
        let mut index = (at_ns / LADDER_NS[self.rung]) as usize;
        if index >= self.bins.len() {
            while index >= BINS_MAX {
                self.coarsen();
                index = (at_ns / LADDER_NS[self.rung]) as usize;
            }
            self.bins.resize(self.bins.len().max(index + 1), RateBin::default());
        }
        &mut self.bins[index]
    }

    fn coarsen(&mut self) {
        let factor = (LADDER_NS[self.rung + 1] / LADDER_NS[self.rung]) as usize;
        self.rung += 1;
        let join = |bins: &[RateBin]| {
            let mut sum = RateBin::default();
            bins.iter().for_each(|bin| sum.join(bin));
            sum
        };
        self.bins = self.bins.chunks(factor).map(join).collect();
    }

    /// In bins no shorter than the clock's step. `last_ns` is the last arrival since the start.
    pub(crate) fn finish(mut self, resolution_ns: u64, last_ns: u64) -> RateReport {
        while LADDER_NS[self.rung] < resolution_ns && self.rung + 1 < LADDER_NS.len() {
            self.coarsen();
        }
        let width = LADDER_NS[self.rung];
        let has_responses = self.bins.iter().any(|bin| bin.responses > 0);
        for (index, bin) in self.bins.iter_mut().enumerate() {
            let length = width.min(last_ns.saturating_sub(index as u64 * width));
            bin.mean_response_ns = (bin.responses > 0).then(|| bin.response_ns / bin.responses as f64);
            bin.mean_depth = (has_responses && length > 0).then(|| bin.depth_ns / length as f64);
        }
        RateReport { bin_ns: width, bins: self.bins }
    }
}

/// Counts of requests in bins of one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScaleReport {
    /// Length of a bin.
    pub bin_ns: u64,
    /// Bins, empty ones included; the end of the trace cuts the last one short.
    pub bins: u64,
    /// Mean requests in a bin's time, over the whole trace.
    pub mean: f64,
    /// Most requests in a bin over the mean.
    pub peak_over_mean: f64,
    /// Variance of the requests in a bin over their mean: 1 for Poisson arrivals at every length. Of the last bin as many
    /// are expected as its part of a bin's time.
    pub index_of_dispersion: f64,
}

/// The exponent of self-similarity, by the variance of mean rates over bins of growing length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HurstReport {
    /// 0.5 where counts of distant bins are independent, towards 1 the longer bursts last.
    pub exponent: f64,
    /// Shortest bin of the fit.
    pub from_ns: u64,
    /// Longest bin of the fit.
    pub to_ns: u64,
    /// Lengths that were fitted.
    pub points: u32,
    /// Share of the variance that the straight line explains (R squared).
    pub r_squared: f64,
}

/// How requests arrive. What lies below the clock's step is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrivalReport {
    /// Mean time from a request to the next, in ns; null for a single one.
    pub mean_gap_ns: Option<f64>,
    /// Standard deviation of these times over their mean: 1 for Poisson arrivals, 0 for a steady beat.
    pub gap_variation: Option<f64>,
    /// Percentiles of these times, in ns.
    pub gaps_ns: Option<Summary>,
    /// The same by powers of two.
    pub gap_histogram_ns: Option<Vec<Bin>>,
    /// Counts in bins, by growing length.
    pub scales: Vec<ScaleReport>,
    /// Self-similarity; null where there are too few bins to fit.
    pub hurst: Option<HurstReport>,
}

#[derive(Clone, Copy, Default)]
struct Scale {
    index: u64,
    count: u64,
    sum: u64,
    squares: f64,
    peak: u64,
}

/// Times between arrivals, and counts in bins of every length.
pub(crate) struct Arrivals {
    last_ns: u64,
    gaps: Values,
    powers: Powers,
    gap_squares: f64,
    scales: [Scale; LADDER_NS.len()],
}

impl Arrivals {
    pub(crate) fn new() -> Arrivals {
        Arrivals {
            last_ns: 0,
            gaps: Values::new(),
            powers: Powers::new(),
            gap_squares: 0.0,
            scales: [Scale::default(); LADDER_NS.len()],
        }
    }

    /// A request, of which the first arrives at 0.
    #[inline]
    pub(crate) fn add(&mut self, since_start_ns: u64, is_first: bool) {
        if !is_first {
            let gap_ns = since_start_ns - self.last_ns;
            self.gaps.add(gap_ns);
            self.powers.add(gap_ns);
            self.gap_squares += (gap_ns as f64).powi(2);
        }
        self.last_ns = since_start_ns;
        let index = since_start_ns / LADDER_NS[0];
        if index != self.scales[0].index {
            self.close(0);
            self.scales[0].index = index;
        }
        self.scales[0].count += 1;
    }

    /// Books a bin, and closes the longer ones that it does not belong to any more.
    fn close(&mut self, level: usize) {
        let scale = &mut self.scales[level];
        let (count, closed) = (std::mem::take(&mut scale.count), scale.index);
        scale.sum += count;
        scale.squares += (count as f64).powi(2);
        scale.peak = scale.peak.max(count);
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

    pub(crate) fn finish(mut self, resolution_ns: u64) -> ArrivalReport {
        // Bins that the last arrival is not in are complete.
        for (level, bin_ns) in LADDER_NS.into_iter().enumerate() {
            if self.scales[level].index < self.last_ns / bin_ns {
                self.close(level);
            }
        }
        // The last bin of each length also holds what the last ones of all shorter lengths have not passed on yet.
        for level in 1..LADDER_NS.len() {
            self.scales[level].count += self.scales[level - 1].count;
        }
        let gaps = self.gaps.summary();
        let mean_gap_ns = gaps.map(|gaps| gaps.mean);
        let is_fine = mean_gap_ns.is_some_and(|mean| mean >= resolution_ns as f64 && mean > 0.0);
        let variation = gaps.map(|gaps| {
            let variance = self.gap_squares / gaps.count as f64 - gaps.mean.powi(2);
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

    /// The trace ends a step of its clock after its last arrival.
    fn scale(&self, level: usize, resolution_ns: u64) -> Option<ScaleReport> {
        let (bin_ns, scale) = (LADDER_NS[level], &self.scales[level]);
        let complete = self.last_ns / bin_ns;
        let bins_long = (self.last_ns + resolution_ns.max(1)) as f64 / bin_ns as f64;
        let mean = (scale.sum + scale.count) as f64 / bins_long;
        let of_complete = scale.squares - 2.0 * mean * scale.sum as f64 + mean.powi(2) * complete as f64;
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

/// Aggregated variance: the variance of mean rates falls as the length of bins to the power of 2H - 2.
///
/// Only bins in which requests are expected: below, counts are 0 or 1 and say nothing of how they depend on each other.
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
