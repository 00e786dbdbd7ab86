//! Dies and channels in virtual time.
//!
//! A die does one thing at a time. Reads have priority over programs, erases and moves, and may interrupt a program or
//! an erase; each read occupies its die until its data have left over the channel, which the dies on it use in the
//! order of their requests.

use std::collections::VecDeque;

use super::agenda::Agenda;
use super::buffer::Row;
use super::counters::SsdCounters;
use super::ftl::{Ftl, Task};
use super::host_port::transfer_ns;
use crate::chronicle::{DieWork, Event, Names, note};
use crate::description::ssd::{SlcCache, SsdDescription};
use crate::drive::port::Port;

/// The purpose of a read of a die.
#[derive(Clone, Copy, Debug)]
pub enum ReadFor {
    /// A command's data.
    Host(u32),
    /// The part of the map that a command needs first.
    Map(u32),
    /// No command waits: the rest of a unit that is written in part, or the map for a write.
    Nobody,
}

/// The result of one sensing of a die's array.
#[derive(Clone, Copy, Debug)]
pub struct PageRead {
    /// Whose.
    pub purpose: ReadFor,
    /// Bytes of it that are transferred over the channel.
    pub bytes: u32,
    /// The sensing, retries included.
    pub sense_ns: u64,
}

/// Work of a die.
#[derive(Clone, Copy, Debug)]
enum Job {
    Idle,
    Sense(PageRead),
    /// Waits for the channel and uses it.
    SendOut(PageRead),
    SenseMoved {
        units: u32,
    },
    SendMovedOut,
    LoadHost(Row),
    ProgramHost(Row),
    LoadMoved,
    ProgramMoved,
    Erase,
    /// On its way out of a program or an erase.
    Suspend,
    /// Idle until it is time to fold blocks with one bit per cell.
    Rest,
}

/// The outcome of a die's job.
#[derive(Clone, Copy, Debug)]
pub enum TaskOutcome {
    /// Nothing.
    None,
    /// Data reached the controller.
    Read(PageRead),
    /// A row is programmed.
    Programmed(Row),
}

#[derive(Clone, Debug)]
struct Die {
    job: Job,
    /// When the job ends.
    ends_ns: u64,
    /// A program or an erase that reads have interrupted, and its remaining time.
    suspended: Option<(Job, u64)>,
    /// How often the program or erase under way was interrupted.
    suspensions: u32,
    reads: VecDeque<PageRead>,
    rows: VecDeque<Row>,
    /// Reads served since other work began to wait.
    reads_ahead: u32,
}

/// A read is given to a die.
#[inline(always)]
fn tell_read(now_ns: u64, die: u32, purpose: ReadFor) {
    note(|names| Event::Asks { at_ns: now_ns, member: names.member(), die, id: reader(purpose, names) });
}

/// A die begins to do something.
#[inline(always)]
fn tell(now_ns: u64, die: u32, job: Job, ends_ns: u64) {
    note(|names| {
        let (does, id) = match job {
            Job::Sense(read) => (DieWork::Sense, reader(read.purpose, names)),
            Job::SendOut(read) => (DieWork::Send, reader(read.purpose, names)),
            Job::LoadHost(_) => (DieWork::Load, None),
            Job::ProgramHost(_) => (DieWork::Program, None),
            Job::SenseMoved { .. } | Job::SendMovedOut | Job::LoadMoved => (DieWork::Move, None),
            Job::ProgramMoved => (DieWork::ProgramMoved, None),
            Job::Erase => (DieWork::Erase, None),
            Job::Suspend => (DieWork::Suspend, None),
            Job::Idle | Job::Rest => unreachable!("neither begins as a job does"),
        };
        Event::Die { at_ns: now_ns, member: names.member(), die, does, ends_ns, id }
    });
}

fn reader(purpose: ReadFor, names: &Names) -> Option<u32> {
    match purpose {
        ReadFor::Host(slot) | ReadFor::Map(slot) => Some(names.in_slot(slot)),
        ReadFor::Nobody => None,
    }
}

/// All dies and channels.
#[derive(Clone, Debug)]
pub struct Flash {
    dies: Vec<Die>,
    channels: Vec<Port>,
    agenda: Agenda,
    read_ns: u64,
    program_ns: u64,
    erase_ns: u64,
    channel_ns_per_byte: f64,
    suspend_ns: Option<u64>,
    resume_ns: u64,
    suspensions_max: u32,
    reads_ahead_max: u32,
    slc: Option<SlcCache>,
    /// When the host's last request came to a die.
    last_host_ns: u64,
    planes: u64,
    dies_busy_ns: u64,
    page_reads: u64,
    page_programs: u64,
    read_waits: u64,
    suspensions: u64,
}

impl Flash {
    /// Idle flash.
    pub fn new(description: &SsdDescription) -> Self {
        let timing = &description.timing;
        let die = Die {
            job: Job::Idle,
            ends_ns: 0,
            suspended: None,
            suspensions: 0,
            reads: VecDeque::new(),
            rows: VecDeque::new(),
            reads_ahead: 0,
        };
        Flash {
            dies: vec![die; description.dies() as usize],
            channels: vec![Port::new(); description.flash.channels as usize],
            agenda: Agenda::new(description.dies() as usize),
            read_ns: timing.read_ns,
            program_ns: timing.program_ns,
            erase_ns: timing.erase_ns,
            channel_ns_per_byte: timing.channel_ns_per_byte,
            suspend_ns: timing.suspend_ns,
            resume_ns: timing.resume_ns,
            suspensions_max: timing.suspensions_max,
            slc: description.slc_cache,
            last_host_ns: 0,
            reads_ahead_max: timing.reads_ahead_max,
            planes: u64::from(description.flash.planes_per_die),
            dies_busy_ns: 0,
            page_reads: 0,
            page_programs: 0,
            read_waits: 0,
            suspensions: 0,
        }
    }

    /// Restores power after a cut: every die is idle, and all planned work is dropped.
    pub fn power_cycle(&mut self, now_ns: u64) {
        self.channels.iter_mut().for_each(|channel| channel.reset(now_ns));
    }

    /// When the next job of a die ends; `u64::MAX` if all are idle.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.agenda.next().0
    }

    /// Adds the counts of this flash.
    pub fn count(&self, counters: &mut SsdCounters) {
        counters.page_reads = self.page_reads;
        counters.page_programs = self.page_programs;
        counters.read_waits = self.read_waits;
        counters.suspensions = self.suspensions;
        counters.dies_busy_ns = self.dies_busy_ns;
        counters.channels_busy_ns = self.channels.iter().map(|channel| channel.busy_ns).sum();
    }

    /// Schedules a read of data on `pages` of one row of a die.
    #[inline]
    pub fn read(&mut self, now_ns: u64, die: u32, read: PageRead, pages: u32, ftl: &mut Ftl) {
        self.page_reads += u64::from(pages);
        self.last_host_ns = now_ns;
        tell_read(now_ns, die, read.purpose);
        let state = &mut self.dies[die as usize];
        state.reads.push_back(read);
        match state.job {
            Job::Idle | Job::Rest => self.start_next(now_ns, die, ftl),
            Job::Sense(_) | Job::SendOut(_) => {}
            Job::ProgramHost(_) | Job::ProgramMoved | Job::Erase => {
                self.read_waits += 1;
                self.suspend(now_ns, die);
            }
            Job::SenseMoved { .. } | Job::SendMovedOut | Job::LoadHost(_) | Job::LoadMoved | Job::Suspend => {
                self.read_waits += 1;
            }
        }
    }

    /// Has a die program a row.
    pub fn program(&mut self, now_ns: u64, die: u32, row: Row, ftl: &mut Ftl) {
        let state = &mut self.dies[die as usize];
        if state.rows.is_empty() {
            // Reads served before this work arrived were not ahead of it.
            state.reads_ahead = 0;
        }
        state.rows.push_back(row);
        self.last_host_ns = now_ns;
        if let Job::Idle | Job::Rest = state.job {
            self.start_next(now_ns, die, ftl);
        }
    }

    /// The page registers are loaded. A read that came meanwhile needs them, so that it goes by suspension too.
    fn begin_program(&mut self, die: u32, job: Job, now_ns: u64, program_ns: u64) {
        self.begin(die, job, now_ns, now_ns + program_ns);
        if !self.dies[die as usize].reads.is_empty() {
            self.suspend(now_ns, die);
        }
    }

    /// Interrupts a program or an erase for the reads that wait, if that pays and has not been done too often.
    fn suspend(&mut self, now_ns: u64, die: u32) {
        let Some(suspend_ns) = self.suspend_ns else {
            return;
        };
        let state = &mut self.dies[die as usize];
        let left_ns = state.ends_ns - now_ns;
        if left_ns <= suspend_ns
            || state.reads_ahead >= self.reads_ahead_max
            || state.suspensions >= self.suspensions_max
        {
            return;
        }
        state.suspensions += 1;
        self.suspensions += 1;
        self.dies_busy_ns -= left_ns;
        state.suspended = Some((state.job, left_ns));
        self.begin(die, Job::Suspend, now_ns, now_ns + suspend_ns);
    }

    #[inline]
    fn begin(&mut self, die: u32, job: Job, now_ns: u64, ends_ns: u64) {
        tell(now_ns, die, job, ends_ns);
        self.dies_busy_ns += ends_ns - now_ns;
        let state = &mut self.dies[die as usize];
        (state.job, state.ends_ns) = (job, ends_ns);
        self.agenda.set(die, ends_ns);
    }

    /// Lets a die use its channel for `bytes`.
    #[inline]
    fn send(&mut self, die: u32, job: Job, now_ns: u64, bytes: u32) {
        // Neighbouring dies are on different channels, so that consecutive rows are.
        let channel = die as usize % self.channels.len();
        let end_ns = self.channels[channel].carry(now_ns, transfer_ns(bytes, self.channel_ns_per_byte));
        self.begin(die, job, now_ns, end_ns);
    }

    /// Ends the job that ends first: (now, die, outcome). Call `start_next` after handling it, unless the die has a job
    /// again.
    #[inline]
    pub fn end_job(&mut self, ftl: &mut Ftl) -> (u64, u32, TaskOutcome) {
        let (now_ns, die) = self.agenda.next();
        let unit_bytes = ftl.layout.unit_bytes;
        let mut outcome = TaskOutcome::None;
        match self.dies[die as usize].job {
            Job::Sense(read) => self.send(die, Job::SendOut(read), now_ns, read.bytes),
            Job::SenseMoved { units } => self.send(die, Job::SendMovedOut, now_ns, units * unit_bytes),
            Job::LoadHost(row) => {
                let program_ns = self.slc.filter(|_| row.slc).map_or(self.program_ns, |slc| slc.program_ns);
                self.begin_program(die, Job::ProgramHost(row), now_ns, program_ns + row.delay_ns);
            }
            Job::LoadMoved => self.begin_program(die, Job::ProgramMoved, now_ns, self.program_ns),
            Job::SendOut(read) => {
                outcome = TaskOutcome::Read(read);
                self.rest(die);
            }
            Job::ProgramHost(row) => {
                outcome = TaskOutcome::Programmed(row);
                self.finish_background(die);
            }
            Job::Erase => {
                ftl.finish_erase(die);
                self.finish_background(die);
            }
            Job::ProgramMoved | Job::SendMovedOut => self.finish_background(die),
            Job::Suspend => self.rest(die),
            Job::Rest => {
                self.rest(die);
                if self.folds_at().is_some_and(|at_ns| at_ns <= now_ns) {
                    ftl.fold(die);
                }
            }
            Job::Idle => unreachable!("an idle die ends nothing"),
        }
        (now_ns, die, outcome)
    }

    fn finish_background(&mut self, die: u32) {
        let state = &mut self.dies[die as usize];
        (state.reads_ahead, state.suspensions) = (0, 0);
        self.rest(die);
    }

    /// When blocks with one bit a cell are folded, unless the host comes before.
    #[inline]
    fn folds_at(&self) -> Option<u64> {
        Some(self.last_host_ns + self.slc?.idle_ns?)
    }

    #[inline]
    fn rest(&mut self, die: u32) {
        self.dies[die as usize].job = Job::Idle;
    }

    /// Gives a die without a job its next one.
    #[inline]
    pub fn start_next(&mut self, now_ns: u64, die: u32, ftl: &mut Ftl) {
        let state = &mut self.dies[die as usize];
        if !matches!(state.job, Job::Idle | Job::Rest) {
            return;
        }
        state.job = Job::Idle;
        if let Some(&read) = state.reads.front()
            && state.reads_ahead < self.reads_ahead_max
        {
            state.reads.pop_front();
            state.reads_ahead += 1;
            self.begin(die, Job::Sense(read), now_ns, now_ns + read.sense_ns);
            return;
        }
        if let Some((job, left_ns)) = state.suspended.take() {
            self.begin(die, job, now_ns, now_ns + left_ns + self.resume_ns);
            return;
        }
        match ftl.next_task(die, !state.rows.is_empty()) {
            Some(task) => self.start_task(now_ns, die, task, ftl),
            None => {
                state.reads_ahead = 0;
                match state.reads.pop_front() {
                    Some(read) => self.begin(die, Job::Sense(read), now_ns, now_ns + read.sense_ns),
                    None => self.rest_or_fold(now_ns, die, ftl),
                }
            }
        }
    }

    /// A die without work waits for the time to fold, if it has anything to fold.
    fn rest_or_fold(&mut self, now_ns: u64, die: u32, ftl: &mut Ftl) {
        let Some(fold_ns) = self.folds_at().filter(|_| ftl.can_fold(die)) else {
            self.agenda.set(die, u64::MAX);
            return;
        };
        if fold_ns <= now_ns {
            ftl.fold(die);
            self.start_next(now_ns, die, ftl);
        } else {
            self.dies[die as usize].job = Job::Rest;
            self.agenda.set(die, fold_ns);
        }
    }

    fn start_task(&mut self, now_ns: u64, die: u32, task: Task, ftl: &mut Ftl) {
        let (unit_bytes, units_per_row) = (ftl.layout.unit_bytes, ftl.layout.units_per_row);
        match task {
            Task::ProgramHost => {
                let mut row = self.dies[die as usize].rows.pop_front().expect("a row waits");
                row.slc = ftl.host_row_is_slc(die);
                self.page_programs += self.planes;
                self.send(die, Job::LoadHost(row), now_ns, row.units * unit_bytes);
            }
            Task::ProgramMoved => {
                self.page_programs += self.planes;
                self.send(die, Job::LoadMoved, now_ns, units_per_row * unit_bytes);
            }
            Task::Move { units, pages, slc } => {
                self.page_reads += u64::from(pages);
                let sense_ns = self.slc.filter(|_| slc).map_or(self.read_ns, |slc| slc.read_ns);
                self.begin(die, Job::SenseMoved { units }, now_ns, now_ns + sense_ns);
            }
            Task::Erase => self.begin(die, Job::Erase, now_ns, now_ns + self.erase_ns),
        }
    }
}
