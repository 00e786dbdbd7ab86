//! Eviction policies of caches ([`Policy`]), shared by the simulator's arrays and the cache lab. See
//! docs/design/cache-lab.md.
//!
//! A policy knows an item by an id, a small number that its caller has given to a block or an object, and by its
//! weight: 1 if a cache counts blocks, its bytes if it counts bytes. The caller knows what an id refers to, when it is
//! used and how long anything takes.

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
