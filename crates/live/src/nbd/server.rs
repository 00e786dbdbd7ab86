//! Who listens, and the connections that came of it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::output::{Output, STACK_BYTES};
use super::stream::Stream;
use super::{Security, serve};
use crate::LiveError;
use crate::device::Device;

/// Connections at a time: more are hung up on at once.
const CONNECTIONS_MAX: usize = 4096;
/// How often a listener looks whether it is to end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

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
                Ok(socket.into())
            }
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
#[derive(Debug, Default)]
struct Hall {
    closing: AtomicBool,
    connections: AtomicUsize,
    outputs: Mutex<Vec<Weak<Output>>>,
}

/// An NBD server.
#[derive(Debug)]
pub struct Server {
    hall: Arc<Hall>,
    listeners: Vec<JoinHandle<()>>,
    addresses: Vec<SocketAddr>,
    sockets: Vec<PathBuf>,
}

impl Server {
    /// Listens at `endpoints` and serves `device` to whoever comes.
    ///
    /// # Errors
    /// An endpoint that is in use or cannot be had.
    pub fn start(device: &Arc<Device>, endpoints: &[Endpoint], security: Security) -> Result<Server, LiveError> {
        allow_many_files();
        let mut server =
            Server { hall: Arc::default(), listeners: Vec::new(), addresses: Vec::new(), sockets: Vec::new() };
        for endpoint in endpoints {
            match endpoint {
                Endpoint::Unix(path) => {
                    let listener = unix_listener(path)?;
                    server.sockets.push(path.clone());
                    server.listen(device, Listener::Unix(listener), security)?;
                }
                Endpoint::Tcp(address) => {
                    let named = format!("tcp {address}");
                    let listener = TcpListener::bind(address).map_err(LiveError::io(named.clone()))?;
                    server.addresses.push(listener.local_addr().map_err(LiveError::io(named))?);
                    server.listen(device, Listener::Tcp(listener), security)?;
                }
                Endpoint::Stdio => {
                    let stream = Stream::stdio().map_err(LiveError::io("standard input and output"))?;
                    let (device, hall) = (Arc::clone(device), Arc::clone(&server.hall));
                    server.listeners.push(spawn("headstack-stdio", move || attend(&device, &stream, security, &hall))?);
                }
                Endpoint::Activated => server.listen_where_activated(device, security)?,
            }
        }
        Ok(server)
    }

    fn listen_where_activated(&mut self, device: &Arc<Device>, security: Security) -> Result<(), LiveError> {
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
            self.listen(device, listener, security)?;
        }
        if given.len() == 0 {
            return Err(LiveError::Asked("LISTEN_FDS: no sockets were handed over".to_owned()));
        }
        Ok(())
    }

    fn listen(&mut self, device: &Arc<Device>, listener: Listener, security: Security) -> Result<(), LiveError> {
        let (device, hall) = (Arc::clone(device), Arc::clone(&self.hall));
        self.listeners.push(spawn("headstack-listen", move || {
            while !hall.closing.load(Ordering::Relaxed) {
                let came = poll(&mut [listener.poll_fd()], Some(&LOOK)).unwrap_or(0) > 0;
                if !came {
                    continue;
                }
                match listener.accept() {
                    Ok(socket) => connect(&device, socket, security, &hall),
                    // Without descriptors to spare, clients wait in the listener's queue.
                    Err(_) => thread::sleep(Duration::from_millis(10)),
                }
            }
        })?);
        Ok(())
    }

    /// Addresses of the TCP ports, as the system gave them.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Connections that are open.
    pub fn connections(&self) -> usize {
        self.hall.connections.load(Ordering::Relaxed)
    }

    /// Every listener has ended: the one client of standard input has gone.
    pub fn is_over(&self) -> bool {
        self.listeners.iter().all(JoinHandle::is_finished)
    }

    /// Ends every connection, as a broken link does; clients may come again.
    pub fn cut_connections(&self) {
        self.hall.cut();
    }

    /// Ends every connection and listens no more.
    pub fn stop(self) {
        self.hall.closing.store(true, Ordering::Relaxed);
        self.hall.cut();
        for listener in self.listeners {
            // Standard input may stay open for as long as its client likes.
            if listener.thread().name() != Some("headstack-stdio") {
                let _ = listener.join();
            }
        }
        for path in &self.sockets {
            // Somebody may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Hall {
    fn cut(&self) {
        let outputs = std::mem::take(&mut *self.outputs.lock().expect("nobody panics with it"));
        outputs.iter().filter_map(Weak::upgrade).for_each(|output| output.cut());
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, LiveError> {
    let thread = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    thread.spawn(work).map_err(LiveError::io("a thread of the server"))
}

fn connect(device: &Arc<Device>, socket: OwnedFd, security: Security, hall: &Arc<Hall>) {
    if hall.connections.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
        return;
    }
    let (device, theirs) = (Arc::clone(device), Arc::clone(hall));
    hall.connections.fetch_add(1, Ordering::Relaxed);
    let served = spawn("headstack-nbd", move || {
        attend(&device, &Stream::socket_of(socket), security, &theirs);
        theirs.connections.fetch_sub(1, Ordering::Relaxed);
    });
    if served.is_err() {
        hall.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn attend(device: &Device, stream: &Stream, security: Security, hall: &Hall) {
    let opened = |output: &Arc<Output>| {
        let mut outputs = hall.outputs.lock().expect("nobody panics with it");
        outputs.retain(|output| output.strong_count() > 0);
        outputs.push(Arc::downgrade(output));
    };
    // A client that goes, in the middle of a request or not, is no failure of the server.
    let _ = serve(device, stream, security, opened);
    stream.shut();
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
