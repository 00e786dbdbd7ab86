//! The stored form: Parquet, sorted by arrival, with one row per request and [`Meta`](crate::Meta) as JSON in the file
//! metadata.
//!
//! Any Parquet tool can read the files: names are text, missing values are null, and column names include units. Row
//! groups are encoded and decoded with one column per core.

mod columns;
mod data;
mod reader;
mod schema;
mod writer;

pub(crate) use data::Data;
pub(crate) use reader::{Group, Stored};
pub use writer::StoreWriter;

/// Requests per row group: 16.8 MB in memory, small enough to merge many files.
pub(crate) const ROW_GROUP: usize = 1 << 18;
/// Key of the trace metadata in the file metadata.
const META_KEY: &str = "headstack.trace";
