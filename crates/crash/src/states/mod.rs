//! Which contents a crash may leave.
//!
//! A crash after an event leaves what is durable by then ([`walk`]) and any of what is open: each change whole, missing or torn
//! ([`state`]), as long as the device keeps no order among them. [`Search`] goes through these states, those first that find
//! mistakes soonest, and leaves out what was there before.

mod candidates;
pub(crate) mod extents;
mod hashes;
mod search;
pub(crate) mod state;
pub(crate) mod walk;

pub use search::{Asked, Coverage, From, Moment, Search};
pub use state::{CrashState, Rules, Tear, Torn};
