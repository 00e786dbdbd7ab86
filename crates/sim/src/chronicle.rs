//! Event log of a simulation ([`Chronicle`]), for showing how a system works.
//!
//! Without the feature `chronicle`, [`note`] is empty and costs nothing. With the feature, events are kept only inside
//! a call of [`chronicle`].

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use serde::Serialize;

/// An event. Times are virtual, in ns. In a system with a single drive, the member is 0.
#[allow(missing_docs)] // The field names are self-explanatory.
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
        /// Number of dirty pages in the array's cache.
        dirty_pages: u32,
    },
    /// The host receives the answer to a request.
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
        /// The host request that waits for this command, if any.
        request: Option<u32>,
    },
    /// A member completes a command.
    Answers { at_ns: u64, command: u32 },
    /// A member fails.
    Fails { at_ns: u64, member: u32 },
    /// A rebuild has filled `done_bytes` of the spare.
    Rebuilt { at_ns: u64, member: u32, done_bytes: u64, of_bytes: u64 },
    /// A job starts to wait for the arm. Angles are in turns.
    Waits { at_ns: u64, member: u32, work: Work, id: u32, cylinder: u32, head: u32, angle: f64 },
    /// The arm serves a job: from `start_ns` to `end_ns`, it seeks, waits for the sector, and transfers.
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
    /// A dirty extent of the write cache is on the media.
    Destaged { at_ns: u64, member: u32, dirty_sectors: u64 },
    /// A buffer segment changes and now holds these blocks.
    Segment { at_ns: u64, member: u32, segment: u32, from_block: u64, to_block: u64 },
    /// A read is issued to a die.
    Asks { at_ns: u64, member: u32, die: u32, id: Option<u32> },
    /// A die starts an action, which ends its previous action.
    Die { at_ns: u64, member: u32, die: u32, does: DieWork, ends_ns: u64, id: Option<u32> },
}

/// Origin of a job for the arm. The `id` of a job is the number of the host request or of the array's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// A command from the host or the array.
    Command,
    /// A destage of a dirty extent; the `id` is its slot in the write cache.
    Destage,
    /// Background I/O of the drive, such as cleaning or scans.
    Own,
}

/// Purpose of a command that an array sends to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Data that the host reads or writes.
    Data,
    /// Parity that is written, or read for an update.
    Parity,
    /// Old data, read to compute parity: data to be overwritten, or other data of the stripe.
    Old,
    /// The rest of a stripe, read to reconstruct missing data.
    Survivor,
    /// A rebuild.
    Rebuild,
    /// Background work of the array, such as updates of its bitmap, migration in a pool, or filling a flash cache.
    Upkeep,
}

/// Action of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DieWork {
    /// Reads a page from the cells into the page registers.
    Sense,
    /// Sends data over the channel to the controller.
    Send,
    /// Receives host data over the channel.
    Load,
    /// Programs the received data.
    Program,
    /// Garbage collection: reads and transfers data to be moved.
    Move,
    /// Garbage collection: programs the moved data.
    ProgramMoved,
    /// Garbage collection: erases a block.
    Erase,
    /// Suspends a program or an erase for a read.
    Suspend,
}

/// The event log of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Chronicle {
    /// Events in the order in which the simulator reached them. The times of events from one part of the system ascend.
    pub events: Vec<Event>,
    /// Whether the run had more events than the log can hold.
    pub is_cut: bool,
}

/// Numbers for events, which identify work in flight although the simulator reuses slots.
#[derive(Default)]
pub(crate) struct Names {
    /// The array member that is being processed.
    member: Option<u32>,
    requests: Numbers,
    commands: Numbers,
    /// Id of the host command for each part of a command that a disk passes on.
    passed_on: HashMap<(Option<u32>, u32), u32>,
    /// Id of the command in each slot of an SSD.
    slots: HashMap<(Option<u32>, u32), u32>,
}

/// Numbers of the work in each slot.
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
    /// Returns the member that is being processed; 0 in a system with a single drive.
    pub fn member(&self) -> u32 {
        self.member.unwrap_or(0)
    }

    /// Assigns the next number to a host request.
    pub fn new_request(&mut self, id: u32) -> u32 {
        self.requests.next(id)
    }

    /// Returns the number of a host request.
    pub fn request(&self, id: u32) -> u32 {
        self.requests.of(id)
    }

    /// Assigns the next number to an array command.
    pub fn new_command(&mut self, slot: u32) -> u32 {
        self.commands.next(slot)
    }

    /// Returns the number of an array command.
    pub fn command(&self, slot: u32) -> u32 {
        self.commands.of(slot)
    }

    /// Returns the number of a command in a drive: the number of the array's command, or of the host request if there
    /// is no array.
    pub fn of(&self, id: u32) -> u32 {
        let id = *self.passed_on.get(&(self.member, id)).unwrap_or(&id);
        if self.member.is_some() { self.command(id) } else { self.request(id) }
    }

    /// Returns the number of the command in an SSD slot.
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

/// Runs `work`; returns its result and the first `events_max` events of the last run in `work`.
pub fn chronicle<T>(events_max: usize, work: impl FnOnce() -> T) -> (T, Chronicle) {
    LOG.replace(Log { events_max, ..Log::default() });
    IS_KEPT.set(true);
    let done = work();
    IS_KEPT.set(false);
    let Log { events, is_cut, .. } = LOG.take();
    (done, Chronicle { events, is_cut })
}

/// Logs an event if the log is enabled.
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

/// Starts the log of a new system. Drops events of earlier systems, which only warmed caches.
pub(crate) fn begins() {
    with(|log| *log = Log { events_max: log.events_max, ..Log::default() });
}

/// Sets the array member whose events follow.
#[inline(always)]
pub(crate) fn at_member(member: usize) {
    with(|log| log.names.member = Some(member as u32));
}

/// Records that a disk passes on command `id` under a name of its own.
#[inline(always)]
pub(crate) fn passed_on(name: u32, id: u32) {
    with(|log| {
        let member = log.names.member;
        log.names.passed_on.insert((member, name), id);
    });
}

/// Records that command `id` occupies an SSD slot.
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
