//! Files of a stack: their sizes, and the layers that know them.

use headstack_sim::stack::description::{FileDescription, LayerDescription};
use headstack_sim::{StackDescription, SystemDescription};
use headstack_workload::InputError;

use super::Completer;

impl Completer<'_> {
    /// Gives a layer its files: those below it, if it keeps their addresses, or else those of this stack from its file
    /// system up.
    pub(super) fn place_files(&self, stack: &mut StackDescription) -> Result<(), InputError> {
        let below = match &stack.below[0] {
            SystemDescription::Stack(below) => below.files.clone(),
            SystemDescription::Drive(_) | SystemDescription::Array(_) => Vec::new(),
        };
        stack.files = match stack.layer {
            LayerDescription::Zfs(_) | LayerDescription::Journal(_) => self.files(stack.capacity_bytes())?,
            LayerDescription::PageCache(_) if below.is_empty() => self.files(stack.capacity_bytes())?,
            LayerDescription::PageCache(_)
            | LayerDescription::Network(_)
            | LayerDescription::InstanceLimit(_)
            | LayerDescription::HostCache(_) => below,
            // Block devices, below any file system.
            LayerDescription::BlockCache(_) | LayerDescription::MdJournal(_) | LayerDescription::Ceph(_) => Vec::new(),
        };
        Ok(())
    }

    /// Rejects files of this stack that no layer has.
    pub(super) fn check_files(&self, top: &SystemDescription) -> Result<(), InputError> {
        let names = top.luns();
        match self.file.files.iter().find(|table| names.iter().all(|(name, _)| *name != table.name)) {
            None => Ok(()),
            Some(table) => {
                let message = format!("no file system for {:?}; add `ext4`, `xfs` or `zfs` to the layers", table.name);
                Err(self.document.error("files", message))
            }
        }
    }

    /// Returns the files with their sizes in a file system of this capacity.
    fn files(&self, capacity_bytes: u64) -> Result<Vec<FileDescription>, InputError> {
        let tables = &self.file.files;
        if tables.iter().filter(|table| table.size.is_none()).count() > 1 {
            let message = "the size is missing in more than one file; only one can be the rest of the space";
            return Err(self.document.error("files.size", message));
        }
        let stated: u64 = tables.iter().filter_map(|table| table.size).fold(0, |sum, size| sum.saturating_add(size.0));
        let unit = FileDescription::UNIT_BYTES;
        let rest = capacity_bytes.saturating_sub(unit).saturating_sub(stated) / unit * unit;
        let file = |table: &super::file::FileTable| FileDescription {
            name: table.name.clone(),
            length_bytes: table.size.map_or(rest, |size| size.0),
        };
        Ok(tables.iter().map(file).collect())
    }
}
