//! Limits whose violation ends a job: latency, and minimum rate per cycle ([`Watch`]).

use headstack_jobfiles::Bounds;
use headstack_workload::Request;

/// Time after the start at which a rate is first checked, in ns, as in fio.
const SETTLE_NS: u64 = 2_000_000_000;
const NS_PER_S: u128 = 1_000_000_000;

/// A violated limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundViolation {
    /// Message with the name of the limit and the actual value.
    pub message: String,
    /// Error number that fio would return.
    pub errno: i32,
}

/// Number of requests and bytes of one kind, now and at the last check of the rate.
#[derive(Clone, Copy, Default)]
struct Counted {
    count: u64,
    bytes: u64,
    last: Option<(u64, u64, u64)>,
}

/// Checks completed requests against the limits of their job.
pub struct Watch {
    bounds: Bounds,
    began_ns: u64,
    kinds: [Counted; 3],
}

impl Watch {
    /// Creates a watch that starts at `began_ns`; `None` if there are no limits.
    pub fn new(bounds: Bounds, began_ns: u64) -> Option<Watch> {
        (!bounds.is_none()).then_some(Watch { bounds, began_ns, kinds: [Counted::default(); 3] })
    }

    /// Checks a request that completed at `now_ns` after `latency_ns`. Returns the violated limit, if any.
    pub fn take(&mut self, request: &Request, latency_ns: u64, now_ns: u64) -> Option<BoundViolation> {
        let kind = request.kind as usize;
        let counted = self.kinds.get_mut(kind)?;
        counted.count += 1;
        counted.bytes += u64::from(request.length_bytes);
        let most_ns = self.bounds.latency_max_ns[kind];
        if most_ns > 0 && latency_ns > most_ns {
            let name = request.kind.name();
            let message = format!("a {name} took {latency_ns} ns; max_latency is {most_ns} ns");
            return Some(BoundViolation { message, errno: libc::ETIMEDOUT });
        }
        if now_ns < self.began_ns + SETTLE_NS {
            return None;
        }
        (0..self.kinds.len()).find_map(|kind| self.rate(kind, now_ns))
    }

    /// Checks once per cycle whether the rate of a kind since the last check is too low. Returns the violated limit, if
    /// any.
    fn rate(&mut self, kind: usize, now_ns: u64) -> Option<BoundViolation> {
        let Bounds { iops_min, bytes_per_s_min, cycle_ns, .. } = self.bounds;
        let Counted { count, bytes, last } = self.kinds[kind];
        if count == 0 || (iops_min[kind] == 0 && bytes_per_s_min[kind] == 0) {
            return None;
        }
        if let Some((at_ns, count_then, bytes_then)) = last {
            let spent_ns = now_ns - at_ns;
            if spent_ns < cycle_ns.max(1) {
                return None;
            }
            let per_s = |amount: u64| (u128::from(amount) * NS_PER_S / u128::from(spent_ns)) as u64;
            // As in fio, a rate in bytes takes precedence.
            let (name, least, found) = match bytes_per_s_min[kind] {
                0 => ("rate_iops_min", iops_min[kind], per_s(count - count_then)),
                least => ("rate_min", least, per_s(bytes - bytes_then)),
            };
            if found < least {
                let message = format!("{name}={least} was not met: {found} per second");
                return Some(BoundViolation { message, errno: libc::EIO });
            }
        }
        self.kinds[kind].last = Some((now_ns, count, bytes));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_workload::Kind;

    const MS: u64 = 1_000_000;

    fn request(kind: Kind) -> Request {
        Request { kind, offset_bytes: 0, length_bytes: 4096, force_unit_access: false, ordered: false }
    }

    /// Completes one request every `every_ms` until a limit is violated or five seconds have passed.
    fn broken_at_ms(bounds: Bounds, every_ms: u64) -> Option<(u64, BoundViolation)> {
        let mut watch = Watch::new(bounds, 0).unwrap();
        (1..=5000 / every_ms).find_map(|turn| {
            let now_ns = turn * every_ms * MS;
            Some((now_ns / MS, watch.take(&request(Kind::Read), MS, now_ns)?))
        })
    }

    #[test]
    fn a_low_rate_ends_after_the_settling_time_and_one_cycle() {
        let bounds = Bounds { iops_min: [200, 0, 0], cycle_ns: 1000 * MS, ..Bounds::default() };
        let (at_ms, broken) = broken_at_ms(bounds, 10).unwrap();
        // fio 3.33 ends such a job after 3.01 s.
        assert_eq!(at_ms, 3000);
        assert_eq!(
            broken,
            BoundViolation { message: "rate_iops_min=200 was not met: 100 per second".to_owned(), errno: libc::EIO }
        );
        assert_eq!(broken_at_ms(Bounds { cycle_ns: 200 * MS, ..bounds }, 10).unwrap().0, 2200);
        assert_eq!(broken_at_ms(Bounds { iops_min: [100, 0, 0], ..bounds }, 10), None);
        let of_bytes = Bounds { iops_min: [0; 3], bytes_per_s_min: [409_601, 0, 0], ..bounds };
        assert_eq!(broken_at_ms(of_bytes, 10).unwrap().1.message, "rate_min=409601 was not met: 409600 per second");
        assert_eq!(broken_at_ms(Bounds { bytes_per_s_min: [409_600, 0, 0], ..of_bytes }, 10), None);
    }

    #[test]
    fn a_slow_request_ends_its_job_at_once() {
        let mut watch = Watch::new(Bounds { latency_max_ns: [0, 5 * MS, 0], ..Bounds::default() }, 0).unwrap();
        assert_eq!(watch.take(&request(Kind::Read), 50 * MS, 60 * MS), None);
        assert_eq!(watch.take(&request(Kind::Write), 5 * MS, 70 * MS), None);
        assert_eq!(watch.take(&request(Kind::Flush), 50 * MS, 70 * MS), None);
        let broken = watch.take(&request(Kind::Write), 5 * MS + 1, 80 * MS).unwrap();
        assert_eq!(broken.errno, libc::ETIMEDOUT);
        assert_eq!(broken.message, "a write took 5000001 ns; max_latency is 5000000 ns");
        assert!(Watch::new(Bounds::default(), 0).is_none());
    }
}
