//! [`Timeline`]: requests, response times, phases and blocks by bins of time.
//!
//! Bins are aligned to the trace's clock, not to its first arrival, and contain only whole numbers and sets: separately
//! analysed parts of a trace add up to exactly the analysis of the whole, in any grouping.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::latency::{BySort, Sort};
use super::mix::transfers;
use super::phases::{self, ByPhase};
use super::times::{Times, TimesReport};
use super::touched::{BINS_MAX, SetByBin, TouchedBlocks};
use crate::record::{NOT_RECORDED, Record};

/// Largest number of reported bins: if there are more, two or five are merged.
const TOLD_MAX: usize = 200;
/// Initial bin length.
const WIDTH_NS: u64 = 1_000;
/// 32 years: no clock has a coarser resolution.
const WIDTH_NS_MAX: u64 = 1_000_000_000_000_000_000;
/// Number of completions after the last arrival that are followed, by bin.
const ENDS_MAX: usize = 1 << 20;

/// Requests of one sort in a bin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SortReport {
    /// Number of requests that arrived.
    pub requests: u64,
    /// Sum of their lengths.
    pub bytes: u64,
    /// Response times of the requests that arrived; null if none is recorded.
    pub response: Option<TimesReport>,
    /// Bytes touched, in blocks; this and the rest are null if blocks were not requested.
    pub touched_bytes: Option<f64>,
    /// Bytes that this sort touched until the end of the bin.
    pub touched_so_far_bytes: Option<f64>,
    /// Share of the references to blocks that this sort had already touched in the same bin.
    pub reused_in_bin: Option<f64>,
    /// Share of the references to blocks that this sort had already touched at any time.
    pub reused: Option<f64>,
}

/// A bin of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineBin {
    /// Start, relative to the first arrival.
    pub from_ns: u64,
    /// End; the last bin ends with the last arrival.
    pub to_ns: u64,
    /// All requests.
    pub all: SortReport,
    /// Reads.
    pub read: SortReport,
    /// Writes.
    pub write: SortReport,
    /// Mean queue depth; null if no response is recorded, or the trace ends within the bin.
    pub mean_depth: Option<f64>,
    /// Times of arriving requests in each recorded phase, by btt's names.
    pub phases: BTreeMap<&'static str, TimesReport>,
}

/// Bins of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineReport {
    /// Length of a bin: one, two or five times a power of ten. Bins begin at multiples of it on the trace's clock.
    pub bin_ns: u64,
    /// Block size in bytes; null if blocks were not requested.
    pub block_bytes: Option<u32>,
    /// Share of the sampled blocks; 1 if working set and re-use are exact.
    pub sampled_rate: Option<f64>,
    /// Requests whose end was not followed for the depth, since 2^20 others end after the last arrival.
    pub not_followed: u64,
    /// All bins, including empty ones.
    pub bins: Vec<TimelineBin>,
}

/// Time in flight within a bin, as if nothing were in flight at its start; and the change of the number in flight by
/// its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct BinDepth {
    area_ns: i128,
    more: i64,
}

impl BinDepth {
    fn add(&mut self, other: BinDepth) {
        self.area_ns += other.area_ns;
        self.more += other.more;
    }

    /// As a part of a longer bin that continues for `rest_ns`.
    fn with_rest(self, rest_ns: u64) -> BinDepth {
        BinDepth { area_ns: self.area_ns + i128::from(rest_ns) * i128::from(self.more), more: self.more }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Bin {
    requests: [u64; Sort::ALL.len()],
    bytes: [u64; Sort::ALL.len()],
    references: [u64; Sort::ALL.len()],
    times: BySort,
    phases: ByPhase,
    flight: BinDepth,
}

impl Bin {
    /// Merges everything except the time in flight, which depends on the position within a longer bin.
    fn merge(&mut self, other: &Bin) {
        for sort in 0..Sort::ALL.len() {
            self.requests[sort] += other.requests[sort];
            self.bytes[sort] += other.bytes[sort];
            self.references[sort] += other.references[sort];
            self.times[sort].merge(&other.times[sort]);
        }
        self.phases.iter_mut().zip(&other.phases).for_each(|(times, other)| times.merge(other));
    }
}

/// The bins of a trace, or of a part of it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Timeline {
    width_ns: u64,
    /// Number of the first bin: its start on the trace's clock, divided by the width.
    first: u64,
    bins: Vec<Bin>,
    /// Ends of flights after the last bin.
    ends: BTreeMap<u64, BinDepth>,
    not_followed: u64,
    blocks: Option<TouchedBlocks>,
}

impl Timeline {
    /// Creates a timeline with blocks of that size, a power of two, or without blocks.
    pub(crate) fn new(block_bytes: Option<u32>) -> Timeline {
        Timeline {
            width_ns: WIDTH_NS,
            first: 0,
            bins: Vec::new(),
            ends: BTreeMap::new(),
            not_followed: 0,
            blocks: block_bytes.map(TouchedBlocks::new),
        }
    }

    /// Adds a request that arrives at `at_ns`, not before the previous one.
    #[inline]
    pub(crate) fn add(&mut self, at_ns: u64, record: &Record) {
        let number = self.reach(at_ns);
        let place = (number - self.first) as usize;
        let sort = Sort::of(record.operation) as usize;
        let bin = &mut self.bins[place];
        bin.requests[sort] += 1;
        bin.bytes[sort] += u64::from(record.length_bytes);
        if record.response_ns != NOT_RECORDED {
            bin.times[sort].add(record.response_ns);
        }
        if record.wait_ns != NOT_RECORDED || record.got_ns != NOT_RECORDED {
            phases::add(&mut bin.phases, record);
        }
        if let Some(blocks) = self.blocks.as_mut().filter(|_| transfers(record.operation)) {
            bin.references[sort] += blocks.touch(record, sort, place);
        }
        if record.response_ns != NOT_RECORDED {
            self.fly(number, at_ns, at_ns.saturating_add(record.response_ns));
        }
    }

    /// Returns the bin of a moment, after creating all bins up to it.
    #[inline]
    fn reach(&mut self, at_ns: u64) -> u64 {
        let mut number = at_ns / self.width_ns;
        if self.bins.is_empty() {
            self.first = number;
        }
        if number - self.first >= self.bins.len() as u64 {
            while number - self.first >= BINS_MAX as u64 {
                self.coarsen(10);
                number = at_ns / self.width_ns;
            }
            self.extend_to(number);
        }
        number
    }

    fn extend_to(&mut self, last: u64) {
        let length = (last + 1 - self.first) as usize;
        self.bins.resize_with(self.bins.len().max(length), Bin::default);
        let end = self.first + self.bins.len() as u64;
        let behind = self.ends.split_off(&end);
        for (number, flight) in std::mem::replace(&mut self.ends, behind) {
            self.bins[(number - self.first) as usize].flight.add(flight);
        }
    }

    /// Adds a request in flight from its arrival in the bin `number` until its completion.
    #[inline]
    fn fly(&mut self, number: u64, at_ns: u64, completion_ns: u64) {
        let width_ns = self.width_ns;
        let (last, end) = (completion_ns / width_ns, self.first + self.bins.len() as u64);
        let flight = &mut self.bins[(number - self.first) as usize].flight;
        if last == number {
            flight.area_ns += i128::from(completion_ns - at_ns);
            return;
        }
        let begun = BinDepth { area_ns: i128::from(width_ns - at_ns % width_ns), more: 1 };
        // It counts as in flight for all of its last bin, since it was at the start.
        let ended = BinDepth { area_ns: i128::from(completion_ns % width_ns) - i128::from(width_ns), more: -1 };
        if last < end {
            flight.add(begun);
            self.bins[(last - self.first) as usize].flight.add(ended);
        } else if self.ends.len() < ENDS_MAX || self.ends.contains_key(&last) {
            flight.add(begun);
            self.ends.entry(last).or_default().add(ended);
        } else {
            self.not_followed += 1;
        }
    }

    /// Merges groups of `factor` bins.
    fn coarsen(&mut self, factor: u64) {
        let (width_ns, first) = (self.width_ns, self.first);
        // Requests in flight at the end of a short bin remain so for the rest of the long one.
        let with_rest = |number: u64, flight: BinDepth| flight.with_rest((factor - 1 - number % factor) * width_ns);
        let mut bins: Vec<Bin> = Vec::new();
        for (number, bin) in (first..).zip(std::mem::take(&mut self.bins)) {
            let place = (number / factor - first / factor) as usize;
            if place == bins.len() {
                bins.push(Bin::default());
            }
            bins[place].merge(&bin);
            bins[place].flight.add(with_rest(number, bin.flight));
        }
        for (number, flight) in std::mem::take(&mut self.ends) {
            self.ends.entry(number / factor).or_default().add(with_rest(number, flight));
        }
        if let Some(blocks) = &mut self.blocks {
            blocks.regroup(|place| ((first + place as u64) / factor - first / factor) as usize);
        }
        (self.width_ns, self.first, self.bins) = (width_ns * factor, first / factor, bins);
        if let Some(last) = (self.bins.len() as u64).checked_sub(1) {
            self.extend_to(self.first + last);
        }
    }

    /// Merges a part of the same trace with later requests.
    #[must_use]
    pub(crate) fn merge(mut self, mut later: Timeline) -> Timeline {
        if self.bins.is_empty() || later.bins.is_empty() {
            return if self.bins.is_empty() { later } else { self };
        }
        let end = |part: &Timeline| part.first + part.bins.len() as u64;
        while self.width_ns != later.width_ns
            || end(&self).max(end(&later)) - self.first.min(later.first) > BINS_MAX as u64
        {
            let width_ns = self.width_ns.min(later.width_ns);
            for part in [&mut self, &mut later] {
                if part.width_ns == width_ns {
                    part.coarsen(10);
                }
            }
        }
        let last = end(&self).max(end(&later)) - 1;
        let before = self.first.saturating_sub(later.first) as usize;
        self.bins.splice(0..0, std::iter::repeat_n(Bin::default(), before));
        self.first -= before as u64;
        self.extend_to(last);
        let offset = (later.first - self.first) as usize;
        for (bin, later) in self.bins[offset..].iter_mut().zip(&later.bins) {
            bin.merge(later);
            bin.flight.add(later.flight);
        }
        for (number, flight) in later.ends {
            self.ends.entry(number).or_default().add(flight);
        }
        self.extend_to(last);
        self.not_followed += later.not_followed;
        if let (Some(mine), Some(later)) = (&mut self.blocks, later.blocks) {
            mine.merge(later, before, offset);
        }
        self
    }

    /// Returns bins no shorter than the clock's resolution. The trace lasts from `start_ns` for `duration_ns`.
    pub(crate) fn finish(mut self, start_ns: u64, duration_ns: u64, resolution_ns: u64) -> TimelineReport {
        while self.width_ns < resolution_ns.min(WIDTH_NS_MAX) {
            self.coarsen(10);
        }
        let fits = |factor: u64| {
            let last = self.first + (self.bins.len() as u64).saturating_sub(1);
            (last / factor - self.first / factor) < TOLD_MAX as u64
        };
        let factor = [1, 2, 5].into_iter().find(|factor| fits(*factor)).unwrap_or(10);
        if factor > 1 {
            self.coarsen(factor);
        }
        let set = self.blocks.as_ref().map(|blocks| blocks.by_bin(self.bins.len()));
        let has_responses = self.bins.iter().any(|bin| bin.times.iter().any(|times| times.report().is_some()));
        let mut in_flight = 0_i64;
        let mut bins = Vec::with_capacity(self.bins.len());
        for (place, bin) in self.bins.iter().enumerate() {
            let start = (self.first + place as u64) * self.width_ns;
            let from_ns = start.saturating_sub(start_ns);
            let end_ns = start.saturating_add(self.width_ns) - start_ns;
            let area_ns = bin.flight.area_ns + i128::from(in_flight) * i128::from(self.width_ns);
            in_flight += bin.flight.more;
            let sort = |sorts: &[Sort]| self.sort(bin, sorts, place, set.as_ref());
            bins.push(TimelineBin {
                from_ns,
                to_ns: end_ns.min(duration_ns),
                all: sort(&Sort::ALL),
                read: sort(&[Sort::Read]),
                write: sort(&[Sort::Write]),
                mean_depth: (has_responses && end_ns <= duration_ns)
                    .then(|| area_ns as f64 / (end_ns - from_ns) as f64),
                phases: phases::report(&bin.phases),
            });
        }
        TimelineReport {
            bin_ns: self.width_ns,
            block_bytes: self.blocks.as_ref().map(TouchedBlocks::block_bytes),
            sampled_rate: self.blocks.as_ref().map(TouchedBlocks::sampled_rate),
            not_followed: self.not_followed,
            bins,
        }
    }

    /// Report of some sorts together: of one, or of all.
    fn sort(&self, bin: &Bin, sorts: &[Sort], place: usize, set: Option<&SetByBin>) -> SortReport {
        let sum = |of: &[u64; Sort::ALL.len()]| sorts.iter().map(|sort| of[*sort as usize]).sum::<u64>();
        let mut times = Times::default();
        sorts.iter().for_each(|sort| times.merge(&bin.times[*sort as usize]));
        let references = sum(&bin.references) as f64;
        let touched = set.map(|set| set.of(sorts, place));
        let again = |blocks: f64| (references > 0.0).then(|| (1.0 - blocks / references).max(0.0));
        SortReport {
            requests: sum(&bin.requests),
            bytes: sum(&bin.bytes),
            response: times.report(),
            touched_bytes: touched.map(|touched| touched.in_bin_bytes),
            touched_so_far_bytes: touched.map(|touched| touched.so_far_bytes),
            reused_in_bin: touched.and_then(|touched| again(touched.in_bin)),
            reused: touched.and_then(|touched| again(touched.new)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::record::Operation;

    const K: u64 = 4_096;

    fn of(records: &[Record]) -> Timeline {
        let mut timeline = Timeline::new(Some(K as u32));
        records.iter().for_each(|record| timeline.add(record.arrival_ns, record));
        timeline
    }

    fn report_of(timeline: Timeline, records: &[Record]) -> TimelineReport {
        let (first, last) = (records[0].arrival_ns, records[records.len() - 1].arrival_ns);
        timeline.finish(first, last - first, 1)
    }

    prop_compose! {
        /// In order of arrival, over spans of microseconds to days.
        fn requests()(
            given in prop::collection::vec(
                (0u64..1_000, 0u64..60, 1u32..4, 0usize..6, prop::option::of(0u64..5_000)), 1..80),
            unit_ns in prop::sample::select(vec![1u64, 700, 900_000, 30_000_000, 100_000_000_000]),
        ) -> Vec<Record> {
            let mut at_ns = 12_345;
            let mut records = Vec::new();
            for (gap, block, blocks, operation, response) in given {
                at_ns += gap * unit_ns;
                let mut record = Record::new(at_ns, Operation::ALL[operation], block * K, blocks * K as u32);
                if let Some(response) = response {
                    (record.wait_ns, record.response_ns) = (response * unit_ns / 3, response * unit_ns);
                }
                records.push(record);
            }
            records
        }
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole_in_any_grouping(records in requests(), cuts in (0usize..80, 0usize..80)) {
            let (one, two) = (cuts.0.min(cuts.1).min(records.len()), cuts.0.max(cuts.1).min(records.len()));
            let [a, b, c] = [&records[..one], &records[one..two], &records[two..]].map(of);
            let whole = report_of(of(&records), &records);
            prop_assert_eq!(&report_of(a.clone().merge(b.clone()).merge(c.clone()), &records), &whole);
            prop_assert_eq!(&report_of(a.merge(b.merge(c)), &records), &whole);
        }

        #[test]
        fn a_bin_equals_the_naive_count(records in requests()) {
            let report = report_of(of(&records), &records);
            let first_ns = records[0].arrival_ns;
            prop_assert!(report.bins.len() <= TOLD_MAX);
            let mut before: HashSet<u64> = HashSet::new();
            for bin in &report.bins {
                let is_last = bin.to_ns == report.bins[report.bins.len() - 1].to_ns;
                let within = |r: &&Record| {
                    let at = r.arrival_ns - first_ns;
                    bin.from_ns <= at && (at < bin.to_ns || is_last && at == bin.to_ns)
                };
                let here: Vec<&Record> = records.iter().filter(within).collect();
                prop_assert_eq!(bin.all.requests, here.len() as u64);
                let reads = here.iter().filter(|r| r.operation == Operation::Read).count() as u64;
                prop_assert_eq!(bin.read.requests, reads);
                let responses = here.iter().filter(|r| r.response_ns != NOT_RECORDED).count() as u64;
                prop_assert_eq!(bin.all.response.map_or(0, |times| times.count), responses);
                prop_assert_eq!(bin.phases.get("d2c").map_or(0, |times| times.count), responses);
                let blocks: Vec<u64> = here
                    .iter()
                    .filter(|r| transfers(r.operation))
                    .flat_map(|r| r.offset_bytes / K..r.end_bytes() / K)
                    .collect();
                let distinct: HashSet<u64> = blocks.iter().copied().collect();
                let references = blocks.len() as f64;
                let share = |fewer: usize| (references > 0.0).then(|| 1.0 - fewer as f64 / references);
                prop_assert_eq!(bin.all.touched_bytes, Some((distinct.len() as u64 * K) as f64));
                prop_assert_eq!(bin.all.reused_in_bin, share(distinct.len()));
                prop_assert_eq!(bin.all.reused, share(distinct.difference(&before).count()));
                before.extend(distinct);
                prop_assert_eq!(bin.all.touched_so_far_bytes, Some((before.len() as u64 * K) as f64));
                if let Some(depth) = bin.mean_depth {
                    let area: u64 = records
                        .iter()
                        .filter(|r| r.response_ns != NOT_RECORDED)
                        .map(|r| {
                            let (from, to) = (r.arrival_ns - first_ns, r.arrival_ns - first_ns + r.response_ns);
                            to.min(bin.to_ns).saturating_sub(from.max(bin.from_ns))
                        })
                        .sum();
                    prop_assert!((depth - area as f64 / (bin.to_ns - bin.from_ns) as f64).abs() < 1e-9);
                }
            }
        }
    }

    #[test]
    fn more_blocks_than_are_kept_are_estimated_and_still_add_up() {
        // A block per millisecond, each touched twice, the second time a minute later.
        let request =
            |ms: u64| Record::new(ms * 1_000_000, Operation::Read, (ms % 60_000 + ms / 120_000 * 60_000) * K, 512);
        let records: Vec<Record> = (0..480_000).map(request).collect();
        let report = report_of(of(&records), &records);
        assert_eq!((report.sampled_rate, report.bin_ns), (Some(0.125), 10_000_000_000));
        let last = &report.bins[report.bins.len() - 1].all;
        let touched = last.touched_so_far_bytes.unwrap() / K as f64;
        assert!((touched / 240_000.0 - 1.0).abs() < 0.01, "{touched}");
        assert!(last.reused.unwrap() > 0.99 && last.reused_in_bin.unwrap() < 0.01, "{last:?}");
        let (one, two) = records.split_at(111_111);
        assert_eq!(report_of(of(one).merge(of(two)), &records), report);
    }

    #[test]
    fn bins_align_with_the_traces_clock() {
        let at = |s: f64| Record::new((s * 1e9) as u64, Operation::Write, 0, 512);
        let records = [at(95.0), at(199.0), at(200.0), at(305.5)];
        let report = report_of(of(&records), &records);
        assert_eq!(report.bin_ns, 2_000_000_000);
        let first = &report.bins[0];
        assert_eq!((first.from_ns, first.to_ns, first.write.requests), (0, 1_000_000_000, 1));
        assert_eq!(report.bins[report.bins.len() - 1].to_ns, 210_500_000_000);
        assert_eq!(report.bins.iter().map(|bin| bin.all.requests).sum::<u64>(), 4);
    }
}
