//! [`Input`]: the read side of a connection, which parses several messages per system call.

use std::io;

use crate::budget::Share;
use crate::stream::{ClientTimeout, Stream};

/// Size of the buffer, in which adjacent requests are read together.
const BUFFER_BYTES: usize = 64 << 10;
/// Size of the buffer of a connection that has received little yet.
const FIRST_BYTES: usize = 8 << 10;
/// First buffer for a long payload; it doubles as data arrive.
const FIRST_PART_BYTES: usize = 16 << 10;

/// Buffered reading of exact lengths.
#[derive(Debug)]
pub struct Input {
    stream: Stream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// A payload that was not completely in the buffer.
    long: Vec<u8>,
    /// Memory of the buffer beyond its first size.
    share: Option<Share>,
}

impl Input {
    /// Creates a reader of `stream`.
    pub fn new(stream: Stream) -> Input {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Input { stream, buffer, start: 0, end: 0, long: Vec::new(), share: None }
    }

    /// Creates a reader of `stream` that starts with `received`, which has already been read. The buffer grows with
    /// `share` if much data arrives.
    pub fn after(stream: Stream, received: &[u8], share: Share) -> Input {
        let mut buffer = vec![0; FIRST_BYTES.max(received.len())].into_boxed_slice();
        buffer[..received.len()].copy_from_slice(received);
        Input { stream, buffer, start: 0, end: received.len(), long: Vec::new(), share: Some(share) }
    }

    /// Whether all data read from the stream have been consumed.
    pub fn is_drained(&self) -> bool {
        self.start == self.end
    }

    /// Whether the sender has sent nothing more: neither the buffer nor the socket has data.
    pub fn is_idle(&self) -> bool {
        self.is_drained() && self.stream.is_drained()
    }

    /// Whether the next `length` bytes are in the buffer, so that there is no wait.
    pub fn has(&self, length: usize) -> bool {
        self.end - self.start >= length
    }

    /// Returns the next `length` bytes, without a copy if they are in the buffer.
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

    /// Returns a payload of `length` bytes. If it has not arrived, `room` is called before more is received; it returns
    /// once there is memory for so many bytes.
    ///
    /// # Errors
    /// As for [`exact`](Self::exact); those of `room`; a time-out if others wait for the memory.
    pub fn payload(
        &mut self,
        length: usize,
        patience: &ClientTimeout,
        room: &mut dyn FnMut(usize) -> io::Result<()>,
    ) -> io::Result<&[u8]> {
        if self.has(length) {
            room(length)?;
            return self.bytes(length);
        }
        let mut filled = 0;
        while filled < length {
            if self.is_drained() {
                self.stream.await_input(patience)?;
            }
            let until = length.min(filled + filled.max(FIRST_PART_BYTES));
            room(until)?;
            self.long.reserve_exact(until - filled);
            self.long.resize(until, 0);
            while filled < until {
                filled += self.part(filled, patience)?;
            }
        }
        Ok(&self.long)
    }

    /// Receives more of a long payload, of which `filled` bytes have arrived; returns how many were added.
    fn part(&mut self, filled: usize, patience: &ClientTimeout) -> io::Result<usize> {
        let into = &mut self.long[filled..];
        let taken = into.len().min(self.end - self.start);
        if taken > 0 {
            into[..taken].copy_from_slice(&self.buffer[self.start..self.start + taken]);
            self.start += taken;
            return Ok(taken);
        }
        self.stream.await_input(patience)?;
        match self.stream.read(into)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            got => Ok(got),
        }
    }

    /// Frees the memory of a used payload.
    pub fn forget_payload(&mut self) {
        self.long = Vec::new();
    }

    /// Fills `into`.
    ///
    /// # Errors
    /// The stream's error; [`io::ErrorKind::UnexpectedEof`] if it ends early.
    pub fn exact(&mut self, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            if self.is_drained() {
                // A payload is received directly into place.
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

    /// Waits for more data.
    fn fill(&mut self) -> io::Result<()> {
        if self.end == self.buffer.len() && self.end < BUFFER_BYTES && self.end > 0 {
            let more = (BUFFER_BYTES - FIRST_BYTES) as u64;
            if self.share.as_mut().is_some_and(|share| share.grow_now(more)) {
                self.buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
            }
        }
        (self.start, self.end) = (0, self.stream.read(&mut self.buffer)?);
        if self.end == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Returns an array of bytes.
    ///
    /// # Errors
    /// As [`exact`](Self::exact).
    pub fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Skips `length` bytes.
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
