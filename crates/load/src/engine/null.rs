//! A target that stores nothing and answers after a fixed time, any number of requests at once.

use std::collections::VecDeque;

use super::{Done, Setup, Wait};
use crate::LoadError;
use crate::buffers::Buffers;
use crate::clock::{LOOK_NS, now_ns, sleep_until};

/// Requests that end by themselves.
pub struct Null {
    service_ns: u64,
    taken: Vec<u32>,
    /// Handed over, with when they end; in order, since all take equally long.
    under_way: VecDeque<(u64, u32)>,
    buffers: Buffers,
}

impl Null {
    /// An engine whose requests take `service_ns`.
    pub fn new(setup: Setup, service_ns: u64) -> Result<Null, LoadError> {
        // Nothing is transferred: all slots share one.
        let buffers = Buffers::new(1, setup.longest_bytes, false);
        let buffers = buffers.map_err(|source| LoadError::Io { target: setup.name, action: "allocate", source })?;
        let room = setup.slots as usize;
        Ok(Null { service_ns, taken: Vec::with_capacity(room), under_way: VecDeque::with_capacity(room), buffers })
    }

    #[inline]
    pub fn prepare(&mut self, slot: u32) {
        self.taken.push(slot);
    }

    #[inline]
    pub fn drive(&mut self, wait: Wait, done: &mut Vec<Done>) -> Result<(), LoadError> {
        if self.service_ns == 0 {
            done.extend(self.taken.drain(..).map(|slot| Done { slot, result: WHOLE }));
        }
        if done.is_empty() {
            self.pass_time(wait, done);
        }
        Ok(())
    }

    fn pass_time(&mut self, wait: Wait, done: &mut Vec<Done>) {
        let mut now = now_ns();
        self.under_way.extend(self.taken.drain(..).map(|slot| (now + self.service_ns, slot)));
        let end_ns = self.under_way.front().map_or(u64::MAX, |&(end_ns, _)| end_ns);
        let until_ns = match wait {
            Wait::One => end_ns,
            Wait::Until(at_ns) => end_ns.min(at_ns),
        };
        if until_ns > now {
            sleep_until(until_ns.min(now + LOOK_NS));
            now = now_ns();
        }
        while let Some(&(end_ns, slot)) = self.under_way.front()
            && end_ns <= now
        {
            self.under_way.pop_front();
            done.push(Done { slot, result: WHOLE });
        }
    }

    pub fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }
}

/// Stands for as many bytes as were asked for, which this engine does not know.
pub const WHOLE: i32 = i32::MAX;
