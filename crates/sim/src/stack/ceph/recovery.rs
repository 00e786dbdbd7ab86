//! Recovery: OSDs read objects of each other and write them to free places, beside the clients.

use super::operation::{Owner, Task};
use super::placement::mix;
use super::recovered::Recovered;
use super::{Ceph, Event};

impl Ceph {
    /// Begins recovery with the first request.
    pub(super) fn begin_recovery(&mut self, now_ns: u64) {
        let Some(recovery) = self.ceph.recovery else { return };
        if std::mem::replace(&mut self.recovering.has_begun, true) {
            return;
        }
        for target in 0..self.ceph.osds {
            (0..recovery.active_max).for_each(|_| self.recover_next(now_ns, target));
        }
    }

    /// Lets an OSD recover its next object: it reads a copy, or as many shards as are needed, from other OSDs.
    fn recover_next(&mut self, now_ns: u64, target: u32) {
        let objects = self.ceph.recovery.map_or(0, |recovery| recovery.objects);
        let number = self.recovering.begun[target as usize];
        if number >= objects {
            return;
        }
        self.recovering.begun[target as usize] += 1;
        let reads = self.ceph.redundancy.recovery_reads();
        let recovered = Recovered { target, number, reads_left: reads, is_written: false };
        let index = self.recovering.objects.insert(recovered);
        let others = self.ceph.osds - 1;
        let first = mix(number ^ (u64::from(target) << 40)) % u64::from(others);
        let used = self.placement.first_free_slot(self.objects);
        for read in 0..reads {
            let distance = 1 + ((first + u64::from(read)) % u64::from(others)) as u32;
            let osd = (target + distance) % self.ceph.osds;
            self.add_recovery_task(now_ns, index, osd, target, number % used, false);
        }
    }

    fn add_recovery_task(&mut self, now_ns: u64, index: u32, osd: u32, target: u32, slot: u64, writes: bool) {
        let layout = &self.placement.layout;
        let task = self.tasks.insert(Task {
            owner: Owner::Recovery(index),
            osd,
            coordinator: target,
            shard: 0,
            writes,
            place: layout.slot_start(slot),
            length: layout.slot_bytes as u32,
            reads_left: 0,
            is_deferred: false,
        });
        let arrives_ns = match osd == target {
            true => now_ns,
            false => self.wires.carry(now_ns, self.interface(target), self.interface(osd), 0),
        };
        self.schedule(arrives_ns, Event::Arrive(task));
    }

    /// Processes a task of recovery: after all reads the object is written, then the next one begins.
    pub(super) fn recovery_step(&mut self, now_ns: u64, index: u32) {
        let slot_bytes = self.placement.layout.slot_bytes;
        let recovered = self.recovering.objects.get_mut(index);
        let (target, number) = (recovered.target, recovered.number);
        if recovered.is_written {
            self.counters.recovered_bytes += slot_bytes;
            self.recovering.objects.remove(index);
            return self.recover_next(now_ns, target);
        }
        recovered.reads_left -= 1;
        if recovered.reads_left == 0 {
            recovered.is_written = true;
            // The image leaves places free, in which recovered objects take turns.
            let free = self.placement.first_free_slot(self.objects);
            let slot = free + number % (self.placement.layout.slots - free);
            self.add_recovery_task(now_ns, index, target, target, slot, true);
        }
    }
}
