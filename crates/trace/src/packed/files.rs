//! Unpacks compressed files and tar archives.

use std::io::{self, BufRead, BufReader, Read};

use super::BUFFER_BYTES;

/// Returns the first bytes of a reader, up to `bytes`, and a reader that returns them again.
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

/// Length of the longest magic number above.
const COMPRESSION_MAGIC_BYTES: usize = 5;
const TAR_BLOCK_BYTES: usize = 512;
/// Position of the magic number in a tar header.
const TAR_MAGIC: std::ops::Range<usize> = 257..262;
/// Position of the checksum in a tar header; for computing the checksum, these bytes count as spaces.
const TAR_SUM: std::ops::Range<usize> = 148..156;

pub(super) fn untarred(reader: Box<dyn BufRead + Send>) -> io::Result<Box<dyn BufRead + Send>> {
    let (head, reader) = peeked(reader, TAR_BLOCK_BYTES)?;
    if head.get(TAR_MAGIC) != Some(b"ustar") {
        return Ok(reader);
    }
    // The contents of the files follow each other in the stream; file names are not needed.
    Ok(Box::new(BufReader::with_capacity(
        BUFFER_BYTES,
        TarFiles { archive: reader, left: 0, padding: 0, has_ended: false },
    )))
}

/// Reader of the regular files of a tar archive, one after another. `tar::Entries` borrows its archive and cannot be
/// stored, but its headers can.
struct TarFiles {
    archive: Box<dyn BufRead + Send>,
    /// Number of unread bytes of the current file.
    left: u64,
    /// Number of padding bytes before the next header.
    padding: u64,
    has_ended: bool,
}

impl TarFiles {
    /// Advances to the next non-empty file; returns false at the end.
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
                .ok_or_else(|| io::Error::other("the archive is damaged: a header's checksum or size is wrong"))?;
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
    io::Error::other("the archive is truncated")
}

/// Returns whether a header is that of a regular file, the file's length, and its length padded to whole blocks; `None`
/// if the header is invalid.
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
