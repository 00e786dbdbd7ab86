//! The host in front of a drive: how many commands it keeps there, and in which order it hands over the rest.

use std::collections::{BTreeMap, VecDeque};

use crate::drive::description::Policy;

/// Requests that wait in the host.
#[derive(Clone, Debug)]
enum Waiting {
    /// In order of arrival.
    Arrival(VecDeque<u32>),
    /// By address: (first byte, number of arrival) to name.
    Address { by_place: BTreeMap<(u64, u64), u32>, policy: Policy, upwards: bool },
}

/// Tag limit and elevator. The host knows addresses, not rotation: SPTF at the host is its SSTF.
#[derive(Clone, Debug)]
pub struct Host {
    waiting: Waiting,
    tags: u32,
    in_drive: u32,
    arrivals: u64,
    last_bytes: u64,
}

impl Host {
    /// A host that keeps at most `tags` commands in the drive.
    pub fn new(tags: u32, elevator: Policy) -> Self {
        let waiting = match elevator {
            Policy::Fcfs => Waiting::Arrival(VecDeque::new()),
            policy => Waiting::Address { by_place: BTreeMap::new(), policy, upwards: true },
        };
        Host { waiting, tags, in_drive: 0, arrivals: 0, last_bytes: 0 }
    }

    /// A request at `offset_bytes` wants to go to the drive: true if it may go now, else it waits.
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

    /// A command left the drive: the request that takes its tag, if one waits.
    #[inline]
    pub fn release(&mut self) -> Option<u32> {
        let next = match &mut self.waiting {
            Waiting::Arrival(queue) => queue.pop_front(),
            Waiting::Address { by_place, policy, upwards } => {
                choose(by_place, *policy, upwards, self.last_bytes).map(|key| {
                    self.last_bytes = key.0;
                    by_place.remove(&key).expect("just found")
                })
            }
        };
        if next.is_none() {
            self.in_drive -= 1;
        }
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
