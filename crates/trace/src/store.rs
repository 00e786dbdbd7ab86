//! The stored form: Parquet, sorted by arrival, one row per request, with [`Meta`](crate::Meta) as JSON in its metadata.
//!
//! Any Parquet tool can read it: names are text, missing values are null, units are in the column names. Row groups are
//! encoded and decoded with one column per core.

mod columns;
mod data;
mod reader;
mod schema;
mod writer;

pub(crate) use data::Data;
pub(crate) use reader::{Group, Stored};
pub use writer::StoreWriter;

/// Requests per row group: 12.6 MB in memory, so that a merge of many files fits.
pub(crate) const ROW_GROUP: usize = 1 << 18;
/// Key of the metadata.
const META_KEY: &str = "headstack.trace";
