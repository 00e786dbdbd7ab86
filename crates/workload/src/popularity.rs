//! [`Popularity`]: which blocks of a system the requests of a skewed distribution use most, without drawing a request.

use crate::addresses::{Addresses, Scatter, Zipf, band_places, pareto_exponent};
use crate::places::Places;
use crate::random::{Purpose, Random};

/// Popularity of each block under a skewed distribution, exactly as a [`Generator`](crate::Generator) with the same
/// blocks and seed draws it.
#[derive(Clone, Debug)]
pub struct Popularity {
    blocks: Places,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    /// A permutation scatters the ranks.
    Zipf(Zipf, Scatter),
    Pareto {
        exponent: f64,
        scatter: Scatter,
    },
    /// First block of each band, the block after its last, and its share of the accesses. A block's rank is its number.
    Bands(Vec<(u64, u64, f64)>),
}

impl Popularity {
    /// Creates the popularity of `blocks` in a run with this seed; `None` if the distribution is not skewed, or depends on
    /// more than the block (normal, vdbench's hot band).
    pub fn new(addresses: &Addresses, blocks: Places, seed: u64) -> Option<Popularity> {
        let scatter = || Scatter::new(blocks, &mut Random::new(seed, Purpose::Permutation));
        let law = match addresses {
            Addresses::Zipf { theta } => Law::Zipf(Zipf::new(blocks.count, *theta), scatter()),
            Addresses::Pareto { h } => Law::Pareto { exponent: pareto_exponent(*h), scatter: scatter() },
            Addresses::HotBands(bands) => Law::Bands(
                bands
                    .iter()
                    .map(|band| {
                        let (first, end) =
                            band_places(blocks.count, band.from_percent / 100.0, band.to_percent / 100.0);
                        (first, end, band.share_percent / 100.0)
                    })
                    .collect(),
            ),
            Addresses::Uniform
            | Addresses::Once
            | Addresses::RandomMap
            | Addresses::Strided { .. }
            | Addresses::Normal { .. }
            | Addresses::VdbenchHotband { .. } => return None,
        };
        Some(Popularity { blocks, law })
    }

    /// Returns the blocks.
    pub fn blocks(&self) -> Places {
        self.blocks
    }

    /// Returns the rank of the block that holds the byte at `offset_bytes`: 0 for the most popular, or its number if the
    /// distribution has bands. `None` outside the blocks.
    #[inline]
    pub fn rank_at(&self, offset_bytes: u64) -> Option<u64> {
        let block = offset_bytes.checked_sub(self.blocks.first_bytes)? / self.blocks.step_bytes;
        (block < self.blocks.count).then(|| match &self.law {
            Law::Zipf(_, scatter) | Law::Pareto { scatter, .. } => scatter.rank(block),
            Law::Bands(_) => block,
        })
    }

    /// Returns for each of ascending ranks the share of the requests that use blocks of a lower rank.
    pub fn shares_below(&self, ends: impl IntoIterator<Item = u64>) -> Vec<f64> {
        let count = self.blocks.count;
        match &self.law {
            Law::Zipf(zipf, _) => {
                let mut weights: Vec<f64> = zipf.weights_below(ends.into_iter().chain([count])).collect();
                let all = weights.pop().expect("the sum of all weights");
                weights.iter().map(|weight| weight / all).collect()
            }
            Law::Pareto { exponent, .. } => {
                let share = |end: u64| libm::pow(end as f64 / count as f64, 1.0 / exponent).min(1.0);
                ends.into_iter().map(share).collect()
            }
            Law::Bands(bands) => {
                let part = |end: u64, &(first, last, share): &(u64, u64, f64)| {
                    share * end.saturating_sub(first).min(last - first) as f64 / (last - first) as f64
                };
                ends.into_iter().map(|end| bands.iter().map(|band| part(end, band)).sum()).collect()
            }
        }
    }

    /// Returns the ranks at which the popularity steps up or down, ascending; empty if it falls steadily from the first
    /// rank to the last and a permutation scatters the ranks.
    pub fn steps(&self) -> Vec<u64> {
        match &self.law {
            Law::Zipf(..) | Law::Pareto { .. } => Vec::new(),
            Law::Bands(bands) => {
                let mut steps: Vec<u64> = bands.iter().flat_map(|&(first, end, _)| [first, end]).collect();
                steps.extend([0, self.blocks.count]);
                steps.sort_unstable();
                steps.dedup();
                steps
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addresses::Band;
    use crate::{AccessLine, AccessSpecification, Arrivals, Generator, RunLength, Sequence, Span, WarmUp, Workload};

    fn workload(addresses: Addresses, size_bytes: u32) -> Workload {
        let line = AccessLine {
            size_bytes,
            share_percent: 100.0,
            read_percent: 0.0,
            random_percent: 100.0,
            trim_percent: 0.0,
            delay_ns: 0,
            burst: 1,
            align_bytes: Some(4096),
        };
        Workload {
            name: "skewed".to_owned(),
            source: String::new(),
            specification: AccessSpecification { name: "skewed".to_owned(), lines: vec![line] },
            addresses,
            streams: 1,
            stream_turn: 1,
            flush_every: 0,
            sync_every: 0,
            dsync_every: 0,
            sequence: Sequence::default(),
            arrivals: Arrivals::default(),
            warm_up: WarmUp::default(),
            run_length: RunLength::default(),
        }
    }

    #[test]
    fn popularity_is_that_of_the_generated_requests() {
        let band = |from_percent, to_percent, share_percent| Band { from_percent, to_percent, share_percent };
        let cases = [
            Addresses::Zipf { theta: 0.9 },
            Addresses::Zipf { theta: 1.2 },
            Addresses::Pareto { h: 0.2 },
            Addresses::HotBands(vec![band(0.0, 20.0, 80.0), band(20.0, 60.0, 15.0), band(50.0, 100.0, 5.0)]),
        ];
        let span = Span { start_bytes: 1 << 20, length_bytes: 3000 * 4096 + 512 };
        for (addresses, size_bytes) in cases.iter().flat_map(|addresses| [(addresses, 4096), (addresses, 12_288)]) {
            let mut generator =
                Generator::new(&workload(addresses.clone(), size_bytes), span, 512, 7).expect("a valid workload");
            let blocks = generator.popular_blocks().expect("skewed");
            let popularity = Popularity::new(addresses, blocks, 7).expect("skewed");
            let ends = [1, 30, 200, blocks.count / 5, blocks.count / 2, blocks.count];
            let mut below = [0u32; 6];
            let draws = 100_000;
            for _ in 0..draws {
                let rank = popularity.rank_at(generator.next().offset_bytes).expect("inside");
                below.iter_mut().zip(ends).for_each(|(count, end)| *count += u32::from(rank < end));
            }
            for ((count, end), expected) in below.into_iter().zip(ends).zip(popularity.shares_below(ends)) {
                let share = f64::from(count) / f64::from(draws);
                let sigma = (expected * (1.0 - expected) / f64::from(draws)).max(0.0).sqrt();
                assert!(
                    (share - expected).abs() <= 4.0 * sigma + 1e-4,
                    "{addresses:?} below {end}: {share}, {expected}"
                );
            }
            assert_eq!(popularity.rank_at(span.start_bytes - 1), None);
            assert_eq!(popularity.rank_at(blocks.offset_bytes(blocks.count)), None);
        }
    }
}
