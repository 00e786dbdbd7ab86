//! [`Parts`]: splits a request longer than a model accepts into several for the clock, with one reply to the client.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use headstack_nbd::Errno;
use headstack_sim::Outcome;
use headstack_workload::Span;

use super::reply::Reply;
use crate::pacer::Answer;

/// Longest request that a model accepts. Half of it is already more than an undo log keeps, so a trim in parts is as
/// final as a whole one.
pub const PART_BYTES_MAX: u64 = 1 << 30;

/// Alignment of the boundaries between parts: a page of which two parts trim half each would not be freed.
const CUT_BYTES: u64 = 1 << 20;

/// Splits a span into parts of about equal length.
pub fn parts_of(span: Span) -> Vec<Span> {
    let Span { start_bytes, length_bytes } = span;
    let count = length_bytes.div_ceil(PART_BYTES_MAX - CUT_BYTES).max(1);
    let cut = |number: u64| match number {
        0 => start_bytes,
        number if number == count => start_bytes + length_bytes,
        number => (start_bytes + length_bytes / count * number).next_multiple_of(CUT_BYTES),
    };
    (0..count).map(|number| Span { start_bytes: cut(number), length_bytes: cut(number + 1) - cut(number) }).collect()
}

/// Parts under way. The reply is sent when the last one is answered.
#[derive(Debug)]
pub struct Parts {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    left: usize,
    /// Worst outcome so far.
    outcome: Outcome,
    /// Error if the contents could not be changed.
    refused: Option<Errno>,
    reply: Option<Reply>,
}

/// One part, as submitted to the clock.
#[derive(Debug)]
struct Part(Arc<Parts>);

impl Parts {
    /// Creates parts that `reply` answers.
    pub fn new(reply: Reply, parts: usize) -> Arc<Parts> {
        let state = State { left: parts, outcome: Outcome::Done, refused: None, reply: Some(reply) };
        Arc::new(Parts { state: Mutex::new(state) })
    }

    /// Returns the answer of one part for the clock.
    pub fn part(self: &Arc<Self>) -> Box<dyn Answer> {
        Box::new(Part(Arc::clone(self)))
    }

    /// Refuses parts that are not submitted at all.
    pub fn refuse(&self, errno: Errno, parts: usize) {
        self.settle(parts, Duration::ZERO, |state| state.refused = Some(errno));
    }

    fn settle(&self, parts: usize, took: Duration, update: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().expect("the lock is not poisoned");
        update(&mut state);
        state.left -= parts;
        if state.left > 0 {
            return;
        }
        let reply = state.reply.take().expect("the last part is answered once");
        let (outcome, refused) = (state.outcome, state.refused);
        drop(state);
        match (outcome, refused) {
            (Outcome::Done | Outcome::Refused(_) | Outcome::Failed(_), Some(errno)) => reply.refuse(errno),
            (outcome, _) => Box::new(reply).send(outcome, took),
        }
    }
}

impl Answer for Part {
    fn send(self: Box<Self>, outcome: Outcome, took: Duration) {
        self.0.settle(1, took, |state| state.outcome = state.outcome.with(outcome));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbd::reply::tests::{bytes_received, reply_bytes};
    use headstack_nbd::Framing;

    #[test]
    fn parts_are_the_whole_in_order_and_each_is_more_than_an_undo_log_keeps() {
        for blocks in [1, 2, (1 << 18) - 256, 1 << 18, (1 << 18) + 1, 3 << 18, 5_000_000_001] {
            let whole = Span { start_bytes: 8192, length_bytes: blocks * 4096 };
            let parts = parts_of(whole);
            let mut end = whole.start_bytes;
            for part in &parts {
                assert!(
                    part.start_bytes == end && (end == whole.start_bytes || end.is_multiple_of(CUT_BYTES)),
                    "{part:?}"
                );
                assert!(part.length_bytes <= PART_BYTES_MAX, "{part:?}");
                let is_kept = part.length_bytes <= headstack_sim::power_cut::CHANGE_BYTES_MAX;
                assert!(parts.len() == 1 || !is_kept, "{part:?} of {}", parts.len());
                end += part.length_bytes;
            }
            assert_eq!(end, whole.start_bytes + whole.length_bytes);
        }
    }

    #[test]
    fn parts_are_answered_once_with_the_worst_that_became_of_one() {
        let all = |outcomes: [Outcome; 3]| {
            bytes_received(Framing::Simple, |reply| {
                let parts = Parts::new(reply, 3);
                outcomes.into_iter().for_each(|outcome| parts.part().send(outcome, Duration::ZERO));
            })
        };
        let failed = reply_bytes(Framing::Simple, Outcome::Failed(None));
        assert_eq!(all([Outcome::Done; 3]), b"yes");
        assert_eq!(all([Outcome::Done, Outcome::Failed(None), Outcome::Done]), failed);
        assert_eq!(all([Outcome::Failed(None), Outcome::Vanished, Outcome::Done]), b"");
        // Two that were submitted, and one that could not be: the last answer reports it.
        let full = bytes_received(Framing::Simple, |reply| {
            let parts = Parts::new(reply, 3);
            parts.part().send(Outcome::Done, Duration::ZERO);
            parts.refuse(Errno::NoSpace, 1);
            parts.part().send(Outcome::Done, Duration::ZERO);
        });
        let errno = (Errno::NoSpace as u32).to_be_bytes();
        assert_eq!(full, [&failed[..4], &errno, &failed[8..]].concat());
    }
}
