//! [`Copies`]: the copies of the footprint. Each copy plays every window of the history at its own addresses and in its
//! own order.
//!
//! Addresses and times are treated separately. The requests of the copies are interleaved by runs or single requests,
//! so that the distance between two uses of a block grows with the number of copies. Interleaving bursts would average
//! them out, so the times are those of one copy after another, and counts vary as in the original at every scale. All
//! copies are in the same window, so a busy, hot or large period is common to all of them.

use std::collections::VecDeque;

use headstack_workload::{Purpose, Random};

use super::bursts::Played;
use super::history::{History, Open};
use super::places::Places;
use crate::error::TraceError;

/// All copies of the footprint.
pub(super) struct Copies<'a> {
    history: History<'a>,
    places: &'a Places,
    /// Random number generator of each copy.
    randoms: Vec<Random>,
    ready: VecDeque<Played>,
}

impl<'a> Copies<'a> {
    /// Creates copies of a history whose requests arrive `mean_gap_ns` apart on average.
    pub(super) fn begin(
        open: &'a Open<'a>,
        places: &'a Places,
        mean_gap_ns: u64,
        seed: u64,
    ) -> Result<Copies<'a>, TraceError> {
        // The seeds of copies differ by a multiple of the golden ratio's bits, as those of SplitMix64 streams do.
        let random = |copy: u64| Random::new(seed ^ copy.wrapping_mul(0x9e37_79b9_7f4a_7c15), Purpose::Permutation);
        let randoms = (0..places.copies).map(random).collect();
        Ok(Copies { history: History::begin(open, mean_gap_ns)?, places, randoms, ready: VecDeque::new() })
    }

    /// Returns the next request at its new address.
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

/// Interleaves the requests of all copies. After the end of a run, the copy with the least progress is next.
fn in_turns(draws: Vec<Vec<Played>>) -> Vec<Played> {
    let all: usize = draws.iter().map(Vec::len).sum();
    let mut mixed = Vec::with_capacity(all);
    let (mut played, mut turn) = (vec![0; draws.len()], 0);
    while mixed.len() < all {
        if draws[turn].get(played[turn]).is_none_or(|next| !next.goes_on) {
            // Progress is compared by cross multiplication of integers.
            let least = (0..draws.len())
                .filter(|&draw| played[draw] < draws[draw].len())
                .min_by(|&one, &other| (played[one] * draws[other].len()).cmp(&(played[other] * draws[one].len())));
            turn = least.expect("at least one copy has a request left");
        }
        mixed.push(draws[turn][played[turn]]);
        played[turn] += 1;
    }
    mixed
}
