//! The FUSE export: a directory with a file for each LUN, which a loop device turns into a real block device.
//!
//! A file here is a device: its size is fixed, requests are whole blocks and go past the page cache. They come from memory
//! that is aligned as direct I/O wants it, or are short: the kernel cuts what is longer than 1 MiB at a page, and half a
//! block is refused. Threads receive what the kernel asks and hand it to the clock; small replies leave from the clock
//! thread, long reads from one of their own. The kernel has at most 256 requests of 1 MiB under way, which bounds what
//! their replies hold.
//!
//! The order of the end: file systems on the loop device are unmounted, the loop device is detached, the directory is
//! unmounted.

mod filesystem;
mod losetup;
mod mount;
mod reply;

pub use losetup::{attach_loop, detach_loop};
pub use mount::{Mount, Unmounted, clear};
pub use reply::Reply;
