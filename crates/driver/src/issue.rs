//! What drivers give.

use headstack_workload::Request;

/// A request of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopIssue {
    /// When it is due, in nanoseconds since the start.
    pub due_ns: u64,
    /// The request.
    pub request: Request,
    /// A flush that comes with a write where kinds arrive apart: the arrival of its moment is still to be taken.
    pub is_extra: bool,
}

/// Whose request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The client's number, from 0.
    pub client: u32,
    /// Index of the stream that the request belongs to.
    pub stream: u32,
}

/// A request of a client of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientIssue {
    /// When the client issued it, in nanoseconds since the start; its response time counts from here.
    pub due_ns: u64,
    /// The request.
    pub request: Request,
    /// Whose it is.
    pub owner: Owner,
}
