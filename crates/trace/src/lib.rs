#![cfg_attr(not(feature = "files"), allow(dead_code))] // Used only to read files.
//! Recorded traces: reading from all common formats, storing, analysis, transformation and export. See
//! docs/design/traces.md.
//!
//! A [`TraceReader`] returns [`Record`]s in order of arrival, in batches, for any format and size. [`Meta`] describes
//! the trace as a whole. Data missing from a format are [`NOT_RECORDED`], never 0.

#[cfg(feature = "files")]
mod ahead;
#[cfg(feature = "files")]
pub mod analyze;
mod batch;
#[cfg(feature = "files")]
pub mod caching;
#[cfg(all(feature = "files", target_os = "linux"))]
pub mod capture;
mod collect;
mod encoding;
mod error;
#[cfg(feature = "files")]
pub mod export;
mod formats;
#[cfg(feature = "files")]
mod import;
mod input;
mod merge;
mod meta;
mod nearest;
mod packed;
#[cfg(feature = "files")]
mod parts;
mod reader;
mod record;
mod recording;
mod requests;
mod sort;
#[cfg(feature = "files")]
mod split;
mod stamps;
#[cfg(feature = "files")]
mod store;
mod summary;
#[cfg(feature = "files")]
pub mod synthesize;
mod text;
mod time;
mod transform;
mod window;

pub use collect::Collector;
pub use error::{Place, TraceError};
pub use formats::{CsvColumns, Format, Order, ReadOptions, Shipped, Stage};
#[cfg(feature = "files")]
pub use import::import;
pub use input::{Head, Input};
pub use meta::{AddressSpace, Clock, DeviceMeta, Meta, Origin, Process, ResponseSpan};
#[cfg(feature = "files")]
pub use parts::Parts;
pub use reader::TraceReader;
pub use record::{Flags, NOT_RECORDED, Operation, Record};
pub use requests::{Placing, Requests};
#[cfg(feature = "files")]
pub use split::{Piece, split};
#[cfg(feature = "files")]
pub use store::StoreWriter;
pub use summary::{Counts, Summary};
pub use time::TimeUnit;
pub use transform::Step;
pub use window::Window;
