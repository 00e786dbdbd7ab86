//! Event log of a simulation ([`Chronicle`]), which shows how a system works.
//!
//! Without the feature `chronicle` none of this is compiled: [`note`] is empty, and so costs a simulation nothing. With
//! it, events are kept only inside [`chronicle`].

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use serde::Serialize;

/// An event. Times are virtual; in a system of one drive, the member is 0.
#[allow(missing_docs)] // Of fields, whose names say it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Event {
    /// A host request arrives; requests are numbered from 0.
    Arrives {
        at_ns: u64,
        request: u32,
        kind: &'static str,
        offset_bytes: u64,
        length_bytes: u32,
        /// Dirty pages in the cache of an array.
        dirty_pages: u32,
    },
    /// The host has the answer to a request.
    Completes { at_ns: u64, request: u32, started_ns: u64, dirty_pages: u32 },
    /// An array issues a command to a member; commands are numbered from 0.
    Command {
        at_ns: u64,
        command: u32,
        member: u32,
        kind: &'static str,
        offset_bytes: u64,
        length_bytes: u32,
        purpose: Purpose,
        /// The host request that waits for it, if any.
        request: Option<u32>,
    },
    /// A member has completed a command.
    Answers { at_ns: u64, command: u32 },
    /// A member has failed.
    Fails { at_ns: u64, member: u32 },
    /// A rebuild has filled `done_bytes` of a spare.
    Rebuilt { at_ns: u64, member: u32, done_bytes: u64, of_bytes: u64 },
    /// A job waits for the arm. Angles are in turns.
    Waits { at_ns: u64, member: u32, work: Work, id: u32, cylinder: u32, head: u32, angle: f64 },
    /// The arm serves a job: from `start_ns` to `end_ns` it seeks, waits for the sector, and transfers.
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
    /// A read is served from the buffer.
    Hit { at_ns: u64, member: u32, id: u32 },
    /// The write cache accepts a write.
    Cached { at_ns: u64, member: u32, id: u32, dirty_sectors: u64 },
    /// An extent of the write cache is on the media.
    Destaged { at_ns: u64, member: u32, dirty_sectors: u64 },
    /// Blocks that a segment of the buffer holds now.
    Segment { at_ns: u64, member: u32, segment: u32, from_block: u64, to_block: u64 },
    /// A read is issued to a die.
    Asks { at_ns: u64, member: u32, die: u32, id: Option<u32> },
    /// A die begins an action and leaves its previous one.
    Die { at_ns: u64, member: u32, die: u32, does: DieWork, ends_ns: u64, id: Option<u32> },
}

/// Origin of an arm's job; its `id` is that of a host request or of an array's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// A command of the host or the array.
    Command,
    /// An extent of the write cache, by its slot there.
    Destage,
    /// The drive's own background I/O: cleaning, scans.
    Own,
}

/// Purpose of a command to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Data that were requested or given.
    Data,
    /// Parity that is written, or read to be updated.
    Parity,
    /// Old data that are overwritten, or that are in the same row, read to compute parity.
    Old,
    /// The rest of a row, read in place of missing data.
    Survivor,
    /// A rebuild.
    Rebuild,
    /// Background work of the array: its bitmap, a pool's migration, a cache in flash.
    Upkeep,
}

/// Action of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DieWork {
    /// Reads its array into the page registers.
    Sense,
    /// Sends data over the channel.
    Send,
    /// Receives the host's data over the channel.
    Load,
    /// Programs them.
    Program,
    /// Garbage collection: reads, sends and loads data that move.
    Move,
    /// Garbage collection: programs them.
    ProgramMoved,
    /// Garbage collection: erases a block.
    Erase,
    /// Suspends a program or an erase for a read.
    Suspend,
}

/// The event log of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Chronicle {
    /// Events in the order in which the simulator reached them; times of one part of a system ascend.
    pub events: Vec<Event>,
    /// Whether the log was full before the run ended.
    pub is_cut: bool,
}

/// Names of work in flight for events, where the simulator reuses slots.
#[derive(Default)]
pub(crate) struct Names {
    /// The member of an array that is processed now.
    member: Option<u32>,
    requests: Numbers,
    commands: Numbers,
    /// The host's name of each command that a disk passes on.
    passed_on: HashMap<(Option<u32>, u32), u32>,
    /// The name of the command in each slot of an SSD.
    slots: HashMap<(Option<u32>, u32), u32>,
}

/// The numbers of what is in each slot now.
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
    /// Returns the member that is processed now; 0 in a system of one drive.
    pub fn member(&self) -> u32 {
        self.member.unwrap_or(0)
    }

    /// Numbers a new host request.
    pub fn new_request(&mut self, id: u32) -> u32 {
        self.requests.next(id)
    }

    /// Returns the number of a host request.
    pub fn request(&self, id: u32) -> u32 {
        self.requests.of(id)
    }

    /// Numbers a new command of an array.
    pub fn new_command(&mut self, slot: u32) -> u32 {
        self.commands.next(slot)
    }

    /// Returns the number of a command of an array.
    pub fn command(&self, slot: u32) -> u32 {
        self.commands.of(slot)
    }

    /// Returns the number of a command in a drive: that of the host request, or in an array that of the array's
    /// command.
    pub fn of(&self, id: u32) -> u32 {
        let id = *self.passed_on.get(&(self.member, id)).unwrap_or(&id);
        if self.member.is_some() { self.command(id) } else { self.request(id) }
    }

    /// Returns the number of the command in a slot of an SSD.
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

/// Runs `work` and returns its result with the first `events_max` events of the last run in it.
pub fn chronicle<T>(events_max: usize, work: impl FnOnce() -> T) -> (T, Chronicle) {
    LOG.replace(Log { events_max, ..Log::default() });
    IS_KEPT.set(true);
    let done = work();
    IS_KEPT.set(false);
    let Log { events, is_cut, .. } = LOG.take();
    (done, Chronicle { events, is_cut })
}

/// Logs an event, if a log is kept.
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

/// Begins a system's log: events of earlier systems, which only warmed its caches, are dropped.
pub(crate) fn begins() {
    with(|log| *log = Log { events_max: log.events_max, ..Log::default() });
}

/// Sets the member of an array that is processed from now on.
#[inline(always)]
pub(crate) fn at_member(member: usize) {
    with(|log| log.names.member = Some(member as u32));
}

/// Records that a disk passes a command on under a name of its own.
#[inline(always)]
pub(crate) fn passed_on(name: u32, id: u32) {
    with(|log| {
        let member = log.names.member;
        log.names.passed_on.insert((member, name), id);
    });
}

/// Records that a command is in a slot of an SSD.
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
