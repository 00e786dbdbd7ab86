//! What an exported system holds: bytes in memory, in a sparse file that survives restarts, or nowhere; or what a crash has left
//! of a recording.
//!
//! Memory is an anonymous file, so that both it and a file are read and written by the same system calls, know their holes, and give
//! pages back when a range is trimmed.

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

/// What says of a file that it is a server's own: its size, so that a file that became another one is not taken for it.
const MARK: &str = "user.headstack.contents";

/// Where the bytes are. A clone has the same ones.
#[derive(Clone, Debug)]
pub enum Contents {
    /// In memory, gone with the process, or in a file.
    Kept(Arc<File>),
    /// Nowhere, but for some ranges: the rest reads as zeros.
    Discarded {
        /// What is kept all the same, in memory.
        kept: Vec<Span>,
        /// Its bytes, at their own places.
        memory: Arc<File>,
    },
    /// What a crash has left, and what was written since.
    AfterCrash(Arc<RwLock<Overlay>>),
}

/// A run of bytes that were written, or never were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its length.
    pub length_bytes: u64,
    /// Nothing was written there: it reads as zeros.
    pub is_hole: bool,
}

impl Contents {
    /// `capacity_bytes` of zeros in memory, which takes what is written of them.
    ///
    /// # Errors
    /// The machine has no such memory.
    pub fn in_memory(capacity_bytes: u64) -> Result<Contents, LiveError> {
        Ok(Contents::Kept(memory(capacity_bytes)?))
    }

    /// Nothing is kept but the ranges of `kept`.
    ///
    /// # Errors
    /// The machine has no such memory.
    pub fn discarded(capacity_bytes: u64, kept: Vec<Span>) -> Result<Contents, LiveError> {
        Ok(Contents::Discarded { kept, memory: memory(capacity_bytes)? })
    }

    /// The file at `path`: a new or an empty one, sparse, or one of exactly this size that an earlier session left.
    ///
    /// # Errors
    /// Another size, somebody else's file, something that is not a regular file, a file that another server has open, a full
    /// file system.
    pub fn in_file(path: &Path, capacity_bytes: u64) -> Result<Contents, LiveError> {
        Contents::of_file(path, capacity_bytes, false)
    }

    /// As [`in_file`](Self::in_file), of whoever's file it is: it is a server's own from now on.
    ///
    /// # Errors
    /// As there.
    pub fn adopted(path: &Path, capacity_bytes: u64) -> Result<Contents, LiveError> {
        Contents::of_file(path, capacity_bytes, true)
    }

    fn of_file(path: &Path, capacity_bytes: u64, adopts: bool) -> Result<Contents, LiveError> {
        let name = || path.display().to_string();
        let no_file =
            || LiveError::Asked(format!("{}: contents are kept in a regular file, which this is not", name()));
        let existed = path.symlink_metadata().is_ok();
        // By whatever links and dots it is reached, and no further: a link to nothing makes no file elsewhere.
        let place = resolved(path, existed).map_err(LiveError::io(name()))?;
        // A device that is not plugged in must not become a file of its name.
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
                return Err(LiveError::Asked(format!("{}: another server holds these contents", name())));
            }
            Err(TryLockError::Error(error)) => return Err(LiveError::io(name())(error)),
        }
        let size = file.metadata().map_err(LiveError::io(name()))?.len();
        if existed && size != 0 && size != capacity_bytes {
            let message = format!("{}: has {size} bytes, not the system's {capacity_bytes}: not touched", name());
            return Err(LiveError::Asked(message));
        }
        let mark = format!("{capacity_bytes}");
        if size != 0 && !adopts && !is_marked(&file, &mark) {
            return Err(LiveError::Asked(format!(
                "{}: has the system's size, but no server has left it: give --adopt to have it served, and changed",
                name()
            )));
        }
        file.set_len(capacity_bytes).map_err(LiveError::io(name()))?;
        // Where a file cannot be marked, it is adopted again the next time.
        let _ = fsetxattr(&file, MARK, mark.as_bytes(), XattrFlags::empty());
        Ok(Contents::Kept(Arc::new(file)))
    }

    /// Fills `into` with what is at `offset_bytes`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn read(&self, offset_bytes: u64, into: &mut [u8]) -> std::io::Result<()> {
        match self {
            Contents::Kept(file) => file.read_exact_at(into, offset_bytes),
            Contents::Discarded { kept, memory } => {
                into.fill(0);
                each_kept(kept, offset_bytes, into.len() as u64, |at_bytes, range| {
                    memory.read_exact_at(&mut into[range], at_bytes)
                })
            }
            Contents::AfterCrash(overlay) => held(overlay).read(offset_bytes, into),
        }
    }

    /// Stores `data` at `offset_bytes`.
    ///
    /// # Errors
    /// What the file system says, of which a full one is the usual.
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

    /// Has a range read as zeros, and gives back what it took.
    ///
    /// # Errors
    /// What the file system says.
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
            // A file system without holes is written.
            Err(rustix::io::Errno::OPNOTSUPP) => self.fill(offset_bytes, length_bytes),
            other => other.map_err(Into::into),
        }
    }

    /// Writes zeros that take their place.
    ///
    /// # Errors
    /// What the file system says.
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

    /// What of a range was written: extents that follow each other, at most `extents_max` of them, from its start on.
    ///
    /// # Errors
    /// What the file system says.
    pub fn extents(&self, offset_bytes: u64, length_bytes: u64, extents_max: usize) -> std::io::Result<Vec<Extent>> {
        let end_bytes = offset_bytes + length_bytes;
        let file = match self {
            Contents::Kept(file) | Contents::Discarded { memory: file, .. } => file,
            Contents::AfterCrash(overlay) => {
                let runs = held(overlay).runs((offset_bytes, end_bytes))?;
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

    /// First byte from `at_bytes` on that was written; `end_bytes` where none was before it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn next_data(&self, at_bytes: u64, end_bytes: u64) -> std::io::Result<u64> {
        let file = match self {
            Contents::Kept(file) | Contents::Discarded { memory: file, .. } => file,
            Contents::AfterCrash(overlay) => {
                let runs = held(overlay).runs((at_bytes, end_bytes))?;
                return Ok(runs.iter().find(|(_, is_hole)| !is_hole).map_or(end_bytes, |((from, _), _)| *from));
            }
        };
        match seek(file, SeekFrom::Data(at_bytes)) {
            Ok(data_bytes) => Ok(data_bytes.min(end_bytes)),
            Err(rustix::io::Errno::NXIO) => Ok(end_bytes),
            Err(error) => Err(error.into()),
        }
    }

    /// Nothing was written in a range.
    pub fn is_hole(&self, offset_bytes: u64, length_bytes: u64) -> bool {
        // The end of the data would be looked for to the end of the file: only their start is wanted.
        let end_bytes = offset_bytes + length_bytes;
        self.next_data(offset_bytes, end_bytes).is_ok_and(|data_bytes| data_bytes == end_bytes)
    }

    /// Has a file's bytes on its own disk.
    ///
    /// # Errors
    /// What the file system says.
    pub fn sync(&self) -> std::io::Result<()> {
        match self {
            Contents::Kept(file) => file.sync_data(),
            Contents::Discarded { .. } | Contents::AfterCrash(_) => Ok(()),
        }
    }
}

fn held(overlay: &RwLock<Overlay>) -> RwLockReadGuard<'_, Overlay> {
    overlay.read().expect("nobody panics with it")
}

fn changed(overlay: &RwLock<Overlay>) -> RwLockWriteGuard<'_, Overlay> {
    overlay.write().expect("nobody panics with it")
}

/// Whether a server has left this file.
fn is_marked(file: &File, mark: &str) -> bool {
    let mut found = [0; 32];
    fgetxattr(file, MARK, &mut found).is_ok_and(|length| found[..length] == *mark.as_bytes())
}

/// The path without links and dots; of what does not exist, the folder's and its name.
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

/// Calls `each` for every part of a range that is kept: its place, and which bytes of the range it is.
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
    fn no_file_is_made_among_the_devices_by_whatever_path() {
        let folder = std::env::temp_dir().join(format!("headstack-contents-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        symlink("/dev", folder.join("devices")).unwrap();
        symlink("/dev/headstack-none", folder.join("link")).unwrap();
        symlink("file", folder.join("good")).unwrap();
        let refused = |path: &Path| Contents::in_file(path, 4096).unwrap_err().to_string();
        let dots = folder.join("../../../../../../dev/headstack-none");
        for path in [dots, folder.join("devices/headstack-none"), "/dev/./headstack-none".into()] {
            assert!(refused(&path).contains("contents are kept in a regular file"), "{}", path.display());
        }
        // A link to nothing makes no file elsewhere, and one to a file leads to it.
        refused(&folder.join("link"));
        refused(&folder.join("good"));
        assert!(!Path::new("/dev/headstack-none").exists() && !folder.join("file").exists());
        drop(Contents::in_file(&folder.join("file"), 4096).unwrap());
        drop(Contents::in_file(&folder.join("good"), 4096).unwrap());
        assert_eq!(folder.join("file").metadata().unwrap().len(), 4096);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
