//! The read side of a connection: messages out of a stream, several to a system call.

use std::io;

use crate::budget::Share;
use crate::stream::{Patience, Stream};

/// Requests that lie together are read together.
const BUFFER_BYTES: usize = 64 << 10;
/// The buffer of a connection of which little has come yet.
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
    /// A payload that did not lie in the buffer as a whole.
    long: Vec<u8>,
    /// What the buffer takes beyond the first bytes.
    share: Option<Share>,
}

impl Input {
    /// Reads from `stream`.
    pub fn new(stream: Stream) -> Input {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Input { stream, buffer, start: 0, end: 0, long: Vec::new(), share: None }
    }

    /// Reads from `stream`, of which `heard` has been read already. The buffer grows with `share` where much comes.
    pub fn after(stream: Stream, heard: &[u8], share: Share) -> Input {
        let mut buffer = vec![0; FIRST_BYTES.max(heard.len())].into_boxed_slice();
        buffer[..heard.len()].copy_from_slice(heard);
        Input { stream, buffer, start: 0, end: heard.len(), long: Vec::new(), share: Some(share) }
    }

    /// Whether nothing is left that was read already.
    pub fn is_drained(&self) -> bool {
        self.start == self.end
    }

    /// Whether whoever sends has sent no more: neither here nor on the way here is anything left.
    pub fn is_idle(&self) -> bool {
        self.is_drained() && self.stream.is_drained()
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

    /// A payload of `length` bytes. Where it is not here yet, `room` is asked before more of it is taken than has come: it
    /// returns once there is memory for so many bytes of it.
    ///
    /// # Errors
    /// As [`exact`](Self::exact); `room`'s; a client that others should not wait for.
    pub fn payload(
        &mut self,
        length: usize,
        patience: &Patience,
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

    /// More of a long payload, of which so many bytes are here; returns how many that was.
    fn part(&mut self, filled: usize, patience: &Patience) -> io::Result<usize> {
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

    /// A payload has been used: its memory is free.
    pub fn forget_payload(&mut self) {
        self.long = Vec::new();
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
        if self.end == self.buffer.len() && self.end < BUFFER_BYTES && self.end > 0 {
            let more = (BUFFER_BYTES - FIRST_BYTES) as u64;
            if self.share.as_mut().is_some_and(|share| share.grow_now(more)) {
                self.buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
            }
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
