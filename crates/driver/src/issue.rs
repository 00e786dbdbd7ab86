//! Requests issued by drivers.

use headstack_workload::Request;

/// A request of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopIssue {
    /// When the request is due, in nanoseconds since the start.
    pub due_ns: u64,
    /// The request.
    pub request: Request,
    /// A flush that accompanies a write if kinds arrive separately: the arrival at its moment is still to be taken.
    pub is_extra: bool,
}

/// The client that a request belongs to.
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
    /// When the client issued the request, in nanoseconds since the start; its response time counts from here.
    pub due_ns: u64,
    /// The request.
    pub request: Request,
    /// The client that issued the request.
    pub owner: Owner,
}
