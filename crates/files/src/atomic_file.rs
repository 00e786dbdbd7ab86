//! [`AtomicFile`]: a file that gets its name when it is complete.

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

/// Extended attribute of permissions beyond those of the mode.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// Largest access list of file systems.
const ACCESS_LIST_BYTES: usize = 64 << 10;
/// Longest suffix of a name that the draft keeps: writers may choose their format by it.
const SUFFIX_MAX: usize = 16;

/// A file being written: a regular one has a temporary name in the same folder until it is finished, and is removed if
/// this is dropped before; anything else at its path is written directly.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    file: File,
    draft: Option<Draft>,
    /// Destination of a draft that cannot be renamed.
    through: Option<File>,
}

impl AtomicFile {
    /// Starts writing `path`; `-` is standard output. A named pipe waits here for its reader.
    ///
    /// # Errors
    /// When the path cannot be a file, this user may not write it, or the current command reads it.
    pub fn create(path: &Path) -> Result<AtomicFile, FileError> {
        AtomicFile::begin(path, false)
    }

    /// Like [`create`](AtomicFile::create), but a pipe or device is only written when the file is complete: until then
    /// it is a temporary file.
    ///
    /// # Errors
    /// As for [`AtomicFile::create`].
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

    /// Path of the file until it is finished; `None` if it is written directly.
    pub fn draft(&self) -> Option<&Path> {
        self.draft.as_ref().map(|draft| draft.at.as_path())
    }

    /// Gives the file its name, and the owner and permissions of the replaced file.
    ///
    /// # Errors
    /// The file system's error, or that of the reader of a pipe.
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

    /// Keeps the draft of a regular file, from which another file is to be made: removed when dropped.
    ///
    /// # Panics
    /// When the file is written directly.
    pub fn into_draft(self) -> Draft {
        self.draft.expect("only a file in progress is a part of another")
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
    /// Path of the draft.
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
                // Left by a killed process with this ID, or created in another PID namespace.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives it its name, as [`AtomicFile::finish`] does: call it for many files when all are complete.
    ///
    /// # Errors
    /// The file system's error.
    pub fn finish(self) -> Result<(), FileError> {
        let place = self.place.clone();
        self.rename().map_err(|error| FileError::of(&place, &error))
    }

    fn rename(mut self) -> io::Result<()> {
        // The path may lead to something else by now.
        if fs::symlink_metadata(&self.place).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(io::Error::other("was replaced while it was written; it stays as it is"));
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
            // Nothing can be done about it here, and the original failure is reported.
            let _ = fs::remove_file(&self.at);
        }
    }
}

/// Gives `at` the owner, the mode and the access list of the file to be replaced.
fn keep_permissions(at: &Path, place: &Path, before: &Metadata) -> io::Result<()> {
    let file = OpenOptions::new().read(true).open(at)?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
        let (owner, group) = (rustix::fs::Uid::from_raw(before.uid()), rustix::fs::Gid::from_raw(before.gid()));
        // Only root can change the owner; otherwise the file belongs to the user who replaces it, as with other
        // programs.
        let _ = fchown(&file, Some(owner), Some(group)).or_else(|_| fchown(&file, None, Some(group)));
    }
    let mut list = vec![0; ACCESS_LIST_BYTES];
    // If it has just become a pipe, opening it does not block.
    let old = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(place);
    let length = old.ok().and_then(|old| fgetxattr(old, ACCESS_LIST, &mut list[..]).ok());
    if let Some(length) = length {
        fsetxattr(&file, ACCESS_LIST, &list[..length], XattrFlags::empty())?;
    }
    file.set_permissions(fs::Permissions::from_mode(before.mode() & 0o7777))
}

/// Options for opening a pipe or a device: it never becomes the controlling terminal.
fn through() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::NOCTTY.bits().cast_signed());
    options
}

/// Returns a different number at each call in this process.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
