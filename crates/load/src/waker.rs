//! [`Waker`]: wakes a worker that waits for its target.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::LoadError;

/// An event that a ring can wait for in addition to completions.
#[derive(Debug)]
pub struct Waker {
    event: OwnedFd,
}

impl Waker {
    /// Creates a waker without a pending call.
    ///
    /// # Errors
    /// Returns an error if the system has no more file descriptors.
    pub fn new() -> Result<Waker, LoadError> {
        // SAFETY: the descriptor is new, and this value takes ownership of it.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            let source = io::Error::last_os_error();
            return Err(LoadError::Io { target: "headstack".to_owned(), action: "eventfd", source });
        }
        // SAFETY: as above.
        Ok(Waker { event: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Wakes the worker once.
    pub fn wake(&self) {
        let one = 1u64;
        // SAFETY: writes eight bytes from an integer. It fails only if the counter is full, and then the worker is
        // awake.
        unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Clears a waker's descriptor, which is then not readable until the next call.
    pub fn drain(fd: RawFd) {
        let mut count = 0u64;
        // SAFETY: reads eight bytes into an integer. It fails only if there was no call.
        unsafe { libc::read(fd, (&raw mut count).cast(), 8) };
    }

    /// Returns the descriptor that becomes readable when the waker is called.
    pub fn fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }
}
