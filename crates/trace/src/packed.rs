//! Unpacks files that are compressed or in a tar.

use std::io::{self, BufRead};

/// Bytes read from a file at a time.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// Returns the contents of a file: decompressed, and the files of a tar one after another.
#[cfg(feature = "files")]
pub(crate) fn unpacked(reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    files::decompressed(reader).and_then(files::untarred)
}

/// Without the feature, data are returned as they are.
#[cfg(not(feature = "files"))]
pub(crate) fn unpacked(reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    Ok(reader)
}

#[cfg(feature = "files")]
mod files;
