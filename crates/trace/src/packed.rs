//! Files that are compressed, and those in a tar.

use std::io::{self, BufRead};

/// Bytes that are read from a file at a time.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// What a file holds: decompressed, and the files of a tar one after the other.
#[cfg(feature = "files")]
pub(crate) fn unpacked(reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    files::decompressed(reader).and_then(files::untarred)
}

/// Without files there is nothing packed.
#[cfg(not(feature = "files"))]
pub(crate) fn unpacked(reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    Ok(reader)
}

#[cfg(feature = "files")]
mod files;
