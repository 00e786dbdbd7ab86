//! [`Issue`]: a request on its way from the trace to the caller that issues it.

use headstack_workload::{Kind, Request};

/// Index of a request in the player. The slot is reused once the request is complete and no other request waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub(crate) u32);

impl Slot {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A recorded request, with its times on the replay's clock.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Request number, from 1.
    pub number: u64,
    pub arrival_ns: u64,
    /// Arrival time, scaled by the replay's time scale.
    pub scheduled_ns: u64,
    pub completion_ns: Option<u64>,
    /// Request to send to the system.
    pub request: Request,
    /// Whether the system flushes its cache before this request.
    pub pre_flush: bool,
}

impl Default for Arrived {
    /// Returns the value of the look-ahead buffer before the first request is read; never issued.
    fn default() -> Self {
        let request =
            Request { kind: Kind::Read, offset_bytes: 0, length_bytes: 0, force_unit_access: false, ordered: false };
        Arrived { number: 0, arrival_ns: 0, scheduled_ns: 0, completion_ns: None, request, pre_flush: false }
    }
}

/// A request to issue. The caller keeps the slot to report the completion.
#[derive(Clone, Copy, Debug)]
pub struct Issue {
    /// Request to send to the system, in whole blocks within its capacity.
    pub request: Request,
    /// Due time on the player's clock. In [`ReplayMode::Asap`](crate::ReplayMode::Asap) this is the time of
    /// [`Player::take`](crate::Player::take); in other modes it is at or before that time.
    pub due_ns: u64,
    /// Request number in the trace, from 1.
    pub number: u64,
    /// Arrival time on the trace's clock.
    pub(crate) arrival_ns: u64,
    /// Arrival time, scaled by the replay's time scale.
    pub(crate) scheduled_ns: u64,
    /// Slot to pass to [`Player::completed`](crate::Player::completed).
    pub slot: Slot,
    /// Whether this is the second part of a recorded request whose first part, a flush, is complete.
    pub(crate) is_after_flush: bool,
}

impl Issue {
    /// Returns the flush that is issued before this request.
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

    /// Returns this request, due when its flush completed at `flushed_ns`.
    pub(crate) fn after_flush(&self, flushed_ns: u64) -> Issue {
        Issue { due_ns: flushed_ns, is_after_flush: true, ..*self }
    }
}
