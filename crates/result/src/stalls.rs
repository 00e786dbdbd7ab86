//! [`Stalls`] of a measured device: periods in which requests waited and none completed.
//!
//! A stall is rare and long: the drive resets, recovers a sector, collects garbage or is throttled. A stall is not
//! warm-up, and a run with a single stall does not show how often stalls occur. Stalls are therefore listed, and
//! figures are reported with and without them.

use serde::{Deserialize, Serialize};

use crate::LatencyHistogram;
use crate::histogram::StoredHistogram;

/// Minimum length of a stall, in ns. A healthy HDD completes a random read within about 30 ms (a full seek and two
/// revolutions at 5,400 rpm); the slowest requests of an SSD take about 20 ms (Lu et al., USENIX ATC 2022, p. 1013).
/// Error recovery and resets take from 100 ms to tens of seconds.
const LEAST_NS: u64 = 100_000_000;
/// Minimum length of a stall, in mean intervals between completions. If completions were a Poisson process, one gap in
/// 5 * 10^8 would be that long. Values from 10 to 50 make no difference to stalls of a second.
const RARE: f64 = 20.0;
/// Maximum number of stalls listed: the longest ones.
const KEPT: usize = 64;

/// A period in which requests were outstanding and none completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Start of the stall, since the start of the run, in ns.
    pub start_ns: u64,
    /// Length of the stall, in ns.
    pub duration_ns: u64,
    /// Queue depth at the end of the stall.
    pub queue_depth: u64,
}

/// The stalls of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Stalls {
    /// The longest stalls (at most 64), in order of time.
    pub longest: Vec<Stall>,
    /// Response times of the requests that waited through a stall.
    pub latency: StoredHistogram,
}

impl Stalls {
    /// Returns the total length of the stalls, in ns.
    pub fn total_ns(&self) -> u64 {
        self.longest.iter().map(|stall| stall.duration_ns).sum()
    }

    /// Merges the stalls of several threads or hosts, each with a time offset in ns. Overlapping stalls become one.
    pub fn joined<'a>(each: impl Iterator<Item = (i64, &'a Stalls)>) -> Option<Stalls> {
        let (mut all, mut latency) = (Vec::new(), LatencyHistogram::new());
        for (later_ns, stalls) in each {
            let moved =
                |stall: &Stall| Stall { start_ns: stall.start_ns.saturating_add_signed(later_ns), ..stall.clone() };
            all.extend(stalls.longest.iter().map(moved));
            latency.merge(&stalls.latency.open());
        }
        all.sort_by_key(|stall| stall.start_ns);
        let mut longest: Vec<Stall> = Vec::new();
        for stall in all {
            match longest.last_mut().filter(|last| stall.start_ns < last.start_ns + last.duration_ns) {
                Some(last) => {
                    let end_ns = (last.start_ns + last.duration_ns).max(stall.start_ns + stall.duration_ns);
                    last.duration_ns = end_ns - last.start_ns;
                    last.queue_depth += stall.queue_depth;
                }
                None => longest.push(stall),
            }
        }
        (!longest.is_empty()).then(|| Stalls { longest: the_longest(longest), latency: latency.store() })
    }
}

fn the_longest(mut stalls: Vec<Stall>) -> Vec<Stall> {
    stalls.sort_by_key(|stall| std::cmp::Reverse(stall.duration_ns));
    stalls.truncate(KEPT);
    stalls.sort_by_key(|stall| stall.start_ns);
    stalls
}

/// A gap between completions that may be a stall, with the latencies of the requests that waited for its end.
#[derive(Clone, Debug)]
struct Gap {
    stall: Stall,
    responses_ns: Vec<u64>,
}

/// Detects stalls during a measurement.
#[derive(Clone, Debug)]
pub(crate) struct StallWatch {
    /// Time of the last completion, or of a later arrival before which nothing was outstanding, in ns.
    since_ns: u64,
    outstanding: usize,
    /// Total time in which requests were outstanding, in ns; completions during this time follow.
    busy_ns: u64,
    completions: u64,
    gaps: Vec<Gap>,
}

impl StallWatch {
    pub(crate) fn new(start_ns: u64) -> StallWatch {
        StallWatch { since_ns: start_ns, outstanding: 0, busy_ns: 0, completions: 0, gaps: Vec::new() }
    }

    /// Records that `depth` requests were outstanding from the last call until `at_ns`.
    #[inline]
    pub(crate) fn count_depth(&mut self, at_ns: u64, depth: usize) {
        if depth == 0 {
            self.since_ns = at_ns;
        }
        self.outstanding = depth;
    }

    /// Records a completed request. `count_depth` must already have been called for the same time.
    #[inline]
    pub(crate) fn complete(&mut self, at_ns: u64, intended_ns: u64) {
        self.end_gap(at_ns);
        self.completions += 1;
        if let Some(gap) = self.gaps.last_mut()
            && intended_ns < gap.stall.start_ns + gap.stall.duration_ns
        {
            gap.responses_ns.push(at_ns - intended_ns);
        }
    }

    fn end_gap(&mut self, at_ns: u64) {
        let duration_ns = at_ns.saturating_sub(self.since_ns);
        self.busy_ns += duration_ns;
        if duration_ns >= LEAST_NS {
            self.add(Stall { start_ns: self.since_ns, duration_ns, queue_depth: self.outstanding as u64 });
        }
        self.since_ns = at_ns;
    }

    #[cold]
    fn add(&mut self, stall: Stall) {
        if self.gaps.len() > KEPT {
            let shortest = self.gaps.iter().enumerate().min_by_key(|(_, gap)| gap.stall.duration_ns);
            let shortest = shortest.map(|(place, _)| place).expect("the list is full, so it is not empty");
            self.gaps.remove(shortest);
        }
        self.gaps.push(Gap { stall, responses_ns: Vec::new() });
    }

    /// Returns the stalls of a finished measurement; `None` if there were none.
    pub(crate) fn finish(mut self, end_ns: u64) -> Option<Stalls> {
        if self.outstanding > 0 {
            self.end_gap(end_ns);
        }
        let of_gaps_ns: u64 = self.gaps.iter().map(|gap| gap.stall.duration_ns).sum();
        let others = self.completions.saturating_sub(self.gaps.len() as u64).max(1);
        let apart_ns = (self.busy_ns - of_gaps_ns) as f64 / others as f64;
        self.gaps.retain(|gap| gap.stall.duration_ns as f64 >= RARE * apart_ns);
        let mut latency = LatencyHistogram::new();
        self.gaps.iter().flat_map(|gap| &gap.responses_ns).for_each(|&ns| latency.record(ns));
        let longest = the_longest(self.gaps.into_iter().map(|gap| gap.stall).collect());
        (!longest.is_empty()).then(|| Stalls { longest, latency: latency.store() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns the stalls of a closed loop of queue depth `depth`. Completions are 1 ms apart except for `gaps`: number
    /// of completions before the gap, and its length in ms.
    fn watched(depth: usize, completions: u64, gaps: &[(u64, u64)]) -> Option<Stalls> {
        let (mut watch, mut at_ns) = (StallWatch::new(0), 0);
        let mut issued_ns = std::collections::VecDeque::from(vec![0; depth]);
        for number in 0..completions {
            at_ns += gaps.iter().find(|(after, _)| *after == number).map_or(MS, |(_, ms)| ms * MS);
            watch.count_depth(at_ns, depth);
            watch.complete(at_ns, issued_ns.pop_front().unwrap());
            issued_ns.push_back(at_ns);
        }
        watch.finish(at_ns)
    }

    #[test]
    fn a_stall_is_named_with_its_requests() {
        assert_eq!(watched(8, 1_000, &[]), None);
        assert_eq!(watched(8, 1_000, &[(500, 99)]), None, "shorter than a stall");
        let found = watched(8, 1_000, &[(500, 1_000)]).unwrap();
        assert_eq!(found.longest, [Stall { start_ns: 500 * MS, duration_ns: 1_000 * MS, queue_depth: 8 }]);
        assert_eq!(found.latency.open().count(), 8);
        assert_eq!(found.latency.open().max_ns(), 1_007 * MS);
        // A stall at the beginning, and one at the end, after which nothing completes.
        assert_eq!(watched(1, 100, &[(0, 300)]).unwrap().longest[0].start_ns, 0);
    }

    #[test]
    fn a_slow_device_does_not_stall() {
        let every: Vec<(u64, u64)> = (0..100).map(|after| (after, 200)).collect();
        assert_eq!(watched(1, 100, &every), None);
        // A period without requests is not a stall either.
        let mut watch = StallWatch::new(0);
        for at_ns in [10 * MS, 5_000 * MS] {
            watch.count_depth(at_ns, 0);
            watch.count_depth(at_ns + MS, 1);
            watch.complete(at_ns + MS, at_ns);
        }
        assert_eq!(watch.finish(5_001 * MS), None);
    }

    #[test]
    fn an_unfinished_wait_is_a_stall() {
        let mut watch = StallWatch::new(0);
        for at_ms in 1..=100 {
            watch.count_depth(at_ms * MS, 2);
            watch.complete(at_ms * MS, (at_ms - 1) * MS);
        }
        watch.count_depth(2_000 * MS, 2);
        let found = watch.finish(2_000 * MS).unwrap();
        assert_eq!(found.longest, [Stall { start_ns: 100 * MS, duration_ns: 1_900 * MS, queue_depth: 2 }]);
    }

    #[test]
    fn stalls_of_threads_at_the_same_time_are_one() {
        let one = watched(4, 1_000, &[(500, 1_000)]).unwrap();
        let other = watched(4, 1_000, &[(700, 900)]).unwrap();
        let both = Stalls::joined([(0, &one), (0, &other)].into_iter()).unwrap();
        assert_eq!(both.longest, [Stall { start_ns: 500 * MS, duration_ns: 1_100 * MS, queue_depth: 8 }]);
        assert_eq!(both.latency.open().count(), 8);
        assert_eq!(Stalls::joined([(0, &one), (5_000_000_000, &other)].into_iter()).unwrap().longest.len(), 2);
        assert_eq!(Stalls::joined(std::iter::empty()), None);
    }

    #[test]
    fn the_longest_are_kept() {
        let many: Vec<(u64, u64)> = (1..=100).map(|number| (200 * number, 200 + number)).collect();
        let found = watched(1, 30_000, &many).unwrap();
        assert_eq!(found.longest.len(), KEPT);
        assert!(found.longest.iter().all(|stall| stall.duration_ns > 236 * MS), "{:?}", found.longest[0]);
    }

    #[test]
    fn a_stall_lasts_a_tenth_of_a_second_and_20_times_the_mean_interval() {
        // Completions 10 ms apart: a stall has 200 ms; completions 1 ms apart: it has 100 ms.
        let stall = |apart_ms: u64, gap_ms: u64| {
            let (mut watch, mut at_ns) = (StallWatch::new(0), 0);
            for number in 0..100 {
                at_ns += if number == 50 { gap_ms } else { apart_ms } * MS;
                watch.count_depth(at_ns, 1);
                watch.complete(at_ns, at_ns - MS);
            }
            watch.finish(at_ns).map(|stalls| stalls.total_ns() / MS)
        };
        assert_eq!((stall(1, 99), stall(1, 100)), (None, Some(100)));
        assert_eq!((stall(10, 199), stall(10, 200)), (None, Some(200)));
    }

    #[test]
    fn only_requests_that_waited_through_a_stall_are_in_its_latencies() {
        let mut watch = StallWatch::new(0);
        for at_ms in 1..=100 {
            watch.count_depth(at_ms * MS, 2);
            watch.complete(at_ms * MS, (at_ms - 1) * MS);
        }
        // A stall from 100 to 1,100 ms; one request arrived within it, and one at its end.
        watch.count_depth(1_100 * MS, 2);
        watch.complete(1_100 * MS, 100 * MS);
        for (at_ms, intended_ms) in [(1_101, 1_099), (1_102, 1_100), (1_103, 1_102)] {
            watch.count_depth(at_ms * MS, 2);
            watch.complete(at_ms * MS, intended_ms * MS);
        }
        let latency = watch.finish(1_103 * MS).unwrap().latency.open();
        assert_eq!((latency.count(), latency.min_ns(), latency.max_ns()), (2, 2 * MS, 1_000 * MS));
    }

    #[test]
    fn an_idle_end_is_no_stall() {
        let mut watch = StallWatch::new(0);
        for at_ms in 1..=100 {
            watch.count_depth(at_ms * MS, 1);
            watch.complete(at_ms * MS, (at_ms - 1) * MS);
        }
        watch.count_depth(5_000 * MS, 0);
        assert_eq!(watch.finish(5_000 * MS), None);
    }

    #[test]
    fn joined_stalls_overlap_or_follow_each_other() {
        let stalls = |each: &[(u64, u64)]| {
            let longest = each.iter().map(|&(start_ns, duration_ns)| Stall { start_ns, duration_ns, queue_depth: 2 });
            Stalls { longest: longest.collect(), latency: LatencyHistogram::new().store() }
        };
        let joined = |each: &[(i64, Stalls)]| {
            let joined = Stalls::joined(each.iter().map(|(later_ns, stalls)| (*later_ns, stalls))).unwrap();
            joined.longest.iter().map(|it| (it.start_ns, it.duration_ns, it.queue_depth)).collect::<Vec<_>>()
        };
        // One within the other, one that begins at the end of another, and one that is moved before the start.
        assert_eq!(joined(&[(0, stalls(&[(100, 50)])), (0, stalls(&[(110, 10)]))]), [(100, 50, 4)]);
        assert_eq!(joined(&[(0, stalls(&[(100, 50)])), (0, stalls(&[(150, 10)]))]), [(100, 50, 2), (150, 10, 2)]);
        assert_eq!(joined(&[(-30, stalls(&[(20, 50)])), (5, stalls(&[(100, 10)]))]), [(0, 50, 2), (105, 10, 2)]);
        assert_eq!(stalls(&[(100, 50), (200, 7)]).total_ns(), 57);
    }
}
