//! [`Base`]: the contents of a device before it was recorded: an image, or zeros.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::CrashError;
use crate::states::extents::Range;

/// Contents at the start; after the end of an image, they are zeros.
#[derive(Debug, Default)]
pub struct Base(Option<Image>);

#[derive(Debug)]
struct Image {
    path: PathBuf,
    file: File,
    size_bytes: u64,
}

impl Base {
    /// Creates initial contents of only zeros.
    pub fn zeros() -> Base {
        Base(None)
    }

    /// Opens a file or a block device, which must not change while it is used.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn open(path: &Path) -> Result<Base, CrashError> {
        let failed = CrashError::io(path);
        let mut file = File::open(path).map_err(&failed)?;
        let size_bytes = file.seek(SeekFrom::End(0)).map_err(&failed)?;
        Ok(Base(Some(Image { path: path.to_owned(), file, size_bytes })))
    }

    /// Returns the size of the image in bytes; 0 for zeros.
    pub fn size_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |image| image.size_bytes)
    }

    /// Opens another reader of these contents.
    pub(crate) fn again(&self) -> Result<Base, CrashError> {
        self.0.as_ref().map_or(Ok(Base(None)), |image| Base::open(&image.path))
    }

    pub(crate) fn read(&self, at_bytes: u64, into: &mut [u8]) -> Result<(), CrashError> {
        let Some(image) = &self.0 else {
            into.fill(0);
            return Ok(());
        };
        let there = image.size_bytes.saturating_sub(at_bytes).min(into.len() as u64) as usize;
        into[there..].fill(0);
        image.file.read_exact_at(&mut into[..there], at_bytes).map_err(CrashError::io(&image.path))
    }

    /// Returns the extents with data, excluding holes.
    pub(crate) fn data(&self) -> Result<Vec<Range>, CrashError> {
        self.data_in((0, self.size_bytes()))
    }

    /// Returns the extents with data within a range.
    pub(crate) fn data_in(&self, (start, end): Range) -> Result<Vec<Range>, CrashError> {
        let Some(image) = &self.0 else { return Ok(Vec::new()) };
        data_of(&image.file, (start, end.min(image.size_bytes))).map_err(CrashError::io(&image.path))
    }
}

/// Returns the extents with data within a range of a file; the whole range if the file system does not report holes.
pub(crate) fn data_of(file: &File, (mut at, end): Range) -> std::io::Result<Vec<Range>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;
    let mut extents = Vec::new();
    while at < end {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) if start < end => start,
            Ok(_) | Err(Errno::NXIO) => break,
            Err(Errno::INVAL) => return Ok(vec![(at, end)]),
            Err(error) => return Err(error.into()),
        };
        at = seek(file, SeekFrom::Hole(start))?.min(end);
        extents.push((start, at));
    }
    Ok(extents)
}
