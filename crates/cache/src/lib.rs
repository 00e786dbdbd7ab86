//! Cache eviction policies ([`Policy`]), shared by the simulator's arrays and the cache lab. See
//! docs/design/cache-lab.md.
//!
//! A policy identifies an item by its id, a small number that the caller assigns to a block or object, and knows its
//! weight: 1 if the cache counts blocks, or the item's size if the cache counts bytes. Only the caller knows what an id
//! refers to, when it is used, and how long operations take.

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
