//! Eviction policies, one per file, except that policies with a single list share a file. Each policy keeps evictable
//! ids on its own lists. A pinned id leaves its list, and returns as the newest when it is unpinned. Parameters are the
//! published defaults, as in libCacheSim.

mod arc;
mod lfu;
mod lirs;
mod queue;
mod s3_fifo;
mod sieve;
mod slru;
mod two_q;
mod w_tiny_lfu;

pub use arc::Arc;
pub use lfu::Lfu;
pub use lirs::Lirs;
pub use queue::{Clock, Fifo, Lru};
pub use s3_fifo::S3Fifo;
pub use sieve::Sieve;
pub use slru::Slru;
pub use two_q::TwoQ;
pub use w_tiny_lfu::WTinyLfu;
