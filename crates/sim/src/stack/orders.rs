//! [`LayerModel`]: what each layer can do, and [`Order`]: what it wants done.

use std::collections::VecDeque;

use headstack_result::Levels;
use headstack_workload::{Request, Span};

use crate::repair::{Filling, Repair};
use crate::snapshot::Snapshot;
use crate::stripes::StripeWrite;

/// Message from a layer to its neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// Sends a request to a system below. `id` is the layer's own number of the request.
    Send {
        /// Index of the system below.
        port: u32,
        /// Number by which the layer recognizes the answer.
        id: u32,
        /// The request, with an address in the system below.
        request: Request,
    },
    /// Verifies or restores blocks of a system below, which answers as to a request.
    Repair {
        /// Index of the system below.
        port: u32,
        /// Number by which the layer recognizes the answer.
        id: u32,
        /// The blocks.
        repair: Repair,
    },
    /// Writes stripes of an array below, which answers as to a request.
    WriteStripes {
        /// Index of the system below.
        port: u32,
        /// Number by which the layer recognizes the answer.
        id: u32,
        /// The stripes.
        stripes: StripeWrite,
    },
    /// Reports to a system below that the member of a RAID group is filled.
    EndFilling {
        /// Index of the system below.
        port: u32,
        /// RAID group.
        group: u32,
    },
    /// Answers a request from above.
    Answer(Answer),
}

/// Answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Number of the request, as given by the system above.
    pub id: u32,
    /// When work on the request began.
    pub started_ns: u64,
    /// First byte that could not be read or written, by the address space of the system that answers, and whether it
    /// was written.
    pub failed: Option<(u64, bool)>,
}

/// Requests to the systems below and answers, in the order in which a layer gave them.
pub(crate) type Orders = VecDeque<Order>;

/// A layer in virtual time.
pub(crate) trait LayerModel {
    /// Takes a request from above.
    fn submit(&mut self, now_ns: u64, id: u32, request: &Request, orders: &mut Orders);

    /// Processes an answer from the system below with index `port`.
    fn answered(&mut self, now_ns: u64, port: u32, answer: &Answer, orders: &mut Orders);

    /// Returns the time of the layer's own next event, such as a timer; `u64::MAX` if there is none.
    fn next_event_ns(&self) -> u64;

    /// Processes the layer's own events of this moment.
    fn wake(&mut self, now_ns: u64, orders: &mut Orders);

    /// Takes the members of the system below with index `port` that wait to be filled, after they have changed.
    fn fillings_changed(&mut self, _now_ns: u64, _port: u32, _fillings: &[Filling], _orders: &mut Orders) {}

    /// Starts to verify all that is stored. Returns `None` if the layer leaves that to the system below, and an error
    /// if it cannot start now.
    fn scrub(&mut self, _now_ns: u64, _orders: &mut Orders) -> Option<Result<(), String>> {
        None
    }

    /// Passes each part of a span to `each` that lies in one piece in a system below: the index of that system, the
    /// place of the part there, and the part itself. Parts that no system below holds are left out.
    fn pieces(&self, span: Span, each: &mut dyn FnMut(u32, u64, Span)) {
        each(0, span.start_bytes, span);
    }

    /// Appends the parts of `spans` whose newest acknowledged data are only in the layer's memory. `spans` are
    /// ascending and disjoint, and so is the result.
    fn volatile(&self, _spans: &[Span], _into: &mut Vec<Span>) {}

    /// Returns the aligned bytes that a write changes as a whole, even if power fails meanwhile; `None` if the systems
    /// below decide that.
    fn atomic_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether it acknowledges data that are only in its memory.
    fn holds_data(&self) -> bool {
        false
    }

    /// Handles a power cycle: its memory is empty, requests in flight are gone.
    fn power_cycle(&mut self, now_ns: u64);

    /// Adds its counters.
    fn snapshot(&self, into: &mut Snapshot);

    /// Adds its fill levels.
    fn add_levels(&self, _into: &mut Levels) {}

    /// Adds a past request to its caches, in no time. Returns whether the request would have reached the systems below.
    fn warm_with(&mut self, _request: &Request) -> bool {
        true
    }
}
