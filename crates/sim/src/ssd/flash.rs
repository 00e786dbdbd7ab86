//! [`Flash`]: dies and channels in virtual time.
//!
//! A die does one thing at a time. Reads precede programs, erases and moves, and may suspend a program or an erase;
//! each read occupies its die until its data have left over the channel, which its dies use in the order of their
//! requests.

use std::collections::VecDeque;

use headstack_workload::{Purpose, Random};

use super::agenda::Agenda;
use super::buffer::Row;
use super::counters::SsdCounters;
use super::ftl::{Ftl, Task};
use super::host_port::transfer_ns;
use super::layout::FlashLayout;
use crate::chronicle::{DieWork, Event, Names, note};
use crate::description::ssd::{SlcCache, SsdDescription};
use crate::drive::port::Port;

/// Purpose of a read of a die.
#[derive(Clone, Copy, Debug)]
pub enum ReadFor {
    /// Data of a command.
    Host(u32),
    /// Part of the map that a command needs first.
    Map(u32),
    /// A read that no command waits for: the rest of a partially written unit, or the map for a write.
    Nobody,
}

/// A sensing of a die's array.
#[derive(Clone, Copy, Debug)]
pub struct PageRead {
    /// Whose.
    pub purpose: ReadFor,
    /// Bytes that go over the channel.
    pub bytes: u32,
    /// Sensing time, retries included.
    pub sense_ns: u64,
}

/// Work of a die.
#[derive(Clone, Copy, Debug)]
enum Job {
    Idle,
    Sense(PageRead),
    /// Waits for the channel and sends over it.
    SendOut(PageRead),
    SenseMoved {
        units: u32,
    },
    SendMovedOut,
    /// Loads the rows of [`Die::programming`] into the page registers.
    LoadHost,
    ProgramHost,
    LoadMoved,
    ProgramMoved,
    Erase,
    /// Suspends a program or an erase.
    Suspend,
    /// Idle until it is time to fold one-bit blocks.
    Rest,
}

/// Outcome of a die's job for other components.
#[derive(Clone, Copy, Debug)]
pub enum TaskOutcome {
    /// Nothing.
    None,
    /// Data reached the controller.
    Read(PageRead),
    /// Host rows were programmed ([`Flash::next_programmed`]), the first from this place on.
    Programmed(u32),
}

#[derive(Clone, Debug)]
struct Die {
    job: Job,
    /// End of the job.
    ends_ns: u64,
    /// The suspended program or erase, and its remaining time.
    suspended: Option<(Job, u64)>,
    /// How often the present program or erase was suspended.
    suspensions: u32,
    reads: VecDeque<PageRead>,
    /// Host rows that wait, and how many of them do not wait for a full program.
    rows: VecDeque<Row>,
    urgent_rows: u32,
    /// Host rows of the present program.
    programming: VecDeque<Row>,
    /// Reads served since other work began to wait.
    reads_ahead: u32,
}

/// Logs a read that is issued to a die.
#[inline(always)]
fn log_read(now_ns: u64, die: u32, purpose: ReadFor) {
    note(|names| Event::Asks { at_ns: now_ns, member: names.member(), die, id: reader(purpose, names) });
}

/// Logs that a die begins a job.
#[inline(always)]
fn log_job(now_ns: u64, die: u32, job: Job, ends_ns: u64) {
    note(|names| {
        let (does, id) = match job {
            Job::Sense(read) => (DieWork::Sense, reader(read.purpose, names)),
            Job::SendOut(read) => (DieWork::Send, reader(read.purpose, names)),
            Job::LoadHost => (DieWork::Load, None),
            Job::ProgramHost => (DieWork::Program, None),
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
    suspend_spread_ns: f64,
    /// Whether programs and erases are not suspended now, because writes wait for them.
    pub writes_are_urgent: bool,
    /// Draws of the times of suspensions.
    random: Random,
    resume_ns: u64,
    suspensions_max: u32,
    reads_ahead_max: u32,
    slc: Option<SlcCache>,
    /// When the host's last request reached a die.
    last_host_ns: u64,
    planes: u64,
    dies_busy_ns: u64,
    page_reads: u64,
    page_programs: u64,
    read_waits: u64,
    suspensions: u64,
}

impl Flash {
    /// Creates idle flash.
    pub fn new(description: &SsdDescription, seed: u64) -> Self {
        let timing = &description.timing;
        let die = Die {
            job: Job::Idle,
            ends_ns: 0,
            suspended: None,
            suspensions: 0,
            reads: VecDeque::new(),
            rows: VecDeque::new(),
            urgent_rows: 0,
            programming: VecDeque::new(),
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
            suspend_spread_ns: timing.suspend_spread_ns as f64,
            writes_are_urgent: false,
            random: Random::new(seed, Purpose::Suspensions),
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

    /// Handles a power cycle: every die is idle, and pending work is dropped.
    pub fn power_cycle(&mut self, now_ns: u64) {
        self.channels.iter_mut().for_each(|channel| channel.reset(now_ns));
    }

    /// Returns when the next job of a die ends; `u64::MAX` if all are idle.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.agenda.next().0
    }

    /// Adds its counters.
    pub fn count(&self, counters: &mut SsdCounters) {
        counters.page_reads = self.page_reads;
        counters.page_programs = self.page_programs;
        counters.read_waits = self.read_waits;
        counters.suspensions = self.suspensions;
        counters.dies_busy_ns = self.dies_busy_ns;
        counters.channels_busy_ns = self.channels.iter().map(|channel| channel.busy_ns).sum();
    }

    /// Issues a read of data on `pages` of one row to a die.
    #[inline]
    pub fn read(&mut self, now_ns: u64, die: u32, read: PageRead, pages: u32, ftl: &mut Ftl) {
        self.page_reads += u64::from(pages);
        self.last_host_ns = now_ns;
        log_read(now_ns, die, read.purpose);
        let state = &mut self.dies[die as usize];
        state.reads.push_back(read);
        match state.job {
            Job::Idle | Job::Rest => self.start_next(now_ns, die, ftl),
            Job::Sense(_) | Job::SendOut(_) => {}
            Job::ProgramHost | Job::ProgramMoved | Job::Erase => {
                self.read_waits += 1;
                self.suspend(now_ns, die);
            }
            Job::SenseMoved { .. } | Job::SendMovedOut | Job::LoadHost | Job::LoadMoved | Job::Suspend => {
                self.read_waits += 1;
            }
        }
    }

    /// Issues a program of a row to a die.
    pub fn program(&mut self, now_ns: u64, die: u32, row: Row, ftl: &mut Ftl) {
        let state = &mut self.dies[die as usize];
        if (state.rows.len() as u32) < ftl.layout.rows_per_program {
            // Reads served before it arrived were not ahead of it.
            state.reads_ahead = 0;
        }
        state.rows.push_back(row);
        self.last_host_ns = now_ns;
        if let Job::Idle | Job::Rest = state.job {
            self.start_next(now_ns, die, ftl);
        }
    }

    /// Lets every waiting row be programmed without waiting for a full program.
    pub fn program_all(&mut self, now_ns: u64, ftl: &mut Ftl) {
        for die in 0..self.dies.len() as u32 {
            let state = &mut self.dies[die as usize];
            state.urgent_rows = state.rows.len() as u32;
            if let (Job::Idle | Job::Rest, 1..) = (state.job, state.urgent_rows) {
                self.start_next(now_ns, die, ftl);
            }
        }
    }

    /// Removes the next row of a die's finished program.
    #[inline]
    pub fn next_programmed(&mut self, die: u32) -> Option<Row> {
        self.dies[die as usize].programming.pop_front()
    }

    /// Returns the time to program the rows that are loaded.
    fn program_time_ns(&self, die: u32) -> u64 {
        let of_row = |row: &Row| match self.slc.filter(|_| row.slc) {
            _ if row.is_map_update() => row.delay_ns,
            Some(slc) => slc.program_ns + row.delay_ns,
            None => self.program_ns + row.delay_ns,
        };
        self.dies[die as usize].programming.iter().map(of_row).sum()
    }

    /// Completes the program of host rows; returns the place of the first.
    fn finish_host_program(&self, die: u32, ftl: &mut Ftl) -> u32 {
        let rows = &self.dies[die as usize].programming;
        if rows.iter().any(Row::is_map_update) {
            return 0;
        }
        ftl.finish_host_program(die, rows.len() as u32, rows.iter().map(|row| row.units).sum())
    }

    /// Begins a program: the page registers are loaded. A read that arrived meanwhile needs them, so it suspends the
    /// program too.
    fn begin_program(&mut self, die: u32, job: Job, now_ns: u64, program_ns: u64) {
        self.begin(die, job, now_ns, now_ns + program_ns);
        if !self.dies[die as usize].reads.is_empty() {
            self.suspend(now_ns, die);
        }
    }

    /// Suspends a program or an erase for waiting reads, if that pays and has not been done too often.
    fn suspend(&mut self, now_ns: u64, die: u32) {
        let Some(fixed_ns) = self.suspend_ns.filter(|_| !self.writes_are_urgent) else {
            return;
        };
        let spread_ns = match self.suspend_spread_ns {
            0.0 => 0,
            mean_ns => self.random.exponential(mean_ns) as u64,
        };
        let suspend_ns = fixed_ns + spread_ns;
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
        log_job(now_ns, die, job, ends_ns);
        self.dies_busy_ns += ends_ns - now_ns;
        let state = &mut self.dies[die as usize];
        (state.job, state.ends_ns) = (job, ends_ns);
        self.agenda.set(die, ends_ns);
    }

    /// Reserves a die's channel for `bytes`.
    #[inline]
    fn send(&mut self, die: u32, job: Job, now_ns: u64, bytes: u32) {
        // Neighbouring dies are on different channels, so that consecutive rows are too.
        let channel = die as usize % self.channels.len();
        let end_ns = self.channels[channel].carry(now_ns, transfer_ns(bytes, self.channel_ns_per_byte));
        self.begin(die, job, now_ns, end_ns);
    }

    /// Ends the job that ends first; returns the time, the die, and the outcome. Call `start_next` afterwards, unless
    /// the die has a job again.
    #[inline]
    pub fn end_job(&mut self, ftl: &mut Ftl) -> (u64, u32, TaskOutcome) {
        let (now_ns, die) = self.agenda.next();
        let unit_bytes = ftl.layout.unit_bytes;
        let mut outcome = TaskOutcome::None;
        match self.dies[die as usize].job {
            Job::Sense(read) => self.send(die, Job::SendOut(read), now_ns, read.bytes),
            Job::SenseMoved { units } => self.send(die, Job::SendMovedOut, now_ns, units * unit_bytes),
            Job::LoadHost => self.begin_program(die, Job::ProgramHost, now_ns, self.program_time_ns(die)),
            Job::LoadMoved => {
                let program_ns = u64::from(ftl.layout.rows_per_program) * self.program_ns;
                self.begin_program(die, Job::ProgramMoved, now_ns, program_ns);
            }
            Job::SendOut(read) => {
                outcome = TaskOutcome::Read(read);
                self.rest(die);
            }
            Job::ProgramHost => {
                outcome = TaskOutcome::Programmed(self.finish_host_program(die, ftl));
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

    /// Returns when one-bit blocks are folded, unless a host request arrives before.
    #[inline]
    fn folds_at(&self) -> Option<u64> {
        Some(self.last_host_ns + self.slc?.idle_ns?)
    }

    #[inline]
    fn rest(&mut self, die: u32) {
        self.dies[die as usize].job = Job::Idle;
    }

    /// Gives an idle die its next job.
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
        let data_rows = state.rows.iter().take_while(|row| !row.is_map_update()).count() as u32;
        let waiting = if data_rows == 0 { state.rows.len().min(1) as u32 } else { data_rows };
        match ftl.next_task(die, waiting, state.urgent_rows > 0) {
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

    /// Lets an idle die wait for the time to fold, or folds, if it has anything to fold.
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
        let FlashLayout { unit_bytes, units_per_row, rows_per_program, .. } = ftl.layout;
        match task {
            Task::ProgramHost { rows } => {
                let state = &mut self.dies[die as usize];
                let slc = !state.rows[0].is_map_update() && ftl.host_row_is_slc(die);
                state.urgent_rows = state.urgent_rows.saturating_sub(rows);
                state.programming.extend(state.rows.drain(..rows as usize));
                state.programming.iter_mut().for_each(|row| row.slc = slc);
                let units: u32 = state.programming.iter().map(|row| row.units).sum();
                self.page_programs += u64::from(rows) * self.planes;
                self.send(die, Job::LoadHost, now_ns, units * unit_bytes);
            }
            Task::ProgramMoved => {
                self.page_programs += u64::from(rows_per_program) * self.planes;
                self.send(die, Job::LoadMoved, now_ns, rows_per_program * units_per_row * unit_bytes);
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
