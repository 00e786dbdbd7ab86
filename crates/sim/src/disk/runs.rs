//! [`Runs`]: concurrent sequential runs among requests.

/// Runs that are followed at once.
const RUNS: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
struct Run {
    next: u64,
    length: u64,
    used: u64,
}

/// The current runs; the least recently used one is dropped.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    runs: [Run; RUNS],
    clock: u64,
}

impl Runs {
    /// Takes note of a request; returns the length of the run that it belongs to, itself included.
    pub fn extend(&mut self, start: u64, length: u64) -> u64 {
        self.clock += 1;
        let followed = self.runs.iter().position(|run| run.length > 0 && run.next == start);
        let at = followed.unwrap_or_else(|| (0..RUNS).min_by_key(|&at| self.runs[at].used).expect("some runs"));
        let before = if followed.is_some() { self.runs[at].length } else { 0 };
        self.runs[at] = Run { next: start + length, length: before + length, used: self.clock };
        before + length
    }
}
