//! [`Writeback`]: dirty pages and their order on the way to the device.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use headstack_workload::Span;

use crate::description::stack::PageCacheDescription;
use crate::spans::common_with_all;

/// Dirty pages and their way to the device.
#[derive(Clone, Debug, Default)]
pub(super) struct Writeback {
    /// Dirty pages that nothing sends yet.
    dirty: BTreeSet<u64>,
    /// Pages that a sync or their age sends, with the number of the round that they belong to.
    tagged: BTreeMap<u64, u64>,
    /// Pages at the device, with their round.
    pub writing: BTreeMap<u64, u64>,
    pub writes_under_way: u32,
    /// Next page of background writeback, which goes in circles.
    cursor: u64,
    /// Since when a page is dirty that nothing sends yet.
    dirty_since_ns: Option<u64>,
    /// Rounds in order: number, pages that are not on the device yet.
    pub rounds: VecDeque<(u64, u64)>,
    round: u64,
    /// Syncs that wait for their round.
    pub syncs: VecDeque<(u64, u32)>,
}

impl Writeback {
    /// Adds a page that became dirty.
    pub fn add_dirty(&mut self, now_ns: u64, page: u64) {
        self.dirty_since_ns.get_or_insert(now_ns);
        if !self.tagged.contains_key(&page) {
            self.dirty.insert(page);
        }
    }

    /// Forgets a page that was dropped.
    pub fn forget(&mut self, page: u64) {
        self.dirty.remove(&page);
        if let Some(round) = self.tagged.remove(&page) {
            self.count_off(round);
        }
    }

    /// Returns when the oldest dirty page is written back, at one of the regular looks.
    pub fn due_ns(&self, description: &PageCacheDescription) -> u64 {
        let interval_ns = description.writeback_interval_ns;
        self.dirty_since_ns
            .map_or(u64::MAX, |since_ns| (since_ns + description.expire_ns).div_ceil(interval_ns) * interval_ns)
    }

    /// Puts all dirty pages into a round; returns the newest round that has pages.
    pub fn tag_all(&mut self) -> Option<u64> {
        self.dirty_since_ns = None;
        let pages = std::mem::take(&mut self.dirty);
        if !pages.is_empty() {
            self.round += 1;
            self.rounds.push_back((self.round, pages.len() as u64));
            let round = self.round;
            self.tagged.extend(pages.into_iter().map(|page| (page, round)));
        }
        self.rounds.back().map(|&(round, _)| round)
    }

    /// Adds pages to the newest round, so that a later sync waits for them; returns its number.
    fn add_to_round(&mut self, pages: u64) -> u64 {
        if let Some((round, count)) = self.rounds.back_mut() {
            *count += pages;
            return *round;
        }
        self.round += 1;
        self.rounds.push_back((self.round, pages));
        self.round
    }

    /// Notes that a page of a round is on the device, or need not get there.
    pub fn count_off(&mut self, round: u64) {
        let at = self.rounds.binary_search_by_key(&round, |&(number, _)| number).expect("the round has this page");
        self.rounds[at].1 -= 1;
        while self.rounds.front().is_some_and(|&(_, pages)| pages == 0) {
            self.rounds.pop_front();
        }
    }

    /// Takes the next run of pages to write, at most `pages_max`: tagged ones first, then with `background` any dirty
    /// ones. Returns the first page and the one after the last.
    pub fn take_run(&mut self, pages_max: u64, background: bool) -> Option<(u64, u64)> {
        let tagged = self.tagged.range(self.cursor..).next().or_else(|| self.tagged.iter().next());
        if let Some((&first, &round)) = tagged {
            let mut end = first;
            while end - first < pages_max && self.tagged.get(&end) == Some(&round) && !self.writing.contains_key(&end) {
                self.tagged.remove(&end);
                self.writing.insert(end, round);
                end += 1;
            }
            // A page that is still on its way to the device waits for its end.
            if end > first {
                self.cursor = end;
                return Some((first, end));
            }
            return None;
        }
        let dirty = self.dirty.range(self.cursor..).next().or_else(|| self.dirty.first());
        let first = *dirty.filter(|_| background)?;
        let mut end = first;
        while end - first < pages_max && !self.writing.contains_key(&end) && self.dirty.remove(&end) {
            end += 1;
        }
        let round = self.add_to_round(end - first);
        self.writing.extend((first..end).map(|page| (page, round)));
        self.cursor = end.max(first + 1);
        if self.dirty.is_empty() {
            self.dirty_since_ns = None;
        }
        (end > first).then_some((first, end))
    }

    /// Appends the parts of `spans` in pages that are not on the device.
    pub fn not_on_device(&self, spans: &[Span], is_dirty: impl Fn(u64) -> bool, into: &mut Vec<Span>) {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return };
        let from = first.start_bytes / PageCacheDescription::PAGE_BYTES;
        let until = (last.start_bytes + last.length_bytes).div_ceil(PageCacheDescription::PAGE_BYTES);
        let mut pages: BTreeSet<u64> = self.dirty.range(from..until).copied().collect();
        pages.extend(self.tagged.range(from..until).map(|(&page, _)| page));
        pages.extend(self.writing.range(from..until).map(|(&page, _)| page));
        for page in pages {
            debug_assert!(is_dirty(page), "page {page} is not dirty in memory");
            common_with_all(
                spans,
                page * PageCacheDescription::PAGE_BYTES,
                (page + 1) * PageCacheDescription::PAGE_BYTES,
                into,
            );
        }
    }
}
