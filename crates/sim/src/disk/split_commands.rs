//! [`SplitCommands`]: host commands that a disk splits into parts.

use crate::chronicle;
use crate::drive::Completion;

/// A command in flight.
#[derive(Clone, Copy, Debug)]
struct SplitCommand {
    /// The host's id of it.
    id: u32,
    parts: u32,
    started_ns: u64,
    /// Range in bytes of a read whose data the flash may admit.
    wanted: Option<(u64, u64)>,
}

/// All commands in flight, in stable slots; the parts bear the slot's number as their name.
#[derive(Clone, Debug, Default)]
pub struct SplitCommands {
    slots: Vec<SplitCommand>,
    free: Vec<u32>,
}

/// A command whose last part is done.
#[derive(Clone, Copy, Debug)]
pub struct CompletedCommand {
    /// Its completion, for the host.
    pub completion: Completion,
    /// Its range that the flash may admit.
    pub wanted: Option<(u64, u64)>,
}

impl SplitCommands {
    /// Starts a command of `parts` parts; returns their name.
    pub fn start(&mut self, id: u32, parts: u32) -> u32 {
        let flight = SplitCommand { id, parts, started_ns: u64::MAX, wanted: None };
        let name = match self.free.pop() {
            Some(name) => {
                self.slots[name as usize] = flight;
                name
            }
            None => {
                self.slots.push(flight);
                (self.slots.len() - 1) as u32
            }
        };
        chronicle::passed_on(name, id);
        name
    }

    /// Offers the data of a read to the flash.
    pub fn want(&mut self, name: u32, start_bytes: u64, length_bytes: u64) {
        self.slots[name as usize].wanted = Some((start_bytes, start_bytes + length_bytes));
    }

    /// Returns the host's id of a command.
    pub fn id(&self, name: u32) -> u32 {
        self.slots[name as usize].id
    }

    /// Withdraws data that could not be read from the flash.
    pub fn spoil(&mut self, name: u32) {
        self.slots[name as usize].wanted = None;
    }

    /// Marks data of a range that reads in flight bring as stale.
    pub fn was_written(&mut self, start_bytes: u64, length_bytes: u64) {
        for flight in &mut self.slots {
            flight.wanted = flight.wanted.filter(|&(from, to)| to <= start_bytes || start_bytes + length_bytes <= from);
        }
    }

    /// Completes a part; returns the command, if it was its last.
    pub fn part_done(&mut self, part: &Completion) -> Option<CompletedCommand> {
        let flight = &mut self.slots[part.id as usize];
        flight.parts -= 1;
        flight.started_ns = flight.started_ns.min(part.started_ns);
        if flight.parts > 0 {
            return None;
        }
        self.free.push(part.id);
        let completion = Completion { id: flight.id, started_ns: flight.started_ns, ..*part };
        Some(CompletedCommand { completion, wanted: flight.wanted.take() })
    }

    /// Returns the number of commands in flight.
    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
