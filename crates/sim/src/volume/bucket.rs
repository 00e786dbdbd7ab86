//! [`Bucket`]: a limit in virtual time: a rate, and a bucket of credits. All in integers, so that a window of time
//! holds exactly as many requests as the rule says.

use crate::description::volume::{Burst, Limit};

/// Nanoseconds of a second: the fractions of a unit that a rate of one a second earns in a nanosecond.
const SECOND: u128 = 1_000_000_000;

/// State of a limit.
#[derive(Clone, Debug)]
pub struct Bucket {
    per_s: u128,
    burst: Option<Burst>,
    /// When the next unit may begin at the highest rate, times that rate.
    free: u128,
    /// Credits, in billionths of a unit, at `since_ns`.
    credits: u128,
    since_ns: u64,
}

impl Bucket {
    /// Creates a full bucket.
    pub fn new(limit: &Limit) -> Bucket {
        let credits = limit.burst.map_or(0, |burst| u128::from(burst.credits) * SECOND);
        Bucket { per_s: u128::from(limit.per_s), burst: limit.burst, free: 0, credits, since_ns: 0 }
    }

    /// Returns the highest rate.
    fn pace(&self) -> u128 {
        self.burst.map_or(self.per_s, |burst| u128::from(burst.per_s))
    }

    /// Pays for `units` requested at `now_ns`; returns when they may begin.
    pub fn take(&mut self, now_ns: u64, units: u64) -> u64 {
        let (pace, units) = (self.pace(), u128::from(units));
        let slot_ns = self.free.div_ceil(pace) as u64;
        let mut begin_ns = now_ns.max(slot_ns);
        if let Some(burst) = self.burst {
            let cost = units * SECOND;
            let full = u128::from(burst.credits) * SECOND;
            let from_ns = begin_ns.max(self.since_ns);
            self.credits = full.min(self.credits + u128::from(from_ns - self.since_ns) * self.per_s);
            // A request larger than the bucket empties it.
            let needed = cost.min(full);
            let lacking = needed.saturating_sub(self.credits);
            begin_ns = from_ns + lacking.div_ceil(self.per_s) as u64;
            self.credits = full.min(self.credits + u128::from(begin_ns - from_ns) * self.per_s) - needed;
            self.since_ns = begin_ns;
        }
        // Two units are apart by their time at this rate, unrounded; time that a later request leaves unused is lost.
        if begin_ns > slot_ns {
            self.free = u128::from(begin_ns) * pace;
        }
        self.free += units * SECOND;
        begin_ns
    }

    /// Returns the whole credits at the last request.
    pub fn credits(&self) -> u64 {
        (self.credits / SECOND) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::volume::{Counts, LimitScope};

    fn limit(per_s: u64, burst: Option<Burst>) -> Bucket {
        Bucket::new(&Limit { counts: Counts::Requests, of: LimitScope::Both, per_s, burst })
    }

    /// Returns the units that begin before a time, with always one more waiting.
    fn begun(bucket: &mut Bucket, before_ns: u64) -> u64 {
        let mut count = 0;
        while bucket.clone().take(0, 1) < before_ns {
            bucket.take(0, 1);
            count += 1;
        }
        count
    }

    #[test]
    fn a_rate_is_kept_to_the_request() {
        for per_s in [1, 3, 7, 999, 3_000, 16_000] {
            assert_eq!(begun(&mut limit(per_s, None), 10 * 1_000_000_000), 10 * per_s, "{per_s}");
        }
    }

    /// A bucket of 540 drained at 30 and filled at 3 a second is empty after 540 / (30 - 3) = 20 s, then 3 a second are
    /// left.
    #[test]
    fn credits_cover_bursts_above_the_base_rate() {
        let mut bucket = limit(3, Some(Burst { per_s: 30, credits: 540 }));
        let burst = begun(&mut bucket, 20_000_000_000);
        assert!((599..=600).contains(&burst), "{burst}");
        let after = begun(&mut bucket, 120_000_000_000);
        assert!((300..=301).contains(&after), "{after}");
    }

    #[test]
    fn what_is_not_used_fills_the_bucket_and_no_more() {
        let mut bucket = limit(3, Some(Burst { per_s: 30, credits: 540 }));
        begun(&mut bucket, 20_000_000_000);
        // Idle for 60 s: 180 credits, which last 180 / 27 s.
        assert_eq!(bucket.take(80_000_000_000, 1), 80_000_000_000);
        assert!((178..=181).contains(&bucket.credits()), "{}", bucket.credits());
        bucket.take(1_000_000_000_000, 1);
        assert_eq!(bucket.credits(), 539, "full again");
    }
}
