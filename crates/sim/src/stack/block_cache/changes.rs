//! [`Changes`]: changes of the map that the cache device does not have yet.

use headstack_workload::Span;

use crate::stack::ranges::Ranges;

/// Changes since a commit.
#[derive(Clone, Debug, Default)]
struct Since {
    /// Ranges that were mapped to a new place.
    fresh: Ranges,
    /// Ranges whose newest acknowledged data need the commit.
    at_risk: Ranges,
    /// Changed entries.
    entries: u64,
}

/// Changes that wait for a commit, and those that the running one writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    open: Since,
    committing: Since,
}

impl Changes {
    /// Notes that `[from, to)` was mapped to a new place.
    pub fn mapped(&mut self, from: u64, to: u64) {
        self.open.fresh.insert(from, to);
        self.open.entries += 1;
    }

    /// Notes that entries were removed.
    pub fn unmapped(&mut self) {
        self.open.entries += 1;
    }

    /// Notes that the newest data of `[from, to)` would be lost without a commit of the open changes.
    pub fn endanger(&mut self, from: u64, to: u64) {
        debug_assert!(self.open.entries > 0, "a commit will come");
        self.open.at_risk.insert(from, to);
    }

    /// Notes that `[from, to)` was written in place: its newest data need the commit of that place, if there was none.
    pub fn written_in_place(&mut self, from: u64, to: u64) {
        for since in [&mut self.open, &mut self.committing] {
            if since.fresh.contains(from) {
                since.at_risk.insert(from, to);
                return;
            }
        }
    }

    /// Whether the place of a byte is not committed.
    pub fn is_fresh(&self, byte: u64) -> bool {
        self.open.fresh.contains(byte) || self.committing.fresh.contains(byte)
    }

    /// Returns the number of entries that wait for a commit.
    pub fn entries(&self) -> u64 {
        self.open.entries
    }

    /// Begins a commit of all changes; returns the number of entries.
    pub fn begin(&mut self) -> u64 {
        debug_assert!(self.committing.entries == 0 && self.committing.at_risk.is_empty(), "one commit at a time");
        self.committing = std::mem::take(&mut self.open);
        self.committing.entries
    }

    /// Ends the commit. Without `done`, its changes wait for the next one.
    pub fn end(&mut self, done: bool) {
        let tried = std::mem::take(&mut self.committing);
        if !done {
            tried.fresh.iter().for_each(|(from, to)| _ = self.open.fresh.insert(from, to));
            tried.at_risk.iter().for_each(|(from, to)| _ = self.open.at_risk.insert(from, to));
            self.open.entries += tried.entries;
        }
    }

    /// Appends the parts of a span whose newest data a power cut would lose.
    pub fn at_risk(&self, span: Span, into: &mut Vec<Span>) {
        self.open.at_risk.within(span, into);
        self.committing.at_risk.within(span, into);
    }

    /// Forgets everything; returns the ranges whose map entries are lost.
    pub fn power_cycle(&mut self) -> Vec<(u64, u64)> {
        let lost = std::mem::take(self);
        let ranges = [&lost.open, &lost.committing].into_iter();
        ranges.flat_map(|since| since.fresh.iter().chain(since.at_risk.iter())).collect()
    }
}
