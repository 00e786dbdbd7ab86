//! Loads on files in folders: trees that this program makes and owns, and operations on their members.
//!
//! A tree has a [`Shape`]: names, sizes and places of all members follow from their numbers, so that nothing is kept of a
//! member but a word of its [`states`]. A [`Place`] is the folder that it grows in; nothing outside of it is touched, and
//! no symbolic link is followed. Each thread works on one member at a time, which nobody else has meanwhile.

mod calls;
mod contents;
mod format;
mod ledger;
mod names;
mod pace;
mod pick;
mod place;
mod play;
mod shape;
mod spec;
mod states;
mod steps;
mod tell;
mod visits;
mod worker;

pub use place::{Place, Removed};
pub use play::{play_trees, verify_tree};
pub use shape::Shape;
pub use spec::TreeSpec;
