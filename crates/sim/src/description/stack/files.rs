//! [`FileDescription`]: a named file of a file system, as a span of its address space.

use serde::{Deserialize, Serialize};

use crate::error::{InvalidDescription, require};

/// A file. Files lie one after another and keep their size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDescription {
    /// Name, which is also that of a LUN for scenarios.
    pub name: String,
    /// Size in bytes.
    pub length_bytes: u64,
}

impl FileDescription {
    /// Unit of sizes. It is also the first byte of the first file: the space before it holds the superblock, so that a
    /// sync at address 0 belongs to no file and covers all of them.
    pub const UNIT_BYTES: u64 = 1 << 20;

    /// Returns the first byte of the first file, then the end of each file; nothing without files.
    pub fn bounds(files: &[FileDescription]) -> Vec<u64> {
        let mut end = Self::UNIT_BYTES;
        let first = if files.is_empty() { None } else { Some(end) };
        let ends = files.iter().map(|file| {
            end = end.saturating_add(file.length_bytes);
            end
        });
        first.into_iter().chain(ends).collect()
    }
}

/// Rejects files that a file system of this capacity cannot hold.
pub(crate) fn check_files(files: &[FileDescription], capacity_bytes: u64) -> Result<(), InvalidDescription> {
    for (number, file) in files.iter().enumerate() {
        let is_twice = files[..number].iter().any(|other| other.name == file.name);
        require(!file.name.is_empty() && !is_twice, "files.name", || {
            format!("{:?} is not allowed; each file must have a name of its own", file.name)
        })?;
        require(file.length_bytes > 0 && file.length_bytes % FileDescription::UNIT_BYTES == 0, "files.size", || {
            format!("{} bytes are not allowed; must be a multiple of 1 MiB, at least 1 MiB", file.length_bytes)
        })?;
    }
    let end = FileDescription::bounds(files).last().copied().unwrap_or(0);
    require(end <= capacity_bytes, "files.size", || {
        format!("the files end at byte {end}, after the file system with its {capacity_bytes} bytes")
    })
}
