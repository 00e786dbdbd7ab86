//! Work in flight in an array: [`HostRequest`]s, and the operations and commands for them.

use std::collections::{HashMap, VecDeque};

use headstack_workload::{Kind, Request};

use super::levels::{ChunkRange, Extent, RowPart};
use super::pool::Migration;
use crate::repair::Repair;

/// A host request in flight.
#[derive(Clone, Copy, Debug)]
pub struct HostRequest {
    /// ID that the host gave to the request.
    pub id: u32,
    /// The request.
    pub request: Request,
    /// Time of arrival.
    pub submitted_ns: u64,
    /// Number of operations and commands that the request waits for.
    pub pending: u32,
    /// First byte that cannot be read or written.
    pub failed: Option<u64>,
    /// Blocks to verify or restore for the layer above, in place of a read or write.
    pub repair: Option<Repair>,
    /// Stripes to write for the layer above, in place of a run of bytes.
    pub stripes: Option<ChunkRange>,
}

impl HostRequest {
    /// Creates a request that has just arrived.
    pub fn new(id: u32, request: &Request, submitted_ns: u64) -> HostRequest {
        HostRequest { id, request: *request, submitted_ns, pending: 0, failed: None, repair: None, stripes: None }
    }
}

/// A read or write of a run of bytes of one group.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Origin of the operation.
    pub origin: Origin,
    /// Number of the group.
    pub group: u32,
    /// Number of commands and row writes that the operation waits for.
    pub pending: u32,
    /// First and last bitmap chunk of a write, if the group has a bitmap.
    pub chunks: Option<(u64, u64)>,
}

/// Origin of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A host request.
    Request(u32),
    /// A transfer between cache and members.
    Transfer(u32),
}

/// A command in flight to a member.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Owner of the command.
    pub owner: Owner,
    /// Number of the member.
    pub member: u32,
    /// The request sent to the member.
    pub request: Request,
    /// Whether the command holds a tag of the member.
    pub tagged: bool,
}

/// Owner of a command, which is notified of its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A host request itself (flushes only).
    Request(u32),
    /// An operation.
    Operation(u32),
    /// A phase of a row write.
    Row(u32),
    /// A relay: reads that are followed by writes.
    Relay(u32),
    /// A step of the rebuild of a group: (group, step).
    Rebuild(u32, u32),
    /// A step of a pass over a group: (group, pass).
    Pass(u32, u32),
    /// A transfer between cache and members that goes through flash.
    Transfer(u32),
    /// The bitmap of a group.
    Bitmap(u32),
    /// The partial parity log on a slot: (group, slot).
    Log(u32, u32),
    /// Background work that no request waits for.
    Background,
    /// None: the member has failed.
    Nobody,
}

/// A write of part of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowWrite {
    /// Operation that the row write belongs to.
    pub operation: u32,
    /// Number of the group.
    pub group: u32,
    /// Part of the row that is written.
    pub part: RowPart,
    /// Number of commands of the current phase in flight.
    pub pending: u32,
    /// Whether the row write is in its first phase, which reads; the second phase writes.
    pub reading: bool,
    /// Whether a member failed during the reads, so that the plan must be made again.
    pub again: bool,
    /// Slot whose partial parity log holds the row write, if any.
    pub log: Option<u32>,
}

/// Rows that are being written, each with its waiting writes. Two concurrent writes to one row would read each other's
/// old parity.
pub type RowLocks = HashMap<(u32, u64), VecDeque<u32>>;

/// Reads, followed by writes when all reads are done.
#[derive(Clone, Debug)]
pub struct Relay {
    /// Number of the group.
    pub group: u32,
    /// Number of commands that the relay waits for.
    pub pending: u32,
    /// Extents to write when all reads are done.
    pub writes: Vec<Extent>,
    /// Origin of the relay.
    pub then: RelayEnd,
}

/// Origin of a relay.
#[derive(Clone, Debug)]
pub enum RelayEnd {
    /// An operation.
    Operation(u32),
    /// A repair, which writes `bytes`.
    Restore {
        /// Its operation.
        operation: u32,
        /// Bytes that it writes.
        bytes: u64,
    },
    /// A migration of a pool.
    Migration(Migration),
}

/// Returns a request for an extent.
pub fn request(kind: Kind, extent: &Extent) -> Request {
    Request {
        kind,
        offset_bytes: extent.at_bytes,
        length_bytes: u32::try_from(extent.length_bytes).expect("an extent of a request is shorter than 4 GiB"),
        force_unit_access: false,
        ordered: false,
    }
}
