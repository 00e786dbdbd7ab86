//! [`Bypass`]: which requests go around bcache: long sequential streams, and those that a congested cache device would
//! slow down (`check_should_bypass` and `bch_get_congested` in drivers/md/bcache/request.c).

use crate::description::stack::BcacheRules;

/// Streams that are followed at once: `RECENT_IO`.
const STREAMS_MAX: usize = 128;
/// Time after which a stream without requests is forgotten.
const FORGOTTEN_NS: u64 = 5_000_000_000;
/// Scale of congestion: `CONGESTED_MAX`, in units of 1,024 us.
const CONGESTED_MAX: i64 = 1024;
/// Number of ones in a random number of 64 bits, on average; bcache draws one to spread the limit.
const RANDOM_ONES: i64 = 32;

/// A run of requests in ascending order.
#[derive(Clone, Copy, Debug)]
struct Stream {
    end_bytes: u64,
    bytes: u64,
    used_ns: u64,
}

/// Streams and congestion in virtual time.
#[derive(Clone, Debug, Default)]
pub(super) struct Bypass {
    streams: Vec<Stream>,
    /// At most 0; the lower, the longer the device has been slow.
    congested: i64,
    congested_ns: u64,
}

impl Bypass {
    /// Notes a request; returns the length of its stream so far, with it.
    fn follow(&mut self, now_ns: u64, start: u64, bytes: u64) -> u64 {
        let is_next = |stream: &Stream| stream.end_bytes == start && now_ns < stream.used_ns + FORGOTTEN_NS;
        if let Some(stream) = self.streams.iter_mut().find(|stream| is_next(stream)) {
            *stream = Stream { end_bytes: start + bytes, bytes: stream.bytes + bytes, used_ns: now_ns };
            return stream.bytes;
        }
        let new = Stream { end_bytes: start + bytes, bytes, used_ns: now_ns };
        if self.streams.len() < STREAMS_MAX {
            self.streams.push(new);
        } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used_ns) {
            *oldest = new;
        }
        bytes
    }

    /// Notes the latency of a request to the cache device.
    pub fn measure(&mut self, now_ns: u64, took_ns: u64, threshold_ns: u64) {
        if threshold_ns == 0 {
            return;
        }
        if took_ns > threshold_ns {
            self.congested_ns = now_ns;
            self.congested -= ((took_ns / 1_024_000) as i64).min(CONGESTED_MAX + self.congested);
        } else if self.congested < 0 {
            self.congested += 1;
        }
    }

    /// Returns the number of sectors from which on a stream bypasses a congested device; 0 if it is not congested.
    fn congested_sectors(&self, now_ns: u64) -> u64 {
        let since = ((now_ns - self.congested_ns) / 1_024_000) as i64 + self.congested;
        if since >= 0 {
            return 0;
        }
        // `fract_exp_two` with 6 bits: 2^(left / 64), linear between powers.
        let left = (since + CONGESTED_MAX).max(0) as u64;
        let power = 1_u64 << (left >> 6);
        let sectors = (power + ((power * (left & 63)) >> 6)) as i64 - RANDOM_ONES;
        sectors.max(1) as u64
    }

    /// Whether a read or write bypasses the cache. `exempt`: a synchronous write to a write-back cache.
    pub fn decide(&mut self, now_ns: u64, rules: &BcacheRules, start: u64, bytes: u64, exempt: bool) -> bool {
        let congested = self.congested_sectors(now_ns);
        if congested == 0 && (rules.sequential_bytes == 0 || exempt) {
            return false;
        }
        let stream_bytes = self.follow(now_ns, start, bytes);
        let is_long = rules.sequential_bytes > 0 && stream_bytes >= rules.sequential_bytes;
        is_long || (congested > 0 && stream_bytes / 512 >= congested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn rules(sequential_bytes: u64) -> BcacheRules {
        BcacheRules {
            sequential_bytes,
            congested_read_ns: 2 * MS,
            congested_write_ns: 20 * MS,
            writeback_percent: 10,
            writeback_delay_ns: 30_000 * MS,
            update_interval_ns: 5_000 * MS,
            minimum_sectors_per_s: 8,
            cutoff_percent: 40,
            cutoff_sync_percent: 70,
            synchronous_writes: true,
        }
    }

    #[test]
    fn streams_beyond_the_cutoff_bypass_until_they_pause() {
        let (mut bypass, rules) = (Bypass::default(), rules(1 << 20));
        let mut decide = |at_ns, chunk: u64| bypass.decide(at_ns, &rules, chunk << 18, 1 << 18, false);
        // Another stream in between does not matter.
        let bypassed: Vec<bool> = [0, 100, 1, 101, 2, 3, 4].iter().map(|&chunk| decide(0, chunk)).collect();
        assert_eq!(bypassed, [false, false, false, false, false, true, true]);
        assert!(decide(5_000 * MS - 1, 5));
        assert!(!decide(20_000 * MS, 6));
    }

    #[test]
    fn only_the_last_128_streams_are_followed() {
        let (mut bypass, rules) = (Bypass::default(), rules(1 << 20));
        assert!(!bypass.decide(0, &rules, 0, 1 << 19, false));
        for stream in 1..=128 {
            bypass.decide(stream, &rules, stream << 30, 4096, false);
        }
        assert!(!bypass.decide(200, &rules, 1 << 19, 1 << 19, false));
    }

    #[test]
    fn a_slow_device_is_bypassed_by_ever_shorter_streams() {
        let (mut bypass, rules) = (Bypass::default(), rules(0));
        assert_eq!(bypass.congested_sectors(0), 0);
        bypass.measure(0, 300 * MS, 20 * MS);
        // 292 of 1,024: 2^(732 / 64) = 2,048 + 28/64 of it = 2,944, minus 32.
        assert_eq!(bypass.congested_sectors(0), 2_912);
        bypass.measure(0, 500 * MS, 20 * MS);
        assert!(bypass.congested_sectors(0) < 64 && bypass.congested_sectors(0) > 0);
        assert!(bypass.decide(0, &rules, 0, 1 << 16, true));
        bypass.measure(0, MS, 20 * MS);
        // Each 1,024 us counts one up.
        assert_eq!(bypass.congested_sectors(900 * MS), 0);
    }
}
