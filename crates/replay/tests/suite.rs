//! Tests of replays: issue times and dependencies.

mod common;
mod dependencies;
mod recordings;
