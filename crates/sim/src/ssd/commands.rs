//! Commands of an [`Ssd`]: they are decoded, then their data are read from the dies, or written to the buffer.

use std::collections::VecDeque;

use headstack_workload::{Kind, Request};

use super::buffer::Row;
use super::flash::{PageRead, ReadFor, TaskOutcome};
use super::ftl::FlashPlace;
use super::map_cache::MAP_PAGE_BYTES;
use super::{Barrier, BufferTransfer, Command, Ssd};
use crate::chronicle;
use crate::description::ssd::WriteBuffer;
use crate::link::{Direction, Upstream};

/// Reads of one row of a die, collected while a command's units are looked up.
#[derive(Clone, Copy, Debug)]
struct RowRead {
    die: u32,
    /// `None` for a unit that shares its row with no other of the command.
    row: Option<u32>,
    last_page: u32,
    pages: u32,
    bytes: u32,
    sense_ns: u64,
}

impl Ssd {
    /// Puts a command into a free slot.
    #[inline]
    pub(super) fn begin(&mut self, now_ns: u64, id: u32, request: &Request) {
        let controller = self.description.controller;
        let started_ns = now_ns.max(self.controller_free_ns);
        let (command_ns, interval_ns) = match request.kind {
            Kind::Write => (controller.write_command_ns, controller.write_interval_ns),
            Kind::Read | Kind::Trim | Kind::Flush => (controller.command_ns, controller.command_interval_ns),
        };
        self.controller_free_ns = started_ns + interval_ns;
        let command =
            Command { id, started_ns, request: *request, parts: 0, done_ns: 0, map_parts: 0, poured_bytes: 0 };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.commands[slot as usize] = command;
                slot
            }
            None => {
                self.commands.push(command);
                self.commands.len() as u32 - 1
            }
        };
        chronicle::takes_slot(slot, id);
        insert_in_order(&mut self.decoding, (started_ns + command_ns, slot));
    }

    /// Handles one event that is due at `now_ns` and is not a completion.
    #[inline]
    pub(super) fn handle_internal(&mut self, upstream: &mut Upstream, now_ns: u64) {
        if self.flash.next_ns() == now_ns {
            self.die_event(upstream);
        } else if self.landings.front().is_some_and(|landing| landing.at_ns == now_ns) {
            let landing = self.landings.pop_front().expect("just seen");
            self.land(upstream, landing);
        } else {
            let (_, slot) = self.decoding.pop_front().expect("nothing else is due");
            self.execute(upstream, now_ns, slot);
        }
    }

    #[inline]
    fn die_event(&mut self, upstream: &mut Upstream) {
        let (now_ns, die, outcome) = self.flash.end_job(&mut self.ftl);
        match outcome {
            TaskOutcome::None => {}
            TaskOutcome::Read(read) => match read.purpose {
                ReadFor::Host(slot) => self.deliver(upstream, now_ns, slot, read.bytes),
                ReadFor::Map(slot) => self.deliver_map(upstream, now_ns, slot),
                ReadFor::Nobody => {}
            },
            TaskOutcome::Programmed(first) => {
                let mut start = first;
                while let Some(row) = self.flash.next_programmed(die) {
                    self.settle_row(row, start);
                    self.lower_barriers(now_ns, row.serial);
                    start += self.ftl.layout.units_per_row;
                }
                self.pour(upstream, now_ns);
            }
        }
        self.flash.start_next(now_ns, die, &mut self.ftl);
    }

    /// Records the places of the units of a programmed row, which starts at `place`, and frees their buffer space.
    #[inline]
    fn settle_row(&mut self, row: Row, mut place: u32) {
        let ftl = &mut self.ftl;
        self.buffer.finish_row(row, |slot, unit| {
            // Otherwise it was overwritten or trimmed meanwhile.
            if ftl.place(unit) == FlashPlace::Buffer(slot) {
                ftl.settle(unit, place);
            }
            place += 1;
        });
    }

    #[inline]
    fn execute(&mut self, upstream: &mut Upstream, now_ns: u64, slot: u32) {
        let request = self.commands[slot as usize].request;
        match request.kind {
            Kind::Read if self.read_missing_map_entries(now_ns, slot) => {}
            Kind::Read => self.read(upstream, now_ns, slot),
            Kind::Write => {
                self.counters.writes += 1;
                self.read_missing_map_entries(now_ns, slot);
                if request.length_bytes == 0 {
                    return self.complete(now_ns, slot);
                }
                self.pouring.push_back(slot);
                self.pour(upstream, now_ns);
            }
            Kind::Trim => self.trim(now_ns, slot),
            Kind::Flush => {
                self.counters.flushes += 1;
                self.report_deferred(slot);
                match self.description.buffer {
                    WriteBuffer { power_loss_protected: true, flush_ns, .. } => self.complete(now_ns + flush_ns, slot),
                    _ => self.make_stable(now_ns, slot),
                }
            }
        }
    }

    /// Looks up every unit of a read. Units in one row of a die are sensed together, by all its planes at once.
    fn read(&mut self, upstream: &mut Upstream, now_ns: u64, slot: u32) {
        self.counters.reads += 1;
        let request = self.commands[slot as usize].request;
        let mut bytes_at_hand = 0;
        let mut gathered: Option<RowRead> = None;
        let units_per_page = self.ftl.layout.units_per_page;
        for (unit, bytes) in units(self.unit_shift, request.offset_bytes, request.length_bytes) {
            let at = self.ftl.place(unit);
            let (die, place) = match at {
                FlashPlace::Nowhere => {
                    self.counters.unwritten_reads += 1;
                    bytes_at_hand += bytes;
                    continue;
                }
                FlashPlace::Buffer(_) => {
                    self.counters.read_hits += 1;
                    bytes_at_hand += bytes;
                    continue;
                }
                FlashPlace::Flash(place) => (self.ftl.die_of(place), Some(place)),
                FlashPlace::OnDie(die) => (die, None),
            };
            let sense_ns = self.sense_ns(at);
            let delay_ns = if self.media_defects.is_clean() { 0 } else { self.meet_read(slot, unit) };
            let row = place.map(|place| place / self.ftl.layout.units_per_row);
            let page = place.map_or(0, |place| place / units_per_page);
            if let Some(read) = gathered.as_mut().filter(|read| row.is_some() && (read.die, read.row) == (die, row)) {
                read.bytes += bytes;
                read.sense_ns = read.sense_ns.max(sense_ns) + delay_ns;
                read.pages += u32::from(read.last_page != page);
                read.last_page = page;
            } else {
                let read = RowRead { die, row, last_page: page, pages: 1, bytes, sense_ns: sense_ns + delay_ns };
                if let Some(complete) = gathered.replace(read) {
                    self.ask_die(now_ns, slot, complete);
                }
            }
        }
        if let Some(complete) = gathered {
            self.ask_die(now_ns, slot, complete);
        }
        // The controller has these: they are sent at once, and complete a read that needs nothing else.
        let end_ns = self.port.carry(upstream, Direction::Read, now_ns, bytes_at_hand);
        let command = &mut self.commands[slot as usize];
        command.done_ns = command.done_ns.max(end_ns);
        if command.parts == 0 {
            self.complete(end_ns, slot);
        }
    }

    #[inline]
    fn ask_die(&mut self, now_ns: u64, slot: u32, read: RowRead) {
        self.commands[slot as usize].parts += 1;
        let page_read = PageRead { purpose: ReadFor::Host(slot), bytes: read.bytes, sense_ns: read.sense_ns };
        self.flash.read(now_ns, read.die, page_read, read.pages, &mut self.ftl);
    }

    /// Returns the sensing time of a unit.
    #[inline]
    fn sense_ns(&self, place: FlashPlace) -> u64 {
        match (self.description.slc_cache, place) {
            (Some(slc), FlashPlace::Flash(place)) if self.ftl.is_slc(place) => slc.read_ns,
            _ => self.description.timing.read_ns,
        }
    }

    /// Reads missing entries of the map for a command, which waits for them if it is a read. Returns whether any are
    /// missing.
    fn read_missing_map_entries(&mut self, now_ns: u64, slot: u32) -> bool {
        let Some(map) = &mut self.map_cache else { return false };
        let request = self.commands[slot as usize].request;
        let last = (request.offset_bytes + u64::from(request.length_bytes.max(1)) - 1) >> self.unit_shift;
        let missing = map.miss((request.offset_bytes >> self.unit_shift) as u32, last as u32);
        let purpose = if request.kind == Kind::Read { ReadFor::Map(slot) } else { ReadFor::Nobody };
        // The map is in one-bit cells if the drive has any.
        let sense_ns = self.description.slc_cache.map_or(self.description.timing.read_ns, |slc| slc.read_ns);
        for page in missing.clone() {
            self.counters.map_reads += 1;
            let read = PageRead { purpose, bytes: MAP_PAGE_BYTES as u32, sense_ns };
            self.flash.read(now_ns, page % self.ftl.layout.dies, read, 1, &mut self.ftl);
        }
        self.commands[slot as usize].map_parts = missing.len() as u32;
        !missing.is_empty()
    }

    /// Handles a part of the map that has arrived; with the last one the read continues.
    fn deliver_map(&mut self, upstream: &mut Upstream, now_ns: u64, slot: u32) {
        let command = &mut self.commands[slot as usize];
        command.map_parts -= 1;
        if command.map_parts == 0 {
            self.read(upstream, now_ns, slot);
        }
    }

    /// Sends a die's data, which are in the controller, to the host.
    #[inline]
    fn deliver(&mut self, upstream: &mut Upstream, now_ns: u64, slot: u32, bytes: u32) {
        let end_ns = self.port.carry(upstream, Direction::Read, now_ns, bytes);
        let command = &mut self.commands[slot as usize];
        command.done_ns = command.done_ns.max(end_ns);
        command.parts -= 1;
        if command.parts == 0 {
            let done_ns = command.done_ns;
            self.complete(done_ns, slot);
        }
    }

    /// Fetches the data of waiting writes for which the buffer has space, a row at a time so that programs can begin
    /// while the rest is in transit.
    fn pour(&mut self, upstream: &mut Upstream, now_ns: u64) {
        while let Some(&slot) = self.pouring.front() {
            let command = &mut self.commands[slot as usize];
            let offset_bytes = command.request.offset_bytes + u64::from(command.poured_bytes);
            let left_bytes = command.request.length_bytes - command.poured_bytes;
            let into_unit = offset_bytes as u32 & (self.ftl.layout.unit_bytes - 1);
            let row_bytes = self.ftl.layout.unit_bytes * self.ftl.layout.units_per_row;
            let length_bytes = left_bytes.min(row_bytes - into_unit);
            let units = (into_unit + length_bytes).div_ceil(self.ftl.layout.unit_bytes);
            if !self.buffer.reserve(units) {
                break;
            }
            let at_ns = self.port.carry(upstream, Direction::Write, now_ns, length_bytes);
            self.landings.push_back(BufferTransfer { at_ns, command: slot, offset_bytes, length_bytes });
            command.parts += 1;
            command.poured_bytes += length_bytes;
            if command.poured_bytes == command.request.length_bytes {
                self.pouring.pop_front();
            }
        }
        self.flash.writes_are_urgent = self.description.timing.writes_urgent_when_full && !self.pouring.is_empty();
    }

    /// Handles data that have arrived in the buffer.
    fn land(&mut self, upstream: &mut Upstream, landing: BufferTransfer) {
        for (unit, bytes) in units(self.unit_shift, landing.offset_bytes, landing.length_bytes) {
            self.write_unit(landing.at_ns, unit, bytes);
        }
        while self.buffer.waiting >= self.ftl.layout.units_per_row {
            self.program_row(landing.at_ns);
        }
        let command = &mut self.commands[landing.command as usize];
        command.parts -= 1;
        if command.parts == 0 && command.poured_bytes == command.request.length_bytes {
            if command.request.force_unit_access || self.description.buffer.write_through {
                self.make_stable(landing.at_ns, landing.command);
            } else {
                self.complete(landing.at_ns, landing.command);
            }
        }
        // Units that were overwritten in place released their space.
        self.pour(upstream, landing.at_ns);
    }

    #[inline]
    fn write_unit(&mut self, now_ns: u64, unit: u32, bytes: u32) {
        self.counters.written_units += 1;
        let at = self.ftl.place(unit);
        match at {
            FlashPlace::Buffer(slot) if self.buffer.is_replaceable(slot) => {
                self.counters.write_hits += 1;
                self.buffer.give_back();
                return;
            }
            FlashPlace::Flash(place) => self.read_rest(now_ns, self.ftl.die_of(place), bytes, self.sense_ns(at)),
            FlashPlace::OnDie(die) => self.read_rest(now_ns, die, bytes, self.sense_ns(at)),
            FlashPlace::Buffer(_) | FlashPlace::Nowhere => {}
        }
        let slot = self.buffer.take(unit);
        self.ftl.buffer(unit, slot);
    }

    /// Reads the rest of a unit of flash that is partially written; the program does not wait for it, because reads are
    /// served first anyway.
    #[inline]
    fn read_rest(&mut self, now_ns: u64, die: u32, written_bytes: u32, sense_ns: u64) {
        if self.description.medium.is_flash() && written_bytes < self.ftl.layout.unit_bytes {
            self.counters.partial_writes += 1;
            let read = PageRead { purpose: ReadFor::Nobody, bytes: self.ftl.layout.unit_bytes, sense_ns };
            self.flash.read(now_ns, die, read, 1, &mut self.ftl);
        }
    }

    pub(super) fn program_row(&mut self, now_ns: u64) {
        let mut row = self.buffer.form_row(self.ftl.layout.units_per_row);
        if !self.media_defects.is_clean() {
            row.delay_ns = self.meet_program(&row);
        }
        let first = self.buffer.units_of(&row).next().expect("a row holds a unit");
        let die = self.ftl.choose_die(row.units, first);
        self.last_row_die = die;
        self.flash.program(now_ns, die, row, &mut self.ftl);
    }

    /// Programs the changed part of the map after the last row, if enough flushes have changed it.
    fn update_map(&mut self, now_ns: u64) {
        let buffer = &self.description.buffer;
        self.flushes_since_map_update += 1;
        if buffer.map_update_ns > 0 && self.flushes_since_map_update >= buffer.flushes_per_map_update {
            self.flushes_since_map_update = 0;
            let row = self.buffer.form_map_update(buffer.map_update_ns);
            self.flash.program(now_ns, self.last_row_die, row, &mut self.ftl);
        }
    }

    /// Completes a command once everything in the buffer is durable.
    fn make_stable(&mut self, now_ns: u64, slot: u32) {
        if self.description.buffer.power_loss_protected {
            self.complete(now_ns, slot);
            return;
        }
        if self.buffer.waiting > 0 {
            self.program_row(now_ns);
        }
        if self.buffer.rows_under_way > 0 {
            self.update_map(now_ns);
        }
        self.flash.program_all(now_ns, &mut self.ftl);
        match self.buffer.rows_under_way {
            0 => self.complete(now_ns, slot),
            rows_left => {
                self.barriers.push(Barrier { command: slot, before_serial: self.buffer.next_serial(), rows_left });
            }
        }
    }

    fn lower_barriers(&mut self, now_ns: u64, serial: u64) {
        let mut index = 0;
        while index < self.barriers.len() {
            let barrier = &mut self.barriers[index];
            barrier.rows_left -= u32::from(serial < barrier.before_serial);
            if barrier.rows_left == 0 {
                let barrier = self.barriers.remove(index);
                self.complete(now_ns, barrier.command);
            } else {
                index += 1;
            }
        }
    }

    /// Unmaps units that are entirely inside the range.
    fn trim(&mut self, now_ns: u64, slot: u32) {
        self.counters.trims += 1;
        let request = self.commands[slot as usize].request;
        for (unit, bytes) in units(self.unit_shift, request.offset_bytes, request.length_bytes) {
            if bytes == self.ftl.layout.unit_bytes {
                self.ftl.unmap(unit);
            }
        }
        self.complete(now_ns, slot);
    }

    #[inline]
    pub(super) fn complete(&mut self, at_ns: u64, slot: u32) {
        insert_in_order(&mut self.completions, (at_ns, slot));
    }
}

/// Inserts into a queue in order of time, after entries of the same time.
#[inline]
fn insert_in_order(queue: &mut VecDeque<(u64, u32)>, entry: (u64, u32)) {
    let mut index = queue.len();
    while index > 0 && queue[index - 1].0 > entry.0 {
        index -= 1;
    }
    queue.insert(index, entry);
}

/// Returns each mapping unit that a range touches, and how many bytes of it.
#[inline]
fn units(unit_shift: u32, offset_bytes: u64, length_bytes: u32) -> impl Iterator<Item = (u32, u32)> {
    let end = offset_bytes + u64::from(length_bytes);
    let mut at = offset_bytes;
    std::iter::from_fn(move || {
        if at == end {
            return None;
        }
        let unit = at >> unit_shift;
        let next = end.min((unit + 1) << unit_shift);
        let bytes = (next - at) as u32;
        at = next;
        Some((unit as u32, bytes))
    })
}
