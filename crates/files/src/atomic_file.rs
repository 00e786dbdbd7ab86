//! [`AtomicFile`]: a file that appears under its final name only when it is complete.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{OFlags, XattrFlags, fchown, fgetxattr, fsetxattr};

use crate::FileError;
use crate::inputs::check_no_input;
use crate::place::{Place, duplicate};

/// Extended attribute that holds a file's POSIX access control list.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// Maximum size of an access control list, in bytes.
const ACCESS_LIST_BYTES: usize = 64 << 10;
/// Maximum length of the file name suffix that the draft keeps. Writers may choose the format by the suffix.
const SUFFIX_MAX: usize = 16;

/// A file being written. A regular file has a temporary name in the same folder until it is finished; dropping the
/// `AtomicFile` earlier removes the draft. Anything else at the path is written directly.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    file: File,
    draft: Option<Draft>,
    /// Destination to which the draft's content is copied because it cannot be replaced by a rename.
    through: Option<File>,
}

impl AtomicFile {
    /// Starts writing `path`; `-` is standard output. Opening a named pipe blocks until a process reads from it.
    ///
    /// # Errors
    /// If the path cannot be a file, this user may not write to it, or the current command reads the file.
    pub fn create(path: &Path) -> Result<AtomicFile, FileError> {
        AtomicFile::begin(path, false)
    }

    /// Like [`create`](AtomicFile::create), but writes to a temporary file first and copies it to a pipe or device when
    /// it is complete.
    ///
    /// # Errors
    /// Returns the same errors as [`AtomicFile::create`].
    pub fn create_whole(path: &Path) -> Result<AtomicFile, FileError> {
        AtomicFile::begin(path, true)
    }

    fn begin(path: &Path, is_whole: bool) -> Result<AtomicFile, FileError> {
        let failed = |error: io::Error| FileError::of(path, &error);
        let through = match Place::of(path)? {
            Place::File { folder, name, before } => {
                if let Some(before) = &before {
                    check_no_input(path, before)?;
                }
                let (draft, file) = Draft::create(&folder, name, before).map_err(failed)?;
                return Ok(AtomicFile { path: path.to_owned(), file, draft: Some(draft), through: None });
            }
            Place::Special(at) => through().open(at).map_err(failed)?,
            Place::Descriptor(number) => File::from(duplicate(number).map_err(failed)?),
        };
        if !is_whole {
            return Ok(AtomicFile { path: path.to_owned(), file: through, draft: None, through: None });
        }
        let folder = std::env::temp_dir();
        let name = path.file_name().unwrap_or_default().to_owned();
        let (draft, file) = Draft::create(&folder, name, None).map_err(|error| FileError::of(&folder, &error))?;
        Ok(AtomicFile { path: path.to_owned(), file, draft: Some(draft), through: Some(through) })
    }

    /// Returns the path of the draft; `None` if the file is written directly.
    pub fn draft(&self) -> Option<&Path> {
        self.draft.as_ref().map(|draft| draft.at.as_path())
    }

    /// Renames the draft to the final path, with the owner and permissions of the file that it replaces.
    ///
    /// # Errors
    /// Returns an error of the file system, or of the pipe if its reader failed.
    pub fn finish(self) -> Result<(), FileError> {
        let AtomicFile { path, file, draft, through } = self;
        drop(file);
        let finished = match (draft, through) {
            (Some(draft), None) => draft.rename(),
            (Some(draft), Some(mut through)) => {
                File::open(&draft.at).and_then(|mut whole| io::copy(&mut whole, &mut through)).map(drop)
            }
            (None, _) => Ok(()),
        };
        finished.map_err(|error| FileError::of(&path, &error))
    }

    /// Returns the draft of a regular file, so that another file can be made from it. Dropping the draft removes it.
    ///
    /// # Panics
    /// If the file is written directly.
    pub fn into_draft(self) -> Draft {
        self.draft.expect("a draft is taken only from a regular file")
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A regular file with a temporary name; removed when dropped.
#[derive(Debug)]
pub struct Draft {
    at: PathBuf,
    place: PathBuf,
    before: Option<Metadata>,
    is_renamed: bool,
}

impl Draft {
    /// Returns the path of the draft.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Creates an empty draft, readable only by users who could read the replaced file.
    pub(crate) fn create(folder: &Path, name: OsString, before: Option<Metadata>) -> io::Result<(Draft, File)> {
        let place = folder.join(&name);
        let suffix = place.extension().filter(|suffix| suffix.len() <= SUFFIX_MAX);
        let mode = before.as_ref().map_or(0o666, |before| before.mode() & 0o777 | 0o600);
        loop {
            let mut named = OsString::from(format!(".headstack-{}-{}.partial", std::process::id(), next_number()));
            if let Some(suffix) = suffix {
                named.push(".");
                named.push(suffix);
            }
            let at = folder.join(named);
            match OpenOptions::new().write(true).create_new(true).mode(mode).open(&at) {
                Ok(file) => return Ok((Draft { at, place, before, is_renamed: false }, file)),
                // Left behind by a killed process with this ID, or created in another PID namespace.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Renames the draft as [`AtomicFile::finish`] does. To publish several files together, call this once all are
    /// complete.
    ///
    /// # Errors
    /// Returns an error of the file system.
    pub fn finish(self) -> Result<(), FileError> {
        let place = self.place.clone();
        self.rename().map_err(|error| FileError::of(&place, &error))
    }

    fn rename(mut self) -> io::Result<()> {
        // The path may now name something else.
        if fs::symlink_metadata(&self.place).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(io::Error::other("was replaced while it was being written; the replacement is kept"));
        }
        if let Some(before) = &self.before {
            keep_permissions(&self.at, &self.place, before)?;
        }
        fs::rename(&self.at, &self.place)?;
        self.is_renamed = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_renamed {
            // Ignored: the original failure is reported.
            let _ = fs::remove_file(&self.at);
        }
    }
}

/// Gives the file `at` the owner, mode and access control list of the file that it will replace.
fn keep_permissions(at: &Path, place: &Path, before: &Metadata) -> io::Result<()> {
    let file = OpenOptions::new().read(true).open(at)?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
        let (owner, group) = (rustix::fs::Uid::from_raw(before.uid()), rustix::fs::Gid::from_raw(before.gid()));
        // Only root can change the owner. Otherwise the file belongs to the user who replaces it, as usual on Unix.
        let _ = fchown(&file, Some(owner), Some(group)).or_else(|_| fchown(&file, None, Some(group)));
    }
    let mut list = vec![0; ACCESS_LIST_BYTES];
    // If the path has just become a pipe, `NONBLOCK` keeps the open from blocking.
    let old = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(place);
    let length = old.ok().and_then(|old| fgetxattr(old, ACCESS_LIST, &mut list[..]).ok());
    if let Some(length) = length {
        fsetxattr(&file, ACCESS_LIST, &list[..length], XattrFlags::empty())?;
    }
    file.set_permissions(fs::Permissions::from_mode(before.mode() & 0o7777))
}

/// Returns options for opening a pipe or device without making it the controlling terminal.
fn through() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::NOCTTY.bits().cast_signed());
    options
}

/// Returns a number that is unique in this process.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
