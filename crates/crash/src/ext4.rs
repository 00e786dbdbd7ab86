//! Files of an ext4 file system, read from its image without mounting it: the journal is taken into account, not replayed.

use std::path::Path;

use ext4_view::{Ext4, Ext4Error};

use crate::CrashError;

/// What files hold; nothing for those that are not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// In the order in which they were named.
    Read(Vec<Option<Vec<u8>>>),
    /// The file system is damaged, or is none.
    Damaged(String),
    /// It has what this does not know, such as an escaped block of its journal.
    Unknown(String),
}

/// Reads files of the file system in an image.
///
/// # Errors
/// The image cannot be read.
pub fn read_files(image: &Path, paths: &[String]) -> Result<Files, CrashError> {
    let system = match Ext4::load_from_path(image) {
        Ok(system) => system,
        Err(Ext4Error::Incompatible(why)) => return Ok(Files::Unknown(why.to_string())),
        Err(Ext4Error::Io(error)) => return Err(CrashError::of(image, error.to_string())),
        Err(error) => return Ok(Files::Damaged(error.to_string())),
    };
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        match system.read(path.as_str()) {
            Ok(data) => files.push(Some(data)),
            Err(Ext4Error::NotFound) => files.push(None),
            Err(Ext4Error::Incompatible(why)) => return Ok(Files::Unknown(why.to_string())),
            Err(Ext4Error::Io(error)) => return Err(CrashError::of(image, error.to_string())),
            Err(error) => return Ok(Files::Damaged(format!("{path}: {error}"))),
        }
    }
    Ok(Files::Read(files))
}
