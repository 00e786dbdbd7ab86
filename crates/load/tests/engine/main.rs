//! Measurements from end to end: their loops on a target that answers after a fixed time, their requests on files and
//! devices, and what goes wrong with these.

#[allow(dead_code, reason = "shared with the tests of targets, which need more of it")]
#[path = "../guard/bench.rs"]
mod bench;
mod files;
mod loops;
mod support;
mod trouble;
