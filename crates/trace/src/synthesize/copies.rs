//! The copies of the footprint: each plays every window of the history, on its own pieces and in an order of its own.
//!
//! Requests and times part here. The requests of the copies take turns, a run or a single request each, so that between
//! two uses of a block lies so much more as there are more copies. Copies whose bursts take turns have no bursts: they even
//! each other out. So the times are those of one copy after the other, and counts vary as in the trace at every scale.
//! All copies are in the same window, so that what is busy, hot or large at some time is so in all of them at once.

use std::collections::VecDeque;

use headstack_workload::{Purpose, Random};

use super::bursts::Played;
use super::history::{History, Open};
use super::places::Places;
use crate::error::TraceError;

/// All copies.
pub(super) struct Copies<'a> {
    history: History<'a>,
    places: &'a Places,
    /// What each of them draws.
    randoms: Vec<Random>,
    ready: VecDeque<Played>,
}

impl<'a> Copies<'a> {
    /// The copies that there are places for, of a history of some requests that come `mean_gap_ns` apart.
    pub(super) fn begin(
        open: &'a Open<'a>,
        places: &'a Places,
        mean_gap_ns: u64,
        seed: u64,
    ) -> Result<Copies<'a>, TraceError> {
        // Copies differ by the golden ratio's bits, as streams of SplitMix64 do.
        let random = |copy: u64| Random::new(seed ^ copy.wrapping_mul(0x9e37_79b9_7f4a_7c15), Purpose::Permutation);
        let randoms = (0..places.copies).map(random).collect();
        Ok(Copies { history: History::begin(open, mean_gap_ns)?, places, randoms, ready: VecDeque::new() })
    }

    /// The next request, at its new place.
    pub(super) fn next(&mut self) -> Result<Played, TraceError> {
        if self.ready.is_empty() {
            let (window, lap) = self.history.next()?;
            let mut draws: Vec<Vec<Played>> = self.randoms.iter_mut().map(|random| window.played(random)).collect();
            let gaps_ns: Vec<u64> = draws.iter().flatten().map(|played| played.gap_ns).collect();
            for (copy, draw) in (0..).zip(&mut draws) {
                self.places.keep(draw, copy, lap);
            }
            let timed = |(played, gap_ns)| Played { gap_ns, ..played };
            self.ready = in_turns(draws).into_iter().zip(gaps_ns).map(timed).collect();
        }
        Ok(self.ready.pop_front().expect("the first copy has every request of a window"))
    }
}

/// The requests of all draws. The next one that is not within a run is of the draw of which least was played.
fn in_turns(draws: Vec<Vec<Played>>) -> Vec<Played> {
    let all: usize = draws.iter().map(Vec::len).sum();
    let mut mixed = Vec::with_capacity(all);
    let (mut played, mut turn) = (vec![0; draws.len()], 0);
    while mixed.len() < all {
        if draws[turn].get(played[turn]).is_none_or(|next| !next.goes_on) {
            // Shares of two draws are compared crosswise, for they are whole numbers.
            let least = (0..draws.len())
                .filter(|&draw| played[draw] < draws[draw].len())
                .min_by(|&one, &other| (played[one] * draws[other].len()).cmp(&(played[other] * draws[one].len())));
            turn = least.expect("a request is left");
        }
        mixed.push(draws[turn][played[turn]]);
        played[turn] += 1;
    }
    mixed
}
