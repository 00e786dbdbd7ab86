//! SSDs: the TOML form, and its resolution to a complete description.

mod complete;
mod derive;
pub mod file;
pub mod generation;
mod resolve;
mod steady;

use headstack_sim::ssd::description::SsdDescription;
use headstack_workload::Document;

use crate::resolve::{Derived, source_of};
use file::SsdFile;

pub use complete::description_to_toml;
pub use resolve::resolve;

/// A solid-state drive, complete, with the file it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedSsd {
    /// Every number of the model.
    pub description: SsdDescription,
    /// The file as it was read, with its sources and the facts that the model does not use.
    pub file: SsdFile,
    /// Derived values, in the order of derivation.
    pub derived: Vec<Derived>,
}

impl ResolvedSsd {
    /// As for [`crate::Resolved::source`].
    pub fn source(&self, key: &str) -> Option<&str> {
        source_of(&self.file.sources, key)
    }
}

/// Whether a drive file describes an SSD; otherwise it is treated as an HDD.
pub fn is_ssd(document: &Document) -> bool {
    document.states("flash")
}
