//! [`Clients`]: the clients of a closed loop, and the completion times of their requests.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::record::{NOT_RECORDED, Record};

/// A fixed number of clients, each of which issues a request, waits for it, thinks, and issues the next.
///
/// A disk that serves one request after another acts as a clock for all of its clients. If each client just waited its
/// recorded response time from its own issue, this coupling would be lost at the first reordered burst, and the clients
/// would become independent. So arrivals are kept, as from outside, and each arrival determines the completion of the
/// request for which its client had been waiting: of those in flight, the one that is due first.
pub(super) struct Clients {
    clients: usize,
    /// Due completions of the requests in flight by their recorded response times, with their numbers.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    /// Requests from the first one in flight on, with whether they are complete.
    issued: VecDeque<(Record, bool)>,
    /// Number of the first of those.
    first: u64,
}

impl Clients {
    pub(super) fn new(clients: u32) -> Clients {
        Clients { clients: clients as usize, due: BinaryHeap::new(), issued: VecDeque::new(), first: 0 }
    }

    /// Issues a request of a client that thought for `think_ns`.
    pub(super) fn issue(&mut self, record: Record, think_ns: u64) {
        let now_ns = record.arrival_ns;
        if self.due.len() == self.clients {
            let Reverse((due_ns, number)) = self.due.pop().expect("there is a client");
            let (answered, is_complete) = &mut self.issued[(number - self.first) as usize];
            // The shorter of think time and response time is kept, and the other is the rest of the time between the
            // client's two requests: a think time of 0, or the response time of a nearly idle device.
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

    /// Returns the next request in order of arrival, once its completion is known.
    pub(super) fn answered(&mut self) -> Option<Record> {
        if !self.issued.front()?.1 {
            return None;
        }
        self.first += 1;
        self.issued.pop_front().map(|(record, _)| record)
    }
}
