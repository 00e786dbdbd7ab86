//! [`DirtyFile`]: the dirty pages of one file and their order on the way to the device.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Dirty pages of a file.
#[derive(Clone, Debug, Default)]
pub(in crate::stack) struct DirtyFile {
    /// Dirty pages that nothing sends yet.
    dirty: BTreeSet<u64>,
    /// Pages that a sync or their age sends, with the number of the round that they belong to.
    tagged: BTreeMap<u64, u64>,
    /// Pages at the device, with their round.
    writing: BTreeMap<u64, u64>,
    /// Next page of background writeback, which goes in circles.
    cursor: u64,
    /// Since when a page is dirty that nothing sends yet.
    dirty_since_ns: Option<u64>,
    /// Rounds in order: number, pages that are not on the device yet.
    rounds: VecDeque<(u64, u64)>,
    round: u64,
    /// Syncs that wait for their round.
    syncs: VecDeque<(u64, u32)>,
}

impl DirtyFile {
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

    /// Returns when the oldest dirty page is written back: at the first of the regular looks, `interval_ns` apart, at
    /// which its age is `expire_ns`.
    pub fn due_ns(&self, expire_ns: u64, interval_ns: u64) -> u64 {
        self.dirty_since_ns.map_or(u64::MAX, |since_ns| (since_ns + expire_ns).div_ceil(interval_ns) * interval_ns)
    }

    /// Whether pages wait that a sync or their age sends.
    pub fn has_tagged(&self) -> bool {
        !self.tagged.is_empty()
    }

    /// Whether dirty pages wait that nothing sends yet.
    pub fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
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

    /// Puts the pages `first..end` into a round; returns the newest round that has pages.
    pub fn tag(&mut self, first: u64, end: u64) -> Option<u64> {
        let pages: Vec<u64> = self.dirty.range(first..end).copied().collect();
        if !pages.is_empty() {
            self.round += 1;
            self.rounds.push_back((self.round, pages.len() as u64));
        }
        for page in pages {
            self.dirty.remove(&page);
            self.tagged.insert(page, self.round);
        }
        if self.dirty.is_empty() {
            self.dirty_since_ns = None;
        }
        self.rounds.back().map(|&(round, _)| round)
    }

    /// Lets a sync wait for a round.
    pub fn await_round(&mut self, round: u64, sync: u32) {
        self.syncs.push_back((round, sync));
    }

    /// Returns the syncs that wait.
    pub fn waiting_syncs(&self) -> impl Iterator<Item = u32> {
        self.syncs.iter().map(|&(_, sync)| sync)
    }

    /// Takes the next sync whose rounds are all on the device.
    pub fn take_sync(&mut self) -> Option<u32> {
        let first_round = self.rounds.front().map_or(u64::MAX, |&(round, _)| round);
        let is_ended = self.syncs.front().is_some_and(|&(round, _)| round < first_round);
        if is_ended { self.syncs.pop_front().map(|(_, sync)| sync) } else { None }
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
    fn count_off(&mut self, round: u64) {
        let at = self.rounds.binary_search_by_key(&round, |&(number, _)| number).expect("the round has this page");
        self.rounds[at].1 -= 1;
        while self.rounds.front().is_some_and(|&(_, pages)| pages == 0) {
            self.rounds.pop_front();
        }
    }

    /// Notes that a page is on the device.
    pub fn page_written(&mut self, page: u64) {
        let round = self.writing.remove(&page).expect("the page was on its way");
        self.count_off(round);
    }

    /// Takes the next run of tagged pages, at most `pages_max`: the first page and the one after the last. Returns
    /// `None` if there is none, or if the next page is still on its way to the device from an earlier round.
    pub fn take_tagged(&mut self, pages_max: u64) -> Option<(u64, u64)> {
        let (&first, &round) = self.tagged.range(self.cursor..).next().or_else(|| self.tagged.iter().next())?;
        let mut end = first;
        while end - first < pages_max && self.tagged.get(&end) == Some(&round) && !self.writing.contains_key(&end) {
            self.tagged.remove(&end);
            self.writing.insert(end, round);
            end += 1;
        }
        if end == first {
            return None;
        }
        self.cursor = end;
        Some((first, end))
    }

    /// Takes the next run of dirty pages that nothing sends yet, like [`Self::take_tagged`].
    pub fn take_dirty(&mut self, pages_max: u64) -> Option<(u64, u64)> {
        let first = *self.dirty.range(self.cursor..).next().or_else(|| self.dirty.first())?;
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

    /// Adds the pages of `from..until` that are not on the device.
    pub fn pages_at_risk(&self, from: u64, until: u64, into: &mut BTreeSet<u64>) {
        into.extend(self.dirty.range(from..until));
        into.extend(self.tagged.range(from..until).map(|(page, _)| page));
        into.extend(self.writing.range(from..until).map(|(page, _)| page));
    }
}
