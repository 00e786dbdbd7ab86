//! Possible contents of a device after a crash. See docs/design/crash.md.
//!
//! A [`Recording`] contains a device's requests and its answers: a journal of a live export ([`journal`]) or a log of
//! dm-log-writes ([`dmlog`]). This crate knows which contents the device may have after power fails at any moment of
//! it, and puts an image into such a state. It does not know models, clocks or clients.

mod base;
mod copies;
mod digest;
pub mod dmlog;
mod error;
pub mod ext4;
mod image;
pub mod journal;
mod layers;
mod opening;
mod overlay;
mod recording;
pub mod states;

pub use base::Base;
pub use copies::{AccessMethod, Reproduced, reproduced, write_journal, write_reproducer};
pub use error::CrashError;
pub use image::{Image, folder_for};
pub use overlay::Overlay;
pub use recording::{Change, Device, Ending, Event, Fate, Recording, Start, Stored};
