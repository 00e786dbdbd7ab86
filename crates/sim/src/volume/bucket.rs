//! [`Bucket`]: a rate limit with burst credits, in virtual time. It computes in integers, so that a time window admits
//! exactly as many requests as the rule allows.

use crate::description::volume::{Burst, Limit};

/// Nanoseconds in a second. Credits are counted in units of 1/`SECOND`, because a rate of one per second earns that
/// much in 1 ns.
const SECOND: u128 = 1_000_000_000;

/// State of one limit.
#[derive(Clone, Debug)]
pub struct Bucket {
    per_s: u128,
    burst: Option<Burst>,
    /// How long an unused allowance is kept, in ns.
    slack_ns: u64,
    /// Time at which the next unit may start at the highest rate, in ns, times that rate.
    free: u128,
    /// Credits at `since_ns`, in billionths of a unit.
    credits: u128,
    since_ns: u64,
}

impl Bucket {
    /// Creates a bucket with full credits and no unused allowance. The allowance starts empty, so that a volume that is
    /// saturated from the start never exceeds its rate.
    pub fn new(limit: &Limit, slack_ns: u64) -> Bucket {
        let credits = limit.burst.map_or(0, |burst| u128::from(burst.credits) * SECOND);
        Bucket { per_s: u128::from(limit.per_s), burst: limit.burst, slack_ns, free: 0, credits, since_ns: 0 }
    }

    /// Returns the highest rate, in units per second.
    fn pace(&self) -> u128 {
        self.burst.map_or(self.per_s, |burst| u128::from(burst.per_s))
    }

    /// Charges `units` requested at `now_ns`; returns when they may start.
    pub fn take(&mut self, now_ns: u64, units: u64) -> u64 {
        let (pace, units) = (self.pace(), u128::from(units));
        let slot_ns = self.free.div_ceil(pace) as u64;
        let mut begin_ns = now_ns.max(slot_ns);
        if let Some(burst) = self.burst {
            let cost = units * SECOND;
            let full = u128::from(burst.credits) * SECOND;
            let from_ns = begin_ns.max(self.since_ns);
            self.credits = full.min(self.credits + u128::from(from_ns - self.since_ns) * self.per_s);
            // A request larger than the bucket needs only a full bucket.
            let needed = cost.min(full);
            let lacking = needed.saturating_sub(self.credits);
            begin_ns = from_ns + lacking.div_ceil(self.per_s) as u64;
            self.credits = full.min(self.credits + u128::from(begin_ns - from_ns) * self.per_s) - needed;
            self.since_ns = begin_ns;
        }
        // Consecutive units are spaced by the exact time per unit. Unused time is lost after the slack.
        let kept_from_ns = begin_ns.saturating_sub(self.slack_ns);
        if kept_from_ns > slot_ns {
            self.free = u128::from(kept_from_ns) * pace;
        }
        self.free += units * SECOND;
        begin_ns
    }

    /// Returns the credits at the last request, in whole units.
    pub fn credits(&self) -> u64 {
        (self.credits / SECOND) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::volume::{Counts, LimitScope};

    fn limit(per_s: u64, burst: Option<Burst>) -> Bucket {
        with_slack(per_s, burst, 0)
    }

    fn with_slack(per_s: u64, burst: Option<Burst>, slack_ns: u64) -> Bucket {
        Bucket::new(&Limit { counts: Counts::Requests, of: LimitScope::Both, per_s, burst }, slack_ns)
    }

    /// Returns how many units start before `before_ns` if one more is always waiting.
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

    /// A bucket of 540 credits, drained at 30 and filled at 3 a second, is empty after 540 / (30 - 3) = 20 s. After
    /// that, 3 a second remain.
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
        // 60 s idle earn 180 credits, which last 180 / 27 s.
        assert_eq!(bucket.take(80_000_000_000, 1), 80_000_000_000);
        assert!((178..=181).contains(&bucket.credits()), "{}", bucket.credits());
        bucket.take(1_000_000_000_000, 1);
        assert_eq!(bucket.credits(), 539, "the bucket is full again");
    }

    /// 100 ms of 3,000 per second are 300 requests. They pass at once after a pause, then the rate applies.
    #[test]
    fn unused_allowance_passes_at_once_after_a_pause() {
        let mut bucket = with_slack(3_000, None, 100_000_000);
        let pause_ns = 5_000_000_000;
        let at_once = (0..1_000).take_while(|_| bucket.take(pause_ns, 1) == pause_ns).count();
        assert!((300..=301).contains(&at_once), "{at_once}");
    }

    #[test]
    fn a_saturated_limit_has_no_allowance_to_use() {
        assert_eq!(begun(&mut with_slack(3_000, None, 100_000_000), 10 * 1_000_000_000), 30_000);
    }

    /// Poisson arrivals at 97 % of the rate queue for 5 ms on average without slack (M/D/1: 0.97 / (2 x 0.03 x 3,000))
    /// and hardly with 100 ms of slack.
    #[test]
    fn slack_absorbs_random_arrivals_below_the_limit() {
        let mean_wait_ms = |mut bucket: Bucket| {
            let mut random = headstack_workload::Random::new(1, headstack_workload::Purpose::Latency);
            let (mut now_ns, mut wait_ns) = (0_u64, 0_u64);
            for number in 0..400_000 {
                let uniform = (random.below(1 << 32) as f64 + 0.5) / f64::from(u32::MAX);
                now_ns += (-uniform.ln() * 1e9 / 2_910.0) as u64;
                let begin_ns = bucket.take(now_ns, 1);
                // The allowance fills at 90 per second, so the first seconds do not count.
                wait_ns += if number < 100_000 { 0 } else { begin_ns - now_ns };
            }
            wait_ns as f64 / 300_000.0 / 1e6
        };
        let without = mean_wait_ms(limit(3_000, None));
        assert!((4.3..6.5).contains(&without), "{without} ms without slack");
        let with = mean_wait_ms(with_slack(3_000, None, 100_000_000));
        assert!(with < 0.01, "{with} ms with slack");
    }
}
