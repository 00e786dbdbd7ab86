//! What a connection runs over: a socket, or the two ends of a pipe.

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

/// The number of the ioctl that asks a socket what is unread (SIOCOUTQ), which is that of terminals.
const TIOCOUTQ: Opcode = 0x5411;

/// How long a client is waited for that holds memory: for as long as it likes, unless others wait for memory.
#[derive(Clone, Debug)]
pub struct Patience {
    /// So long without a byte from or to it, while others wait.
    pub stall: Duration,
    /// For what they wait.
    pub budget: Budget,
}

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
            is_ready(self.ends().0, PollFlags::IN, left)?;
        }
    }

    /// Waits for bytes, or the end. A pipe is waited for when it is read.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::TimedOut`] where the client has no right to more patience.
    pub fn await_input(&self, patience: &Patience) -> io::Result<()> {
        self.await_end(PollFlags::IN, patience)
    }

    fn await_end(&self, wanted: PollFlags, patience: &Patience) -> io::Result<()> {
        let Stream::Socket(socket) = self else { return Ok(()) };
        let begun = Instant::now();
        while !is_ready(socket.as_fd(), wanted, patience.stall)? {
            if begun.elapsed() >= patience.stall && patience.budget.is_wanted() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }

    /// Writes all of it, waiting for the client as long as it has a right to that.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::TimedOut`].
    pub fn write_patiently(&self, mut bytes: &[u8], patience: &Patience) -> io::Result<()> {
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

    /// The process at the other end of a unix socket, as it was when it connected.
    pub fn peer(&self) -> Option<u32> {
        let Stream::Socket(socket) = self else { return None };
        let is_unix = sockopt::socket_domain(socket).is_ok_and(|domain| domain == AddressFamily::UNIX);
        let credentials = is_unix.then(|| sockopt::socket_peercred(socket).ok()).flatten()?;
        // Who lives in another namespace of processes has no number here.
        u32::try_from(credentials.pid.as_raw_nonzero().get()).ok()
    }

    /// Bytes that were written and that the other end of a unix socket has not read, the kernel's own overhead included;
    /// `None` where that cannot be said.
    #[allow(unsafe_code)]
    pub fn unread_bytes(&self) -> Option<usize> {
        let Stream::Socket(socket) = self else { return None };
        // SAFETY: TIOCOUTQ (of sockets: SIOCOUTQ) writes one int.
        let asked = unsafe { ioctl(socket, Getter::<TIOCOUTQ, i32>::new()) };
        usize::try_from(asked.ok()?).ok()
    }

    /// Nothing waits to be read.
    pub fn is_drained(&self) -> bool {
        rustix::io::ioctl_fionread(self.ends().0).is_ok_and(|bytes| bytes == 0)
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

/// Whether something can be done with an end, within so long.
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
