//! [`Operation`], the part of a request within one object, and [`Task`], the part of an operation on one OSD.

use headstack_workload::Kind;

use super::shards::Part;

/// A request of the host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostRequest {
    /// Operations without an answer.
    pub left: u32,
    /// When the first operation began.
    pub began_ns: Option<u64>,
    pub failed: Option<(u64, bool)>,
}

/// The part of a request within one object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub host: u32,
    pub kind: Kind,
    pub object: u64,
    pub part: Part,
    pub primary: u32,
    pub phase: Phase,
    /// Tasks of the phase without an answer.
    pub left: u32,
    /// Network interface of the client.
    pub client: u32,
}

/// Phase of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Reads what the client requested.
    Reading,
    /// Reads what the new parity depends on.
    ReadingFirst,
    /// Writes all copies or shards.
    Writing,
}

/// Owner of a task.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    Operation(u32),
    Recovery(u32),
}

/// A read or write of one OSD.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub owner: Owner,
    pub osd: u32,
    /// OSD that awaits the answer.
    pub coordinator: u32,
    pub shard: u32,
    pub writes: bool,
    /// First byte on the data device, and bytes.
    pub place: u64,
    pub length: u32,
    /// Blocks that must be read before the write.
    pub reads_left: u32,
    /// Whether its data go to the log first.
    pub is_deferred: bool,
}
