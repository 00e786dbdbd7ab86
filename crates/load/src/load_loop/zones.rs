//! Directs requests of a load loop to zones.

use headstack_result::Counter;
use headstack_workload::Request;

use super::{Contents, LoadLoop, PendingRequest};
use crate::engine::{Completion, Wait};
use crate::zones::{Advance, Tending};

/// Time between two checks of a zone that another thread is writing, in ns: a fraction of the time of a write.
const ZONE_LOOK_NS: u64 = 20_000;

impl LoadLoop<'_> {
    /// Sets how requests are directed to the zones of the targets.
    pub fn tend_zones(&mut self, tending: Option<Tending>) {
        self.tending = tending.map(Box::new);
    }

    /// Submits a request if its zone is available. First executes the zone operations that the request needs.
    #[inline(never)]
    pub(super) fn advance(&mut self, slot: u32) {
        let Some(mut tending) = self.tending.take() else { return };
        let drawn = self.flights[slot as usize].request;
        let contents = &mut self.contents;
        let advance = tending.advance(slot, &drawn, |piece, offset_bytes, length_bytes, act| match contents {
            Contents::Stamped(stamping) => stamping.reset_zone(piece, offset_bytes, length_bytes, act),
            Contents::Any | Contents::Fresh | Contents::Pattern(_) => drop(act()),
        });
        self.look();
        self.count_depth(self.now_ns);
        match advance {
            Advance::Submit(request) => {
                self.begin_flight(slot, &request);
                self.submit(slot, &request);
            }
            Advance::Done(request, result) => {
                self.begin_flight(slot, &request);
                self.done.push(Completion { slot, result });
            }
            Advance::Wait => tending.held.push_back(slot),
            Advance::Nothing => self.take_back(slot),
        }
        self.tending = Some(tending);
    }

    /// Submits a request as adapted to its zone.
    fn begin_flight(&mut self, slot: u32, request: &Request) {
        let flight = &mut self.flights[slot as usize];
        self.bytes_under_way =
            self.bytes_under_way - u64::from(flight.request.length_bytes) + u64::from(request.length_bytes);
        (flight.request, flight.started_ns, flight.taken_ns) = (*request, self.now_ns, self.now_ns);
    }

    /// Removes a request that has nothing to do.
    #[cold]
    fn take_back(&mut self, slot: u32) {
        let PendingRequest { request, intended_ns, .. } = self.flights[slot as usize];
        if let Some(measuring) = &mut self.measuring {
            measuring.forget(intended_ns, self.now_ns);
        }
        self.issued -= 1;
        self.bytes_under_way -= u64::from(request.length_bytes);
        self.free.push(slot);
        self.has_run_dry = true;
    }

    /// Retries, in order, the requests whose zones may have become free.
    #[inline(never)]
    pub(super) fn advance_held(&mut self) {
        let held = self.tending.as_mut().map(|tending| std::mem::take(&mut tending.held));
        held.into_iter().flatten().for_each(|slot| self.advance(slot));
    }

    /// Returns the counters of zone operations for results.
    pub fn zone_counters(&self) -> Vec<Counter> {
        self.tending.as_ref().map_or_else(Vec::new, |tending| tending.counters())
    }

    /// Shortens `wait` to the time at which other threads may have freed a zone that a request waits for.
    #[inline]
    pub(super) fn look_for_zones(&self, wait: Wait) -> Wait {
        match (&self.tending, wait) {
            (Some(tending), Wait::One) if !tending.held.is_empty() => Wait::Until(self.now_ns + ZONE_LOOK_NS),
            (Some(tending), Wait::Until(at_ns)) if !tending.held.is_empty() => {
                Wait::Until(at_ns.min(self.now_ns + ZONE_LOOK_NS))
            }
            (_, wait) => wait,
        }
    }
}
