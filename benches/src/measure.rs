//! Rounds of work, timed by the wall clock or by a processor's, interleaved with those of a peer.

use std::hint::black_box;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// Rounds of a usual measurement.
pub const ROUNDS: usize = 7;

/// One round: how fast, and what came out.
pub struct Round {
    per_s: f64,
    answer: String,
}

/// Times `work`, which does `operations`; `answer` identifies its outcome, outside the time.
pub fn round<R>(operations: u64, work: impl FnOnce() -> R, answer: impl FnOnce(R) -> String) -> Round {
    let start = Instant::now();
    let outcome = black_box(work());
    let per_s = operations as f64 / start.elapsed().as_secs_f64();
    Round { per_s, answer: answer(outcome) }
}

/// The same in processor time, of this thread ([`ClockId::ThreadCPUTime`]) or of all: what other programs take of the
/// machine does not count.
pub fn processor_round<R>(
    clock: ClockId,
    operations: u64,
    work: impl FnOnce() -> R,
    answer: impl FnOnce(R) -> String,
) -> Round {
    let now_s = || {
        let now = clock_gettime(clock);
        now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
    };
    let start_s = now_s();
    let outcome = black_box(work());
    let per_s = operations as f64 / (now_s() - start_s);
    Round { per_s, answer: answer(outcome) }
}

/// A round that another program ran and timed.
pub fn external_round(per_s: f64, answer: String) -> Round {
    Round { per_s, answer }
}

/// What the rounds of one subject gave.
#[derive(Clone, Debug)]
pub struct Speed {
    /// Operations a second in the median round.
    pub median_per_s: f64,
    /// In the fastest: what the neighbours on a shared machine took least from.
    pub best_per_s: f64,
    /// Identifies the outcome, which is the same in every round.
    pub answer: String,
}

/// Runs the subjects in turn, `rounds` times after one that warms up, so that a slow moment of the machine meets all of
/// them.
///
/// Panics when a subject's outcome differs between rounds.
pub fn interleaved<const N: usize>(rounds: usize, mut subjects: [&mut dyn FnMut() -> Round; N]) -> [Speed; N] {
    let mut done: [Vec<Round>; N] = std::array::from_fn(|_| Vec::with_capacity(rounds + 1));
    for _ in 0..=rounds {
        for (subject, done) in subjects.iter_mut().zip(&mut done) {
            done.push(subject());
        }
    }
    done.map(|done| {
        let answer = done[0].answer.clone();
        assert!(done.iter().all(|round| round.answer == answer), "equal inputs gave different outcomes");
        let mut per_s: Vec<f64> = done[1..].iter().map(|round| round.per_s).collect();
        per_s.sort_by(f64::total_cmp);
        Speed { median_per_s: per_s[rounds / 2], best_per_s: per_s[rounds - 1], answer }
    })
}
