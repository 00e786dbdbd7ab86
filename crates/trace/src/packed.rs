//! Unpacks compressed files and tar archives.

use std::io::{self, BufRead};

/// Number of bytes read from a file at a time.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// Returns the decompressed contents of a file; for a tar archive, its files one after another.
#[cfg(feature = "files")]
pub(crate) fn unpacked(reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    files::decompressed(reader).and_then(files::untarred)
}

/// Returns the data unchanged, because this build has no decompression.
#[cfg(not(feature = "files"))]
pub(crate) fn unpacked(reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    Ok(reader)
}

#[cfg(feature = "files")]
mod files;
