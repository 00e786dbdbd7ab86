//! [`LatencyHistogram`]: a mergeable histogram of latencies.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The longest latency that is binned: one hour, in ns. Longer latencies count as overflow.
pub const MAX_BINNED_NS: u64 = 3_600_000_000_000;

/// Significant decimal digits of a bin: bins are at most 0.1 % wide, and 1 ns wide below 2,048 ns.
const DIGITS: u8 = 3;

/// Number of binary digits of a latency that select its bin, after the leading one.
const BIN_BITS: u32 = 10;

/// Returns the bin of a latency.
#[inline]
fn bin_of(ns: u64) -> usize {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(BIN_BITS + 1);
    ((shift as usize) << BIN_BITS) + (ns >> shift) as usize
}

/// Returns the latency that represents a bin: its middle, in ns.
fn middle_ns(bin: usize) -> u64 {
    let shift = (bin >> BIN_BITS).saturating_sub(1);
    let begins_ns = ((bin - (shift << BIN_BITS)) as u64) << shift;
    begins_ns + ((1 << shift) >> 1)
}

/// A histogram of latencies in ns: bins for quantiles, and exact count, sum, sum of squares, minimum and maximum.
///
/// Latencies above [`MAX_BINNED_NS`] are in every figure except the bins. [`overflow`](Self::overflow) returns their
/// number, and a quantile among them is `None`.
#[derive(Clone)]
pub struct LatencyHistogram {
    /// Counts of the bins from `first_bin` on, only as far as latencies occurred: a few kilobytes for a short run.
    bins: Vec<u64>,
    first_bin: usize,
    binned: u64,
    overflow: u64,
    sum_ns: u128,
    sum_squares_ns2: u128,
    min_ns: u64,
    max_ns: u64,
}

impl LatencyHistogram {
    /// Creates an empty histogram. Its bins grow with the recorded latencies.
    pub fn new() -> Self {
        Self {
            bins: Vec::new(),
            first_bin: 0,
            binned: 0,
            overflow: 0,
            sum_ns: 0,
            sum_squares_ns2: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.sum_ns += u128::from(ns);
        // A squared hour fits 10^13 times. Only absurd latencies (above a century) saturate, and the standard deviation
        // shows that.
        self.sum_squares_ns2 = self.sum_squares_ns2.saturating_add(u128::from(ns) * u128::from(ns));
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        if ns <= MAX_BINNED_NS {
            self.count_in(bin_of(ns), 1);
        } else {
            self.overflow += 1;
        }
    }

    #[inline]
    fn count_in(&mut self, bin: usize, count: u64) {
        // A bin below `first_bin` wraps around to a large number, so one comparison covers both ends.
        if bin.wrapping_sub(self.first_bin) >= self.bins.len() {
            self.grow(bin);
        }
        self.bins[bin - self.first_bin] += count;
        self.binned += count;
    }

    #[cold]
    fn grow(&mut self, bin: usize) {
        if self.bins.is_empty() {
            self.first_bin = bin;
        }
        if bin < self.first_bin {
            // Leaves room for even shorter latencies, so that a falling series does not move all bins each time.
            let first = bin.saturating_sub(self.bins.len() / 2);
            self.bins.splice(..0, std::iter::repeat_n(0, self.first_bin - first));
            self.first_bin = first;
        } else {
            self.bins.resize(bin - self.first_bin + 1, 0);
        }
    }

    /// Adds all latencies of `other`. The order of merging does not matter.
    pub fn merge(&mut self, other: &Self) {
        other.in_use().for_each(|(bin, count)| self.count_in(bin, count));
        self.overflow += other.overflow;
        self.sum_ns += other.sum_ns;
        self.sum_squares_ns2 = self.sum_squares_ns2.saturating_add(other.sum_squares_ns2);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Returns the latencies without those of `some`, a part of them. If the longest is removed, the new longest is
    /// accurate to 0.05 %.
    pub fn without(&self, some: &Self) -> Self {
        let mut rest = Self::new();
        let mut taken = some.in_use().peekable();
        for (bin, count) in self.in_use() {
            while taken.next_if(|&(other, _)| other < bin).is_some() {}
            let less = taken.next_if(|&(other, _)| other == bin).map_or(0, |(_, less)| less);
            if count > less {
                rest.count_in(bin, count - less);
            }
        }
        rest.overflow = self.overflow.saturating_sub(some.overflow);
        rest.sum_ns = self.sum_ns.saturating_sub(some.sum_ns);
        rest.sum_squares_ns2 = self.sum_squares_ns2.saturating_sub(some.sum_squares_ns2);
        let first_ns = rest.bins().next().map_or(u64::MAX, |(value_ns, _)| value_ns);
        let last_ns = rest.bins().last().map_or(0, |(value_ns, _)| value_ns);
        rest.min_ns = if some.min_ns() == self.min_ns() && some.count() > 0 { first_ns } else { self.min_ns };
        rest.max_ns = if some.max_ns == self.max_ns { last_ns } else { self.max_ns };
        rest
    }

    /// Returns the number of recorded latencies, including overflow.
    pub fn count(&self) -> u64 {
        self.binned + self.overflow
    }

    /// Returns the number of latencies above [`MAX_BINNED_NS`].
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Returns the exact shortest latency, in ns; 0 when empty.
    pub fn min_ns(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.min_ns }
    }

    /// Returns the exact longest latency, including overflow, in ns; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the exact sum of all latencies, in ns.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Returns the mean latency in ns, from the exact sum; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.sum_ns as f64 / count as f64,
        }
    }

    /// Returns the standard deviation of the latencies in ns (divided by n, not n - 1), from exact sums; 0 when empty,
    /// infinite if the sum of squares does not fit 128 bits.
    pub fn standard_deviation_ns(&self) -> f64 {
        if self.count() == 0 {
            return 0.0;
        }
        let Some(deviations) = self.squared_deviations_ns2() else {
            return f64::INFINITY;
        };
        let count = self.count() as f64;
        let fraction = (self.sum_ns % u128::from(self.count())) as f64 / count;
        (deviations as f64 / count - fraction * fraction).max(0.0).sqrt()
    }

    /// Returns the sum of squared deviations from m, the integer part of the mean, in integers so that nothing cancels:
    /// (sum x^2 - m sum x) - m (sum x - n m). Returns `None` if the sum of squares is saturated.
    fn squared_deviations_ns2(&self) -> Option<u128> {
        let count = u128::from(self.count());
        let (mean, rest) = (self.sum_ns / count, self.sum_ns % count);
        let about_zero = Some(self.sum_squares_ns2).filter(|squares| *squares < u128::MAX)?;
        about_zero.checked_sub(mean.checked_mul(self.sum_ns)?)?.checked_sub(mean * rest)
    }

    /// Returns the quantile `q` (clamped to 0..=1) in ns: the smallest recorded latency such that at least the share
    /// `q` of all latencies does not exceed it. It is accurate to 0.05 %; the shortest and longest are exact. Returns
    /// `None` if the histogram is empty or the quantile is in the overflow.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let count = self.count();
        // The product is off by up to two rounding errors: without the margin, quantile 0.07 of 100 latencies would be
        // the 8th.
        let rank = (q.clamp(0.0, 1.0) * count as f64 * (1.0 - 4.0 * f64::EPSILON)).ceil() as u64;
        let rank = rank.clamp(1, count.max(1));
        if rank > self.binned {
            return None;
        }
        if rank == 1 {
            return Some(self.min_ns);
        }
        if rank == count {
            return Some(self.max_ns);
        }
        let mut below = 0;
        let (value_ns, _) = self.bins().find(|&(_, bin)| {
            below += bin;
            below >= rank
        })?;
        Some(value_ns.clamp(self.min_ns, self.max_ns))
    }

    /// Returns the cumulative distribution: for each used bin, its middle in ns and the share of all latencies up to
    /// its end. With overflow, the last share is below 1.
    pub fn cdf(&self) -> Vec<(u64, f64)> {
        let count = self.count() as f64;
        let mut below = 0;
        self.bins()
            .map(|(value_ns, bin)| {
                below += bin;
                (value_ns, below as f64 / count)
            })
            .collect()
    }

    /// Returns the middle, in ns, and the count of each used bin, in rising order. The last bin is cut at one hour,
    /// below its middle.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.in_use().map(|(bin, count)| (middle_ns(bin).min(MAX_BINNED_NS), count))
    }

    /// Returns the index and count of each used bin, in rising order.
    fn in_use(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.bins.iter().enumerate().filter(|&(_, &count)| count > 0);
        counts.map(|(at, &count)| (self.first_bin + at, count))
    }
}

/// Two histograms are equal if they contain the same latencies in any order.
impl PartialEq for LatencyHistogram {
    fn eq(&self, other: &Self) -> bool {
        let sums = |it: &Self| (it.binned, it.overflow, it.sum_ns, it.sum_squares_ns2, it.min_ns, it.max_ns);
        sums(self) == sums(other) && self.in_use().eq(other.in_use())
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LatencyHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LatencyHistogram")
            .field("count", &self.count())
            .field("overflow", &self.overflow)
            .field("min_ns", &self.min_ns())
            .field("mean_ns", &self.mean_ns())
            .field("max_ns", &self.max_ns)
            .finish_non_exhaustive()
    }
}

/// A finished histogram as stored: only the used bins, each identified by its middle, so a reader that treats the bins
/// as points finds the same quantiles. It takes a few kilobytes instead of a hundred for an open histogram.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoredHistogram {
    /// Significant decimal digits of the bins: a bin is narrower than 10^-digits of its value.
    digits: u8,
    /// Number of latencies.
    count: u64,
    /// Sum of the latencies, in ns.
    sum_ns: u128,
    /// Sum of the squared latencies, in ns^2, as a decimal string: it exceeds 64 bits within the first few seconds of a
    /// run, and not every JSON reader supports more.
    sum_squares_ns2: String,
    /// Minimum latency, in ns; 0 if there is none.
    min_ns: u64,
    /// Maximum latency, in ns; 0 if there is none.
    max_ns: u64,
    /// Number of latencies above the last bin.
    overflow: u64,
    /// Middle, in ns, and count of each used bin.
    bins: Box<[(u64, u64)]>,
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for LatencyHistogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        StoredHistogram::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        StoredHistogram::json_schema(generator)
    }
}

impl StoredHistogram {
    /// Converts it to a histogram that can be queried and merged.
    pub fn open(&self) -> LatencyHistogram {
        LatencyHistogram::from_stored(self).expect("a stored histogram was checked when read, or made from a valid one")
    }
}

impl Default for StoredHistogram {
    fn default() -> Self {
        LatencyHistogram::new().store()
    }
}

impl<'de> Deserialize<'de> for StoredHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Fields of the file, not yet checked.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            digits: u8,
            count: u64,
            sum_ns: u128,
            sum_squares_ns2: String,
            min_ns: u64,
            max_ns: u64,
            overflow: u64,
            bins: Box<[(u64, u64)]>,
        }
        let Written { digits, count, sum_ns, sum_squares_ns2, min_ns, max_ns, overflow, bins } =
            Written::deserialize(deserializer)?;
        let stored = StoredHistogram { digits, count, sum_ns, sum_squares_ns2, min_ns, max_ns, overflow, bins };
        LatencyHistogram::from_stored(&stored).map_err(de::Error::custom)?;
        Ok(stored)
    }
}

impl Serialize for LatencyHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.store().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        StoredHistogram::deserialize(deserializer).map(|stored| stored.open())
    }
}

impl LatencyHistogram {
    /// Converts the histogram to its stored form.
    pub fn store(&self) -> StoredHistogram {
        StoredHistogram {
            digits: DIGITS,
            count: self.count(),
            sum_ns: self.sum_ns,
            sum_squares_ns2: self.sum_squares_ns2.to_string(),
            min_ns: self.min_ns(),
            max_ns: self.max_ns,
            overflow: self.overflow,
            bins: self.bins().collect(),
        }
    }

    fn from_stored(sparse: &StoredHistogram) -> Result<Self, String> {
        if sparse.digits != DIGITS {
            return Err(format!("histogram digits {}; must be {DIGITS}", sparse.digits));
        }
        let mut histogram = Self::new();
        let mut count = sparse.overflow;
        for &(value_ns, bin) in &sparse.bins {
            if value_ns > MAX_BINNED_NS {
                return Err(format!("histogram bin at {value_ns} ns; the maximum is {MAX_BINNED_NS} ns"));
            }
            count = count.checked_add(bin).ok_or("histogram bins: the total count exceeds 64 bits")?;
            if bin > 0 {
                histogram.count_in(bin_of(value_ns), bin);
            }
        }
        if count != sparse.count {
            return Err(format!("histogram count {}; must be {count}, the sum of bins and overflow", sparse.count));
        }
        let squares = &sparse.sum_squares_ns2;
        histogram.sum_squares_ns2 =
            squares.parse().map_err(|_| format!("histogram sum_squares_ns2 {squares:?}; must be decimal digits"))?;
        histogram.overflow = sparse.overflow;
        histogram.sum_ns = sparse.sum_ns;
        if count == 0 {
            return Ok(histogram);
        }
        (histogram.min_ns, histogram.max_ns) = (sparse.min_ns, sparse.max_ns);
        let possible = u128::from(count) * u128::from(sparse.min_ns)..=u128::from(count) * u128::from(sparse.max_ns);
        if !possible.contains(&sparse.sum_ns) {
            return Err(format!(
                "histogram sum_ns {}; not possible for {count} latencies of {} to {} ns",
                sparse.sum_ns, sparse.min_ns, sparse.max_ns
            ));
        }
        if histogram.sum_squares_ns2 < u128::MAX && histogram.squared_deviations_ns2().is_none() {
            return Err(format!("histogram sum_squares_ns2 {squares}; too small for a sum of {} ns", sparse.sum_ns));
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_order_of_latencies_does_not_matter() {
        let rising: Vec<u64> = (0..60).map(|step| 1 << (step % 40)).chain(50_000..50_100).collect();
        let falling: Vec<u64> = rising.iter().rev().copied().collect();
        assert_eq!(of(&rising), of(&falling));
        assert_eq!(of(&rising).store(), of(&falling).store());
        assert_ne!(of(&rising), of(&rising[1..]));
        // A falling series ends up in the right bins, and leaves no other bins in use.
        let bins: Vec<_> = of(&[9, 8, 7, 3, 1]).bins().collect();
        assert_eq!(bins, [(1, 1), (3, 1), (7, 1), (8, 1), (9, 1)]);
    }

    fn of(values_ns: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        for &ns in values_ns {
            histogram.record(ns);
        }
        histogram
    }

    /// Returns latencies of every magnitude up to two hours, so that some overflow.
    fn latency() -> impl Strategy<Value = u64> {
        (0u32..43, any::<u64>()).prop_map(|(bits, random)| (random & ((1 << bits) - 1)).min(2 * MAX_BINNED_NS))
    }

    fn json(histogram: &LatencyHistogram) -> String {
        serde_json::to_string(histogram).unwrap()
    }

    #[test]
    fn an_empty_histogram_is_all_zero_and_has_no_quantile() {
        let empty = LatencyHistogram::new();
        assert_eq!((empty.count(), empty.overflow(), empty.sum_ns()), (0, 0, 0));
        assert_eq!((empty.min_ns(), empty.max_ns()), (0, 0));
        assert_eq!((empty.mean_ns(), empty.standard_deviation_ns()), (0.0, 0.0));
        assert_eq!((empty.quantile_ns(0.0), empty.quantile_ns(1.0)), (None, None));
        assert!(empty.cdf().is_empty());
        assert_eq!(serde_json::from_str::<LatencyHistogram>(&json(&empty)).unwrap(), empty);
        let mut merged = of(&[0, 7]);
        merged.merge(&empty);
        assert_eq!(merged, of(&[0, 7]));
    }

    #[test]
    fn the_ranks_of_percentiles_are_exact() {
        for n in [1, 2, 3, 7, 99, 100, 101, 1000, 2000] {
            let histogram = of(&(1..=n).collect::<Vec<_>>());
            for percent in 1..=100 {
                let rank = (percent * n).div_ceil(100);
                assert_eq!(histogram.quantile_ns(percent as f64 / 100.0), Some(rank), "{percent} of {n}");
            }
            assert_eq!(histogram.quantile_ns(-1.0), Some(1));
            assert_eq!(histogram.quantile_ns(2.0), Some(n));
        }
    }

    #[test]
    fn moments_are_exact_far_from_zero() {
        // n consecutive integers: variance (n^2 - 1) / 12, regardless of their offset. Floating-point sums would lose
        // it.
        for (base, n) in [(0, 1000), (3_000_000_000_000, 1001), (1 << 58, 10)] {
            let histogram = of(&(1..=n).map(|i| base + i).collect::<Vec<_>>());
            assert_eq!(histogram.sum_ns(), u128::from(base * n) + u128::from(n * (n + 1) / 2));
            let expected = (((n * n - 1) as f64) / 12.0).sqrt();
            let relative = histogram.standard_deviation_ns() / expected - 1.0;
            assert!(relative.abs() < 1e-12, "base {base}: {relative}");
        }
        assert_eq!(of(&[5; 1000]).standard_deviation_ns(), 0.0);
        assert_eq!(of(&[1, 2]).mean_ns(), 1.5);
        assert_eq!(of(&[u64::MAX; 3]).standard_deviation_ns(), f64::INFINITY);
    }

    #[test]
    fn overflow_is_counted_and_reported() {
        let longest = MAX_BINNED_NS;
        let histogram = of(&[10, 20, longest, longest + 1, u64::MAX >> 8]);
        assert_eq!((histogram.count(), histogram.overflow()), (5, 2));
        assert_eq!(histogram.max_ns(), u64::MAX >> 8);
        let sum = 30 + 2 * u128::from(longest) + 1 + u128::from(u64::MAX >> 8);
        assert_eq!(histogram.sum_ns(), sum);
        assert_eq!(histogram.quantile_ns(0.4), Some(20));
        assert!(histogram.quantile_ns(0.6).unwrap().abs_diff(longest) <= longest / 2000);
        assert_eq!((histogram.quantile_ns(0.61), histogram.quantile_ns(1.0)), (None, None));
        assert_eq!(histogram.cdf().last().unwrap().1, 0.6);
        // Only overflow: even the lowest quantile is unknown.
        assert_eq!(of(&[longest + 1]).quantile_ns(0.0), None);
    }

    #[test]
    fn json_names_its_fields_and_holds_the_bins_in_use() {
        assert_eq!(
            json(&of(&[3, 3, 1000, 5_000_000_000_000])),
            "{\"digits\":3,\"count\":4,\"sum_ns\":5000000001006,\
             \"sum_squares_ns2\":\"25000000000000000001000018\",\"min_ns\":3,\
             \"max_ns\":5000000000000,\"overflow\":1,\"bins\":[[3,2],[1000,1]]}"
        );
    }

    #[test]
    fn a_histogram_that_contradicts_itself_is_refused() {
        let good = json(&of(&[100, 300, 4_000_000_000_000]));
        for (from, to, complaint) in [
            ("\"digits\":3", "\"digits\":2", "digits 2; must be 3"),
            ("\"count\":3", "\"count\":4", "count 4; must be 3"),
            ("\"overflow\":1", "\"overflow\":0", "count 3; must be 2"),
            ("[300,1]", "[4000000000000,1]", "the maximum is 3600000000000 ns"),
            ("\"sum_ns\":4", "\"sum_ns\":94", "not possible for"),
            ("\"min_ns\":100", "\"min_ns\":5000000000000", "not possible for"),
            ("\"sum_squares_ns2\":\"16", "\"sum_squares_ns2\":\"1", "too small"),
            ("\"sum_squares_ns2\":\"1", "\"sum_squares_ns2\":\"-1", "decimal digits"),
            ("\"bins\"", "\"beans\"", "unknown field `beans`"),
        ] {
            assert!(good.contains(from), "{from} in {good}");
            let error = serde_json::from_str::<LatencyHistogram>(&good.replacen(from, to, 1));
            let error = error.expect_err(to).to_string();
            assert!(error.contains(complaint), "{to}: {error}");
        }
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_twentieth_of_a_percent(
            mut values in prop::collection::vec(latency(), 1..300), q in 0.0..=1.0f64,
        ) {
            let histogram = of(&values);
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            match histogram.quantile_ns(q) {
                Some(ns) => {
                    prop_assert!(exact <= MAX_BINNED_NS);
                    prop_assert!(ns.abs_diff(exact) as f64 <= exact as f64 * 0.0005, "{} for {}", ns, exact);
                }
                None => prop_assert!(exact > MAX_BINNED_NS),
            }
        }

        #[test]
        fn merging_parts_gives_the_whole(
            left in prop::collection::vec(latency(), 0..100),
            right in prop::collection::vec(latency(), 0..100),
        ) {
            let whole = of(&[left.clone(), right.clone()].concat());
            let (mut ab, mut ba) = (of(&left), of(&right));
            ab.merge(&of(&right));
            ba.merge(&of(&left));
            prop_assert_eq!(&ab, &whole);
            prop_assert_eq!(&ba, &whole);
            prop_assert_eq!(json(&ab), json(&whole));
            prop_assert_eq!(ab.standard_deviation_ns(), whole.standard_deviation_ns());
            let binned: u64 = whole.bins().map(|(_, count)| count).sum();
            prop_assert_eq!(binned + whole.overflow(), (left.len() + right.len()) as u64);
        }

        #[test]
        fn json_round_trips_exactly(values in prop::collection::vec(latency(), 0..100)) {
            let histogram = of(&values);
            let text = json(&histogram);
            let back: LatencyHistogram = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&back, &histogram);
            prop_assert_eq!(json(&back), text.clone());
            // Also through a `Value`, whose integers have 64 bits.
            let value = serde_json::to_value(&histogram).unwrap();
            prop_assert_eq!(&serde_json::from_value::<LatencyHistogram>(value).unwrap(), &histogram);
            for q in [0.0, 0.5, 0.9, 1.0] {
                prop_assert_eq!(back.quantile_ns(q), histogram.quantile_ns(q));
            }
        }

        #[test]
        fn the_distribution_rises_to_the_share_not_in_overflow(
            values in prop::collection::vec(latency(), 1..100),
        ) {
            let histogram = of(&values);
            let cdf = histogram.cdf();
            prop_assert!(cdf.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
            let binned = (histogram.count() - histogram.overflow()) as f64 / histogram.count() as f64;
            prop_assert_eq!(cdf.last().map_or(0.0, |point| point.1), binned);
        }
    }

    #[test]
    fn latencies_without_some_are_the_rest() {
        let all = of(&[10, 20, 20, 1_500, 3_000_000, 2 * MAX_BINNED_NS]);
        assert_eq!(all.without(&of(&[])), all);
        assert_eq!(all.without(&of(&[20, 1_500])), of(&[10, 20, 3_000_000, 2 * MAX_BINNED_NS]));
        assert_eq!(all.without(&of(&[10])), of(&[20, 20, 1_500, 3_000_000, 2 * MAX_BINNED_NS]));
        assert_eq!(all.without(&all).count(), 0);
        // The new longest is known to its bin: the latencies around 3 ms are in bins of 2,048 ns.
        let rest = all.without(&of(&[2 * MAX_BINNED_NS]));
        assert_eq!((rest.count(), rest.overflow(), rest.min_ns()), (5, 0, 10));
        assert!(rest.max_ns().abs_diff(3_000_000) <= 1_024, "{}", rest.max_ns());
        assert_eq!(rest.sum_ns(), 10 + 40 + 1_500 + 3_000_000);
        // Latencies that were not there are ignored.
        assert_eq!(of(&[10, 30]).without(&of(&[15, 20])).bins().collect::<Vec<_>>(), [(10, 1), (30, 1)]);
    }

    #[test]
    fn bins_have_1024_steps_for_each_doubling() {
        // Each ns has its bin below 2,048 ns, then two ns share one, then four.
        assert_eq!([0, 1, 2_047, 2_048, 2_049, 2_050].map(bin_of), [0, 1, 2_047, 2_048, 2_048, 2_049]);
        assert_eq!([4_095, 4_096, 4_099, 4_100].map(bin_of), [3_071, 3_072, 3_072, 3_073]);
        assert_eq!([0, 2_047, 2_048, 2_049, 3_072].map(middle_ns), [0, 2_047, 2_049, 2_051, 4_098]);
    }

    #[test]
    fn a_histogram_shows_its_figures_in_debug_output() {
        let shown = format!("{:?}", of(&[10, 20]));
        assert!(shown.contains("count: 2") && shown.contains("mean_ns: 15.0"), "{shown}");
    }

    #[test]
    fn deviations_of_uneven_means_are_exact() {
        // Mean 4/3, squared deviations 2/9: the whole part of the mean is not the mean.
        let deviation = of(&[1, 1, 2]).standard_deviation_ns();
        assert!((deviation - (2.0f64 / 9.0).sqrt()).abs() < 1e-15, "{deviation}");
    }
}
