//! [`Follower`]: shares a trace, read once on a separate thread, among several consumers. Decoding continues while they
//! work.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::batch::Batch;
use crate::error::TraceError;
use crate::reader::TraceReader;

/// Maximum number of batches read ahead of the slowest follower.
const AHEAD: usize = 8;

/// A consumer that receives a trace from start to end. All followers of a trace must continue or be dropped, since the
/// slowest limits the others.
pub(crate) struct Follower {
    shared: Arc<Shared>,
    index: usize,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Batches that at least one follower has not taken yet, and the number of the first of these batches.
    batches: VecDeque<Arc<Batch>>,
    first: usize,
    /// Returned batches, to be filled again.
    used: Vec<Batch>,
    /// Number of the next batch of each follower; `None` for dropped followers.
    places: Vec<Option<usize>>,
    /// How reading ended; `None` while it continues.
    end: Option<End>,
}

#[derive(Clone)]
enum End {
    Whole,
    Failed(TraceError),
    /// The reading thread panicked; its followers panic too.
    Panicked,
}

/// Starts to read the trace for several followers.
pub(crate) fn followed(reader: TraceReader, followers: usize) -> Vec<Follower> {
    let (batches, places) = (VecDeque::new(), vec![Some(0); followers]);
    let state = State { batches, first: 0, used: Vec::new(), places, end: None };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
    let of_thread = shared.clone();
    thread::spawn(move || Reading { shared: of_thread, end: End::Panicked }.go(reader));
    (0..followers).map(|index| Follower { shared: shared.clone(), index }).collect()
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code here can panic while the state is inconsistent, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&'s self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Drops batches that all followers have taken.
    fn forget(&mut self) {
        let slowest = self.places.iter().flatten().min();
        let taken = slowest.map_or(self.batches.len(), |&place| place - self.first);
        self.batches.drain(..taken);
        self.first += taken;
    }
}

/// The reading thread, which reports its end in all cases, including a panic.
struct Reading {
    shared: Arc<Shared>,
    end: End,
}

impl Reading {
    fn go(mut self, mut reader: TraceReader) {
        let mut meta = Arc::new(reader.meta().clone());
        let mut records = Vec::new();
        loop {
            match reader.next_batch(&mut records) {
                Ok(true) => {}
                Ok(false) => return self.end = End::Whole,
                Err(error) => return self.end = End::Failed(error),
            }
            if !meta.has_names_of(reader.meta()) {
                meta = Arc::new(reader.meta().clone());
            }
            let mut batch = self.shared.state().used.pop().unwrap_or_default();
            if let Err(error) = batch.fill(&records, &meta) {
                return self.end = End::Failed(error);
            }
            let mut state = self.shared.state();
            while state.batches.len() == AHEAD && state.places.iter().any(Option::is_some) {
                state = self.shared.wait(state);
            }
            if state.places.iter().all(Option::is_none) {
                return;
            }
            state.batches.push_back(Arc::new(batch));
            self.shared.changed.notify_all();
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.shared.state().end = Some(mem::replace(&mut self.end, End::Whole));
        self.shared.changed.notify_all();
    }
}

impl Follower {
    /// Replaces `batch` with the next one; returns false at the end.
    ///
    /// # Errors
    /// Returns an error if a request is invalid or cannot be replayed.
    pub(crate) fn next(&mut self, batch: &mut Batch) -> Result<bool, TraceError> {
        let Some(next) = self.take()? else { return Ok(false) };
        // The last follower to take a batch gets it without a copy and returns its old batch for reuse.
        match Arc::try_unwrap(next) {
            Ok(next) => self.shared.state().used.push(mem::replace(batch, next)),
            Err(next) => batch.copy(&next),
        }
        Ok(true)
    }

    fn take(&mut self) -> Result<Option<Arc<Batch>>, TraceError> {
        let mut state = self.shared.state();
        let place = state.places[self.index].expect("a dropped follower takes no batches");
        loop {
            if let Some(next) = state.batches.get(place - state.first) {
                let next = next.clone();
                state.places[self.index] = Some(place + 1);
                state.forget();
                self.shared.changed.notify_all();
                return Ok(Some(next));
            }
            match &state.end {
                None => state = self.shared.wait(state),
                Some(End::Whole) => return Ok(None),
                Some(End::Failed(error)) => return Err(error.clone()),
                Some(End::Panicked) => panic!("the thread that reads the trace has panicked"),
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.places[self.index] = None;
        state.forget();
        self.shared.changed.notify_all();
    }
}
