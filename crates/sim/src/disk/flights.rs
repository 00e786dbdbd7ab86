//! Commands of the host that a disk passes on in parts.

use crate::chronicle;
use crate::drive::Completion;

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    /// The host's name for it.
    id: u32,
    parts: u32,
    started_ns: u64,
    /// A read whose data the flash may want: its range in bytes.
    wanted: Option<(u64, u64)>,
}

/// All commands under way, in slots that stay put; a slot's number is the name that the parts bear.
#[derive(Clone, Debug, Default)]
pub struct Flights {
    slots: Vec<Flight>,
    free: Vec<u32>,
}

/// A command whose last part is done.
#[derive(Clone, Copy, Debug)]
pub struct Landed {
    /// For the host.
    pub completion: Completion,
    /// Range that the flash may cache.
    pub wanted: Option<(u64, u64)>,
}

impl Flights {
    /// A command of `parts` parts; returns their name.
    pub fn start(&mut self, id: u32, parts: u32) -> u32 {
        let flight = Flight { id, parts, started_ns: u64::MAX, wanted: None };
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

    /// The flash may want the data of a read.
    pub fn want(&mut self, name: u32, start_bytes: u64, length_bytes: u64) {
        self.slots[name as usize].wanted = Some((start_bytes, start_bytes + length_bytes));
    }

    /// The host's name for the command of that name.
    pub fn id(&self, name: u32) -> u32 {
        self.slots[name as usize].id
    }

    /// The flash must not cache data that could not be read.
    pub fn spoil(&mut self, name: u32) {
        self.slots[name as usize].wanted = None;
    }

    /// Marks data of reads under way in a range as stale.
    pub fn was_written(&mut self, start_bytes: u64, length_bytes: u64) {
        for flight in &mut self.slots {
            flight.wanted = flight.wanted.filter(|&(from, to)| to <= start_bytes || start_bytes + length_bytes <= from);
        }
    }

    /// A part is done; the command, if it was the last.
    pub fn part_done(&mut self, part: &Completion) -> Option<Landed> {
        let flight = &mut self.slots[part.id as usize];
        flight.parts -= 1;
        flight.started_ns = flight.started_ns.min(part.started_ns);
        if flight.parts > 0 {
            return None;
        }
        self.free.push(part.id);
        let completion = Completion { id: flight.id, started_ns: flight.started_ns, ..*part };
        Some(Landed { completion, wanted: flight.wanted.take() })
    }

    /// Commands under way.
    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
