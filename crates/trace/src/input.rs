//! [`Input`]: a file from its first byte on, plain or compressed, one or several in a tar.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::encoding::utf8;
use crate::error::TraceError;
use crate::packed::{BUFFER_BYTES, unpacked};

/// Number of bytes used for detection.
const HEAD_BYTES: usize = 256 << 10;

/// A file that is being read, decompressed.
pub struct Input {
    /// Name as given by the user.
    pub name: String,
    /// Name of the device, if the file itself has none: the file name without its folder, unless files of several
    /// folders have the same.
    pub label: String,
    head: Vec<u8>,
    /// How much of the head was returned again.
    taken: usize,
    is_whole: bool,
    rest: Box<dyn BufRead + Send>,
}

/// The first bytes of a file, by which formats are detected.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether these are all bytes of the file.
    pub is_whole: bool,
}

impl<'a> Head<'a> {
    /// Only its first lines, as if the file ended after them.
    pub(crate) fn first(self, lines: usize) -> Head<'a> {
        let ends = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let end = ends.take(lines).last().unwrap_or(self.bytes.len());
        Head { bytes: &self.bytes[..end], is_whole: true }
    }

    /// The complete lines, without their ends; the last line of the file counts without one.
    pub fn lines(self) -> impl Iterator<Item = &'a [u8]> {
        let end = if self.is_whole {
            self.bytes.len()
        } else {
            self.bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1)
        };
        let text = &self.bytes[..end];
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }
}

impl Input {
    /// Opens a file and reads its head. Compression is detected by content: gzip, bzip2, xz, zstd; a tar inside is read
    /// file after file.
    ///
    /// # Errors
    /// When the file cannot be read, or is empty.
    pub fn open(path: &Path) -> Result<Input, TraceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| TraceError::of_file(&name, io_message(&error)))?;
        Input::from_reader(name, Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
    }

    /// Like [`open`](Self::open) for bytes in memory.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Input, TraceError> {
        Input::from_reader(name.to_owned(), Box::new(io::Cursor::new(bytes)))
    }

    fn from_reader(name: String, reader: Box<dyn BufRead + Send>) -> Result<Input, TraceError> {
        let rest = unpacked(reader).and_then(utf8);
        let mut rest = rest.map_err(|error| TraceError::of_file(&name, io_message(&error)))?;
        let mut head = Vec::with_capacity(HEAD_BYTES);
        let read = rest.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head);
        read.map_err(|error| TraceError::of_file(&name, io_message(&error)))?;
        if head.is_empty() {
            return Err(TraceError::of_file(&name, "the file is empty"));
        }
        let is_whole = head.len() < HEAD_BYTES;
        let label = Path::new(&name).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Input { name, label, head, taken: 0, is_whole, rest })
    }

    /// The bytes used for detection; reading returns them too.
    pub fn head(&self) -> Head<'_> {
        Head { bytes: &self.head, is_whole: self.is_whole }
    }

    /// An error of reading it.
    pub fn error(&self, error: &io::Error) -> TraceError {
        TraceError::of_file(&self.name, io_message(error))
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken < self.head.len() {
            let taken = (&self.head[self.taken..]).read(buffer)?;
            self.taken += taken;
            return Ok(taken);
        }
        self.rest.read(buffer)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken < self.head.len() { Ok(&self.head[self.taken..]) } else { self.rest.fill_buf() }
    }

    fn consume(&mut self, amount: usize) {
        if self.taken < self.head.len() { self.taken += amount } else { self.rest.consume(amount) }
    }
}

fn io_message(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "is a folder, not a file".to_owned(),
        io::ErrorKind::UnexpectedEof => "the compressed file is cut off".to_owned(),
        _ => error.to_string(),
    }
}
