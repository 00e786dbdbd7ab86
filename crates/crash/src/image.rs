//! [`Image`]: a file with the contents of a device after a crash.
//!
//! A single file is changed from state to state, and only differences are written. A second file holds the expected
//! contents, so that the writes of a check can be undone; the modification time reveals whether there were any.

use std::fs::{File, FileTimes, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::CrashError;
use crate::base::{Base, data_of};
use crate::layers::{Layers, merged};
use crate::recording::{Recording, Stored};
use crate::states::extents::{Extents, Range, Version};
use crate::states::{CrashState, Rules};

/// Number of bytes copied and compared at a time.
const PART_BYTES: u64 = 256 << 10;
/// Modification time set after our own writes: one second after the epoch. Any write by a check changes it, however
/// soon the check runs.
const WRITTEN_AT: Duration = Duration::from_secs(1);
/// Folder on a file system in memory.
const MEMORY: &str = "/dev/shm";

/// The image of a device after a power loss.
#[derive(Debug)]
pub struct Image {
    layers: Layers,
    path: PathBuf,
    /// File that checks read and may write.
    shown: File,
    /// The file with the expected contents.
    kept: File,
    /// Versions of the ranges that the files currently contain.
    held: Extents,
}

impl Image {
    /// Creates an image of the initial contents in a folder that no other program uses.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn create(folder: &Path, recording: Arc<Recording>, base: &Base, rules: &Rules) -> Result<Image, CrashError> {
        let (path, kept_path) = (folder.join("image"), folder.join("kept"));
        let new = |path: &Path| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(0o600).open(path).map_err(CrashError::io(path))
        };
        let (shown, kept) = (new(&path)?, new(&kept_path)?);
        // Unlink the file, so that no other program can find it.
        std::fs::remove_file(&kept_path).map_err(CrashError::io(&kept_path))?;
        let layers = Layers::new(recording, base, rules)?;
        let image = Image { layers, path, shown, kept, held: Extents::default() };
        let capacity_bytes = image.layers.capacity_bytes();
        for file in [&image.shown, &image.kept] {
            file.set_len(capacity_bytes).map_err(CrashError::io(&image.path))?;
        }
        for (start, end) in image.layers.base.data()? {
            image.write((start, end.min(capacity_bytes)), None)?;
        }
        image.date()?;
        Ok(image)
    }

    /// Returns the path of the image.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the recording whose states the image shows.
    pub(crate) fn recording(&self) -> Arc<Recording> {
        Arc::clone(&self.layers.recording)
    }

    /// Changes to another state.
    ///
    /// # Errors
    /// Returns an error if the recording has no such moment, or the file system's error.
    pub fn take(&mut self, state: &CrashState) -> Result<(), CrashError> {
        for range in self.layers.take(state)? {
            self.renew(range)?;
        }
        self.date()
    }

    /// Undoes a check's changes; returns whether there were any.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn restore(&mut self) -> Result<bool, CrashError> {
        let failed = CrashError::io(&self.path);
        let capacity_bytes = self.layers.capacity_bytes();
        let metadata = self.shown.metadata().map_err(&failed)?;
        let is_dated = (metadata.mtime(), metadata.mtime_nsec()) == (WRITTEN_AT.as_secs() as i64, 0);
        if is_dated && metadata.len() == capacity_bytes {
            return Ok(false);
        }
        self.put_back()?;
        Ok(true)
    }

    /// Compares the files completely, and restores the expected contents.
    fn put_back(&self) -> Result<(), CrashError> {
        let failed = CrashError::io(&self.path);
        let capacity_bytes = self.layers.capacity_bytes();
        self.shown.set_len(capacity_bytes).map_err(&failed)?;
        let mut ranges = data_of(&self.shown, (0, capacity_bytes)).map_err(&failed)?;
        ranges.extend(data_of(&self.kept, (0, capacity_bytes)).map_err(&failed)?);
        let (mut shown, mut kept) = (vec![0; PART_BYTES as usize], vec![0; PART_BYTES as usize]);
        for (start, end) in merged(ranges) {
            for (at, length) in parts(start, end) {
                let (shown, kept) = (&mut shown[..length], &mut kept[..length]);
                self.shown.read_exact_at(shown, at).map_err(&failed)?;
                self.kept.read_exact_at(kept, at).map_err(&failed)?;
                if shown != kept {
                    self.shown.write_all_at(kept, at).map_err(&failed)?;
                }
            }
        }
        self.date()
    }

    /// Returns the extents with data in the current state.
    pub(crate) fn data(&self) -> Result<Vec<Range>, CrashError> {
        data_of(&self.kept, (0, self.layers.capacity_bytes())).map_err(CrashError::io(&self.path))
    }

    /// Reads the data of the current state, without a check's changes.
    pub(crate) fn read(&self, at_bytes: u64, into: &mut [u8]) -> Result<(), CrashError> {
        self.kept.read_exact_at(into, at_bytes).map_err(CrashError::io(&self.path))
    }

    /// Updates the parts of a range whose contents differ.
    fn renew(&mut self, range: Range) -> Result<(), CrashError> {
        for (part, version) in self.layers.versions(range) {
            for (part, held) in self.held.parts(part) {
                if held != version {
                    self.write(part, version)?;
                    match version {
                        Some(change) => self.held.put(part, change),
                        None => self.held.remove(part),
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes a version of a range to both files.
    fn write(&self, (start, end): Range, version: Version) -> Result<(), CrashError> {
        if self.layers.is_zeros(start, version) {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            for file in [&self.shown, &self.kept] {
                fallocate(file, hole, start, end - start).map_err(|error| CrashError::io(&self.path)(error.into()))?;
            }
            return Ok(());
        }
        let mut data = vec![0; (end - start).min(PART_BYTES) as usize];
        for (at, length) in parts(start, end) {
            let data = &mut data[..length];
            self.layers.read(at, version, data)?;
            for file in [&self.shown, &self.kept] {
                file.write_all_at(data, at).map_err(CrashError::io(&self.path))?;
            }
        }
        Ok(())
    }

    fn date(&self) -> Result<(), CrashError> {
        let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + WRITTEN_AT);
        self.shown.set_times(times).map_err(CrashError::io(&self.path))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // A failure cannot be handled here.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns the folder for `images` images: in memory if there is room, otherwise for temporary files.
pub fn folder_for(recording: &Recording, base: &Base, images: u64) -> Result<PathBuf, CrashError> {
    let mut written = Extents::default();
    for (number, change) in recording.changes.iter().enumerate() {
        if matches!(change.stored, Stored::Data { .. }) && change.length_bytes > 0 {
            written.put((change.offset_bytes, change.offset_bytes + change.length_bytes), number as u32);
        }
    }
    let sum = |ranges: &mut dyn Iterator<Item = Range>| -> u64 { ranges.map(|(start, end)| end - start).sum() };
    let of_one = sum(&mut written.iter().map(|(range, _)| range)) + sum(&mut base.data()?.into_iter());
    let room = statvfs(MEMORY).map_or(0, |memory| memory.f_bavail * memory.f_frsize);
    // Each image needs two files, and a check may make a copy; at most half of the room is used.
    let is_in_memory = 3 * images * of_one < room / 2;
    Ok(if is_in_memory { MEMORY.into() } else { std::env::temp_dir() })
}

/// Splits a range into parts that are read at a time.
pub(crate) fn parts(start: u64, end: u64) -> impl Iterator<Item = (u64, usize)> {
    (start..end).step_by(PART_BYTES as usize).map(move |at| (at, (end - at).min(PART_BYTES) as usize))
}
