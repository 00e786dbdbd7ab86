//! A system as it is in service: what requests of the past have left in its caches.
//!
//! What is clean follows from the requests alone. How much of a write-back cache is dirty is a balance: the more is dirty,
//! the more is destaged at once, until as much leaves as comes. To get there takes a cache of gigabytes hundreds of
//! thousands of requests, and what runs before that are answered faster than they ever will be again. So the balance is
//! looked for: short runs from one share of dirty pages or another tell whether it grows or shrinks from there, and
//! halves are left out until the share is known (after Gear and Kevrekidis, *SIAM Journal on Scientific Computing* 24,
//! 2003, who take the drift of a slow variable from short runs of the whole).

use headstack_workload::{Kind, Request};

use crate::error::SimError;
use crate::system::System;

/// Requests of each short run, of which a fourth more comes first. The drift of a few percent that is looked for in the end
/// needs more of them than its sign far from the balance.
const PILOTS: [u64; 7] = [1_000, 1_000, 2_000, 2_000, 4_000, 4_000, 8_000];

/// A share of dirty pages that leaves room for the writes of a short run.
const NEARLY_FULL: f64 = 0.99;

/// What of a short run comes first, until queues are as the share of dirty pages makes them.
pub const FIRST: u64 = 4;

/// A short run from a system's state on: so many requests after the first, with a number that tells it from others. By
/// how many pages more the cache was dirty at its end.
pub type Pilot<'p> = dyn FnMut(System, u64, u64) -> Result<i64, SimError> + 'p;

/// Shows `system` so many requests of `past`, and lets its write-back cache be as dirty as it stays under `pilot`'s load.
/// Without such a cache, and where nothing was written, it is as the requests left it.
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
    // What even a nearly full cache does not destage as fast as it comes stays full: most of what is too slow ends here.
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

/// Lets a share of the pages that may be dirty be so, by writes of the past. They go on until all that is dirty has been
/// written since: what leaves in the order of its places leaves few behind where it has just been, and many where it is to
/// come, and takes less time over them than over any.
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
