//! A connection to a server.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use headstack_nbd::{Address, Framing, Header, Place, command};

use super::handshake::{self, Agreed};

/// A server that listens answers within so much.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that has chosen an export.
pub struct Connection {
    /// After it is connected nobody needs to know what kind of socket it is.
    stream: UnixStream,
    framing: Framing,
    /// How many requests were sent, by which replies are told apart.
    requests: u32,
}

impl Connection {
    /// Connects, and agrees with the server on its export.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn open(address: &Address) -> Result<(Connection, Agreed), String> {
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => format!("no socket is at {}", address.place),
            io::ErrorKind::ConnectionRefused => format!("nobody listens at {}", address.place),
            _ => format!("{} is not reached: {error}", address.place),
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

    /// How requests and replies look.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// The descriptor for the kernel.
    pub fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// What the next request of a slot is known by: no two of a connection's 2^32 in a row have the same.
    #[inline]
    pub fn cookie(&mut self, slot: u32) -> u64 {
        self.requests = self.requests.wrapping_add(1);
        u64::from(self.requests) << 32 | u64::from(slot)
    }

    /// Sends it all, however long the server takes to read it.
    ///
    /// # Errors
    /// The stream's.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.stream).write_all(bytes)
    }

    /// Waits for bytes that the server sends.
    ///
    /// # Errors
    /// The stream's; a server that sends nothing for long.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        (&self.stream).read(into)
    }

    /// Ends the direction to the server: it sees the end of the requests and can still send replies.
    pub fn end_requests(&self) {
        // Fails where the server has hung up already.
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// Ends both directions: what waits for the server ends.
    pub fn cut(&self) {
        // Fails where the server has done so already.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl Drop for Connection {
    /// Takes leave as the protocol has it; a server that does not listen any more needs no leave.
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
                        // Else a request would wait for the reply to the one before.
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
