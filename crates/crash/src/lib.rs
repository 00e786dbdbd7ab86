//! What a crash may leave of what was written.
//!
//! A [`Recording`] holds what a device was sent and when it answered: a journal of a live export ([`journal`]) or a log of
//! dm-log-writes ([`dmlog`]). This crate knows which contents the device may have after power fails at any moment of it,
//! and brings an image into such a state. It does not know models, clocks or clients.

pub mod dmlog;
mod error;
pub mod journal;
mod recording;

pub use error::CrashError;
pub use recording::{Change, Device, Ending, Event, Fate, Recording, Start, Stored};
