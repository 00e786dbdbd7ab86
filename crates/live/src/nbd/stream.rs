//! What a connection runs over: a socket, or the two ends of a pipe.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

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

    /// What is read from, and what is written to.
    pub fn ends(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        match self {
            Stream::Socket(socket) => (socket.as_fd(), socket.as_fd()),
            Stream::Pipes(input, output) => (input.as_fd(), output.as_fd()),
        }
    }

    /// Has reads and writes fail with [`io::ErrorKind::WouldBlock`] rather than wait, whoever has this stream.
    ///
    /// # Errors
    /// What the system says.
    pub fn never_wait(&self) -> io::Result<()> {
        let (input, output) = self.ends();
        for end in [input, output] {
            fcntl_setfl(end, fcntl_getfl(end)? | OFlags::NONBLOCK)?;
        }
        Ok(())
    }

    /// Reads what has come; 0 at the end.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Stream::Socket(socket) => Ok(recv(socket, &mut *into, RecvFlags::empty())?.0),
            Stream::Pipes(input, _) => (&**input).read(into),
        })
    }

    /// Reads what has come already: `None` where nothing has, 0 at the end. A pipe cannot be asked, and is waited for.
    ///
    /// # Errors
    /// What the system says.
    pub fn read_at_once(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let Stream::Socket(socket) = self else { return self.read(into).map(Some) };
        match recv(socket, &mut *into, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            read => Ok(Some(read?.0)),
        }
    }

    /// Reads what has come, or comes before `deadline`; 0 at the end.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::TimedOut`].
    pub fn read_by(&self, into: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        let Some(deadline) = deadline else { return self.read(into) };
        loop {
            if let Some(read) = self.read_at_once(into)? {
                return Ok(read);
            }
            let left = deadline.checked_duration_since(Instant::now()).ok_or(io::ErrorKind::TimedOut)?;
            await_one(self.ends().0, PollFlags::IN, left)?;
        }
    }

    /// Writes what there is room for, once there is any.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Stream::Socket(socket) => Ok(send(socket, bytes, SendFlags::NOSIGNAL)?),
            Stream::Pipes(_, output) => (&**output).write(bytes),
        })
    }

    /// Writes what there is room for now: nothing of it to a pipe, which cannot be asked.
    ///
    /// # Errors
    /// What the system says.
    pub fn write_at_once(&self, bytes: &[u8]) -> io::Result<usize> {
        let Stream::Socket(socket) = self else { return Ok(0) };
        match send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            sent => Ok(sent?),
        }
    }

    /// Writes all of it, waiting for the client where it must.
    ///
    /// # Errors
    /// What the system says.
    pub fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => bytes = &bytes[sent..],
            }
        }
        Ok(())
    }

    /// Ends both directions of a socket. A pipe ends with its client.
    pub fn shut(&self) {
        if let Stream::Socket(socket) = self {
            // Who has gone already needs no end.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }

    /// Ends the direction away from here: the other side reads the end once it has read the rest.
    pub fn shut_writing(&self) {
        if let Stream::Socket(socket) = self {
            // As above.
            let _ = shutdown(socket, Shutdown::Write);
        }
    }
}

/// Waits until something can be done with an end, for so long at most.
fn await_one(end: BorrowedFd<'_>, wanted: PollFlags, at_most: Duration) -> io::Result<()> {
    let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(&end, wanted)], Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn uninterrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
