//! What a connection runs over: a socket, or the two ends of a pipe.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::net::{RecvFlags, Shutdown, recv, shutdown};

/// A connection's two directions.
#[derive(Clone, Debug)]
pub enum Stream {
    /// One socket for both.
    Socket(Arc<OwnedFd>),
    /// Standard input and output that are no socket.
    Pipes(Arc<File>, Arc<File>),
}

impl Stream {
    /// A connection over a socket.
    pub fn socket_of(socket: impl Into<OwnedFd>) -> Stream {
        Stream::Socket(Arc::new(socket.into()))
    }

    /// Standard input and output, which a client has made for the server.
    ///
    /// # Errors
    /// They are closed.
    pub fn stdio() -> io::Result<Stream> {
        let (input, output) = (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
        let is_socket = rustix::net::sockopt::socket_type(&input).is_ok();
        Ok(if is_socket {
            Stream::socket_of(input)
        } else {
            Stream::Pipes(Arc::new(input.into()), Arc::new(output.into()))
        })
    }

    /// The socket, where it is one.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Stream::Socket(socket) => Some(socket.as_fd()),
            Stream::Pipes(..) => None,
        }
    }

    /// Reads what has come; 0 at the end.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = match self {
                Stream::Socket(socket) => {
                    recv(socket, &mut *into, RecvFlags::empty()).map(|(got, _)| got).map_err(Into::into)
                }
                Stream::Pipes(input, _) => (&**input).read(into),
            };
            match got {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                got => return got,
            }
        }
    }

    /// Writes all of it, waiting for the client where it must.
    pub fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Socket(socket) => {
                while !bytes.is_empty() {
                    match rustix::net::send(socket, bytes, rustix::net::SendFlags::NOSIGNAL) {
                        Ok(sent) => bytes = &bytes[sent..],
                        Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(())
            }
            Stream::Pipes(_, output) => (&**output).write_all(bytes),
        }
    }

    /// Ends both directions of a socket. A pipe ends with its client.
    pub fn shut(&self) {
        if let Stream::Socket(socket) = self {
            // Who has gone already needs no end.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}
