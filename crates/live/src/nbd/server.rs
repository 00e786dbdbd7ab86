//! Who listens, and the connections that came of it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::sockopt::set_socket_keepalive;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::attend;
use super::negotiation::{Cover, Security};
use super::output::{Output, STACK_BYTES};
use super::stream::Stream;
use crate::LiveError;
use crate::device::Device;

/// Connections at a time: more are hung up on at once.
const CONNECTIONS_MAX: usize = 4096;
/// Where clients come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A port, on whichever address was said.
    Tcp(SocketAddr),
    /// The one client that started the server with a socket as standard input and output.
    Stdio,
    /// Sockets that a service manager opened (LISTEN_FDS).
    Activated,
}

#[derive(Debug)]
enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    fn accept(&self) -> io::Result<OwnedFd> {
        match self {
            Listener::Unix(listener) => Ok(listener.accept()?.0.into()),
            Listener::Tcp(listener) => {
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
            Listener::Unix(listener) => listener.set_nonblocking(true),
            Listener::Tcp(listener) => listener.set_nonblocking(true),
        }
    }

    fn poll_fd(&self) -> PollFd<'_> {
        match self {
            Listener::Unix(listener) => PollFd::new(listener, PollFlags::IN),
            Listener::Tcp(listener) => PollFd::new(listener, PollFlags::IN),
        }
    }
}

/// What the threads of a server share.
#[derive(Debug)]
struct Hall {
    device: Arc<Device>,
    security: Security,
    /// Readable from when listeners are to end.
    closing: OwnedFd,
    guests: Mutex<Guests>,
    /// A connection has ended.
    left: Condvar,
}

#[derive(Debug, Default)]
struct Guests {
    /// Connections over sockets.
    sockets: usize,
    /// The one over standard input and output, where these are pipes, which only the client can end.
    pipes: usize,
    outputs: Vec<Weak<Output>>,
}

/// An NBD server.
#[derive(Debug)]
pub struct Server {
    hall: Arc<Hall>,
    listeners: Vec<JoinHandle<()>>,
    addresses: Vec<SocketAddr>,
    paths: Vec<PathBuf>,
}

impl Server {
    /// Listens at `endpoints` and serves `device` to whoever comes.
    ///
    /// # Errors
    /// An endpoint that is in use or cannot be had.
    pub fn start(device: &Arc<Device>, endpoints: &[Endpoint], security: Security) -> Result<Server, LiveError> {
        allow_many_files();
        let closing = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| LiveError::io("an eventfd")(error.into()))?;
        let hall =
            Hall { device: Arc::clone(device), security, closing, guests: Mutex::default(), left: Condvar::new() };
        let mut server =
            Server { hall: Arc::new(hall), listeners: Vec::new(), addresses: Vec::new(), paths: Vec::new() };
        match endpoints.iter().try_for_each(|endpoint| server.open(endpoint)) {
            Ok(()) => Ok(server),
            Err(error) => {
                server.stop();
                Err(error)
            }
        }
    }

    fn open(&mut self, endpoint: &Endpoint) -> Result<(), LiveError> {
        match endpoint {
            Endpoint::Unix(path) => {
                let listener = unix_listener(path)?;
                self.paths.push(path.clone());
                self.listen(Listener::Unix(listener))
            }
            Endpoint::Tcp(address) => {
                let named = format!("tcp {address}");
                let listener = TcpListener::bind(address).map_err(LiveError::io(named.clone()))?;
                self.addresses.push(listener.local_addr().map_err(LiveError::io(named))?);
                self.listen(Listener::Tcp(listener))
            }
            Endpoint::Stdio => {
                let stream = Stream::stdio().map_err(LiveError::io("standard input and output"))?;
                self.hall.connect(stream).map_err(LiveError::io("a thread of the server"))
            }
            Endpoint::Activated => self.listen_where_activated(),
        }
    }

    fn listen_where_activated(&mut self) -> Result<(), LiveError> {
        let mut given = listenfd::ListenFd::from_env();
        for index in 0..given.len() {
            let listener = match given.take_unix_listener(index) {
                Ok(Some(listener)) => Listener::Unix(listener),
                _ => match given.take_tcp_listener(index) {
                    Ok(Some(listener)) => Listener::Tcp(listener),
                    _ => {
                        return Err(LiveError::Asked(format!(
                            "LISTEN_FDS: {} is no listening stream socket",
                            3 + index
                        )));
                    }
                },
            };
            self.listen(listener)?;
        }
        if given.len() == 0 {
            return Err(LiveError::Asked("LISTEN_FDS: no sockets were handed over".to_owned()));
        }
        Ok(())
    }

    fn listen(&mut self, listener: Listener) -> Result<(), LiveError> {
        listener.never_wait().map_err(LiveError::io("a listening socket"))?;
        let hall = Arc::clone(&self.hall);
        let thread = spawn("headstack-listen", move || hall.welcome(&listener));
        self.listeners.push(thread.map_err(LiveError::io("a thread of the server"))?);
        Ok(())
    }

    /// Addresses of the TCP ports, as the system gave them.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Connections that are open.
    pub fn connections(&self) -> usize {
        let guests = self.hall.guests();
        guests.sockets + guests.pipes
    }

    /// Nobody is there, and nobody can come: the one client of standard input has gone.
    pub fn is_over(&self) -> bool {
        self.listeners.iter().all(JoinHandle::is_finished) && self.connections() == 0
    }

    /// Ends every connection, as a broken link does; clients may come again.
    pub fn cut_connections(&self) {
        self.hall.cut();
    }

    /// Ends every connection and listens no more. Standard input alone, where it is a pipe, stays open for as long as its
    /// client likes.
    pub fn stop(self) {
        // A counter that is 0 has room for 1.
        let _ = rustix::io::write(&self.hall.closing, &1u64.to_ne_bytes());
        for listener in self.listeners {
            let _ = listener.join();
        }
        self.hall.cut();
        let mut guests = self.hall.guests();
        while guests.sockets > 0 {
            guests = self.hall.left.wait(guests).expect("nobody panics with it");
        }
        for path in &self.paths {
            // Somebody may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Guests {
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

impl Hall {
    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().expect("nobody panics with it")
    }

    fn cut(&self) {
        let outputs = std::mem::take(&mut self.guests().outputs);
        outputs.iter().filter_map(Weak::upgrade).for_each(|output| output.cut());
    }

    /// Accepts until the server closes.
    fn welcome(self: &Arc<Self>, listener: &Listener) {
        loop {
            let mut ends = [listener.poll_fd(), PollFd::new(&self.closing, PollFlags::IN)];
            // A signal is none of its business: it looks again.
            let _ = poll(&mut ends, None);
            if !ends[1].revents().is_empty() {
                return;
            }
            if ends[0].revents().is_empty() {
                continue;
            }
            match listener.accept() {
                Ok(socket) => {
                    // A client for which there is no thread is hung up on.
                    let _ = self.connect(Stream::socket_of(socket));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Without descriptors to spare, clients wait in the listener's queue.
                Err(_) => thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Gives a client a thread of its own.
    fn connect(self: &Arc<Self>, stream: Stream) -> io::Result<()> {
        let output = Output::new(stream.clone());
        {
            let mut guests = self.guests();
            if guests.sockets >= CONNECTIONS_MAX {
                return Err(io::Error::other("too many connections"));
            }
            *guests.of_kind(&stream) += 1;
            guests.know(&output);
        }
        let hall = Arc::clone(self);
        let served = spawn("headstack-nbd", move || {
            let opened = |output: &Arc<Output>| hall.guests().know(output);
            // A client that goes, in the middle of a request or not, is no failure of the server.
            let _ = attend(&hall.device, &output, Cover::Clear(&hall.security), &opened);
            output.stream().shut();
            hall.forget(output.stream());
        });
        served.map(drop).inspect_err(|_| self.forget(&stream))
    }

    fn forget(&self, stream: &Stream) {
        *self.guests().of_kind(stream) -= 1;
        self.left.notify_all();
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(work)
}

/// A socket at `path`; one that a server left that is no more gives way.
///
/// # Errors
/// Something else there; a server that listens.
pub fn unix_listener(path: &Path) -> Result<UnixListener, LiveError> {
    let name = path.display().to_string();
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            use std::os::unix::fs::FileTypeExt;
            let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
            if !is_socket {
                return Err(LiveError::Asked(format!("{name}: exists, and is no socket")));
            }
            if UnixStream::connect(path).is_ok() {
                return Err(LiveError::Asked(format!("{name}: another server listens there")));
            }
            std::fs::remove_file(path).map_err(LiveError::io(name.clone()))?;
            UnixListener::bind(path).map_err(LiveError::io(name))
        }
        bound => bound.map_err(LiveError::io(name)),
    }
}

/// A thousand clients are a thousand descriptors, which is more than processes have by default.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // Who may not have them serves as many as he can.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
