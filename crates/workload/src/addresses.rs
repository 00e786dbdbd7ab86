//! [`Addresses`]: distributions of random addresses, and their samplers.

use serde::{Deserialize, Serialize};

use crate::access::{Complaint, check_percent, check_share, check_sum};
use crate::hotband::Hotband;
use crate::places::Places;
use crate::quantity::bytes_u64;
use crate::random::{AliasTable, Permutation, Random};
use crate::request::Kind;

/// Distribution of random addresses.
///
/// [`Uniform`](Addresses::Uniform), [`Normal`](Addresses::Normal) and [`HotBands`](Addresses::HotBands) choose among
/// the aligned positions at which a request fits into the span. Under [`Zipf`](Addresses::Zipf) and
/// [`Pareto`](Addresses::Pareto), each block has a popularity, which all lines share. A block has the smallest request
/// size of the specification, rounded up to the common alignment, and a request starts at the start of its block. A
/// permutation keyed with the seed spreads popular blocks over the whole span. [`Once`](Addresses::Once) and
/// [`RandomMap`](Addresses::RandomMap) use the same blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Addresses {
    /// All positions have the same probability.
    #[default]
    Uniform,
    /// Uses every block once in random order, then again in another order, and so on.
    Once,
    /// Uses every block once, like fio's random map. If a random block has been used, takes the next unused one. A
    /// request is cut to the free space after its start, so that each block is used once with any request sizes.
    RandomMap,
    /// Ascending positions in zones: reads or writes `zone` bytes sequentially, then moves to the next zone, which
    /// starts `step` bytes after the start of the last zone. After the end of the span, starts over.
    Strided {
        /// Length of a zone in bytes. A longer request is a zone of its own.
        #[serde(rename = "zone", with = "bytes_u64")]
        zone_bytes: u64,
        /// Distance from the start of a zone to the start of the next, in bytes, above 0.
        #[serde(rename = "step", with = "bytes_u64")]
        step_bytes: u64,
        /// Whether zones follow in descending order, from the end of the span to its start.
        #[serde(default)]
        backwards: bool,
    },
    /// Gives the block of rank k a probability proportional to k^-theta.
    Zipf {
        /// Exponent, above 0 and at most 10.
        theta: f64,
    },
    /// Self-similar distribution (Gray et al., SIGMOD 1994): a share 1 - h of the accesses goes to a share h of the
    /// blocks, and likewise inside each part. For example, 0.2 is the 80/20 rule.
    Pareto {
        /// Share h, above 0 and below 1.
        h: f64,
    },
    /// Normal distribution around a position, truncated at the ends of the span.
    Normal {
        /// Mean, in percent of the span.
        mean_percent: f64,
        /// Standard deviation in percent of the span, above 0 and at most 100.
        deviation_percent: f64,
    },
    /// Bands of the span, each with a share of the accesses and uniform inside. Bands may overlap and may leave gaps.
    HotBands(Vec<Band>),
    /// Band of the span accessed like vdbench's `hotband=(from,to)`: most often near its start and less often further
    /// on, following a cache hit curve built into vdbench.
    VdbenchHotband {
        /// Start, in percent of the span.
        from_percent: f64,
        /// End, in percent of the span.
        to_percent: f64,
    },
}

/// A band of the span, with its share of the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// Start, in percent of the span.
    pub from_percent: f64,
    /// End, in percent of the span.
    pub to_percent: f64,
    /// Share of the random accesses, in percent.
    pub share_percent: f64,
}

impl Addresses {
    /// Checks everything that does not depend on the system.
    ///
    /// # Errors
    /// Returns the first key with an invalid value, and a message with the allowed values.
    pub fn validate(&self) -> Result<(), Complaint> {
        let range = |key: &str, value: f64, is_allowed: bool, allowed: &str| {
            let message = format!("{value} is out of range; must be {allowed}");
            if is_allowed { Ok(()) } else { Err((key.to_owned(), message)) }
        };
        match self {
            Addresses::Uniform | Addresses::Once | Addresses::RandomMap => Ok(()),
            Addresses::Strided { zone_bytes, step_bytes, .. } => {
                range("addresses.strided.zone", *zone_bytes as f64, *zone_bytes > 0, "above 0")?;
                range("addresses.strided.step", *step_bytes as f64, *step_bytes > 0, "above 0")
            }
            Addresses::Zipf { theta } => {
                let is_allowed = *theta > 0.0 && *theta <= 10.0;
                range("addresses.zipf.theta", *theta, is_allowed, "above 0 and at most 10")
            }
            Addresses::Pareto { h } => {
                let is_allowed = *h > 0.0 && *h < 1.0;
                range("addresses.pareto.h", *h, is_allowed, "above 0 and below 1")
            }
            Addresses::Normal { mean_percent, deviation_percent } => {
                check_percent("addresses.normal.mean_percent", *mean_percent)?;
                let is_allowed = *deviation_percent > 0.0 && *deviation_percent <= 100.0;
                range("addresses.normal.deviation_percent", *deviation_percent, is_allowed, "above 0 and at most 100")
            }
            Addresses::HotBands(bands) => validate_bands(bands),
            Addresses::VdbenchHotband { from_percent, to_percent } => {
                check_band(|name| format!("addresses.vdbench_hotband.{name}"), *from_percent, *to_percent)
            }
        }
    }
}

fn validate_bands(bands: &[Band]) -> Result<(), Complaint> {
    for (index, band) in bands.iter().enumerate() {
        let key = |name: &str| format!("addresses.hot_bands[{index}].{name}");
        check_band(key, band.from_percent, band.to_percent)?;
        check_share(&key("share_percent"), band.share_percent)?;
    }
    check_sum("addresses.hot_bands", bands.iter().map(|band| band.share_percent))
}

fn check_band(key: impl Fn(&str) -> String, from_percent: f64, to_percent: f64) -> Result<(), Complaint> {
    check_percent(&key("from_percent"), from_percent)?;
    check_percent(&key("to_percent"), to_percent)?;
    if from_percent >= to_percent {
        let message = format!("the band ends at {to_percent} %, which is not above its start at {from_percent} %");
        return Err((key("to_percent"), message));
    }
    Ok(())
}

/// Sampler of offsets of random accesses for one distribution.
pub(crate) enum Sampler {
    Uniform,
    Once(Rounds),
    Map(RandomMap),
    Strided(Strides),
    Zipf(Zipf, Scatter),
    Pareto { exponent: f64, scatter: Scatter },
    Normal { mean: f64, deviation: f64 },
    HotBands { choice: AliasTable, bands: Vec<(f64, f64)> },
    VdbenchHotband(Hotband),
}

/// Spreads popularity ranks over the blocks of a skewed distribution.
#[derive(Clone, Debug)]
pub(crate) struct Scatter {
    pub(crate) blocks: Places,
    permutation: Permutation,
}

impl Scatter {
    /// Creates the permutation of a run's blocks from the next numbers of `keys`.
    pub(crate) fn new(blocks: Places, keys: &mut Random) -> Scatter {
        Scatter { blocks, permutation: Permutation::new(blocks.count, keys) }
    }

    /// Returns the rank of a block.
    pub(crate) fn rank(&self, block: u64) -> u64 {
        self.permutation.invert(block)
    }

    #[inline]
    fn offset_bytes(&self, rank: u64) -> u64 {
        self.blocks.offset_bytes(self.permutation.apply(rank))
    }
}

/// Uses every block once in the order of a permutation, then again in the order of another.
pub(crate) struct Rounds {
    scatter: Scatter,
    next: u64,
    keys: Random,
}

impl Rounds {
    #[inline]
    fn offset_bytes(&mut self) -> u64 {
        if self.next == self.scatter.blocks.count {
            self.scatter.permutation = Permutation::new(self.next, &mut self.keys);
            self.next = 0;
        }
        let offset_bytes = self.scatter.offset_bytes(self.next);
        self.next += 1;
        offset_bytes
    }
}

/// Uses every block once for requests of different lengths, like fio's random map. A request starts at a free block and
/// is cut to the free space after it. When no block is free, all become free again.
///
/// A bit marks a used block. Each word has 64 bits, and each further level has one bit for each full word of the level
/// below.
pub(crate) struct RandomMap {
    blocks: Places,
    levels: Vec<Vec<u64>>,
    left: u64,
}

/// Maximum number of blocks; a larger map would take more than 2 GiB.
const MAP_BLOCKS_MAX: u64 = 1 << 34;

impl RandomMap {
    /// Creates a map with all blocks free, or `None` if it would have no blocks or too many.
    pub(crate) fn new(blocks: Places) -> Option<RandomMap> {
        if blocks.count == 0 || blocks.count > MAP_BLOCKS_MAX {
            return None;
        }
        let mut levels = Vec::new();
        let mut bits = blocks.count;
        loop {
            let words = bits.div_ceil(64);
            levels.push(vec![0; words as usize]);
            if words == 1 {
                return Some(RandomMap { blocks, levels, left: blocks.count });
            }
            bits = words;
        }
    }

    /// Takes the first free block at or after a random one, and the free blocks directly after it as far as they are
    /// needed. Returns the offset and the length available.
    pub(crate) fn take(&mut self, length_bytes: u32, random: &mut Random) -> (u64, u32) {
        if self.left == 0 {
            self.levels.iter_mut().for_each(|level| level.fill(0));
            self.left = self.blocks.count;
        }
        let block = self.free_from(random.below(self.blocks.count));
        let wanted = u64::from(length_bytes).div_ceil(self.blocks.step_bytes);
        let end = (block + wanted).min(self.blocks.count);
        let mut next = block;
        while next < end && !self.is_taken(next) {
            self.set(next);
            next += 1;
        }
        self.left -= next - block;
        // The length is at most that of the request, so it is below 2^32.
        let length_bytes = ((next - block) * self.blocks.step_bytes).min(length_bytes.into()) as u32;
        (self.blocks.offset_bytes(block), length_bytes)
    }

    fn is_taken(&self, block: u64) -> bool {
        self.levels[0][(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    fn set(&mut self, block: u64) {
        let mut at = block;
        for level in &mut self.levels {
            let word = &mut level[(at / 64) as usize];
            *word |= 1 << (at % 64);
            if *word != u64::MAX {
                return;
            }
            at /= 64;
        }
    }

    /// Returns the first free block at or after `block`, wrapping around at the end. At least one block must be free.
    fn free_from(&self, block: u64) -> u64 {
        self.free_at_or_behind(block).or_else(|| self.free_at_or_behind(0)).expect("at least one block is free")
    }

    fn free_at_or_behind(&self, block: u64) -> Option<u64> {
        let (mut level, mut at) = (0, block);
        // Go up until a word has a free bit after this position.
        loop {
            let word = self.levels[level].get((at / 64) as usize)?;
            let free = !word & (u64::MAX << (at % 64));
            if free != 0 {
                at = at / 64 * 64 + u64::from(free.trailing_zeros());
                break;
            }
            level += 1;
            if level == self.levels.len() {
                return None;
            }
            at = at / 64 + 1;
        }
        // Go down to the first free bit of each word.
        while level > 0 {
            level -= 1;
            let word = self.levels[level].get(at as usize)?;
            at = at * 64 + u64::from((!word).trailing_zeros());
        }
        (at < self.blocks.count).then_some(at)
    }
}

/// State of strided accesses: one zone after another.
pub(crate) struct Strides {
    zone_bytes: u64,
    step_bytes: u64,
    backwards: bool,
    /// Start of the zone of the next request; `None` before the first request.
    zone_start: Option<u64>,
    /// Number of bytes used in the current zone.
    used_bytes: u64,
}

impl Strides {
    fn offset_bytes(&mut self, places: &Places, length_bytes: u32) -> u64 {
        let last = places.offset_bytes(places.count - 1);
        let fits = |start: &u64, used: u64| used + u64::from(length_bytes) <= self.zone_bytes && start + used <= last;
        let start = match self.zone_start {
            None => places.first_bytes,
            Some(start) if fits(&start, self.used_bytes) => start,
            Some(start) => {
                self.used_bytes = 0;
                self.next_zone(start, places.first_bytes, last)
            }
        };
        self.zone_start = Some(start);
        let offset_bytes = start + self.used_bytes;
        self.used_bytes += u64::from(length_bytes);
        offset_bytes
    }

    fn next_zone(&self, start: u64, first: u64, last: u64) -> u64 {
        // The request may be longer than the previous one and fit at fewer positions.
        let (next, begin) = match self.backwards {
            true => (start.checked_sub(self.step_bytes), last),
            false => (start.checked_add(self.step_bytes), first),
        };
        next.filter(|next| (first..=last).contains(next)).unwrap_or(begin)
    }
}

impl Sampler {
    /// Creates the sampler of a distribution. `blocks` are the units of popularity of skewed distributions.
    pub(crate) fn new(addresses: &Addresses, blocks: Places, mut keys: Random) -> Sampler {
        let mut scatter = || Scatter::new(blocks, &mut keys);
        match addresses {
            // The generator creates hot bands and maps itself, because they need the span.
            Addresses::Uniform | Addresses::VdbenchHotband { .. } | Addresses::RandomMap => Sampler::Uniform,
            Addresses::Once => {
                let scatter = scatter();
                Sampler::Once(Rounds { scatter, next: 0, keys })
            }
            Addresses::Strided { zone_bytes, step_bytes, backwards } => Sampler::Strided(Strides {
                zone_bytes: *zone_bytes,
                step_bytes: *step_bytes,
                backwards: *backwards,
                zone_start: None,
                used_bytes: 0,
            }),
            Addresses::Zipf { theta } => Sampler::Zipf(Zipf::new(blocks.count, *theta), scatter()),
            Addresses::Pareto { h } => Sampler::Pareto { exponent: pareto_exponent(*h), scatter: scatter() },
            Addresses::Normal { mean_percent, deviation_percent } => {
                Sampler::Normal { mean: mean_percent / 100.0, deviation: deviation_percent / 100.0 }
            }
            Addresses::HotBands(bands) => {
                let shares: Vec<f64> = bands.iter().map(|band| band.share_percent).collect();
                Sampler::HotBands {
                    choice: AliasTable::new(&shares),
                    bands: bands.iter().map(|band| (band.from_percent / 100.0, band.to_percent / 100.0)).collect(),
                }
            }
        }
    }

    /// Returns the offset of a random access of `length_bytes` at one of `places`.
    #[inline]
    pub(crate) fn offset_bytes(&mut self, places: &Places, length_bytes: u32, kind: Kind, random: &mut Random) -> u64 {
        match self {
            Sampler::Once(rounds) => rounds.offset_bytes(),
            // This caller does not need the cut length.
            Sampler::Map(map) => map.take(length_bytes, random).0,
            Sampler::Strided(strides) => strides.offset_bytes(places, length_bytes),
            Sampler::Uniform => places.offset_bytes(random.below(places.count)),
            Sampler::Zipf(zipf, scatter) => scatter.offset_bytes(zipf.rank(random)),
            Sampler::Pareto { exponent, scatter } => {
                let count = scatter.blocks.count;
                let rank = (count as f64 * libm::pow(random.unit(), *exponent)) as u64;
                scatter.offset_bytes(rank.min(count - 1))
            }
            Sampler::Normal { mean, deviation } => loop {
                let position = *mean + *deviation * random.normal();
                if (0.0..1.0).contains(&position) {
                    let index = (position * places.count as f64) as u64;
                    return places.offset_bytes(index.min(places.count - 1));
                }
            },
            Sampler::HotBands { choice, bands } => {
                let (from, to) = bands[choice.pick(random)];
                let (first, end) = band_places(places.count, from, to);
                places.offset_bytes(first + random.below(end - first))
            }
            Sampler::VdbenchHotband(band) => band.offset_bytes(places, length_bytes, kind, random),
        }
    }
}

/// Returns the power of a uniform number that is the relative rank of an access under [`Addresses::Pareto`].
pub(crate) fn pareto_exponent(h: f64) -> f64 {
    libm::log(h) / libm::log1p(-h)
}

/// Returns the range of places in a band: from the first place that starts inside the band to the first that starts
/// after it. Adjacent bands share no place and leave none out. A band narrower than one place gets the nearest place.
pub(crate) fn band_places(count: u64, from: f64, to: f64) -> (u64, u64) {
    let first = ((from * count as f64).ceil() as u64).min(count - 1);
    let end = ((to * count as f64).ceil() as u64).clamp(first + 1, count);
    (first, end)
}

/// Zipf distribution on ranks `0..n`, sampled by rejection-inversion (Hörmann & Derflinger, "Rejection-inversion to
/// generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996). The method is exact for any n, uses
/// constant memory, and takes fewer than 1.2 draws on average.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    n: f64,
    theta: f64,
    /// Integral of the hat function at 1.5, minus the probability mass of rank 1.
    integral_first: f64,
    /// Integral of the hat function at n + 1/2.
    integral_last: f64,
    /// Distance from the rank below which a point is accepted without a test.
    squeeze: f64,
}

impl Zipf {
    pub(crate) fn new(n: u64, theta: f64) -> Zipf {
        let n = n as f64;
        let shape = |theta| Zipf { n, theta, integral_first: 0.0, integral_last: 0.0, squeeze: 0.0 };
        let hat = shape(theta);
        Zipf {
            integral_first: hat.integral(1.5) - 1.0,
            integral_last: hat.integral(n + 0.5),
            squeeze: 2.0 - hat.inverse_integral(hat.integral(2.5) - hat.hat(2.0)),
            ..hat
        }
    }

    /// Returns x^-theta.
    #[inline]
    fn hat(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// Returns the integral of t^-theta from 1 to x: (x^(1-theta) - 1) / (1 - theta), or ln x for theta 1.
    #[inline]
    fn integral(&self, x: f64) -> f64 {
        let log_x = libm::log(x);
        expm1_over((1.0 - self.theta) * log_x) * log_x
    }

    #[inline]
    fn inverse_integral(&self, y: f64) -> f64 {
        // Rounding may make the argument less than -1, where the logarithm is undefined.
        let scaled = (y * (1.0 - self.theta)).max(-1.0);
        libm::exp(log1p_over(scaled) * y)
    }

    /// Returns the sum of the weights `k^-theta` of the first `ends` ranks, for ascending numbers of ranks; `k` is the rank
    /// plus 1. The sum over ranks after the first 64 is their integral (midpoint rule; relative error below 1e-5).
    pub(crate) fn weights_below(&self, ends: impl IntoIterator<Item = u64>) -> impl Iterator<Item = f64> {
        const SUMMED: u64 = 64;
        let (mut summed, mut sum) = (0, 0.0);
        let base = self.integral(SUMMED as f64 + 0.5);
        ends.into_iter().map(move |end| {
            while summed < end.min(SUMMED) {
                summed += 1;
                sum += self.hat(summed as f64);
            }
            if end > SUMMED { sum + self.integral(end as f64 + 0.5) - base } else { sum }
        })
    }

    /// Draws a rank; 0 is the most popular.
    #[inline]
    pub(crate) fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let y = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse_integral(y);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.squeeze || y >= self.integral(k + 0.5) - self.hat(k) {
                return k as u64 - 1;
            }
        }
    }
}

/// Returns (e^x - 1) / x, continuous at 0.
#[inline]
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::expm1(x) / x } else { 1.0 + x / 2.0 }
}

/// Returns ln(1 + x) / x, continuous at 0.
#[inline]
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests;
