//! Requests that drivers return, such as [`LoopIssue`].

use headstack_workload::Request;

/// A request of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopIssue {
    /// When the request is due, in nanoseconds since the start.
    pub due_ns: u64,
    /// The request.
    pub request: Request,
    /// Whether it is a flush that comes with a write where kinds arrive separately: the arrival of its moment is still
    /// to be taken.
    pub is_extra: bool,
}

/// Client and stream of a request.
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
    /// When the client issued it, in nanoseconds since the start; its latency counts from here.
    pub due_ns: u64,
    /// The request.
    pub request: Request,
    /// Its client and stream.
    pub owner: Owner,
}
