//! A simple system to replay on, and helpers to build traces.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use headstack_replay::{Due, Issue, Played, Player, Replay, ReplayError, ReplayMode, in_memory};
use headstack_workload::{Kind, Recorded, Request};

pub const MS: u64 = 1_000_000;
pub const BLOCK_BYTES: u32 = 512;
pub const CAPACITY_BYTES: u64 = 400_000 * 512;

/// A request as the replay issued it, identified by its number in the trace.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub request: Request,
    pub due_ns: u64,
    pub issued_ns: u64,
    pub completed_ns: u64,
}

/// The outcome of a replay.
pub struct Outcome {
    pub played: Played,
    /// Requests by number; for a write with a flush before it, the write.
    pub seen: BTreeMap<u64, Seen>,
    /// Flushes before writes, by the number of the write.
    pub pre_flushes: BTreeMap<u64, Seen>,
    /// Request numbers in order of issue.
    pub order: Vec<u64>,
}

/// A system that serves one request at a time in order of issue, with a caller that replays on it by a simulated clock.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Returns the service time of a request in ns, given its number.
    pub service_ns: fn(u64) -> u64,
    /// Returns the delay of a wake-up of the caller in ns, given the number of wake-ups so far.
    pub oversleeps_ns: fn(u64) -> u64,
}

impl Stage {
    /// Wake-ups without delay, and service times of 1 to 16 ms.
    pub const PUNCTUAL: Stage = Stage {
        service_ns: |number| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) * MS + MS,
        oversleeps_ns: |_| 0,
    };

    /// Plays to the end.
    pub fn play<E: From<ReplayError>>(
        &self,
        replay: &Replay,
        source: &mut dyn FnMut(&mut Vec<Recorded>) -> Result<bool, E>,
    ) -> Result<Outcome, E> {
        let mut player = Player::new(replay, CAPACITY_BYTES, BLOCK_BYTES, source)?;
        let (mut seen, mut order): (BTreeMap<u64, Seen>, Vec<u64>) = Default::default();
        let mut pre_flushes = BTreeMap::new();
        let mut under_way: Vec<(Reverse<u64>, Issue)> = Vec::new();
        let (mut free_ns, mut looks) = (0, 0);
        loop {
            let completion_ns = under_way.last().map_or(u64::MAX, |&(Reverse(at_ns), _)| at_ns);
            let now_ns = match player.next_due()? {
                Due::Never => break,
                Due::At(due_ns) if due_ns < completion_ns => {
                    looks += 1;
                    (due_ns + (self.oversleeps_ns)(looks)).min(completion_ns - 1)
                }
                Due::At(_) | Due::AfterCompletion => {
                    let (_, issue) =
                        under_way.pop().expect("a request is in flight while the player waits for a completion");
                    player.completed(issue.slot, completion_ns);
                    continue;
                }
            };
            while let Some(issue) = player.take(now_ns)? {
                player.issued(&issue, now_ns);
                free_ns = now_ns.max(free_ns) + (self.service_ns)(issue.number);
                let times =
                    Seen { request: issue.request, due_ns: issue.due_ns, issued_ns: now_ns, completed_ns: free_ns };
                if let Some(earlier) = seen.insert(issue.number, times) {
                    assert_eq!(earlier.request.kind, Kind::Flush, "issued twice");
                    assert!(pre_flushes.insert(issue.number, earlier).is_none(), "flushed twice");
                }
                order.push(issue.number);
                under_way.insert(0, (Reverse(free_ns), issue));
            }
        }
        assert!(under_way.is_empty());
        Ok(Outcome { played: player.finish(), seen, pre_flushes, order })
    }

    /// Plays requests from memory.
    pub fn play_all(&self, replay: &Replay, records: &[Recorded]) -> Result<Outcome, ReplayError> {
        self.play(replay, &mut in_memory(records.iter().copied()))
    }
}

/// Returns settings to replay all requests.
pub fn replay(mode: ReplayMode) -> Replay {
    Replay::new("recording", mode)
}

pub const TIMED: ReplayMode = ReplayMode::Timed { time_scale: 1.0 };

/// Returns a one-block read whose offset encodes its number.
pub fn numbered(number: u64, arrival_ns: u64, completion_ns: Option<u64>) -> Recorded {
    let request = Request {
        kind: Kind::Read,
        offset_bytes: number * 97 % 300_000 * 512,
        length_bytes: 512,
        force_unit_access: false,
        ordered: false,
    };
    Recorded { arrival_ns, completion_ns, request, pre_flush: false }
}
