//! [`Ppl`]: the partial parity log of Linux md (drivers/md/raid5-ppl.c), which closes the write hole of RAID 5.
//!
//! Each member has a log in its own space, for the stripes whose parity it holds. Before the data and parity of a
//! stripe are written, md logs the partial parity: the XOR of the data that the write leaves unchanged. A log unit is
//! one forced write (FUA) of a header and the partial parity of its stripes. The next unit of a member waits until the
//! stripes of its previous one are written and, if a member caches writes, flushed. Stripes that arrive meanwhile
//! share the next unit.

use std::collections::VecDeque;

use super::levels::Plan;
use crate::description::array::PartialParityLog;

/// Bytes of a page, the unit in which partial parity is logged.
const PAGE_BYTES: u64 = 4096;
/// Entries of a header (`PPL_HDR_MAX_ENTRIES`): 4,096 bytes, of which 536 come before entries of 24 bytes.
const ENTRIES_MAX: usize = 148;

/// The logs of a group.
#[derive(Clone, Debug)]
pub struct Ppl {
    pub area_bytes: u64,
    /// The log on each slot.
    pub logs: Vec<MemberLog>,
    /// Number of log units written.
    pub written: u64,
    /// Bytes of these units.
    pub written_bytes: u64,
}

/// The log on a member.
#[derive(Clone, Debug, Default)]
pub struct MemberLog {
    /// Place of the next unit in the area of the log.
    next_bytes: u64,
    pub waiting: VecDeque<Unit>,
    pub running: Option<Unit>,
    /// Whether the write of the next unit is scheduled.
    pub is_due: bool,
}

/// A log unit.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    /// Row writes that wait for the log; empty once the log is written.
    pub rows: Vec<u32>,
    /// Bytes of partial parity.
    pub parity_bytes: u64,
    /// Rows that are not written yet, then members that are not flushed yet.
    pub pending: u32,
    /// Members with a volatile cache that the rows write to, ascending.
    pub to_flush: Vec<u32>,
}

impl Unit {
    /// Whether the partial parity of one more row fits. That of a row longer than a unit gets a unit of its own.
    fn takes(&self, parity_bytes: u64) -> bool {
        self.rows.len() < ENTRIES_MAX && self.parity_bytes + parity_bytes <= PartialParityLog::UNIT_BYTES
    }
}

impl MemberLog {
    /// Adds a row to the last waiting unit, or to a new one if it is full.
    pub fn append(&mut self, row: u32, parity_bytes: u64) {
        if !self.waiting.back().is_some_and(|unit| unit.takes(parity_bytes)) {
            self.waiting.push_back(Unit::default());
        }
        let unit = self.waiting.back_mut().expect("a unit was appended if there was none");
        unit.rows.push(row);
        unit.parity_bytes += parity_bytes;
    }

    /// Whether the write of the next unit must be scheduled; it then counts as scheduled.
    pub fn becomes_due(&mut self) -> bool {
        let must = self.running.is_none() && !self.waiting.is_empty() && !self.is_due;
        self.is_due |= must;
        must
    }

    /// Returns the place of a unit of this length; units follow each other in the area, which holds several.
    pub fn place(&mut self, length_bytes: u64, area_bytes: u64) -> u64 {
        if self.next_bytes + length_bytes > area_bytes {
            self.next_bytes = 0;
        }
        let place = self.next_bytes;
        self.next_bytes += length_bytes;
        place
    }
}

impl Ppl {
    /// Creates empty logs for a group with this number of slots.
    pub fn new(description: PartialParityLog, slots: usize) -> Ppl {
        let logs = vec![MemberLog::default(); slots];
        Ppl { area_bytes: description.area_bytes, logs, written: 0, written_bytes: 0 }
    }
}

/// Returns the bytes of partial parity that a write logs, in whole pages: the range of the parity, without the pages at
/// which every data unit is written. For these, recovery computes the parity from the data alone.
pub fn partial_parity_bytes(plan: &Plan, data_units: u64) -> u64 {
    let Some(parity) = plan.parity.first() else { return 0 };
    let touched = parity.end_bytes().div_ceil(PAGE_BYTES) - parity.at_bytes / PAGE_BYTES;
    let is_in_all = plan.data.len() as u64 == data_units;
    let from = plan.data.iter().map(|extent| extent.at_bytes).max().unwrap_or(0);
    let to = plan.data.iter().map(|extent| extent.end_bytes()).min().unwrap_or(0);
    let full = if is_in_all { (to / PAGE_BYTES).saturating_sub(from.div_ceil(PAGE_BYTES)) } else { 0 };
    (touched - full) * PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::super::levels::Extent;
    use super::*;

    /// Returns the pages of partial parity of a write to three data units of 64 KiB; ranges are in pages.
    fn pages(data: &[(u64, u64)], parity: (u64, u64)) -> u64 {
        let extent = |slot: usize, (from, to): (u64, u64)| Extent {
            slot: slot as u32,
            at_bytes: from * PAGE_BYTES,
            length_bytes: (to - from) * PAGE_BYTES,
        };
        let data = data.iter().enumerate().map(|(slot, &range)| extent(slot, range)).collect();
        let plan = Plan { data, parity: vec![extent(3, parity)], ..Plan::default() };
        partial_parity_bytes(&plan, 3) / PAGE_BYTES
    }

    /// The cases of raid5-ppl.c (`ppl_recover_entry`).
    #[test]
    fn stripes_that_are_written_as_a_whole_have_no_partial_parity() {
        assert_eq!(pages(&[(3, 5)], (3, 5)), 2);
        assert_eq!(pages(&[(0, 16), (0, 16)], (0, 16)), 16);
        assert_eq!(pages(&[(0, 16), (0, 16), (0, 16)], (0, 16)), 0);
        assert_eq!(pages(&[(4, 16), (0, 16), (0, 12)], (0, 16)), 8);
        assert_eq!(pages(&[(12, 16), (0, 16), (0, 4)], (0, 16)), 16);
    }

    #[test]
    fn units_follow_each_other_and_start_again_at_the_end_of_the_area() {
        let mut log = MemberLog::default();
        let places: Vec<u64> = [8, 8, 12, 4].iter().map(|pages| log.place(pages * PAGE_BYTES, 1 << 17)).collect();
        assert_eq!(places, [0, 8, 16, 28].map(|page| page * PAGE_BYTES));
        assert_eq!(log.place(PAGE_BYTES, 1 << 17), 0);
    }

    #[test]
    fn a_unit_holds_128_kib_of_partial_parity_or_148_entries() {
        let count = |parity_bytes: u64, rows: u32| {
            let mut log = MemberLog::default();
            (0..rows).for_each(|row| log.append(row, parity_bytes));
            log.waiting.iter().map(|unit| unit.rows.len()).collect::<Vec<_>>()
        };
        assert_eq!(count(PAGE_BYTES, 40), [32, 8]);
        assert_eq!(count(0, 150), [148, 2]);
        assert_eq!(count(512 << 10, 2), [1, 1]);
    }
}
