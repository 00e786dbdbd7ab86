//! The read side of a connection: messages out of a stream, several to a system call.

use std::io;

use super::stream::Stream;

/// Requests that lie together are read together.
const BUFFER_BYTES: usize = 64 << 10;

/// Buffered reading of exact lengths.
#[derive(Debug)]
pub struct Input {
    stream: Stream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Input {
    /// Reads from `stream`.
    pub fn new(stream: Stream) -> Input {
        Input { stream, buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    /// Whether nothing is left that was read already.
    pub fn is_drained(&self) -> bool {
        self.start == self.end
    }

    /// What comes next, if at least `length` bytes of it are here already.
    pub fn has(&self, length: usize) -> bool {
        self.end - self.start >= length
    }

    /// Fills `into`.
    ///
    /// # Errors
    /// The stream's; [`io::ErrorKind::UnexpectedEof`] where it ends before.
    pub fn exact(&mut self, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            if self.is_drained() {
                // A payload goes where it belongs without a detour.
                if into.len() >= BUFFER_BYTES {
                    let got = self.stream.read(into)?;
                    if got == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    into = &mut into[got..];
                    continue;
                }
                (self.start, self.end) = (0, self.stream.read(&mut self.buffer)?);
                if self.end == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            let taken = into.len().min(self.end - self.start);
            into[..taken].copy_from_slice(&self.buffer[self.start..self.start + taken]);
            self.start += taken;
            into = &mut into[taken..];
        }
        Ok(())
    }

    /// An array of bytes.
    ///
    /// # Errors
    /// As [`exact`](Self::exact).
    pub fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads past `length` bytes.
    ///
    /// # Errors
    /// As [`exact`](Self::exact).
    pub fn skip(&mut self, mut length: usize) -> io::Result<()> {
        let mut waste = [0; 4096];
        while length > 0 {
            let part = length.min(waste.len());
            self.exact(&mut waste[..part])?;
            length -= part;
        }
        Ok(())
    }
}
