//! Stripes on their way from memory to the members: parity into the log, then data and parity to the members.

use super::MdJournal;
use super::log::{Payload, WRITTEN_OUT_BYTES, Waiter};
use super::under_way::{ARRAY, Batch, PAGE_BYTES, Sent};
use crate::array::levels::ChunkRange;
use crate::stack::orders::{Answer, Order, Orders};
use crate::stripes::StripeWrite;

/// Stripes in a group of reclaim (`R5C_RECLAIM_STRIPE_GROUP`, twice the 8 `NR_STRIPE_HASH_LOCKS`).
const GROUP: usize = 16;

impl MdJournal {
    /// Writes out stripes if memory or the log is short of space (`r5c_do_reclaim`). Above 3/4 of the stripes: the full
    /// ones, and partial ones up to a group; above half of them, or with many full ones: the full ones.
    pub(super) fn reclaim_stripes(&mut self, now_ns: u64, orders: &mut Orders) {
        let limit = self.description.stripe_cache as usize;
        let is_short = !self.blocked.is_empty() && !self.lacks_space;
        let (staying, full) = (self.stripes.staying(), self.stripes.full());
        if staying > limit * 3 / 4 || is_short {
            self.write_out(now_ns, self.stripes.oldest(GROUP), orders);
        } else if staying > limit / 2 || full > limit / 4 {
            self.write_out(now_ns, self.stripes.oldest(0), orders);
        }
        // `R5C_LOG_TIGHT`: less than three times the reserve is free.
        if self.log.free_bytes() < 3 * self.reserve_bytes() || self.lacks_space {
            self.write_out(now_ns, self.stripes.first_idle_in_log(GROUP), orders);
        }
    }

    /// Returns the space of the log that is needed to write out all stripes in memory (`r5c_log_required_to_flush_cache`).
    pub(super) fn reserve_bytes(&self) -> u64 {
        let (in_log, parities) = (self.stripes.len() as u64, self.geometry.parities);
        if in_log == 0 { 0 } else { PAGE_BYTES * ((parities + 1) * in_log + self.geometry.data_units) }
    }

    /// Takes idle stripes on their way to the members.
    pub(super) fn write_out(&mut self, now_ns: u64, mut stripes: Vec<u64>, orders: &mut Orders) {
        stripes.sort_unstable();
        let all = self.geometry.all_units();
        let mut batches: Vec<Batch> = Vec::new();
        for stripe in stripes {
            let units = self.stripes.leave(stripe);
            self.counters.stripes += 1;
            self.counters.full_stripes += u64::from(units == all);
            let (row, from_bytes) = self.geometry.row_of(stripe);
            let chunks = ChunkRange { units, from_bytes, to_bytes: from_bytes + PAGE_BYTES };
            let write = StripeWrite { offset_bytes: row * self.geometry.row_bytes(), chunks };
            match batches.last_mut().filter(|batch| batch.write.continues_in(&write)) {
                Some(batch) => {
                    batch.stripes.push(stripe);
                    batch.write.chunks.to_bytes = chunks.to_bytes;
                }
                None => batches.push(Batch { stripes: vec![stripe], write, units: Vec::new(), unlogged: 0 }),
            }
        }
        for batch in batches {
            let stripes = batch.stripes.len() as u64;
            let number = self.batches.insert(batch);
            let payload = Payload { data: (0, 0), stripes, parities: self.geometry.parities };
            let units = self.append(now_ns, Waiter::Batch(number), payload, false, orders);
            let batch = self.batches.get_mut(number);
            (batch.unlogged, batch.units) = (units.len(), units);
        }
    }

    /// Counts a log unit of a batch that is durable; the members are written after the last one.
    pub(super) fn batch_logged(&mut self, number: u32, orders: &mut Orders) {
        let batch = self.batches.get_mut(number);
        batch.unlogged -= 1;
        if batch.unlogged == 0 {
            let stripes = batch.write;
            let id = self.sent.insert(Sent::Batch { batch: number });
            orders.push_back(Order::WriteStripes { port: ARRAY, id, stripes });
        }
    }

    /// Forgets stripes that are on the members, and marks them in the log.
    pub(super) fn batch_answered(&mut self, now_ns: u64, number: u32, answer: &Answer, orders: &mut Orders) {
        let Batch { stripes, units, .. } = self.batches.remove(number);
        // The write was acknowledged before; only the counter shows the failure.
        self.counters.failed_writes += u64::from(answer.failed.is_some());
        for &stripe in &stripes {
            self.stripes.remove(stripe);
            self.append_metadata(now_ns, WRITTEN_OUT_BYTES, orders);
        }
        units.iter().for_each(|&unit| self.log.finish_part(unit));
        for stripe in stripes {
            self.unpark(now_ns, stripe, orders);
        }
        self.reclaim(now_ns, orders);
    }
}
