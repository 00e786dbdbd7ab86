//! Measurements of real and virtual targets, one matter a file.

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
