//! A request between the recording and whoever issues it.

use headstack_workload::Request;

/// Where the books have a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub(crate) u32);

/// A recorded request on the replay's clock.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// From 1.
    pub number: u64,
    pub arrival_ns: u64,
    /// The same at the time scale of the replay.
    pub scheduled_ns: u64,
    pub completion_ns: Option<u64>,
    /// What the system is asked for.
    pub request: Request,
    /// Where the books have it once it is taken.
    pub slot: Slot,
}

/// A request that is to be issued. Whoever issues it keeps this, to hand it back with its completion.
#[derive(Clone, Copy, Debug)]
pub struct Issue {
    /// What the system is asked for: whole blocks that lie on it.
    pub request: Request,
    /// When it is to be issued, on the player's clock: in [`ReplayMode::Asap`](crate::ReplayMode::Asap) when it is taken, else no later than that.
    pub due_ns: u64,
    /// Its number in the recording, from 1.
    pub number: u64,
    /// When it arrived, on the recording's clock.
    pub(crate) arrival_ns: u64,
    /// The same at the time scale of the replay.
    pub(crate) scheduled_ns: u64,
    pub(crate) slot: Slot,
    pub(crate) node: u32,
}
