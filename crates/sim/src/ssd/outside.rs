//! External influences on a solid-state drive, and its state as seen from outside: media defects, power cuts and their
//! losses.

use headstack_workload::{Kind, Span};

use super::Ssd;
use super::buffer::Row;
use super::ftl::FlashPlace;
use crate::gauges::{DeviceGauge, DeviceHealth, DeviceState};
use crate::link::Upstream;
use crate::media_defects::MediaDefect;
use crate::media_defects::{Failure, MediaDefects, Meeting, Stretch};
use crate::spans::common;

impl Ssd {
    /// A read needs a unit from the flash: how much longer that takes. One that cannot be read fails its command.
    #[cold]
    pub(super) fn meet_read(&mut self, slot: u32, unit: u32) -> u64 {
        let turn_ns = self.description.timing.read_ns;
        let unit = u64::from(unit);
        let Meeting { delay_ns, fails, .. } = self.media_defects.meet((unit, unit + 1), false, false, &[], turn_ns);
        if let Some(bad) = fails {
            self.fail(slot, bad);
        }
        delay_ns
    }

    /// Extra time to program a row. Its units lie elsewhere from then on, so that media defects of their old places do
    /// not matter any more.
    #[cold]
    pub(super) fn meet_program(&mut self, row: &Row) -> u64 {
        let turn_ns = self.description.timing.program_ns;
        let mut total_ns = 0;
        for unit in self.buffer.units_of(row).map(u64::from) {
            let Meeting { delay_ns, fails, .. } = self.media_defects.meet((unit, unit + 1), true, true, &[], turn_ns);
            total_ns += delay_ns;
            if let Some(bad) = fails {
                self.media_defects.defer(bad);
            }
        }
        total_ns
    }

    fn fail(&mut self, slot: u32, bad: Stretch) {
        let command = &self.commands[slot as usize];
        let (from_bytes, to_bytes) = (bad.from << self.unit_shift, bad.to << self.unit_shift);
        // A unit can be larger than the range of a command.
        let from_bytes =
            if command.request.kind == Kind::Flush { from_bytes } else { from_bytes.max(command.request.offset_bytes) };
        let write = command.request.kind != Kind::Read;
        self.failures.note(Failure { id: command.id, from_bytes, to_bytes, write });
    }

    /// Lets a flush report data that the write buffer could not write.
    #[inline]
    pub(super) fn tell_deferred(&mut self, slot: u32) {
        if let Some(bad) = self.media_defects.take_deferred() {
            self.fail(slot, bad);
        }
    }

    /// Whether a command has failed that was not fetched yet.
    #[inline]
    pub(crate) fn has_failures(&self) -> bool {
        !self.failures.is_empty()
    }

    /// The failure of a completed command, once.
    #[cold]
    pub(crate) fn take_failure(&mut self, id: u32) -> Option<Failure> {
        self.failures.take(id)
    }

    /// Replaces the media defects of the flash.
    pub(crate) fn set_media_defects(&mut self, media_defects: &[MediaDefect], seed: u64) {
        self.media_defects.replace(media_defects, 1 << self.unit_shift, seed);
    }

    /// Acknowledged data can be in a volatile buffer.
    pub(crate) fn caches_writes(&self) -> bool {
        let buffer = &self.description.buffer;
        !buffer.power_loss_protected && !buffer.write_through
    }

    /// Switches the write cache. Data in the buffer are programmed as before.
    pub(crate) fn set_write_cache(&mut self, on: bool) {
        self.description.buffer.write_through = !on;
    }

    /// Appends the parts of a span that only a volatile buffer holds, in no order.
    pub(crate) fn volatile(&self, span: Span, into: &mut Vec<Span>) {
        if self.description.buffer.power_loss_protected {
            return;
        }
        let held = self.buffer.slots().filter(|&(slot, unit)| self.ftl.place(unit) == FlashPlace::Buffer(slot));
        into.extend(held.filter_map(|(_, unit)| {
            let from = u64::from(unit) << self.unit_shift;
            common(span, from, from + (1 << self.unit_shift))
        }));
    }

    /// End of the page that holds a byte, had the drive been filled in order.
    pub(crate) fn page_end_bytes(&self, at_bytes: u64) -> u64 {
        let page_bytes = u64::from(self.ftl.layout.unit_bytes * self.ftl.layout.units_per_page);
        ((at_bytes / page_bytes + 1) * page_bytes).min(self.capacity_bytes())
    }

    /// Restores power after a cut. Operations in flight are completed in the flash in no time, so that its map stays
    /// consistent: the place of a unit does not depend on whether its old or its new data are found there.
    pub(crate) fn power_cycle(&mut self, now_ns: u64) {
        let media_defects = std::mem::replace(&mut self.media_defects, MediaDefects::none());
        self.waiting.clear();
        loop {
            self.advance_behind(&mut Upstream::none(), u64::MAX - 1, |_| {});
            if self.buffer.waiting == 0 {
                break;
            }
            self.program_row(now_ns);
        }
        self.media_defects = media_defects;
        self.media_defects.take_deferred();
        self.failures.clear();
        self.flash.power_cycle(now_ns);
        self.port.reset(now_ns);
        self.controller_free_ns = now_ns;
    }

    /// Its present state; the caller names it.
    pub(crate) fn gauge(&self) -> DeviceGauge {
        let queue = self.commands.len() - self.free.len() + self.waiting.len();
        let writes = !self.pouring.is_empty() || !self.landings.is_empty() || !self.barriers.is_empty();
        let state = match queue {
            0 if self.flash.next_ns() == u64::MAX => DeviceState::Idle,
            0 => DeviceState::Internal,
            _ if writes => DeviceState::Writing,
            _ => DeviceState::Reading,
        };
        DeviceGauge {
            name: String::new(),
            state,
            queue: queue as u32,
            cylinder: None,
            cylinders: 0,
            head: 0,
            dirty_bytes: self.buffered_bytes(),
        }
    }

    /// Bytes written by the host that are only in the drive's memory.
    pub(crate) fn buffered_bytes(&self) -> u64 {
        u64::from(self.buffer.used()) << self.unit_shift
    }

    /// Erased flash that writes can use before the drive has to collect garbage, in bytes.
    pub(crate) fn free_flash_bytes(&self) -> u64 {
        self.ftl.free_units() << self.unit_shift
    }

    /// Adds the media defects of the flash, in the host's blocks.
    pub(crate) fn add_health(&self, into: &mut DeviceHealth) {
        let blocks = (1 << self.unit_shift) / u64::from(self.description.capacity.logical_block_bytes);
        into.pending_sectors += self.media_defects.pending() * blocks;
        into.reallocated_sectors += self.media_defects.spares * blocks;
        into.uncorrectable_errors += self.media_defects.errors;
        into.retried_passes += self.media_defects.retried;
    }
}
