//! Effects of power losses on the contents of an export.
//!
//! Exports change the contents when they receive a request, long before the model has written the data. Therefore, each
//! change is kept in an undo log ([`undo`]) until it is durable according to the timeline
//! ([`headstack_sim::power_cut`]). At a power loss the timeline reports the lost changes, and the clock thread undoes
//! them ([`gate`]). Faults that damage contents use the same log ([`damage`]).

pub mod damage;
pub mod gate;
#[cfg(test)]
mod tests;
pub mod undo;

pub use undo::{Change, UndoLog};
