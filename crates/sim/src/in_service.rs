//! A system as it is in service: what requests of the past have left in its caches.
//!
//! What is clean follows from the requests alone. How much of a write-back cache is dirty is a balance: the more is dirty,
//! the more is destaged at once, until as much leaves as comes. To get there takes a cache of gigabytes hundreds of
//! thousands of requests, and what runs before that are answered faster than they ever will be again. So the balance is
//! looked for: short runs from one share of dirty pages or another tell whether it grows or shrinks from there, and
//! halves are left out until the share is known (after Gear and Kevrekidis, *SIAM Journal on Scientific Computing* 24,
//! 2003, who take the drift of a slow variable from short runs of the whole).

use headstack_workload::{Kind, Request};

use crate::SimError;
use crate::system::System;

/// Requests of each short run, of which a fourth more comes first. The drift of a few percent that is looked for in the end
/// needs more of them than its sign far from the balance.
const PILOTS: [u64; 7] = [1_000, 1_000, 2_000, 2_000, 4_000, 4_000, 8_000];

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
    let (mut low, mut high) = (0.0, 1.0);
    for (number, &length) in PILOTS.iter().enumerate() {
        let mut tried = system.clone();
        leave_dirty(&mut tried, share, past, requests);
        if pilot(tried, length, number as u64)? > 0 {
            low = share;
        } else {
            high = share;
        }
        share = (low + high) / 2.0;
    }
    leave_dirty(system, share, past, requests);
    Ok(())
}

/// Lets a share of the pages that may be dirty be so, by writes of the past, `requests` of which are gone through at most.
/// They go on until all that is dirty has been written since: what leaves in the order of its places leaves few behind
/// where it has just been, and many where it is to come, and takes less time over them than over any.
fn leave_dirty(system: &mut System, share: f64, past: &mut dyn FnMut() -> Option<Request>, requests: u64) {
    system.leave_dirty(share);
    let mut turned_over = 0;
    for _ in 0..requests {
        let Some(request) = past() else { break };
        if request.kind != Kind::Write {
            continue;
        }
        system.warm_with(&request);
        turned_over += u32::from(system.dirty_share().is_some_and(|dirty| dirty >= 0.99 * share));
        if turned_over > system.dirty_pages() {
            break;
        }
    }
}
