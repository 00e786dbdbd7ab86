//! Checks that reads return what was written, even after a crash; see [`Stamper`], [`Ledger`] and [`Scanner`].
//!
//! Writes carry a [stamp](Stamper::fill) in every sector, and a *ledger* records which generations each unit may hold.
//! Reads under load are [checked](Stamper::check), and a [`Scanner`] judges the reads of a later pass.
//!
//! # The rule
//!
//! Each write or trim of a unit (the smallest write) gets the unit's next *generation* when it is issued. A write
//! *ends* when its completion is [recorded](Stamper::ended) as acknowledged or failed. An acknowledged write `v`
//! *supersedes*
//!
//! - every write and trim that had ended before `v` was issued, and with them the contents from before the run,
//! - and nothing else: of overlapping writes, any may remain, in any order of acknowledgement.
//!
//! Reads may return any generation that was issued and is not superseded. A failed write may be there, in part, or not
//! at all, and supersedes nothing. A trim leaves zeros or the old contents, so it supersedes only earlier trims. The
//! ledger stores the interval from the *floor*, the oldest write that is not superseded, to the latest generation
//! *issued*, and whether it includes a trim. Sectors are judged individually: a unit may hold sectors of several
//! generations if each is allowed. A read is compared with all contents that were possible at any time between its
//! submission and completion, so the [`Expectation`] is taken before submission. A sector that changes during the read
//! is not judged, since buffered I/O copies without a lock.
//!
//! After a crash of the process only, the same interval applies. After a power loss, a volatile cache may have lost
//! requests that were acknowledged after the last flush. Acknowledgements therefore belong to *epochs*, which
//! [`Stamper::flush`] ends, and the entry stores the floor that the last completed flush made *durable*. A generation
//! below the floor is lost; below the durable floor it is lost although flushed. The interval is lenient in two cases:
//! a generation within it that only a later, overlapping write superseded passes as intact until the next write; and
//! the durable floor is the one at the time when the floor last rose.
//!
//! # The ledger
//!
//! The ledger takes 16 bytes per unit of the target in a sparse, mapped file: 3.9 GB for 1 TB in units of 4 KiB if all
//! units are written, and nothing for unwritten units. `issued` is stored before the write is submitted, and the floor
//! after its completion. The entry is correct after every single store, so that a `kill -9` at any instruction causes
//! no false alarm. If the ledger's host loses power, the kernel has written everything older than
//! `vm.dirty_expire_centisecs` + `vm.dirty_writeback_centisecs` (35 s by default), and everything up to the last
//! [`Stamper::sync`]. Missing entries make a check more lenient, but never wrong: newer data count as [`Class::Ahead`],
//! and zeros as a lost trim. File system blocks are allocated before they are used, so that a full file system causes
//! an error.
//!
//! # Without a ledger
//!
//! Without a ledger, stamps reveal damage, misplaced data, data of other runs, and incomplete requests. They cannot
//! show whether a newer write was lost, or whether a request was torn or partly overwritten by an overlapping request;
//! the report states this.
//!
//! # Threads
//!
//! [`Stamper`] and [`Ledger`] are shared by reference, and workers may share a span. Units are locked in groups of 64,
//! spread over 64 locks, which are held only to update entries and not while data are generated. Every worker has its
//! own [`IntegrityReport`], merged at the end, and every slot of its queue has an [`Expectation`].

mod history;
mod judge;
mod ledger;
mod mapping;
mod report;
mod scan;
mod stamp;
mod stamper;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::error::LoadError;

pub use history::Outcome;
pub use ledger::Ledger;
pub(crate) use ledger::random_run;
pub(crate) use mapping::Mapping;
pub use report::{Class, FINDINGS, Finding, IntegrityReport, Severity, Tally};
pub use scan::{Scanner, recognise};
pub(crate) use stamp::{Generation, SectorContents, Stamp, examine};
pub use stamper::{Expectation, Stamper, Ticket};

/// Layout of a target: units, each written as a whole, of sectors with one stamp each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    span_bytes: u64,
    unit_bytes: u32,
    sector_bytes: u32,
}

impl Layout {
    /// Divides the first `span_bytes` of a target into units of `unit_bytes`, the smallest length and alignment of
    /// writes and trims. Every `sector_bytes` (the target's logical block size) have a stamp.
    ///
    /// # Errors
    /// Returns an error if the sector size is not a power of two from 512 to 65536, if the unit is not a multiple of
    /// it, or if the span has no unit or more than 2^40.
    pub fn new(span_bytes: u64, unit_bytes: u32, sector_bytes: u32) -> Result<Layout, LoadError> {
        if !sector_bytes.is_power_of_two() || !(512..=65536).contains(&sector_bytes) {
            return Err(invalid(format!("sectors of {sector_bytes} bytes; must be a power of two from 512 to 65536")));
        }
        if unit_bytes == 0 || !unit_bytes.is_multiple_of(sector_bytes) {
            return Err(invalid(format!("units of {unit_bytes} bytes; must be a multiple of {sector_bytes}")));
        }
        let layout = Layout { span_bytes, unit_bytes, sector_bytes };
        if layout.units() == 0 || layout.units() > 1 << 40 {
            let most = u128::from(unit_bytes) << 40;
            return Err(invalid(format!("a span of {span_bytes} bytes; must be {unit_bytes} to {most}")));
        }
        Ok(layout)
    }

    /// Returns the length of the span, in bytes from the start of the target.
    pub fn span_bytes(&self) -> u64 {
        self.span_bytes
    }

    /// Returns the size of a unit, in bytes.
    pub fn unit_bytes(&self) -> u32 {
        self.unit_bytes
    }

    /// Returns the bytes per stamp.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Returns the number of whole units in the span.
    pub(crate) fn units(&self) -> u64 {
        self.span_bytes / u64::from(self.unit_bytes)
    }

    /// Returns the units of a request.
    fn units_of(&self, offset: u64, length: u64) -> Result<Range<u64>, LoadError> {
        let unit = u64::from(self.unit_bytes);
        let end = offset.checked_add(length).filter(|&end| end <= self.units() * unit);
        match end {
            Some(end) if length > 0 && offset.is_multiple_of(unit) && length.is_multiple_of(unit) => {
                Ok(offset / unit..end / unit)
            }
            _ => Err(invalid(format!(
                "a request of {length} bytes at {offset}; must be multiples of {unit} below {}",
                self.units() * unit
            ))),
        }
    }
}

fn invalid(message: String) -> LoadError {
    LoadError::Target { target: "integrity".to_owned(), message }
}
