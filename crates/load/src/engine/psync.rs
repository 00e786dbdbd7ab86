//! [`Psync`]: blocking system calls, made by the worker itself if it has one slot, otherwise by one thread per slot.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use headstack_workload::Request;

use super::system_calls::carry_out;
use super::{Completion, Setup, Wait};
use crate::LoadError;
use crate::buffers::{Buffers, Memory};
use crate::clock::{LOOK_NS, SPIN_NS, now_ns, sleep_until};
use crate::target_map::TargetMap;

/// Maximum number of threads; many systems refuse more.
const THREADS_MAX: u32 = 4096;

/// The engine of system calls.
pub struct Psync {
    map: TargetMap,
    taken: Vec<(u32, Request)>,
    /// The threads; `None` if the worker itself makes the calls.
    pool: Option<Pool>,
    buffers: Buffers,
    /// Reason why this engine is used although another was preferred.
    pub instead_of: Option<String>,
}

struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    results: Condvar,
}

#[derive(Default)]
struct State {
    calls: VecDeque<Call>,
    done: Vec<Completion>,
    over: bool,
}

struct Call {
    slot: u32,
    request: Request,
    memory: Memory,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }

    /// Executes requests in a thread of the pool.
    fn serve(&self, map: &TargetMap) {
        let mut state = self.lock();
        loop {
            if let Some(call) = state.calls.pop_front() {
                drop(state);
                // SAFETY: buffers stay allocated until the pool has ended, and this slot's buffer belongs to this call.
                let result = unsafe { carry_out(map, &call.request, &call.memory) };
                state = self.lock();
                state.done.push(Completion { slot: call.slot, result });
                self.results.notify_one();
            } else if state.over {
                return;
            } else {
                state = self.work.wait(state).expect("no thread panics while it holds the lock");
            }
        }
    }
}

impl Psync {
    /// Creates an engine, with one thread per slot if there are several slots.
    pub fn new(setup: Setup) -> Result<Psync, LoadError> {
        if setup.slots > THREADS_MAX {
            let message =
                format!("psync needs a thread for each of {} requests; the maximum is {THREADS_MAX}", setup.slots);
            return Err(LoadError::Target { target: setup.name, message });
        }
        let failed = |action| {
            let target = setup.name.clone();
            move |source| LoadError::Io { target, action, source }
        };
        let buffers = Buffers::new(setup.slots, setup.longest_bytes, setup.own_buffers).map_err(failed("allocate"))?;
        let mut pool = None;
        if setup.slots > 1 {
            let shared = Arc::new(Shared::default());
            let mut threads = Pool { shared: Arc::clone(&shared), threads: Vec::new() };
            for _ in 0..setup.slots {
                let (shared, map) = (Arc::clone(&shared), setup.map.clone());
                let thread = std::thread::Builder::new().spawn(move || shared.serve(&map));
                threads.threads.push(thread.map_err(failed("start a thread"))?);
            }
            pool = Some(threads);
        }
        let taken = Vec::with_capacity(setup.slots as usize);
        Ok(Psync { map: setup.map, taken, pool, buffers, instead_of: None })
    }

    #[inline]
    pub fn prepare(&mut self, slot: u32, request: &Request) {
        self.taken.push((slot, *request));
    }

    #[inline]
    pub fn drive(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), LoadError> {
        let Some(pool) = &self.pool else {
            for (slot, request) in self.taken.drain(..) {
                let memory = self.buffers.memory(slot, request.length_bytes);
                // SAFETY: the buffer belongs to the only slot, which is in use until the call returns.
                let result = unsafe { carry_out(&self.map, &request, &memory) };
                done.push(Completion { slot, result });
            }
            if done.is_empty()
                && let Wait::Until(at_ns) = wait
            {
                sleep_until(at_ns);
            }
            return Ok(());
        };
        let buffers = &self.buffers;
        let calls = self.taken.drain(..).map(|(slot, request)| {
            let memory = buffers.memory(slot, request.length_bytes);
            Call { slot, request, memory }
        });
        pool.hand_over(calls);
        pool.collect(wait, done);
        Ok(())
    }

    pub fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }
}

impl Pool {
    fn hand_over(&self, calls: impl ExactSizeIterator<Item = Call>) {
        let count = calls.len();
        if count > 0 {
            self.shared.lock().calls.extend(calls);
            (0..count).for_each(|_| self.shared.work.notify_one());
        }
    }

    fn collect(&self, wait: Wait, done: &mut Vec<Completion>) {
        let mut state = self.shared.lock();
        if state.done.is_empty() {
            match wait {
                Wait::One => {
                    let (look, pending) = (Duration::from_nanos(LOOK_NS), |state: &mut State| state.done.is_empty());
                    let waited = self.shared.results.wait_timeout_while(state, look, pending);
                    state = waited.expect("no thread panics with the lock").0;
                }
                Wait::Until(at_ns) => {
                    let sleep_ns = at_ns.saturating_sub(now_ns()).saturating_sub(SPIN_NS);
                    let pending = |state: &mut State| state.done.is_empty();
                    let waited = self.shared.results.wait_timeout_while(state, Duration::from_nanos(sleep_ns), pending);
                    state = waited.expect("no thread panics with the lock").0;
                    while state.done.is_empty() && now_ns() < at_ns {
                        drop(state);
                        std::hint::spin_loop();
                        state = self.shared.lock();
                    }
                }
            }
        }
        done.append(&mut state.done);
    }
}

impl Drop for Pool {
    /// Ends the threads, whose calls may still use the buffers.
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A panicking thread has already reported its panic.
            let _ = thread.join();
        }
    }
}
