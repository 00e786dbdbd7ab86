//! Real time: workloads against files and block devices.

mod error;

pub use error::LoadError;
