//! Who listens, and the connections that came of it.
//!
//! Handshakes are held on one thread ([`EventLoop`]); a client that has chosen an export gets a thread of its own.

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
use super::negotiation::{Agreed, Cover, Negotiation, Security};
use super::output::{Output, STACK_BYTES};
use crate::LiveError;
use crate::device::Device;
use crate::event_loop::{ConnectionLimits, ConnectionSlot, EventLoop, Listener, Next, Protocol};
use crate::stream::{Patience, Stream};

/// Clients that wait to be let in, as far as the system allows (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// Long enough for any client that means to go on.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What is granted to clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From coming to having chosen an export.
    pub handshake: Duration,
    /// Clients in their handshake: the one that came first makes room for another.
    pub handshakes_max: usize,
    /// Clients that have chosen an export, as far as there is memory for them: more are hung up on.
    pub connections_max: usize,
    /// A client that holds memory for a payload or for replies has to move some of it within so long, while others wait for
    /// memory.
    pub stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { handshake: HANDSHAKE, handshakes_max: 8192, connections_max: usize::MAX, stall: HANDSHAKE }
    }
}

/// Where clients come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A port, on whichever address was said.
    Tcp(SocketAddr),
    /// A port of loopback, on both of its addresses where the machine has IPv6.
    Loopback(u16),
    /// The one client that started the server with a socket as standard input and output.
    Stdio,
    /// Sockets that a service manager opened (LISTEN_FDS).
    Activated,
}

/// What the threads of a server share.
#[derive(Debug)]
struct Shared {
    device: Arc<Device>,
    security: Security,
    limits: Limits,
    /// Connections that are open, those in their handshake among them.
    taken: Arc<AtomicUsize>,
    connections: Mutex<Connections>,
    /// A connection has ended.
    left: Condvar,
}

#[derive(Debug, Default)]
struct Connections {
    /// Connections over sockets.
    sockets: usize,
    /// The one over standard input and output, where these are pipes, which only the client can end.
    pipes: usize,
    outputs: Vec<Weak<Output>>,
}

/// An NBD server.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    /// None where clients cannot come by themselves.
    event_loop: Option<EventLoop>,
    addresses: Vec<SocketAddr>,
    paths: Vec<PathBuf>,
}

impl Server {
    /// Listens at `endpoints` and serves `device` to whoever comes.
    ///
    /// # Errors
    /// An endpoint that is in use or cannot be had.
    pub fn start(device: &Arc<Device>, endpoints: &[Endpoint], security: Security) -> Result<Server, LiveError> {
        Server::start_with(device, endpoints, security, Limits::default(), SOCKET_MODE)
    }

    /// As [`start`](Self::start), with limits of one's own and sockets of this mode.
    ///
    /// # Errors
    /// As there.
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
        // Who waits for no answer would hear of it with the next request only.
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
        // Who listens may do so again, with a longer queue.
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

    /// Addresses of the TCP ports, as the system gave them.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Connections that are open.
    pub fn connections(&self) -> usize {
        self.shared.taken.load(Ordering::Acquire)
    }

    /// Nobody is there, and nobody can come: the one client of standard input has gone.
    pub fn is_over(&self) -> bool {
        self.event_loop.is_none() && self.connections() == 0
    }

    /// Ends every connection, as a broken link does; clients may come again.
    pub fn cut_connections(&self) {
        self.shared.cut();
    }

    /// Ends every connection and listens no more. Standard input alone, where it is a pipe, stays open for as long as its
    /// client likes.
    pub fn stop(self) {
        if let Some(event_loop) = self.event_loop {
            event_loop.close();
        }
        self.shared.cut();
        let mut connections = self.shared.connections();
        while connections.sockets > 0 {
            connections = self.shared.left.wait(connections).expect("nobody panics with it");
        }
        for path in &self.paths {
            // Somebody may have removed it.
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
        self.connections.lock().expect("nobody panics with it")
    }

    fn cut(&self) {
        let outputs = std::mem::take(&mut self.connections().outputs);
        outputs.iter().filter_map(Weak::upgrade).for_each(|output| output.cut());
        // Who waits for memory finds that he need not, one after the other.
        self.device.submitter.budget().tell();
    }

    /// Gives a client whose handshake has come this far a thread of its own.
    fn connect(
        self: &Arc<Self>,
        stream: &Stream,
        agreed: Agreed,
        heard: Vec<u8>,
        say: Vec<u8>,
        slot: ConnectionSlot,
    ) -> io::Result<()> {
        let output = self.admit(stream)?;
        if matches!(agreed, Agreed::Export(_)) {
            // Before it hears so: who has been let in gives way to nobody.
            output.agree();
        }
        let deadline = Some(Instant::now() + self.limits.handshake);
        self.attend_on_thread(output, slot, move |shared, output, opened| {
            output.stream().write_all(&say)?;
            attend(&shared.device, output, agreed, &heard, (deadline, false), opened)
        })
    }

    /// Gives the client of standard input and output a thread of its own: who starts a server may take his time.
    fn connect_alone(self: &Arc<Self>, stream: &Stream) -> io::Result<()> {
        let output = self.admit(stream)?;
        let slot = ConnectionSlot::new(&self.taken);
        self.attend_on_thread(output, slot, |shared, output, opened| {
            let mut say = Vec::new();
            let mut talk = Negotiation::greet(&shared.device, &mut say);
            let cover = Cover::Clear(&shared.security);
            let (agreed, heard) = talk.conclude(&shared.device, cover, output.stream(), say, None)?;
            attend(&shared.device, output, agreed, &heard, (None, false), opened)
        })
    }

    /// Finds a place for a client.
    fn admit(&self, stream: &Stream) -> io::Result<Arc<Output>> {
        let mut connections = self.connections();
        let budget = self.device.submitter.budget();
        if connections.sockets >= self.limits.connections_max.min(budget.connections_max()) {
            // One that still shakes hands, under TLS, makes room: its place is free as soon as its thread has heard of it.
            let shaking = connections.outputs.iter().filter_map(Weak::upgrade).find(|output| output.may_be_displaced());
            let shaking = shaking.ok_or_else(|| io::Error::other("too many connections"))?;
            shaking.cut();
        }
        let patience = Patience { stall: self.limits.stall, budget: budget.clone() };
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
            // A client that goes, in the middle of a request or not, is no failure of the server.
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

/// The handshakes of a server's clients.
struct Handshakes(Arc<Shared>);

impl Protocol for Handshakes {
    type State = (Negotiation, Option<Agreed>);

    fn greet(&self, say: &mut Vec<u8>) -> Self::State {
        (Negotiation::greet(&self.0.device, say), None)
    }

    fn on_bytes(&self, (talk, agreed): &mut Self::State, heard: &mut Vec<u8>, say: &mut Vec<u8>) -> Next {
        *agreed = talk.hear(&self.0.device, Cover::Clear(&self.0.security), heard, say);
        match agreed {
            None => Next::More,
            Some(Agreed::Over) => Next::Over,
            Some(Agreed::Export(_) | Agreed::Tls(..)) => Next::Leaves,
        }
    }

    fn hand_over(&self, (_, agreed): Self::State, stream: Stream, heard: Vec<u8>, say: Vec<u8>, slot: ConnectionSlot) {
        let agreed = agreed.expect("only who has agreed on something leaves");
        // A client for which there is no thread, or no place, is hung up on.
        let _ = self.0.connect(&stream, agreed, heard, say, slot);
    }
}

fn listen_where_activated(listeners: &mut Vec<Listener>) -> Result<(), LiveError> {
    let mut given = listenfd::ListenFd::from_env();
    for index in 0..given.len() {
        listeners.push(match given.take_unix_listener(index) {
            Ok(Some(listener)) => Listener::Unix(listener),
            _ => match given.take_tcp_listener(index) {
                Ok(Some(listener)) => Listener::Tcp(listener),
                _ => {
                    let message = format!("LISTEN_FDS: {} is not a listening stream socket", 3 + index);
                    return Err(LiveError::Asked(message));
                }
            },
        });
    }
    if given.len() == 0 {
        return Err(LiveError::Asked("LISTEN_FDS: no sockets were handed over".to_owned()));
    }
    Ok(())
}

/// Who may connect to a socket where nothing is said: its owner.
pub const SOCKET_MODE: u32 = 0o600;

/// A socket at `path`, of this mode; one that a server left that is no more gives way.
///
/// # Errors
/// Something else there; a server that listens.
pub fn unix_listener(path: &Path, mode: u32) -> Result<UnixListener, LiveError> {
    let name = path.display().to_string();
    match bound(path, mode) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            use std::os::unix::fs::FileTypeExt;
            let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
            if !is_socket {
                return Err(LiveError::Asked(format!("{name}: exists, and is not a socket")));
            }
            if UnixStream::connect(path).is_ok() {
                return Err(LiveError::Asked(format!("{name}: another server listens there")));
            }
            std::fs::remove_file(path).map_err(LiveError::io(name.clone()))?;
            bound(path, mode).map_err(LiveError::io(name))
        }
        bound => bound.map_err(LiveError::io(name)),
    }
}

fn bound(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The file of the socket takes over its mode: there is no moment at which it is anybody's, whatever the umask.
    fchmod(&socket, Mode::from_raw_mode(mode & SOCKET_MODE))?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    // What the umask has taken away, and what others are granted.
    chmod(path, Mode::from_raw_mode(mode))?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// A thousand clients are a thousand descriptors, which is more than processes have by default.
pub fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // Who may not have them serves as many as he can.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
