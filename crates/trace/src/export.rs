//! Traces written in the formats of other programs.

pub mod disksim;
pub mod msr;

use std::collections::BTreeMap;

use crate::record::Operation;

/// What a format could not hold, by name: how many requests or facts were left out or changed.
pub type Losses = BTreeMap<&'static str, u64>;

/// Whether a request reads, where a format knows reads and writes only; else what is lost with it.
fn reads(operation: Operation) -> Result<bool, &'static str> {
    match operation {
        Operation::Read => Ok(true),
        Operation::Write => Ok(false),
        Operation::Trim => Err("trims"),
        Operation::Flush => Err("flushes"),
        Operation::Other => Err("requests that are no read, write, trim or flush"),
        Operation::Unknown => Err("requests of unknown kind"),
    }
}

#[cfg(test)]
mod tests;
