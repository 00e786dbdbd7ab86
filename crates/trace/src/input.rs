//! Files as they come: plain or compressed, one or several in a tar, from their first byte on.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::error::TraceError;

/// Bytes that detection looks at.
const HEAD_BYTES: usize = 256 << 10;
/// Bytes that are read from a file at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// A file that is being read, decompressed.
pub struct Input {
    /// Its name as the user gave it.
    pub name: String,
    /// What its requests went to, where the file itself does not say: its name without its folder, unless files of several
    /// folders have the same.
    pub label: String,
    head: Vec<u8>,
    /// How much of the head was handed out again.
    taken: usize,
    is_whole: bool,
    rest: Box<dyn BufRead + Send>,
}

/// The first bytes of a file, by which formats are told apart.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// There are no others in the file.
    pub is_whole: bool,
}

impl<'a> Head<'a> {
    /// Its first lines alone, as if the file ended behind them.
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
    /// Opens a file and looks at its head. Compression is told by content: gzip, bzip2, xz, zstd; a tar inside is read
    /// file after file.
    ///
    /// # Errors
    /// A file that cannot be read, or is empty.
    pub fn open(path: &Path) -> Result<Input, TraceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| TraceError::of_file(&name, io_message(&error)))?;
        Input::from_reader(name, Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
    }

    /// The same, of bytes in memory.
    ///
    /// # Errors
    /// As of a file.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Input, TraceError> {
        Input::from_reader(name.to_owned(), Box::new(io::Cursor::new(bytes)))
    }

    fn from_reader(name: String, reader: Box<dyn BufRead + Send>) -> Result<Input, TraceError> {
        let reader = decompressed(reader).and_then(untarred);
        let mut rest = reader.map_err(|error| TraceError::of_file(&name, io_message(&error)))?;
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

    /// What detection looks at; reading takes nothing from it.
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
        io::ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
        io::ErrorKind::IsADirectory => "is a folder, not a file".to_owned(),
        io::ErrorKind::UnexpectedEof => "the compressed file is cut off".to_owned(),
        _ => error.to_string(),
    }
}

/// The first bytes of a reader, up to `bytes` however few it gives at a time, and a reader that gives them again.
fn peeked(mut reader: Box<dyn BufRead + Send>, bytes: usize) -> io::Result<(Vec<u8>, Box<dyn BufRead + Send>)> {
    let mut head = Vec::with_capacity(bytes);
    reader.by_ref().take(bytes as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Box::new(io::Cursor::new(head).chain(reader))))
}

fn decompressed(reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    let (head, reader) = peeked(reader, COMPRESSION_MAGIC_BYTES)?;
    let buffered = |reader: Box<dyn Read + Send>| -> Box<dyn BufRead + Send> {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, reader))
    };
    Ok(match head[..] {
        [0x1f, 0x8b, ..] => buffered(Box::new(flate2::bufread::MultiGzDecoder::new(reader))),
        [b'B', b'Z', b'h', ..] => buffered(Box::new(bzip2::bufread::MultiBzDecoder::new(reader))),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => {
            buffered(Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(reader)))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => buffered(Box::new(zstd::stream::read::Decoder::with_buffer(reader)?)),
        _ => reader,
    })
}

/// The longest magic of those above.
const COMPRESSION_MAGIC_BYTES: usize = 5;
const TAR_BLOCK_BYTES: usize = 512;
/// Where a tar has its magic.
const TAR_MAGIC: std::ops::Range<usize> = 257..262;
/// Where a header has its sum, which counts as blanks in it.
const TAR_SUM: std::ops::Range<usize> = 148..156;

fn untarred(reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    let (head, reader) = peeked(reader, TAR_BLOCK_BYTES)?;
    if head.get(TAR_MAGIC) != Some(b"ustar") {
        return Ok(reader);
    }
    // Files of a tar follow each other in the stream; their names are of no use to a reader.
    Ok(Box::new(BufReader::with_capacity(
        BUFFER_BYTES,
        TarFiles { archive: reader, left: 0, padding: 0, has_ended: false },
    )))
}

/// The regular files of a tar, one after the other. `tar::Entries` borrows its archive, so that it cannot be kept; its
/// headers can.
struct TarFiles {
    archive: Box<dyn BufRead + Send>,
    /// Bytes of the current file that were not read.
    left: u64,
    /// Bytes behind it up to the next header.
    padding: u64,
    has_ended: bool,
}

impl TarFiles {
    /// Goes to the next file that has bytes; false at the end.
    fn next_file(&mut self) -> io::Result<bool> {
        while !self.has_ended {
            let skipped = io::copy(&mut self.archive.by_ref().take(self.padding), &mut io::sink())?;
            if skipped < self.padding {
                return Err(archive_is_cut_off());
            }
            self.padding = 0;
            let mut block = Vec::with_capacity(TAR_BLOCK_BYTES);
            self.archive.by_ref().take(TAR_BLOCK_BYTES as u64).read_to_end(&mut block)?;
            // Two empty blocks end an archive; not every program writes them.
            if block.is_empty() || block.len() == TAR_BLOCK_BYTES && block.iter().all(|&byte| byte == 0) {
                self.has_ended = true;
                continue;
            }
            if block.len() < TAR_BLOCK_BYTES {
                return Err(archive_is_cut_off());
            }
            let (is_file, bytes, padded) = tar_header(&block)
                .ok_or_else(|| io::Error::other("the archive is broken: a header's sum or size is wrong"))?;
            if is_file && bytes > 0 {
                (self.left, self.padding) = (bytes, padded - bytes);
                return Ok(true);
            }
            self.padding = padded;
        }
        Ok(false)
    }
}

fn archive_is_cut_off() -> io::Error {
    io::Error::other("the archive is cut off")
}

/// Whether a header is that of a regular file, and its length, without and with what fills its last block.
fn tar_header(block: &[u8]) -> Option<(bool, u64, u64)> {
    let header = tar::Header::from_byte_slice(block);
    let sum = |(at, &byte): (usize, &u8)| u32::from(if TAR_SUM.contains(&at) { b' ' } else { byte });
    if header.cksum().ok()? != block.iter().enumerate().map(sum).sum::<u32>() {
        return None;
    }
    let bytes = header.entry_size().ok()?;
    Some((header.entry_type().is_file(), bytes, bytes.checked_next_multiple_of(TAR_BLOCK_BYTES as u64)?))
}

impl Read for TarFiles {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.next_file()? {
            return Ok(0);
        }
        let read = self.archive.by_ref().take(self.left).read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            return Err(archive_is_cut_off());
        }
        self.left -= read as u64;
        Ok(read)
    }
}
