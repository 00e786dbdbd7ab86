//! How much work a run does: every row takes its sizes from here.

use std::time::Duration;

/// Size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The full size, as `make bench` measures it.
    Full,
    /// The same, with ten times as many requests for peak memory.
    Long,
    /// Every row with as little work as shows that it runs. Its figures mean nothing.
    Smoke,
}

impl Size {
    /// Divides counts in a smoke run: 3,000,000 requests become 3,000.
    const SMOKE_COUNT: u64 = 1_000;
    /// Divides wall-clock time in a smoke run: 5 s become 100 ms.
    const SMOKE_TIME: u32 = 50;
    const LONG_COUNT: u64 = 10;

    /// Operations, requests or rows of a round.
    pub fn count(self, full: u64) -> u64 {
        match self {
            Size::Full | Size::Long => full,
            Size::Smoke => (full / Size::SMOKE_COUNT).max(1),
        }
    }

    /// Requests of the longer run of a peak-memory row.
    pub fn long_count(self, full: u64) -> u64 {
        match self {
            Size::Long => full * Size::LONG_COUNT,
            Size::Full | Size::Smoke => self.count(full),
        }
    }

    /// Timed rounds after the warm-up round, or pairs of runs with a peer.
    pub fn rounds(self, full: usize) -> usize {
        match self {
            Size::Full | Size::Long => full,
            Size::Smoke => 1,
        }
    }

    /// Wall-clock time of a row that runs for a fixed time.
    pub fn time(self, full: Duration) -> Duration {
        match self {
            Size::Full | Size::Long => full,
            Size::Smoke => full / Size::SMOKE_TIME,
        }
    }
}
