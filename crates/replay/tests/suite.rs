//! Tests of replays: when requests are issued, and which wait for which.

mod common;
mod dependencies;
mod recordings;
