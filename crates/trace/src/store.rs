//! The stored form: Parquet, sorted by arrival, one row a request, with [`Meta`] as JSON in its metadata.
//!
//! Any tool that reads Parquet reads it: names are text, what is not recorded is null, units are in the columns' names. Row
//! groups are encoded and decoded a column a core.

mod columns;
mod data;
mod reader;
mod schema;
mod writer;

pub(crate) use data::Data;
pub(crate) use reader::{Group, Stored};
pub use writer::StoreWriter;

/// Requests of a row group: 12.6 MB in memory, so that a merge of many files fits.
pub(crate) const ROW_GROUP: usize = 1 << 18;
/// The key of the metadata.
const META_KEY: &str = "headstack.trace";
