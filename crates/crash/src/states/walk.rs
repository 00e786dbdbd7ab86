//! What is durable and what is open, as the events of a recording go by.
//!
//! A change becomes durable when a flush is acknowledged that was sent after the change was acknowledged; when it is
//! acknowledged itself, if it was forced or there is no volatile cache; and when power is back, since what is there then has
//! survived. What failed is never covered: it may be there, or not, until something durable is written over it.

use rustc_hash::FxHashSet;

use super::extents::{Range, without};
use crate::recording::{Event, Fate, Recording, Stored};

/// A change that a crash may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    /// Which.
    pub(crate) change: u32,
    /// What of it nothing durable lies over.
    pub(crate) left: Vec<Range>,
    /// The event at which it was acknowledged.
    acknowledged_at: Option<usize>,
    /// It failed: the device promises nothing of it.
    pub(crate) has_failed: bool,
}

/// A place in a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    /// Events that have happened.
    pub(crate) events: usize,
    /// Marks that were made.
    pub(crate) marks: usize,
    /// Changes that are not durable, in the order in which they were sent.
    pub(crate) open: Vec<Open>,
    /// The event at which each flush was sent.
    flushes: Vec<usize>,
    /// Power is off.
    is_off: bool,
}

impl Walk {
    /// Lets the next event happen. What became durable by it goes to `durable`, in the order in which it was sent.
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
            // One that failed has done nothing that anybody could rely upon.
            Event::Flushed(_, Fate::Failed(_)) => {}
            Event::Mark(_) => self.marks += 1,
            Event::PowerOff => self.is_off = true,
            Event::PowerOn => {
                self.is_off = false;
                self.settle(|_| true, &mut durable);
            }
        }
    }

    /// Those of the open ones become durable: what was sent before and lies beneath them makes no difference any more.
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
    /// The changes that a crash behind so many events may take, by their numbers in order.
    pub fn open_after(&self, events: usize) -> Vec<u32> {
        let mut walk = Walk::default();
        while walk.events < events.min(self.events.len()) {
            walk.step(self, |_, _| {});
        }
        walk.open.iter().map(|open| open.change).collect()
    }
}

/// A moment after which the next event makes fewer states possible, or says that more was promised: all states of a crash at
/// any moment since the window before are among those of a crash now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Events that have happened.
    pub(crate) events: usize,
    /// How much points to trouble: what is open, more of it where it was written before, or trimmed.
    pub(crate) interest: u32,
}

/// The windows of a recording from an event on. Where a device keeps order, what becomes durable by itself may be there without
/// what came before, as it could not until then.
pub(crate) fn windows(recording: &Recording, from: usize, keeps_order: bool) -> Vec<Window> {
    let (mut windows, mut walk, mut interest) = (Vec::new(), Walk::default(), Interest::default());
    // Whether something is possible or promised that was not in the window before.
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
            // What has failed may be there as any mixture.
            Event::Mark(_) | Event::PowerOn | Event::Changed(_, Fate::Failed(_)) => has_more = true,
            Event::Changed(_, Fate::Acknowledged) | Event::Flush(_) | Event::Flushed(..) | Event::PowerOff => {}
        }
    }
    if has_more && !walk.is_off {
        windows.push(Window { events: recording.events.len(), interest: interest.of(&walk) });
    }
    windows
}

/// How much a change points to trouble: superblocks, meta pages and commit records are written again and again, and what was
/// trimmed is in use no more, or should not be.
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
