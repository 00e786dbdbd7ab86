//! The view of an [`Ssd`] from outside: media defects, power cycles and their losses, gauges.

use headstack_workload::{Kind, Span};

use super::Ssd;
use super::buffer::Row;
use super::ftl::FlashPlace;
use crate::gauges::{DeviceGauge, DeviceHealth, DeviceState};
use crate::link::Upstream;
use crate::media_defects::MediaDefect;
use crate::media_defects::{DefectEffect, Failure, MediaDefects, Stretch};
use crate::spans::common;

impl Ssd {
    /// Returns the additional time of a read that needs a unit from the flash. An unreadable unit fails its command.
    #[cold]
    pub(super) fn meet_read(&mut self, slot: u32, unit: u32) -> u64 {
        let turn_ns = self.description.timing.read_ns;
        let unit = u64::from(unit);
        let DefectEffect { delay_ns, fails, .. } =
            self.media_defects.meet((unit, unit + 1), false, false, &[], turn_ns);
        if let Some(bad) = fails {
            self.fail(slot, bad);
        }
        delay_ns
    }

    /// Returns the additional time of a row's program. Its units are elsewhere from then on, so the defects of their
    /// old places no longer matter.
    #[cold]
    pub(super) fn meet_program(&mut self, row: &Row) -> u64 {
        let turn_ns = self.description.timing.program_ns;
        let mut total_ns = 0;
        for unit in self.buffer.units_of(row).map(u64::from) {
            let DefectEffect { delay_ns, fails, .. } =
                self.media_defects.meet((unit, unit + 1), true, true, &[], turn_ns);
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
        // A unit is more than a command may request of it.
        let from_bytes =
            if command.request.kind == Kind::Flush { from_bytes } else { from_bytes.max(command.request.offset_bytes) };
        let write = command.request.kind != Kind::Read;
        self.failures.note(Failure { id: command.id, from_bytes, to_bytes, write });
    }

    /// Reports, with a flush, data that the write buffer could not program.
    #[inline]
    pub(super) fn report_deferred(&mut self, slot: u32) {
        if let Some(bad) = self.media_defects.take_deferred() {
            self.fail(slot, bad);
        }
    }

    /// Whether the failure of some command has not been collected.
    #[inline]
    pub(crate) fn has_failures(&self) -> bool {
        !self.failures.is_empty()
    }

    /// Returns the failure of a completed command, once.
    #[cold]
    pub(crate) fn take_failure(&mut self, id: u32) -> Option<Failure> {
        self.failures.take(id)
    }

    /// Replaces the defects of its flash.
    pub(crate) fn set_media_defects(&mut self, media_defects: &[MediaDefect], seed: u64) {
        self.media_defects.replace(media_defects, 1 << self.unit_shift, seed);
    }

    /// Whether acknowledged data can be in a volatile buffer.
    pub(crate) fn caches_writes(&self) -> bool {
        let buffer = &self.description.buffer;
        !buffer.power_loss_protected && !buffer.write_through
    }

    /// Switches the write cache. The contents of the buffer are programmed as before.
    pub(crate) fn set_write_cache(&mut self, on: bool) {
        self.description.buffer.write_through = !on;
    }

    /// Appends, in no order, the parts of a span that are only in a volatile buffer.
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

    /// Returns the end of the page that would hold a byte in a drive filled in order.
    pub(crate) fn page_end_bytes(&self, at_bytes: u64) -> u64 {
        let page_bytes = u64::from(self.ftl.layout.unit_bytes * self.ftl.layout.units_per_page);
        ((at_bytes / page_bytes + 1) * page_bytes).min(self.capacity_bytes())
    }

    /// Handles a power cycle. Work in flight is completed in the flash in no time, so that its map stays consistent:
    /// the place of a unit does not depend on whether its old or its new data survive.
    pub(crate) fn power_cycle(&mut self, now_ns: u64) {
        let media_defects = std::mem::replace(&mut self.media_defects, MediaDefects::none());
        self.waiting.clear();
        loop {
            self.advance_behind(&mut Upstream::none(), u64::MAX - 1, |_| {});
            if self.buffer.waiting == 0 && self.buffer.rows_under_way == 0 {
                break;
            }
            if self.buffer.waiting > 0 {
                self.program_row(now_ns);
            }
            self.flash.program_all(now_ns, &mut self.ftl);
        }
        self.media_defects = media_defects;
        self.media_defects.take_deferred();
        self.failures.clear();
        self.flash.power_cycle(now_ns);
        self.port.reset(now_ns);
        self.controller_free_ns = now_ns;
    }

    /// Returns its present state for display; the caller names it.
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

    /// Returns the bytes written by the host that are only in its memory.
    pub(crate) fn buffered_bytes(&self) -> u64 {
        u64::from(self.buffer.used()) << self.unit_shift
    }

    /// Returns the erased flash that writes can use before the drive has to collect garbage, in bytes.
    pub(crate) fn free_flash_bytes(&self) -> u64 {
        self.ftl.free_units() << self.unit_shift
    }

    /// Adds the defects of its flash to a health record, in the host's blocks.
    pub(crate) fn add_health(&self, into: &mut DeviceHealth) {
        let blocks = (1 << self.unit_shift) / u64::from(self.description.capacity.logical_block_bytes);
        into.pending_sectors += self.media_defects.pending() * blocks;
        into.reallocated_sectors += self.media_defects.spares * blocks;
        into.uncorrectable_errors += self.media_defects.errors;
        into.retried_passes += self.media_defects.retried;
    }
}
