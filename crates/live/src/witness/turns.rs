//! [`Turns`]: the turns of one client, and the upper bound of its measured times as seen by the server.
//!
//! A client that keeps `depth` requests under way sends another one when it has read a reply. The reply that allowed
//! its n-th request is at the latest the (n - depth)-th one: it was read between the time it was sent and the arrival
//! of that request. So the client's own clock for a request started after one reply was sent, and stopped before
//! another request arrived: its measured time is at most the time between these two.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::stream::Stream;

/// Length of a message from which on its copying shows in latencies.
pub const LONG_BYTES: usize = 64 << 10;
/// Time after which an unread reply counts as left unread, which no running client does.
const LYING: Duration = Duration::from_millis(20);
/// Number of measurements of the socket memory of a message of each length.
const MEASURED: u8 = 16;
/// Number of message lengths that are distinguished.
const LENGTHS_MAX: usize = 64;

/// A histogram of times: bins 6 % wide in a few kilobytes, since there may be thousands of clients.
#[derive(Clone, Debug)]
pub struct Times {
    bins: Histogram<u32>,
    sum_ns: u128,
}

/// Summary of a distribution of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Number of recorded times.
    pub count: u64,
    /// Mean time.
    pub mean_ns: u64,
    /// 99 % quantile.
    pub p99_ns: u64,
    /// Longest time.
    pub max_ns: u64,
}

impl Times {
    /// Creates an empty histogram.
    pub fn new() -> Times {
        Times { bins: Histogram::new(1).expect("one digit is allowed"), sum_ns: 0 }
    }

    /// Records a time.
    pub fn record(&mut self, time: Duration) {
        let ns = time.as_nanos() as u64;
        self.sum_ns += u128::from(ns);
        self.bins.record(ns).expect("the bins grow");
    }

    /// Returns the summary; quantiles are the upper ends of their bins.
    pub fn spread(&self) -> Spread {
        let count = self.bins.len();
        if count == 0 {
            return Spread::default();
        }
        Spread {
            count,
            mean_ns: (self.sum_ns / u128::from(count)) as u64,
            p99_ns: self.bins.value_at_quantile(0.99),
            max_ns: self.bins.max(),
        }
    }
}

impl Default for Times {
    fn default() -> Self {
        Times::new()
    }
}

/// Statistics of a client's turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TurnStatistics {
    /// Requests that the clock answered.
    pub requests: u64,
    /// Largest number of requests under way, including replies that it had not read.
    pub depth: usize,
    /// Upper bound of its measured time in excess of the model.
    pub error: Spread,
    /// The same for messages long enough for their copying to show.
    pub long_error: Spread,
    /// Total time from replies to the requests that they allowed.
    pub turned_ns: u64,
    /// Total model time of its requests.
    pub served_ns: u64,
    /// Replies that it left unread.
    pub lying: u64,
}

/// The turns of one connection.
#[derive(Debug)]
pub struct Turns {
    /// Unix socket to a local client, whose unread bytes can be queried.
    socket: Option<Stream>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    depth: usize,
    /// Replies that were sent and are not known to have been read, oldest first.
    sent: VecDeque<Sent>,
    rooms: Vec<Room>,
    requests: u64,
    errors: Times,
    long_errors: Times,
    turned: Duration,
    served: Duration,
    lying: u64,
}

/// A request under way, on its client's clock.
#[derive(Clone, Copy, Debug)]
pub struct Issued {
    /// Earliest start of its client's clock.
    since: Instant,
    is_long: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    issued: Issued,
    /// Service time of the model, in wall-clock time.
    took: Duration,
    message_bytes: usize,
    is_lying: bool,
}

/// Socket memory of a message of some length until it has been read, including the kernel's overhead.
#[derive(Clone, Copy, Debug)]
struct Room {
    message_bytes: usize,
    room_bytes: usize,
    measured: u8,
}

impl Turns {
    /// Creates the turns of a new client; `socket` reports its unread bytes.
    pub fn new(socket: Option<Stream>) -> Turns {
        Turns { socket, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the lock is not poisoned")
    }

    /// Notes that a request was received at `at`, the last of a series without gaps since `gapless_since`: requests
    /// that waited to be received may have been issued at any time since then. `payload_bytes` arrived with it or will
    /// be in its reply.
    pub fn arrived(&self, at: Instant, gapless_since: Instant, payload_bytes: usize) -> Issued {
        let mut state = self.state();
        state.under_way += 1;
        state.depth = state.depth.max(state.under_way);
        if state.under_way + state.sent.len() > state.depth {
            let unread = self.unread(&state);
            state.depth = state.depth.max(state.under_way + unread);
        }
        let mut since = at;
        while state.under_way + state.sent.len() > state.depth {
            let read = state.sent.pop_front().expect("no more requests are in flight than the depth");
            state.read(&read, at);
            since = read.at;
        }
        Issued { since: since.min(gapless_since), is_long: payload_bytes > LONG_BYTES }
    }

    /// Notes that its reply is sent at `at` by `send`; the model's service time was `took`.
    pub fn answered(&self, at: Instant, issued: Issued, took: Duration, message_bytes: usize, send: impl FnOnce()) {
        let measured = {
            let mut state = self.state();
            state.under_way -= 1;
            state.requests += 1;
            state.served += took;
            state.sent.push_back(Sent { at, issued, took, message_bytes, is_lying: false });
            let measures = message_bytes <= LONG_BYTES && state.room(message_bytes).is_some_and(Room::is_unsure);
            if measures { self.unread_bytes() } else { None }
        };
        send();
        if let Some(before) = measured
            && let Some(after) = self.unread_bytes()
            && let Some(room) = self.state().room(message_bytes)
        {
            // Reads by the client meanwhile reduce it, never increase it.
            room.room_bytes = room.room_bytes.max(after.saturating_sub(before));
            room.measured += 1;
        }
    }

    /// Looks for replies that the client leaves unread.
    pub fn look(&self, now: Instant) {
        let mut state = self.state();
        if state.sent.is_empty() {
            return;
        }
        let unread = self.unread(&state);
        let first = state.sent.len() - unread;
        let lying = state.sent.range_mut(first..).filter(|sent| !sent.is_lying && now - sent.at > LYING);
        let lying = lying.map(|sent| sent.is_lying = true).count() as u64;
        state.lying += lying;
    }

    /// Statistics so far.
    pub fn statistics(&self) -> TurnStatistics {
        let state = self.state();
        TurnStatistics {
            requests: state.requests,
            depth: state.depth,
            error: state.errors.spread(),
            long_error: state.long_errors.spread(),
            turned_ns: state.turned.as_nanos() as u64,
            served_ns: state.served.as_nanos() as u64,
            lying: state.lying,
        }
    }

    fn unread_bytes(&self) -> Option<usize> {
        self.socket.as_ref().and_then(Stream::unread_bytes)
    }

    /// Number of replies that are still in the socket; 0 if unknown.
    fn unread(&self, state: &State) -> usize {
        let Some(mut bytes) = self.unread_bytes() else { return 0 };
        let mut count = 0;
        // The newest ones are the unread ones.
        for sent in state.sent.iter().rev() {
            if bytes == 0 {
                break;
            }
            bytes = bytes.saturating_sub(state.room_bytes(sent.message_bytes));
            count += 1;
        }
        count
    }
}

impl State {
    /// Notes that a reply had been read at `by` at the latest.
    fn read(&mut self, reply: &Sent, by: Instant) {
        let error = (by - reply.issued.since).saturating_sub(reply.took);
        self.errors.record(error);
        if reply.issued.is_long {
            self.long_errors.record(error);
        }
        self.turned += by - reply.at;
    }

    /// Measurements of messages of a length; `None` if there are already too many lengths.
    fn room(&mut self, message_bytes: usize) -> Option<&mut Room> {
        let known = self.rooms.iter().position(|room| room.message_bytes == message_bytes);
        if known.is_none() && self.rooms.len() < LENGTHS_MAX {
            self.rooms.push(Room { message_bytes, room_bytes: 0, measured: 0 });
        }
        let index = known.or_else(|| self.rooms.len().checked_sub(1))?;
        self.rooms.get_mut(index).filter(|room| room.message_bytes == message_bytes)
    }

    /// Socket memory of a message, or at least its length: this overestimates the number of unread replies.
    fn room_bytes(&self, message_bytes: usize) -> usize {
        let known = self.rooms.iter().find(|room| room.message_bytes == message_bytes);
        known.map_or(0, |room| room.room_bytes).max(message_bytes)
    }
}

impl Room {
    fn is_unsure(&mut self) -> bool {
        self.measured < MEASURED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A client at `depth` whose requests take 1 ms each in the model and whose turns take `turn` each.
    fn closed_loop(depth: u32, turn: Duration, requests: u32) -> TurnStatistics {
        let turns = Turns::new(None);
        let start = Instant::now();
        for number in 0..requests / depth {
            let came = start + (MS + turn) * number;
            // A batch arrives together, as from a device that answers everything after the same time.
            let issued: Vec<Issued> = (0..depth).map(|_| turns.arrived(came, came, 4096)).collect();
            issued.into_iter().for_each(|issued| turns.answered(came + MS, issued, MS, 4112, || ()));
        }
        turns.statistics()
    }

    #[test]
    fn what_a_client_measured_at_most_is_the_model_and_a_turn_on_either_side() {
        for depth in [1, 4, 64] {
            let seen = closed_loop(depth, Duration::from_micros(300), 640);
            assert_eq!((seen.requests, seen.depth), (640, depth as usize));
            // The first requests had no turn before them, and after the last ones nothing follows.
            assert_eq!(seen.error.count, u64::from(640 - depth));
            assert!((600_000..=640_000).contains(&seen.error.p99_ns), "depth {depth}: {seen:?}");
            let turns = Duration::from_micros(300) * (640 - depth);
            assert_eq!(u128::from(seen.turned_ns), turns.as_nanos());
        }
    }

    #[test]
    fn what_waited_to_be_received_may_have_been_issued_when_the_series_began() {
        let turns = Turns::new(None);
        let start = Instant::now();
        // Consecutive long writes, each of which takes 5 ms to arrive.
        for number in 1..=20 {
            let issued = turns.arrived(start + 5 * MS * number, start, 1 << 20);
            turns.answered(start + 5 * MS * number + MS, issued, MS, 16, || ());
        }
        let seen = turns.statistics();
        assert_eq!((seen.error.count, seen.depth), (19, 1));
        assert!(seen.error.max_ns >= 95_000_000, "{seen:?}");
        assert_eq!(seen.long_error, seen.error);
    }

    #[test]
    fn replies_in_the_socket_are_seen_and_count_as_under_way() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let stream = Stream::socket_of(ours);
        let turns = Turns::new(Some(stream.clone()));
        let start = Instant::now();
        let send = |bytes: usize| {
            let issued = turns.arrived(start, start, 4096);
            turns.answered(start, issued, Duration::ZERO, bytes, || stream.write_all(&vec![0; bytes]).expect("room"));
        };
        // The client never has more than one request at the server, and reads nothing.
        [16, 4112, 16, 528, 4112].into_iter().for_each(send);
        assert_eq!(turns.unread(&turns.state()), 5);
        assert_eq!(turns.statistics().depth, 5, "the last found four unread");
        turns.look(start + LYING);
        assert_eq!(turns.statistics().lying, 0);
        turns.look(start + 2 * LYING);
        turns.look(start + 3 * LYING);
        assert_eq!(turns.statistics().lying, 5, "each is counted once");
        // It reads three of them.
        let mut data = vec![0; 16 + 4112 + 16];
        std::io::Read::read_exact(&mut &theirs, &mut data).expect("three replies");
        assert_eq!(turns.unread(&turns.state()), 2);
    }
}
