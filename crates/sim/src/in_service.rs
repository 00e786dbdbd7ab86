//! Warms up a system as in continuous service, with the effects of past requests on its caches.
//!
//! Clean contents follow only from the requests. The dirty share of a write-back cache is a balance: the more is dirty,
//! the more is destaged at once, until outflow equals inflow. Reaching it takes hundreds of thousands of requests for a
//! cache of gigabytes, and earlier requests are answered faster than later ones. So the balance is searched: short runs
//! from various shares of dirty pages show whether the share grows or shrinks from there, and the interval is bisected
//! until the share is known (after Gear and Kevrekidis, *SIAM Journal on Scientific Computing* 24, 2003, who derive the
//! drift of a slow variable from short runs of the whole).

use headstack_workload::{Kind, Request};

use crate::error::SimError;
use crate::system::System;

/// Requests per short run, preceded by 25 % more. The final drift of a few percent needs more requests than its sign
/// far from the balance.
const PILOTS: [u64; 7] = [1_000, 1_000, 2_000, 2_000, 4_000, 4_000, 8_000];

/// A share of dirty pages that leaves room for the writes of a short run.
const NEARLY_FULL: f64 = 0.99;

/// Reciprocal of the initial part of a short run, until queues match the share of dirty pages.
pub const FIRST: u64 = 4;

/// A short run from a system's state: number of requests after the initial part, and a number that identifies the run.
/// Returns the increase of dirty pages.
pub type Pilot<'p> = dyn FnMut(System, u64, u64) -> Result<i64, SimError> + 'p;

/// Shows `system` past requests, and sets the dirty share of its write-back cache to the balance with `pilot`'s load.
/// Without such a cache, or without writes, it remains as the requests left it.
///
/// # Errors
/// Those of a pilot.
pub fn bring(
    system: &mut System,
    past: &mut dyn FnMut() -> Option<Request>,
    requests: u64,
    pilot: &mut Pilot,
) -> Result<(), SimError> {
    for _ in 0..requests {
        let Some(request) = past() else { break };
        system.warm_with(&request);
    }
    let Some(mut share) = system.dirty_share().filter(|&share| share > 0.0) else {
        return Ok(());
    };
    let mut writes = Writes { past, left: requests, seen: Vec::new() };
    let mut drift = |share, requests, number| {
        let mut tried = system.clone();
        leave_dirty(&mut tried, share, &mut writes);
        pilot(tried, requests, number)
    };
    // If even a nearly full cache does not destage fast enough, it stays full: most overloads end here.
    let stays_full = drift(NEARLY_FULL, PILOTS[0], PILOTS.len() as u64)? > 0;
    share = if stays_full { 1.0 } else { share.min(NEARLY_FULL) };
    let pilots = if stays_full { &PILOTS[..0] } else { &PILOTS };
    let (mut low, mut high) = (0.0, NEARLY_FULL);
    for (number, &length) in pilots.iter().enumerate() {
        if drift(share, length, number as u64)? > 0 {
            low = share;
        } else {
            high = share;
        }
        share = (low + high) / 2.0;
    }
    leave_dirty(system, share, &mut writes);
    Ok(())
}

/// Writes of the past, the same from the first on for each share that is tried: each begins with the same cache, to which
/// they are new, and to draw them takes longer than to show them.
struct Writes<'p> {
    past: &'p mut dyn FnMut() -> Option<Request>,
    /// Requests that may yet be drawn.
    left: u64,
    seen: Vec<Request>,
}

impl Writes<'_> {
    fn get(&mut self, number: usize) -> Option<Request> {
        while self.seen.len() <= number && self.left > 0 {
            self.left -= 1;
            match (self.past)() {
                Some(request) if request.kind == Kind::Write => self.seen.push(request),
                Some(_) => {}
                None => self.left = 0,
            }
        }
        self.seen.get(number).copied()
    }
}

/// Sets a share of the permitted dirty pages by past writes. They continue until all dirty pages have been written
/// since: destaging in address order leaves few dirty pages where it has just been, and many where it is to come, and
/// takes less time over them than over random ones.
fn leave_dirty(system: &mut System, share: f64, writes: &mut Writes) {
    system.leave_dirty(share);
    let mut turned_over = 0;
    let mut number = 0;
    while let Some(request) = writes.get(number) {
        number += 1;
        system.warm_with(&request);
        turned_over += u32::from(system.dirty_share().is_some_and(|dirty| dirty >= 0.99 * share));
        if turned_over > system.dirty_pages() {
            break;
        }
    }
}
