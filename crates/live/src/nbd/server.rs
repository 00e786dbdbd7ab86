//! [`Server`]: listeners and their connections.
//!
//! Handshakes run on one thread ([`EventLoop`]); a client that has chosen an export gets its own thread.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, chmod, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::attend;
use super::negotiation::{Cover, HandshakeOutcome, Negotiation, Security};
use super::output::{Output, STACK_BYTES};
use crate::LiveError;
use crate::device::Device;
use crate::event_loop::{ConnectionLimits, ConnectionSlot, EventLoop, Listener, Next, Protocol};
use crate::stream::{ClientTimeout, Stream};

/// Length of the listen queue, as far as the system allows (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// Time limit of a handshake, sufficient for any serious client.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Limits for clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time from connecting to having chosen an export.
    pub handshake: Duration,
    /// Concurrent handshakes: the oldest is closed for a new one.
    pub handshakes_max: usize,
    /// Clients that have chosen an export, as far as there is memory: more are disconnected.
    pub connections_max: usize,
    /// Time within which a client that holds memory for a payload or replies has to make progress while others wait for
    /// memory.
    pub stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { handshake: HANDSHAKE, handshakes_max: 8192, connections_max: usize::MAX, stall: HANDSHAKE }
    }
}

/// An endpoint for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A unix socket.
    Unix(PathBuf),
    /// A port at any address.
    Tcp(SocketAddr),
    /// A loopback port, on both of its addresses if the machine has IPv6.
    Loopback(u16),
    /// The single client that started the server with a socket as standard input and output.
    Stdio,
    /// Sockets opened by a service manager (LISTEN_FDS).
    Activated,
}

/// Shared state of the server's threads.
#[derive(Debug)]
struct Shared {
    device: Arc<Device>,
    security: Security,
    limits: Limits,
    /// Open connections, including those in their handshake.
    taken: Arc<AtomicUsize>,
    connections: Mutex<Connections>,
    /// Signals that a connection has ended.
    left: Condvar,
}

#[derive(Debug, Default)]
struct Connections {
    /// Connections over sockets.
    sockets: usize,
    /// The one over standard input and output if these are pipes, which only the client can end.
    pipes: usize,
    outputs: Vec<Weak<Output>>,
}

/// An NBD server.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    /// `None` if clients cannot connect by themselves.
    event_loop: Option<EventLoop>,
    addresses: Vec<SocketAddr>,
    paths: Vec<PathBuf>,
}

impl Server {
    /// Listens at `endpoints` and serves `device`.
    ///
    /// # Errors
    /// When an endpoint is in use or not available.
    pub fn start(device: &Arc<Device>, endpoints: &[Endpoint], security: Security) -> Result<Server, LiveError> {
        Server::start_with(device, endpoints, security, Limits::default(), SOCKET_MODE)
    }

    /// Like [`start`](Self::start), with other limits and mode of the sockets.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_with(
        device: &Arc<Device>,
        endpoints: &[Endpoint],
        security: Security,
        limits: Limits,
        socket_mode: u32,
    ) -> Result<Server, LiveError> {
        allow_many_files();
        let (device, connections, left) = (Arc::clone(device), Mutex::default(), Condvar::new());
        let shared = Shared { device, security, limits, taken: Arc::default(), connections, left };
        let shared = Arc::new(shared);
        let clients = Arc::downgrade(&shared);
        // A client that waits for no answer would otherwise only notice with its next request.
        shared.device.submitter.gate().on_cut(move || {
            if let Some(shared) = clients.upgrade() {
                shared.cut();
            }
        });
        let mut server = Server { shared, event_loop: None, addresses: Vec::new(), paths: Vec::new() };
        let mut listeners = Vec::new();
        let opened = endpoints.iter().try_for_each(|endpoint| server.open(endpoint, socket_mode, &mut listeners));
        match opened.and_then(|()| server.receive(listeners)) {
            Ok(()) => Ok(server),
            Err(error) => {
                server.stop();
                Err(error)
            }
        }
    }

    fn open(&mut self, endpoint: &Endpoint, socket_mode: u32, listeners: &mut Vec<Listener>) -> Result<(), LiveError> {
        match endpoint {
            Endpoint::Unix(path) => {
                let listener = unix_listener(path, socket_mode)?;
                self.paths.push(path.clone());
                listeners.push(Listener::Unix(listener));
            }
            Endpoint::Tcp(address) => {
                self.listen_at(*address, listeners).map_err(LiveError::io(format!("tcp {address}")))?;
            }
            Endpoint::Loopback(port) => {
                let first = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
                let bound = self.listen_at(first, listeners).map_err(LiveError::io(format!("tcp {first}")))?;
                let second = SocketAddr::from((Ipv6Addr::LOCALHOST, bound.port()));
                match self.listen_at(second, listeners) {
                    // A machine without IPv6.
                    Err(error) if matches!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT)) => {}
                    bound => drop(bound.map_err(LiveError::io(format!("tcp {second}")))?),
                }
            }
            Endpoint::Stdio => {
                let stream = Stream::stdio().map_err(LiveError::io("standard input and output"))?;
                self.shared.connect_alone(&stream).map_err(LiveError::io("a thread of the server"))?;
            }
            Endpoint::Activated => listen_where_activated(listeners)?,
        }
        Ok(())
    }

    fn listen_at(&mut self, address: SocketAddr, listeners: &mut Vec<Listener>) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(address)?;
        // Listening again changes the length of the queue.
        listen(&listener, BACKLOG).map_err(io::Error::from)?;
        let bound = listener.local_addr()?;
        self.addresses.push(bound);
        listeners.push(Listener::Tcp(listener));
        Ok(bound)
    }

    fn receive(&mut self, listeners: Vec<Listener>) -> Result<(), LiveError> {
        if listeners.is_empty() {
            return Ok(());
        }
        let Limits { handshake, handshakes_max, .. } = self.shared.limits;
        let limits = ConnectionLimits { connections_max: handshakes_max, stay: Some(handshake) };
        let opened = EventLoop::open(
            "headstack-listen",
            listeners,
            limits,
            &self.shared.taken,
            Handshakes(Arc::clone(&self.shared)),
        );
        self.event_loop = Some(opened.map_err(LiveError::io("a thread of the server"))?);
        Ok(())
    }

    /// Addresses of the TCP ports, as assigned by the system.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.taken.load(Ordering::Acquire)
    }

    /// Whether the single client of standard input has left, so that no more clients can come.
    pub fn is_over(&self) -> bool {
        self.event_loop.is_none() && self.connections() == 0
    }

    /// Ends every connection as a broken link does; clients may reconnect.
    pub fn cut_connections(&self) {
        self.shared.cut();
    }

    /// Ends every connection and stops listening. Only pipes of standard input remain open until their client closes
    /// them.
    pub fn stop(self) {
        if let Some(event_loop) = self.event_loop {
            event_loop.close();
        }
        self.shared.cut();
        let mut connections = self.shared.connections();
        while connections.sockets > 0 {
            connections = self.shared.left.wait(connections).expect("the lock is not poisoned");
        }
        for path in &self.paths {
            // The user may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Connections {
    fn of_kind(&mut self, stream: &Stream) -> &mut usize {
        match stream {
            Stream::Socket(_) => &mut self.sockets,
            Stream::Pipes(..) => &mut self.pipes,
        }
    }

    fn know(&mut self, output: &Arc<Output>) {
        self.outputs.retain(|output| output.strong_count() > 0);
        self.outputs.push(Arc::downgrade(output));
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().expect("the lock is not poisoned")
    }

    fn cut(&self) {
        let outputs = std::mem::take(&mut self.connections().outputs);
        outputs.iter().filter_map(Weak::upgrade).for_each(|output| output.cut());
        // Waiting threads notice one after another that they need not wait.
        self.device.submitter.budget().wake_next();
    }

    /// Gives a client whose handshake is finished its own thread.
    fn connect(
        self: &Arc<Self>,
        stream: &Stream,
        agreed: HandshakeOutcome,
        received: Vec<u8>,
        reply_bytes: Vec<u8>,
        slot: ConnectionSlot,
    ) -> io::Result<()> {
        let output = self.admit(stream)?;
        if matches!(agreed, HandshakeOutcome::Export(_)) {
            // Set before the client is notified: an admitted client is not displaced.
            output.agree();
        }
        let deadline = Some(Instant::now() + self.limits.handshake);
        self.attend_on_thread(output, slot, move |shared, output, opened| {
            output.stream().write_all(&reply_bytes)?;
            attend(&shared.device, output, agreed, &received, (deadline, false), opened)
        })
    }

    /// Gives the client of standard input and output its own thread, without a time limit for the handshake.
    fn connect_alone(self: &Arc<Self>, stream: &Stream) -> io::Result<()> {
        let output = self.admit(stream)?;
        let slot = ConnectionSlot::new(&self.taken);
        self.attend_on_thread(output, slot, |shared, output, opened| {
            let mut reply_bytes = Vec::new();
            let mut talk = Negotiation::greet(&shared.device, &mut reply_bytes);
            let cover = Cover::Clear(&shared.security);
            let (agreed, received) = talk.conclude(&shared.device, cover, output.stream(), reply_bytes, None)?;
            attend(&shared.device, output, agreed, &received, (None, false), opened)
        })
    }

    /// Admits a client if there is a place.
    fn admit(&self, stream: &Stream) -> io::Result<Arc<Output>> {
        let mut connections = self.connections();
        let budget = self.device.submitter.budget();
        if connections.sockets >= self.limits.connections_max.min(budget.connections_max()) {
            // A client still in its TLS handshake is displaced: its place is free as soon as its thread notices.
            let shaking = connections.outputs.iter().filter_map(Weak::upgrade).find(|output| output.may_be_displaced());
            let shaking = shaking.ok_or_else(|| io::Error::other("too many connections"))?;
            shaking.cut();
        }
        let patience = ClientTimeout { stall: self.limits.stall, budget: budget.clone() };
        let output = Output::new(stream.clone(), patience);
        *connections.of_kind(stream) += 1;
        connections.know(&output);
        Ok(output)
    }

    fn attend_on_thread(
        self: &Arc<Self>,
        output: Arc<Output>,
        slot: ConnectionSlot,
        work: impl FnOnce(&Shared, &Arc<Output>, &dyn Fn(&Arc<Output>)) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let (shared, stream) = (Arc::clone(self), output.stream().clone());
        let thread = thread::Builder::new().name("headstack-nbd".to_owned()).stack_size(STACK_BYTES);
        let served = thread.spawn(move || {
            let opened = |output: &Arc<Output>| shared.connections().know(output);
            // A client that leaves, in the middle of a request or not, is no failure of the server.
            let _ = work(&shared, &output, &opened);
            output.stream().shut();
            shared.forget(output.stream());
            drop(slot);
        });
        served.map(drop).inspect_err(|_| self.forget(&stream))
    }

    fn forget(&self, stream: &Stream) {
        *self.connections().of_kind(stream) -= 1;
        self.left.notify_all();
    }
}

/// The event loop's handler of handshakes.
struct Handshakes(Arc<Shared>);

impl Protocol for Handshakes {
    type State = (Negotiation, Option<HandshakeOutcome>);

    fn greet(&self, reply_bytes: &mut Vec<u8>) -> Self::State {
        (Negotiation::greet(&self.0.device, reply_bytes), None)
    }

    fn on_bytes(&self, (talk, agreed): &mut Self::State, received: &mut Vec<u8>, reply_bytes: &mut Vec<u8>) -> Next {
        *agreed = talk.hear(&self.0.device, Cover::Clear(&self.0.security), received, reply_bytes);
        match agreed {
            None => Next::More,
            Some(HandshakeOutcome::Over) => Next::Over,
            Some(HandshakeOutcome::Export(_) | HandshakeOutcome::Tls(..)) => Next::Leaves,
        }
    }

    fn hand_over(
        &self,
        (_, agreed): Self::State,
        stream: Stream,
        received: Vec<u8>,
        reply_bytes: Vec<u8>,
        slot: ConnectionSlot,
    ) {
        let agreed = agreed.expect("only an admitted client leaves");
        // Without a thread or a place, the client is disconnected.
        let _ = self.0.connect(&stream, agreed, received, reply_bytes, slot);
    }
}

fn listen_where_activated(listeners: &mut Vec<Listener>) -> Result<(), LiveError> {
    let mut listen_fds = listenfd::ListenFd::from_env();
    for index in 0..listen_fds.len() {
        listeners.push(match listen_fds.take_unix_listener(index) {
            Ok(Some(listener)) => Listener::Unix(listener),
            _ => match listen_fds.take_tcp_listener(index) {
                Ok(Some(listener)) => Listener::Tcp(listener),
                _ => {
                    let message = format!("LISTEN_FDS: {} is not a listening stream socket", 3 + index);
                    return Err(LiveError::Invalid(message));
                }
            },
        });
    }
    if listen_fds.len() == 0 {
        return Err(LiveError::Invalid("LISTEN_FDS: no sockets were passed".to_owned()));
    }
    Ok(())
}

/// Default mode of a socket: only its owner may connect.
pub const SOCKET_MODE: u32 = 0o600;

/// Listens on a socket at `path`, of this mode; the socket of a dead server is replaced.
///
/// # Errors
/// When something else is there, or a server listens.
pub fn unix_listener(path: &Path, mode: u32) -> Result<UnixListener, LiveError> {
    let name = path.display().to_string();
    match bound(path, mode) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            use std::os::unix::fs::FileTypeExt;
            let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
            if !is_socket {
                return Err(LiveError::Invalid(format!("{name}: exists and is not a socket")));
            }
            if UnixStream::connect(path).is_ok() {
                return Err(LiveError::Invalid(format!("{name}: another server already listens there")));
            }
            std::fs::remove_file(path).map_err(LiveError::io(name.clone()))?;
            bound(path, mode).map_err(LiveError::io(name))
        }
        bound => bound.map_err(LiveError::io(name)),
    }
}

fn bound(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The socket's file inherits this mode, so that it is never open to others, with any umask.
    fchmod(&socket, Mode::from_raw_mode(mode & SOCKET_MODE))?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    // Restores bits that the umask removed, and grants access to others.
    chmod(path, Mode::from_raw_mode(mode))?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Raises the limit of open files: a thousand clients need a thousand descriptors, which is more than the default.
pub fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // Without the permission, the server serves as many as it can.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
