//! The clients of a closed loop, and when their requests are complete.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::record::{NOT_RECORDED, Record};

/// So many clients, of which each issues a request, waits for it, thinks, and issues the next.
///
/// A disk that serves one request after the other is a clock, which all its clients' responses share. Clients who each wait
/// their recorded response from their own issue lose it at the first burst that comes in another order, and are then as
/// irregular as if they were alone. So arrivals are kept, as from outside, and each of them says when the request was
/// complete that its client had been waiting for: of those in flight, the one that is due first.
pub(super) struct Clients {
    clients: usize,
    /// When each request in flight should be complete by its recorded response, with its number.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    /// Requests from the first one in flight on, with whether they are complete.
    issued: VecDeque<(Record, bool)>,
    /// The number of the first of those.
    first: u64,
}

impl Clients {
    pub(super) fn new(clients: u32) -> Clients {
        Clients { clients: clients as usize, due: BinaryHeap::new(), issued: VecDeque::new(), first: 0 }
    }

    /// A client that thought for so long issues a request.
    pub(super) fn issue(&mut self, record: Record, think_ns: u64) {
        let now_ns = record.arrival_ns;
        if self.due.len() == self.clients {
            let Reverse((due_ns, number)) = self.due.pop().expect("there is a client");
            let (answered, is_complete) = &mut self.issued[(number - self.first) as usize];
            // What is shorter is kept, and the other is what is left of the time between the client's two requests: a thought
            // of nothing, or the response of a device that hardly anybody uses.
            let is_kept = |at_ns: &u64| think_ns < answered.response_ns && *at_ns > answered.arrival_ns;
            let thought_ns = now_ns.checked_sub(think_ns).filter(is_kept);
            answered.response_ns = thought_ns.unwrap_or(due_ns.min(now_ns)) - answered.arrival_ns;
            if answered.wait_ns != NOT_RECORDED {
                answered.wait_ns = answered.wait_ns.min(answered.response_ns);
            }
            *is_complete = true;
        }
        self.due.push(Reverse((now_ns.saturating_add(record.response_ns), self.first + self.issued.len() as u64)));
        self.issued.push_back((record, false));
    }

    /// The next request in order of arrival, once it is known when it is complete.
    pub(super) fn answered(&mut self) -> Option<Record> {
        if !self.issued.front()?.1 {
            return None;
        }
        self.first += 1;
        self.issued.pop_front().map(|(record, _)| record)
    }
}
