//! The FUSE export: a directory with a file for each LUN, which a loop device turns into a real block device.
//!
//! Each file represents a device: its size is fixed, and its requests are whole blocks that bypass the page cache.
//! Request buffers must be aligned for direct I/O or be at most 1 MiB long: the kernel splits longer unaligned requests
//! at page boundaries, and partial blocks are refused. Threads receive the kernel's requests and submit them to the
//! clock; the clock thread sends small replies, and a separate thread sends long reads. The kernel has at most 256
//! requests of 1 MiB in flight, which limits the memory of their replies.
//!
//! Shutdown order: unmount file systems on the loop device, detach the loop device, unmount the directory.

mod filesystem;
mod losetup;
mod mount;
mod reply;

pub use losetup::{attach_loop, detach_loop};
pub use mount::{Mount, Unmounted, clear};
pub use reply::Reply;
