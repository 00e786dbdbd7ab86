//! [`EventLoop`]: many connections on one thread, without waiting for any: handshakes, orders, metrics.
//!
//! An idle connection costs a descriptor and a table entry. Its stay is limited; when no more can be accepted, the
//! oldest connection is closed for a new one.

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

/// Bytes read of a connection at a time, so that none blocks the others.
const PART_BYTES: usize = 16 << 10;
/// Connections accepted at a time, for the same reason.
const ADMITTED: usize = 64;
/// Pause of accepting when descriptors are exhausted and no connection can be closed.
const SHORT_OF_FILES: Duration = Duration::from_millis(10);
/// The closing event; in epoll, listeners and connections are numbered from 0.
const CLOSING: u64 = u64::MAX;

/// Source of connections.
#[derive(Debug)]
pub(crate) enum Listener {
    /// A socket in the file system.
    Unix(UnixListener),
    /// A port.
    Tcp(TcpListener),
}

impl Listener {
    fn accept(&self) -> io::Result<OwnedFd> {
        match self {
            Listener::Unix(listener) => Ok(listener.accept()?.0.into()),
            Listener::Tcp(listener) => {
                let (socket, _) = listener.accept()?;
                // Replies are whole messages: waiting for more of them would delay them.
                socket.set_nodelay(true)?;
                // Otherwise a vanished host would keep its place forever.
                set_socket_keepalive(&socket, true)?;
                Ok(socket.into())
            }
        }
    }

    /// A client that has left before it was accepted must not block the thread.
    fn never_wait(&self) -> io::Result<()> {
        match self {
            Listener::Unix(listener) => listener.set_nonblocking(true),
            Listener::Tcp(listener) => listener.set_nonblocking(true),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// How a connection continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait for more data.
    More,
    /// Send the pending reply, then close.
    Over,
    /// Another thread takes over the connection, with the pending reply.
    Leaves,
}

/// Handler of connections. Everything runs on the event loop's thread: nothing here may wait for a connection.
pub(crate) trait Protocol: Send + 'static {
    /// State of a connection.
    type State: Send;
    /// Called for a new connection; `reply` takes a greeting.
    fn greet(&self, reply: &mut Vec<u8>) -> Self::State;
    /// Removes complete messages from the front of `received`, and appends to `reply`.
    fn on_bytes(&self, connection: &mut Self::State, received: &mut Vec<u8>, reply: &mut Vec<u8>) -> Next;
    /// Hands over a connection, with the data received and the pending reply.
    fn hand_over(
        &self,
        connection: Self::State,
        stream: Stream,
        received: Vec<u8>,
        reply: Vec<u8>,
        slot: ConnectionSlot,
    );
}

/// Limits of number and duration of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// Concurrent connections.
    pub connections_max: usize,
    /// Longest stay; unlimited if absent.
    pub stay: Option<Duration>,
}

/// Counts an open connection as long as it exists.
#[derive(Debug)]
pub(crate) struct ConnectionSlot(Arc<AtomicUsize>);

impl ConnectionSlot {
    /// Adds a connection to the counter `taken`.
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

/// A thread that accepts and serves connections.
#[derive(Debug)]
pub(crate) struct EventLoop {
    closing: OwnedFd,
    thread: JoinHandle<()>,
}

impl EventLoop {
    /// Opens the listeners; `taken` counts connections.
    ///
    /// # Errors
    /// The system's error when it has no more descriptors or threads.
    pub fn open<H: Protocol>(
        name: &str,
        listeners: Vec<Listener>,
        limits: ConnectionLimits,
        taken: &Arc<AtomicUsize>,
        protocol: H,
    ) -> io::Result<EventLoop> {
        let closing = eventfd(0, EventfdFlags::CLOEXEC)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &closing, epoll::EventData::new_u64(CLOSING), epoll::EventFlags::IN)?;
        for (number, listener) in listeners.iter().enumerate() {
            listener.never_wait()?;
            epoll::add(&epoll, listener, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
        }
        let next = listeners.len() as u64;
        let event_loop =
            Loop { epoll, listeners, limits, protocol, connections: BTreeMap::new(), next, taken: Arc::clone(taken) };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || event_loop.run())?;
        Ok(EventLoop { closing, thread })
    }

    /// Closes the listeners and all connections.
    pub fn close(self) {
        // A counter at 0 has room for 1.
        let _ = rustix::io::write(&self.closing, &1u64.to_ne_bytes());
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

struct Connection<G> {
    slot: ConnectionSlot,
    stream: Stream,
    came: Instant,
    greeting: G,
    received: Vec<u8>,
    /// Pending output.
    reply: Vec<u8>,
    next: Next,
}

struct Loop<H: Protocol> {
    epoll: OwnedFd,
    listeners: Vec<Listener>,
    limits: ConnectionLimits,
    protocol: H,
    /// By number, and so in order of arrival.
    connections: BTreeMap<u64, Connection<H::State>>,
    next: u64,
    taken: Arc<AtomicUsize>,
}

impl<H: Protocol> Loop<H> {
    fn run(mut self) {
        let mut events = Vec::with_capacity(256);
        loop {
            let left = self.first_ends().map(|ends| ends.saturating_duration_since(Instant::now()));
            let timeout = left.map(|left| Timespec::try_from(left).expect("no years"));
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                // Signals do not concern it.
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => panic!("epoll: {error}"),
            }
            for event in &events {
                match event.data.u64() {
                    CLOSING => return,
                    listener if listener < self.listeners.len() as u64 => self.admit(listener as usize),
                    connection => self.attend(connection),
                }
            }
            let now = Instant::now();
            while self.first_ends().is_some_and(|ends| ends <= now) {
                self.dismiss_first();
            }
        }
    }

    /// Time at which the oldest connection reaches its limit.
    fn first_ends(&self) -> Option<Instant> {
        let (_, first) = self.connections.first_key_value()?;
        Some(first.came + self.limits.stay?)
    }

    /// Closes the oldest connection; returns false if there is none.
    fn dismiss_first(&mut self) -> bool {
        let first = self.connections.first_key_value().map(|(&number, _)| number);
        first.is_some_and(|number| self.take_off(number).is_some())
    }

    fn take_off(&mut self, number: u64) -> Option<Connection<H::State>> {
        let connection = self.connections.remove(&number)?;
        // Otherwise epoll would report it as long as another process has the connection.
        let _ = epoll::delete(&self.epoll, connection.stream.ends().0);
        Some(connection)
    }

    fn admit(&mut self, listener: usize) {
        for _ in 0..ADMITTED {
            match self.listeners[listener].accept() {
                Ok(socket) => self.welcome(Stream::socket_of(socket)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => match Errno::from_io_error(&error) {
                    // Others wait in the listener's queue, where no place can be made.
                    Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) if !self.dismiss_first() => {
                        return thread::sleep(SHORT_OF_FILES);
                    }
                    // It has already left.
                    _ => {}
                },
            }
        }
    }

    fn welcome(&mut self, stream: Stream) {
        if self.connections.len() >= self.limits.connections_max {
            self.dismiss_first();
        }
        let number = self.next;
        let mut reply = Vec::new();
        let greeting = self.protocol.greet(&mut reply);
        let data = epoll::EventData::new_u64(number);
        if epoll::add(&self.epoll, stream.ends().0, data, epoll::EventFlags::IN).is_err() {
            return;
        }
        self.next += 1;
        let (slot, came) = (ConnectionSlot::new(&self.taken), Instant::now());
        self.connections
            .insert(number, Connection { slot, stream, came, greeting, received: Vec::new(), reply, next: Next::More });
        self.attend(number);
    }

    /// Serves a connection as far as possible without waiting.
    fn attend(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        match connection.go_on(&self.protocol) {
            Err(_) => drop(self.take_off(number)),
            Ok(true) => {}
            Ok(false) => {
                let connection = self.take_off(number).expect("it is here");
                if connection.next == Next::Leaves {
                    self.protocol.hand_over(
                        connection.greeting,
                        connection.stream,
                        connection.received,
                        connection.reply,
                        connection.slot,
                    );
                }
                return;
            }
        }
        if let Some(connection) = self.connections.get(&number) {
            // No more is received from a client that does not read.
            let wanted = if connection.reply.is_empty() { epoll::EventFlags::IN } else { epoll::EventFlags::OUT };
            let data = epoll::EventData::new_u64(number);
            if epoll::modify(&self.epoll, connection.stream.ends().0, data, wanted).is_err() {
                self.take_off(number);
            }
        }
    }
}

impl<G> Connection<G> {
    /// Sends, receives and answers as far as possible. Returns whether the connection stays.
    fn go_on<H: Protocol<State = G>>(&mut self, protocol: &H) -> io::Result<bool> {
        if !self.send_pending()? {
            return Ok(true);
        }
        if self.next == Next::More {
            let before = self.received.len();
            self.received.resize(before + PART_BYTES, 0);
            let read = self.stream.read_at_once(&mut self.received[before..])?;
            self.received.truncate(before + read.unwrap_or(0));
            match read {
                None => {}
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(_) => self.next = protocol.on_bytes(&mut self.greeting, &mut self.received, &mut self.reply),
            }
            if self.received.is_empty() {
                self.received = Vec::new();
            }
        }
        Ok(match self.next {
            Next::Leaves => false,
            Next::More => self.send_pending().map(|_| true)?,
            Next::Over => !self.send_pending()?,
        })
    }

    /// Sends pending output; returns whether all was sent.
    fn send_pending(&mut self) -> io::Result<bool> {
        let sent = if self.reply.is_empty() { 0 } else { self.stream.write_at_once(&self.reply)? };
        self.reply.drain(..sent);
        if self.reply.is_empty() {
            self.reply = Vec::new();
        }
        Ok(self.reply.is_empty())
    }
}
