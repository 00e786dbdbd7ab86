//! Which of what a cache holds gives way to what comes: the policies of the simulator's arrays and of the cache lab.
//!
//! A policy knows what it is asked about by an id, a small number that whoever asks has given to a block or an object, and by
//! its weight: 1 where a cache counts blocks, its bytes where it counts bytes. What lies behind an id, when it is used and how
//! long anything takes is for others to know.

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
