//! Recordings played: what is issued when, and who waits for whom.

mod common;
mod dependencies;
mod recordings;
