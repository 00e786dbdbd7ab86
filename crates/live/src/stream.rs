//! [`Stream`]: the transport of a connection, either a socket or two pipes.

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

/// Number of the ioctl for the unread bytes of a socket (SIOCOUTQ), which equals that of terminals.
const TIOCOUTQ: Opcode = 0x5411;

/// Time limit for a client that holds memory; it applies only while other requests wait for memory.
#[derive(Clone, Debug)]
pub struct ClientTimeout {
    /// Maximum time without a byte from or to the client, while other requests wait for memory.
    pub stall: Duration,
    /// The budget that the other requests wait for.
    pub budget: Budget,
}

/// Both directions of a connection.
#[derive(Clone, Debug)]
pub enum Stream {
    /// One socket for both directions.
    Socket(Arc<OwnedFd>),
    /// Standard input and output, if they are not a socket.
    Pipes(Arc<File>, Arc<File>),
}

impl Stream {
    /// Creates a stream over a socket.
    pub fn socket_of(socket: impl Into<OwnedFd>) -> Stream {
        Stream::Socket(Arc::new(socket.into()))
    }

    /// Returns the stream of standard input and output, as set up by a client.
    ///
    /// # Errors
    /// Returns an error if standard input or output is closed.
    pub fn stdio() -> io::Result<Stream> {
        let (input, output) = (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
        let is_socket = rustix::net::sockopt::socket_type(&input).is_ok();
        Ok(if is_socket {
            Stream::socket_of(input)
        } else {
            Stream::Pipes(Arc::new(input.into()), Arc::new(output.into()))
        })
    }

    /// Returns the descriptors to read from and to write to.
    pub fn ends(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        match self {
            Stream::Socket(socket) => (socket.as_fd(), socket.as_fd()),
            Stream::Pipes(input, output) => (input.as_fd(), output.as_fd()),
        }
    }

    /// Makes reads and writes fail with [`io::ErrorKind::WouldBlock`] instead of waiting, for all users of this stream.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn never_wait(&self) -> io::Result<()> {
        let (input, output) = self.ends();
        for end in [input, output] {
            fcntl_setfl(end, fcntl_getfl(end)? | OFlags::NONBLOCK)?;
        }
        Ok(())
    }

    /// Reads available data; returns 0 at the end.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Stream::Socket(socket) => Ok(recv(socket, &mut *into, RecvFlags::empty())?.0),
            Stream::Pipes(input, _) => (&**input).read(into),
        })
    }

    /// Reads data that has already arrived; returns `None` if there is none, and 0 at the end. A pipe cannot be
    /// queried, so this waits for data from a pipe.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn read_at_once(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let Stream::Socket(socket) = self else { return self.read(into).map(Some) };
        match recv(socket, &mut *into, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            read => Ok(Some(read?.0)),
        }
    }

    /// Reads data that arrives before `deadline`; returns 0 at the end.
    ///
    /// # Errors
    /// Returns the system's error, or [`io::ErrorKind::TimedOut`] if the time is over.
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

    /// Waits for data or the end of the stream. Returns immediately for a pipe, since the read itself waits.
    ///
    /// # Errors
    /// Returns the system's error, or [`io::ErrorKind::TimedOut`] if `patience` is exhausted.
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

    /// Writes all bytes, waiting for the client as long as `patience` permits.
    ///
    /// # Errors
    /// Returns the system's error, or [`io::ErrorKind::TimedOut`] if the time is over.
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

    /// Writes as much as there is room for, waiting until there is any room.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Stream::Socket(socket) => Ok(send(socket, bytes, SendFlags::NOSIGNAL)?),
            Stream::Pipes(_, output) => (&**output).write(bytes),
        })
    }

    /// Writes as much as there is room for now; writes nothing to a pipe, which cannot be queried.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn write_at_once(&self, bytes: &[u8]) -> io::Result<usize> {
        let Stream::Socket(socket) = self else { return Ok(0) };
        match send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            sent => Ok(sent?),
        }
    }

    /// Writes all bytes, waiting for the client if necessary.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => bytes = &bytes[sent..],
            }
        }
        Ok(())
    }

    /// Returns the process id of the peer of a unix socket at the time it connected; `None` if unknown.
    pub fn peer(&self) -> Option<u32> {
        let Stream::Socket(socket) = self else { return None };
        let is_unix = sockopt::socket_domain(socket).is_ok_and(|domain| domain == AddressFamily::UNIX);
        let credentials = is_unix.then(|| sockopt::socket_peercred(socket).ok()).flatten()?;
        // A process in another PID namespace has no id here.
        u32::try_from(credentials.pid.as_raw_nonzero().get()).ok()
    }

    /// Returns the number of written bytes that the peer of a unix socket has not read, including the kernel's
    /// overhead; `None` if unknown.
    #[allow(unsafe_code)]
    pub fn unread_bytes(&self) -> Option<usize> {
        let Stream::Socket(socket) = self else { return None };
        // SAFETY: TIOCOUTQ (SIOCOUTQ for sockets) writes one int.
        let result = unsafe { ioctl(socket, Getter::<TIOCOUTQ, i32>::new()) };
        usize::try_from(result.ok()?).ok()
    }

    /// Whether no received data is waiting to be read.
    pub fn is_drained(&self) -> bool {
        rustix::io::ioctl_fionread(self.ends().0).is_ok_and(|bytes| bytes == 0)
    }

    /// Closes both directions of a socket. A pipe remains open until its client closes it.
    pub fn shut(&self) {
        if let Stream::Socket(socket) = self {
            // The call fails if the peer has already left.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }

    /// Closes the outgoing direction: the peer reads the remaining data, then the end.
    pub fn shut_writing(&self) {
        if let Stream::Socket(socket) = self {
            // The call fails if the peer has already left.
            let _ = shutdown(socket, Shutdown::Write);
        }
    }
}

/// Whether a descriptor is ready within the given time.
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
