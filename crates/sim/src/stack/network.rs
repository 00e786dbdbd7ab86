//! [`Network`]: the way to a target on another host: round trips, transfer rate, and the processor time of messages on
//! both hosts.
//!
//! A request costs processor time at the initiator, crosses the network, costs processor time at the target and reaches
//! the system below; its answer takes the same way back. Writes longer than the target takes unasked wait for its
//! permission (R2T) before each burst: one more round trip each.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use headstack_workload::{Kind, Request};

use super::cores::Cores;
use super::orders::{Answer, LayerModel, Order, Orders};
use crate::description::stack::NetworkDescription;
use crate::snapshot::Snapshot;

/// A network in virtual time.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    description: NetworkDescription,
    initiator: Cores,
    target: Cores,
    /// When each direction of the wire is free: towards the target, towards the initiator.
    free_ns: [u64; 2],
    /// Time that each direction carried bytes, in ns.
    carried_ns: [u64; 2],
    /// Time that messages waited for the wire, in ns.
    waited_ns: u64,
    /// Requests by their id.
    requests: Vec<Message>,
    /// Requests without an answer; those above the window wait.
    in_window: u32,
    waiting: VecDeque<u32>,
    /// Messages that are under way: time of arrival, order of sending, number of the request.
    under_way: BinaryHeap<Reverse<(u64, u64, u32)>>,
    sent: u64,
    round_trips: u64,
}

/// A request on its way, or its answer on the way back.
#[derive(Clone, Copy, Debug)]
struct Message {
    request: Request,
    phase: Phase,
}

/// Next event of a message.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The initiator's software has sent it.
    Sending,
    /// Its last byte arrives at the target.
    Arriving,
    /// The target's software has taken it.
    Taken,
    /// Its answer arrives at the initiator.
    Returning(Answer),
}

/// Direction of a message.
const TOWARDS_TARGET: usize = 0;
const TOWARDS_INITIATOR: usize = 1;

impl Network {
    /// Creates an idle network.
    pub fn new(description: &NetworkDescription) -> Network {
        Network {
            description: *description,
            initiator: Cores::new(description.initiator_cores),
            target: Cores::new(description.target_cores),
            free_ns: [0; 2],
            carried_ns: [0; 2],
            waited_ns: 0,
            requests: Vec::new(),
            in_window: 0,
            waiting: VecDeque::new(),
            under_way: BinaryHeap::new(),
            sent: 0,
            round_trips: 0,
        }
    }

    /// Carries a message that is ready at `ready_ns`; returns when its last byte arrives.
    fn carry(&mut self, ready_ns: u64, bytes: u64, direction: usize) -> u64 {
        let begin_ns = ready_ns.max(self.free_ns[direction]);
        let wire_ns = self.description.wire_ns(bytes);
        self.free_ns[direction] = begin_ns + wire_ns;
        self.carried_ns[direction] += wire_ns;
        self.waited_ns += begin_ns - ready_ns;
        begin_ns + wire_ns + self.description.round_trip_ns / 2
    }

    /// Lets the initiator's software send a request.
    fn begin(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let at_ns = self.initiator.work(now_ns, self.description.initiator_ns);
        self.schedule(now_ns, at_ns, number, Phase::Sending, orders);
    }

    /// Lets a phase of a message end at `at_ns`: at once if that is now.
    fn schedule(&mut self, now_ns: u64, at_ns: u64, number: u32, phase: Phase, orders: &mut Orders) {
        self.requests[number as usize].phase = phase;
        if at_ns <= now_ns {
            return self.end_phase(now_ns, number, orders);
        }
        self.sent += 1;
        self.under_way.push(Reverse((at_ns, self.sent, number)));
    }

    fn end_phase(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let Message { request, phase, .. } = self.requests[number as usize];
        match phase {
            Phase::Sending => self.put_on_wire(now_ns, number, orders),
            Phase::Arriving => {
                let at_ns = self.target.work(now_ns, self.description.target_ns());
                self.schedule(now_ns, at_ns, number, Phase::Taken, orders);
            }
            Phase::Taken => orders.push_back(Order::Send { port: 0, id: number, request }),
            Phase::Returning(answer) => self.finish(now_ns, &answer, orders),
        }
    }

    /// Puts a request on the wire. Its first burst waits for the target's permission if it is longer than allowed.
    fn put_on_wire(&mut self, now_ns: u64, number: u32, orders: &mut Orders) {
        let request = self.requests[number as usize].request;
        let bytes = match request.kind {
            Kind::Write => u64::from(request.length_bytes),
            Kind::Read | Kind::Flush | Kind::Trim => 0,
        };
        let permits = self.description.permits(bytes);
        self.round_trips += 1 + permits;
        let at_ns = self.carry(now_ns, bytes, TOWARDS_TARGET) + permits * self.description.round_trip_ns;
        self.schedule(now_ns, at_ns, number, Phase::Arriving, orders);
    }

    /// Answers a request, and lets the next one into the window.
    fn finish(&mut self, now_ns: u64, answer: &Answer, orders: &mut Orders) {
        orders.push_back(Order::Answer(*answer));
        match self.waiting.pop_front() {
            Some(next) => self.begin(now_ns, next, orders),
            None => self.in_window -= 1,
        }
    }
}

impl LayerModel for Network {
    fn submit(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders) {
        let message = Message { request: *request, phase: Phase::Sending };
        if self.requests.len() <= id as usize {
            self.requests.resize(id as usize + 1, message);
        }
        self.requests[id as usize] = message;
        if self.in_window < self.description.window {
            self.in_window += 1;
            self.begin(now_ns, id, orders);
        } else {
            self.waiting.push_back(id);
        }
    }

    fn answered(&mut self, now_ns: u64, _port: u32, answer: &Answer, orders: &mut Orders) {
        let request = self.requests[answer.id as usize].request;
        let bytes = match request.kind {
            Kind::Read => u64::from(request.length_bytes),
            Kind::Write | Kind::Flush | Kind::Trim => 0,
        };
        let at_ns = self.carry(now_ns, bytes, TOWARDS_INITIATOR);
        self.schedule(now_ns, at_ns, answer.id, Phase::Returning(*answer), orders);
    }

    fn next_event_ns(&self) -> u64 {
        self.under_way.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns)
    }

    fn wake(&mut self, now_ns: u64, orders: &mut Orders) {
        while let Some(&Reverse((at_ns, _, number))) = self.under_way.peek() {
            if at_ns > now_ns {
                return;
            }
            self.under_way.pop();
            self.end_phase(now_ns, number, orders);
        }
    }

    fn power_cycle(&mut self, _now_ns: u64) {
        self.initiator.reset();
        self.target.reset();
        self.free_ns = [0; 2];
        self.requests.clear();
        self.in_window = 0;
        self.waiting.clear();
        self.under_way.clear();
    }

    fn snapshot(&self, into: &mut Snapshot) {
        into.component("network".to_owned(), 2, self.carried_ns.iter().sum(), self.waited_ns);
        let initiator = &self.initiator;
        into.component("initiator CPU".to_owned(), initiator.count(), initiator.busy_ns, initiator.waited_ns);
        into.component("target CPU".to_owned(), self.target.count(), self.target.busy_ns, self.target.waited_ns);
        into.count("network_round_trips", self.round_trips);
    }
}
