//! Requests of one connection, from the first to the last: what may be asked, what becomes of the data, and which reply it
//! will be.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use headstack_workload::{Kind, Request};

use super::input::Input;
use super::output::Output;
use super::wire::{self, Errno, Header, chunk, command};
use crate::device::{Device, Export};
use crate::pacer::{Answer, Outcome};

/// Replies that need no clock leave together, up to so many bytes.
const BATCH_BYTES: usize = 256 << 10;
/// A read at least so long is looked at for never having been written.
const HOLE_BYTES: u32 = 64 << 10;
/// Extents of one reply.
const EXTENTS_MAX: usize = 4096;

/// How a reply looks.
#[derive(Debug)]
pub struct Reply {
    output: Arc<Output>,
    cookie: u64,
    structured: bool,
    /// The message, if all is well.
    message: Vec<u8>,
    /// First byte of the export in the system's address space.
    start_bytes: u64,
    reserved: usize,
}

impl Reply {
    /// Tells the client.
    pub fn send(self, outcome: Outcome) {
        let message = match outcome {
            Outcome::Done => self.message,
            Outcome::Failed(at) => {
                let mut message = Vec::new();
                let at = at.map(|bytes| bytes.saturating_sub(self.start_bytes));
                error(&mut message, self.cookie, self.structured, Errno::Io, at);
                message
            }
            // A client that waits would wait forever.
            Outcome::Vanished => return self.output.cut(),
        };
        self.output.send(message, self.reserved);
    }
}

fn error(into: &mut Vec<u8>, cookie: u64, structured: bool, errno: Errno, at_bytes: Option<u64>) {
    if !structured {
        return wire::simple(into, cookie, errno as u32);
    }
    let (kind, length) = if at_bytes.is_some() { (chunk::ERROR_OFFSET, 14) } else { (chunk::ERROR, 6) };
    wire::chunk_header(into, cookie, chunk::FLAG_DONE, kind, length);
    into.extend_from_slice(&(errno as u32).to_be_bytes());
    into.extend_from_slice(&0u16.to_be_bytes());
    into.extend(at_bytes.into_iter().flat_map(u64::to_be_bytes));
}

/// A connection whose client has chosen an export.
pub struct Requests<'d> {
    /// Where requests come from.
    pub input: Input,
    /// Where replies go.
    pub output: Arc<Output>,
    /// What is exported.
    pub device: &'d Device,
    /// Which of it.
    pub export: &'d Export,
    /// Replies are structured.
    pub structured: bool,
    /// Extents may be asked for.
    pub has_context: bool,
    /// Replies that leave together.
    pub batch: Vec<u8>,
    /// The payload of the write at hand.
    pub payload: Vec<u8>,
}

impl Requests<'_> {
    /// Serves requests until the client goes.
    ///
    /// # Errors
    /// The stream's, among them a client that goes in the middle of a request, of which nothing is carried out then.
    pub fn serve(&mut self) -> io::Result<()> {
        loop {
            if !self.batch.is_empty() && (!self.input.has(wire::REQUEST_BYTES) || self.batch.len() > BATCH_BYTES) {
                self.output.send(std::mem::take(&mut self.batch), 0);
            }
            let Some(header) = Header::parse(&self.input.array()?) else {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "not a request"));
            };
            if header.command == command::DISC {
                return Ok(());
            }
            if header.command == command::WRITE {
                if header.length_bytes > wire::PAYLOAD_BYTES_MAX {
                    self.refuse(&header, Errno::Invalid);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "a payload beyond the limit"));
                }
                self.payload.resize(header.length_bytes as usize, 0);
                self.input.exact(&mut self.payload)?;
            }
            let at = Instant::now();
            match self.check(&header) {
                Err(errno) => self.refuse(&header, errno),
                Ok(()) => self.carry_out(at, &header),
            }
            // One long write must not hold its memory for as long as the connection lives.
            if self.payload.capacity() > 1 << 20 {
                self.payload = Vec::new();
            }
        }
    }

    /// What is wrong with a request.
    fn check(&self, header: &Header) -> Result<(), Errno> {
        let flags = match header.command {
            command::READ if self.structured => command::FLAG_DF,
            command::WRITE_ZEROES => command::FLAG_NO_HOLE,
            command::BLOCK_STATUS if self.has_context => command::FLAG_REQ_ONE,
            command::READ | command::WRITE | command::FLUSH | command::TRIM | command::CACHE => 0,
            _ => return Err(Errno::Invalid),
        };
        if header.flags & !(flags | command::FLAG_FUA) != 0 {
            return Err(Errno::Invalid);
        }
        if header.command == command::FLUSH {
            return if header.offset_bytes == 0 && header.length_bytes == 0 { Ok(()) } else { Err(Errno::Invalid) };
        }
        let length = u64::from(header.length_bytes);
        let end = header.offset_bytes.checked_add(length).ok_or(Errno::Invalid)?;
        if end > self.export.span.length_bytes {
            let writes = matches!(header.command, command::WRITE | command::WRITE_ZEROES);
            return Err(if writes { Errno::NoSpace } else { Errno::Invalid });
        }
        let block = u64::from(self.export.block_bytes);
        let is_whole = header.offset_bytes.is_multiple_of(block) && length.is_multiple_of(block);
        let too_long = header.command == command::READ && header.length_bytes > wire::PAYLOAD_BYTES_MAX;
        let no_extent = header.command == command::BLOCK_STATUS && length == 0;
        if is_whole && !too_long && !no_extent { Ok(()) } else { Err(Errno::Invalid) }
    }

    fn refuse(&mut self, header: &Header, errno: Errno) {
        let mut message = Vec::new();
        error(&mut message, header.cookie, self.structured, errno, None);
        self.reply_now(&message);
    }

    /// Sends what needs no clock: by itself, or with others where nothing does.
    fn reply_now(&mut self, message: &[u8]) {
        if self.device.submitter.is_instant() {
            self.batch.extend_from_slice(message);
        } else {
            self.output.send(message.to_vec(), 0);
        }
    }

    /// Does to the contents what a request does, and hands it to the clock for the time that it takes.
    ///
    /// A write is in the contents when it has been received, a read takes them then: what comes while others are under
    /// way on the same blocks may see either, as on a drive.
    fn carry_out(&mut self, at: Instant, header: &Header) {
        if header.command == command::BLOCK_STATUS {
            return self.block_status(header);
        }
        let start = self.export.span.start_bytes + header.offset_bytes;
        let length = u64::from(header.length_bytes);
        let contents = &self.device.contents;
        let instant = self.device.submitter.is_instant();
        let mut message = if instant { std::mem::take(&mut self.batch) } else { Vec::new() };
        let before = message.len();
        let done = match header.command {
            command::READ => self.read(&mut message, header, start),
            command::WRITE => contents.write(start, &self.payload),
            command::WRITE_ZEROES if header.flags & command::FLAG_NO_HOLE != 0 => contents.fill(start, length),
            command::WRITE_ZEROES | command::TRIM => contents.zero(start, length),
            _ => Ok(()),
        };
        if let Err(failure) = done {
            message.truncate(before);
            self.give_back(instant, message);
            let is_full = failure.kind() == io::ErrorKind::StorageFull;
            return self.refuse(header, if is_full { Errno::NoSpace } else { Errno::Io });
        }
        if header.command != command::READ {
            self.acknowledge(&mut message, header.cookie);
        }
        if instant {
            self.batch = message;
            return self.device.submitter.count_at_once(1);
        }
        if header.length_bytes == 0 && header.command != command::FLUSH {
            return self.output.send(message, 0);
        }
        let reserved = message.len();
        if !self.output.reserve(reserved) {
            return;
        }
        let reply = Reply {
            output: Arc::clone(&self.output),
            cookie: header.cookie,
            structured: self.structured,
            message,
            start_bytes: self.export.span.start_bytes,
            reserved,
        };
        self.device.submitter.submit(at, request_of(header, start), Answer::Nbd(reply));
    }

    fn give_back(&mut self, instant: bool, message: Vec<u8>) {
        if instant {
            self.batch = message;
        }
    }

    fn acknowledge(&self, message: &mut Vec<u8>, cookie: u64) {
        if self.structured {
            wire::chunk_header(message, cookie, chunk::FLAG_DONE, chunk::NONE, 0);
        } else {
            wire::simple(message, cookie, 0);
        }
    }

    fn read(&self, message: &mut Vec<u8>, header: &Header, start: u64) -> io::Result<()> {
        let (length, contents) = (header.length_bytes, &self.device.contents);
        if !self.structured {
            wire::simple(message, header.cookie, 0);
        } else if length == 0 {
            self.acknowledge(message, header.cookie);
        } else if header.flags & command::FLAG_DF == 0
            && length >= HOLE_BYTES
            && contents.is_hole(start, u64::from(length))
        {
            wire::chunk_header(message, header.cookie, chunk::FLAG_DONE, chunk::OFFSET_HOLE, 12);
            message.extend_from_slice(&header.offset_bytes.to_be_bytes());
            message.extend_from_slice(&length.to_be_bytes());
            return Ok(());
        } else {
            wire::chunk_header(message, header.cookie, chunk::FLAG_DONE, chunk::OFFSET_DATA, 8 + length);
            message.extend_from_slice(&header.offset_bytes.to_be_bytes());
        }
        let from = message.len();
        message.resize(from + length as usize, 0);
        contents.read(start, &mut message[from..])
    }

    /// Which parts were written: the server knows without asking the system.
    fn block_status(&mut self, header: &Header) {
        let only_one = header.flags & command::FLAG_REQ_ONE != 0;
        let start = self.export.span.start_bytes + header.offset_bytes;
        let extents_max = if only_one { 1 } else { EXTENTS_MAX };
        let extents = self.device.contents.extents(start, u64::from(header.length_bytes), extents_max);
        let Ok(extents) = extents else {
            return self.refuse(header, Errno::Io);
        };
        let mut message = Vec::with_capacity(24 + 8 * extents.len());
        let length = 4 + 8 * extents.len() as u32;
        wire::chunk_header(&mut message, header.cookie, chunk::FLAG_DONE, chunk::BLOCK_STATUS, length);
        message.extend_from_slice(&wire::BASE_ALLOCATION_ID.to_be_bytes());
        for extent in extents {
            message.extend_from_slice(&(extent.length_bytes as u32).to_be_bytes());
            let state = if extent.is_hole { wire::STATE_HOLE_ZERO } else { 0 };
            message.extend_from_slice(&state.to_be_bytes());
        }
        self.reply_now(&message);
    }
}

/// What the system is asked: zeros are written, a cache command reads.
fn request_of(header: &Header, start_bytes: u64) -> Request {
    let kind = match header.command {
        command::WRITE | command::WRITE_ZEROES => Kind::Write,
        command::TRIM => Kind::Trim,
        command::FLUSH => Kind::Flush,
        _ => Kind::Read,
    };
    let force = header.flags & command::FLAG_FUA != 0;
    let has_range = kind != Kind::Flush;
    Request {
        kind,
        offset_bytes: if has_range { start_bytes } else { 0 },
        length_bytes: header.length_bytes,
        force_unit_access: force && kind == Kind::Write,
        ordered: false,
    }
}
