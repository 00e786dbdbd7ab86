//! [`Backend`]: the server process of one client.

use super::log::Turn as LogTurn;
use super::shared::{Shared, Times};
use super::{Database, LogSync};
use crate::random::Random;
use crate::scenario::step::{Step, Turn, io, read, write};

/// A server process.
pub(super) struct Backend {
    random: Random,
    begun_ns: u64,
    stage: Stage,
}

/// Next step of a process.
#[derive(Clone, Copy)]
enum Stage {
    Think,
    Cpu,
    /// Uses the page with this number in the transaction.
    Page(u32),
    /// Reads a page after the changed page was written whose buffer it takes.
    Read {
        page: u64,
        number: u32,
    },
    /// Changes the page, once it is in memory.
    Change {
        page: u64,
        number: u32,
    },
    /// Commits log records up to `end`.
    Commit {
        end: u64,
        since_ns: u64,
    },
    /// Waits until the writer of the log wakes it.
    Asleep {
        end: u64,
        since_ns: u64,
    },
    /// Writes the log, after the delay.
    Write {
        since_ns: u64,
    },
    /// Goes on to write the log, then syncs it.
    Sync {
        since_ns: u64,
    },
    /// Ends its turn as the writer.
    Synced {
        since_ns: u64,
    },
}

impl Backend {
    pub fn new(random: Random) -> Backend {
        Backend { random, begun_ns: 0, stage: Stage::Think }
    }

    /// Wakes the process if it waits for the writer of the log.
    pub fn wake(&mut self) {
        if let Stage::Asleep { end, since_ns } = self.stage {
            self.stage = Stage::Commit { end, since_ns };
        }
    }

    pub fn next(&mut self, turn: Turn, database: &Database, shared: &mut Shared) -> Step {
        if turn.in_flight > 0 {
            return Step::Await;
        }
        loop {
            let step = match self.stage {
                Stage::Think => self.think(turn, database),
                Stage::Cpu => self.cpu(turn, database),
                Stage::Page(number) => self.page(turn, number, database, shared),
                Stage::Read { page, number } => {
                    self.stage = Stage::Change { page, number };
                    Some(io(shared.stream, read(page, database.page_bytes)))
                }
                Stage::Change { page, number } => self.change(page, number, database, shared),
                Stage::Commit { end, since_ns } => self.commit(turn, end, since_ns, database, shared),
                Stage::Asleep { .. } => Some(Step::AwaitClient),
                Stage::Write { since_ns } => {
                    shared.log.begin(turn.client);
                    self.stage = Stage::Sync { since_ns };
                    None
                }
                Stage::Sync { since_ns } => self.write_or_sync(turn, since_ns, database, shared),
                Stage::Synced { since_ns } => {
                    let woken = shared.log.end(turn.client);
                    shared.woken.extend(woken);
                    self.committed(turn, since_ns, shared);
                    None
                }
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn think(&mut self, turn: Turn, database: &Database) -> Option<Step> {
        self.stage = Stage::Cpu;
        let think_ns = database.think.draw_ns(&mut self.random);
        (think_ns > 0).then(|| Step::Think { until_ns: turn.now_ns + think_ns })
    }

    fn cpu(&mut self, turn: Turn, database: &Database) -> Option<Step> {
        self.begun_ns = turn.now_ns;
        self.stage = Stage::Page(0);
        (database.cpu_ns > 0).then_some(Step::Cpu { busy_ns: database.cpu_ns })
    }

    /// Uses the next page: reads it if it is not in memory, after writing the changed page that it replaces.
    fn page(&mut self, turn: Turn, number: u32, database: &Database, shared: &mut Shared) -> Option<Step> {
        if number == database.pages {
            if database.changed_pages == 0 {
                self.ended(turn, shared);
            } else {
                let end = shared.log.insert(u64::from(database.record_bytes));
                self.stage = Stage::Commit { end, since_ns: turn.now_ns };
            }
            return None;
        }
        let page = shared.draw_page();
        if shared.buffers.hit(page) {
            self.stage = Stage::Change { page, number };
            return None;
        }
        shared.counters.read_pages += 1;
        self.stage = Stage::Read { page, number };
        let changed = shared.buffers.add(page)?;
        shared.counters.evicted_pages += 1;
        Some(io(shared.stream, write(changed, database.page_bytes)))
    }

    fn change(&mut self, page: u64, number: u32, database: &Database, shared: &mut Shared) -> Option<Step> {
        if number < database.changed_pages {
            shared.buffers.change(page);
            if shared.changed.insert(page) && database.full_page_writes {
                shared.log.insert(u64::from(database.page_bytes));
                shared.counters.full_pages += 1;
            }
        }
        self.stage = Stage::Page(number + 1);
        None
    }

    fn commit(
        &mut self,
        turn: Turn,
        end: u64,
        since_ns: u64,
        database: &Database,
        shared: &mut Shared,
    ) -> Option<Step> {
        match shared.log.commit(turn.client, end) {
            LogTurn::Done => {
                self.committed(turn, since_ns, shared);
                None
            }
            LogTurn::Wait => {
                self.stage = Stage::Asleep { end, since_ns };
                None
            }
            LogTurn::Write => {
                self.stage = Stage::Write { since_ns };
                let delay_ns = database.commit_delay_ns;
                (delay_ns > 0).then(|| Step::Think { until_ns: turn.now_ns + delay_ns })
            }
        }
    }

    /// Returns the next write of the log, or its sync after the last one.
    fn write_or_sync(&mut self, turn: Turn, since_ns: u64, database: &Database, shared: &mut Shared) -> Option<Step> {
        let forced = database.sync == LogSync::OpenDatasync;
        if let Some(mut request) = shared.log.next_write(turn.client) {
            request.force_unit_access = forced;
            return Some(io(shared.stream, request));
        }
        self.stage = Stage::Synced { since_ns };
        match database.sync {
            LogSync::OpenDatasync => None,
            LogSync::Fdatasync => Some(io(shared.stream, shared.sync_log(false))),
            LogSync::Fsync => Some(io(shared.stream, shared.sync_log(true))),
        }
    }

    fn committed(&mut self, turn: Turn, since_ns: u64, shared: &mut Shared) {
        shared.times.commits.add(turn.now_ns - since_ns);
        self.ended(turn, shared);
    }

    fn ended(&mut self, turn: Turn, shared: &mut Shared) {
        let Times { transactions, .. } = &mut shared.times;
        transactions.add(turn.now_ns - self.begun_ns);
        self.stage = Stage::Think;
    }
}
