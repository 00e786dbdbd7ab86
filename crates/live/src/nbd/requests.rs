//! [`Requests`]: the requests of a connection: checks, their effect on the data, and their replies.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use headstack_nbd::{self as wire, Errno, Framing, Header, To, chunk, command};
use headstack_workload::{Kind, Request, Span};

use super::input::Input;
use super::negotiation::Terms;
use super::output::{Output, Room};
use super::parts::{PART_BYTES_MAX, Parts, parts_of};
use super::reply::{Reply, error};
use super::sparse;
use crate::budget::Share;
use crate::device::Device;
use crate::pacer::Answer;
use crate::power::Change;
use crate::witness::{Client, Issued};

/// Bytes up to which replies that need no clock are sent together.
const BATCH_BYTES: usize = 256 << 10;
/// Overhead of a request under way: its entries in queues, here and at the clock.
const REPLY_BYTES: u64 = 512;
/// Longest header of a reply.
const REPLY_HEAD_BYTES: usize = 64;
/// Memory that a connection keeps for such replies while it has none.
const BATCH_KEPT_BYTES: usize = 64 << 10;
/// Length of a read from which on it is checked for holes.
const HOLE_BYTES: u32 = 64 << 10;
/// Largest number of extents in a reply.
const EXTENTS_MAX: usize = 4096;
/// Longest payload that selects contexts: there is only one context.
const CONTEXTS_BYTES_MAX: u64 = 8 + 4 * 16;

/// A connection whose client has chosen an export.
pub struct Requests<'d> {
    input: Input,
    output: Arc<Output>,
    device: &'d Device,
    terms: Terms,
    /// Replies that are sent together if nothing takes time.
    batch: Vec<u8>,
    batch_share: Share,
    client: Arc<Client>,
    /// Time since which the client has always sent its next request before it was looked for.
    gapless_since: Instant,
}

impl<'d> Requests<'d> {
    /// Creates the request loop: `input` is processed on `terms`, and answered over `output`.
    pub fn new(
        input: Input,
        output: Arc<Output>,
        device: &'d Device,
        terms: Terms,
        client: Arc<Client>,
    ) -> Requests<'d> {
        let batch_share = device.submitter.budget().share();
        let gapless_since = Instant::now();
        Requests { input, output, device, terms, batch: Vec::new(), batch_share, client, gapless_since }
    }

    /// Serves requests until the client leaves.
    ///
    /// # Errors
    /// The stream's error, including that the client leaves in the middle of a request, which is then not executed.
    pub fn serve(&mut self) -> io::Result<()> {
        let served = self.each();
        // Answers are sent in any case.
        self.flush().and(served)
    }

    fn each(&mut self) -> io::Result<()> {
        let framing = self.terms.framing;
        loop {
            self.flush_unless_here(framing.request_bytes())?;
            let is_idle = !self.device.submitter.is_instant() && self.input.is_idle();
            let header = Header::parse(self.input.bytes(framing.request_bytes())?, framing);
            if is_idle {
                self.gapless_since = Instant::now();
            }
            let Some(header) = header else {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "not a request"));
            };
            match header.command {
                command::DISC => return Ok(()),
                command::WRITE => self.write(&header)?,
                _ if framing == Framing::Extended && header.flags & command::FLAG_PAYLOAD_LEN != 0 => {
                    self.described(&header)?;
                }
                _ => self.answer(&header, 0)?,
            }
        }
    }

    /// Processes a write: its payload follows with any flags.
    fn write(&mut self, header: &Header) -> io::Result<()> {
        let task = Task { device: self.device, terms: &self.terms, header };
        if header.length_bytes <= u64::from(wire::PAYLOAD_BYTES_MAX) && task.check().is_ok() {
            let length = header.length_bytes as usize;
            self.flush_unless_here(length)?;
            return self.answer(header, length);
        }
        // A refused write needs no memory.
        self.skip_payload(header)?;
        self.answer(header, 0)
    }

    /// Processes a payload of a request other than a write, which states the range and the contexts.
    fn described(&mut self, header: &Header) -> io::Result<()> {
        let is_short = (8..=CONTEXTS_BYTES_MAX).contains(&header.length_bytes);
        if header.command != command::BLOCK_STATUS || !is_short {
            self.skip_payload(header)?;
            // With this flag it is refused.
            return self.answer(header, 0);
        }
        self.flush_unless_here(header.length_bytes as usize)?;
        let payload = self.input.bytes(header.length_bytes as usize)?;
        let (length, contexts) = payload.split_first_chunk().expect("eight bytes or more");
        let is_ours = contexts == wire::BASE_ALLOCATION_ID.to_be_bytes();
        let flags = if is_ours { header.flags & !command::FLAG_PAYLOAD_LEN } else { header.flags };
        let header = Header { flags, length_bytes: u64::from_be_bytes(*length), ..*header };
        self.answer(&header, 0)
    }

    /// Skips the payload of a refused request. A client that announces an impossible length is disconnected.
    fn skip_payload(&mut self, header: &Header) -> io::Result<()> {
        let length = u32::try_from(header.length_bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a payload larger than any request"))?;
        self.flush_unless_here(length as usize)?;
        self.input.skip(length as usize)
    }

    /// Sends pending replies unless the next bytes are already here: the client may be waiting for a reply.
    fn flush_unless_here(&mut self, length: usize) -> io::Result<()> {
        if self.input.has(length) && self.batch.len() < BATCH_BYTES { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.batch.is_empty() {
            self.output.send_together(&mut self.batch, &mut self.batch_share)?;
            self.batch.clear();
            // One long read must not hold its memory for the lifetime of the connection.
            self.batch.shrink_to(BATCH_KEPT_BYTES);
            self.batch_share.shrink(self.batch.capacity() as u64);
        }
        Ok(())
    }

    /// Executes a request, and answers it or lets the clock do so.
    fn answer(&mut self, header: &Header, payload_bytes: usize) -> io::Result<()> {
        let submitter = &self.device.submitter;
        let task = Task { device: self.device, terms: &self.terms, header };
        let (device, output) = (self.device, &self.output);
        let is_open = || output.is_open();
        let room = |share: &mut Share, bytes: u64| {
            let is_there = device.make_room(share, bytes, &is_open);
            if is_there { Ok(()) } else { Err(io::Error::from(io::ErrorKind::BrokenPipe)) }
        };
        let mut share = submitter.budget().share();
        let undo_bytes = task.undo_bytes();
        let mut for_payload =
            |bytes: usize| room(&mut share, REPLY_BYTES + bytes as u64 + undo_bytes.min(bytes as u64));
        let payload = if payload_bytes == 0 {
            &[]
        } else {
            self.input.payload(payload_bytes, output.patience(), &mut for_payload)?
        };
        if submitter.is_instant() {
            let batch_bytes = self.batch.len() + task.reply_bytes();
            if batch_bytes > self.batch.capacity() {
                room(&mut self.batch_share, batch_bytes as u64)?;
                self.batch.reserve_exact(task.reply_bytes());
            }
            if task.reply(payload, &mut self.batch) == Now::OnTime {
                submitter.count_at_once(1);
            }
            self.input.forget_payload();
            return Ok(());
        }
        let at = Instant::now();
        if self.device.power_cuts() != self.terms.power_cuts {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "power failed"));
        }
        if payload_bytes == 0 {
            room(&mut share, REPLY_BYTES + task.reply_bytes() as u64 + undo_bytes)?;
        }
        let mut message = Vec::with_capacity(task.reply_bytes());
        let change = task.change(payload);
        let now = if change.is_some() { task.promise(&mut message) } else { task.reply(payload, &mut message) };
        let for_reply = submitter.budget().share();
        let Some(mut room) = self.output.reserve(message.len(), for_reply) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let reads = if header.command == command::READ { header.length_bytes as usize } else { 0 };
        let issue =
            || (Arc::clone(&self.client), self.client.turns.arrived(at, self.gapless_since, payload_bytes.max(reads)));
        let Some(change) = change.filter(|_| now == Now::OnTime) else {
            share.shrink(REPLY_BYTES + message.capacity() as u64);
            room.holds(share);
            if now == Now::AtOnce {
                self.output.send(message, room);
            } else {
                let reply = task.with_message(&self.output, message, room, issue());
                if header.length_bytes > PART_BYTES_MAX {
                    let parts = parts_of(task.span());
                    let replies = Parts::new(reply, parts.len());
                    parts.into_iter().for_each(|part| submitter.submit(at, task.request(part), replies.part()));
                } else {
                    submitter.submit(at, task.request(task.span()), Box::new(reply));
                }
            }
            self.input.forget_payload();
            return Ok(());
        };
        let reply_bytes = REPLY_BYTES + message.capacity() as u64;
        let mut reply = task.with_message(&self.output, message, room, issue());
        let forced = header.flags & command::FLAG_FUA != 0;
        if header.length_bytes > PART_BYTES_MAX {
            reply.room.takes_over(&mut share, reply_bytes);
            task.change_in_parts(at, change, forced, &mut share, reply);
            return Ok(());
        }
        let mut reply = Some(reply);
        // The reply keeps its own memory from here on; the payload's is freed with this request.
        let answer = |share: &mut Share| {
            let mut reply = reply.take().expect("it is made once");
            reply.room.takes_over(share, reply_bytes);
            Box::new(reply) as Box<dyn Answer>
        };
        let changed = self.device.change(at, task.request(task.span()), change, forced, &mut share, answer);
        if let Err(failure) = changed {
            reply.expect("nothing was handed in").refuse(errno_of(&failure));
        }
        self.input.forget_payload();
        Ok(())
    }
}

/// When a reply is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Now {
    /// At once: no drive is involved.
    AtOnce,
    /// At the time that the model determines.
    OnTime,
}

/// A request with the terms of its connection.
struct Task<'a> {
    device: &'a Device,
    terms: &'a Terms,
    header: &'a Header,
}

impl Task<'_> {
    /// Applies the request to the contents, and appends the reply on success, or an error.
    ///
    /// A write changes the contents when it has been received, a read takes its data at that time: requests to the same
    /// blocks that are under way at the same time may see either state, as on a drive.
    fn reply(&self, payload: &[u8], message: &mut Vec<u8>) -> Now {
        let before = message.len();
        if let Err(errno) = self.check().and_then(|()| self.carry_out(payload, message)) {
            message.truncate(before);
            error(message, self.to(), errno, None);
            return Now::AtOnce;
        }
        let is_empty = self.header.length_bytes == 0 && self.header.command != command::FLUSH;
        if is_empty || self.header.command == command::BLOCK_STATUS { Now::AtOnce } else { Now::OnTime }
    }

    /// Appends the reply to a request that will change contents, for the case of success.
    fn promise(&self, message: &mut Vec<u8>) -> Now {
        if let Err(errno) = self.check() {
            error(message, self.to(), errno, None);
            return Now::AtOnce;
        }
        self.acknowledge(message);
        if self.header.length_bytes == 0 { Now::AtOnce } else { Now::OnTime }
    }

    /// The request's change of the contents.
    fn change<'p>(&self, payload: &'p [u8]) -> Option<Change<'p>> {
        match self.header.command {
            command::WRITE => Some(Change::Data(payload)),
            command::WRITE_ZEROES if self.header.flags & command::FLAG_NO_HOLE != 0 => Some(Change::Fill),
            command::WRITE_ZEROES | command::TRIM => Some(Change::Zero),
            _ => None,
        }
    }

    /// Makes a change longer than the model accepts, and submits its parts to the clock.
    fn change_in_parts(&self, at: Instant, change: Change<'_>, forced: bool, share: &mut Share, reply: Reply) {
        let parts = parts_of(self.span());
        let replies = Parts::new(reply, parts.len());
        for (number, part) in parts.iter().enumerate() {
            let changed = self.device.change(at, self.request(*part), change, forced, share, |_| replies.part());
            if let Err(failure) = changed {
                return replies.refuse(errno_of(&failure), parts.len() - number);
            }
        }
    }

    /// Upper limit of its reply's memory.
    fn reply_bytes(&self) -> usize {
        let brings = match self.header.command {
            _ if self.check().is_err() => 0,
            command::READ => self.header.length_bytes as usize,
            command::BLOCK_STATUS => 16 * EXTENTS_MAX,
            _ => 0,
        };
        REPLY_HEAD_BYTES + brings
    }

    /// Memory for the previous contents.
    fn undo_bytes(&self) -> u64 {
        let changes = matches!(self.header.command, command::WRITE | command::WRITE_ZEROES | command::TRIM);
        if changes && self.check().is_ok() { self.device.undo_bytes(self.header.length_bytes) } else { 0 }
    }

    /// Builds its reply for the case of success.
    fn with_message(
        &self,
        output: &Arc<Output>,
        message: Vec<u8>,
        room: Room,
        (client, issued): (Arc<Client>, Issued),
    ) -> Reply {
        Reply {
            client,
            issued,
            output: Arc::clone(output),
            to: self.to(),
            message,
            start_bytes: self.terms.export.span.start_bytes,
            // A read is limited to the length of a payload.
            read_bytes: (self.header.command == command::READ).then_some(self.header.length_bytes as u32),
            room,
        }
    }

    /// Checks the request.
    fn check(&self) -> Result<(), Errno> {
        let (header, export) = (self.header, &self.terms.export);
        let flags = match header.command {
            command::READ if self.terms.framing.has_chunks() => command::FLAG_DF,
            command::WRITE if self.terms.framing == Framing::Extended => command::FLAG_PAYLOAD_LEN,
            command::WRITE_ZEROES => command::FLAG_NO_HOLE | command::FLAG_FAST_ZERO,
            command::BLOCK_STATUS if self.terms.has_context => command::FLAG_REQ_ONE,
            command::READ | command::WRITE | command::FLUSH | command::TRIM | command::CACHE => 0,
            _ => return Err(Errno::Invalid),
        };
        if header.flags & !(flags | command::FLAG_FUA) != 0 {
            return Err(Errno::Invalid);
        }
        if header.command == command::FLUSH {
            return if header.offset_bytes == 0 && header.length_bytes == 0 { Ok(()) } else { Err(Errno::Invalid) };
        }
        let length = header.length_bytes;
        if header.offset_bytes.checked_add(length).is_none_or(|end| end > export.span.length_bytes) {
            let writes = matches!(header.command, command::WRITE | command::WRITE_ZEROES);
            return Err(if writes { Errno::NoSpace } else { Errno::Invalid });
        }
        let block = u64::from(export.block_bytes);
        let is_whole = header.offset_bytes.is_multiple_of(block) && length.is_multiple_of(block);
        let has_payload = matches!(header.command, command::READ | command::WRITE);
        let too_long = has_payload && length > u64::from(wire::PAYLOAD_BYTES_MAX);
        let no_extent = header.command == command::BLOCK_STATUS && length == 0;
        if !is_whole || too_long || no_extent {
            return Err(Errno::Invalid);
        }
        // A drive writes zeros like any other data.
        if header.flags & command::FLAG_FAST_ZERO != 0 { Err(Errno::NotSupported) } else { Ok(()) }
    }

    fn carry_out(&self, payload: &[u8], message: &mut Vec<u8>) -> Result<(), Errno> {
        let done = match (self.header.command, self.change(payload)) {
            (_, Some(change)) => change.apply(&self.device.contents, self.span()),
            (command::READ, None) => self.read(message),
            (command::BLOCK_STATUS, None) => self.block_status(message),
            _ => Ok(()),
        };
        done.map_err(|failure| errno_of(&failure))?;
        if !matches!(self.header.command, command::READ | command::BLOCK_STATUS) {
            self.acknowledge(message);
        }
        Ok(())
    }

    fn to(&self) -> To {
        let Header { cookie, offset_bytes, .. } = *self.header;
        To { framing: self.terms.framing, cookie, offset_bytes }
    }

    /// Its range in the system's address space.
    fn span(&self) -> Span {
        let start_bytes = self.terms.export.span.start_bytes + self.header.offset_bytes;
        Span { start_bytes, length_bytes: self.header.length_bytes }
    }

    fn acknowledge(&self, message: &mut Vec<u8>) {
        if self.terms.framing.has_chunks() {
            wire::chunk_header(message, self.to(), chunk::FLAG_DONE, chunk::NONE, 0);
        } else {
            wire::simple(message, self.header.cookie, 0);
        }
    }

    fn read(&self, message: &mut Vec<u8>) -> io::Result<()> {
        let (header, contents) = (self.header, &self.device.contents);
        let has_chunks = self.terms.framing.has_chunks();
        let start = self.span().start_bytes;
        // Limited to the length of a payload.
        let length = header.length_bytes as u32;
        // A fault may put data in place of zeros, and needs room for them.
        let may_be_sparse = header.flags & command::FLAG_DF == 0 && !self.device.submitter.gate().spoils_reads();
        if !has_chunks || length == 0 {
            self.acknowledge(message);
        } else if may_be_sparse
            && length >= HOLE_BYTES
            && !self.device.submitter.gate().members_differ()
            && contents.is_hole(start, u64::from(length))
        {
            wire::chunk_header(message, self.to(), chunk::FLAG_DONE, chunk::OFFSET_HOLE, 12);
            message.extend_from_slice(&header.offset_bytes.to_be_bytes());
            message.extend_from_slice(&length.to_be_bytes());
            return Ok(());
        } else {
            wire::chunk_header(message, self.to(), chunk::FLAG_DONE, chunk::OFFSET_DATA, 8 + length);
            message.extend_from_slice(&header.offset_bytes.to_be_bytes());
        }
        let from = message.len();
        message.resize(from + length as usize, 0);
        self.device.read(start, &mut message[from..])?;
        if has_chunks && length > 0 && may_be_sparse {
            sparse::leave_out_zeros(message, from, self.to());
        }
        Ok(())
    }

    /// Appends the extents that were written, without asking the simulated system.
    fn block_status(&self, message: &mut Vec<u8>) -> io::Result<()> {
        let only_one = self.header.flags & command::FLAG_REQ_ONE != 0;
        let extents_max = if only_one { 1 } else { EXTENTS_MAX };
        let Span { start_bytes, length_bytes } = self.span();
        // Ranges that were trimmed permanently become holes first.
        self.device.submitter.gate().tidy(&self.device.contents)?;
        let extents = self.device.contents.extents(start_bytes, length_bytes, extents_max)?;
        let count = extents.len() as u32;
        let is_extended = self.terms.framing == Framing::Extended;
        let (kind, length) =
            if is_extended { (chunk::BLOCK_STATUS_EXT, 8 + 16 * count) } else { (chunk::BLOCK_STATUS, 4 + 8 * count) };
        wire::chunk_header(message, self.to(), chunk::FLAG_DONE, kind, length);
        message.extend_from_slice(&wire::BASE_ALLOCATION_ID.to_be_bytes());
        if is_extended {
            message.extend_from_slice(&count.to_be_bytes());
        }
        for extent in extents {
            let state = if extent.is_hole { wire::STATE_HOLE_ZERO } else { 0 };
            if is_extended {
                message.extend_from_slice(&extent.length_bytes.to_be_bytes());
                message.extend_from_slice(&u64::from(state).to_be_bytes());
            } else {
                message.extend_from_slice(&(extent.length_bytes as u32).to_be_bytes());
                message.extend_from_slice(&state.to_be_bytes());
            }
        }
        Ok(())
    }

    /// The request to the system for a part of its span, or all of it: zeros are written, a cache command reads.
    fn request(&self, part: Span) -> Request {
        let kind = match self.header.command {
            command::WRITE | command::WRITE_ZEROES => Kind::Write,
            command::TRIM => Kind::Trim,
            command::FLUSH => Kind::Flush,
            _ => Kind::Read,
        };
        let force = self.header.flags & command::FLAG_FUA != 0;
        let has_range = kind != Kind::Flush;
        Request {
            kind,
            offset_bytes: if has_range { part.start_bytes } else { 0 },
            // No part is longer.
            length_bytes: part.length_bytes as u32,
            force_unit_access: force && kind == Kind::Write,
            ordered: false,
        }
    }
}

fn errno_of(failure: &io::Error) -> Errno {
    match failure.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Errno::NoSpace,
        _ => Errno::Io,
    }
}
