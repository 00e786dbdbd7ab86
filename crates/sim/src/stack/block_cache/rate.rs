//! [`Rate`]: the rate at which bcache writes back, set by a proportional-integral controller
//! (`__update_writeback_rate` in drivers/md/bcache/writeback.c, since Linux 4.15).

use crate::description::stack::BcacheRules;

/// Divisors of the difference and of its sum: `writeback_rate_p_term_inverse` and `writeback_rate_i_term_inverse`.
const P_INVERSE: i64 = 40;
const I_INVERSE: i64 = 10_000;
/// Rate at the start, in sectors per second.
const START_SECTORS_PER_S: i64 = 1_024;
const SECOND_NS: u64 = 1_000_000_000;
const SECTOR_BYTES: u64 = 512;
/// How far the time of the next copy may be ahead of now, and behind it (`bch_next_delay`).
const AHEAD_MAX_NS: u64 = 2_500_000_000;
const BEHIND_MAX_NS: u64 = 2_000_000_000;

/// Controller of write-back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    sectors_per_s: i64,
    integral: i64,
    /// When the next copy may begin.
    pub next_ns: u64,
}

impl Default for Rate {
    fn default() -> Rate {
        Rate { sectors_per_s: START_SECTORS_PER_S, integral: 0, next_ns: 0 }
    }
}

impl Rate {
    /// Sets the rate by the dirty bytes of a cache of `cache_bytes`.
    pub fn update(&mut self, now_ns: u64, rules: &BcacheRules, dirty_bytes: u64, cache_bytes: u64) {
        let target = cache_bytes / SECTOR_BYTES * u64::from(rules.writeback_percent) / 100;
        let error = (dirty_bytes / SECTOR_BYTES) as i64 - target as i64;
        let keeps_up = now_ns < self.next_ns + 1_000_000;
        if (error < 0 && self.integral > 0) || (error > 0 && keeps_up) {
            self.integral += error * (rules.update_interval_ns / SECOND_NS) as i64;
        }
        let wanted = error / P_INVERSE + self.integral / I_INVERSE;
        self.sectors_per_s = wanted.clamp(i64::from(rules.minimum_sectors_per_s), SECOND_NS as i64);
    }

    /// Notes a copy of so many bytes, which delays the next one.
    pub fn spend(&mut self, now_ns: u64, bytes: u64) {
        let took_ns = u128::from(bytes / SECTOR_BYTES) * u128::from(SECOND_NS) / self.sectors_per_s as u128;
        let next_ns = self.next_ns + took_ns.min(u128::from(u64::MAX / 4)) as u64;
        self.next_ns = next_ns.clamp(now_ns.saturating_sub(BEHIND_MAX_NS), now_ns + AHEAD_MAX_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn rules() -> BcacheRules {
        BcacheRules {
            sequential_bytes: 0,
            congested_read_ns: 0,
            congested_write_ns: 0,
            writeback_percent: 10,
            writeback_delay_ns: 0,
            update_interval_ns: 5 * SECOND_NS,
            minimum_sectors_per_s: 8,
            cutoff_percent: 40,
            cutoff_sync_percent: 70,
            synchronous_writes: true,
        }
    }

    #[test]
    fn the_rate_follows_the_dirty_bytes_above_the_target() {
        let mut rate = Rate::default();
        // 200 MiB of 1,000 are dirty, 100 too many: 204,800 sectors.
        rate.update(0, &rules(), 200 * MIB, 1000 * MIB);
        assert_eq!(rate.sectors_per_s, 204_800 / 40 + 204_800 * 5 / 10_000);
        rate.update(0, &rules(), 200 * MIB, 1000 * MIB);
        assert_eq!(rate.sectors_per_s, 204_800 / 40 + 204_800 * 10 / 10_000);
        // A device that does not keep up gets no more.
        rate.update(2_000_000, &rules(), 200 * MIB, 1000 * MIB);
        assert_eq!(rate.sectors_per_s, 204_800 / 40 + 204_800 * 10 / 10_000);
        rate.update(0, &rules(), 50 * MIB, 1000 * MIB);
        assert_eq!(rate.sectors_per_s, 8);
    }

    #[test]
    fn a_copy_delays_the_next_one_by_at_most_two_and_a_half_seconds() {
        let mut rate = Rate { sectors_per_s: 8, ..Rate::default() };
        rate.spend(0, 4096);
        assert_eq!(rate.next_ns, SECOND_NS);
        rate.spend(0, 1 << 30);
        assert_eq!(rate.next_ns, AHEAD_MAX_NS);
    }
}
