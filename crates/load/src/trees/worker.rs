//! [`Worker`]: a thread of a load on a tree. It takes a member, executes an operation, records it, and gives the member
//! back.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use headstack_jobfiles::trees::{Operation, Order, TreeLoad};
use headstack_result::{Interval, LatencyHistogram};
use headstack_workload::{Purpose, Random};

use super::contents::{Buffer, Judged};
use super::pace::Paces;
use super::pick::{PickOutcome, Picker};
use super::place::Place;
use super::shape::Shape;
use super::states::{FileState, States};
use super::steps::{Step, Steps};
use crate::clock::Clock;
use crate::error_log::TOLD;
use crate::progress::WorkerProgress;
use crate::usage::Usage;

/// Wait after no member qualified, in ns.
const WAIT_NS: u64 = 1_000_000;
/// Time without a qualifying member after which a load ends, in ns.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Delay after which an operation counts as late, in ns.
const LATE_NS: u64 = 50_000;

/// A prepared tree.
pub struct Grown {
    /// Anchor of the tree.
    pub place: Place,
    /// Names and sizes of its members.
    pub shape: Shape,
    /// States of its members.
    pub states: States,
}

/// State shared by all threads of a phase.
pub struct Common<'a> {
    /// The trees.
    pub trees: &'a [Grown],
    /// Times at which operations are due.
    pub paces: &'a Paces,
    /// Time from the start of the first thread until counting begins, in ns.
    pub warm_up_ns: u64,
    /// Length of the intervals, in ns.
    pub interval_ns: u64,
    /// Whether contents are stamped and checked.
    pub verifies: bool,
    /// Whether all threads must stop.
    pub stop: &'a AtomicBool,
    /// The clock of the phase.
    pub clock: &'a Clock,
}

/// A worker thread.
pub struct Worker<'a> {
    pub(super) common: &'a Common<'a>,
    /// Number of the worker's load in the phase.
    pub(super) number: usize,
    pub(super) load: &'a TreeLoad,
    pub(super) picker: &'a Picker,
    pub(super) random: Random,
    pub(super) buffer: Buffer,
    pub(super) path: String,
    pub(super) done: ThreadResults,
    live: &'a WorkerProgress,
}

/// Results of a thread.
#[derive(Default)]
pub struct ThreadResults {
    /// Results by kind of step.
    pub steps: Steps,
    /// Time series since counting began.
    pub intervals: Vec<(Interval, LatencyHistogram)>,
    /// Messages of the first failures, and the number of all failures.
    pub failures: (Vec<String>, u64),
    /// Number of operations that started late.
    pub late: u64,
    /// End of the thread, in ns.
    pub end_ns: u64,
    /// Reason why the thread ended early.
    pub note: Option<String>,
    /// The failure that ends the phase.
    pub fatal: Option<String>,
    /// Verdicts on the thread's reads.
    pub judged: Judged,
    /// Processor use of the thread.
    pub usage: Usage,
    /// Number of files opened, including the warm-up.
    pub opened: u64,
    /// Number of files closed, including the warm-up.
    pub closed: u64,
    completed: u64,
    bytes: u64,
    response_ns: u64,
}

impl<'a> Worker<'a> {
    /// Creates a thread of the load `number`. `picker` chooses its members.
    pub fn new(
        common: &'a Common<'a>,
        (number, load): (usize, &'a TreeLoad),
        picker: &'a Picker,
        live: &'a WorkerProgress,
        seed: u64,
    ) -> Worker<'a> {
        let longest = load.sizes.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0) as usize;
        let random = Random::new(seed, Purpose::Choices);
        let (path, done) = (String::new(), ThreadResults::default());
        Worker { common, number, load, picker, random, buffer: Buffer::new(longest, seed), path, done, live }
    }

    /// Works until the phase is over or nothing is left to do.
    pub fn work(mut self) -> ThreadResults {
        let before = Usage::of_this_thread();
        let mut nothing_since = None;
        while !self.is_over() && self.done.fatal.is_none() {
            match self.execute_on_member() {
                PickOutcome::Member(..) => nothing_since = None,
                PickOutcome::Done => break,
                PickOutcome::None => {
                    let now_ns = self.now_ns();
                    let since_ns = *nothing_since.get_or_insert(now_ns);
                    if now_ns - since_ns > PATIENCE_NS {
                        let tree = self.tree().place.name();
                        let name = self.load.operation.name();
                        self.done.note = Some(format!("{}: nothing left to {name} in {tree}", self.load.name));
                        break;
                    }
                    self.common.clock.sleep_until(now_ns + WAIT_NS);
                }
            }
        }
        self.common.paces.end(self.number);
        if self.done.fatal.is_some() {
            self.common.stop.store(true, Ordering::Relaxed);
        }
        self.done.end_ns = self.now_ns();
        self.done.usage = Usage::of_this_thread().since(&before);
        self.done
    }

    /// Takes a member that qualifies for the operation, and executes the operation.
    fn execute_on_member(&mut self) -> PickOutcome<()> {
        let (picker, states, shape) = (self.picker, &self.tree().states, &self.tree().shape);
        let file = |wanted: fn(FileState) -> bool| move |member: u64| states.take_file(member, wanted);
        let is_there = |state: FileState| state.exists;
        let is_full = |state: FileState| state.exists && state.is_full;
        match self.load.operation {
            Operation::Mkdir => {
                let take = |folder| {
                    let parent = shape.parent(folder);
                    let is_ready = states.join(parent);
                    let taken = is_ready && states.take_folder(folder, false);
                    if is_ready && !taken {
                        states.leave(parent);
                    }
                    taken.then_some(())
                };
                let picked = picker.pick(&mut self.random, take);
                self.with(picked, |worker, folder, ()| worker.make_folder(folder))
            }
            Operation::Rmdir => {
                // Starts with the lowest level, so that one pass removes all directories.
                let last = shape.folders().saturating_sub(1);
                let take = |member| states.take_folder(last - member, true).then_some(());
                let picked = picker.pick(&mut self.random, take);
                self.with(picked, |worker, member, ()| worker.remove_folder(last - member))
            }
            Operation::Create => {
                let picked = picker.pick(&mut self.random, |member| taken_for_new(shape, states, member));
                self.with(picked, Worker::create)
            }
            Operation::Open => {
                let picked = picker.pick(&mut self.random, file(is_there));
                self.with(picked, Worker::open_and_close)
            }
            Operation::Getattr | Operation::Setattr | Operation::Access => {
                let picked = picker.pick(&mut self.random, file(is_there));
                self.with(picked, Worker::query_attributes)
            }
            Operation::Delete => {
                let picked = picker.pick(&mut self.random, file(is_there));
                self.with(picked, Worker::delete)
            }
            Operation::Read => {
                let picked = picker.pick(&mut self.random, file(is_full));
                self.with(picked, Worker::visit)
            }
            Operation::Write => {
                let picked = picker.pick(&mut self.random, file(is_there));
                self.with(picked, Worker::visit)
            }
            Operation::Copy | Operation::Move => {
                let Some(other) = self.load.to_tree else { return PickOutcome::Done };
                let other = &self.common.trees[other];
                let take = |member: u64| {
                    let state = states.take_file(member, is_full)?;
                    match taken_for_new(&other.shape, &other.states, member) {
                        Some(new) => Some((state, new)),
                        None => {
                            states.give_file(member, state);
                            None
                        }
                    }
                };
                let picked = picker.pick(&mut self.random, take);
                self.with(picked, |worker, file, (state, new)| worker.transfer(file, state, new))
            }
        }
    }

    fn with<T>(&mut self, picked: PickOutcome<T>, work: impl FnOnce(&mut Self, u64, T)) -> PickOutcome<()> {
        match picked {
            PickOutcome::Member(member, taken) => {
                work(self, member, taken);
                PickOutcome::Member(member, ())
            }
            PickOutcome::None => PickOutcome::None,
            PickOutcome::Done => PickOutcome::Done,
        }
    }

    pub(super) fn tree(&self) -> &'a Grown {
        &self.common.trees[self.load.tree]
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.common.clock.now_ns()
    }

    pub(super) fn is_over(&self) -> bool {
        self.common.stop.load(Ordering::Relaxed) || self.now_ns() >= self.common.paces.end_ns()
    }

    /// Waits for the next operation. Returns its due time in ns, or `None` when the phase is over.
    pub(super) fn due(&self) -> Option<u64> {
        self.common.paces.next(self.number, self.common.clock, self.common.stop)
    }

    /// Executes and records a step, which was due at `intended_ns` or at the end of the previous step.
    pub(super) fn step<T>(
        &mut self,
        step: Step,
        intended_ns: Option<u64>,
        bytes: u64,
        work: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<T> {
        let started_ns = self.now_ns();
        let outcome = work(self);
        let at_ns = self.now_ns();
        let times = Times { intended_ns: intended_ns.unwrap_or(started_ns), started_ns, at_ns };
        self.book(step, times, bytes, outcome.as_ref().err());
        outcome
    }

    /// Records a step, except during the warm-up.
    pub(super) fn book(&mut self, step: Step, times: Times, bytes: u64, failed: Option<&io::Error>) {
        let from_ns = self.common.paces.start_ns() + self.common.warm_up_ns;
        let Times { intended_ns, started_ns, at_ns } = times;
        match step {
            Step::Open | Step::Create => self.done.opened += u64::from(failed.is_none()),
            Step::Close => self.done.closed += 1,
            _ => {}
        }
        if let Some(error) = failed {
            self.done.failures.1 += 1;
            if self.done.failures.0.len() < TOLD {
                let failure = format!("{} of {}/{}: {error}", step.name(), self.tree().place.name(), self.path);
                self.done.failures.0.push(failure);
            }
            self.done.steps.of(step).errors += 1;
            // Every later operation would fail with these errors too.
            if matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EROFS | libc::EDQUOT | libc::ENODEV)) {
                self.done.fatal = Some(format!("{}: {error}", self.tree().place.name()));
            }
        } else if at_ns >= from_ns {
            let response_ns = at_ns - intended_ns.min(at_ns);
            let kind = self.done.steps.of(step);
            kind.count += 1;
            kind.bytes += bytes;
            kind.latency.record(response_ns);
            kind.service.record(at_ns - started_ns);
            self.done.late += u64::from(started_ns > intended_ns + LATE_NS);
            self.book_interval(((at_ns - from_ns) / self.common.interval_ns) as usize, bytes, response_ns);
            self.done.completed += 1;
            self.done.bytes += bytes;
            self.done.response_ns += response_ns;
        }
        let ThreadResults { completed, bytes, response_ns, .. } = self.done;
        self.live.store_counts(completed, bytes, response_ns, self.done.failures.1, 1);
        let length_ns = self.common.paces.end_ns() - self.common.paces.start_ns();
        self.live.store_share((at_ns - self.common.paces.start_ns()) as f64 / length_ns as f64);
    }

    fn book_interval(&mut self, index: usize, bytes: u64, response_ns: u64) {
        let interval_ns = self.common.interval_ns;
        let first_ns = self.common.warm_up_ns;
        while self.done.intervals.len() <= index {
            let start_ns = first_ns + self.done.intervals.len() as u64 * interval_ns;
            let interval = Interval { start_ns, duration_ns: interval_ns, ..Interval::default() };
            self.done.intervals.push((interval, LatencyHistogram::new()));
        }
        let (interval, latency) = &mut self.done.intervals[index];
        interval.count += 1;
        interval.bytes += bytes;
        latency.record(response_ns);
    }

    /// Returns the number of requests to a file before the next file is taken.
    pub(super) fn requests(&self, size_bytes: u64) -> u64 {
        let mean: f64 = self.load.sizes.iter().map(|(bytes, share)| f64::from(*bytes) * share / 100.0).sum();
        let once = (size_bytes as f64 / mean).ceil() as u64;
        match (self.load.requests_per_file, self.load.requests) {
            (Some(requests), _) => requests,
            // With single requests of several sizes, the visit ends with the file.
            (None, Order::Sequential | Order::Once) => u64::MAX,
            (None, Order::Random) => once.max(1),
        }
    }

    /// Returns the length of the next request, in bytes.
    pub(super) fn length(&mut self) -> u64 {
        match self.load.sizes.as_slice() {
            [(bytes, _)] => u64::from(*bytes),
            several => {
                let mut drawn = self.random.fraction() * 100.0;
                let chosen = several.iter().find(|(_, share)| {
                    drawn -= share;
                    drawn < 0.0
                });
                chosen.or(several.last()).map_or(4_096, |(bytes, _)| u64::from(*bytes))
            }
        }
    }
}

/// Times of a step.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub(super) intended_ns: u64,
    pub(super) started_ns: u64,
    pub(super) at_ns: u64,
}

/// Takes a file that does not exist, in a directory that does.
pub(super) fn taken_for_new(shape: &Shape, states: &States, file: u64) -> Option<FileState> {
    let folder = shape.folder_of(file);
    if !states.join(folder) {
        return None;
    }
    let taken = states.take_file(file, |state| !state.exists);
    if taken.is_none() {
        states.leave(folder);
    }
    taken
}
