//! The FUSE export: a directory with a file for each LUN, which a loop device turns into a real block device.
//!
//! A file here is a device: its size is fixed, requests are whole blocks and bypass the page cache. Their memory is
//! aligned for direct I/O, or they are short: the kernel splits requests longer than 1 MiB at a page, and half a block
//! is refused. Threads receive the kernel's requests and submit them to the clock; small replies are sent by the clock
//! thread, long reads by a separate thread. The kernel has at most 256 requests of 1 MiB under way, which limits the
//! memory of their replies.
//!
//! Shutdown order: unmount file systems on the loop device, detach the loop device, unmount the directory.

mod filesystem;
mod losetup;
mod mount;
mod reply;

pub use losetup::{attach_loop, detach_loop};
pub use mount::{Mount, Unmounted, clear};
pub use reply::Reply;
