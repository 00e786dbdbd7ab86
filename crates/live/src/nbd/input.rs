//! The read side of a connection: messages out of a stream, several to a system call.

use std::io;

use super::stream::Stream;

/// Requests that lie together are read together.
const BUFFER_BYTES: usize = 64 << 10;
/// One long write must not hold its memory for as long as the connection lives.
const KEPT_BYTES: usize = 1 << 20;

/// Buffered reading of exact lengths.
#[derive(Debug)]
pub struct Input {
    stream: Stream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// A payload that did not lie in the buffer as a whole.
    long: Vec<u8>,
}

impl Input {
    /// Reads from `stream`.
    pub fn new(stream: Stream) -> Input {
        Input::after(stream, &[])
    }

    /// Reads from `stream`, of which `heard` has been read already.
    pub fn after(stream: Stream, heard: &[u8]) -> Input {
        let mut buffer = vec![0; BUFFER_BYTES.max(heard.len())].into_boxed_slice();
        buffer[..heard.len()].copy_from_slice(heard);
        Input { stream, buffer, start: 0, end: heard.len(), long: Vec::new() }
    }

    /// Whether nothing is left that was read already.
    pub fn is_drained(&self) -> bool {
        self.start == self.end
    }

    /// Whether the next `length` bytes are here already, so that nobody has to be waited for.
    pub fn has(&self, length: usize) -> bool {
        self.end - self.start >= length
    }

    /// The next `length` bytes, without a copy where they are here already.
    ///
    /// # Errors
    /// As [`exact`](Self::exact).
    pub fn bytes(&mut self, length: usize) -> io::Result<&[u8]> {
        if self.has(length) {
            let start = self.start;
            self.start += length;
            return Ok(&self.buffer[start..self.start]);
        }
        let mut long = std::mem::take(&mut self.long);
        long.resize(length, 0);
        self.exact(&mut long)?;
        self.long = long;
        Ok(&self.long)
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
                self.fill()?;
            }
            let taken = into.len().min(self.end - self.start);
            into[..taken].copy_from_slice(&self.buffer[self.start..self.start + taken]);
            self.start += taken;
            into = &mut into[taken..];
        }
        Ok(())
    }

    /// Waits for more.
    fn fill(&mut self) -> io::Result<()> {
        if self.long.capacity() > KEPT_BYTES {
            self.long = Vec::new();
        }
        (self.start, self.end) = (0, self.stream.read(&mut self.buffer)?);
        if self.end == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
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
        while length > 0 {
            if self.is_drained() {
                self.fill()?;
            }
            let part = length.min(self.end - self.start);
            self.start += part;
            length -= part;
        }
        Ok(())
    }
}
