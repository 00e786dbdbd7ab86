//! [`Data`]: random access to the bytes of a stored trace from several threads.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};

/// A file read by position. Clones of a `File` share one file position, so threads would read each other's columns.
#[derive(Clone)]
pub(crate) struct Data {
    file: Arc<File>,
    length_bytes: u64,
}

impl Data {
    pub(crate) fn new(file: File) -> io::Result<Data> {
        let length_bytes = file.metadata()?.len();
        Ok(Data { file: Arc::new(file), length_bytes })
    }
}

impl Length for Data {
    fn len(&self) -> u64 {
        self.length_bytes
    }
}

impl ChunkReader for Data {
    type T = From;

    fn get_read(&self, start: u64) -> Result<From> {
        Ok(From { file: self.file.clone(), position: start })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.length_bytes) {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A reader of the bytes from an offset on.
pub(crate) struct From {
    file: Arc<File>,
    position: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}
