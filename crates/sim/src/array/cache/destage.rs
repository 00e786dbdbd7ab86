//! Destaging policy of [`CacheState`]: which dirty pages go to the members next, and how many at once.

use super::CacheState;
use super::directory::parts_of;
use super::page::PARTS;
use crate::description::array::Destage;

impl CacheState {
    /// Returns how many destages may be in flight now.
    pub fn destages_allowed(&self, idle: bool) -> u32 {
        let most = self.settings.destages_max;
        if !self.waiting_writes.is_empty() || !self.battery || idle {
            return most;
        }
        let share = self.dirty_share();
        let (low, high) = (self.settings.low_water, self.settings.high_water);
        if share >= high {
            most
        } else if share > low {
            1 + (f64::from(most - 1) * (share - low) / (high - low)) as u32
        } else {
            0
        }
    }

    /// Returns the dirty pages as a share of the pages that may be dirty.
    pub fn dirty_share(&self) -> f64 {
        f64::from(self.directory.dirty_pages) / f64::from(self.dirty_pages_max.max(1))
    }

    /// Returns the next run of dirty bytes by the cache's policy; the run ends at `bound`, which the page's row
    /// determines.
    pub fn choose(&mut self, row_bytes: u64) -> Option<(u64, u64)> {
        // The policy also holds for writes that wait for room, which any page would give: otherwise each would cost a
        // seek.
        match self.settings.destage {
            Destage::Fifo | Destage::Lru => {
                let key = self.directory.oldest_dirty()?;
                return Some(self.dirty_run(key, self.page_bytes));
            }
            Destage::Sorted => {}
            Destage::StripeAware => {
                if let Some(run) = self.full_row(row_bytes) {
                    return Some(run);
                }
            }
        }
        let key = self.directory.next_dirty(self.sweep)?;
        let run = self.dirty_run(key, row_bytes.max(self.page_bytes));
        self.sweep = (run.0 + run.1) / self.page_bytes;
        Some(run)
    }

    /// Returns a fully dirty row, searching from the oldest page and from the sweep position.
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

    /// Returns the run of dirty bytes that begins with the first dirty part of page `key` and ends at the next multiple
    /// of `bound_bytes` at the latest.
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
    use crate::description::array::{Cache, CachePolicy, CacheWrites, Destage};

    const PAGE_BYTES: u64 = 64 << 10;

    fn cache(destage: Destage) -> CacheState {
        CacheState::new(&Cache {
            memory_bytes: 200 * PAGE_BYTES,
            data_bytes: 200 * PAGE_BYTES,
            dirty_bytes_max: 100 * PAGE_BYTES,
            page_bytes: PAGE_BYTES as u32,
            writes: CacheWrites::Back,
            mirror_link: None,
            battery: true,
            keeps_reads: true,
            fill_bytes: 1,
            prefetch: None,
            policy: CachePolicy::Lru,
            destage,
            high_water: 0.8,
            low_water: 0.2,
            destages_max: 7,
            flash_members: vec![],
        })
    }

    /// Neighbouring pages are destaged together, regardless of age, even when the cache accepts no more writes: a full
    /// cache that wrote page by page would free pages more slowly than one that is not full, and never recover.
    #[test]
    fn a_full_cache_destages_by_its_policy() {
        for (destage, run) in [(Destage::Sorted, 2), (Destage::StripeAware, 2), (Destage::Fifo, 1)] {
            let mut cache = cache(destage);
            for page in (0..50).flat_map(|pair| [7 + 4 * pair, 8 + 4 * pair]).rev() {
                assert!(cache.accept(page * PAGE_BYTES, PAGE_BYTES));
            }
            assert!(!cache.accept(1000 * PAGE_BYTES, PAGE_BYTES), "there is no room for another");
            cache.waiting_writes.push_back(0);
            let (_, length) = cache.choose(16 * PAGE_BYTES).unwrap();
            assert_eq!(length, run * PAGE_BYTES, "{destage:?}");
        }
    }

    /// There is one destage just above the low mark, all of them from the high mark on, and linear growth in between.
    #[test]
    fn destages_grow_from_the_low_mark_to_the_high_one() {
        let mut cache = cache(Destage::Sorted);
        let mut allowed = |dirty: u64| {
            while u64::from(cache.dirty_pages()) < dirty {
                let next = u64::from(cache.dirty_pages());
                assert!(cache.accept(next * PAGE_BYTES, PAGE_BYTES));
            }
            cache.destages_allowed(false)
        };
        assert_eq!([19, 20, 21, 29, 31, 51, 79, 80, 100].map(&mut allowed), [0, 0, 1, 1, 2, 4, 6, 7, 7]);
        assert_eq!(cache.destages_allowed(true), 7, "an idle host leaves all of them");
    }
}
