//! Unpacking of files.

use std::io::{self, BufRead, BufReader, Read};

use super::BUFFER_BYTES;

/// Returns up to `bytes` first bytes of a reader, however few it returns at a time, and a reader that yields them
/// again.
fn peeked(mut reader: Box<dyn BufRead + Send>, bytes: usize) -> io::Result<(Vec<u8>, Box<dyn BufRead + Send>)> {
    let mut head = Vec::with_capacity(bytes);
    reader.by_ref().take(bytes as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Box::new(io::Cursor::new(head).chain(reader))))
}

pub(super) fn decompressed(reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
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

/// Longest magic number of those above.
const COMPRESSION_MAGIC_BYTES: usize = 5;
const TAR_BLOCK_BYTES: usize = 512;
/// Offset of the magic in a tar header.
const TAR_MAGIC: std::ops::Range<usize> = 257..262;
/// Offset of a header's checksum, which counts as blanks in it.
const TAR_SUM: std::ops::Range<usize> = 148..156;

pub(super) fn untarred(reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    let (head, reader) = peeked(reader, TAR_BLOCK_BYTES)?;
    if head.get(TAR_MAGIC) != Some(b"ustar") {
        return Ok(reader);
    }
    // Files of a tar follow each other in the stream; their names are not needed.
    Ok(Box::new(BufReader::with_capacity(
        BUFFER_BYTES,
        TarFiles { archive: reader, left: 0, padding: 0, has_ended: false },
    )))
}

/// The regular files of a tar, one after another. `tar::Entries` borrows its archive and cannot be stored; its headers
/// can.
struct TarFiles {
    archive: Box<dyn BufRead + Send>,
    /// Unread bytes of the current file.
    left: u64,
    /// Padding up to the next header.
    padding: u64,
    has_ended: bool,
}

impl TarFiles {
    /// Moves to the next non-empty file; returns false at the end.
    fn next_file(&mut self) -> io::Result<bool> {
        while !self.has_ended {
            let skipped = io::copy(&mut self.archive.by_ref().take(self.padding), &mut io::sink())?;
            if skipped < self.padding {
                return Err(archive_is_cut_off());
            }
            self.padding = 0;
            let mut block = Vec::with_capacity(TAR_BLOCK_BYTES);
            self.archive.by_ref().take(TAR_BLOCK_BYTES as u64).read_to_end(&mut block)?;
            // Two empty blocks end an archive; some programs omit them.
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

/// Whether a header is that of a regular file, and its length without and with the padding of its last block.
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
