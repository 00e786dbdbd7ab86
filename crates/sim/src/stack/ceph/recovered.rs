//! [`Recovering`]: the objects that OSDs recover.

use crate::description::stack::CephDescription;
use crate::slab::Slab;

/// State of recovery.
#[derive(Clone, Debug)]
pub(super) struct Recovering {
    /// Objects that each OSD has begun to recover.
    pub begun: Vec<u64>,
    /// Objects under way.
    pub objects: Slab<Recovered>,
    pub has_begun: bool,
}

/// An object that an OSD recovers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovered {
    pub target: u32,
    /// Number among the objects that the OSD recovers.
    pub number: u64,
    pub reads_left: u32,
    pub is_written: bool,
}

impl Recovering {
    /// Creates the state before the first request.
    pub fn new(ceph: &CephDescription) -> Recovering {
        let begun = if ceph.recovery.is_some() { vec![0; ceph.osds as usize] } else { Vec::new() };
        Recovering { begun, objects: Slab::default(), has_begun: false }
    }

    /// Drops what is under way; recovery begins again with the next request.
    pub fn reset(&mut self) {
        self.objects = Slab::default();
        self.has_begun = false;
    }
}
