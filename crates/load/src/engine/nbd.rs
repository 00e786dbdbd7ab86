//! [`Nbd`]: requests to NBD servers. One call sends all waiting requests; io_uring receives the replies, or system
//! calls if io_uring is not available.
//!
//! A send completes at once while the socket has room, so the ring would save no calls. Sends are therefore made
//! outside the ring, in order; the ring waits for replies, and for room when the socket is full.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use headstack_nbd::Header;
use headstack_workload::{Kind, Request};
use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};

use super::{Completion, Setup, Wait, await_by, ring};
use crate::LoadError;
use crate::buffers::{Buffers, Memory};
use crate::nbd::{Connection, Export, Pending, ReceiveBuffer, Replies, command_of};
use crate::target_map::{TargetMap, TargetPlace};
use crate::waker::Waker;

/// `IORING_RECVSEND_POLL_FIRST` of `linux/io_uring.h`: polls before the first attempt to receive. Linux 5.19 and later.
const POLL_FIRST: u16 = 1;
/// `IOV_MAX` of Linux.
const PIECES_MAX: usize = 1024;
/// Error number for replies that are not valid NBD.
const NO_REPLY: i32 = libc::EPROTO;

/// Flag of a completion that reports room to send, combined with the number of the connection.
const ROOM: u64 = 1 << 32;
const WAKE: u64 = 1 << 33;

/// Requests to NBD exports.
pub struct Nbd {
    /// The ring; `None` if system calls wait for replies.
    ring: Option<IoUring>,
    /// Whether the kernel's ring supports [`POLL_FIRST`].
    polls_first: bool,
    lanes: Vec<Lane>,
    /// Number of lanes per export, and for each export the lane of its next request.
    lanes_each: usize,
    next: Vec<usize>,
    map: TargetMap,
    /// For each slot, the request in flight and its lane.
    pending: Vec<Pending>,
    lane_of: Vec<u32>,
    buffers: Buffers,
    /// Requests that ended unsent, or whose connection was lost.
    ended: Vec<Completion>,
    events: Vec<(u64, i32)>,
    waker_fd: RawFd,
    name: String,
    /// Reason why system calls are used although io_uring was preferred.
    pub instead_of: Option<String>,
}

/// One connection.
struct Lane {
    export: Arc<Export>,
    connection: Option<Connection>,
    fd: RawFd,
    replies: Replies,
    outgoing: Outgoing,
    /// Number of outstanding replies.
    awaited: u32,
    /// Maximum length of the receive that is in the ring, in bytes; `None` if there is none.
    receiving: Option<usize>,
    awaits_room: bool,
    /// Whether the last receive had room for more, so that nothing is available now.
    is_drained: bool,
    /// Error number that ended the connection. No more requests are sent.
    broken: Option<i32>,
}

/// Requests that the socket has not accepted yet.
#[derive(Default)]
struct Outgoing {
    headers: Vec<u8>,
    /// Payloads, each with its position among the headers.
    payloads: Vec<(usize, libc::iovec)>,
    /// Total bytes of headers and payloads; the number already sent follows.
    total: usize,
    sent: usize,
}

// SAFETY: the addresses are within memory that the engine keeps.
unsafe impl Send for Outgoing {}

impl Nbd {
    /// Creates an engine for the calling thread. `waker` ends its waits. With `by_ring`, io_uring waits for replies.
    ///
    /// # Errors
    /// Returns an error with the action [`ring::SETUP`] if io_uring is not available, and other errors if there is no
    /// memory or no connection.
    pub fn new(setup: Setup, by_ring: bool, waker: &Waker) -> Result<Nbd, LoadError> {
        let failed = |action| {
            let target = setup.name.clone();
            move |source| LoadError::Io { target, action, source }
        };
        let exports = exports(&setup.map, &setup.name)?;
        let lanes_each = exports.iter().map(|export| export.connections()).max().unwrap_or(1) as usize;
        let count = exports.len() * lanes_each;
        let ring = match by_ring {
            true => Some(ring::set_up((2 * count as u32 + 2).next_power_of_two()).map_err(failed(ring::SETUP))?),
            false => None,
        };
        let buffers = Buffers::new(setup.slots, setup.longest_bytes, setup.own_buffers).map_err(failed("allocate"))?;
        let mut nbd = Nbd {
            polls_first: ring.as_ref().is_some_and(|ring| ring.params().is_setup_single_issuer()),
            ring,
            lanes: Vec::with_capacity(count),
            lanes_each,
            next: vec![0; exports.len()],
            pending: (0..setup.slots).map(|_| Pending::NONE).collect(),
            lane_of: vec![0; setup.slots as usize],
            map: setup.map,
            buffers,
            ended: Vec::new(),
            events: Vec::new(),
            waker_fd: waker.fd(),
            name: setup.name,
            instead_of: None,
        };
        for export in exports {
            for _ in 0..lanes_each {
                let connection = export.take()?;
                nbd.lanes.push(Lane::new(Arc::clone(&export), connection, setup.own_buffers));
            }
        }
        nbd.await_waker();
        Ok(nbd)
    }

    /// Returns whether io_uring waits for replies.
    pub fn is_by_ring(&self) -> bool {
        self.ring.is_some()
    }

    #[inline]
    pub fn prepare(&mut self, slot: u32, request: &Request) {
        let TargetPlace { piece, offset_bytes } = self.map.place(request);
        let within = self.next[piece];
        self.next[piece] = if within + 1 == self.lanes_each { 0 } else { within + 1 };
        let index = piece * self.lanes_each + within;
        let lane = &mut self.lanes[index];
        // An unsendable request fails only after the last outstanding reply: an error ends the run, and requests that
        // completed earlier must still count.
        let is_over = lane.broken.is_some() && lane.awaited == 0;
        let Some(connection) = lane.connection.as_mut().filter(|_| !is_over) else {
            self.ended.push(Completion { slot, result: -libc::ENOTCONN });
            return;
        };
        if let Some(errno) = lane.export.refuses(request) {
            self.ended.push(Completion { slot, result: -errno });
            return;
        }
        let (command, flags) = command_of(request, lane.export.is_durable());
        let cookie = connection.cookie(slot);
        let header = Header { flags, command, cookie, offset_bytes, length_bytes: request.length_bytes.into() };
        let Memory::One(memory) = self.buffers.memory(slot, 0) else {
            unreachable!("a length of 0 fits into any buffer")
        };
        let payload = if request.kind == Kind::Write { request.length_bytes } else { 0 };
        if lane.broken.is_none() {
            lane.outgoing.add(&header.to_bytes(connection.framing()), self.buffers.memory(slot, payload), payload);
        }
        lane.awaited += 1;
        let request = Request { offset_bytes, ..*request };
        self.pending[slot as usize] = Pending::new(cookie, request, memory, self.buffers.each_bytes());
        self.lane_of[slot as usize] = index as u32;
    }

    /// Sends accepted requests as long as the sockets have room.
    #[inline]
    pub fn hand_over(&mut self) {
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            if !lane.awaits_room && !lane.outgoing.is_empty() {
                self.send(index);
            }
        }
    }

    /// Returns whether all accepted requests have been sent.
    #[inline]
    pub fn has_handed_over(&self) -> bool {
        self.lanes.iter().all(|lane| lane.outgoing.is_empty())
    }

    /// Sends as much as the socket has room for. If the server has hung up, replies that it sent earlier are still
    /// received.
    fn send(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        if let Err(errno) = lane.outgoing.send(lane.fd) {
            lane.stop_sending(errno);
        }
    }

    /// Fails all requests of a lane on which no more replies can arrive.
    #[cold]
    fn cut(&mut self, index: usize, errno: i32) {
        let lane = &mut self.lanes[index];
        assert!(lane.receiving.is_none(), "no receive of the lane is in flight");
        if let Some(connection) = &lane.connection {
            connection.cut();
        }
        let errno = lane.stop_sending(errno);
        lane.awaited = 0;
        for (slot, one) in self.pending.iter_mut().enumerate() {
            if one.cookie != 0 && self.lane_of[slot] as usize == index {
                one.cookie = 0;
                self.ended.push(Completion { slot: slot as u32, result: -errno });
            }
        }
    }

    #[inline]
    pub fn drive(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), LoadError> {
        self.hand_over();
        done.append(&mut self.ended);
        await_by(wait, done, |at_most_ns, done| self.pass(at_most_ns, done))
    }

    /// Waits for at most `at_most_ns`, and processes everything that has arrived.
    #[inline]
    fn pass(&mut self, at_most_ns: Option<u64>, done: &mut Vec<Completion>) -> Result<(), LoadError> {
        if self.ring.is_some() {
            self.pass_by_ring(at_most_ns)?
        } else {
            self.pass_by_calls(at_most_ns, done)?
        }
        let mut events = std::mem::take(&mut self.events);
        for (data, result) in events.drain(..) {
            if data & WAKE != 0 {
                Waker::drain(self.waker_fd);
                self.await_waker();
            } else if data & ROOM != 0 {
                let index = data as u32 as usize;
                self.lanes[index].awaits_room = false;
                self.send(index);
            } else {
                self.received(data as usize, result, done);
            }
        }
        self.events = events;
        done.append(&mut self.ended);
        Ok(())
    }

    #[inline]
    fn pass_by_ring(&mut self, at_most_ns: Option<u64>) -> Result<(), LoadError> {
        for index in 0..self.lanes.len() {
            self.await_lane(index);
        }
        let Some(ring) = &mut self.ring else { return Ok(()) };
        ring::enter(ring, at_most_ns, &self.name)?;
        self.events.extend(ring.completion().map(|entry| (entry.user_data(), entry.result())));
        Ok(())
    }

    /// Adds the wait that a lane needs (for a reply or for room) to the ring.
    #[inline]
    fn await_lane(&mut self, index: usize) {
        let lane = &mut self.lanes[index];
        if lane.receiving.is_none() && lane.awaited > 0 {
            let ReceiveBuffer { memory, room, is_whole } = lane.replies.landing(&mut self.pending);
            lane.receiving = Some(room);
            let flags = if is_whole { libc::MSG_WAITALL } else { 0 };
            let first = if self.polls_first && lane.is_drained { POLL_FIRST } else { 0 };
            let receive = opcode::Recv::new(Fd(lane.fd), memory, room as u32).flags(flags).ioprio(first);
            self.push(&receive.build().user_data(index as u64));
        }
        let lane = &mut self.lanes[index];
        if !lane.outgoing.is_empty() && !lane.awaits_room {
            lane.awaits_room = true;
            let room = opcode::PollAdd::new(Fd(lane.fd), libc::POLLOUT as u32).build();
            self.push(&room.user_data(index as u64 | ROOM));
        }
    }

    fn await_waker(&mut self) {
        if self.ring.is_some() {
            let wake = opcode::PollAdd::new(Fd(self.waker_fd), libc::POLLIN as u32).build();
            self.push(&wake.user_data(WAKE));
        }
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry) {
        let Some(ring) = &mut self.ring else { return };
        // SAFETY: the buffers and the memory of the replies stay allocated until the last receive has ended, see
        // `drop`. The ring has room for one entry of each kind per lane.
        unsafe { ring.submission().push(entry) }.expect("the ring has room for every kind of entry");
    }

    fn pass_by_calls(&mut self, at_most_ns: Option<u64>, done: &mut Vec<Completion>) -> Result<(), LoadError> {
        let waits_for = |lane: &Lane| {
            let receives = if lane.awaited > 0 { libc::POLLIN } else { 0 };
            receives | if lane.outgoing.is_empty() { 0 } else { libc::POLLOUT }
        };
        let polled = |fd, events| libc::pollfd { fd, events, revents: 0 };
        // `ppoll` ignores negative descriptors. Without this, a server that hung up would end every wait.
        let lanes = self.lanes.iter().map(|lane| match waits_for(lane) {
            0 => polled(-1, 0),
            events => polled(lane.fd, events),
        });
        let mut polls: Vec<libc::pollfd> = std::iter::once(polled(self.waker_fd, libc::POLLIN)).chain(lanes).collect();
        let most = at_most_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        let most = most.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the array and the time stay valid until the call returns.
        let ready = unsafe { libc::ppoll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, most, std::ptr::null()) };
        if ready < 0 {
            let source = io::Error::last_os_error();
            return match source.kind() {
                io::ErrorKind::Interrupted => Ok(()),
                _ => Err(LoadError::Io { target: self.name.clone(), action: "ppoll", source }),
            };
        }
        if polls[0].revents != 0 {
            self.events.push((WAKE, 0));
        }
        for (index, poll) in polls[1..].iter().enumerate() {
            if poll.revents & libc::POLLOUT != 0 {
                self.events.push((index as u64 | ROOM, 0));
            }
            if poll.revents & !libc::POLLOUT != 0 {
                self.receive_now(index, done);
            }
        }
        Ok(())
    }

    fn receive_now(&mut self, index: usize, done: &mut Vec<Completion>) {
        let lane = &mut self.lanes[index];
        let ReceiveBuffer { memory, room, .. } = lane.replies.landing(&mut self.pending);
        lane.receiving = Some(room);
        // SAFETY: the buffers or the replies own the memory.
        let bytes = unsafe { libc::recv(lane.fd, memory.cast(), room, libc::MSG_DONTWAIT) };
        let result = if bytes < 0 { -last_error() } else { bytes as i32 };
        self.received(index, result, done);
    }

    /// Processes the result of a receive on a lane: the number of bytes, or a negative error number.
    #[inline]
    fn received(&mut self, index: usize, result: i32, done: &mut Vec<Completion>) {
        let lane = &mut self.lanes[index];
        let room = lane.receiving.take().unwrap_or(0);
        match result {
            0 => self.cut(index, libc::ECONNRESET),
            bytes if bytes > 0 => {
                lane.is_drained = (bytes as usize) < room;
                let before = done.len();
                let taken = lane.replies.took(bytes as usize, &mut self.pending, done);
                lane.awaited -= (done.len() - before) as u32;
                if taken.is_err() {
                    self.cut(index, NO_REPLY);
                }
            }
            error if matches!(-error, libc::EAGAIN | libc::EINTR) => {}
            error => self.cut(index, -error),
        }
    }

    /// Makes the servers flush all completed writes to stable storage while no request is in flight. Returns 0 or the
    /// first negative error number.
    pub fn flush(&mut self) -> i32 {
        let flush =
            Request { kind: Kind::Flush, offset_bytes: 0, length_bytes: 0, force_unit_access: false, ordered: false };
        for piece in self.map.pieces() {
            let Some(export) = piece.export() else { continue };
            let lane = self.lanes.iter_mut().find(|lane| Arc::ptr_eq(&lane.export, export));
            let result = lane.map_or(0, |lane| {
                // The flush uses the idle connection.
                export.give_back(lane.connection.take());
                let result = export.carry_out(&flush, &mut []);
                lane.connection = export.take().ok();
                lane.fd = lane.connection.as_ref().map_or(-1, Connection::fd);
                result
            });
            if result < 0 {
                return result;
            }
        }
        0
    }

    pub fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }
}

impl Drop for Nbd {
    /// Returns idle connections to their exports and shuts the others down, so that nothing more is received into freed
    /// memory.
    fn drop(&mut self) {
        for lane in &mut self.lanes {
            let is_clean = lane.broken.is_none() && lane.awaited == 0 && lane.receiving.is_none();
            let is_clean = is_clean && lane.outgoing.is_empty() && lane.replies.is_at_rest();
            if !is_clean && let Some(connection) = &lane.connection {
                connection.cut();
            } else if let Some(connection) = lane.connection.take() {
                lane.export.give_back(Some(connection));
            }
        }
        while let Some(ring) = &mut self.ring
            && self.lanes.iter().any(|lane| lane.receiving.is_some())
        {
            // A receive on a shut-down connection ends at once.
            if ring::enter(ring, None, &self.name).is_err() {
                break;
            }
            for entry in ring.completion() {
                if let Some(lane) = self.lanes.get_mut(entry.user_data() as usize) {
                    lane.receiving = None;
                }
            }
        }
        for lane in &mut self.lanes {
            if lane.connection.take().is_some() {
                lane.export.give_back(None);
            }
        }
    }
}

impl Lane {
    fn new(export: Arc<Export>, connection: Connection, keeps: bool) -> Lane {
        Lane {
            export,
            fd: connection.fd(),
            replies: Replies::new(connection.framing(), keeps),
            connection: Some(connection),
            outgoing: Outgoing::default(),
            awaited: 0,
            receiving: None,
            awaits_room: false,
            is_drained: true,
            broken: None,
        }
    }

    /// Stops sending, while replies can still arrive. Returns the first error number.
    #[cold]
    fn stop_sending(&mut self, errno: i32) -> i32 {
        self.outgoing = Outgoing::default();
        if let Some(connection) = &self.connection {
            connection.end_requests();
        }
        *self.broken.get_or_insert(errno)
    }
}

impl Outgoing {
    #[inline]
    fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    #[inline]
    fn add(&mut self, header: &[u8], memory: Memory, payload: u32) {
        self.headers.extend_from_slice(header);
        self.total += header.len() + payload as usize;
        let at = self.headers.len();
        match memory {
            _ if payload == 0 => {}
            Memory::One(data) => {
                self.payloads.push((at, libc::iovec { iov_base: data.cast(), iov_len: payload as usize }));
            }
            Memory::Many(pieces) => self.payloads.extend(pieces.iter().map(|&piece| (at, piece))),
        }
    }

    /// Sends as much as the socket has room for.
    fn send(&mut self, fd: RawFd) -> Result<(), i32> {
        while !self.is_empty() {
            let pieces = self.unsent();
            // SAFETY: an all-zero message is a valid empty message.
            let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
            message.msg_iov = pieces.as_ptr().cast_mut();
            message.msg_iovlen = pieces.len() as _;
            // SAFETY: the pieces are within the headers and buffers, which stay allocated until the call returns.
            let sent = unsafe { libc::sendmsg(fd, &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
            if sent < 0 {
                match last_error() {
                    libc::EINTR => continue,
                    libc::EAGAIN | libc::ENOBUFS => return Ok(()),
                    errno => return Err(errno),
                }
            }
            self.sent += sent as usize;
            if self.sent == self.total {
                self.headers.clear();
                self.payloads.clear();
                (self.total, self.sent) = (0, 0);
            }
        }
        Ok(())
    }

    /// Returns the buffers that are still to be sent, in order, at most as many as one call accepts.
    fn unsent(&self) -> Vec<libc::iovec> {
        let mut pieces = Vec::with_capacity(PIECES_MAX.min(2 * self.payloads.len() + 1));
        let mut skip = self.sent;
        let mut add = |piece: libc::iovec| {
            let here = skip.min(piece.iov_len);
            skip -= here;
            if here < piece.iov_len && pieces.len() < PIECES_MAX {
                // SAFETY: `here` is less than the length of the piece.
                let iov_base = unsafe { piece.iov_base.cast::<u8>().add(here) }.cast();
                pieces.push(libc::iovec { iov_base, iov_len: piece.iov_len - here });
            }
        };
        let of = |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let mut from = 0;
        for &(at, payload) in &self.payloads {
            add(of(&self.headers[from..at]));
            add(payload);
            from = at;
        }
        add(of(&self.headers[from..]));
        pieces
    }
}

/// Returns the exports of a job's address space.
fn exports(map: &TargetMap, name: &str) -> Result<Vec<Arc<Export>>, LoadError> {
    let exports = map.pieces().iter().map(|piece| piece.export().cloned()).collect::<Option<Vec<_>>>();
    exports.ok_or_else(|| LoadError::Target {
        target: name.to_owned(),
        message: "NBD exports and files cannot share a job; use one job for each".to_owned(),
    })
}

fn last_error() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
