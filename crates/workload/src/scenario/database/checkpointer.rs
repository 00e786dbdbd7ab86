//! [`Checkpointer`]: the process that writes changed pages to the data file, spread over the time between checkpoints,
//! and syncs the file at the end (checkpointer.c).

use super::Database;
use super::shared::Shared;
use crate::scenario::step::{Step, Turn, io, write};

/// How often it looks whether it is behind (`CheckpointWriteDelay` sleeps 100 ms).
const NAP_NS: u64 = 100_000_000;

/// The process.
pub(super) struct Checkpointer {
    stage: Stage,
    began_ns: u64,
    /// End of the log when the checkpoint began.
    log_begin: u64,
    /// Pages to write, in ascending order, and the number of those done.
    pages: Vec<u64>,
    done: usize,
}

enum Stage {
    Idle,
    Writing,
    Syncing,
}

impl Checkpointer {
    pub fn new() -> Checkpointer {
        Checkpointer { stage: Stage::Idle, began_ns: 0, log_begin: 0, pages: Vec::new(), done: 0 }
    }

    pub fn next(&mut self, turn: Turn, database: &Database, shared: &mut Shared) -> Step {
        if turn.in_flight > 0 {
            return Step::Await;
        }
        loop {
            match self.stage {
                Stage::Idle => {
                    let due_ns = self.began_ns.saturating_add(database.checkpoint_timeout_ns);
                    let log_bytes = (shared.log.inserted - self.log_begin) as f64;
                    if turn.now_ns < due_ns && log_bytes < database.checkpoint_log_bytes() {
                        return Step::Think { until_ns: due_ns.min(turn.now_ns + NAP_NS) };
                    }
                    (self.began_ns, self.log_begin) = (turn.now_ns, shared.log.inserted);
                    (self.pages, self.done) = (shared.buffers.changed(), 0);
                    shared.changed.clear();
                    self.stage = Stage::Writing;
                }
                Stage::Writing if self.done == self.pages.len() => {
                    self.stage = Stage::Syncing;
                    return io(shared.stream, shared.sync_data());
                }
                Stage::Writing if !self.is_behind(turn.now_ns, database, shared.log.inserted) => {
                    return Step::Think { until_ns: turn.now_ns + NAP_NS };
                }
                Stage::Writing => {
                    let page = self.pages[self.done];
                    self.done += 1;
                    if shared.buffers.clean(page) {
                        shared.counters.checkpoint_pages += 1;
                        return io(shared.stream, write(page, database.page_bytes));
                    }
                }
                Stage::Syncing => {
                    shared.counters.checkpoints += 1;
                    self.stage = Stage::Idle;
                }
            }
        }
    }

    /// Whether fewer pages are written than the time and the log since the start call for (`IsCheckpointOnSchedule`).
    fn is_behind(&self, now_ns: u64, database: &Database, inserted: u64) -> bool {
        let progress = self.done as f64 / self.pages.len() as f64 * database.checkpoint_completion_target;
        let time = (now_ns - self.began_ns) as f64 / database.checkpoint_timeout_ns as f64;
        let log = (inserted - self.log_begin) as f64 / database.checkpoint_log_bytes();
        progress < time || progress < log
    }
}
