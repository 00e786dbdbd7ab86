//! All tests of the crate's outside.

mod dmlog;
mod journal;
mod states;
mod support;
