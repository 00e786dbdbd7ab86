//! [`SyncSpeed`]: how Linux md paces rebuilds and checks (`md_do_sync` in drivers/md/md.c). Up to its minimum rate, a
//! pass proceeds next to the host's requests. Above it, a busy host makes it wait.

use crate::description::array::RebuildMinimum;

/// Number of marks of past positions (`SYNC_MARKS`).
const MARKS: usize = 10;
/// Least time between two marks (`SYNC_MARK_STEP`). With ten marks, a rate is that of the last 27 to 30 s.
const MARK_NS: u64 = 3_000_000_000;
/// Wait above the minimum rate, before Linux 4.2.
pub(super) const PAUSE_NS: u64 = 500_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A position of the pass: time, bytes done.
type Mark = (u64, u64);

/// Rate of a rebuild or check, and whether the host was busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncSpeed {
    /// The rule.
    pub(super) minimum: RebuildMinimum,
    marks: [Mark; MARKS],
    newest: usize,
    /// Mark from which the rate is computed: the oldest one when the newest was made.
    since: Mark,
    done_bytes: u64,
    /// Number of host requests that had arrived at the last look.
    arrivals: u64,
    /// The last look, and whether requests had arrived since the one before.
    looked: (u64, bool),
}

impl SyncSpeed {
    /// Creates the speed of a pass that begins now, before a host request has been seen.
    pub fn new(minimum: RebuildMinimum, now_ns: u64, arrivals: u64) -> SyncSpeed {
        let mark = (now_ns, 0);
        SyncSpeed {
            minimum,
            marks: [mark; MARKS],
            newest: 0,
            since: mark,
            done_bytes: 0,
            arrivals,
            looked: (now_ns, false),
        }
    }

    /// Counts completed bytes of a member.
    pub fn add(&mut self, bytes: u64) {
        self.done_bytes += bytes;
    }

    /// Whether the pass has to wait: it is faster than the minimum, and a host request is in flight or arrived since the
    /// last look (`is_mddev_idle`). Looks of one moment have the same answer.
    pub fn must_wait(&mut self, now_ns: u64, arrivals: u64, outstanding: u64) -> bool {
        if now_ns >= self.marks[self.newest].0 + MARK_NS {
            self.newest = (self.newest + 1) % MARKS;
            self.since = self.marks[self.newest];
            self.marks[self.newest] = (now_ns, self.done_bytes);
        }
        // The kernel adds 1 to the seconds and to the KiB per second.
        let (since_ns, since_bytes) = self.since;
        let rate = (self.done_bytes - since_bytes) / ((now_ns - since_ns) / SECOND_NS + 1) + 1024;
        if rate <= self.minimum.bytes_per_s {
            return false;
        }
        if now_ns > self.looked.0 {
            self.looked = (now_ns, self.arrivals != arrivals);
            self.arrivals = arrivals;
        }
        outstanding > 0 || self.looked.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::array::AboveMinimum;

    /// A pass that takes 100 KiB whenever it may, each 10 ms, settles at the minimum of 1,000 KiB/s.
    #[test]
    fn the_rate_settles_at_the_minimum() {
        let minimum = RebuildMinimum { bytes_per_s: 1_000 << 10, above: AboveMinimum::Pause, window_bytes: 128 << 10 };
        let mut speed = SyncSpeed::new(minimum, 0, 0);
        let mut done = 0;
        for step in 0..20_000 {
            if step == 10_000 {
                done = 0;
            }
            if !speed.must_wait(step * 10_000_000, 0, 1) {
                speed.add(100 << 10);
                done += 100;
            }
        }
        assert!((990..1_060).contains(&(done / 100)), "{done} KiB in 100 s");
    }
}
