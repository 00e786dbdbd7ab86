//! Block devices of Linux that this process serves: ublk, whose requests come and go over io_uring.
//!
//! [`Disk`] is the device as it is made, started and taken away; [`Queue`] has its requests, on a thread of its own, and
//! [`Way`] is how any other thread moves their data and completes them. Data are copied by reads and writes of the
//! device's character file (`UBLK_F_USER_COPY`, Linux 6.5), so that no memory is shared with the kernel but its
//! descriptions of requests.
//!
//! The protocol is that of `linux/ublk_cmd.h` and Documentation/block/ublk.rst. The library `libublk` speaks it too, and
//! brings an asynchronous runtime, bindgen and half a hundred crates: this is one queue, and what it needs.

mod abi;
mod control;
mod queue;
mod shape;

pub use abi::Operation;
pub use control::Disk;
pub use queue::{Asked, Queue, Ticket, Way};
pub use shape::Shape;

use std::io;

/// An error of a ublk device.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// This machine has no ublk, or not what is needed of it.
    #[error("{0}")]
    Lacking(String),
    /// The machine refused: what was tried, and what it said.
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
