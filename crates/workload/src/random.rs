//! [`Random`]: random numbers from xoshiro256++, with an independent stream for each purpose.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// Name of the random number generator, as recorded in results.
pub const GENERATOR_NAME: &str = "xoshiro256++";

/// Purpose of a stream of random numbers. With separate streams, one kind of draw does not shift another; for example,
/// addresses do not depend on when think times are drawn.
#[derive(Clone, Copy)]
pub enum Purpose {
    /// Addresses of requests.
    Addresses,
    /// Lines of an access specification.
    Choices,
    /// Think times.
    Think,
    /// Arrival times.
    Arrivals,
    /// Keys of permutations.
    Permutation,
    /// Pages of a web site.
    Pages,
    /// Sizes of pages.
    Sizes,
    /// Overwrites that bring an SSD to its steady state.
    Preconditioning,
    /// Contents of files created for measurements.
    Contents,
    /// Accesses affected by a media defect.
    MediaDefects,
    /// Effects of injected faults, and the requests affected.
    Faults,
    /// Latencies of a cloud volume.
    Latency,
    /// Phase and speed of the spindles of array members.
    Spindle,
    /// Times that the dies of an SSD take to suspend a program or an erase.
    Suspensions,
}

/// Returns the seed of client `index` of a scenario's stream `name`. Adding a stream to the scenario does not change
/// the draws of other streams.
pub(crate) fn seed_of(seed: u64, name: &str, index: u32) -> u64 {
    // FNV-1a, because its result never changes between versions.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mix = |value: u64| SplitMix64::seed_from_u64(value).next_u64();
    mix(mix(mix(seed) ^ hash) ^ u64::from(index))
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Creates the stream for `purpose`. It is seeded with the purpose's output of SplitMix64 under `seed`, which
    /// xoshiro's own seeding expands to 256 bits.
    pub fn new(seed: u64, purpose: Purpose) -> Random {
        let mut seeds = SplitMix64::seed_from_u64(seed);
        for _ in 0..purpose as u32 {
            seeds.next_u64();
        }
        Random(Xoshiro256PlusPlus::seed_from_u64(seeds.next_u64()))
    }

    /// Returns 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform number in `0..n` by multiply-high, without a division and with a bias below n / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Returns a uniform number in (0, 1] in steps of 2^-53. It is never 0, so its logarithm exists.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns a uniform number in [0, 1) in steps of 2^-53.
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns an exponentially distributed number with the given mean, by inversion.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(self.unit()) * mean
    }

    /// Returns a standard normal number, by Marsaglia's polar method.
    pub fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.unit() - 1.0;
            let y = 2.0 * self.unit() - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * libm::log(square) / square).sqrt();
            }
        }
    }
}

/// Walker's alias table: draws a weighted index with one random number.
#[derive(Clone, Debug)]
pub struct AliasTable {
    columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    /// Fraction of the column, in units of 2^-64, below which the draw is the column's own index. Above it, the draw is
    /// the alias.
    threshold: u64,
    alias: u32,
}

impl AliasTable {
    /// Builds the table by Vose's method. Weights must be positive and need not be normalized.
    pub fn new(weights: &[f64]) -> AliasTable {
        let scale = weights.len() as f64 / weights.iter().sum::<f64>();
        let mut heights: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&index| heights[index] < 1.0);
        // A column that no pair changes is full and is its own alias.
        let mut columns: Vec<Column> =
            (0..weights.len()).map(|index| Column { threshold: u64::MAX, alias: index as u32 }).collect();
        while let (Some(&from), Some(to)) = (large.last(), small.pop()) {
            columns[to] = Column { threshold: (heights[to] * 2f64.powi(64)) as u64, alias: from as u32 };
            heights[from] -= 1.0 - heights[to];
            if heights[from] < 1.0 {
                large.pop();
                small.push(from);
            }
        }
        AliasTable { columns }
    }

    /// Draws an index.
    #[inline]
    pub fn pick(&self, random: &mut Random) -> usize {
        let product = u128::from(random.bits()) * self.columns.len() as u128;
        let index = (product >> 64) as usize;
        let column = self.columns[index];
        if (product as u64) < column.threshold { index } else { column.alias as usize }
    }
}

/// A keyed permutation of `0..n`: a Feistel network over the bits of n - 1, repeated until the value is below n (Black
/// & Rogaway 2002). Unlike a hash modulo n, it reaches every value exactly once.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; 4],
}

impl Permutation {
    /// Creates a permutation. `n` must be 1 to 2^62, so that each half has at most 31 bits.
    pub fn new(n: u64, random: &mut Random) -> Permutation {
        debug_assert!((1..=1 << 62).contains(&n));
        let bits = u64::BITS - (n - 1).leading_zeros();
        let low_bits = bits.div_ceil(2);
        Permutation {
            n,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            high_mask: (1 << (bits - low_bits)) - 1,
            keys: std::array::from_fn(|_| random.bits()),
        }
    }

    /// Returns the image of `value`, which must be below n. The network's domain is below 2n, so this takes fewer than
    /// two steps on average.
    #[inline]
    pub fn apply(&self, value: u64) -> u64 {
        let mut value = value;
        loop {
            value = self.network(value);
            if value < self.n {
                return value;
            }
        }
    }

    /// Returns the value whose image is `image`, which must be below n.
    #[inline]
    pub fn invert(&self, image: u64) -> u64 {
        let mut value = image;
        loop {
            value = self.inverse_network(value);
            if value < self.n {
                return value;
            }
        }
    }

    /// Applies the network. Each round changes one half by a function of the other half, so it is invertible for any
    /// function. The halves may differ in width.
    #[inline]
    fn network(&self, value: u64) -> u64 {
        let (mut high, mut low) = (value >> self.low_bits, value & self.low_mask);
        for pair in self.keys.chunks_exact(2) {
            high ^= scramble(low ^ pair[0]) & self.high_mask;
            low ^= scramble(high ^ pair[1]) & self.low_mask;
        }
        high << self.low_bits | low
    }

    /// Undoes the rounds of [`Self::network`], last round first.
    #[inline]
    fn inverse_network(&self, value: u64) -> u64 {
        let (mut high, mut low) = (value >> self.low_bits, value & self.low_mask);
        for pair in self.keys.chunks_exact(2).rev() {
            low ^= scramble(high ^ pair[1]) & self.low_mask;
            high ^= scramble(low ^ pair[0]) & self.high_mask;
        }
        high << self.low_bits | low
    }
}

/// Mixes all bits of `value` into the lower half of the result, by Stafford's variant 13 of MurmurHash3's finalizer as
/// in SplitMix64, without the last step.
#[inline]
fn scramble(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::assert_fits;
    use proptest::prelude::*;

    #[test]
    fn alias_frequencies_follow_the_weights() {
        for weights in [
            vec![10.0, 5.0, 5.0, 60.0, 2.0, 4.0, 4.0, 10.0],
            vec![1.0, 1.0, 1.0],
            vec![40.0, 5.0, 30.0, 3.0, 12.0, 10.0],
            vec![99.0, 1.0],
            vec![7.0],
        ] {
            let table = AliasTable::new(&weights);
            let mut random = Random::new(3, Purpose::Choices);
            let mut counts = vec![0u64; weights.len()];
            for _ in 0..1_000_000 {
                counts[table.pick(&mut random)] += 1;
            }
            let sum: f64 = weights.iter().sum();
            let shares: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
            assert_fits("alias table", &counts, &shares);
        }
    }

    #[test]
    fn purposes_have_streams_of_their_own() {
        let first = |seed, purpose| Random::new(seed, purpose).bits();
        assert_ne!(first(1, Purpose::Addresses), first(1, Purpose::Choices));
        assert_ne!(first(1, Purpose::Addresses), first(2, Purpose::Addresses));
        assert_eq!(first(1, Purpose::Arrivals), first(1, Purpose::Arrivals));
    }

    #[test]
    fn xoshiro_and_splitmix_are_the_published_ones() {
        // SplitMix64 from 0 (Vigna's splitmix64.c): 0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, ...
        let mut seeds = SplitMix64::seed_from_u64(0);
        assert_eq!(seeds.next_u64(), 0xe220_a839_7b1d_cdaf);
        let expected = Xoshiro256PlusPlus::seed_from_u64(seeds.next_u64()).next_u64();
        assert_eq!(Random::new(0, Purpose::Choices).bits(), expected);
    }

    #[test]
    fn the_permutation_depends_on_its_key_and_leaves_few_in_place() {
        let permuted = |seed| {
            let mut keys = Random::new(seed, Purpose::Permutation);
            let permutation = Permutation::new(10_000, &mut keys);
            (0..10_000).map(|value| permutation.apply(value)).collect::<Vec<u64>>()
        };
        let (one, two) = (permuted(1), permuted(2));
        assert_ne!(one, two);
        // A random permutation has on average one fixed point, and one ascent by exactly 1.
        let fixed = (0u64..).zip(&one).filter(|&(from, &to)| from == to).count();
        let neighbours = one.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
        assert!(fixed < 10 && neighbours < 10, "{fixed} fixed, {neighbours} neighbours");
    }

    #[test]
    fn popular_ranks_are_spread_evenly() {
        // Checks the first 100 ranks under 4,000 keys, in 50 cells of the space.
        let n = 16_001;
        let mut cells = vec![0u64; 50];
        for seed in 0..4_000 {
            let permutation = Permutation::new(n, &mut Random::new(seed, Purpose::Permutation));
            for rank in 0..100 {
                cells[(permutation.apply(rank) * 50 / n) as usize] += 1;
            }
        }
        let places = |cell: u64| ((cell + 1) * n).div_ceil(50) - (cell * n).div_ceil(50);
        let shares: Vec<f64> = (0..50).map(|cell| places(cell) as f64 / n as f64).collect();
        assert_fits("permutation", &cells, &shares);
    }

    proptest! {
        #[test]
        fn the_permutation_is_a_bijection(n in 1u64..5_000, seed: u64) {
            let permutation = Permutation::new(n, &mut Random::new(seed, Purpose::Permutation));
            let mut seen = vec![false; n as usize];
            for value in 0..n {
                let image = permutation.apply(value) as usize;
                prop_assert!(!seen[image], "{} is reached twice", image);
                prop_assert_eq!(permutation.invert(image as u64), value);
                seen[image] = true;
            }
        }

        #[test]
        fn large_permutations_stay_inside(n in 1u64..(1 << 40), value: u64, seed: u64) {
            let permutation = Permutation::new(n, &mut Random::new(seed, Purpose::Permutation));
            let image = permutation.apply(value % n);
            prop_assert!(image < n && permutation.invert(image) == value % n);
        }
    }
}
