//! [`Probe`]: a fixed list of requests that measures a device.

use std::collections::VecDeque;

use headstack_workload::{Kind, Request};

/// When the requests of a probe are issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At a constant queue depth.
    Depth {
        /// Queue depth, from 1.
        depth: u32,
        /// Time of each request after the completion that makes room for it; 0 for omitted ones at the end.
        think_ns: Vec<u64>,
    },
    /// Each request at its time since the first, ascending, whether or not the device keeps up.
    Times(Vec<u64>),
}

/// A list of requests in order of issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The requests of the probe.
    pub requests: Vec<Request>,
    /// When they are issued.
    pub pace: Pace,
}

/// The completion of a request of a probe, by the clock of the system that served it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Time of issue, or the intended one with [`Pace::Times`].
    pub issued_ns: u64,
    /// Time of completion.
    pub completed_ns: u64,
    /// Whether it completed in error.
    pub failed: bool,
}

impl Probe {
    /// Returns why it cannot be run on a device, if it cannot.
    pub fn fault(&self, capacity_bytes: u64, block_bytes: u32) -> Option<String> {
        let requests = self.requests.len();
        match &self.pace {
            Pace::Depth { depth: 0, .. } => return Some("a depth of 0; 1 or more is allowed".to_owned()),
            Pace::Depth { think_ns, .. } if think_ns.len() > requests => {
                return Some(format!("{} think times for {requests} requests; one each is required", think_ns.len()));
            }
            Pace::Times(times) if times.len() != requests => {
                return Some(format!("{} times for {requests} requests; one each is required", times.len()));
            }
            Pace::Times(times) if !times.is_sorted() => {
                return Some("times decrease; ascending times are allowed".to_owned());
            }
            Pace::Depth { .. } | Pace::Times(_) => {}
        }
        let block = u64::from(block_bytes);
        let bad = self.requests.iter().position(|request| {
            let (at, length) = (request.offset_bytes, u64::from(request.length_bytes));
            at % block != 0 || length % block != 0 || at.checked_add(length).is_none_or(|end| end > capacity_bytes)
        })?;
        let Request { offset_bytes, length_bytes, .. } = self.requests[bad];
        Some(format!(
            "request {bad} of {length_bytes} bytes at {offset_bytes} is not of whole blocks of {block_bytes} bytes within \
             {capacity_bytes}"
        ))
    }

    /// Whether it changes the contents of the device.
    pub fn writes(&self) -> bool {
        self.requests.iter().any(|request| matches!(request.kind, Kind::Write | Kind::Trim))
    }

    /// Returns the most requests outstanding at a time, as far as the probe determines that.
    pub fn slots(&self) -> u32 {
        match self.pace {
            Pace::Depth { depth, .. } => depth.min(self.requests.len().max(1) as u32),
            Pace::Times(_) => self.requests.len().max(1) as u32,
        }
    }
}

/// A running probe. It counts nanoseconds since its beginning.
pub struct Probing<'p> {
    probe: &'p Probe,
    next: usize,
    /// Times at which there was room for each request that may be issued, in order; only for [`Pace::Depth`].
    room_ns: VecDeque<u64>,
}

impl<'p> Probing<'p> {
    /// Starts a probe.
    pub fn new(probe: &'p Probe) -> Probing<'p> {
        let room_ns = match probe.pace {
            Pace::Depth { depth, .. } => std::iter::repeat_n(0, depth as usize).collect(),
            Pace::Times(_) => VecDeque::new(),
        };
        Probing { probe, next: 0, room_ns }
    }

    /// Returns when the next request is due; `u64::MAX` if none is before one completes, or ever.
    pub fn next_due_ns(&self) -> u64 {
        if self.next == self.probe.requests.len() {
            return u64::MAX;
        }
        match &self.probe.pace {
            Pace::Depth { think_ns, .. } => self
                .room_ns
                .front()
                .map_or(u64::MAX, |room_ns| room_ns.saturating_add(think_ns.get(self.next).copied().unwrap_or(0))),
            Pace::Times(times) => times[self.next],
        }
    }

    /// Returns the next request that is due by `now_ns`: its number, and when it was due.
    pub fn take(&mut self, now_ns: u64) -> Option<(usize, u64, &'p Request)> {
        let due_ns = self.next_due_ns();
        if due_ns > now_ns || due_ns == u64::MAX {
            return None;
        }
        self.room_ns.pop_front();
        self.next += 1;
        Some((self.next - 1, due_ns, &self.probe.requests[self.next - 1]))
    }

    /// Records that a request completed at `at_ns`.
    pub fn completed(&mut self, at_ns: u64) {
        if let Pace::Depth { .. } = self.probe.pace {
            self.room_ns.push_back(at_ns);
        }
    }

    /// Whether the last request has been taken.
    pub fn is_over(&self) -> bool {
        self.next == self.probe.requests.len()
    }

    /// Returns the share that has been taken, 0 to 1.
    pub fn share(&self) -> f64 {
        self.next as f64 / self.probe.requests.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(offset_bytes: u64) -> Request {
        Request { kind: Kind::Read, offset_bytes, length_bytes: 4096, force_unit_access: false, ordered: false }
    }

    #[test]
    fn a_request_arrives_one_think_time_after_a_slot_is_free() {
        let pace = Pace::Depth { depth: 2, think_ns: vec![0, 0, 500] };
        let probe = Probe { requests: (0..4).map(|k| read(k << 12)).collect(), pace };
        let mut probing = Probing::new(&probe);
        assert_eq!(probing.take(0).map(|taken| taken.0), Some(0));
        assert_eq!(probing.take(0).map(|taken| taken.0), Some(1));
        assert_eq!(probing.take(0), None);
        assert_eq!(probing.next_due_ns(), u64::MAX);
        probing.completed(1_000);
        probing.completed(1_200);
        assert_eq!(probing.next_due_ns(), 1_500);
        assert_eq!(probing.take(1_499), None);
        assert_eq!(probing.take(1_500).map(|taken| (taken.0, taken.1)), Some((2, 1_500)));
        assert_eq!(probing.take(1_500).map(|taken| (taken.0, taken.1)), Some((3, 1_200)));
        assert!(probing.is_over());
        assert_eq!(probing.next_due_ns(), u64::MAX);
    }

    #[test]
    fn times_do_not_wait_for_completions() {
        let probe = Probe { requests: vec![read(0), read(4096)], pace: Pace::Times(vec![10, 20]) };
        let mut probing = Probing::new(&probe);
        assert_eq!(probing.take(9), None);
        assert_eq!(probing.take(25).map(|taken| (taken.0, taken.1)), Some((0, 10)));
        assert_eq!(probing.take(25).map(|taken| (taken.0, taken.1)), Some((1, 20)));
        assert!(probing.is_over());
    }

    #[test]
    fn impossible_probes_are_rejected() {
        let depth = |depth| Pace::Depth { depth, think_ns: Vec::new() };
        let fault = |requests, pace| Probe { requests, pace }.fault(1 << 20, 4096);
        assert_eq!(fault(vec![read(0)], depth(1)), None);
        assert!(fault(vec![read(0)], depth(0)).is_some());
        assert!(fault(vec![read(512)], depth(1)).unwrap().contains("request 0"));
        assert!(fault(vec![read(0), read(1 << 20)], depth(1)).unwrap().contains("request 1"));
        assert!(fault(vec![read(0), read(0)], Pace::Times(vec![5, 4])).unwrap().contains("go back"));
        assert!(fault(vec![read(0)], Pace::Times(Vec::new())).is_some());
    }
}
