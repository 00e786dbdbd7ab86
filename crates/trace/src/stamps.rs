//! [`Stamps`]: counts requests with equal arrivals, which occur if the trace's clock is coarser than a device is fast.

use crate::meta::Meta;
use crate::transform::exact_time;

/// Clock step up to which sequential requests of a device differ in time.
const STEP_NS_MAX: u64 = 1_000;
/// Fraction of simultaneous requests, one in so many, that affects no percentile up to p99.
const REQUESTS_A_PAIR: u64 = 100;

/// Counts requests that share their arrival with the previous one.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    last_ns: Option<u64>,
    requests: u64,
    together: u64,
}

impl Stamps {
    /// Counts the next request.
    #[inline]
    pub(crate) fn add(&mut self, arrival_ns: u64) {
        self.requests += 1;
        self.together += u64::from(self.last_ns == Some(arrival_ns));
        self.last_ns = Some(arrival_ns);
    }

    /// Returns a note if the clock is so coarse that a timed replay issues several requests at once.
    pub(crate) fn note(&self, meta: &Meta) -> Option<String> {
        let Stamps { requests, together, .. } = *self;
        let is_coarse = meta.resolution_ns > STEP_NS_MAX && together * REQUESTS_A_PAIR >= requests && together > 0;
        is_coarse.then(|| {
            let (step, arrive) = (exact_time(meta.resolution_ns), if together == 1 { "arrives" } else { "arrive" });
            format!(
                "{together} of {requests} requests {arrive} at the time of the previous one, since times have a resolution of {step}; \
                 they are issued as bursts, which latency and queue depth include"
            )
        })
    }
}
