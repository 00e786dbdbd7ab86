//! Real time: workloads against files and block devices.

mod error;
mod target;

pub use error::LoadError;
pub use target::{Ending, Permission, Target, TargetKind};
