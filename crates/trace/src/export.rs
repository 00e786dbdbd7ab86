//! Writers of other formats.

pub mod blkparse;

use std::collections::BTreeMap;

/// What a format could not hold, by name, each with how many requests lost it.
pub type Losses = BTreeMap<&'static str, u64>;
