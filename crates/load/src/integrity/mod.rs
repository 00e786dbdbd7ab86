//! Whether what was written is what is read, also after a crash.
//!
//! Writes carry a [stamp](Stamper::fill) in every sector, a *ledger* knows which generations may be where, reads under
//! load are [checked](Stamper::check), and a [`Scanner`] judges what a later pass reads.
//!
//! # The rule
//!
//! Per unit (the smallest write), each write or trim that is issued gets the next *generation*. A write *ends* when its
//! completion is [booked](Stamper::ended): acknowledged, or failed. An acknowledged write `v` *supersedes*
//!
//! - every write and trim that had ended before `v` was issued, and with them what was there before the run,
//! - and nothing else: of writes that overlap, any may be the one that stays, whichever order they are acknowledged in.
//!
//! Whatever is issued and not superseded may be read. A failed write may be there, in part, or not, and supersedes
//! nothing. A trim leaves zeros or what was there, so it supersedes only earlier trims. The ledger keeps of this the
//! interval from the *floor*, the oldest write not superseded, to the latest *issued*, and whether a trim is among
//! them. Sectors are judged one by one: a unit may hold sectors of several generations if each may be there. A read is
//! held against everything that could have been there at any moment between submission and completion, so the
//! [`Expectation`] is taken before it is submitted; a sector that changes while it is read is not judged, since
//! buffered I/O copies without a lock.
//!
//! After a crash of the process only, the same interval holds. After power was lost a volatile cache may take back what
//! was acknowledged after the last flush: acknowledgements fall into *epochs*, which [`Stamper::flush`] ends, and the
//! entry remembers the floor that the last completed flush made *durable*. A generation below the floor is lost; below
//! the durable floor it is lost although flushed. What the interval gives away: a generation within it that only an
//! overlapping later one superseded passes for intact, until the next write; and a durable floor is known as of the
//! last time that the floor rose.
//!
//! # The ledger
//!
//! 16 bytes a unit of the target, in a sparse file that is mapped: 3.9 GB for 1 TB in units of 4 KiB if all are
//! written, nothing for those that are not. `issued` is stored before the write is submitted, the floor after its
//! completion, and every single store leaves an entry that is true, so that a `kill -9` at any instruction gives no
//! false alarm. If the ledger's host loses power, the kernel has written what is older than
//! `vm.dirty_expire_centisecs` + `vm.dirty_writeback_centisecs` (35 s by default), and everything up to the last
//! [`Stamper::sync`]. What the ledger then lacks makes a check milder, never wrong: newer data count as [`Class::Ahead`], and
//! zeros as a trim that it lost. Units are given room on the file system before they are used, so that a full one is
//! an error.
//!
//! # Without a ledger
//!
//! The stamps alone tell damage, misplaced data, other runs' data and requests of which only a part is there. They
//! cannot tell whether a newer write was lost, nor whether a request was torn or partly overwritten by one that
//! overlapped it; the report says so.
//!
//! # Threads
//!
//! [`Stamper`] and [`Ledger`] are shared by reference; workers may share a span. Units are locked in groups of 64,
//! spread over 64 locks, held for the entries alone and not while data are made. Every worker has an
//! [`IntegrityReport`] of its own, merged at the end, and every slot of its queue an [`Expectation`].

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
pub(crate) use stamp::{Found, Generation, Stamp, examine};
pub use stamper::{Expectation, Stamper, Ticket};

/// How a target is divided: units that are written as a whole, of sectors that carry a stamp each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    span_bytes: u64,
    unit_bytes: u32,
    sector_bytes: u32,
}

impl Layout {
    /// The first `span_bytes` of a target in units of `unit_bytes`, the smallest length and alignment that is written
    /// or trimmed, with a stamp every `sector_bytes`, the target's logical block.
    ///
    /// # Errors
    /// Sectors that are no power of two from 512 to 65536, units that are no multiple of them, a span of no unit or of
    /// more than 2^40.
    pub fn new(span_bytes: u64, unit_bytes: u32, sector_bytes: u32) -> Result<Layout, LoadError> {
        if !sector_bytes.is_power_of_two() || !(512..=65536).contains(&sector_bytes) {
            return Err(invalid(format!(
                "sectors of {sector_bytes} bytes: a power of two from 512 to 65536 is needed"
            )));
        }
        if unit_bytes == 0 || !unit_bytes.is_multiple_of(sector_bytes) {
            return Err(invalid(format!("units of {unit_bytes} bytes: a multiple of {sector_bytes} is needed")));
        }
        let layout = Layout { span_bytes, unit_bytes, sector_bytes };
        if layout.units() == 0 || layout.units() > 1 << 40 {
            let most = u128::from(unit_bytes) << 40;
            return Err(invalid(format!("a span of {span_bytes} bytes: from {unit_bytes} to {most} are needed")));
        }
        Ok(layout)
    }

    /// Bytes of the target from its begin.
    pub fn span_bytes(&self) -> u64 {
        self.span_bytes
    }

    /// Bytes of the smallest write.
    pub fn unit_bytes(&self) -> u32 {
        self.unit_bytes
    }

    /// Bytes that carry one stamp.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Whole units in the span.
    pub(crate) fn units(&self) -> u64 {
        self.span_bytes / u64::from(self.unit_bytes)
    }

    /// The units of a request.
    fn units_of(&self, offset: u64, length: u64) -> Result<Range<u64>, LoadError> {
        let unit = u64::from(self.unit_bytes);
        let end = offset.checked_add(length).filter(|&end| end <= self.units() * unit);
        match end {
            Some(end) if length > 0 && offset.is_multiple_of(unit) && length.is_multiple_of(unit) => {
                Ok(offset / unit..end / unit)
            }
            _ => Err(invalid(format!(
                "a request of {length} bytes at {offset}: multiples of {unit} below {} are needed",
                self.units() * unit
            ))),
        }
    }
}

fn invalid(message: String) -> LoadError {
    LoadError::Target { target: "integrity".to_owned(), message }
}
