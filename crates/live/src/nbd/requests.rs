//! Requests of one connection, from the first to the last: what may be asked, what becomes of the data, and which reply it
//! will be.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headstack_sim::{Outcome, faults};
use headstack_workload::{Kind, Request};

use super::input::Input;
use super::negotiation::Terms;
use super::output::{Output, Room};
use super::sparse;
use super::wire::{self, Errno, Header, chunk, command};
use crate::budget::Share;
use crate::device::Device;
use crate::pacer::Answer;
use crate::power::Change;
use crate::witness::{Client, Issued};

/// Replies that need no clock leave together, up to so many bytes.
const BATCH_BYTES: usize = 256 << 10;
/// What a request takes beside its data while it is under way: its place in queues, here and at the clock.
const REPLY_BYTES: u64 = 512;
/// The longest head of a reply.
const REPLY_HEAD_BYTES: usize = 64;
/// What a connection keeps for them while it has none.
const BATCH_KEPT_BYTES: usize = 64 << 10;
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
    /// Where in the export a read is, and how long.
    read: Option<(u64, u32)>,
    room: Room,
    client: Arc<Client>,
    issued: Issued,
}

impl Answer for Reply {
    fn send(self: Box<Self>, outcome: Outcome, took: Duration) {
        let message = match outcome {
            Outcome::Done => self.message,
            Outcome::Refused(errno) => {
                let mut message = Vec::new();
                error(&mut message, self.cookie, self.structured, wire_errno(errno), None);
                message
            }
            Outcome::Failed(at) => {
                let mut message = Vec::new();
                let at = at.map(|bytes| bytes.saturating_sub(self.start_bytes));
                error(&mut message, self.cookie, self.structured, Errno::Io, at);
                message
            }
            // A client that waits would wait forever.
            Outcome::Vanished => return self.output.cut(),
        };
        let (turns, output, room) = (&self.client.turns, self.output, self.room);
        turns.answered(Instant::now(), self.issued, took, message.len(), || output.send(message, room));
    }

    fn data(&mut self) -> Option<(u64, &mut [u8])> {
        let (offset_bytes, length_bytes) = self.read?;
        if self.structured {
            sparse::put_in_zeros(&mut self.message, self.cookie, offset_bytes, length_bytes);
        }
        let from = self.message.len() - length_bytes as usize;
        Some((self.start_bytes + offset_bytes, &mut self.message[from..]))
    }
}

/// An error as the protocol has it: it has none for what took too long, and none for what can only be read but that it is not
/// permitted.
fn wire_errno(errno: faults::Errno) -> Errno {
    match errno {
        faults::Errno::Io | faults::Errno::TimedOut => Errno::Io,
        faults::Errno::NoSpace => Errno::NoSpace,
        faults::Errno::ReadOnly => Errno::NotPermitted,
    }
}

impl Reply {
    /// Tells the client that it cannot be.
    fn refuse(self, errno: Errno) {
        let mut message = Vec::new();
        error(&mut message, self.cookie, self.structured, errno, None);
        let (turns, output, room) = (&self.client.turns, self.output, self.room);
        turns.answered(Instant::now(), self.issued, Duration::ZERO, message.len(), || output.send(message, room));
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
    input: Input,
    output: Arc<Output>,
    device: &'d Device,
    terms: Terms,
    /// Replies that leave together, where nothing takes time, and their memory.
    batch: Vec<u8>,
    batch_share: Share,
    client: Arc<Client>,
    /// Since when the client has always sent more by the time that it was looked for.
    gapless_since: Instant,
}

impl<'d> Requests<'d> {
    /// What comes out of `input` is carried out on `terms`, and answered over `output`.
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

    /// Serves requests until the client goes.
    ///
    /// # Errors
    /// The stream's, among them a client that goes in the middle of a request, of which nothing is carried out then.
    pub fn serve(&mut self) -> io::Result<()> {
        let served = self.each();
        // What was answered is told, whatever came after it.
        self.flush().and(served)
    }

    fn each(&mut self) -> io::Result<()> {
        loop {
            self.flush_unless_here(wire::REQUEST_BYTES)?;
            let is_idle = !self.device.submitter.is_instant() && self.input.is_idle();
            let header = self.input.array()?;
            if is_idle {
                self.gapless_since = Instant::now();
            }
            let Some(header) = Header::parse(&header) else {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "not a request"));
            };
            match header.command {
                command::DISC => return Ok(()),
                command::WRITE if header.length_bytes > wire::PAYLOAD_BYTES_MAX => {
                    self.flush()?;
                    self.input.skip(header.length_bytes as usize)?;
                    self.answer(&header, 0)?;
                }
                command::WRITE => {
                    let length = header.length_bytes as usize;
                    self.flush_unless_here(length)?;
                    let task = Task { device: self.device, terms: &self.terms, header: &header };
                    if task.check().is_ok() {
                        self.answer(&header, length)?;
                    } else {
                        // It needs no memory to be refused.
                        self.input.skip(length)?;
                        self.answer(&header, 0)?;
                    }
                }
                _ => self.answer(&header, 0)?,
            }
        }
    }

    /// Nobody waits for a client that waits for a reply.
    fn flush_unless_here(&mut self, length: usize) -> io::Result<()> {
        if self.input.has(length) && self.batch.len() < BATCH_BYTES { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.batch.is_empty() {
            self.output.send_together(&mut self.batch, &mut self.batch_share)?;
            self.batch.clear();
            // One long read must not hold its memory for as long as the connection lives.
            self.batch.shrink_to(BATCH_KEPT_BYTES);
            self.batch_share.shrink(self.batch.capacity() as u64);
        }
        Ok(())
    }

    /// Carries out a request, and answers it or has the clock do so.
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
                submitter.submit(at, task.request(), Box::new(reply));
            }
            self.input.forget_payload();
            return Ok(());
        };
        let reply_bytes = REPLY_BYTES + message.capacity() as u64;
        let mut reply = Some(task.with_message(&self.output, message, room, issue()));
        // What the reply takes is its own from here on; the payload goes with this request.
        let answer = |share: &mut Share| {
            let mut reply = reply.take().expect("it is made once");
            reply.room.takes_over(share, reply_bytes);
            Box::new(reply) as Box<dyn Answer>
        };
        let forced = header.flags & command::FLAG_FUA != 0;
        let changed = self.device.change(at, task.request(), change, forced, &mut share, answer);
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
    /// It takes no drive to say it.
    AtOnce,
    /// When the model says so.
    OnTime,
}

/// A request on the terms of its connection.
struct Task<'a> {
    device: &'a Device,
    terms: &'a Terms,
    header: &'a Header,
}

impl Task<'_> {
    /// Does to the contents what the request does, and appends the reply: what it will be if all goes well, or why not.
    ///
    /// A write is in the contents when it has been received, a read takes them then: what comes while others are under
    /// way on the same blocks may see either, as on a drive.
    fn reply(&self, payload: &[u8], message: &mut Vec<u8>) -> Now {
        let before = message.len();
        if let Err(errno) = self.check().and_then(|()| self.carry_out(payload, message)) {
            message.truncate(before);
            error(message, self.header.cookie, self.terms.structured, errno, None);
            return Now::AtOnce;
        }
        let is_empty = self.header.length_bytes == 0 && self.header.command != command::FLUSH;
        if is_empty || self.header.command == command::BLOCK_STATUS { Now::AtOnce } else { Now::OnTime }
    }

    /// The reply to a request that will change contents, if all goes well with that.
    fn promise(&self, message: &mut Vec<u8>) -> Now {
        if let Err(errno) = self.check() {
            error(message, self.header.cookie, self.terms.structured, errno, None);
            return Now::AtOnce;
        }
        self.acknowledge(message);
        if self.header.length_bytes == 0 { Now::AtOnce } else { Now::OnTime }
    }

    /// What the request does to contents.
    fn change<'p>(&self, payload: &'p [u8]) -> Option<Change<'p>> {
        match self.header.command {
            command::WRITE => Some(Change::Data(payload)),
            command::WRITE_ZEROES if self.header.flags & command::FLAG_NO_HOLE != 0 => Some(Change::Fill),
            command::WRITE_ZEROES | command::TRIM => Some(Change::Zero),
            _ => None,
        }
    }

    /// Memory that its reply takes at most.
    fn reply_bytes(&self) -> usize {
        let brings = match self.header.command {
            _ if self.check().is_err() => 0,
            command::READ => self.header.length_bytes as usize,
            command::BLOCK_STATUS => 8 * EXTENTS_MAX,
            _ => 0,
        };
        REPLY_HEAD_BYTES + brings
    }

    /// Memory that keeping what it changes takes.
    fn undo_bytes(&self) -> u64 {
        let changes = matches!(self.header.command, command::WRITE | command::WRITE_ZEROES | command::TRIM);
        if changes && self.check().is_ok() { self.device.undo_bytes(u64::from(self.header.length_bytes)) } else { 0 }
    }

    /// What it is answered with, if all goes well.
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
            cookie: self.header.cookie,
            structured: self.terms.structured,
            message,
            start_bytes: self.terms.export.span.start_bytes,
            read: (self.header.command == command::READ)
                .then_some((self.header.offset_bytes, self.header.length_bytes)),
            room,
        }
    }

    /// What is wrong with the request.
    fn check(&self) -> Result<(), Errno> {
        let (header, export) = (self.header, &self.terms.export);
        let flags = match header.command {
            command::READ if self.terms.structured => command::FLAG_DF,
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
        let length = u64::from(header.length_bytes);
        if header.offset_bytes.checked_add(length).is_none_or(|end| end > export.span.length_bytes) {
            let writes = matches!(header.command, command::WRITE | command::WRITE_ZEROES);
            return Err(if writes { Errno::NoSpace } else { Errno::Invalid });
        }
        let block = u64::from(export.block_bytes);
        let is_whole = header.offset_bytes.is_multiple_of(block) && length.is_multiple_of(block);
        let has_payload = matches!(header.command, command::READ | command::WRITE);
        let too_long = has_payload && header.length_bytes > wire::PAYLOAD_BYTES_MAX;
        let no_extent = header.command == command::BLOCK_STATUS && length == 0;
        if !is_whole || too_long || no_extent {
            return Err(Errno::Invalid);
        }
        // A drive writes zeros as it writes anything else.
        if header.flags & command::FLAG_FAST_ZERO != 0 { Err(Errno::NotSupported) } else { Ok(()) }
    }

    fn carry_out(&self, payload: &[u8], message: &mut Vec<u8>) -> Result<(), Errno> {
        let done = match (self.header.command, self.change(payload)) {
            (_, Some(change)) => change.apply(&self.device.contents, self.request().span()),
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

    fn start_bytes(&self) -> u64 {
        self.terms.export.span.start_bytes + self.header.offset_bytes
    }

    fn acknowledge(&self, message: &mut Vec<u8>) {
        if self.terms.structured {
            wire::chunk_header(message, self.header.cookie, chunk::FLAG_DONE, chunk::NONE, 0);
        } else {
            wire::simple(message, self.header.cookie, 0);
        }
    }

    fn read(&self, message: &mut Vec<u8>) -> io::Result<()> {
        let (header, contents) = (self.header, &self.device.contents);
        let (length, start) = (header.length_bytes, self.start_bytes());
        // What a fault puts among zeros needs their place.
        let may_be_sparse = header.flags & command::FLAG_DF == 0 && !self.device.submitter.gate().spoils_reads();
        if !self.terms.structured || length == 0 {
            self.acknowledge(message);
        } else if may_be_sparse && length >= HOLE_BYTES && contents.is_hole(start, u64::from(length)) {
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
        contents.read(start, &mut message[from..])?;
        if self.terms.structured && length > 0 && may_be_sparse {
            sparse::leave_out_zeros(message, from, header.cookie, header.offset_bytes);
        }
        Ok(())
    }

    /// Which parts were written: the server knows without asking the system.
    fn block_status(&self, message: &mut Vec<u8>) -> io::Result<()> {
        let only_one = self.header.flags & command::FLAG_REQ_ONE != 0;
        let extents_max = if only_one { 1 } else { EXTENTS_MAX };
        let length = u64::from(self.header.length_bytes);
        // What was trimmed for good is a hole by now.
        self.device.submitter.gate().tidy(&self.device.contents)?;
        let extents = self.device.contents.extents(self.start_bytes(), length, extents_max)?;
        let length = 4 + 8 * extents.len() as u32;
        wire::chunk_header(message, self.header.cookie, chunk::FLAG_DONE, chunk::BLOCK_STATUS, length);
        message.extend_from_slice(&wire::BASE_ALLOCATION_ID.to_be_bytes());
        for extent in extents {
            message.extend_from_slice(&(extent.length_bytes as u32).to_be_bytes());
            let state = if extent.is_hole { wire::STATE_HOLE_ZERO } else { 0 };
            message.extend_from_slice(&state.to_be_bytes());
        }
        Ok(())
    }

    /// What the system is asked: zeros are written, a cache command reads.
    fn request(&self) -> Request {
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
            offset_bytes: if has_range { self.start_bytes() } else { 0 },
            length_bytes: self.header.length_bytes,
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use std::time::Duration;

    use super::*;
    use crate::budget::Budget;
    use crate::stream::{Patience, Stream};
    use crate::witness::Scene;

    /// What a client reads of a reply to cookie 7 of an export that begins at 1 MiB.
    fn told(structured: bool, outcome: Outcome) -> Vec<u8> {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let budget = Budget::new(0);
        let patience = Patience { stall: Duration::from_secs(10), budget: budget.clone() };
        let output = Output::new(Stream::socket_of(ours), patience);
        let room = output.reserve(3, budget.share()).expect("room");
        let client = Scene::new().meet(output.stream(), false);
        let issued = client.turns.arrived(Instant::now(), Instant::now(), 0);
        let message = b"yes".to_vec();
        let reply =
            Reply { output, cookie: 7, structured, message, start_bytes: 1 << 20, read: None, room, client, issued };
        Box::new(reply).send(outcome, Duration::ZERO);
        let mut heard = Vec::new();
        std::io::Read::read_to_end(&mut &theirs, &mut heard).expect("an end");
        heard
    }

    #[test]
    fn a_failure_is_told_with_its_place_where_that_can_be_said() {
        assert_eq!(told(true, Outcome::Done), b"yes");
        assert_eq!(told(true, Outcome::Vanished), b"");
        let [io, cookie] = [5u32.to_be_bytes().to_vec(), 7u64.to_be_bytes().to_vec()];
        let simple = [&wire::SIMPLE_REPLY_MAGIC.to_be_bytes()[..], &io, &cookie].concat();
        assert_eq!(told(false, Outcome::Failed(Some((1 << 20) + 512))), simple);
        let chunk = |kind: u16, length: u32| {
            let head = [&wire::STRUCTURED_REPLY_MAGIC.to_be_bytes()[..], &1u16.to_be_bytes(), &kind.to_be_bytes()];
            [&head.concat()[..], &cookie, &length.to_be_bytes(), &io, &[0, 0]].concat()
        };
        assert_eq!(told(true, Outcome::Failed(None)), chunk(chunk::ERROR, 6));
        let placed = [&chunk(chunk::ERROR_OFFSET, 14)[..], &512u64.to_be_bytes()].concat();
        assert_eq!(told(true, Outcome::Failed(Some((1 << 20) + 512))), placed, "within the export");
    }
}
