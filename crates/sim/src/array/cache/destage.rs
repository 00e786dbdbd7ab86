//! Which dirty pages go to the members next, and how many at once.

use super::CacheState;
use super::directory::parts_of;
use super::page::PARTS;
use crate::array::description::Destage;

impl CacheState {
    /// Destages that may be under way now.
    pub fn destages_allowed(&self, idle: bool) -> u32 {
        let most = self.settings.destages_max;
        if !self.waiting_writes.is_empty() || !self.battery || idle {
            return most;
        }
        let share = f64::from(self.directory.dirty_pages) / f64::from(self.dirty_pages_max.max(1));
        let (low, high) = (self.settings.low_water, self.settings.high_water);
        if share >= high {
            most
        } else if share > low {
            1 + (f64::from(most - 1) * (share - low) / (high - low)) as u32
        } else {
            0
        }
    }

    /// The next run of dirty bytes by the cache's policy; it ends at `bound`, which a page's row gives.
    pub fn choose(&mut self, row_bytes: u64) -> Option<(u64, u64)> {
        // While writes wait, the oldest page is freed first, and by itself.
        if !self.waiting_writes.is_empty() || matches!(self.settings.destage, Destage::Fifo | Destage::Lru) {
            let key = self.directory.oldest_dirty()?;
            return Some(self.dirty_run(key, self.page_bytes));
        }
        if self.settings.destage == Destage::StripeAware
            && let Some(run) = self.full_row(row_bytes)
        {
            return Some(run);
        }
        let key = self.directory.next_dirty(self.sweep)?;
        let run = self.dirty_run(key, row_bytes.max(self.page_bytes));
        self.sweep = (run.0 + run.1) / self.page_bytes;
        Some(run)
    }

    /// A row that is dirty as a whole, looked for from the oldest page and from the sweep.
    fn full_row(&mut self, row_bytes: u64) -> Option<(u64, u64)> {
        let oldest = self.directory.oldest_dirty()?;
        let next = self.directory.next_dirty(self.sweep)?;
        [oldest, next].into_iter().find_map(|key| {
            let from = key * self.page_bytes / row_bytes * row_bytes;
            let whole = (from / self.page_bytes..(from + row_bytes).div_ceil(self.page_bytes)).all(|key| {
                let wanted = parts_of(key, self.page_bytes, from, row_bytes);
                self.directory.find(key).is_some_and(|slot| self.directory.page(slot).ready_parts() & wanted == wanted)
            });
            whole.then_some((from, row_bytes))
        })
    }

    /// The run of dirty bytes that begins with the first dirty part of page `key`, not beyond the next multiple of
    /// `bound_bytes`.
    fn dirty_run(&self, key: u64, bound_bytes: u64) -> (u64, u64) {
        let part = self.page_bytes / u64::from(PARTS);
        let dirty = |key: u64| self.directory.find(key).map_or(0, |slot| self.directory.page(slot).ready_parts());
        let first = dirty(key).trailing_zeros();
        let from = key * self.page_bytes + u64::from(first) * part;
        let bound = (from / bound_bytes + 1) * bound_bytes;
        let mut length = u64::from((dirty(key) >> first).trailing_ones()) * part;
        let mut next = key + 1;
        while from + length == next * self.page_bytes && from + length < bound {
            let more = u64::from(dirty(next).trailing_ones()) * part;
            if more == 0 {
                break;
            }
            length += more;
            next += 1;
        }
        (from, length.min(bound - from))
    }
}

#[cfg(test)]
mod tests {
    use super::super::CacheState;
    use crate::array::description::{Cache, CachePolicy, CacheWrites, Destage};

    /// One begins just above the low mark, all are under way from the high one on, and in between they grow linearly.
    #[test]
    fn destages_grow_from_the_low_mark_to_the_high_one() {
        let page_bytes = 64 << 10;
        let mut cache = CacheState::new(&Cache {
            memory_bytes: 200 * page_bytes,
            data_bytes: 200 * page_bytes,
            dirty_bytes_max: 100 * page_bytes,
            page_bytes: page_bytes as u32,
            writes: CacheWrites::Back,
            mirror_link: None,
            battery: true,
            keeps_reads: true,
            fill_bytes: 1,
            prefetch: None,
            policy: CachePolicy::Lru,
            destage: Destage::Sorted,
            high_water: 0.8,
            low_water: 0.2,
            destages_max: 7,
            flash_members: vec![],
        });
        let mut allowed = |dirty: u64| {
            while u64::from(cache.dirty_pages()) < dirty {
                let next = u64::from(cache.dirty_pages());
                assert!(cache.accept(next * page_bytes, page_bytes));
            }
            cache.destages_allowed(false)
        };
        assert_eq!([19, 20, 21, 29, 31, 51, 79, 80, 100].map(&mut allowed), [0, 0, 1, 1, 2, 4, 6, 7, 7]);
        assert_eq!(cache.destages_allowed(true), 7, "an idle host leaves all of them");
    }
}
