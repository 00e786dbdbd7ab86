//! A file for each policy, and one for those of a single list. Each keeps what can go on lists of its own; what must stay
//! leaves its list, and comes back as the newest when it may go again. Parameters are the published defaults, which
//! libCacheSim has too.

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
