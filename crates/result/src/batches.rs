//! [`Batches`]: latencies in batches, from which confidence intervals of the mean and percentiles are computed in
//! bounded memory.

/// Maximum number of batches. When all of them are complete, they are merged in pairs.
pub(crate) const MAX_BATCHES: usize = 128;
/// Minimum number of batches for an estimate.
pub(crate) const MIN_BATCHES: usize = MAX_BATCHES / 2;

/// log2 of the bins per octave: a bin is at most 1/32 of its value wide.
const BIN_BITS: u32 = 5;
/// Number of bins, up to 2^42 ns (more than an hour); longer latencies count in the last bin.
const BINS: usize = bin_of((1 << 42) - 1) + 1;

/// Number of bins added at a time.
const WIDENED_BY: usize = 32;

/// Returns the bin of a latency.
#[inline]
const fn bin_of(ns: u64) -> usize {
    let digits = u64::BITS - ns.leading_zeros();
    let shift = digits.saturating_sub(BIN_BITS + 1);
    ((shift as usize) << BIN_BITS) + (ns >> shift) as usize
}

/// Returns the shortest latency of a bin, in ns.
const fn bin_begins_ns(bin: usize) -> u64 {
    let shift = (bin >> BIN_BITS).saturating_sub(1);
    ((bin - (shift << BIN_BITS)) as u64) << shift
}

/// Fill levels of a system in bytes or pieces, in the order of [`LEVEL_NAMES`]; 0 if the system lacks that level.
///
/// A run that ends before a cache is full looks steady; only the cache's level shows that it is not.
pub type Levels = [u64; LEVEL_NAMES.len()];

/// Names of the fill levels.
pub const LEVEL_NAMES: [&str; 5] = [
    "data in write caches",
    "data in read caches",
    "data in flash or media caches",
    "mirrored data of a virtual array",
    "free flash",
];

/// Index of the level of erased flash, which writes use before an SSD has to collect garbage. Any fall of this level,
/// however slow, shows that the run is not steady: writes are as fast as on a fresh drive until the erased flash is
/// used up.
pub const FREE_FLASH: usize = 4;

/// Latencies of a run in order of completion, grouped into complete batches of equal length. A batch starts with one
/// request; whenever 128 batches are complete, they are merged in pairs and the length doubles, so a long run always
/// has 64 to 127 complete batches. Each batch records the outstanding time of its requests, the number of latencies in
/// each bin (about 3 % wide), and the system's fill levels at its end.
///
/// By Little's law, outstanding time divided by the number of requests is the mean latency. In a closed loop, where a
/// long latency shortens others, this quotient varies far less between batches than the mean of the latencies (Glynn
/// and Whitt, 1989).
#[derive(Clone, Debug)]
pub struct Batches {
    outstanding_ns: [f64; MAX_BATCHES],
    levels: [Levels; MAX_BATCHES],
    levels_before: Levels,
    requests_before: u64,
    /// Counts, one row per batch, of `width` bins from `first_bin` on: the used bins and some spare ones around them.
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

    /// Records the number of requests served before the measurement, and the initial levels.
    pub fn begin(&mut self, requests_before: u64, levels: Levels) {
        (self.requests_before, self.levels_before) = (requests_before, levels);
    }

    /// Records the levels at the end of the batch just completed.
    pub fn note_levels(&mut self, levels: Levels) {
        self.levels[self.complete - 1] = levels;
    }

    /// Adds outstanding time, in request-ns; a negative value subtracts.
    #[inline]
    pub fn outstanding(&mut self, request_ns: f64) {
        self.outstanding_ns[self.complete] += request_ns;
    }

    /// Adds the latency of the next completed request. Returns whether this completes a batch; the caller must then
    /// record the levels.
    #[inline]
    pub fn record(&mut self, response_ns: u64) -> bool {
        let bin = bin_of(response_ns).min(BINS - 1);
        // A bin below `first_bin` wraps around to a large number, so one comparison covers both ends.
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

    /// Makes room for a bin outside the current range.
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

    /// Returns the number of requests per complete batch.
    pub fn batch_len(&self) -> u64 {
        self.batch_len
    }

    /// Returns the mean latency of each complete batch, in ns, by Little's law.
    pub(crate) fn means_ns(&self) -> Vec<f64> {
        self.outstanding_ns[..self.complete].iter().map(|sum_ns| sum_ns / self.batch_len as f64).collect()
    }

    /// Returns the initial value of one level, and its values at the end of each complete batch.
    pub(crate) fn level(&self, level: usize) -> (u64, Vec<u64>) {
        (self.levels_before[level], self.levels[..self.complete].iter().map(|levels| levels[level]).collect())
    }

    /// Returns the number of requests that the system had served when `batches` batches were complete.
    pub(crate) fn requests_served(&self, batches: usize) -> u64 {
        self.requests_before + batches as u64 * self.batch_len
    }

    /// Returns, for each used bin, its bounds and the share of requests up to its end, over the batches from `first`
    /// on.
    pub(crate) fn distribution(&self, first: usize) -> Vec<Binned> {
        let requests = ((self.complete - first) as u64 * self.batch_len) as f64;
        // Goes row by row, as stored. The open batch and those before `first` also show which bins are used.
        let (mut counted, mut used) = (vec![0u64; self.width], vec![false; self.width]);
        for (batch, counts) in self.counts.chunks(self.width.max(1)).enumerate() {
            used.iter_mut().zip(counts).for_each(|(used, &count)| *used |= count > 0);
            if (first..self.complete).contains(&batch) {
                counted.iter_mut().zip(counts).for_each(|(sum, &count)| *sum += u64::from(count));
            }
        }
        let in_use = |used: Option<usize>| used.expect("a complete batch has a used bin");
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

    /// Returns the share of requests above a bin, for each batch from `first` on.
    pub(crate) fn shares_beyond(&self, first: usize, bin: usize) -> Vec<f64> {
        let beyond = |batch: usize| {
            let counts = &self.counts[batch * self.width..(batch + 1) * self.width];
            counts[bin - self.first_bin + 1..].iter().map(|&count| u64::from(count)).sum::<u64>() as f64
                / self.batch_len as f64
        };
        (first..self.complete).map(beyond).collect()
    }
}

/// A bin with the share of requests up to its end.
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
        let share = shares(&wide, 0);
        assert_eq!((share[0], share[4]), ((1, 2, 0.25), (5, 6, 0.5)));
        let (begins_ns, ends_ns, share) = *share.last().unwrap();
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
        assert_eq!((batches.requests_served(0), batches.requests_served(65)), (1_000, 1_130));
    }
}
