//! Warms the caches of a system as past requests would have left them.
//!
//! The clean contents of a cache depend only on past requests. The dirty share of a write-back cache is an equilibrium:
//! the more pages are dirty, the faster the cache destages, until writes arrive and leave at the same rate. A cache of
//! gigabytes needs hundreds of thousands of requests to reach the equilibrium, and earlier requests are faster than
//! those in the steady state. Bisection finds the equilibrium: short runs from different dirty shares show whether the
//! share grows or shrinks. Gear and Kevrekidis (*SIAM Journal on Scientific Computing* 24, 2003) likewise use short
//! runs of a whole system to find the drift of a slow variable.

use headstack_workload::{Kind, Request};

use crate::error::SimError;
use crate::system::System;

/// Number of requests in each short run; 1/4 as many warm-up requests precede them. Runs become longer near the
/// equilibrium, because a drift of a few percent needs more requests to measure.
const PILOTS: [u64; 7] = [1_000, 1_000, 2_000, 2_000, 4_000, 4_000, 8_000];

/// Largest dirty share to try, which leaves room for the writes of a short run.
const NEARLY_FULL: f64 = 0.99;

/// Divisor that gives the number of warm-up requests of a short run. The warm-up brings queues in line with the dirty
/// share.
pub const WARM_UP_DIVISOR: u64 = 4;

/// Runs a system for a short time. The arguments are the system, the number of requests after the warm-up, and a number
/// that distinguishes the run from others. Returns by how many pages the dirty part of the cache grew.
pub type ShortRun<'p> = dyn FnMut(System, u64, u64) -> Result<i64, SimError> + 'p;

/// Warms `system` with `requests` requests from `past`, then brings the dirty share of its write-back cache to the
/// equilibrium under the load of `pilot`. Without such a cache, or without writes, the first step alone is done.
///
/// # Errors
/// Returns the error of a short run that fails.
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
    // If even a nearly full cache grows dirtier, it will stay full. This is the case for most overloaded caches.
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

/// Past writes. Each dirty share is tried with the same writes on the same cache. The writes are kept, because drawing
/// them takes longer than applying them.
struct Writes<'p> {
    past: &'p mut dyn FnMut() -> Option<Request>,
    /// Number of requests that may still be drawn.
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

/// Makes `share` of the cache's dirty limit dirty with past writes, until all dirty pages have been rewritten. This
/// reproduces the pattern of destaging in address order: few dirty pages where it has just passed and many where it
/// comes next, which are cheaper to destage than randomly distributed ones.
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
