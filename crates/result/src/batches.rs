//! [`Batches`]: latencies in batches, enough for confidence intervals of their mean and percentiles, in bounded memory.

/// Most batches held; when that many are complete they are paired into half as many.
pub(crate) const MAX_BATCHES: usize = 128;
/// Fewest batches for an estimate.
pub(crate) const MIN_BATCHES: usize = MAX_BATCHES / 2;

/// Binary digits of a bin's width below its value: bins are at most 1/32 wide.
const BIN_BITS: u32 = 5;
/// Number of bins, up to 2^42 ns, more than an hour; longer latencies count in the last.
const BINS: usize = bin_of((1 << 42) - 1) + 1;

/// Number of bins that are added at once.
const WIDENED_BY: usize = 32;

/// Returns the bin of a latency.
#[inline]
const fn bin_of(ns: u64) -> usize {
    let digits = u64::BITS - ns.leading_zeros();
    let shift = digits.saturating_sub(BIN_BITS + 1);
    ((shift as usize) << BIN_BITS) + (ns >> shift) as usize
}

/// Returns the shortest latency of a bin.
const fn bin_begins_ns(bin: usize) -> u64 {
    let shift = (bin >> BIN_BITS).saturating_sub(1);
    ((bin - (shift << BIN_BITS)) as u64) << shift
}

/// Fill levels of a system: bytes or pieces for each of [`LEVEL_NAMES`], 0 if it has none.
///
/// A run that ends before a cache is full looks steady; only the level of the cache shows that it is not.
pub type Levels = [u64; LEVEL_NAMES.len()];

/// Names of the levels.
pub const LEVEL_NAMES: [&str; 5] = [
    "data in write caches",
    "data in read caches",
    "data in flash or media caches",
    "mirrored data of a virtual array",
    "free flash",
];

/// The level of erased flash that writes use before an SSD has to collect garbage. It is the only level whose fall
/// shows that a run is not steady, however slow it is: writes are as fast as in a fresh drive until it is used up.
pub const FREE_FLASH: usize = 4;

/// A run's latencies in order of completion, in 64 to 127 complete batches of equal length for any length of the run,
/// once there are 64: the length starts at one request and doubles whenever 128 batches are full. Each batch keeps the
/// time that requests were outstanding in it, how many latencies are in each bin of about 3 %, and the levels of the
/// system at its end.
///
/// Time outstanding divided by requests is the mean latency by Little's law. In a closed loop, where a long latency
/// shortens others, it varies far less from batch to batch than the latencies themselves (Glynn and Whitt, 1989).
#[derive(Clone, Debug)]
pub struct Batches {
    outstanding_ns: [f64; MAX_BATCHES],
    levels: [Levels; MAX_BATCHES],
    levels_before: Levels,
    requests_before: u64,
    /// Counts in one row per batch, of the `width` bins from `first_bin` on: used ones, and some around.
    counts: Vec<u32>,
    first_bin: usize,
    width: usize,
    complete: usize,
    batch_len: u64,
    open_len: u64,
}

impl Batches {
    /// Creates an empty series.
    pub fn new() -> Self {
        Batches {
            outstanding_ns: [0.0; MAX_BATCHES],
            levels: [Levels::default(); MAX_BATCHES],
            levels_before: Levels::default(),
            requests_before: 0,
            counts: Vec::new(),
            first_bin: 0,
            width: 0,
            complete: 0,
            batch_len: 1,
            open_len: 0,
        }
    }

    /// Records how many requests the system has served, and its levels.
    pub fn begin(&mut self, requests_before: u64, levels: Levels) {
        (self.requests_before, self.levels_before) = (requests_before, levels);
    }

    /// Records the levels at the end of the complete batch.
    pub fn note_levels(&mut self, levels: Levels) {
        self.levels[self.complete - 1] = levels;
    }

    /// Adds the time that requests were outstanding, in request-ns; negative to subtract.
    #[inline]
    pub fn outstanding(&mut self, request_ns: f64) {
        self.outstanding_ns[self.complete] += request_ns;
    }

    /// Appends the latency of the next request to complete. Returns whether it completes a batch, so that the levels
    /// must be recorded.
    #[inline]
    pub fn record(&mut self, response_ns: u64) -> bool {
        let bin = bin_of(response_ns).min(BINS - 1);
        // A bin before the first wraps around, and is then after the last too.
        if bin.wrapping_sub(self.first_bin) >= self.width {
            self.widen(bin);
        }
        self.counts[self.complete * self.width + (bin - self.first_bin)] += 1;
        self.open_len += 1;
        let is_full = self.open_len == self.batch_len;
        if is_full {
            self.close_batch();
        }
        is_full
    }

    /// Makes room for a bin.
    #[cold]
    fn widen(&mut self, bin: usize) {
        let whole = |bin: usize| bin / WIDENED_BY * WIDENED_BY;
        let (first, end) = match self.width {
            0 => (whole(bin), whole(bin) + WIDENED_BY),
            width => (self.first_bin.min(whole(bin)), (self.first_bin + width).max(whole(bin) + WIDENED_BY)),
        };
        let mut counts = vec![0; MAX_BATCHES * (end - first)];
        for batch in 0..if self.width == 0 { 0 } else { MAX_BATCHES } {
            let row = &self.counts[batch * self.width..][..self.width];
            counts[batch * (end - first) + (self.first_bin - first)..][..self.width].copy_from_slice(row);
        }
        (self.counts, self.first_bin, self.width) = (counts, first, end - first);
    }

    fn close_batch(&mut self) {
        self.open_len = 0;
        self.complete += 1;
        if self.complete == MAX_BATCHES {
            self.pair_up();
        }
    }

    #[cold]
    fn pair_up(&mut self) {
        let width = self.width;
        for pair in 0..MIN_BATCHES {
            self.outstanding_ns[pair] = self.outstanding_ns[2 * pair] + self.outstanding_ns[2 * pair + 1];
            self.levels[pair] = self.levels[2 * pair + 1];
            for bin in 0..width {
                let both = self.counts[2 * pair * width + bin] + self.counts[(2 * pair + 1) * width + bin];
                self.counts[pair * width + bin] = both;
            }
        }
        self.outstanding_ns[MIN_BATCHES..].fill(0.0);
        self.counts[MIN_BATCHES * width..].fill(0);
        self.complete = MIN_BATCHES;
        self.batch_len *= 2;
    }

    /// Returns the number of complete batches.
    pub fn complete(&self) -> usize {
        self.complete
    }

    /// Returns the requests in a complete batch.
    pub fn batch_len(&self) -> u64 {
        self.batch_len
    }

    /// Returns the mean latency of each complete batch, by Little's law.
    pub(crate) fn means_ns(&self) -> Vec<f64> {
        self.outstanding_ns[..self.complete].iter().map(|sum_ns| sum_ns / self.batch_len as f64).collect()
    }

    /// Returns one level at the end of each complete batch, with its initial value.
    pub(crate) fn level(&self, level: usize) -> (u64, Vec<u64>) {
        (self.levels_before[level], self.levels[..self.complete].iter().map(|levels| levels[level]).collect())
    }

    /// Returns the requests that the system had served when `batches` were complete.
    pub(crate) fn requests_served(&self, batches: usize) -> u64 {
        self.requests_before + batches as u64 * self.batch_len
    }

    /// Returns the cumulative share of requests at the end of each used bin, for the batches from `first` on, with the
    /// bin's bounds.
    pub(crate) fn distribution(&self, first: usize) -> Vec<Binned> {
        let requests = ((self.complete - first) as u64 * self.batch_len) as f64;
        // Row by row, as in memory; the open batch and those before `first` also show which bins are used.
        let (mut counted, mut used) = (vec![0u64; self.width], vec![false; self.width]);
        for (batch, counts) in self.counts.chunks(self.width.max(1)).enumerate() {
            used.iter_mut().zip(counts).for_each(|(used, &count)| *used |= count > 0);
            if (first..self.complete).contains(&batch) {
                counted.iter_mut().zip(counts).for_each(|(sum, &count)| *sum += u64::from(count));
            }
        }
        let in_use = |used: Option<usize>| used.expect("batches are complete");
        let lowest = in_use(used.iter().position(|&used| used));
        let highest = in_use(used.iter().rposition(|&used| used));
        let mut below = 0u64;
        let binned = counted.into_iter().enumerate().take(highest + 1).skip(lowest).map(|(at, count)| {
            let bin = self.first_bin + at;
            below += count;
            Binned {
                bin,
                begins_ns: bin_begins_ns(bin),
                ends_ns: bin_begins_ns(bin + 1),
                share: below as f64 / requests,
            }
        });
        binned.collect()
    }

    /// Returns for each batch from `first` on the share above a bin.
    pub(crate) fn shares_beyond(&self, first: usize, bin: usize) -> Vec<f64> {
        let beyond = |batch: usize| {
            let counts = &self.counts[batch * self.width..(batch + 1) * self.width];
            counts[bin - self.first_bin + 1..].iter().map(|&count| u64::from(count)).sum::<u64>() as f64
                / self.batch_len as f64
        };
        (first..self.complete).map(beyond).collect()
    }
}

/// Share of requests up to the end of a bin.
pub(crate) struct Binned {
    pub bin: usize,
    pub begins_ns: u64,
    pub ends_ns: u64,
    pub share: f64,
}

impl Default for Batches {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_32_steps_for_each_doubling() {
        assert_eq!([0, 1, 63, 64, 65, 66].map(bin_of), [0, 1, 63, 64, 64, 65]);
        assert_eq!([127, 128, 131, 132].map(bin_of), [95, 96, 96, 97]);
        assert_eq!([0, 63, 64, 65, 96].map(bin_begins_ns), [0, 63, 64, 66, 128]);
    }

    /// Returns batches of these latencies, each outstanding for as long.
    fn of(responses_ns: impl IntoIterator<Item = u64>) -> Batches {
        let mut batches = Batches::new();
        for ns in responses_ns {
            batches.outstanding(ns as f64);
            batches.record(ns);
        }
        batches
    }

    #[test]
    fn the_distribution_counts_complete_batches_in_any_order_of_bins() {
        let shares = |batches: &Batches, first: usize| {
            let binned = batches.distribution(first);
            binned.iter().map(|bin| (bin.begins_ns, bin.ends_ns, bin.share)).collect::<Vec<_>>()
        };
        let falling = of([128, 63, 62, 60]);
        let expected = [(60, 61, 0.25), (61, 62, 0.25), (62, 63, 0.5), (63, 64, 0.75)];
        assert_eq!(shares(&falling, 0)[..4], expected);
        assert_eq!(shares(&falling, 0).last(), Some(&(128, 132, 1.0)));
        assert_eq!(shares(&falling, 2)[..3], [(60, 61, 0.5), (61, 62, 0.5), (62, 63, 1.0)]);
        // Latencies far apart, and one above the last bin, which it is counted in.
        let wide = of([5, 40_000, 1, 1 << 50]);
        let found = shares(&wide, 0);
        assert_eq!((found[0], found[4]), ((1, 2, 0.25), (5, 6, 0.5)));
        let (begins_ns, ends_ns, share) = *found.last().unwrap();
        assert_eq!((ends_ns, share), (1 << 42, 1.0));
        assert!(begins_ns < ends_ns);
        // The request in the open batch is not counted, but its bin is in use.
        let mut open = of((0..129).map(|at| if at == 128 { 3 } else { 2 }));
        assert_eq!((open.complete(), open.batch_len()), (64, 2));
        assert_eq!(shares(&open, 0), [(2, 3, 1.0), (3, 4, 1.0)]);
        open.record(3);
        assert_eq!(shares(&open, 0), [(2, 3, 128.0 / 130.0), (3, 4, 1.0)]);
    }

    #[test]
    fn pairs_of_batches_add_up_their_time_and_latencies() {
        let batches = of(1..=128);
        assert_eq!((batches.complete(), batches.batch_len()), (64, 2));
        assert_eq!(batches.means_ns()[..3], [1.5, 3.5, 5.5]);
        assert_eq!(batches.means_ns()[63], 127.5);
        // Both latencies of a pair are above the bin, one, or none.
        assert_eq!(batches.shares_beyond(0, bin_of(3))[..3], [0.0, 0.5, 1.0]);
        assert_eq!(batches.shares_beyond(1, bin_of(3)).len(), 63);
        // What follows a pairing starts from nothing.
        let mut more = batches.clone();
        for _ in 0..2 {
            more.outstanding(7.0);
            more.record(7);
        }
        assert_eq!((more.complete(), more.means_ns()[64]), (65, 7.0));
        assert_eq!(more.shares_beyond(64, bin_of(6)), [1.0]);
        assert_eq!(more.shares_beyond(64, bin_of(7)), [0.0]);
    }

    #[test]
    fn levels_are_those_at_the_ends_of_batches() {
        let mut batches = Batches::new();
        batches.begin(1_000, [9, 8, 7, 6, 5]);
        for at in 1..=130u64 {
            if batches.record(at) {
                batches.note_levels([at, 2 * at, 0, 0, 3 * at]);
            }
        }
        let (before, levels) = batches.level(1);
        assert_eq!((before, levels.len(), levels[0], levels[64]), (8, 65, 4, 260));
        assert_eq!(batches.level(FREE_FLASH).1[1], 12);
        assert_eq!((batches.requests_seen(0), batches.requests_seen(65)), (1_000, 1_130));
    }
}
