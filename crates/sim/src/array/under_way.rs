//! Work under way in an array: requests, the resulting operations and commands, and their dependencies.

use std::collections::{HashMap, VecDeque};

use headstack_workload::{Kind, Request};

use super::levels::{Extent, RowPart};
use super::pool::Migration;

/// A host request under way.
#[derive(Clone, Copy, Debug)]
pub struct HostRequest {
    /// The host's name for it.
    pub id: u32,
    /// The request.
    pub request: Request,
    /// When it came.
    pub submitted_ns: u64,
    /// Operations and commands that it waits for.
    pub pending: u32,
    /// The first byte that it cannot have.
    pub failed: Option<u64>,
}

/// A read or write of a run of bytes of one group.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its origin.
    pub origin: Origin,
    /// The group.
    pub group: u32,
    /// Commands and row writes that it waits for.
    pub pending: u32,
    /// A write whose group has a bitmap: the chunks that it declared, first and last.
    pub chunks: Option<(u64, u64)>,
}

/// Whom an operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A host request.
    Request(u32),
    /// A run of bytes between cache and members.
    Transfer(u32),
}

/// A command under way.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its owner.
    pub owner: Owner,
    /// The member.
    pub member: u32,
    /// The access.
    pub request: Request,
    /// It has a tag of the member.
    pub tagged: bool,
}

/// Owner of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A host request itself (flushes).
    Request(u32),
    /// An operation.
    Operation(u32),
    /// A phase of a row write.
    Row(u32),
    /// Reads that writes follow.
    Relay(u32),
    /// A step of the rebuild of a group: (group, step).
    Rebuild(u32, u32),
    /// A step of a pass over a group: (group, pass).
    Pass(u32, u32),
    /// A run of bytes between cache and members, on its way through flash.
    Transfer(u32),
    /// The bitmap of a group.
    Bitmap(u32),
    /// Background I/O.
    Background,
    /// None: its member is gone.
    Nobody,
}

/// The write of a part of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowWrite {
    /// Its operation.
    pub operation: u32,
    /// The group.
    pub group: u32,
    /// The part being written.
    pub part: RowPart,
    /// Commands of the present phase that are not done.
    pub pending: u32,
    /// Whether it reads for parity; afterwards it writes.
    pub reading: bool,
    /// Whether a member was lost meanwhile, so that the data read do not suffice.
    pub again: bool,
}

/// Rows that are being written, each with the writes that wait: two writes of one row at a time would read each other's old
/// parity.
pub type RowLocks = HashMap<(u32, u64), VecDeque<u32>>;

/// Reads, and writes that follow when all of them are done.
#[derive(Clone, Debug)]
pub struct Relay {
    /// The group.
    pub group: u32,
    /// Commands that it waits for.
    pub pending: u32,
    /// Writes that follow the reads.
    pub writes: Vec<Extent>,
    /// Its purpose.
    pub then: RelayEnd,
}

/// Whom a relay is for.
#[derive(Clone, Debug)]
pub enum RelayEnd {
    /// An operation.
    Operation(u32),
    /// A migration of a pool's.
    Migration(Migration),
}

/// A command for an extent.
pub fn request(kind: Kind, extent: &Extent) -> Request {
    Request {
        kind,
        offset_bytes: extent.at_bytes,
        length_bytes: u32::try_from(extent.length_bytes).expect("a request is shorter than 4 GiB"),
        force_unit_access: false,
        ordered: false,
    }
}
