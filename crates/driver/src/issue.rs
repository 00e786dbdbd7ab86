//! Requests returned by drivers, such as [`LoopIssue`].

use headstack_workload::Request;

/// A request of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopIssue {
    /// Time at which the request is due, in ns since the start.
    pub due_ns: u64,
    /// The request.
    pub request: Request,
    /// Whether the request is a flush that accompanies a write, if kinds have separate rates. The write's arrival is
    /// then still to be taken.
    pub is_extra: bool,
}

/// Client and stream of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Number of the client, from 0.
    pub client: u32,
    /// Index of the request's stream.
    pub stream: u32,
}

/// A request of a scenario's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientIssue {
    /// Time at which the client issued the request, in ns since the start. Latency counts from here.
    pub due_ns: u64,
    /// The request.
    pub request: Request,
    /// Client and stream of the request.
    pub owner: Owner,
}
