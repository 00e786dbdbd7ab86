//! [`Outputs`]: the input and output files of one command, checked before the command starts its work.

use std::ffi::CString;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Access, AtFlags, CWD, StatxAttributes, StatxFlags, access, statx};

use crate::FileError;
use crate::atomic_file::Draft;
use crate::inputs::{Files, Input, OPEN, Output, Written, below, measured};
use crate::place::{Identity, Place, stdout};

/// Sticky bit of a mode: only a file's owner may replace files in such a folder.
const STICKY: u32 = 0o1000;

/// The files of a command: outputs, which have distinct, writable destinations, and inputs, which no output may
/// replace. While it is open, [`note_input`](crate::note_input) adds files that the command reads later, and
/// [`crate::AtomicFile`] refuses to replace an input.
#[derive(Clone, Debug)]
pub struct Outputs(Arc<Mutex<Files>>);

impl Default for Outputs {
    fn default() -> Outputs {
        Outputs::of(Files::default())
    }
}

impl Outputs {
    /// Returns the files of a single reader, such as a measurement: no output may replace a file that it measures.
    /// Files that the program reads for other purposes are not added, so the program may replace them.
    pub fn for_reader() -> Outputs {
        Outputs::of(Files { is_of_reader: true, ..Files::default() })
    }

    fn of(files: Files) -> Outputs {
        let files = Arc::new(Mutex::new(files));
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&files));
        Outputs(files)
    }

    /// Adds an output.
    ///
    /// # Errors
    /// If no file can be written there, another output has the path, or the command reads or measures the file.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let place = Place::of(path)?;
        if let Place::File { folder, name, before } = &place {
            check_folder(path, folder)?;
            if let Some(before) = before {
                check_replaceable(path, folder, &folder.join(name), before)?;
            }
            // Only creating a file shows whether the file system is read-only, full, or denies access.
            let tried = Draft::create(folder, name.clone(), None);
            tried.map_err(|error| in_folder(path, folder, &crate::words(&error)))?;
        }
        self.lock().add(path, &place, Written::Whole)
    }

    /// Adds a file that stays open and is written in place, such as a log. It must be a regular file or not exist yet.
    ///
    /// # Errors
    /// Returns the same errors as [`Outputs::write`], and an error for a pipe or a device.
    pub fn keep(&self, path: &Path) -> Result<(), FileError> {
        let place = Place::of(path)?;
        match &place {
            Place::File { folder, before: None, .. } => check_folder(path, folder)?,
            Place::File { before: Some(_), .. } => {
                access(path, Access::WRITE_OK).map_err(|_| FileError::refused(path, "no permission to write"))?;
            }
            _ => {
                return Err(FileError::refused(path, "is not a regular file; name one that can be read again"));
            }
        }
        self.lock().add(path, &place, Written::Kept)
    }

    /// Adds a folder that receives files. A folder that does not exist yet has no conflicts.
    ///
    /// # Errors
    /// If the command reads or measures the folder.
    pub fn fill(&self, folder: &Path) -> Result<(), FileError> {
        let Ok(metadata) = fs::metadata(folder) else { return Ok(()) };
        let identity = Identity::there(metadata.dev(), metadata.ino());
        let mut files = self.lock();
        if let Some(input) = files.input(&identity) {
            return Err(measured(folder, &input.path));
        }
        files.written.push(Output { path: folder.to_owned(), identity, written: Written::Folder, replaces: None });
        Ok(())
    }

    /// Adds a file, folder or device that the command reads or measures. `below` holds its backing files as (device,
    /// inode).
    ///
    /// # Errors
    /// If the file is an output.
    pub fn measure(&self, path: &Path, below: &[(u64, u64)]) -> Result<(), FileError> {
        let below = below.iter().map(|&(device, inode)| (Identity::there(device, inode), false));
        let mut made_of: Vec<(Identity, bool)> = below.collect();
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() || metadata.is_dir() => {
                // A file without backing files is identified by itself.
                made_of = vec![(Identity::there(metadata.dev(), metadata.ino()), true)];
            }
            // A device consists of its backing files; a pipe is never replaced.
            Ok(_) => {}
            // The file does not exist yet.
            Err(_) => {
                if let Ok(place @ Place::File { before: None, .. }) = Place::of(path) {
                    made_of.extend(place.identity().map(|identity| (identity, true)));
                }
            }
        }
        let mut files = self.lock();
        for (identity, is_direct) in made_of {
            if let Some(output) = files.written.iter().find(|output| output.identity == identity) {
                return Err(measured(&output.path, path));
            }
            if stdout().as_ref() == Some(&identity) {
                return Err(measured(Path::new("stdout"), path));
            }
            files.read.push(Input { path: path.to_owned(), identity, is_direct });
        }
        Ok(())
    }

    /// Adds a folder and its subfolders, whose files are all read.
    ///
    /// # Errors
    /// If an output would replace one of these files.
    pub fn search(&self, folder: &Path) -> Result<(), FileError> {
        let Ok(canonical) = fs::canonicalize(folder) else { return Ok(()) };
        let mut files = self.lock();
        let is_below = |output: &&Output| output.replaces.as_ref().is_some_and(|at| at.starts_with(&canonical));
        if let Some(output) = files.written.iter().find(is_below) {
            return Err(below(&output.path, folder));
        }
        files.searched.push((folder.to_owned(), canonical));
        Ok(())
    }

    /// Ends the command; its inputs may be replaced afterwards.
    pub fn close(&self) {
        self.lock().is_closed = true;
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let message = format!("belongs to another user; only that user may replace it in {}", folder.display());
        return Err(FileError::refused(path, message));
    }
    let at = CString::new(at.as_os_str().as_bytes()).map_err(|error| FileError::refused(path, error.to_string()))?;
    let attributes = statx(CWD, at.as_c_str(), AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    if attributes.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)) {
        return Err(FileError::refused(path, "is a mount point and cannot be replaced; name another file"));
    }
    Ok(())
}

/// Whether this user may act as the file's owner.
fn is_mine(metadata: &Metadata) -> bool {
    let user = rustix::process::geteuid();
    user.is_root() || user.as_raw() == metadata.uid()
}

fn in_folder(path: &Path, folder: &Path, message: &str) -> FileError {
    FileError::refused(path, format!("cannot create a file in {}: {message}", folder.display()))
}
