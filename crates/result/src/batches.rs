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
