//! Internal accesses: background I/O of the drive, and data in its flash or media cache. [`crate::disk`] decides on
//! these accesses; here they use the arm, the firmware and the port.

use super::defective::Origin;
use super::geometry::Extent;
use super::media::Access;
use super::queue::{InternalAccess, Job, Work};
use super::{Drive, Service};
use crate::chronicle;
use crate::link::{Direction, Upstream};

impl Drive {
    /// Submits an internal access to the arm.
    pub(crate) fn submit_internal_access(&mut self, upstream: &mut Upstream, now_ns: u64, internal: InternalAccess) {
        let extent = self.media.layout.locate(internal.block, internal.sectors);
        let job = Job {
            work: Work::InternalAccess(internal),
            block: internal.block,
            extent,
            arrived_ns: now_ns,
            ordered: false,
        };
        self.hand_to_arm(upstream, now_ns, job);
    }

    /// Returns internal access `id` if it still waits for the arm; the caller may extend its end.
    pub(crate) fn waiting_internal_access(&mut self, id: u32) -> Option<&mut InternalAccess> {
        self.queue.waiting_internal_access(id)
    }

    /// Performs the arm's part of an internal access.
    pub(super) fn run_internal_access(
        &mut self,
        now_ns: u64,
        free_ns: u64,
        internal: &InternalAccess,
        extent: &Extent,
    ) {
        let start_ns = free_ns.max(now_ns).max(self.ready_ns);
        self.read_ahead = None;
        let access = Access {
            block: internal.block,
            sectors: internal.sectors,
            write: internal.write,
            start_ns,
            settled_ns: start_ns,
            data_ns: if internal.write { internal.ready_ns } else { start_ns },
            mark: internal.sectors,
        };
        let (mut pass, bad) = self.pass_over(self.head, &access, extent, Origin::Itself);
        self.retry(&mut pass);
        if let Some(bad) = bad.filter(|_| internal.write) {
            self.media_defects.defer(bad);
        }
        let end = internal.block + u64::from(internal.sectors);
        if internal.write {
            self.segments.forget(internal.block, end);
        }
        self.complete(internal.id, now_ns, pass.end_ns);
        self.log_access(now_ns, (chronicle::Work::Own, internal.id, internal.write), start_ns, &pass, extent);
        self.account(&pass, start_ns);
        self.occupy(&pass, Service::Internal, end);
    }

    /// Decodes a read that the flash or staged data can serve; returns when the firmware is done.
    pub(crate) fn decode_hit(&mut self, now_ns: u64) -> u64 {
        let overhead_ns = self.after_last(self.params.description.overheads.read_hit_ns);
        self.last_was_read = true;
        self.decode(now_ns, overhead_ns)
    }

    /// Sends to the host data that the drive has ready in another memory at `ready_ns`, and completes command `id`.
    pub(crate) fn send(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, ready_ns: u64, sectors: u32) {
        let overheads = self.params.description.overheads;
        let ready_ns = ready_ns + overheads.data_preparation_ns;
        let end_ns = self.port.carry(ready_ns, u64::from(sectors) * self.params.sector_read_ns);
        let end_ns = self.pass_on(upstream, ready_ns, sectors, end_ns, Direction::Read);
        self.complete(id, now_ns, end_ns + overheads.read_completion_ns);
    }

    /// Receives the data of a write into memory; returns when the transfer ends.
    pub(crate) fn receive(&mut self, upstream: &mut Upstream, now_ns: u64, sectors: u32) -> u64 {
        let overheads = self.params.description.overheads;
        let decoded_ns = self.decode(now_ns, self.after_last(overheads.write_hit_ns));
        self.last_was_read = false;
        let ready_ns = decoded_ns + overheads.data_preparation_ns;
        let end_ns = self.port.carry(ready_ns, u64::from(sectors) * self.params.sector_write_ns);
        self.pass_on(upstream, ready_ns, sectors, end_ns, Direction::Write)
    }

    /// Completes a write whose data have been received.
    pub(crate) fn complete_write(&mut self, id: u32, started_ns: u64, at_ns: u64) {
        let completion_ns = self.params.description.overheads.write_completion_ns;
        self.complete(id, started_ns, at_ns + completion_ns);
    }

    /// Whether an ordered command holds back a command that could be served at once.
    pub(crate) fn holds_back(&self, ordered: bool) -> bool {
        self.is_held_back(ordered)
    }
}
