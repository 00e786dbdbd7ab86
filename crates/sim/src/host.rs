//! [`Host`]: the queue in front of a drive. It limits the commands in the drive and orders the waiting requests.

use std::collections::{BTreeMap, VecDeque};

use crate::description::drive::Policy;

/// Requests waiting in the host.
#[derive(Clone, Debug)]
enum Waiting {
    /// In order of arrival.
    Arrival(VecDeque<u32>),
    /// By address, as a map from (first byte, arrival number) to id.
    Address { by_place: BTreeMap<(u64, u64), u32>, policy: Policy, upwards: bool },
}

/// Host queue with a tag limit and an elevator. The host knows addresses but not rotation, so SPTF in the host is SSTF.
#[derive(Clone, Debug)]
pub struct Host {
    waiting: Waiting,
    tags: u32,
    in_drive: u32,
    arrivals: u64,
    last_bytes: u64,
}

impl Host {
    /// Creates a host queue that keeps at most `tags` commands in the drive.
    pub fn new(tags: u32, elevator: Policy) -> Self {
        let waiting = match elevator {
            Policy::Fcfs => Waiting::Arrival(VecDeque::new()),
            Policy::Sstf | Policy::Look | Policy::CLook | Policy::Sptf => {
                Waiting::Address { by_place: BTreeMap::new(), policy: elevator, upwards: true }
            }
        };
        Host { waiting, tags, in_drive: 0, arrivals: 0, last_bytes: 0 }
    }

    /// Drops all requests, because the application gave up.
    pub fn reset(&mut self) {
        match &mut self.waiting {
            Waiting::Arrival(queue) => queue.clear(),
            Waiting::Address { by_place, .. } => by_place.clear(),
        }
        self.in_drive = 0;
    }

    /// Returns the number of requests in the drive and waiting for it.
    pub fn outstanding(&self) -> u32 {
        self.in_drive + self.waits()
    }

    /// Returns the number of requests waiting for the drive.
    fn waits(&self) -> u32 {
        let waiting = match &self.waiting {
            Waiting::Arrival(queue) => queue.len(),
            Waiting::Address { by_place, .. } => by_place.len(),
        };
        waiting as u32
    }

    /// Admits a request at `offset_bytes`. Returns true if the request may go to the drive now; otherwise it waits.
    #[inline]
    pub fn admit(&mut self, id: u32, offset_bytes: u64) -> bool {
        if self.in_drive < self.tags {
            self.in_drive += 1;
            self.last_bytes = offset_bytes;
            return true;
        }
        self.arrivals += 1;
        match &mut self.waiting {
            Waiting::Arrival(queue) => queue.push_back(id),
            Waiting::Address { by_place, .. } => {
                by_place.insert((offset_bytes, self.arrivals), id);
            }
        }
        false
    }

    /// Releases the tag of a command that left the drive. Returns the waiting request that takes the tag, if any.
    #[inline]
    pub fn release(&mut self) -> Option<u32> {
        let next = match &mut self.waiting {
            Waiting::Arrival(queue) => queue.pop_front(),
            Waiting::Address { by_place, policy, upwards } => {
                choose(by_place, *policy, upwards, self.last_bytes).map(|key| {
                    self.last_bytes = key.0;
                    by_place.remove(&key).expect("the request is waiting")
                })
            }
        };
        if next.is_none() {
            self.in_drive -= 1;
        }
        debug_assert!(self.in_drive <= self.tags, "the drive has at most one command per tag");
        debug_assert!(self.in_drive == self.tags || self.waits() == 0, "no request waits while a tag is free");
        next
    }
}

fn choose(
    by_place: &BTreeMap<(u64, u64), u32>,
    policy: Policy,
    upwards: &mut bool,
    last_bytes: u64,
) -> Option<(u64, u64)> {
    let above = by_place.range((last_bytes, 0)..).next().map(|(&key, _)| key);
    let below = by_place.range(..(last_bytes, 0)).next_back().map(|(&key, _)| key);
    match policy {
        Policy::CLook => above.or_else(|| by_place.keys().next().copied()),
        Policy::Look => {
            let next = if *upwards { above.or(below) } else { below.or(above) };
            if let Some(key) = next {
                *upwards = key.0 >= last_bytes;
            }
            next
        }
        Policy::Fcfs | Policy::Sstf | Policy::Sptf => match (above, below) {
            (Some(up), Some(down)) => Some(if up.0 - last_bytes <= last_bytes - down.0 { up } else { down }),
            (up, down) => up.or(down),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the order in which waiting requests reach the drive, with one tag and a first request at offset 50.
    fn handed_over(elevator: Policy) -> Vec<u64> {
        let waiting = [10u64, 60, 40, 90, 55, 20];
        let mut host = Host::new(1, elevator);
        assert!(host.admit(100, 50));
        for (id, &offset_bytes) in waiting.iter().enumerate() {
            assert!(!host.admit(id as u32, offset_bytes), "with one tag, further commands wait");
        }
        std::iter::from_fn(|| host.release()).map(|id| waiting[id as usize]).collect()
    }

    #[test]
    fn elevators_hand_over_in_their_order() {
        assert_eq!(handed_over(Policy::Fcfs), [10, 60, 40, 90, 55, 20]);
        assert_eq!(handed_over(Policy::CLook), [55, 60, 90, 10, 20, 40]);
        assert_eq!(handed_over(Policy::Look), [55, 60, 90, 40, 20, 10]);
        assert_eq!(handed_over(Policy::Sstf), [55, 60, 40, 20, 10, 90]);
    }

    #[test]
    fn requests_at_one_place_go_in_order_of_arrival() {
        for elevator in Policy::ALL {
            let mut host = Host::new(1, elevator);
            host.admit(9, 7);
            (0..5).for_each(|id| assert!(!host.admit(id, 7)));
            let order: Vec<u32> = std::iter::from_fn(|| host.release()).collect();
            assert_eq!(order, [0, 1, 2, 3, 4], "{elevator:?}");
        }
    }

    #[test]
    fn tags_come_back() {
        let mut host = Host::new(2, Policy::CLook);
        assert!(host.admit(0, 0) && host.admit(1, 0) && !host.admit(2, 0));
        assert_eq!(host.release(), Some(2));
        assert_eq!((host.release(), host.release()), (None, None));
        assert!(host.admit(3, 0) && host.admit(4, 0) && !host.admit(5, 0));
    }
}
