//! Work in flight in an array: [`HostRequest`]s, the operations and commands that they become, and what waits for what.

use std::collections::{HashMap, VecDeque};

use headstack_workload::{Kind, Request};

use super::levels::{Extent, RowPart};
use super::pool::Migration;

/// A host request in flight.
#[derive(Clone, Copy, Debug)]
pub struct HostRequest {
    /// The host's id of it.
    pub id: u32,
    /// The request itself.
    pub request: Request,
    /// Time of arrival.
    pub submitted_ns: u64,
    /// Operations and commands that it waits for.
    pub pending: u32,
    /// The first byte that it cannot read or write.
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
    /// First and last chunk that a write declared, if its group has a bitmap.
    pub chunks: Option<(u64, u64)>,
}

/// Origin of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A host request.
    Request(u32),
    /// A run of bytes between cache and members.
    Transfer(u32),
}

/// A command in flight.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its owner, which waits for it.
    pub owner: Owner,
    /// The member.
    pub member: u32,
    /// Its request to the member.
    pub request: Request,
    /// Whether it has a tag of the member.
    pub tagged: bool,
}

/// Owner of a command, which waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A host request itself (flushes).
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
    /// A run of bytes between cache and members, on its way through flash.
    Transfer(u32),
    /// The bitmap of a group.
    Bitmap(u32),
    /// Background work that no request waits for.
    Background,
    /// Nothing any more: its member is gone.
    Nobody,
}

/// The write of a part of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowWrite {
    /// Its operation.
    pub operation: u32,
    /// The group.
    pub group: u32,
    /// The part of the row that is written.
    pub part: RowPart,
    /// Commands of the present phase in flight.
    pub pending: u32,
    /// Whether it is reading what parity needs; afterwards it writes.
    pub reading: bool,
    /// Whether a member was lost meanwhile, so that what was read does not suffice.
    pub again: bool,
}

/// Rows that are being written, each with its waiting writes: two writes of one row at a time would read each other's
/// old parity.
pub type RowLocks = HashMap<(u32, u64), VecDeque<u32>>;

/// Reads, and writes that follow when all of them are done.
#[derive(Clone, Debug)]
pub struct Relay {
    /// The group.
    pub group: u32,
    /// Commands that it waits for.
    pub pending: u32,
    /// Extents to write when all reads are done.
    pub writes: Vec<Extent>,
    /// Its origin.
    pub then: RelayEnd,
}

/// Origin of a relay.
#[derive(Clone, Debug)]
pub enum RelayEnd {
    /// An operation.
    Operation(u32),
    /// A migration of a pool.
    Migration(Migration),
}

/// Returns a request for an extent.
pub fn request(kind: Kind, extent: &Extent) -> Request {
    Request {
        kind,
        offset_bytes: extent.at_bytes,
        length_bytes: u32::try_from(extent.length_bytes).expect("a request is shorter than 4 GiB"),
        force_unit_access: false,
        ordered: false,
    }
}
