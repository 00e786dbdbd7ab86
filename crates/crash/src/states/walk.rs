//! [`Walk`]: which changes are durable and which are open after each event of a recording.
//!
//! A change becomes durable when a flush that was sent after the change was acknowledged is itself acknowledged; when
//! the change is acknowledged, if it was forced or the device has no volatile cache; and when power returns, since the
//! present data has survived. A failed change never becomes durable this way: its data may or may not be present until
//! a durable change overwrites it.

use rustc_hash::FxHashSet;

use super::extents::{Range, without};
use crate::recording::{Event, Fate, Recording, Stored};

/// A change that a crash may lose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    /// Number of the change.
    pub(crate) change: u32,
    /// Ranges of the change that no durable change covers.
    pub(crate) left: Vec<Range>,
    /// Index of the event that acknowledged the change; `None` before.
    acknowledged_at: Option<usize>,
    /// Whether the change failed, so that the device guarantees nothing about its data.
    pub(crate) has_failed: bool,
}

/// A position in a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    /// Number of events so far.
    pub(crate) events: usize,
    /// Number of marks so far.
    pub(crate) marks: usize,
    /// Changes that are not durable, in the order in which they were sent.
    pub(crate) open: Vec<Open>,
    /// Index of the event at which each flush was sent.
    flushes: Vec<usize>,
    /// Whether power is off.
    is_off: bool,
}

impl Walk {
    /// Processes the next event. Calls `durable` with the changes that become durable, in the order in which they were
    /// sent.
    pub(crate) fn step(&mut self, recording: &Recording, mut durable: impl FnMut(u32, &[Range])) {
        let at = self.events;
        self.events += 1;
        match recording.events[at] {
            Event::Change(change) => {
                let sent = &recording.changes[change as usize];
                let left = vec![(sent.offset_bytes, sent.offset_bytes + sent.length_bytes)];
                if sent.length_bytes > 0 {
                    self.open.push(Open { change, left, acknowledged_at: None, has_failed: false });
                }
            }
            Event::Changed(change, fate) => {
                let is_now = recording.changes[change as usize].is_forced || !recording.device.has_volatile_cache;
                let Ok(place) = self.open.binary_search_by_key(&change, |open| open.change) else { return };
                let open = &mut self.open[place];
                match fate {
                    Fate::Failed(_) => open.has_failed = true,
                    Fate::Acknowledged => open.acknowledged_at = Some(at),
                }
                if fate == Fate::Acknowledged && is_now {
                    self.settle(|open| open.change == change, &mut durable);
                }
            }
            Event::Flush(_) => self.flushes.push(at),
            Event::Flushed(flush, Fate::Acknowledged) => {
                let sent_at = self.flushes[flush as usize];
                self.settle(|open| open.acknowledged_at.is_some_and(|at| at < sent_at), &mut durable);
            }
            // A failed flush guarantees nothing.
            Event::Flushed(_, Fate::Failed(_)) => {}
            Event::Mark(_) => self.marks += 1,
            Event::PowerOff => self.is_off = true,
            Event::PowerOn => {
                self.is_off = false;
                self.settle(|_| true, &mut durable);
            }
        }
    }

    /// Makes some open changes durable, and drops the parts of earlier changes that they cover.
    fn settle(&mut self, is_durable: impl Fn(&Open) -> bool, durable: &mut impl FnMut(u32, &[Range])) {
        let (settled, mut open): (Vec<Open>, Vec<Open>) =
            std::mem::take(&mut self.open).into_iter().partition(is_durable);
        for one in &settled {
            durable(one.change, &one.left);
            let before = open.partition_point(|open| open.change < one.change);
            for beneath in &mut open[..before] {
                for &range in &one.left {
                    without(&mut beneath.left, range);
                }
            }
        }
        open.retain(|open| !open.left.is_empty());
        self.open = open;
    }
}

impl Recording {
    /// Returns the numbers of the changes that a crash after `events` events may lose, in order.
    pub fn open_after(&self, events: usize) -> Vec<u32> {
        let mut walk = Walk::default();
        while walk.events < events.min(self.events.len()) {
            walk.step(self, |_, _| {});
        }
        walk.open.iter().map(|open| open.change).collect()
    }
}

/// A moment after which the next event reduces the number of states, or adds a guarantee. The states of a crash at any
/// moment since the previous window are a subset of the states of a crash at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Number of events before the window.
    pub(crate) events: usize,
    /// Likelihood of faults: the number of open changes, weighted by how often their ranges were written before, or
    /// whether they were trimmed.
    pub(crate) interest: u32,
}

/// Returns the windows of a recording from event `from` on. If a device keeps order, changes that become durable by
/// themselves may survive without earlier changes.
pub(crate) fn windows(recording: &Recording, from: usize, keeps_order: bool) -> Vec<Window> {
    let (mut windows, mut walk, mut interest) = (Vec::new(), Walk::default(), Interest::default());
    // Whether a new possibility or guarantee was added since the previous window.
    let mut has_more = true;
    for (events, event) in recording.events.iter().enumerate() {
        if events == from {
            has_more = true;
        }
        let (before, was_on) = (interest.of(&walk), !walk.is_off);
        let mut settles = false;
        walk.step(recording, |_, _| settles = true);
        let ends = settles || matches!(event, Event::Mark(_) | Event::PowerOff);
        if ends && has_more && was_on && events >= from {
            windows.push(Window { events, interest: before });
            has_more = false;
        }
        has_more |= settles && keeps_order;
        match event {
            Event::Change(change) => {
                interest.sent(recording, *change);
                has_more = true;
            }
            // A failed change may survive in any mixture of its atoms.
            Event::Mark(_) | Event::PowerOn | Event::Changed(_, Fate::Failed(_)) => has_more = true,
            Event::Changed(_, Fate::Acknowledged) | Event::Flush(_) | Event::Flushed(..) | Event::PowerOff => {}
        }
    }
    if has_more && !walk.is_off {
        windows.push(Window { events: recording.events.len(), interest: interest.of(&walk) });
    }
    windows
}

/// Estimates how suspicious a change is: superblocks, metadata pages and commit records are rewritten again and again,
/// and trimmed ranges should no longer be in use.
#[derive(Default)]
struct Interest {
    places: FxHashSet<u64>,
    of_changes: Vec<u32>,
}

impl Interest {
    fn sent(&mut self, recording: &Recording, change: u32) {
        let change = &recording.changes[change as usize];
        let is_again = !self.places.insert(change.offset_bytes);
        let is_trim = change.stored == Stored::Trim;
        self.of_changes.push(1 + 2 * u32::from(is_again) + 4 * u32::from(is_trim));
    }

    fn of(&self, walk: &Walk) -> u32 {
        walk.open.iter().map(|open| self.of_changes[open.change as usize]).sum()
    }
}
