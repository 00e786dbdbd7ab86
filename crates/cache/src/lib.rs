//! Replacement policies of caches, used by the simulator's arrays and by the cache lab.
//!
//! A policy knows a cached block or object by an id, a small number that the caller assigns, and by its weight: 1 if
//! the cache counts blocks, its size if the cache counts bytes. It does not know what the id stands for, when it is
//! used or how long anything takes.

#![deny(clippy::wildcard_enum_match_arm)] // A new variant does not compile until every match handles it.

mod belady;
mod list;
mod nodes;
mod policies;
mod policy;
mod replacement;
mod sketch;

pub use belady::{Belady, Future};
pub use list::List;
pub use nodes::{NONE, Nodes};
pub use policy::{CachePolicy, Policy};
pub use replacement::{Replacement, Task};

#[cfg(test)]
mod tests;
