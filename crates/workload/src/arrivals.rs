//! [`Arrivals`]: the arrival process of requests; also the warm-up and the length of a run.

use serde::{Deserialize, Serialize};

use crate::access::Complaint;
use crate::error::WorkloadError;
use crate::quantity::duration_u64;
use crate::random::{Purpose, Random};

/// Maximum queue depth of a closed loop.
pub const QUEUE_DEPTH_MAX: u32 = 65_536;

/// Minimum mean number of arrivals per on/off cycle. Much shorter phases amount to a Poisson process, at a high cost.
const ARRIVALS_PER_CYCLE_MIN: f64 = 1e-3;

/// Arrival process of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// Closed loop: the next request follows each completion after the think time.
    Closed {
        /// Queue depth, including requests in think time, 1 to 65,536.
        queue_depth: u32,
        /// Time from a completion to the next request.
        #[serde(default)]
        think: Think,
    },
    /// Open loop: requests arrive at set times, whether or not earlier ones have completed.
    Open {
        /// Mean number of arrivals per second.
        rate_per_s: f64,
        /// Distribution of arrival times.
        process: ArrivalProcess,
    },
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals::Closed { queue_depth: 1, think: Think::None }
    }
}

/// Think time of a closed loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// The next request is issued at once.
    #[default]
    None,
    /// A constant time in ns.
    Fixed(#[serde(with = "duration_u64")] u64),
    /// Exponentially distributed time with this mean in ns.
    Exponential(#[serde(with = "duration_u64")] u64),
}

impl Think {
    /// Draws a think time in ns.
    #[inline]
    pub(crate) fn draw_ns(self, random: &mut Random) -> u64 {
        match self {
            Think::None => 0,
            Think::Fixed(time_ns) => time_ns,
            Think::Exponential(mean_ns) => random.exponential(mean_ns as f64).round() as u64,
        }
    }
}

/// Distribution of the arrival times of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ArrivalProcess {
    /// Constant intervals.
    Fixed,
    /// Independent exponential intervals.
    Poisson,
    /// Poisson arrivals during "on" phases and none during "off" phases. Both phases have exponential lengths, and the
    /// rate in the on phases is chosen so that the long-run rate is as specified.
    Bursty {
        /// Mean length of an on phase in ns.
        #[serde(rename = "on", with = "duration_u64")]
        on_ns: u64,
        /// Mean length of an off phase in ns.
        #[serde(rename = "off", with = "duration_u64")]
        off_ns: u64,
    },
}

impl Arrivals {
    pub(crate) fn validate(&self) -> Result<(), Complaint> {
        match *self {
            Arrivals::Closed { queue_depth, .. } => {
                if (1..=QUEUE_DEPTH_MAX).contains(&queue_depth) {
                    return Ok(());
                }
                let message = format!("{queue_depth} is out of range; must be 1 to {QUEUE_DEPTH_MAX}");
                Err(("arrivals.closed.queue_depth".to_owned(), message))
            }
            Arrivals::Open { rate_per_s, process } => validate_open(rate_per_s, process),
        }
    }
}

fn validate_open(rate_per_s: f64, process: ArrivalProcess) -> Result<(), Complaint> {
    if !(rate_per_s > 0.0 && rate_per_s <= 1e9) {
        let message = format!("{rate_per_s} is out of range; must be above 0 and at most 1e9");
        return Err(("arrivals.open.rate_per_s".to_owned(), message));
    }
    let ArrivalProcess::Bursty { on_ns, off_ns } = process else {
        return Ok(());
    };
    if on_ns == 0 {
        let message = "0ns is out of range; must be above 0".to_owned();
        return Err(("arrivals.open.process.bursty.on".to_owned(), message));
    }
    // The clock steps through every phase, so very short phases are expensive.
    let arrivals_per_cycle = rate_per_s * (on_ns as f64 + off_ns as f64) / 1e9;
    if arrivals_per_cycle < ARRIVALS_PER_CYCLE_MIN {
        let message = format!(
            "the phases are too short: {arrivals_per_cycle:.2e} arrivals in an on and off phase; \
             must be {ARRIVALS_PER_CYCLE_MIN} or more"
        );
        return Err(("arrivals.open.process.bursty".to_owned(), message));
    }
    Ok(())
}

/// Warm-up of a run, which results exclude. It ends when both limits have been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmUp {
    /// Number of completed requests.
    #[serde(default)]
    pub requests: u64,
    /// Time in ns.
    #[serde(default, rename = "time", with = "duration_u64")]
    pub time_ns: u64,
}

impl WarmUp {
    /// Whether the warm-up is over after `completed` requests and `passed_ns`.
    #[inline]
    pub fn is_over(&self, completed: u64, passed_ns: u64) -> bool {
        completed >= self.requests && passed_ns >= self.time_ns
    }
}

impl Default for WarmUp {
    fn default() -> WarmUp {
        WarmUp { requests: 500, time_ns: 0 }
    }
}

/// Length of a run after its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RunLength {
    /// Number of completed requests.
    Requests(u64),
    /// Time in ns.
    #[serde(rename = "time")]
    TimeNs(#[serde(with = "duration_u64")] u64),
    /// Runs until the mean latency has the requested precision.
    Confidence {
        /// Half-width of the 95 % confidence interval, in percent of the mean.
        percent: f64,
        /// Number of completed requests after which the run ends in any case.
        max_requests: u64,
    },
}

impl Default for RunLength {
    fn default() -> RunLength {
        RunLength::Requests(50_000)
    }
}

impl RunLength {
    pub(crate) fn validate(&self) -> Result<(), Complaint> {
        let too_small = |key: &str, value: String| {
            let message = format!("{value} is out of range; must be 1 or more");
            Err((key.to_owned(), message))
        };
        match *self {
            RunLength::Requests(0) => too_small("run_length.requests", "0".to_owned()),
            RunLength::TimeNs(0) => too_small("run_length.time", "0ns".to_owned()),
            RunLength::Confidence { max_requests: 0, .. } => {
                too_small("run_length.confidence.max_requests", "0".to_owned())
            }
            RunLength::Confidence { percent, .. } if !(percent > 0.0 && percent <= 100.0) => {
                let message = format!("{percent} is out of range; must be above 0 and at most 100");
                Err(("run_length.confidence.percent".to_owned(), message))
            }
            RunLength::Requests(_) | RunLength::TimeNs(_) | RunLength::Confidence { .. } => Ok(()),
        }
    }
}

/// Intended arrival times of an open loop, in ns from the start of the run.
///
/// Arrival times do not drift: constant intervals are computed from the count, and random intervals are summed with 64
/// bits below 1 ns.
#[derive(Clone)]
pub struct ArrivalClock {
    process: Clock,
    random: Random,
    now: FinePoint,
}

#[derive(Clone)]
enum Clock {
    Fixed { count: u64, rate_per_s: f64 },
    Poisson { mean_ns: f64 },
    Bursty { mean_ns: f64, on_ns: f64, off_ns: f64, left_on_ns: f64 },
}

/// A time in ns with a fraction in units of 2^-64 ns.
#[derive(Clone, Default)]
struct FinePoint {
    whole_ns: u64,
    fraction: u64,
}

impl FinePoint {
    #[inline]
    fn advance(&mut self, distance_ns: f64) {
        let whole = distance_ns.trunc();
        let fraction = ((distance_ns - whole) * 2f64.powi(64)) as u64;
        let (sum, carry) = self.fraction.overflowing_add(fraction);
        self.fraction = sum;
        self.whole_ns += whole as u64 + u64::from(carry);
    }
}

impl ArrivalClock {
    /// Creates the clock of an [`Arrivals::Open`] loop with these parameters.
    ///
    /// # Errors
    /// Returns an error if the rate or the length of an on phase is out of range.
    pub fn new(rate_per_s: f64, process: ArrivalProcess, seed: u64) -> Result<ArrivalClock, WorkloadError> {
        validate_open(rate_per_s, process)?;
        let mean_ns = 1e9 / rate_per_s;
        let mut random = Random::new(seed, Purpose::Arrivals);
        let mut now = FinePoint::default();
        let process = match process {
            ArrivalProcess::Fixed => Clock::Fixed { count: 0, rate_per_s },
            ArrivalProcess::Poisson => Clock::Poisson { mean_ns },
            ArrivalProcess::Bursty { on_ns, off_ns } => {
                let (on_ns, off_ns) = (on_ns as f64, off_ns as f64);
                // Exponential phases have no memory, so a stationary start needs only the right phase.
                if random.unit() * (on_ns + off_ns) > on_ns {
                    now.advance(random.exponential(off_ns));
                }
                Clock::Bursty {
                    mean_ns: mean_ns * on_ns / (on_ns + off_ns),
                    on_ns,
                    off_ns,
                    left_on_ns: random.exponential(on_ns),
                }
            }
        };
        Ok(ArrivalClock { process, random, now })
    }

    /// Returns the next arrival time in ns, never less than the previous one.
    #[inline]
    pub fn next_ns(&mut self) -> u64 {
        match &mut self.process {
            Clock::Fixed { count, rate_per_s } => {
                *count += 1;
                return (*count as f64 * 1e9 / *rate_per_s) as u64;
            }
            Clock::Poisson { mean_ns } => self.now.advance(self.random.exponential(*mean_ns)),
            Clock::Bursty { mean_ns, on_ns, off_ns, left_on_ns } => {
                let mut distance_ns = self.random.exponential(*mean_ns);
                while distance_ns > *left_on_ns {
                    distance_ns -= *left_on_ns;
                    self.now.advance(*left_on_ns);
                    self.now.advance(self.random.exponential(*off_ns));
                    *left_on_ns = self.random.exponential(*on_ns);
                }
                *left_on_ns -= distance_ns;
                self.now.advance(distance_ns);
            }
        }
        self.now.whole_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps_ns(process: ArrivalProcess, rate_per_s: f64, count: usize) -> Vec<f64> {
        let mut clock = ArrivalClock::new(rate_per_s, process, 11).unwrap();
        let mut last_ns = 0;
        let mut gaps = Vec::with_capacity(count);
        for _ in 0..count {
            let now_ns = clock.next_ns();
            assert!(now_ns >= last_ns);
            gaps.push((now_ns - last_ns) as f64);
            last_ns = now_ns;
        }
        gaps
    }

    #[test]
    fn fixed_arrivals_do_not_drift() {
        // The interval at 3 per second is not a whole number of ns.
        let mut clock = ArrivalClock::new(3.0, ArrivalProcess::Fixed, 0).unwrap();
        let times: Vec<u64> = (0..3_000_000).map(|_| clock.next_ns()).collect();
        assert_eq!(times[..3], [333_333_333, 666_666_666, 1_000_000_000]);
        assert_eq!(times[2_999_999], 1_000_000_000_000_000);
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let count = 1_000_000;
        let gaps = gaps_ns(ArrivalProcess::Poisson, 20_000.0, count);
        let mean = gaps.iter().sum::<f64>() / count as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count as f64;
        // Standard errors of an exponential sample: 0.1 % of the mean, 0.28 % of the variance.
        assert!((mean / 50_000.0 - 1.0).abs() < 0.004, "mean {mean}");
        assert!((variance / 2.5e9 - 1.0).abs() < 0.012, "variance {variance}");
        let mut classes = [0u64; 20];
        for gap in &gaps {
            classes[((1.0 - (-gap / 50_000.0).exp()) * 20.0) as usize] += 1;
        }
        crate::statistics::assert_fits("poisson gaps", &classes, &[0.05; 20]);
    }

    #[test]
    fn sums_of_tiny_gaps_do_not_drift() {
        // At a billion per second, gaps are 1 ns on average, and truncation would lose most of them.
        let count = 1_000_000;
        let sum: f64 = gaps_ns(ArrivalProcess::Poisson, 1e9, count).iter().sum();
        assert!((sum / 1e6 - 1.0).abs() < 0.004, "{sum}");
    }

    #[test]
    fn bursty_arrivals_keep_the_long_run_rate_and_the_silences() {
        let process = ArrivalProcess::Bursty { on_ns: 10_000_000, off_ns: 90_000_000 };
        let count = 2_000_000;
        let gaps = gaps_ns(process, 1_000.0, count);
        let rate_per_s = count as f64 * 1e9 / gaps.iter().sum::<f64>();
        // There are about 20,000 on/off cycles. The count in one varies by 1.3 times its mean, so the standard error is
        // 0.95 %.
        assert!((rate_per_s / 1_000.0 - 1.0).abs() < 0.035, "{rate_per_s}");
        // The rate within the on phases is ten times higher.
        let short = gaps.iter().filter(|&&gap| gap < 1_000_000.0).count();
        assert!(short as f64 > 0.98 * count as f64, "{short}");
        let squared = gaps.iter().map(|gap| gap * gap).sum::<f64>() / count as f64;
        assert!(squared > 20.0 * 1e12, "gaps are no burstier than Poisson: {squared}");
    }

    #[test]
    fn a_rate_of_zero_is_an_error() {
        let error = ArrivalClock::new(0.0, ArrivalProcess::Poisson, 1).err().unwrap();
        assert_eq!(error.key, "arrivals.open.rate_per_s");
        assert!(ArrivalClock::new(f64::NAN, ArrivalProcess::Fixed, 1).is_err());
    }

    #[test]
    fn a_run_measures_something_and_its_precision_is_a_percentage() {
        let refused = |length: RunLength| length.validate().err().map(|(key, _)| key);
        let confidence = |percent, max_requests| RunLength::Confidence { percent, max_requests };
        for good in [RunLength::Requests(1), RunLength::TimeNs(1), confidence(0.1, 1), confidence(100.0, 1)] {
            assert_eq!(refused(good), None, "{good:?}");
        }
        assert_eq!(refused(RunLength::Requests(0)).as_deref(), Some("run_length.requests"));
        assert_eq!(refused(RunLength::TimeNs(0)).as_deref(), Some("run_length.time"));
        assert_eq!(refused(confidence(1.0, 0)).as_deref(), Some("run_length.confidence.max_requests"));
        for percent in [0.0, 100.5, f64::NAN] {
            assert_eq!(refused(confidence(percent, 1)).as_deref(), Some("run_length.confidence.percent"));
        }
    }

    #[test]
    fn a_warm_up_ends_when_both_limits_have_passed() {
        let warm_up = WarmUp { requests: 5, time_ns: 100 };
        let is_over = [(5, 100), (4, 100), (5, 99), (9, 900)].map(|(completed, ns)| warm_up.is_over(completed, ns));
        assert_eq!(is_over, [true, false, false, true]);
        assert!(WarmUp { requests: 0, time_ns: 0 }.is_over(0, 0));
    }
}
