//! A request between the recording and the caller that issues it.

use headstack_workload::{Kind, Request};

/// Index of a registered request in a player, valid until the request is complete and no other waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub(crate) u32);

impl Slot {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A recorded request on the replay's clock.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// From 1.
    pub number: u64,
    pub arrival_ns: u64,
    /// The same time, scaled by the replay's time scale.
    pub scheduled_ns: u64,
    pub completion_ns: Option<u64>,
    /// The request to the system.
    pub request: Request,
    /// The system flushes its cache before it.
    pub pre_flush: bool,
}

impl Default for Arrived {
    /// The value of the look-ahead buffer before the first request is read; never issued.
    fn default() -> Self {
        let request =
            Request { kind: Kind::Read, offset_bytes: 0, length_bytes: 0, force_unit_access: false, ordered: false };
        Arrived { number: 0, arrival_ns: 0, scheduled_ns: 0, completion_ns: None, request, pre_flush: false }
    }
}

/// A request to be issued. The caller keeps its slot, to report its completion.
#[derive(Clone, Copy, Debug)]
pub struct Issue {
    /// The request to the system: whole blocks within it.
    pub request: Request,
    /// When the request is to be issued, on the player's clock: in [`ReplayMode::Asap`](crate::ReplayMode::Asap) when
    /// it is taken, else no later than that.
    pub due_ns: u64,
    /// Its number in the recording, from 1.
    pub number: u64,
    /// When it arrived, on the recording's clock.
    pub(crate) arrival_ns: u64,
    /// The same time, scaled by the replay's time scale.
    pub(crate) scheduled_ns: u64,
    /// Its name when it completes.
    pub slot: Slot,
    /// The second part of a recorded request whose first part, a flush, is complete.
    pub(crate) is_after_flush: bool,
}

impl Issue {
    /// The flush before this request, which is issued in its place.
    pub(crate) fn flush_before(&self) -> Issue {
        let flush = Request {
            kind: Kind::Flush,
            offset_bytes: 0,
            length_bytes: 0,
            force_unit_access: false,
            ordered: self.request.ordered,
        };
        Issue { request: flush, ..*self }
    }

    /// This request after its flush, which was complete at `flushed_ns`.
    pub(crate) fn after_flush(&self, flushed_ns: u64) -> Issue {
        Issue { due_ns: flushed_ns, is_after_flush: true, ..*self }
    }
}
