//! What a power cut takes of the contents of an export.
//!
//! Exports change the contents when they receive a request, long before the model has written it anywhere. So each change
//! is kept as an undo log ([`undo`]) until it is durable, which the timeline knows ([`headstack_sim::power_cut`]). At a cut
//! the timeline says what is lost, and the clock thread takes it back ([`gate`]). Faults that damage contents use the same log ([`damage`]).

pub mod damage;
pub mod gate;
#[cfg(test)]
mod tests;
pub mod undo;

pub use undo::{Change, UndoLog};
