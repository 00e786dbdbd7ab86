//! [`TreeSpec`]: the definition of a load on trees, and its checks.

use std::path::PathBuf;

use headstack_jobfiles::trees::{Operation, Tree, TreePhase};

use super::shape::{SECTOR_BYTES, Shape};
use crate::LoadError;

/// Definition of a load on trees.
#[derive(Clone, Debug)]
pub struct TreeSpec {
    /// The phase.
    pub phase: TreePhase,
    /// Seed of sizes, choices and arrivals.
    pub seed: u64,
    /// Path of the ledger, which allows verification after a crash. With several trees, their names are appended.
    pub ledger: Option<PathBuf>,
}

impl TreeSpec {
    /// Returns the path of a tree's ledger.
    pub(super) fn ledger_of(&self, tree: &Tree) -> Option<PathBuf> {
        let path = self.ledger.as_ref()?;
        match self.phase.trees.len() {
            1 => Some(path.clone()),
            _ => Some(PathBuf::from(format!("{}.{}", path.display(), tree.name))),
        }
    }

    /// Checks for impossible settings before anything is changed.
    ///
    /// # Errors
    /// Returns an error if a tree has files without a size, if direct requests do not fit any device, or if stamped
    /// files are to be moved.
    pub fn check(&self) -> Result<(), LoadError> {
        let phase = &self.phase;
        for load in &phase.loads {
            let refused = |message: String| Err(LoadError::Job { job: load.name.clone(), message });
            let tree = &phase.trees[load.tree];
            load.check().map_err(|message| LoadError::Job { job: load.name.clone(), message })?;
            let moves_data = matches!(load.operation, Operation::Read | Operation::Write | Operation::Copy);
            if moves_data && tree.sizes.is_empty() {
                return refused(format!("the files of {} have no size; add sizes=...", tree.name));
            }
            let is_whole = |bytes: u64| bytes.is_multiple_of(SECTOR_BYTES);
            let all_whole = tree.sizes.iter().all(|(bytes, _)| is_whole(*bytes));
            if load.direct && moves_data && !all_whole {
                return refused("uses direct I/O; file sizes must be multiples of 512 bytes".to_owned());
            }
            if phase.verify && !load.sizes.iter().all(|(bytes, _)| is_whole(u64::from(*bytes))) {
                return refused("is verified; request sizes must be multiples of 512 bytes".to_owned());
            }
            if phase.verify && load.operation == Operation::Move {
                return refused("moved files keep the stamps of their tree and cannot be verified".to_owned());
            }
            if let Some(other) = load.to_tree.map(|other| &phase.trees[other]) {
                let shape = |tree| Shape::new(tree, self.seed, phase.verify);
                if shape(tree) != shape(other) {
                    return refused(format!(
                        "{} and {} differ in shape; a copy needs equal trees",
                        tree.name, other.name
                    ));
                }
            }
            if tree.files == 0 && !matches!(load.operation, Operation::Mkdir | Operation::Rmdir) {
                return refused(format!("the tree {} has no files; add files=...", tree.name));
            }
        }
        Ok(())
    }
}
