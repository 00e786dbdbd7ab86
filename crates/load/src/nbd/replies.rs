//! [`Replies`]: parses replies as their bytes arrive, in pieces of any size.
//!
//! Short replies are received together, as many as the socket has, into a staging buffer, and their data are copied if
//! the contents matter. The data of a long reply are received directly into the request's memory.

use headstack_nbd::{self as wire, Framing, chunk};
use headstack_workload::{Kind, Request};

use crate::engine::Completion;

/// Size of the staging buffer, in bytes.
const STAGING_BYTES: usize = 128 << 10;
/// Minimum length of data that are received directly into the request's memory, in bytes: above it, a separate call
/// costs less than the copy.
const DIRECT_BYTES: usize = 16 << 10;
/// Length of a simple reply's header, in bytes.
const SIMPLE_BYTES: usize = 16;
/// Maximum length of an error description, in bytes.
const ERROR_BYTES_MAX: usize = 8 << 10;

/// A request in flight.
pub struct Pending {
    /// Cookie of the expected reply; 0 if no reply is expected.
    pub cookie: u64,
    /// The request, with its offset within the export.
    pub request: Request,
    /// Memory for the request's data. Reads whose contents do not matter may be longer than `room`; they are then
    /// received repeatedly into the start of the memory.
    pub memory: *mut u8,
    /// Size of the memory in bytes.
    pub room: usize,
    received: u32,
    error: i32,
}

// SAFETY: the engine's buffers or a borrow of the caller own the memory, and the owner of this value has exclusive
// access to it.
unsafe impl Send for Pending {}

impl Pending {
    /// No request in flight.
    pub const NONE: Pending = Pending {
        cookie: 0,
        request: Request {
            kind: Kind::Flush,
            offset_bytes: 0,
            length_bytes: 0,
            force_unit_access: false,
            ordered: false,
        },
        memory: std::ptr::null_mut(),
        room: 0,
        received: 0,
        error: 0,
    };

    /// Creates a request that expects a reply. Until the reply has arrived, no one else may use the `room` bytes at
    /// `memory`, unless their contents do not matter.
    pub fn new(cookie: u64, request: Request, memory: *mut u8, room: usize) -> Pending {
        Pending { cookie, request, memory, room, received: 0, error: 0 }
    }

    /// Completes the request.
    fn end(&mut self, slot: u32) -> Completion {
        self.cookie = 0;
        let result = match (self.error, self.request.kind) {
            (0, Kind::Read) => self.received as i32,
            (0, Kind::Write) => self.request.length_bytes as i32,
            (0, Kind::Trim | Kind::Flush) => 0,
            (error, _) => -error,
        };
        Completion { slot, result }
    }
}

/// Memory for the next bytes from the server.
pub struct ReceiveBuffer {
    /// Start of the memory.
    pub memory: *mut u8,
    /// Size of the memory in bytes.
    pub room: usize,
    /// Whether to wait until the memory is full, since fewer bytes are of no use.
    pub is_whole: bool,
}

/// The server violated the protocol, so no further bytes from it can be interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbled;

/// Data of a read that are still to arrive.
#[derive(Clone, Copy)]
struct Data {
    slot: u32,
    /// Offset of the data from the start of the request, in bytes.
    at: u32,
    left: u32,
    /// Whether the reply ends with these data.
    is_last: bool,
}

/// Parser state of one connection.
pub struct Replies {
    framing: Framing,
    staging: Box<[u8]>,
    start: usize,
    end: usize,
    data: Option<Data>,
    /// Whether the contents of reads matter.
    keeps: bool,
    /// Number of bytes to receive in addition to the expected ones. It is 0 while data are long, so that data are not
    /// received together with the header before them.
    ahead: usize,
}

/// A parsed header.
struct Chunk {
    cookie: u64,
    kind: u16,
    is_last: bool,
    header_bytes: usize,
    length: u64,
}

impl Chunk {
    /// Parses a header; `None` if it is incomplete.
    fn parse(here: &[u8], framing: Framing) -> Option<Chunk> {
        let header_bytes = framing.chunk_bytes();
        let here = here.get(..header_bytes)?;
        Some(Chunk {
            cookie: long(here, 8),
            kind: half(here, 6),
            is_last: half(here, 4) & chunk::FLAG_DONE != 0,
            header_bytes,
            length: if framing == Framing::Extended { long(here, 24) } else { word(here, 16).into() },
        })
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl Replies {
    /// Creates the initial state. With `keeps`, the data of reads are stored in their memory.
    pub fn new(framing: Framing, keeps: bool) -> Replies {
        let staging = vec![0; STAGING_BYTES].into_boxed_slice();
        Replies { framing, staging, start: 0, end: 0, data: None, keeps, ahead: STAGING_BYTES }
    }

    /// Returns whether all replies received so far are complete.
    pub fn is_at_rest(&self) -> bool {
        self.start == self.end && self.data.is_none()
    }

    /// Returns the memory for the next bytes from the server.
    pub fn landing(&mut self, pending: &mut [Pending]) -> ReceiveBuffer {
        if let Some(data) = self.data
            && (data.left as usize) >= DIRECT_BYTES
        {
            let one = &pending[data.slot as usize];
            let (at, left) = (data.at as usize, data.left as usize);
            if at + left <= one.room {
                // SAFETY: within the memory, as was just checked.
                return ReceiveBuffer { memory: unsafe { one.memory.add(at) }, room: left, is_whole: true };
            }
            return ReceiveBuffer { memory: one.memory, room: left.min(one.room), is_whole: true };
        }
        self.staging.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let awaited = match self.data {
            Some(data) => data.left as usize,
            None => self.header_bytes().saturating_sub(self.end).max(SIMPLE_BYTES),
        };
        let room = (self.staging.len() - self.end).min(awaited + self.ahead);
        ReceiveBuffer { memory: self.staging[self.end..].as_mut_ptr(), room, is_whole: false }
    }

    /// Returns the length of the header before the data, in bytes; for a chunk, this includes the offset of the data.
    fn header_bytes(&self) -> usize {
        match self.framing {
            Framing::Simple => SIMPLE_BYTES,
            Framing::Structured | Framing::Extended => self.framing.chunk_bytes() + 8,
        }
    }

    /// Processes `bytes` bytes that were received at the address that [`landing`](Self::landing) returned, and adds
    /// completed requests to `done`.
    ///
    /// # Errors
    /// Returns an error if the server violates the protocol.
    pub fn took(&mut self, bytes: usize, pending: &mut [Pending], done: &mut Vec<Completion>) -> Result<(), Garbled> {
        match &mut self.data {
            Some(data) if data.left as usize >= DIRECT_BYTES => {
                data.at += bytes as u32;
                data.left -= bytes as u32;
                pending[data.slot as usize].received += bytes as u32;
            }
            _ => self.end += bytes,
        }
        loop {
            if let Some(data) = self.data {
                if data.left > 0 && !self.copy_received(data, pending) {
                    return Ok(());
                }
                let Some(Data { slot, is_last, .. }) = self.data.take() else { return Ok(()) };
                if is_last {
                    done.push(pending[slot as usize].end(slot));
                }
            } else if !self.take_header(pending, done)? {
                return Ok(());
            }
        }
    }

    /// Copies received data into place. Returns whether all of the data have arrived.
    fn copy_received(&mut self, mut data: Data, pending: &mut [Pending]) -> bool {
        let here = (self.end - self.start).min(data.left as usize);
        let one = &mut pending[data.slot as usize];
        if self.keeps && here > 0 {
            let from = self.staging[self.start..self.start + here].as_ptr();
            debug_assert!(data.at as usize + here <= one.room);
            // SAFETY: requests whose contents matter have room for all data, and `at` and `left` are within the
            // request; the two addresses are in different allocations.
            unsafe { std::ptr::copy_nonoverlapping(from, one.memory.add(data.at as usize), here) };
        }
        self.start += here;
        data.at += here as u32;
        data.left -= here as u32;
        one.received += here as u32;
        let is_whole = data.left == 0;
        self.data = Some(data);
        is_whole
    }

    /// Processes the header of a reply and everything else except data. Returns whether the header was complete.
    fn take_header(&mut self, pending: &mut [Pending], done: &mut Vec<Completion>) -> Result<bool, Garbled> {
        let here = &self.staging[self.start..self.end];
        if here.len() < 4 {
            return Ok(false);
        }
        match (word(here, 0), self.framing) {
            (wire::SIMPLE_REPLY_MAGIC, Framing::Simple | Framing::Structured) => self.take_simple(pending, done),
            (wire::STRUCTURED_REPLY_MAGIC, Framing::Structured) | (wire::EXTENDED_REPLY_MAGIC, Framing::Extended) => {
                match Chunk::parse(here, self.framing) {
                    Some(chunk) => self.take_chunk(&chunk, pending, done),
                    None => Ok(false),
                }
            }
            _ => Err(Garbled),
        }
    }

    fn take_simple(&mut self, pending: &mut [Pending], done: &mut Vec<Completion>) -> Result<bool, Garbled> {
        let here = &self.staging[self.start..self.end];
        if here.len() < SIMPLE_BYTES {
            return Ok(false);
        }
        let (error, slot) = (word(here, 4), find(long(here, 8), pending)?);
        self.start += SIMPLE_BYTES;
        let one = &mut pending[slot as usize];
        one.error = if error == 0 { 0 } else { number(error) };
        if error != 0 || one.request.kind != Kind::Read {
            done.push(one.end(slot));
            return Ok(true);
        }
        let left = one.request.length_bytes;
        self.await_data(Data { slot, at: 0, left, is_last: true });
        Ok(true)
    }

    /// Expects data. If these data are long, later ones are likely to be long too.
    fn await_data(&mut self, data: Data) {
        self.ahead = if data.left as usize >= 2 * DIRECT_BYTES { 0 } else { STAGING_BYTES };
        self.data = Some(data);
    }

    fn take_chunk(
        &mut self,
        chunk: &Chunk,
        pending: &mut [Pending],
        done: &mut Vec<Completion>,
    ) -> Result<bool, Garbled> {
        let slot = find(chunk.cookie, pending)?;
        let one = &mut pending[slot as usize];
        let here = &self.staging[self.start + chunk.header_bytes..self.end];
        // The data begin after their offset.
        let awaited = if chunk.kind == chunk::OFFSET_DATA { 8 } else { chunk.length as usize };
        if chunk.kind != chunk::OFFSET_DATA && chunk.length > ERROR_BYTES_MAX as u64 {
            return Err(Garbled);
        }
        if here.len() < awaited {
            return Ok(false);
        }
        match chunk.kind {
            chunk::NONE if chunk.length == 0 => {}
            chunk::OFFSET_DATA => {
                let length = chunk.length.checked_sub(8).ok_or(Garbled)?;
                let (at, left) = within(&one.request, long(here, 0), length)?;
                self.start += chunk.header_bytes + 8;
                self.await_data(Data { slot, at, left, is_last: chunk.is_last });
                return Ok(true);
            }
            chunk::OFFSET_HOLE if chunk.length == 12 => {
                let (at, length) = within(&one.request, long(here, 0), word(here, 8).into())?;
                if self.keeps {
                    debug_assert!(at as usize + length as usize <= one.room);
                    // SAFETY: as in `copy_received`.
                    unsafe { one.memory.add(at as usize).write_bytes(0, length as usize) };
                }
                one.received += length;
            }
            kind if kind & (1 << 15) != 0 => {
                let code = if here.len() >= 4 && chunk.length >= 4 { word(here, 0) } else { 0 };
                one.error = number(code);
            }
            _ => return Err(Garbled),
        }
        self.start += chunk.header_bytes + awaited;
        if chunk.is_last {
            done.push(one.end(slot));
        }
        Ok(true)
    }
}

/// Returns the slot of the request that a reply belongs to.
#[inline]
fn find(cookie: u64, pending: &[Pending]) -> Result<u32, Garbled> {
    let slot = cookie as u32;
    match pending.get(slot as usize) {
        Some(one) if cookie != 0 && one.cookie == cookie => Ok(slot),
        _ => Err(Garbled),
    }
}

/// Returns offset and length of a part of a read, relative to the start of the request.
fn within(request: &Request, offset_bytes: u64, length: u64) -> Result<(u32, u32), Garbled> {
    let at = offset_bytes.checked_sub(request.offset_bytes).ok_or(Garbled)?;
    let end = at.checked_add(length).ok_or(Garbled)?;
    let fits = request.kind == Kind::Read && end <= u64::from(request.length_bytes) && length > 0;
    if fits { Ok((at as u32, length as u32)) } else { Err(Garbled) }
}

/// Returns the Linux error number for an error number of the protocol, which has the same values.
fn number(error: u32) -> i32 {
    match i32::try_from(error) {
        Ok(error) if (1..4096).contains(&error) => error,
        _ => libc::EIO,
    }
}

#[cfg(test)]
mod tests {
    use headstack_nbd::{To, chunk_header, simple};
    use proptest::prelude::*;

    use super::*;

    const SLOTS: usize = 3;
    const FRAMINGS: [Framing; 3] = [Framing::Simple, Framing::Structured, Framing::Extended];

    fn read(slot: usize, length_bytes: u32, memory: &mut [u8]) -> Pending {
        let offset_bytes = (slot as u64) << 32;
        let request =
            Request { kind: Kind::Read, offset_bytes, length_bytes, force_unit_access: false, ordered: false };
        Pending::new(1 << 32 | slot as u64, request, memory.as_mut_ptr(), memory.len())
    }

    /// Returns the server's reply to a read of the slot, in one chunk or two.
    fn reply(framing: Framing, slot: usize, data: &[u8], cut: usize) -> Vec<u8> {
        let (cookie, offset_bytes) = (1 << 32 | slot as u64, (slot as u64) << 32);
        let mut bytes_sent = Vec::new();
        if framing == Framing::Simple {
            simple(&mut bytes_sent, cookie, 0);
            bytes_sent.extend(data);
            return bytes_sent;
        }
        let to = To { framing, cookie, offset_bytes };
        for (from, part) in [(cut, &data[cut..]), (0, &data[..cut])] {
            if !part.is_empty() {
                chunk_header(&mut bytes_sent, to, 0, chunk::OFFSET_DATA, 8 + part.len() as u32);
                bytes_sent.extend((offset_bytes + from as u64).to_be_bytes());
                bytes_sent.extend(part);
            }
        }
        chunk_header(&mut bytes_sent, to, chunk::FLAG_DONE, chunk::NONE, 0);
        bytes_sent
    }

    /// Feeds the bytes `bytes_sent` to the replies in pieces of a limited size.
    fn take(
        replies: &mut Replies,
        bytes_sent: &[u8],
        pieces: &[usize],
        pending: &mut [Pending],
    ) -> Result<Vec<Completion>, Garbled> {
        let (mut at, mut done) = (0, Vec::new());
        for most in pieces.iter().cycle() {
            if at == bytes_sent.len() {
                break;
            }
            let landing = replies.landing(pending);
            let bytes = landing.room.min(*most).min(bytes_sent.len() - at);
            // SAFETY: copies at most as many bytes as there is room for.
            unsafe { std::ptr::copy_nonoverlapping(bytes_sent[at..].as_ptr(), landing.memory, bytes) };
            at += bytes;
            replies.took(bytes, pending, &mut done)?;
        }
        Ok(done)
    }

    proptest! {
        #[test]
        fn replies_parse_the_same_in_any_pieces(
            framing in prop::sample::select(&FRAMINGS[..]),
            lengths in prop::collection::vec(1usize..60_000, SLOTS),
            order in Just([2usize, 0, 1]),
            cut in 0.0..1.0f64,
            pieces in prop::collection::vec(1usize..200_000, 1..8),
        ) {
            let datas: Vec<Vec<u8>> =
                lengths.iter().enumerate().map(|(slot, &length)| (0..length).map(|at| (at * 7 + slot) as u8).collect()).collect();
            let mut memory: Vec<Vec<u8>> = lengths.iter().map(|&length| vec![0; length]).collect();
            let mut pending: Vec<Pending> =
                memory.iter_mut().enumerate().map(|(slot, memory)| read(slot, memory.len() as u32, memory)).collect();
            let cut_of = |length: usize| (length as f64 * cut) as usize;
            let bytes_sent: Vec<u8> =
                order.iter().flat_map(|&slot| reply(framing, slot, &datas[slot], cut_of(lengths[slot]))).collect();
            let mut replies = Replies::new(framing, true);
            let done = take(&mut replies, &bytes_sent, &pieces, &mut pending).unwrap();
            prop_assert!(replies.is_at_rest());
            let ended: Vec<_> = done.iter().map(|one| (one.slot as usize, one.result as usize)).collect();
            prop_assert_eq!(ended, order.map(|slot| (slot, lengths[slot])).to_vec());
            prop_assert_eq!(memory, datas);
        }

        #[test]
        fn no_bytes_of_a_server_do_harm(
            framing in prop::sample::select(&FRAMINGS[..]),
            mut bytes_sent in prop::collection::vec(any::<u8>(), 1..300),
            kind in any::<u16>(),
            pieces in prop::collection::vec(1usize..64, 1..4),
        ) {
            // A chunk for the request in flight, so that more than its first word is checked.
            let mut head = Vec::new();
            chunk_header(&mut head, To { framing, cookie: 1 << 32, offset_bytes: 0 }, 0, kind, bytes_sent.len() as u32);
            bytes_sent.splice(0..0, head);
            let mut memory = vec![0; 64];
            let mut pending = vec![read(0, 64, &mut memory)];
            let _ = take(&mut Replies::new(framing, true), &bytes_sent, &pieces, &mut pending);
        }
    }

    #[test]
    fn what_is_no_reply_to_a_request_under_way_is_garbled() {
        for framing in FRAMINGS {
            let mut memory = vec![0; 4096];
            let mut pending = vec![read(0, 4096, &mut memory)];
            let whole = reply(framing, 0, &[1; 4096], 0);
            let again = [&whole[..], &whole].concat();
            let twice = take(&mut Replies::new(framing, true), &again, &[1000], &mut pending);
            assert_eq!(twice.err(), Some(Garbled), "{framing:?}: the second reply matches no request");
            let mut pending = vec![read(0, 4096, &mut memory)];
            if framing != Framing::Simple {
                let longer = reply(framing, 0, &[1; 4097], 0);
                assert_eq!(take(&mut Replies::new(framing, true), &longer, &[1000], &mut pending).err(), Some(Garbled));
            }
        }
    }
}
