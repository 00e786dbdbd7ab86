//! Warms the caches of a system as past requests would have left them.
//!
//! The clean contents depend only on the requests. How much of a write-back cache is dirty is an equilibrium: the more
//! is dirty, the more is destaged at once, until as much leaves as arrives. A cache of gigabytes takes hundreds of
//! thousands of requests to get there, and requests before that are faster than they ever will be again. The
//! equilibrium is therefore found by bisection: short runs from different shares of dirty pages show whether the share
//! grows or shrinks from there (after Gear and Kevrekidis, *SIAM Journal on Scientific Computing* 24, 2003, who take
//! the drift of a slow variable from short runs of the whole).

use headstack_workload::{Kind, Request};

use crate::error::SimError;
use crate::system::System;

/// Requests of each short run, preceded by 1/4 as many. The drift of a few percent near the equilibrium takes more of
/// them than its sign far from it.
const PILOTS: [u64; 7] = [1_000, 1_000, 2_000, 2_000, 4_000, 4_000, 8_000];

/// A share of dirty pages that leaves room for the writes of a short run.
const NEARLY_FULL: f64 = 0.99;

/// A short run is preceded by its number of requests divided by this, until queues match the share of dirty pages.
pub const WARM_UP_DIVISOR: u64 = 4;

/// A short run from a system's state: its number of requests after the first ones, and a number that distinguishes it
/// from others. Returns by how many pages more the cache is dirty at its end.
pub type ShortRun<'p> = dyn FnMut(System, u64, u64) -> Result<i64, SimError> + 'p;

/// Warms `system` with `count` requests of `past`, and makes its write-back cache as dirty as it stays under `pilot`'s
/// load. Without such a cache, and where nothing was written, it is as the requests left it.
///
/// # Errors
/// Those of a pilot.
pub fn bring(
    system: &mut System,
    past: &mut dyn FnMut() -> Option<Request>,
    requests: u64,
    pilot: &mut ShortRun,
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
    // A cache that grows dirtier even when nearly full stays full: this is where most overloaded caches end.
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

/// Past writes, the same from the first one on for each share that is tried: each begins with the same cache, to which
/// they are new, and drawing them takes longer than applying them.
struct Writes<'p> {
    past: &'p mut dyn FnMut() -> Option<Request>,
    /// Requests that may still be drawn.
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

/// Makes `share` of the pages that may be dirty dirty, by past writes. They continue until all dirty pages have been
/// written since: destaging in the order of addresses leaves few dirty pages where it has just been and many where it
/// comes next, and takes less time over those than over any.
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
