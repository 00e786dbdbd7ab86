//! Checks during a run that no one else starts to use a written target.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use crate::clock::yield_to_others;
use crate::target::{LOOK_EVERY, Target};

/// Maximum share of the time that checks may take, as one part in this many.
const SHARE: u32 = 20;

/// Runs `work` while another thread checks every second, and once more at the end, whether others have begun to use the
/// written targets. If so, it sets `stop` and returns the use in one line.
pub(crate) fn watched<T>(targets: &[Arc<Target>], stop: &AtomicBool, work: impl FnOnce() -> T) -> (T, Option<String>) {
    let written: Vec<&Target> = targets.iter().map(Arc::as_ref).filter(|target| target.is_writable()).collect();
    let look = || Target::check_unused(&written).err().map(|error| error.to_string());
    let seen = OnceLock::new();
    if written.is_empty() {
        return (work(), None);
    }
    let done = thread::scope(|scope| {
        // This channel closes when the work is done or has panicked.
        let (_working, ended) = channel::<()>();
        let seen = &seen;
        scope.spawn(move || {
            yield_to_others();
            let mut pause = LOOK_EVERY;
            while seen.get().is_none() && ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let began = Instant::now();
                if let Some(line) = look() {
                    seen.get_or_init(|| line);
                    stop.store(true, Ordering::Relaxed);
                }
                pause = LOOK_EVERY.max(began.elapsed() * SHARE);
            }
        });
        work()
    });
    (done, seen.into_inner().or_else(look))
}
