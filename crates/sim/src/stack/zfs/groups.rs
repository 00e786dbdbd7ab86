//! [`Groups`]: the transaction groups: one open, at most one quiesced, at most one syncing (txg.c), and the write
//! throttle (dmu_tx.c).

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::description::stack::{ZfsDescription, ZfsParameters};

/// Change of a record in a group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// New data, by write `number`. With a place if the log wrote them to their final place already.
    Data { number: u64, slot: Option<u64> },
    /// The record is freed.
    Free,
}

/// A transaction group.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub number: u64,
    pub changes: FxHashMap<u64, Change>,
    /// Dirty bytes that it added.
    pub bytes: u64,
    /// Bytes of its log records.
    pub logged_bytes: u64,
    /// Places that the log used in vain, because the record changed again.
    pub unused_slots: Vec<u64>,
    /// Number of its last write.
    pub last_write: u64,
}

/// Next I/O of a group that syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Data,
    /// Time for a scrub or resilver.
    Scan,
    Metadata(usize),
    Flush,
    Uberblock,
    LastFlush,
}

/// Metadata blocks that are written together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub blocks: u32,
    pub copies: u32,
    pub bytes: u32,
}

/// The group that syncs.
#[derive(Clone, Debug)]
pub(super) struct Syncing {
    pub group: Group,
    pub step: Step,
    /// I/O without an answer.
    pub outstanding: u32,
    /// Its changes, by ascending record.
    pub changes: Vec<(u64, Change)>,
    /// New places of its records, for those changes that are issued: the first ones.
    pub moves: Vec<(u64, Option<u64>)>,
    pub rounds: Vec<Round>,
}

/// All groups that are not synced.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    pub open: Group,
    pub quiesced: Option<Group>,
    pub syncing: Option<Syncing>,
    /// Number of the last synced group.
    pub synced: u64,
    /// When the last sync started.
    pub started_ns: u64,
    /// Group whose timeout is scheduled.
    pub timed: u64,
    pub dirty_bytes: u64,
    pub logged_bytes: u64,
    last_wakeup_ns: u64,
    /// Requests that wait for dirty data to fall below the maximum.
    pub blocked: VecDeque<u32>,
    dirty_max_bytes: u64,
    sync_bytes: u64,
    logged_max_bytes: u64,
}

impl Groups {
    /// Creates an empty open group.
    pub fn new(zfs: &ZfsDescription, now_ns: u64) -> Groups {
        let (max, parameters) = (zfs.dirty_data_max_bytes, &zfs.parameters);
        Groups {
            open: Group { number: 1, ..Group::default() },
            quiesced: None,
            syncing: None,
            synced: 0,
            started_ns: now_ns,
            timed: 0,
            dirty_bytes: 0,
            logged_bytes: 0,
            last_wakeup_ns: 0,
            blocked: VecDeque::new(),
            dirty_max_bytes: max,
            sync_bytes: max * u64::from(parameters.dirty_sync_percent) / 100,
            logged_max_bytes: max * u64::from(parameters.write_log_factor),
        }
    }

    /// Whether the newest contents of a record are in memory, because a group that is not synced changed it.
    pub fn holds(&self, record: u64) -> bool {
        let changes = |group: &Group| group.changes.contains_key(&record);
        changes(&self.open)
            || self.quiesced.as_ref().is_some_and(changes)
            || self.syncing.as_ref().is_some_and(|syncing| changes(&syncing.group))
    }

    /// Adds a write to a record to the open group; returns whether the record was clean in it.
    pub fn write(&mut self, record: u64, number: u64, record_bytes: u64) -> bool {
        self.open.last_write = number;
        let old = self.open.changes.insert(record, Change::Data { number, slot: None });
        let was_dirty = match old {
            Some(Change::Data { slot, .. }) => {
                self.open.unused_slots.extend(slot);
                true
            }
            Some(Change::Free) | None => false,
        };
        if !was_dirty {
            self.open.bytes += record_bytes;
            self.dirty_bytes += record_bytes;
        }
        !was_dirty
    }

    /// Frees a record in the open group; returns whether it was dirty in it.
    pub fn free(&mut self, record: u64, record_bytes: u64) -> bool {
        let Some(Change::Data { slot, .. }) = self.open.changes.insert(record, Change::Free) else { return false };
        self.open.unused_slots.extend(slot);
        self.open.bytes -= record_bytes;
        self.dirty_bytes -= record_bytes;
        true
    }

    /// Records the final place of a record that the log wrote; false if the record has changed or is syncing.
    pub fn set_slot(&mut self, group: u64, record: u64, write: u64, place: u64) -> bool {
        let groups = [Some(&mut self.open), self.quiesced.as_mut()].into_iter().flatten();
        for candidate in groups.filter(|candidate| candidate.number == group) {
            if let Some(Change::Data { number, slot }) = candidate.changes.get_mut(&record)
                && *number == write
            {
                *slot = Some(place);
                return true;
            }
        }
        false
    }

    /// Whether writers wait until dirty data fall.
    pub fn is_full(&self) -> bool {
        self.dirty_bytes >= self.dirty_max_bytes || self.logged_bytes >= self.logged_max_bytes
    }

    /// Whether the open group holds so many dirty data that it syncs.
    pub fn is_due(&self) -> bool {
        self.open.bytes > self.sync_bytes
    }

    /// Closes the open group. It becomes the quiesced one at once, since a transaction takes no time.
    pub fn quiesce(&mut self) {
        debug_assert!(self.quiesced.is_none(), "one group is quiesced at a time");
        let next = Group { number: self.open.number + 1, ..Group::default() };
        self.quiesced = Some(std::mem::replace(&mut self.open, next));
    }

    /// Returns when a request of `transactions` that began at `start_ns` may continue (`dmu_tx_delay`).
    pub fn wake_ns(&mut self, parameters: &ZfsParameters, start_ns: u64, now_ns: u64, transactions: u64) -> u64 {
        let of_dirty = delay_ns(parameters, self.dirty_bytes, self.dirty_max_bytes);
        let delay_ns = of_dirty.max(delay_ns(parameters, self.logged_bytes, self.logged_max_bytes));
        let (mut start_ns, mut now_ns) = (start_ns, now_ns);
        for _ in 0..transactions {
            if delay_ns == 0 || now_ns > start_ns + delay_ns {
                break;
            }
            now_ns = (start_ns + delay_ns).max(self.last_wakeup_ns + delay_ns);
            self.last_wakeup_ns = now_ns;
            start_ns = now_ns;
        }
        now_ns
    }
}

/// Returns the delay of a transaction: scale x (dirty - least) / (max - dirty), where least is a percentage of the
/// maximum.
pub(super) fn delay_ns(parameters: &ZfsParameters, dirty_bytes: u64, max_bytes: u64) -> u64 {
    let least = max_bytes * u64::from(parameters.delay_min_dirty_percent) / 100;
    if dirty_bytes <= least {
        return 0;
    }
    let (above, below) = (u128::from(dirty_bytes - least), u128::from(max_bytes.saturating_sub(dirty_bytes)));
    let delay = (u128::from(parameters.delay_scale_ns) * above).checked_div(below).unwrap_or(u128::MAX);
    delay.min(u128::from(parameters.delay_max_ns)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 500 us in the middle between 60 % and the maximum, that is 2,000 transactions a second by any number of threads.
    #[test]
    fn the_delay_is_that_of_the_formula() {
        let parameters = ZfsParameters::v2_4();
        let delays = [599, 600, 683, 800, 950, 999, 1000, 2000].map(|dirty| delay_ns(&parameters, dirty, 1000));
        assert_eq!(delays, [0, 0, 130_914, 500_000, 3_500_000, 100_000_000, 100_000_000, 100_000_000]);
        let mut groups = Groups::new(&ZfsDescription::new(parameters.clone(), 10 << 30, 1 << 30), 0);
        groups.dirty_bytes = groups.dirty_max_bytes / 10 * 8;
        let wakes: Vec<u64> = (0..3).map(|_| groups.wake_ns(&parameters, 7_000, 7_000, 1)).collect();
        let first = wakes[0];
        assert!((499_000..=507_001).contains(&first), "{first}");
        assert_eq!([wakes[1] - first, wakes[2] - wakes[1]], [first - 7_000; 2]);
    }
}
