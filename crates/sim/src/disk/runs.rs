//! [`Runs`]: detects several interleaved sequential runs in a sequence of requests.

/// Number of runs tracked at once.
const RUNS: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
struct Run {
    next: u64,
    length: u64,
    used: u64,
}

/// Recent sequential runs. The least recently used run is forgotten first.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    runs: [Run; RUNS],
    clock: u64,
}

impl Runs {
    /// Records a request; returns the length of its run so far, including the request.
    pub fn extend(&mut self, start: u64, length: u64) -> u64 {
        self.clock += 1;
        let followed = self.runs.iter().position(|run| run.length > 0 && run.next == start);
        let at = followed.unwrap_or_else(|| (0..RUNS).min_by_key(|&at| self.runs[at].used).expect("RUNS is above 0"));
        let before = if followed.is_some() { self.runs[at].length } else { 0 };
        self.runs[at] = Run { next: start + length, length: before + length, used: self.clock };
        before + length
    }
}
