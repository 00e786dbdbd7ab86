//! Traces written in the formats of other programs.

use std::collections::BTreeMap;

pub mod iolog;

/// What a format could not hold, by name: how many requests or facts were left out or changed.
pub type Losses = BTreeMap<&'static str, u64>;
