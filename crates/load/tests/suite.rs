//! Tests of measurements of real and virtual targets, one topic per file.

mod bench;
mod conditioning;
mod engine;
mod nbd;
mod phase;
mod replay;
mod scenario;
mod trees;
mod verify;
mod zones;
