//! [`Stream`]: the transport of a connection, a socket or two pipes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::budget::Budget;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt};

/// The number of the ioctl for a socket's unread bytes (SIOCOUTQ), which it shares with terminals.
const TIOCOUTQ: Opcode = 0x5411;

/// How long to wait for a client that holds memory: without limit, unless others wait for memory.
#[derive(Clone, Debug)]
pub struct ClientTimeout {
    /// Time limit without a byte from or to it, while others wait.
    pub stall: Duration,
    /// The budget for which others wait.
    pub budget: Budget,
}

/// Both directions of a connection.
#[derive(Clone, Debug)]
pub enum Stream {
    /// One socket for both.
    Socket(Arc<OwnedFd>),
    /// Standard input and output that are not a socket.
    Pipes(Arc<File>, Arc<File>),
}

impl Stream {
    /// A connection over a socket.
    pub fn socket_of(socket: impl Into<OwnedFd>) -> Stream {
        Stream::Socket(Arc::new(socket.into()))
    }

    /// Standard input and output, as set up by a client.
    ///
    /// # Errors
    /// When they are closed.
    pub fn stdio() -> io::Result<Stream> {
        let (input, output) = (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
        let is_socket = rustix::net::sockopt::socket_type(&input).is_ok();
        Ok(if is_socket {
            Stream::socket_of(input)
        } else {
            Stream::Pipes(Arc::new(input.into()), Arc::new(output.into()))
        })
    }

    /// The ends to read from, and to write to.
    pub fn ends(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        match self {
            Stream::Socket(socket) => (socket.as_fd(), socket.as_fd()),
            Stream::Pipes(input, output) => (input.as_fd(), output.as_fd()),
        }
    }

    /// Makes reads and writes fail with [`io::ErrorKind::WouldBlock`] instead of waiting, for all users of this stream.
    ///
    /// # Errors
    /// The system's error.
    pub fn never_wait(&self) -> io::Result<()> {
        let (input, output) = self.ends();
        for end in [input, output] {
            fcntl_setfl(end, fcntl_getfl(end)? | OFlags::NONBLOCK)?;
        }
        Ok(())
    }

    /// Reads available data; 0 at the end.
    ///
    /// # Errors
    /// The system's error.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Stream::Socket(socket) => Ok(recv(socket, &mut *into, RecvFlags::empty())?.0),
            Stream::Pipes(input, _) => (&**input).read(into),
        })
    }

    /// Reads data that have already arrived: `None` if there are none, 0 at the end. A pipe cannot be queried, so this
    /// waits for it.
    ///
    /// # Errors
    /// The system's error.
    pub fn read_at_once(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let Stream::Socket(socket) = self else { return self.read(into).map(Some) };
        match recv(socket, &mut *into, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            read => Ok(Some(read?.0)),
        }
    }

    /// Reads data that are available before `deadline`; 0 at the end.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::TimedOut`].
    pub fn read_by(&self, into: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        let Some(deadline) = deadline else { return self.read(into) };
        loop {
            if let Some(read) = self.read_at_once(into)? {
                return Ok(read);
            }
            let left = deadline.checked_duration_since(Instant::now()).ok_or(io::ErrorKind::TimedOut)?;
            is_ready(self.ends().0, PollFlags::IN, left)?;
        }
    }

    /// Waits for data, or the end. For a pipe, the read itself waits.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::TimedOut`] if patience with the client is over.
    pub fn await_input(&self, patience: &ClientTimeout) -> io::Result<()> {
        self.await_end(PollFlags::IN, patience)
    }

    fn await_end(&self, wanted: PollFlags, patience: &ClientTimeout) -> io::Result<()> {
        let Stream::Socket(socket) = self else { return Ok(()) };
        let begun = Instant::now();
        while !is_ready(socket.as_fd(), wanted, patience.stall)? {
            if begun.elapsed() >= patience.stall && patience.budget.is_wanted() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }

    /// Writes everything, waiting for the client as long as `patience` permits.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::TimedOut`].
    pub fn write_patiently(&self, mut bytes: &[u8], patience: &ClientTimeout) -> io::Result<()> {
        if matches!(self, Stream::Pipes(..)) {
            return self.write_all(bytes);
        }
        while !bytes.is_empty() {
            match self.write_at_once(bytes)? {
                0 => self.await_end(PollFlags::OUT, patience)?,
                sent => bytes = &bytes[sent..],
            }
        }
        Ok(())
    }

    /// Writes as much as there is room for, once there is any.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Stream::Socket(socket) => Ok(send(socket, bytes, SendFlags::NOSIGNAL)?),
            Stream::Pipes(_, output) => (&**output).write(bytes),
        })
    }

    /// Writes as much as there is room for now; nothing to a pipe, which cannot be queried.
    ///
    /// # Errors
    /// The system's error.
    pub fn write_at_once(&self, bytes: &[u8]) -> io::Result<usize> {
        let Stream::Socket(socket) = self else { return Ok(0) };
        match send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            sent => Ok(sent?),
        }
    }

    /// Writes everything, waiting for the client if necessary.
    ///
    /// # Errors
    /// The system's error.
    pub fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => bytes = &bytes[sent..],
            }
        }
        Ok(())
    }

    /// The process at the other end of a unix socket when it connected.
    pub fn peer(&self) -> Option<u32> {
        let Stream::Socket(socket) = self else { return None };
        let is_unix = sockopt::socket_domain(socket).is_ok_and(|domain| domain == AddressFamily::UNIX);
        let credentials = is_unix.then(|| sockopt::socket_peercred(socket).ok()).flatten()?;
        // A process in another PID namespace has no number here.
        u32::try_from(credentials.pid.as_raw_nonzero().get()).ok()
    }

    /// Bytes written that the other end of a unix socket has not read, including the kernel's overhead; `None` if
    /// unknown.
    #[allow(unsafe_code)]
    pub fn unread_bytes(&self) -> Option<usize> {
        let Stream::Socket(socket) = self else { return None };
        // SAFETY: TIOCOUTQ (of sockets: SIOCOUTQ) writes one int.
        let result = unsafe { ioctl(socket, Getter::<TIOCOUTQ, i32>::new()) };
        usize::try_from(result.ok()?).ok()
    }

    /// Whether no data wait to be read.
    pub fn is_drained(&self) -> bool {
        rustix::io::ioctl_fionread(self.ends().0).is_ok_and(|bytes| bytes == 0)
    }

    /// Closes both directions of a socket. A pipe ends with its client.
    pub fn shut(&self) {
        if let Stream::Socket(socket) = self {
            // Fails if the peer has already left.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }

    /// Closes the outgoing direction: the other side reads the end after the remaining data.
    pub fn shut_writing(&self) {
        if let Stream::Socket(socket) = self {
            // As in `shut`.
            let _ = shutdown(socket, Shutdown::Write);
        }
    }
}

/// Whether an end is ready within a time.
fn is_ready(end: BorrowedFd<'_>, wanted: PollFlags, within: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(within).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(&end, wanted)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
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
