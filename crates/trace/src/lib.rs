//! Recorded traces: read from every format of the field, stored, understood, transformed, written.
//!
//! A [`TraceReader`] yields [`Record`]s in order of arrival, in batches, whatever the format and however large the
//! trace; [`Meta`] says what holds for all of them. What a format cannot carry is [`NOT_RECORDED`], never 0.

pub mod analyze;
#[cfg(target_os = "linux")]
pub mod capture;
mod collect;
mod error;
pub mod export;
mod formats;
mod import;
mod input;
mod merge;
mod meta;
mod reader;
mod record;
mod recording;
mod sort;
mod store;
mod summary;
mod text;
mod time;
mod transform;

pub use collect::Collector;
pub use error::{Place, TraceError};
pub use formats::{CsvColumns, Format, Order, ReadOptions, Stage};
pub use import::import;
pub use input::{Head, Input};
pub use meta::{Clock, DeviceMeta, Meta, Origin, Process, ResponseSpan};
pub use reader::TraceReader;
pub use record::{Flags, NOT_RECORDED, Operation, Record};
pub use store::StoreWriter;
pub use summary::{Counts, Summary};
pub use time::TimeUnit;
pub use transform::Step;
