//! Linux block devices served by this process: ublk, whose requests are passed over io_uring.
//!
//! [`Disk`] creates, starts and removes the device; [`Queue`] receives its requests, on a thread of its own, and with
//! [`Completer`] any other thread moves their data and completes them. Data are copied by reads and writes of the device's
//! character file (`UBLK_F_USER_COPY`, Linux 6.5), so that no memory is shared with the kernel except its descriptions
//! of requests.
//!
//! The protocol is defined by `linux/ublk_cmd.h` and Documentation/block/ublk.rst. The library `libublk` implements it
//! too, but brings an asynchronous runtime, bindgen and about fifty crates; this crate has one queue and what it needs.

mod abi;
mod control;
mod queue;
mod shape;

pub use abi::Operation;
pub use control::Disk;
pub use queue::{Completer, KernelRequest, Queue, Ticket};
pub use shape::Shape;

use std::io;

/// An error of a ublk device.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// The machine has no ublk, or lacks something that it needs.
    #[error("{0}")]
    Lacking(String),
    /// A system call failed: what was tried, and the error.
    #[error("{what}: {error}")]
    Io {
        /// The action that failed, and its object.
        what: String,
        /// The error of the system call.
        error: io::Error,
    },
}

impl UblkError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> UblkError {
        let what = what.into();
        |error| UblkError::Io { what, error }
    }
}
