//! [`Window`]: arrival times and order of a synthetic trace, a random cascade with the branches of the original.
//!
//! A window of the trace is split at its longest pause, each part at its own longest pause, and so on down to a few
//! requests: a tree of bursts within bursts. The synthetic trace swaps each pair of branches or not, at random. So the
//! shares of time and requests of a branch are those of the original at every scale, as are the dispersions of counts,
//! while the time of a burst is random: the b-model of Wang et al. (ICDE 2002), with measured biases in place of one.

use headstack_workload::Random;
use rustc_hash::FxHashMap;

use super::runs::Ends;
use crate::analyze::transfers;
use crate::record::{NOT_RECORDED, Operation, Record};

/// Size below which requests are not split further. Their order is kept, their gaps are permuted.
const LEAF: usize = 16;
/// Size of the largest pair of branches that is swapped: longer structures, such as a daily pattern, are kept.
const TURNED_MAX: usize = 1_024;
/// One in so many pairs of branches is swapped: neighbouring branches are often alike, and swapping every other pair
/// loses 33 % of the dispersion of real traces between its scales.
const BRANCHES_PER_TURN: u64 = 4;
/// A pair of branches is not swapped if more than one request in so many would then precede the one that it continues.
const REQUESTS_PER_TORN_RUN: usize = 200;

/// A request of a window with its timing.
#[derive(Clone, Copy)]
pub(super) struct Played {
    pub(super) record: Record,
    /// Time since the previous request.
    pub(super) gap_ns: u64,
    /// Think time of its client since the completion that it answers; 0 if there was none.
    pub(super) think_ns: u64,
    /// Whether it continues an earlier request of the window.
    pub(super) goes_on: bool,
}

/// A window of consecutive requests.
pub(super) struct Window {
    requests: Vec<Played>,
    /// The request that each one continues.
    follows: Vec<Option<u32>>,
    /// Whether a completion occurred between it and the previous request: then its gap belongs to the answer.
    answers: Vec<bool>,
}

impl Window {
    /// Analyses requests and the gaps before them.
    pub(super) fn of(mut requests: Vec<Played>) -> Window {
        let mut ends: FxHashMap<u32, Ends> = FxHashMap::default();
        let mut follows = Vec::with_capacity(requests.len());
        let mut answers = Vec::with_capacity(requests.len());
        let mut last_completion_ns: Vec<u64> = Vec::new();
        for (number, played) in (0..).zip(&mut requests) {
            let record = &played.record;
            let before = transfers(record.operation).then(|| {
                ends.entry(record.device).or_default().follow(record.offset_bytes, record.end_bytes(), number)
            });
            follows.push(before.flatten());
            played.goes_on = follows[follows.len() - 1].is_some();
            let since_ns = record.arrival_ns.saturating_sub(played.gap_ns);
            answers.push(last_completion_ns.iter().any(|&at_ns| at_ns > since_ns && at_ns <= record.arrival_ns));
            last_completion_ns.retain(|&at_ns| at_ns > record.arrival_ns);
            if record.response_ns != NOT_RECORDED {
                last_completion_ns.push(record.arrival_ns.saturating_add(record.response_ns));
            }
        }
        Window { requests, follows, answers }
    }

    /// Returns its requests in a new order, at new times.
    pub(super) fn played(&self, random: &mut Random) -> Vec<Played> {
        let mut played = Vec::with_capacity(self.requests.len());
        if let Some(first) = self.requests.first() {
            self.branch(0, self.requests.len(), first.gap_ns, random, &mut played);
        }
        played
    }

    /// Appends the requests from `from` to `to`, after a gap of `gap_ns`.
    fn branch(&self, from: usize, to: usize, gap_ns: u64, random: &mut Random, played: &mut Vec<Played>) {
        if to - from <= LEAF {
            self.leaf(from, to, gap_ns, random, played);
            return;
        }
        let quarter = (to - from) / 4;
        let pause = |at: &usize| (self.follows[*at].is_none(), self.requests[*at].gap_ns);
        let middle = (from + quarter..to - quarter).max_by_key(pause).expect("there are more than LEAF");
        let within_ns = self.requests[middle].gap_ns;
        let (mut first, mut second) = ((from, middle), (middle, to));
        let is_turned = random.below(BRANCHES_PER_TURN) == 0;
        if is_turned && to - from <= TURNED_MAX && self.torn(from, middle, to) * REQUESTS_PER_TORN_RUN <= to - from {
            (first, second) = (second, first);
        }
        self.branch(first.0, first.1, gap_ns, random, played);
        self.branch(second.0, second.1, within_ns, random, played);
    }

    /// Number of requests after `middle` that continue one before it.
    fn torn(&self, from: usize, middle: usize, to: usize) -> usize {
        let is_before = |before: &Option<u32>| before.is_some_and(|before| (from..middle).contains(&(before as usize)));
        self.follows[middle..to].iter().filter(|before| is_before(before)).count()
    }

    /// Appends a few requests in their order. Those of a class permute the gaps before them, except answers of a client
    /// to a completion.
    fn leaf(&self, from: usize, to: usize, gap_ns: u64, random: &mut Random, played: &mut Vec<Played>) {
        let mut gaps: Vec<u64> = self.requests[from..to].iter().map(|request| request.gap_ns).collect();
        gaps[0] = gap_ns;
        for index in (2..to - from).rev() {
            if self.answers[from + index] {
                continue;
            }
            let is_like =
                |other: &usize| !self.answers[from + other] && self.class(from + other) == self.class(from + index);
            let like: Vec<usize> = (1..=index).filter(is_like).collect();
            gaps.swap(index, like[random.below(like.len() as u64) as usize]);
        }
        played.extend(self.requests[from..to].iter().zip(gaps).map(|(request, gap_ns)| Played { gap_ns, ..*request }));
    }

    /// Class of gaps that may be permuted: their length to a factor of two, so that simultaneous requests remain so,
    /// and the request after them. After a run, or a large write, a program pauses differently than after a small read.
    fn class(&self, index: usize) -> (u32, Operation, u32, bool) {
        let Played { record, gap_ns, .. } = &self.requests[index];
        let length = record.length_bytes.checked_ilog2().unwrap_or(0);
        (gap_ns.checked_ilog2().unwrap_or(0), record.operation, length, self.follows[index].is_some())
    }
}
