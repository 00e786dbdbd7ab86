//! Real time: workloads against files and block devices.

mod error;
pub mod integrity;

pub use error::LoadError;
