//! Recorded traces: read from every format of the field, stored, understood, transformed, written.
//!
//! A [`TraceReader`] yields [`Record`]s in order of arrival, in batches, whatever the format and however large the
//! trace; [`Meta`] says what holds for all of them. What a format cannot carry is [`NOT_RECORDED`], never 0.

pub mod analyze;
mod collect;
mod error;
pub mod formats;
mod input;
mod meta;
mod reader;
mod record;
mod text;

pub use collect::Collector;
pub use error::{Place, TraceError};
pub use formats::{Format, Order, validate};
pub use input::{Head, Input};
pub use meta::{Clock, DeviceMeta, Meta, Origin, Process, ResponseSpan};
pub use reader::{ReadOptions, TraceReader};
pub use record::{Flags, NOT_RECORDED, Operation, Record};
