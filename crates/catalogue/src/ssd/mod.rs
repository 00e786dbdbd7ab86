//! SSDs: the TOML form and the derivation of a complete description.

mod complete;
mod derive;
pub mod endurance;
mod expected;
pub mod file;
pub mod generation;
mod resolve;
mod steady;

use headstack_sim::ssd::description::SsdDescription;
use headstack_workload::Document;

use crate::resolve::{Derived, source_of};
use file::SsdFile;

pub use complete::description_to_toml;
pub(crate) use expected::has_estimated_writes;
pub use expected::{ESTIMATE_RULES, EstimateRules};
pub(crate) use file::former_state;
pub use resolve::{resolve, resolve_by};

/// A complete SSD with its file.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedSsd {
    /// Description with every value that the model needs.
    pub description: SsdDescription,
    /// The file as it was read, with its sources and the keys that the model does not use.
    pub file: SsdFile,
    /// Values that the file does not state, in order of derivation.
    pub derived: Vec<Derived>,
}

impl ResolvedSsd {
    /// Returns the source of a key, like [`crate::Resolved::source`].
    pub fn source(&self, key: &str) -> Option<&str> {
        source_of(&self.file.sources, key)
    }
}

/// Whether a drive file describes an SSD; otherwise it is treated as a disk.
pub fn is_ssd(document: &Document) -> bool {
    document.states("flash")
}
