//! All that one command writes, looked at before it does anything.

use std::ffi::CString;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, StatxAttributes, StatxFlags, access, statx};

use crate::FileError;
use crate::atomic_file::Draft;
use crate::place::{Identity, Place, stdout};

/// The sticky bit: in such a folder a file is its owner's alone to replace.
const STICKY: u32 = 0o1000;

/// The outputs of a command, each of which can be written, and to a place of its own.
#[derive(Debug, Default)]
pub struct Outputs {
    written: Vec<(PathBuf, Identity)>,
    measured: Vec<(PathBuf, Identity)>,
}

impl Outputs {
    /// Adds an output.
    ///
    /// # Errors
    /// No file can be written there, another output goes there, or it is measured.
    pub fn write(&mut self, path: &Path) -> Result<(), FileError> {
        let place = Place::of(path)?;
        if let Place::File { folder, name, before } = &place {
            check_folder(path, folder)?;
            if let Some(before) = before {
                check_replaceable(path, folder, &folder.join(name), before)?;
            }
            // Only making one tells of a file system that is read-only, full, or has no files of ours.
            let tried = Draft::create(folder, name.clone(), None);
            tried.map_err(|error| in_folder(path, folder, &crate::words(&error)))?;
        }
        self.add(path, &place)
    }

    /// Adds a file that is kept open and written in place, such as a log: a regular one, or none yet.
    ///
    /// # Errors
    /// As for [`Outputs::write`]; and a pipe or a device.
    pub fn keep(&mut self, path: &Path) -> Result<(), FileError> {
        let place = Place::of(path)?;
        match &place {
            Place::File { folder, before: None, .. } => check_folder(path, folder)?,
            Place::File { before: Some(_), .. } => {
                access(path, Access::WRITE_OK).map_err(|_| FileError::refused(path, "no permission to write"))?;
            }
            _ => return Err(FileError::refused(path, "is not a regular file: it is kept and read again")),
        }
        self.add(path, &place)
    }

    /// Adds a file that is measured, or that a command takes what it tells from; `below` are the files of which it is made,
    /// by device and inode.
    ///
    /// # Errors
    /// An output goes there.
    pub fn measure(&mut self, path: &Path, below: &[(u64, u64)]) -> Result<(), FileError> {
        let mut made_of: Vec<Identity> = below.iter().map(|&(device, inode)| Identity::there(device, inode)).collect();
        // One that is yet to be created.
        if let Ok(place @ Place::File { before: None, .. }) = Place::of(path) {
            made_of.extend(place.identity());
        }
        for identity in made_of {
            if let Some((output, _)) = self.written.iter().find(|(_, written)| *written == identity) {
                return Err(measured(output, path));
            }
            if stdout().as_ref() == Some(&identity) {
                return Err(measured(Path::new("stdout"), path));
            }
            self.measured.push((path.to_owned(), identity));
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, place: &Place) -> Result<(), FileError> {
        let Some(identity) = place.identity().filter(|identity| *identity != Identity::Device) else { return Ok(()) };
        if let Some((target, _)) = self.measured.iter().find(|(_, measured)| *measured == identity) {
            return Err(measured(path, target));
        }
        if matches!(place, Place::File { .. }) && stdout().as_ref() == Some(&identity) {
            return Err(FileError::refused(path, "is where stdout goes already; each output needs a file of its own"));
        }
        if let Some((other, _)) = self.written.iter().find(|(_, written)| *written == identity) {
            let message = match other == path {
                true => "named twice; each output needs a file of its own".to_owned(),
                false => format!("the same file as {}; each output needs a file of its own", other.display()),
            };
            return Err(FileError::refused(path, message));
        }
        self.written.push((path.to_owned(), identity));
        Ok(())
    }
}

fn measured(output: &Path, target: &Path) -> FileError {
    let message = match output == target {
        true => "is what this command reads or measures; an output would destroy it".to_owned(),
        false => format!("leads to {}, which this command reads or measures", target.display()),
    };
    FileError::refused(output, message)
}

fn check_folder(path: &Path, folder: &Path) -> Result<(), FileError> {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| match error {
        rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => in_folder(path, folder, "no permission to write"),
        other => in_folder(path, folder, &crate::words(&other.into())),
    })
}

fn check_replaceable(path: &Path, folder: &Path, at: &Path, before: &Metadata) -> Result<(), FileError> {
    access(at, Access::WRITE_OK).map_err(|_| FileError::refused(path, "no permission to write"))?;
    let is_sticky = fs::metadata(folder).is_ok_and(|folder| folder.mode() & STICKY != 0 && !is_mine(&folder));
    if is_sticky && !is_mine(before) {
        let message = format!("belongs to another user, whose files in {} nobody else replaces", folder.display());
        return Err(FileError::refused(path, message));
    }
    let at = CString::new(at.as_os_str().as_bytes()).map_err(|error| FileError::refused(path, error.to_string()))?;
    let attributes = statx(CWD, at.as_c_str(), AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    if attributes.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)) {
        return Err(FileError::refused(path, "is mounted there by itself and cannot be replaced; name another file"));
    }
    Ok(())
}

/// Whether this user may do with it as its owner does.
fn is_mine(metadata: &Metadata) -> bool {
    let user = rustix::process::geteuid();
    user.is_root() || user.as_raw() == metadata.uid()
}

fn in_folder(path: &Path, folder: &Path, message: &str) -> FileError {
    FileError::refused(path, format!("no file can be made in {}: {message}", folder.display()))
}
