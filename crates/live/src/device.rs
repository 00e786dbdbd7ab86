//! What exports share: the address space, the bytes in it, and the way to the clock.

use headstack_workload::Span;

use crate::contents::Contents;
use crate::pacer::Submitter;

/// A LUN as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What clients ask for.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Its place in the system's address space.
    pub span: Span,
    /// Bytes of which every request is a multiple.
    pub block_bytes: u32,
    /// It has spindles.
    pub is_rotational: bool,
}

/// A system that is exported, by one path: a clone with another [`Submitter`] exports the same bytes by another path.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its LUNs; the first is what a client gets that names none.
    pub exports: Vec<Export>,
    /// Its bytes.
    pub contents: Contents,
    /// The way to the clock.
    pub submitter: Submitter,
}

impl Device {
    /// The export of that name; the first for an empty one.
    pub fn export(&self, name: &str) -> Option<&Export> {
        if name.is_empty() { self.exports.first() } else { self.exports.iter().find(|export| export.name == name) }
    }
}
