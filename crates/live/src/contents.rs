//! [`Contents`]: the data of an exported system, in memory, in a sparse file that survives restarts, or discarded; or
//! the state that a crash left of a recording.
//!
//! Memory is an anonymous file, so that memory and files are accessed by the same system calls, have holes, and return
//! pages when a range is trimmed.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use headstack_crash::Overlay;
use headstack_files::is_among_devices;
use headstack_workload::Span;
use rustix::fs::{
    FallocateFlags, MemfdFlags, OFlags, SeekFrom, XattrFlags, fallocate, fgetxattr, fsetxattr, memfd_create, seek,
};

use crate::LiveError;

/// Extended attribute that marks a file as a server's own; its value is the size, so that a file with other contents is
/// not mistaken for one.
const MARK: &str = "user.headstack.contents";

/// Storage of the data. A clone refers to the same data.
#[derive(Clone, Debug)]
pub enum Contents {
    /// In memory, for the lifetime of the process, or in a file.
    Kept(Arc<File>),
    /// Discarded, except for some ranges: the rest reads as zeros.
    Discarded {
        /// Ranges that are kept in memory.
        kept: Vec<Span>,
        /// Their bytes, at their original offsets.
        memory: Arc<File>,
    },
    /// The state after a crash, with later writes.
    AfterCrash(Arc<RwLock<Overlay>>),
}

/// A run of bytes that were written, or of bytes that were not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Length in bytes.
    pub length_bytes: u64,
    /// Whether nothing was written there, so that it reads as zeros.
    pub is_hole: bool,
}

impl Contents {
    /// Creates `capacity_bytes` of zeros in memory, which is allocated as it is written.
    ///
    /// # Errors
    /// When the memory is not available.
    pub fn in_memory(capacity_bytes: u64) -> Result<Contents, LiveError> {
        Ok(Contents::Kept(memory(capacity_bytes)?))
    }

    /// Creates contents that discard everything but the ranges of `kept`.
    ///
    /// # Errors
    /// When the memory is not available.
    pub fn discarded(capacity_bytes: u64, kept: Vec<Span>) -> Result<Contents, LiveError> {
        Ok(Contents::Discarded { kept, memory: memory(capacity_bytes)? })
    }

    /// Opens the file at `path`: a new or empty one, which becomes sparse, or one of exactly this size that an earlier
    /// session left.
    ///
    /// # Errors
    /// When the file has another size, was not created by a server, is not a regular file, or is open in another
    /// server; when the file system is full.
    pub fn in_file(path: &Path, capacity_bytes: u64) -> Result<Contents, LiveError> {
        Contents::of_file(path, capacity_bytes, false)
    }

    /// Like [`in_file`](Self::in_file) for a file of any origin, which is marked as a server's own.
    ///
    /// # Errors
    /// As for [`in_file`](Self::in_file).
    pub fn adopted(path: &Path, capacity_bytes: u64) -> Result<Contents, LiveError> {
        Contents::of_file(path, capacity_bytes, true)
    }

    fn of_file(path: &Path, capacity_bytes: u64, adopts: bool) -> Result<Contents, LiveError> {
        let name = || path.display().to_string();
        let no_file = || LiveError::Invalid(format!("{}: is not a regular file; contents need one", name()));
        let existed = path.symlink_metadata().is_ok();
        // Links and dots are resolved; a dangling link does not create a file elsewhere.
        let place = resolved(path, existed).map_err(LiveError::io(name()))?;
        // A device that is not plugged in must not become a regular file.
        if place.parent().is_some_and(is_among_devices) || (existed && !place.is_file()) {
            return Err(no_file());
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(&place).map_err(LiveError::io(name()))?;
        if !file.metadata().map_err(LiveError::io(name()))?.is_file() {
            return Err(no_file());
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LiveError::Invalid(format!("{}: is in use by another server", name())));
            }
            Err(TryLockError::Error(error)) => return Err(LiveError::io(name())(error)),
        }
        let size = file.metadata().map_err(LiveError::io(name()))?.len();
        if existed && size != 0 && size != capacity_bytes {
            let message = format!("{}: has {size} bytes; {capacity_bytes}, the system's capacity, is allowed", name());
            return Err(LiveError::Invalid(message));
        }
        let mark = format!("{capacity_bytes}");
        if size != 0 && !adopts && !is_marked(&file, &mark) {
            return Err(LiveError::Invalid(format!(
                "{}: has the system's size but was not created by a server; use --adopt to serve and change it",
                name()
            )));
        }
        file.set_len(capacity_bytes).map_err(LiveError::io(name()))?;
        // If a file cannot be marked, it is adopted again the next time.
        let _ = fsetxattr(&file, MARK, mark.as_bytes(), XattrFlags::empty());
        Ok(Contents::Kept(Arc::new(file)))
    }

    /// Reads the data at `offset_bytes` into `into`.
    ///
    /// # Errors
    /// The file system's error.
    pub fn read(&self, offset_bytes: u64, into: &mut [u8]) -> std::io::Result<()> {
        match self {
            Contents::Kept(file) => file.read_exact_at(into, offset_bytes),
            Contents::Discarded { kept, memory } => {
                into.fill(0);
                each_kept(kept, offset_bytes, into.len() as u64, |at_bytes, range| {
                    memory.read_exact_at(&mut into[range], at_bytes)
                })
            }
            Contents::AfterCrash(overlay) => read_overlay(overlay).read(offset_bytes, into),
        }
    }

    /// Writes `data` at `offset_bytes`.
    ///
    /// # Errors
    /// The file system's error, usually that it is full.
    pub fn write(&self, offset_bytes: u64, data: &[u8]) -> std::io::Result<()> {
        match self {
            Contents::Kept(file) => file.write_all_at(data, offset_bytes),
            Contents::Discarded { kept, memory } => {
                each_kept(kept, offset_bytes, data.len() as u64, |at_bytes, range| {
                    memory.write_all_at(&data[range], at_bytes)
                })
            }
            Contents::AfterCrash(overlay) => changed(overlay).write(offset_bytes, data),
        }
    }

    /// Makes a range read as zeros, and frees its space.
    ///
    /// # Errors
    /// The file system's error.
    pub fn zero(&self, offset_bytes: u64, length_bytes: u64) -> std::io::Result<()> {
        if length_bytes == 0 {
            return Ok(());
        }
        let file = match self {
            Contents::Kept(file) | Contents::Discarded { memory: file, .. } => file,
            Contents::AfterCrash(overlay) => return changed(overlay).zero(offset_bytes, length_bytes),
        };
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(file, hole, offset_bytes, length_bytes) {
            // A file system without holes is filled with zeros.
            Err(rustix::io::Errno::OPNOTSUPP) => self.fill(offset_bytes, length_bytes),
            other => other.map_err(Into::into),
        }
    }

    /// Writes zeros that occupy space.
    ///
    /// # Errors
    /// The file system's error.
    pub fn fill(&self, offset_bytes: u64, length_bytes: u64) -> std::io::Result<()> {
        let zeros = vec![0; length_bytes.min(1 << 20) as usize];
        let mut done = 0;
        while done < length_bytes {
            let part = (length_bytes - done).min(zeros.len() as u64);
            self.write(offset_bytes + done, &zeros[..part as usize])?;
            done += part;
        }
        Ok(())
    }

    /// Returns consecutive extents of a range, written or not, from its start on, at most `extents_max`.
    ///
    /// # Errors
    /// The file system's error.
    pub fn extents(&self, offset_bytes: u64, length_bytes: u64, extents_max: usize) -> std::io::Result<Vec<Extent>> {
        let end_bytes = offset_bytes + length_bytes;
        let file = match self {
            Contents::Kept(file) | Contents::Discarded { memory: file, .. } => file,
            Contents::AfterCrash(overlay) => {
                let runs = read_overlay(overlay).runs((offset_bytes, end_bytes))?;
                let extent = |((from, to), is_hole)| Extent { length_bytes: to - from, is_hole };
                return Ok(runs.into_iter().take(extents_max).map(extent).collect());
            }
        };
        let (mut extents, mut at_bytes) = (Vec::new(), offset_bytes);
        while at_bytes < end_bytes && extents.len() < extents_max {
            let data_bytes = self.next_data(at_bytes, end_bytes)?;
            let is_hole = data_bytes > at_bytes;
            let next_bytes = if is_hole { data_bytes } else { seek(file, SeekFrom::Hole(at_bytes))?.min(end_bytes) };
            extents.push(Extent { length_bytes: next_bytes - at_bytes, is_hole });
            at_bytes = next_bytes;
        }
        Ok(extents)
    }

    /// Returns the first written byte from `at_bytes` on; `end_bytes` if there is none before it.
    ///
    /// # Errors
    /// The file system's error.
    pub fn next_data(&self, at_bytes: u64, end_bytes: u64) -> std::io::Result<u64> {
        let file = match self {
            Contents::Kept(file) | Contents::Discarded { memory: file, .. } => file,
            Contents::AfterCrash(overlay) => {
                let runs = read_overlay(overlay).runs((at_bytes, end_bytes))?;
                return Ok(runs.iter().find(|(_, is_hole)| !is_hole).map_or(end_bytes, |((from, _), _)| *from));
            }
        };
        match seek(file, SeekFrom::Data(at_bytes)) {
            Ok(data_bytes) => Ok(data_bytes.min(end_bytes)),
            Err(rustix::io::Errno::NXIO) => Ok(end_bytes),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether nothing was written in a range.
    pub fn is_hole(&self, offset_bytes: u64, length_bytes: u64) -> bool {
        // A search for the end of the data would continue to the end of the file; only the start is needed.
        let end_bytes = offset_bytes + length_bytes;
        self.next_data(offset_bytes, end_bytes).is_ok_and(|data_bytes| data_bytes == end_bytes)
    }

    /// Flushes a file to its disk.
    ///
    /// # Errors
    /// The file system's error.
    pub fn sync(&self) -> std::io::Result<()> {
        match self {
            Contents::Kept(file) => file.sync_data(),
            Contents::Discarded { .. } | Contents::AfterCrash(_) => Ok(()),
        }
    }
}

fn read_overlay(overlay: &RwLock<Overlay>) -> RwLockReadGuard<'_, Overlay> {
    overlay.read().expect("the lock is not poisoned")
}

fn changed(overlay: &RwLock<Overlay>) -> RwLockWriteGuard<'_, Overlay> {
    overlay.write().expect("the lock is not poisoned")
}

/// Whether a server created this file.
fn is_marked(file: &File, mark: &str) -> bool {
    let mut mark_bytes = [0; 32];
    fgetxattr(file, MARK, &mut mark_bytes).is_ok_and(|length| mark_bytes[..length] == *mark.as_bytes())
}

/// The path without links and dots; for a missing file, that of its folder with its name.
fn resolved(path: &Path, exists: bool) -> std::io::Result<PathBuf> {
    if exists {
        return path.canonicalize();
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidFilename)?;
    Ok(folder.canonicalize()?.join(name))
}

fn memory(capacity_bytes: u64) -> Result<Arc<File>, LiveError> {
    let file = memfd_create("headstack-contents", MemfdFlags::CLOEXEC);
    let file = file.map(File::from).map_err(|error| LiveError::io("memory for contents")(error.into()))?;
    file.set_len(capacity_bytes).map_err(LiveError::io("memory for contents"))?;
    Ok(Arc::new(file))
}

/// Calls `each` for every part of a range that is kept, with its place and the bytes of the range.
fn each_kept(
    kept: &[Span],
    offset_bytes: u64,
    length_bytes: u64,
    mut each: impl FnMut(u64, std::ops::Range<usize>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    for span in kept {
        let start_bytes = span.start_bytes.max(offset_bytes);
        let end_bytes = (span.start_bytes + span.length_bytes).min(offset_bytes + length_bytes);
        if start_bytes < end_bytes {
            let from = (start_bytes - offset_bytes) as usize;
            each(start_bytes, from..from + (end_bytes - start_bytes) as usize)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_file_is_created_in_dev_by_any_path() {
        let folder = std::env::temp_dir().join(format!("headstack-contents-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        symlink("/dev", folder.join("devices")).unwrap();
        symlink("/dev/headstack-none", folder.join("link")).unwrap();
        symlink("file", folder.join("good")).unwrap();
        let refused = |path: &Path| Contents::in_file(path, 4096).unwrap_err().to_string();
        let dots = folder.join("../../../../../../dev/headstack-none");
        for path in [dots, folder.join("devices/headstack-none"), "/dev/./headstack-none".into()] {
            assert!(refused(&path).contains("is not a regular file"), "{}", path.display());
        }
        // A dangling link does not create a file elsewhere, and a link to a file leads to it.
        refused(&folder.join("link"));
        refused(&folder.join("good"));
        assert!(!Path::new("/dev/headstack-none").exists() && !folder.join("file").exists());
        drop(Contents::in_file(&folder.join("file"), 4096).unwrap());
        drop(Contents::in_file(&folder.join("good"), 4096).unwrap());
        assert_eq!(folder.join("file").metadata().unwrap().len(), 4096);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
