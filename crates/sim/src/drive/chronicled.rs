//! Events of a drive for the event log ([`crate::chronicle`]).

use super::Drive;
use super::geometry::Extent;
use super::media::Pass;
use super::queue::{self, Job};
use crate::chronicle::{Event, Names, Work, note};

/// Converts an angle to turns.
fn turns(angle: u32) -> f64 {
    f64::from(angle) / 4_294_967_296.0
}

fn waits(names: &Names, now_ns: u64, job: &Job) -> Event {
    let (work, id) = match job.work {
        queue::Work::Host(host) => (Work::Command, names.of(host.id)),
        queue::Work::Destage(slot) => (Work::Destage, slot),
        queue::Work::InternalAccess(access) => (Work::Own, access.id),
    };
    let Extent { cylinder, head, angle, .. } = job.extent;
    Event::Waits { at_ns: now_ns, member: names.member(), work, id, cylinder, head, angle: turns(angle) }
}

impl Drive {
    /// Logs a job that waits for the arm.
    #[inline(always)]
    pub(super) fn log_wait(now_ns: u64, job: &Job) {
        note(|names| waits(names, now_ns, job));
    }

    /// Logs that a write that waited for the arm now waits as a destage.
    #[inline(always)]
    pub(super) fn log_wait_as_destage(&self, now_ns: u64, at: usize) {
        note(|names| waits(names, now_ns, self.queue.job(at)));
    }

    /// Logs that the arm takes a job whose pass has been computed, before the heads move.
    #[inline(always)]
    pub(super) fn log_access(
        &self,
        now_ns: u64,
        (work, name, write): (Work, u32, bool),
        start_ns: u64,
        pass: &Pass,
        extent: &Extent,
    ) {
        note(|names| Event::Access {
            at_ns: now_ns,
            member: names.member(),
            work,
            id: if work == Work::Command { names.of(name) } else { name },
            write,
            from_cylinder: self.head.cylinder,
            cylinder: extent.cylinder,
            head: extent.head,
            angle: turns(extent.angle),
            start_ns,
            seek_ns: pass.seek_ns,
            rotation_ns: pass.rotation_ns,
            end_ns: pass.end_ns,
        });
    }

    /// Logs a read served from the buffer.
    #[inline(always)]
    pub(super) fn log_hit(now_ns: u64, id: u32) {
        note(|names| Event::Hit { at_ns: now_ns, member: names.member(), id: names.of(id) });
    }

    /// Logs that the write cache has accepted a write.
    #[inline(always)]
    pub(super) fn log_cached(&self, now_ns: u64, id: u32) {
        note(|names| Event::Cached {
            at_ns: now_ns,
            member: names.member(),
            id: names.of(id),
            dirty_sectors: self.writes.sectors(),
        });
    }

    /// Logs that a dirty extent is on the media.
    #[inline(always)]
    pub(super) fn log_destaged(&self, now_ns: u64) {
        note(|names| Event::Destaged { at_ns: now_ns, member: names.member(), dirty_sectors: self.writes.sectors() });
    }

    /// Logs a change of a segment's contents.
    #[inline(always)]
    pub(super) fn log_segment(&self, now_ns: u64, segment: usize) {
        note(|names| Event::Segment {
            at_ns: now_ns,
            member: names.member(),
            segment: segment as u32,
            from_block: self.segments.start_of(segment),
            to_block: self.segments.end_of(segment),
        });
    }
}
