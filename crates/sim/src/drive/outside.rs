//! State of a [`Drive`] as seen from outside: power cycles and lost writes, the write cache, activity of the arm.

use headstack_workload::Span;

use super::media::Head;
use super::{Drive, NOWHERE, Service};
use crate::description::drive::WriteCache;
use crate::gauges::{DeviceGauge, DeviceHealth, DeviceState};

impl Drive {
    /// Appends, in no particular order, the parts of `span` that are only in the volatile write cache.
    pub(crate) fn volatile(&self, span: Span, into: &mut Vec<Span>) {
        if self.params.write_cache == WriteCache::Protected {
            return;
        }
        let shift = self.params.sector_shift;
        let dirty = self.writes.dirty().map(|(from, to)| (from << shift, to << shift));
        into.extend(dirty.filter_map(|(from, to)| crate::spans::common(span, from, to)));
    }

    /// Whether the drive's volatile write cache is on.
    pub(crate) fn caches_writes(&self) -> bool {
        match self.params.write_cache {
            WriteCache::Appending | WriteCache::On => true,
            WriteCache::Off | WriteCache::Protected => false,
        }
    }

    /// Switches the write cache on or off. Data already in the cache are destaged as before.
    pub(crate) fn set_write_cache(&mut self, on: bool) {
        self.params.write_cache = match (on, self.params.description.buffer.write_cache) {
            (_, WriteCache::Protected) => WriteCache::Protected,
            (false, _) => WriteCache::Off,
            (true, WriteCache::Off) => WriteCache::On,
            (true, described) => described,
        };
    }

    /// Returns the end of the track that holds the byte at `at_bytes`, in bytes.
    pub(crate) fn track_end_bytes(&self, at_bytes: u64) -> u64 {
        let (_, end) = self.media.layout.track_bounds(at_bytes >> self.params.sector_shift);
        (end << self.params.sector_shift).min(self.capacity_bytes())
    }

    /// Applies a power cycle. The heads start on cylinder 0. The contents of a protected write cache are written home
    /// while the spindle starts.
    pub(crate) fn power_cycle(&mut self, now_ns: u64) {
        let spin_up = self.params.description.power.map(|power| power.spin_up);
        self.ready_ns = now_ns + spin_up.map_or(0, |change| change.ns);
        self.counters.spin_ups += u64::from(spin_up.is_some());
        self.queue.clear();
        self.writes.lose();
        self.segments.clear();
        self.completions.clear();
        self.flushes.clear();
        self.failures.clear();
        self.media_defects.take_deferred();
        self.port.reset(now_ns);
        (self.in_service, self.read_ahead, self.filling, self.serves_ordered) = (None, None, None, false);
        (self.arm_free_ns, self.firmware_free_ns) = (self.ready_ns, self.ready_ns);
        (self.last_was_read, self.last_write_end, self.continues) = (false, NOWHERE, NOWHERE);
        self.head = Head { cylinder: 0, head: 0 };
    }

    /// Returns the drive's current state for display; the caller fills in the name.
    pub(crate) fn gauge(&self, now_ns: u64) -> DeviceGauge {
        let state = match self.in_service {
            Some(Service::Read) => DeviceState::Reading,
            Some(Service::Write | Service::Destage(_)) => DeviceState::Writing,
            Some(Service::Internal) => DeviceState::Internal,
            None if now_ns >= self.stops_ns() => DeviceState::Standby,
            None => DeviceState::Idle,
        };
        let head = self.read_ahead.map_or(self.head, |run| run.head);
        DeviceGauge {
            name: String::new(),
            state,
            queue: (self.queue.len() + self.completions.len() + self.flushes.len()) as u32,
            cylinder: Some(head.cylinder),
            cylinders: self.params.description.geometry.cylinders,
            head: head.head,
            dirty_bytes: self.dirty_bytes(),
        }
    }

    /// Returns the number of bytes written by the host that are only in the drive's memory.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.writes.sectors() << self.params.sector_shift
    }

    /// Adds the drive's media defects and retries to a health record.
    pub(crate) fn add_health(&self, into: &mut DeviceHealth) {
        into.pending_sectors += self.media_defects.pending();
        into.reallocated_sectors += self.media_defects.spares;
        into.uncorrectable_errors += self.media_defects.errors;
        into.retried_passes += self.counters.retries;
    }
}
