//! A trace read once, on a thread of its own, for all who follow it: decoding goes on while they work, and none pays for
//! it again.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::batch::Batch;
use crate::error::TraceError;
use crate::reader::TraceReader;

/// Batches that are read before the slowest follower asks for them.
const AHEAD: usize = 8;

/// Who is given a trace from its beginning to its end. Those of one trace must all go on, or be dropped: the slowest
/// holds the others up.
pub(crate) struct Follower {
    shared: Arc<Shared>,
    index: usize,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Those that somebody has yet to take, and the number of the first of them.
    batches: VecDeque<Arc<Batch>>,
    first: usize,
    /// Those that were given back, to be filled again.
    used: Vec<Batch>,
    /// What each follower takes next; none that has gone.
    places: Vec<Option<usize>>,
    /// How it ended, once it has.
    end: Option<End>,
}

#[derive(Clone)]
enum End {
    Whole,
    Failed(TraceError),
    /// The reading thread has panicked: our own bug, which is theirs, too.
    Panicked,
}

/// Begins to read for so many followers.
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
        // Nothing in here panics between two states that hold.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&'s self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Lets go of what all have taken.
    fn forget(&mut self) {
        let slowest = self.places.iter().flatten().min();
        let taken = slowest.map_or(self.batches.len(), |&place| place - self.first);
        self.batches.drain(..taken);
        self.first += taken;
    }
}

/// The reading thread, which tells how it ended however it does.
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
    /// Replaces `batch` by the next one; false at the end.
    ///
    /// # Errors
    /// What cannot be accepted, or replayed.
    pub(crate) fn next(&mut self, batch: &mut Batch) -> Result<bool, TraceError> {
        let Some(next) = self.take()? else { return Ok(false) };
        // The last who takes one has it for himself, and gives another back for it.
        match Arc::try_unwrap(next) {
            Ok(next) => self.shared.state().used.push(mem::replace(batch, next)),
            Err(next) => batch.copy(&next),
        }
        Ok(true)
    }

    fn take(&mut self) -> Result<Option<Arc<Batch>>, TraceError> {
        let mut state = self.shared.state();
        let place = state.places[self.index].expect("it has not gone");
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
