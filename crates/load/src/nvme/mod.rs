//! NVMe namespaces through their character devices (`/dev/ng0n1`): commands go directly to the drive, bypassing the
//! block layer, its schedulers and the page cache. Linux 5.19 and later accept them through io_uring, older versions
//! through system calls.

mod command;
mod geometry;
mod namespace;
mod status;

pub use command::{Command, TrimRange};
pub use geometry::Geometry;
pub use namespace::Namespace;
pub use status::{StatusScope, result_of, status_of, words_of};
