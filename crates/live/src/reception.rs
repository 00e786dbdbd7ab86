//! Many connections on one thread, none of which is waited for: handshakes, orders, metrics.
//!
//! A guest that says nothing costs a descriptor and a line in a table. It has so long to come to its end; where no more can
//! be let in, the guest that has been there longest makes room for whoever comes.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_keepalive;

use crate::stream::Stream;

/// What is read of a guest at a time, so that none keeps the thread from the others.
const PART_BYTES: usize = 16 << 10;
/// Guests that are let in at a time, likewise.
const ADMITTED: usize = 64;
/// How long nobody is let in where descriptors are short and no guest can make room.
const SHORT_OF_FILES: Duration = Duration::from_millis(10);
/// The end, among what epoll tells: doors and guests are numbered from 0.
const CLOSING: u64 = u64::MAX;

/// Where guests come from.
#[derive(Debug)]
pub(crate) enum Door {
    /// A socket in the file system.
    Unix(UnixListener),
    /// A port.
    Tcp(TcpListener),
}

impl Door {
    fn accept(&self) -> io::Result<OwnedFd> {
        match self {
            Door::Unix(listener) => Ok(listener.accept()?.0.into()),
            Door::Tcp(listener) => {
                let (socket, _) = listener.accept()?;
                // Replies are whole messages: waiting for more of them would be lateness.
                socket.set_nodelay(true)?;
                // A host that vanished would hold its place for ever.
                set_socket_keepalive(&socket, true)?;
                Ok(socket.into())
            }
        }
    }

    /// A client that has gone again before it was accepted must not be waited for.
    fn never_wait(&self) -> io::Result<()> {
        match self {
            Door::Unix(listener) => listener.set_nonblocking(true),
            Door::Tcp(listener) => listener.set_nonblocking(true),
        }
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Door::Unix(listener) => listener.as_fd(),
            Door::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// How it goes on with a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// More has to come.
    More,
    /// It is told what there is to tell, and is hung up on.
    Over,
    /// It goes on elsewhere, and is told there what there is to tell.
    Leaves,
}

/// Who talks with guests. Everything happens on the reception's thread: nothing here may wait for a guest.
pub(crate) trait Host: Send + 'static {
    /// What is known of a guest.
    type Guest: Send;
    /// Somebody has come; `say` takes a greeting.
    fn greet(&self, say: &mut Vec<u8>) -> Self::Guest;
    /// Takes what is understood off the front of `heard`, and appends to `say`.
    fn hear(&self, guest: &mut Self::Guest, heard: &mut Vec<u8>, say: &mut Vec<u8>) -> Next;
    /// A guest leaves for elsewhere, with what it has said already and what it is to be told.
    fn part(&self, guest: Self::Guest, stream: Stream, heard: Vec<u8>, say: Vec<u8>, slot: ConnectionSlot);
}

/// How many may be there, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HouseRules {
    /// Guests at a time.
    pub guests_max: usize,
    /// How long each may stay; as long as it likes, if absent.
    pub stay: Option<Duration>,
}

/// A connection that is there, as long as somebody has this.
#[derive(Debug)]
pub(crate) struct ConnectionSlot(Arc<AtomicUsize>);

impl ConnectionSlot {
    /// One more of those that `taken` counts.
    pub fn new(taken: &Arc<AtomicUsize>) -> ConnectionSlot {
        taken.fetch_add(1, Ordering::AcqRel);
        ConnectionSlot(Arc::clone(taken))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A thread that lets guests in and talks with them.
#[derive(Debug)]
pub(crate) struct Reception {
    closing: OwnedFd,
    thread: JoinHandle<()>,
}

impl Reception {
    /// Opens the doors; `taken` counts guests.
    ///
    /// # Errors
    /// What the system says that has no more descriptors or threads.
    pub fn open<H: Host>(
        name: &str,
        doors: Vec<Door>,
        rules: HouseRules,
        taken: &Arc<AtomicUsize>,
        host: H,
    ) -> io::Result<Reception> {
        let closing = eventfd(0, EventfdFlags::CLOEXEC)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &closing, epoll::EventData::new_u64(CLOSING), epoll::EventFlags::IN)?;
        for (number, door) in doors.iter().enumerate() {
            door.never_wait()?;
            epoll::add(&epoll, door, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
        }
        let next = doors.len() as u64;
        let desk = Desk { epoll, doors, rules, host, guests: BTreeMap::new(), next, taken: Arc::clone(taken) };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || desk.run())?;
        Ok(Reception { closing, thread })
    }

    /// Closes the doors and hangs up on every guest.
    pub fn close(self) {
        // A counter that is 0 has room for 1.
        let _ = rustix::io::write(&self.closing, &1u64.to_ne_bytes());
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

struct Guest<G> {
    slot: ConnectionSlot,
    stream: Stream,
    came: Instant,
    known: G,
    heard: Vec<u8>,
    /// What it has still to be told.
    say: Vec<u8>,
    next: Next,
}

struct Desk<H: Host> {
    epoll: OwnedFd,
    doors: Vec<Door>,
    rules: HouseRules,
    host: H,
    /// By number, and so in the order in which they came.
    guests: BTreeMap<u64, Guest<H::Guest>>,
    next: u64,
    taken: Arc<AtomicUsize>,
}

impl<H: Host> Desk<H> {
    fn run(mut self) {
        let mut events = Vec::with_capacity(256);
        loop {
            let left = self.first_ends().map(|ends| ends.saturating_duration_since(Instant::now()));
            let timeout = left.map(|left| Timespec::try_from(left).expect("no years"));
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                // A signal is none of its business.
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => panic!("epoll: {error}"),
            }
            for event in &events {
                match event.data.u64() {
                    CLOSING => return,
                    door if door < self.doors.len() as u64 => self.admit(door as usize),
                    guest => self.attend(guest),
                }
            }
            let now = Instant::now();
            while self.first_ends().is_some_and(|ends| ends <= now) {
                self.dismiss_first();
            }
        }
    }

    /// When the guest that has been there longest has been there too long.
    fn first_ends(&self) -> Option<Instant> {
        let (_, first) = self.guests.first_key_value()?;
        Some(first.came + self.rules.stay?)
    }

    /// Hangs up on the guest that has been there longest; false if there is none.
    fn dismiss_first(&mut self) -> bool {
        let first = self.guests.first_key_value().map(|(&number, _)| number);
        first.is_some_and(|number| self.take_off(number).is_some())
    }

    fn take_off(&mut self, number: u64) -> Option<Guest<H::Guest>> {
        let guest = self.guests.remove(&number)?;
        // It would be told of for as long as anybody has the connection.
        let _ = epoll::delete(&self.epoll, guest.stream.ends().0);
        Some(guest)
    }

    fn admit(&mut self, door: usize) {
        for _ in 0..ADMITTED {
            match self.doors[door].accept() {
                Ok(socket) => self.welcome(Stream::socket_of(socket)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => match Errno::from_io_error(&error) {
                    // Others wait in the queue of the door, where nobody can make room for them.
                    Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) if !self.dismiss_first() => {
                        return thread::sleep(SHORT_OF_FILES);
                    }
                    // It has gone again.
                    _ => {}
                },
            }
        }
    }

    fn welcome(&mut self, stream: Stream) {
        if self.guests.len() >= self.rules.guests_max {
            self.dismiss_first();
        }
        let number = self.next;
        let mut say = Vec::new();
        let known = self.host.greet(&mut say);
        let data = epoll::EventData::new_u64(number);
        if epoll::add(&self.epoll, stream.ends().0, data, epoll::EventFlags::IN).is_err() {
            return;
        }
        self.next += 1;
        let (slot, came) = (ConnectionSlot::new(&self.taken), Instant::now());
        self.guests.insert(number, Guest { slot, stream, came, known, heard: Vec::new(), say, next: Next::More });
        self.attend(number);
    }

    /// Goes on with a guest as far as that goes without waiting.
    fn attend(&mut self, number: u64) {
        let Some(guest) = self.guests.get_mut(&number) else { return };
        match guest.go_on(&self.host) {
            Err(_) => drop(self.take_off(number)),
            Ok(true) => {}
            Ok(false) => {
                let guest = self.take_off(number).expect("it is here");
                if guest.next == Next::Leaves {
                    self.host.part(guest.known, guest.stream, guest.heard, guest.say, guest.slot);
                }
                return;
            }
        }
        if let Some(guest) = self.guests.get(&number) {
            // Who does not listen is not heard.
            let wanted = if guest.say.is_empty() { epoll::EventFlags::IN } else { epoll::EventFlags::OUT };
            let data = epoll::EventData::new_u64(number);
            if epoll::modify(&self.epoll, guest.stream.ends().0, data, wanted).is_err() {
                self.take_off(number);
            }
        }
    }
}

impl<G> Guest<G> {
    /// Says what is to be said, hears what has come, and answers it. Returns whether it stays.
    fn go_on<H: Host<Guest = G>>(&mut self, host: &H) -> io::Result<bool> {
        if !self.tell()? {
            return Ok(true);
        }
        if self.next == Next::More {
            let before = self.heard.len();
            self.heard.resize(before + PART_BYTES, 0);
            let read = self.stream.read_at_once(&mut self.heard[before..])?;
            self.heard.truncate(before + read.unwrap_or(0));
            match read {
                None => {}
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(_) => self.next = host.hear(&mut self.known, &mut self.heard, &mut self.say),
            }
            if self.heard.is_empty() {
                self.heard = Vec::new();
            }
        }
        Ok(match self.next {
            Next::Leaves => false,
            Next::More => self.tell().map(|_| true)?,
            Next::Over => !self.tell()?,
        })
    }

    /// Whether everything has been said.
    fn tell(&mut self) -> io::Result<bool> {
        let sent = if self.say.is_empty() { 0 } else { self.stream.write_at_once(&self.say)? };
        self.say.drain(..sent);
        if self.say.is_empty() {
            self.say = Vec::new();
        }
        Ok(self.say.is_empty())
    }
}
