//! [`Clients`]: the clients of a closed loop and the completion times of their requests.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::record::{NOT_RECORDED, Record};

/// A fixed number of clients. Each client issues a request, waits for its completion, thinks, and issues the next
/// request.
///
/// A disk that serves one request after another acts as a clock for all its clients. If each client only waited its
/// recorded latency after its own issue, this coupling would be lost at the first reordered burst, and the clients
/// would become independent. So arrivals are kept as if they were external, and each arrival determines the completion
/// of the request that its client had been waiting for: the request in flight that is due first.
pub(super) struct Clients {
    clients: usize,
    /// Due completions of the requests in flight by recorded latency: (time, request number).
    due: BinaryHeap<Reverse<(u64, u64)>>,
    /// Requests from the first one in flight on, and whether each is complete.
    issued: VecDeque<(Record, bool)>,
    /// Number of the first request in `issued`.
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
            let Reverse((due_ns, number)) = self.due.pop().expect("at least one request is in flight");
            let (answered, is_complete) = &mut self.issued[(number - self.first) as usize];
            // Keeps the shorter of think time and latency, and makes the other the rest of the time between the
            // client's two requests. So a think time of 0 and the latency of a nearly idle device are preserved.
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
