//! Layers of software or network between an application and its devices. See docs/design/stacks.md.
//!
//! A layer looks like a device from above and like a workload from below: it takes requests, sends its own to the
//! systems below it, and answers. [`crate::system::Stack`] delivers what it orders.

mod block_cache;
mod ceph;
mod cores;
mod extents;
mod files;
mod host_cache;
mod instance_limit;
mod journal;
mod layer;
mod md_journal;
mod network;
mod orders;
mod page_cache;
mod ranges;
mod zfs;

pub use crate::description::stack as description;
pub(crate) use layer::Layer;
pub(crate) use orders::{Answer, LayerModel, Order, Orders};
