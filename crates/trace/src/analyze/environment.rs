//! [`EnvironmentReport`]: a trace summarized as an access specification, and a workload with the same mix.

use headstack_workload::{
    AccessLine, AccessSpecification, Addresses, ArrivalProcess, Arrivals, Band, RunLength, WarmUp, Workload,
};
use serde::Serialize;

use super::heat::Spread;
use super::mix::SizeCounts;
use crate::record::Operation;

/// Maximum number of sizes in the workload; rarer sizes are merged into the next larger one.
const SIZES_MAX: usize = 128;
/// Number of address bands for random accesses, a power of two.
const BANDS: usize = 32;
/// Coefficient of variation of gaps below which arrivals count as regular.
const STEADY_VARIATION: f64 = 0.1;
const QUEUE_DEPTH_MAX: f64 = 65_536.0;

/// A trace summarized as an access specification. A request is random if it continues none of the last 32 streams of
/// its device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EnvironmentReport {
    /// Reads as a share of reads and writes.
    pub read_share: Option<f64>,
    /// Random requests as a share of reads and writes.
    pub random_share: Option<f64>,
    /// Random reads as a share of reads.
    pub read_random_share: Option<f64>,
    /// Random writes as a share of writes.
    pub write_random_share: Option<f64>,
    /// Mean number of requests in a stream, including its random first request.
    pub mean_run_requests: Option<f64>,
    /// Mean number of concurrent streams with at least two requests.
    pub concurrent_streams: Option<f64>,
    /// Mean queue depth over time.
    pub depth: Option<f64>,
    /// Arrivals per second.
    pub requests_per_s: Option<f64>,
    /// Smallest share of the address range, from 0 to the highest touched address, that contains 90 % of the random
    /// accesses.
    pub random_span_share_90: Option<f64>,
    /// A headstack workload with the same mix, as TOML; null if the trace does not record operations or device offsets.
    pub workload_toml: Option<String>,
}

/// Results of the other analyses.
pub(crate) struct AnalysisResults<'a> {
    pub(crate) name: String,
    pub(crate) sizes: Vec<(u32, SizeCounts)>,
    pub(crate) spread: &'a Spread,
    pub(crate) span_bytes: u64,
    pub(crate) align_bytes: Option<u64>,
    pub(crate) mean_run_requests: Option<f64>,
    pub(crate) concurrent_streams: Option<f64>,
    pub(crate) depth: Option<f64>,
    pub(crate) requests_per_s: Option<f64>,
    pub(crate) gap_variation: Option<f64>,
    pub(crate) flushes: u64,
    pub(crate) has_runs: bool,
    pub(crate) has_distances: bool,
}

const READ: usize = Operation::Read as usize;
const WRITE: usize = Operation::Write as usize;
const TRIM: usize = Operation::Trim as usize;

impl AnalysisResults<'_> {
    fn sum(&self, of: impl Fn(&SizeCounts) -> u64) -> u64 {
        self.sizes.iter().map(|(_, counts)| of(counts)).sum()
    }

    pub(crate) fn report(&self, notes: &mut Vec<String>) -> EnvironmentReport {
        let over = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
        let of_runs = |part: u64, all: u64| over(part, all).filter(|_| self.has_runs);
        let random = |what: usize| self.sum(|counts| counts.random[what]);
        let all = |what: usize| random(what) + self.sum(|counts| counts.sequential[what]);
        let (reads, writes) = (all(READ), all(WRITE));
        EnvironmentReport {
            read_share: over(reads, reads + writes),
            random_share: of_runs(random(READ) + random(WRITE), reads + writes),
            read_random_share: of_runs(random(READ), reads),
            write_random_share: of_runs(random(WRITE), writes),
            mean_run_requests: self.mean_run_requests,
            concurrent_streams: self.concurrent_streams,
            depth: self.depth,
            requests_per_s: self.requests_per_s,
            random_span_share_90: self.spread.share_holding(0.9, self.span_bytes).filter(|_| self.has_distances),
            workload_toml: self.workload(writes, notes),
        }
    }

    fn workload(&self, writes: u64, notes: &mut Vec<String>) -> Option<String> {
        let lines = self.lines();
        if lines.is_empty() {
            notes.push("no workload: the trace does not record operations".to_owned());
            return None;
        }
        if !self.has_distances {
            notes.push("no workload: the trace does not record device offsets".to_owned());
            return None;
        }
        let workload = Workload {
            name: self.name.clone(),
            source: self.source(),
            specification: AccessSpecification { name: self.name.clone(), lines },
            addresses: self.addresses(),
            streams: self.concurrent_streams.unwrap_or(1.0).round().max(1.0) as u32,
            stream_turn: 1,
            flush_every: writes.checked_div(self.flushes).unwrap_or(0),
            sync_every: 0,
            dsync_every: 0,
            sequence: headstack_workload::Sequence::default(),
            arrivals: self.arrivals(),
            warm_up: WarmUp::default(),
            run_length: RunLength::default(),
        };
        let text = workload.validate().map_err(|error| error.to_string());
        match text.and_then(|()| toml::to_string(&workload).map_err(|error| error.to_string())) {
            Ok(text) => Some(text),
            Err(reason) => {
                notes.push(format!("no workload: {reason}"));
                None
            }
        }
    }

    fn source(&self) -> String {
        let depth = self.depth.map_or_else(String::new, |depth| format!(", {depth:.2} in flight on average"));
        let gaps =
            self.gap_variation.map_or_else(String::new, |cv| format!(", coefficient of variation of gaps {cv:.2}"));
        format!("from a trace: mix, streams, rate and bands of random addresses as recorded{depth}{gaps}")
    }

    /// Returns two access lines per size, since reads and writes differ in randomness: random requests, and requests
    /// that continue a stream.
    fn lines(&self) -> Vec<AccessLine> {
        let sizes = self.common_sizes();
        let known_operations = |counts: &[u64; Operation::ALL.len()]| counts[READ] + counts[WRITE] + counts[TRIM];
        let all: u64 = sizes
            .iter()
            .map(|(_, counts)| known_operations(&counts.random) + known_operations(&counts.sequential))
            .sum();
        let line = |size_bytes: u32, counts: &[u64; Operation::ALL.len()], random_percent: f64| {
            let percent = |part: u64, all: u64| if all > 0 { part as f64 * 100.0 / all as f64 } else { 0.0 };
            let requests = known_operations(counts);
            (requests > 0).then(|| AccessLine {
                size_bytes,
                share_percent: percent(requests, all),
                read_percent: percent(counts[READ], requests),
                random_percent,
                trim_percent: percent(counts[TRIM], requests - counts[READ]),
                delay_ns: 0,
                burst: 1,
                align_bytes: self.align_bytes.and_then(|bytes| u32::try_from(bytes).ok()),
            })
        };
        let both = |(size, counts): &(u32, SizeCounts)| {
            [line(*size, &counts.random, 100.0), line(*size, &counts.sequential, 0.0)]
        };
        sizes.iter().flat_map(both).flatten().collect()
    }

    fn common_sizes(&self) -> Vec<(u32, SizeCounts)> {
        let requests = |counts: &SizeCounts| counts.random.iter().chain(&counts.sequential).sum::<u64>();
        let mut common: Vec<(u32, SizeCounts)> = self.sizes.iter().copied().filter(|(bytes, _)| *bytes > 0).collect();
        common.sort_by_key(|(_, counts)| std::cmp::Reverse(requests(counts)));
        let rare = common.split_off(common.len().min(SIZES_MAX));
        common.sort_unstable_by_key(|(bytes, _)| *bytes);
        for (bytes, counts) in rare {
            let place = common.partition_point(|(common, _)| *common < bytes).min(common.len() - 1);
            let into = &mut common[place].1;
            for operation in 0..Operation::ALL.len() {
                into.random[operation] += counts.random[operation];
                into.sequential[operation] += counts.sequential[operation];
            }
        }
        common
    }

    fn addresses(&self) -> Addresses {
        let counts = self.spread.bands(BANDS, self.span_bytes.max(1));
        let all: u64 = counts.iter().sum();
        let percent = |index: usize| index as f64 * 100.0 / BANDS as f64;
        let band = |(index, &count): (usize, &u64)| Band {
            from_percent: percent(index),
            to_percent: percent(index + 1),
            share_percent: count as f64 * 100.0 / all as f64,
        };
        let bands: Vec<Band> = counts.iter().enumerate().filter(|(_, count)| **count > 0).map(band).collect();
        if bands.is_empty() { Addresses::Uniform } else { Addresses::HotBands(bands) }
    }

    fn arrivals(&self) -> Arrivals {
        match self.requests_per_s {
            Some(rate_per_s) if rate_per_s <= 1e9 => Arrivals::Open {
                rate_per_s,
                process: match self.gap_variation {
                    Some(variation) if variation < STEADY_VARIATION => ArrivalProcess::Fixed,
                    _ => ArrivalProcess::Poisson,
                },
            },
            _ => {
                let queue_depth = self.depth.unwrap_or(1.0).round().clamp(1.0, QUEUE_DEPTH_MAX) as u32;
                Arrivals::Closed { queue_depth, think: headstack_workload::Think::None }
            }
        }
    }
}
