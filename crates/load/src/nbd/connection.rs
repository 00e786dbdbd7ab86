//! [`Connection`]: a connection to an NBD server.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use headstack_nbd::{Address, Framing, Header, Place, command};

use super::handshake::{self, Agreed};

/// Time-out for a response of the server.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection with a negotiated export.
pub struct Connection {
    /// A socket of any kind; a Unix socket type works for all kinds once it is connected.
    stream: UnixStream,
    framing: Framing,
    /// Number of requests sent, which identifies replies.
    requests: u32,
}

impl Connection {
    /// Connects to the server and negotiates the export.
    ///
    /// # Errors
    /// Returns the reason as text.
    pub fn open(address: &Address) -> Result<(Connection, Agreed), String> {
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => format!("there is no socket at {}", address.place),
            io::ErrorKind::ConnectionRefused => format!("no server listens at {}", address.place),
            _ => format!("cannot connect to {}: {error}", address.place),
        };
        let stream = connect(&address.place).map_err(refused)?;
        let set_up = |stream: &UnixStream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))
        };
        set_up(&stream).map_err(refused)?;
        let agreed = handshake::hold(&mut &stream, &address.export)?;
        Ok((Connection { stream, framing: agreed.framing, requests: 0 }, agreed))
    }

    /// Returns the format of requests and replies.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns the socket's descriptor.
    pub fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// Returns the cookie for the slot's next request. Any 2^32 successive requests of a connection have different
    /// cookies.
    #[inline]
    pub fn cookie(&mut self, slot: u32) -> u64 {
        self.requests = self.requests.wrapping_add(1);
        u64::from(self.requests) << 32 | u64::from(slot)
    }

    /// Sends all bytes, however long the server takes to read them.
    ///
    /// # Errors
    /// Returns the stream's error.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.stream).write_all(bytes)
    }

    /// Waits for bytes from the server.
    ///
    /// # Errors
    /// Returns the stream's error, or a time-out.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        (&self.stream).read(into)
    }

    /// Closes the sending direction: the server sees the end of the requests, but can still send replies.
    pub fn end_requests(&self) {
        // Fails if the server has already hung up, which is fine.
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// Closes both directions, which ends all waits for the server.
    pub fn cut(&self) {
        // Fails if the server has already hung up, which is fine.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl Drop for Connection {
    /// Disconnects as the protocol requires. A server that no longer listens needs no notice.
    fn drop(&mut self) {
        let leave = Header { flags: 0, command: command::DISC, cookie: 0, offset_bytes: 0, length_bytes: 0 };
        let _ = self.stream.set_nonblocking(true);
        let _ = self.send(&leave.to_bytes(self.framing));
    }
}

fn connect(place: &Place) -> io::Result<UnixStream> {
    match place {
        Place::Unix(path) => UnixStream::connect(path),
        Place::Tcp { host, port } => {
            let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
            for address in (host.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, PATIENCE) {
                    Ok(stream) => {
                        // Without this, a request would wait for the reply to the previous one.
                        stream.set_nodelay(true)?;
                        return Ok(UnixStream::from(OwnedFd::from(stream)));
                    }
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}
