//! All integration tests of the crate.

mod dmlog;
mod journal;
mod states;
mod support;
