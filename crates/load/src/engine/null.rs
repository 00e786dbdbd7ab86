//! [`Null`]: an engine that stores nothing and completes any number of concurrent requests after a fixed time.

use std::collections::VecDeque;

use headstack_workload::Request;

use super::{Completion, Setup, Wait};
use crate::LoadError;
use crate::buffers::Buffers;
use crate::clock::{Clock, LOOK_NS};
use crate::target_map::TargetMap;

/// The null engine.
pub struct Null {
    lanes: Vec<Lane>,
    map: TargetMap,
    /// Whether all requests complete at once.
    at_once: bool,
    taken: Vec<(u32, usize)>,
    buffers: Buffers,
}

/// Requests in flight to one target.
struct Lane {
    service_ns: u64,
    /// Requests in flight with their completion times, in order because all take equally long.
    under_way: VecDeque<(u64, u32)>,
}

impl Null {
    /// Creates an engine. `services_ns` has one service time for all requests, or one per piece of the map.
    pub fn new(setup: Setup, services_ns: Vec<u64>) -> Result<Null, LoadError> {
        // No data is transferred, so all slots share one buffer.
        let buffers = Buffers::new(1, setup.longest_bytes, false);
        let buffers = buffers.map_err(|source| LoadError::Io { target: setup.name, action: "allocate", source })?;
        let room = setup.slots as usize;
        let at_once = services_ns.iter().all(|&service_ns| service_ns == 0);
        let lane = |service_ns| Lane { service_ns, under_way: VecDeque::with_capacity(room) };
        let lanes = services_ns.into_iter().map(lane).collect();
        Ok(Null { lanes, map: setup.map, at_once, taken: Vec::with_capacity(room), buffers })
    }

    #[inline]
    pub fn prepare(&mut self, slot: u32, request: &Request) {
        let lane = if self.lanes.len() == 1 { 0 } else { self.map.place(request).piece };
        self.taken.push((slot, lane));
    }

    #[inline]
    pub fn drive(&mut self, wait: Wait, clock: &Clock, done: &mut Vec<Completion>) -> Result<(), LoadError> {
        if self.at_once {
            done.extend(self.taken.drain(..).map(|(slot, _)| Completion { slot, result: WHOLE }));
        }
        if done.is_empty() {
            self.pass_time(wait, clock, done);
        }
        Ok(())
    }

    fn pass_time(&mut self, wait: Wait, clock: &Clock, done: &mut Vec<Completion>) {
        let mut now = clock.now_ns();
        for (slot, lane) in self.taken.drain(..) {
            let Lane { service_ns, under_way } = &mut self.lanes[lane];
            under_way.push_back((now.saturating_add(*service_ns), slot));
        }
        let ends = self.lanes.iter().filter_map(|lane| lane.under_way.front());
        let end_ns = ends.map(|&(end_ns, _)| end_ns).min().unwrap_or(u64::MAX);
        let until_ns = match wait {
            Wait::One => end_ns,
            Wait::Until(at_ns) => end_ns.min(at_ns),
        };
        if until_ns > now {
            clock.sleep_until(until_ns.min(now + LOOK_NS));
            now = clock.now_ns();
        }
        for lane in &mut self.lanes {
            while let Some(&(end_ns, slot)) = lane.under_way.front()
                && end_ns <= now
            {
                lane.under_way.pop_front();
                done.push(Completion { slot, result: WHOLE });
            }
        }
    }

    pub fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }
}

/// Result for a complete transfer of any length, since this engine does not keep the lengths.
pub const WHOLE: i32 = i32::MAX;
