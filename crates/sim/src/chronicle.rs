//! The event log: what happens inside a system, for visualisations.
//!
//! Without the feature `chronicle` it is compiled out: [`note`] is empty, and costs nothing in a simulation for
//! figures. With it, events are kept if requested ([`chronicle`]), otherwise dropped.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use serde::Serialize;

/// Something that happens. Times are virtual; a member of a system that is one drive is 0.
#[allow(missing_docs)] // Of fields, whose names say it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Event {
    /// A request of the host's; requests are numbered from 0 on.
    Arrives {
        at_ns: u64,
        request: u32,
        kind: &'static str,
        offset_bytes: u64,
        length_bytes: u32,
        /// Dirty pages in the cache of an array.
        dirty_pages: u32,
    },
    /// Its answer is with the host.
    Completes { at_ns: u64, request: u32, started_ns: u64, dirty_pages: u32 },
    /// An array sends a command to a member; commands are numbered from 0 on.
    Command {
        at_ns: u64,
        command: u32,
        member: u32,
        kind: &'static str,
        offset_bytes: u64,
        length_bytes: u32,
        purpose: Purpose,
        /// The host's request that waits for it, if one does.
        request: Option<u32>,
    },
    /// A member has done it.
    Answers { at_ns: u64, command: u32 },
    /// A member is gone.
    Fails { at_ns: u64, member: u32 },
    /// Progress of filling a spare.
    Rebuilt { at_ns: u64, member: u32, done_bytes: u64, of_bytes: u64 },
    /// A job waits for the arm. Angles are in turns.
    Waits { at_ns: u64, member: u32, work: Work, id: u32, cylinder: u32, head: u32, angle: f64 },
    /// The arm takes a job: from `start_ns` to `end_ns` it seeks, waits for the sector, and transfers.
    Access {
        at_ns: u64,
        member: u32,
        work: Work,
        id: u32,
        write: bool,
        from_cylinder: u32,
        cylinder: u32,
        head: u32,
        angle: f64,
        start_ns: u64,
        seek_ns: u64,
        rotation_ns: u64,
        end_ns: u64,
    },
    /// A read that is served from the buffer.
    Hit { at_ns: u64, member: u32, id: u32 },
    /// The write cache takes a write.
    Cached { at_ns: u64, member: u32, id: u32, dirty_sectors: u64 },
    /// An extent of the write cache is on the media.
    Destaged { at_ns: u64, member: u32, dirty_sectors: u64 },
    /// New contents of a buffer segment.
    Segment { at_ns: u64, member: u32, segment: u32, from_block: u64, to_block: u64 },
    /// A read is given to a die.
    Asks { at_ns: u64, member: u32, die: u32, id: Option<u32> },
    /// A die starts an activity, replacing any previous one.
    Die { at_ns: u64, member: u32, die: u32, does: DieWork, ends_ns: u64, id: Option<u32> },
}

/// Whose job an arm does; its `id` is a request of the host's, or a command of the array's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// A command.
    Command,
    /// An extent of the write cache, by its slot there.
    Destage,
    /// The drive's own: cleaning, scans.
    Own,
}

/// Purpose of a command to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Requested data, or data of the host.
    Data,
    /// Parity that is written, or read to be renewed.
    Parity,
    /// Overwritten data, or other data of their stripe: read for parity.
    Old,
    /// The rest of a stripe, read in place of missing data.
    Survivor,
    /// A rebuild.
    Rebuild,
    /// The array's own: its bitmap, a pool's migration, a cache in flash.
    Upkeep,
}

/// Work of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DieWork {
    /// Reads its array.
    Sense,
    /// Data leave over the channel.
    Send,
    /// The host's data come over the channel.
    Load,
    /// It programs them.
    Program,
    /// Collection: moved data are read, sent and loaded.
    Move,
    /// Collection: they are programmed.
    ProgramMoved,
    /// Collection: a block is erased.
    Erase,
    /// It leaves a program or an erase for a read.
    Suspend,
}

/// Event log of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Chronicle {
    /// In the order in which the simulator came to them; times of one part of a system ascend.
    pub events: Vec<Event>,
    /// There were more than were wanted.
    pub is_cut: bool,
}

/// Names of items under way in events, since slots of the simulator are reused.
#[derive(Default)]
pub(crate) struct Names {
    /// The member of an array that is at work.
    member: Option<u32>,
    requests: Numbers,
    commands: Numbers,
    /// For a command that a disk passes on: its name at the host.
    passed_on: HashMap<(Option<u32>, u32), u32>,
    /// For each slot of an SSD: the name of the command in it.
    slots: HashMap<(Option<u32>, u32), u32>,
}

/// Current number of a slot's item.
#[derive(Default)]
struct Numbers {
    by_slot: HashMap<u32, u32>,
    count: u32,
}

impl Numbers {
    fn next(&mut self, slot: u32) -> u32 {
        self.by_slot.insert(slot, self.count);
        self.count += 1;
        self.count - 1
    }

    fn of(&self, slot: u32) -> u32 {
        self.by_slot[&slot]
    }
}

impl Names {
    /// The member that is at work; 0 of a system that is one drive.
    pub fn member(&self) -> u32 {
        self.member.unwrap_or(0)
    }

    /// A new request of the host's.
    pub fn new_request(&mut self, id: u32) -> u32 {
        self.requests.next(id)
    }

    /// A request of the host's.
    pub fn request(&self, id: u32) -> u32 {
        self.requests.of(id)
    }

    /// A new command of an array's.
    pub fn new_command(&mut self, slot: u32) -> u32 {
        self.commands.next(slot)
    }

    /// A command of an array's.
    pub fn command(&self, slot: u32) -> u32 {
        self.commands.of(slot)
    }

    /// A command in a drive: a request of the host, or in an array one of its commands.
    pub fn of(&self, id: u32) -> u32 {
        let id = *self.passed_on.get(&(self.member, id)).unwrap_or(&id);
        if self.member.is_some() { self.command(id) } else { self.request(id) }
    }

    /// The command in a slot of a solid-state drive.
    pub fn in_slot(&self, slot: u32) -> u32 {
        self.of(self.slots[&(self.member, slot)])
    }
}

#[derive(Default)]
struct Log {
    events: Vec<Event>,
    events_max: usize,
    is_cut: bool,
    names: Names,
}

thread_local! {
    static IS_KEPT: Cell<bool> = const { Cell::new(false) };
    static LOG: RefCell<Log> = RefCell::default();
}

/// Returns the result of `work`, and the first `events_max` events of the last run in it.
pub fn chronicle<T>(events_max: usize, work: impl FnOnce() -> T) -> (T, Chronicle) {
    LOG.replace(Log { events_max, ..Log::default() });
    IS_KEPT.set(true);
    let done = work();
    IS_KEPT.set(false);
    let Log { events, is_cut, .. } = LOG.take();
    (done, Chronicle { events, is_cut })
}

/// Records an event, if the log is enabled.
#[inline(always)]
pub(crate) fn note(make: impl FnOnce(&mut Names) -> Event) {
    with(|log| {
        let event = make(&mut log.names);
        if log.events.len() < log.events_max {
            log.events.push(event);
        } else {
            log.is_cut = true;
        }
    });
}

/// A system starts: earlier runs that warmed up its caches are dropped.
pub(crate) fn begins() {
    with(|log| *log = Log { events_max: log.events_max, ..Log::default() });
}

/// The member of an array that is at work from now on.
#[inline(always)]
pub(crate) fn at_member(member: usize) {
    with(|log| log.names.member = Some(member as u32));
}

/// A disk passes a command on under a name of its own.
#[inline(always)]
pub(crate) fn passed_on(name: u32, id: u32) {
    with(|log| {
        let member = log.names.member;
        log.names.passed_on.insert((member, name), id);
    });
}

/// A command is in a slot of a solid-state drive.
#[inline(always)]
pub(crate) fn takes_slot(slot: u32, id: u32) {
    with(|log| {
        let member = log.names.member;
        log.names.slots.insert((member, slot), id);
    });
}

#[inline(always)]
fn with(work: impl FnOnce(&mut Log)) {
    if cfg!(feature = "chronicle") && IS_KEPT.get() {
        LOG.with_borrow_mut(work);
    }
}
