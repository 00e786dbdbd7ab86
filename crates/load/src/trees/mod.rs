//! Loads on files in directories: trees that headstack creates and owns, and operations on their members.
//!
//! A tree has a [`Shape`]: names, sizes and places of all members follow from their numbers, so that only one word of
//! [`states`] is stored per member. A [`Place`] is the directory that contains the tree; nothing outside of it is
//! changed, and no symbolic link is followed. Each thread works on one member at a time, which no other thread uses
//! meanwhile.

mod calls;
mod contents;
mod format;
mod ledger;
mod names;
mod pace;
mod phase_result;
mod pick;
mod place;
mod play;
mod shape;
mod spec;
mod states;
mod steps;
mod visits;
mod worker;

pub use place::{Place, Removed};
pub use play::{play_trees, verify_tree};
pub use shape::Shape;
pub use spec::TreeSpec;
