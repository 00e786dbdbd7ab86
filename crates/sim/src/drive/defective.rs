//! Passes over media with defects. Without defects, a pass is that of [`super::media`].

use super::geometry::Extent;
use super::media::{Access, Head, Pass};
use super::{Drive, NOWHERE, Service};
use crate::media_defects::MediaDefect;
use crate::media_defects::{DefectEffect, Failure, PathSegment, Stretch};

/// Origin of the arm's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The host: an error ends the access, and written data renew their sectors.
    Host,
    /// The drive itself: it continues after unreadable sectors, and writes only data that it read before.
    Itself,
}

impl Drive {
    /// Performs an access; returns the pass, and where it failed.
    #[inline(always)]
    pub(super) fn pass_over(
        &mut self,
        from: Head,
        access: &Access,
        extent: &Extent,
        origin: Origin,
    ) -> (Pass, Option<Stretch>) {
        if self.media_defects.is_clean() {
            return (self.media.pass_from(from, access, extent), None);
        }
        self.pass_over_media_defects(from, access, origin)
    }

    #[cold]
    fn pass_over_media_defects(&mut self, from: Head, access: &Access, origin: Origin) -> (Pass, Option<Stretch>) {
        let end = access.block + u64::from(access.sectors);
        // Dirty data come from the buffer, regardless of the state of the media.
        let dirty: Vec<(u64, u64)> = if access.write { Vec::new() } else { self.writes.dirty().collect() };
        let turn_ns = self.media.spindle.revolution_ns();
        let renews = access.write && origin == Origin::Host;
        let DefectEffect { delay_ns, repeats, fails } =
            self.media_defects.meet((access.block, end), access.write, renews, &dirty, turn_ns);
        // The sector that fails is the last that the heads pass.
        let end = fails.filter(|_| origin == Origin::Host).map_or(end, |bad| bad.from + 1);
        let mut pass = self.pass_by_legs(from, access, end);
        self.counters.retries += u64::from(repeats);
        pass.mark_ns += delay_ns;
        pass.end_ns += delay_ns;
        pass.rotation_ns += delay_ns;
        (pass, fails)
    }

    /// Returns the pass over sectors in their place and, in between, over those on spares. Those are after the last
    /// block; the layout has no such place, so the last blocks represent it.
    fn pass_by_legs(&self, from: Head, access: &Access, end: u64) -> Pass {
        let blocks = self.media.layout.blocks();
        let mut whole: Option<Pass> = None;
        self.media_defects.legs(access.block, end, |leg: PathSegment| {
            let block = if leg.spare { blocks.saturating_sub(leg.at) } else { leg.at };
            let sectors = leg.sectors.min(blocks - block) as u32;
            let (head, start_ns, settled_ns) = match &whole {
                None => (from, access.start_ns, access.settled_ns),
                Some(before) => (before.head, before.end_ns, before.end_ns),
            };
            let part = Access { block, sectors, start_ns, settled_ns, mark: access.mark.min(sectors), ..*access };
            let mut pass = self.media.pass(head, &part);
            pass.followers = if leg.spare { 0 } else { pass.followers };
            whole = Some(match whole {
                None => pass,
                Some(before) => Pass {
                    mark_ns: pass.end_ns,
                    first_wait_ns: before.first_wait_ns,
                    seek_ns: before.seek_ns + pass.seek_ns,
                    rotation_ns: before.rotation_ns + pass.rotation_ns,
                    ..pass
                },
            });
        });
        whole.expect("an access has sectors")
    }

    /// Ends a read at an unreadable sector.
    #[cold]
    pub(super) fn fail_read(
        &mut self,
        now_ns: u64,
        decoded_ns: u64,
        start_ns: u64,
        id: u32,
        pass: &Pass,
        bad: Stretch,
    ) {
        self.fail(id, bad, false);
        let completion_ns = self.params.description.overheads.read_completion_ns;
        self.complete(id, now_ns, pass.end_ns.max(decoded_ns) + completion_ns);
        self.account(pass, start_ns);
        self.occupy(pass, Service::Read, NOWHERE);
    }

    /// Marks a command that will end in error.
    #[cold]
    pub(super) fn fail(&mut self, id: u32, bad: Stretch, write: bool) {
        let shift = self.params.sector_shift;
        self.failures.note(Failure { id, from_bytes: bad.from << shift, to_bytes: bad.to << shift, write });
    }

    /// Reports, with a flush, data that the write cache could not destage.
    #[inline]
    pub(super) fn report_deferred(&mut self, id: u32) {
        if let Some(bad) = self.media_defects.take_deferred() {
            self.fail(id, bad, true);
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

    /// Replaces the media defects. Read-ahead in progress does not know them and ends.
    pub(crate) fn set_media_defects(&mut self, media_defects: &[MediaDefect], seed: u64) {
        self.media_defects.replace(media_defects, 1 << self.params.sector_shift, seed);
        if let Some(run) = self.read_ahead.take() {
            self.head = run.head;
            self.continues = NOWHERE;
        }
    }

    /// Marks `[from, to)` as stored elsewhere in the drive, by newer data of the host.
    #[inline]
    pub(crate) fn renew(&mut self, from: u64, to: u64) {
        if !self.media_defects.is_clean() {
            self.media_defects.renew(from, to);
        }
    }
}
