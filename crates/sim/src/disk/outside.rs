//! State of a [`Disk`] as seen from outside: media defects, write cache, power and gauges, for each variant.

use headstack_result::Levels;
use headstack_workload::Span;

use super::{Disk, Kind};
use crate::gauges::{DeviceGauge, DeviceHealth};
use crate::media_defects::Failure;
use crate::media_defects::MediaDefect;

impl Disk {
    /// Replaces the disk's media defects.
    pub(crate) fn set_media_defects(&mut self, media_defects: &[MediaDefect], seed: u64) {
        match &mut self.kind {
            Kind::Plain(drive) => drive.set_media_defects(media_defects, seed),
            Kind::Assisted(assisted) => assisted.set_media_defects(media_defects, seed),
            Kind::Split(split) => split.set_media_defects(media_defects, seed),
        }
    }

    /// Whether a failed command's error has not been collected yet.
    #[inline]
    pub(crate) fn has_failures(&self) -> bool {
        match &self.kind {
            Kind::Plain(drive) => drive.has_failures(),
            Kind::Assisted(assisted) => !assisted.failures.is_empty(),
            Kind::Split(split) => !split.failures.is_empty(),
        }
    }

    /// Returns and removes the failure of a completed command.
    #[cold]
    pub(crate) fn take_failure(&mut self, id: u32) -> Option<Failure> {
        match &mut self.kind {
            Kind::Plain(drive) => drive.take_failure(id),
            Kind::Assisted(assisted) => assisted.failures.take(id),
            Kind::Split(split) => split.failures.take(id),
        }
    }

    /// Switches the write cache on or off.
    pub(crate) fn set_write_cache(&mut self, on: bool) {
        match &mut self.kind {
            Kind::Plain(drive) => drive.set_write_cache(on),
            Kind::Assisted(assisted) => assisted.set_write_cache(on),
            Kind::Split(split) => split.set_write_cache(on),
        }
    }

    /// Whether a volatile cache can hold acknowledged data.
    pub(crate) fn caches_writes(&self) -> bool {
        match &self.kind {
            Kind::Plain(drive) => drive.caches_writes(),
            Kind::Assisted(assisted) => assisted.caches_writes(),
            Kind::Split(split) => split.caches_writes(),
        }
    }

    /// Appends, in no particular order, the parts of `span` that are only in a volatile cache.
    pub(crate) fn volatile(&self, span: Span, into: &mut Vec<Span>) {
        match &self.kind {
            Kind::Plain(drive) => drive.volatile(span, into),
            Kind::Assisted(assisted) => assisted.volatile(span, into),
            Kind::Split(split) => split.volatile(span, into),
        }
    }

    /// Returns the end of the track that holds a byte, at its home location if the drive has several locations for it.
    pub(crate) fn track_end_bytes(&self, at_bytes: u64) -> u64 {
        match &self.kind {
            Kind::Plain(drive) => drive.track_end_bytes(at_bytes),
            Kind::Assisted(assisted) => assisted.track_end_bytes(at_bytes),
            Kind::Split(split) => split.track_end_bytes(at_bytes),
        }
    }

    /// Applies a power cycle.
    pub(crate) fn power_cycle(&mut self, now_ns: u64) {
        match &mut self.kind {
            Kind::Plain(drive) => drive.power_cycle(now_ns),
            Kind::Assisted(assisted) => assisted.power_cycle(now_ns),
            Kind::Split(split) => split.power_cycle(now_ns),
        }
    }

    /// Returns the fill levels of the disk's caches.
    pub(crate) fn levels(&self) -> Levels {
        match &self.kind {
            Kind::Plain(drive) => [drive.dirty_bytes(), 0, 0, 0, 0],
            Kind::Assisted(assisted) => assisted.levels(),
            Kind::Split(split) => split.levels(),
        }
    }

    /// Returns the disk's current state for display; the caller fills in the name.
    pub(crate) fn gauge(&self, now_ns: u64) -> DeviceGauge {
        match &self.kind {
            Kind::Plain(drive) => drive.gauge(now_ns),
            Kind::Assisted(assisted) => assisted.gauge(now_ns),
            Kind::Split(split) => split.gauge(now_ns),
        }
    }

    /// Adds the disk's media defects to a health record.
    pub(crate) fn add_health(&self, into: &mut DeviceHealth) {
        match &self.kind {
            Kind::Plain(drive) => drive.add_health(into),
            Kind::Assisted(assisted) => assisted.drive().add_health(into),
            Kind::Split(split) => split.add_health(into),
        }
    }
}
