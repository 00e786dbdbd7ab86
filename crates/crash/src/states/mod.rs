//! The possible contents after a crash.
//!
//! A crash after an event leaves all durable changes ([`walk`]) and any subset of the open ones: each whole, missing or
//! torn ([`state`]), if the device keeps no order among them. [`Search`] goes through these states, most productive
//! first, and skips contents that it has already visited.

mod candidates;
pub(crate) mod extents;
mod hashes;
mod search;
pub(crate) mod state;
pub(crate) mod walk;

pub use search::{Coverage, CrashWindow, From, Search, SearchOptions};
pub use state::{CrashState, Rules, Tear, Torn};
