//! [`Requests`]: the requests of a trace for a replay.

use std::mem;
use std::sync::Arc;

use headstack_workload::Recorded;

#[cfg(feature = "files")]
use crate::ahead::{Follower, followed};
use crate::batch::Batch;
use crate::error::TraceError;
use crate::meta::{Clock, Meta};
use crate::reader::TraceReader;
use crate::record::Record;
use crate::stamps::Stamps;

/// The requests of a trace for a replay.
pub struct Requests {
    source: Source,
    batch: Batch,
    /// Whether the batch is still to be returned: its data on the start are known before a request is requested.
    is_full: bool,
    device: Option<u32>,
    stamps: Stamps,
}

#[allow(clippy::large_enum_variant)] // One a replay.
enum Source {
    /// Read by the caller: there are no threads on the web.
    Here(TraceReader, Vec<Record>),
    #[cfg(feature = "files")]
    Elsewhere(Follower),
}

impl Source {
    /// Replaces the batch by the next one; returns false at the end.
    fn next(&mut self, batch: &mut Batch) -> Result<bool, TraceError> {
        match self {
            Source::Here(reader, records) => {
                let more = reader.next_batch(records)?;
                if more {
                    batch.fill(records, &Arc::new(reader.meta().clone()))?;
                }
                Ok(more)
            }
            #[cfg(feature = "files")]
            Source::Elsewhere(follower) => follower.next(batch),
        }
    }
}

/// Maps a request to a device of that name to the replay's target; `None` to omit it.
pub type Placing<'a> = dyn FnMut(&str, Recorded) -> Result<Option<Recorded>, String> + 'a;

impl Requests {
    /// Reads the first batch.
    ///
    /// # Errors
    /// When a request cannot be accepted.
    pub fn of(reader: TraceReader) -> Result<Requests, TraceError> {
        Requests::begin(Source::Here(reader, Vec::new()))
    }

    /// Like [`of`](Self::of) for several concurrent replays: a thread reads the trace once for all of them, ahead of
    /// the fastest, and as far from the slowest as memory permits. A dropped one blocks no others.
    ///
    /// # Errors
    /// When a request cannot be accepted.
    #[cfg(feature = "files")]
    pub fn shared(reader: TraceReader, replays: usize) -> Result<Vec<Requests>, TraceError> {
        let begin = |follower| Requests::begin(Source::Elsewhere(follower));
        followed(reader, replays).into_iter().map(begin).collect()
    }

    fn begin(mut source: Source) -> Result<Requests, TraceError> {
        let mut batch = Batch::default();
        let is_full = source.next(&mut batch)?;
        Ok(Requests { source, batch, is_full, device: None, stamps: Stamps::default() })
    }

    /// First arrival, if the clock began with the recording; only valid before the first request is taken.
    pub fn start_of_recording_ns(&self) -> Option<u64> {
        let Batch { requests, meta, .. } = &self.batch;
        requests.first().filter(|_| self.is_full && meta.clock == Clock::Recording).map(|first| first.arrival_ns)
    }

    /// Refuses to replay a trace without times at recorded times.
    ///
    /// # Errors
    /// For a trace without times.
    pub fn check_times(&self) -> Result<(), TraceError> {
        let meta = &self.batch.meta;
        if meta.clock != Clock::Order {
            return Ok(());
        }
        let message = "times are not recorded, so a timed replay is not possible; use --mode asap with --depth";
        Err(TraceError::of_file(meta.origin.first().map_or("trace", |origin| &origin.file), message))
    }

    /// Notes on limits of the trace: a coarse clock, and offsets that name objects.
    pub fn notes(&self, is_timed: bool) -> Vec<String> {
        let meta = &self.batch.meta;
        let coarse = self.stamps.note(meta).filter(|_| is_timed);
        let coarse = coarse.map(|note| format!("{note}; --mode asap ignores times"));
        coarse.into_iter().chain(note_of_places(meta)).collect()
    }

    /// Replaces `requests` by the next ones; returns whether there were any.
    ///
    /// # Errors
    /// When a request cannot be accepted, or replayed.
    pub fn next(&mut self, requests: &mut Vec<Recorded>) -> Result<bool, TraceError> {
        requests.clear();
        if !self.read()? {
            return Ok(false);
        }
        let Batch { devices, meta, .. } = &self.batch;
        let first = *self.device.get_or_insert_with(|| devices[0]);
        if let Some(&other) = devices.iter().find(|&&device| device != first) {
            return Err(several_devices(first, other, meta));
        }
        mem::swap(requests, &mut self.batch.requests);
        Ok(true)
    }

    /// Like [`next`](Self::next) for several devices, whose requests `place` maps.
    ///
    /// # Errors
    /// When a request cannot be accepted, replayed, or placed.
    pub fn next_placed(&mut self, requests: &mut Vec<Recorded>, place: &mut Placing<'_>) -> Result<bool, TraceError> {
        requests.clear();
        if !self.read()? {
            return Ok(false);
        }
        let Batch { requests: read, devices, meta } = &self.batch;
        for (&recorded, &device) in read.iter().zip(devices) {
            let placed = place(&meta.devices[device as usize].name, recorded);
            requests.extend(placed.map_err(|message| TraceError::of_file(&meta.origin[0].file, message))?);
        }
        Ok(true)
    }

    /// Reads a batch if needed; returns whether there is one.
    fn read(&mut self) -> Result<bool, TraceError> {
        if !mem::take(&mut self.is_full) && !self.source.next(&mut self.batch)? {
            return Ok(false);
        }
        for recorded in &self.batch.requests {
            self.stamps.add(recorded.arrival_ns);
        }
        Ok(true)
    }
}

/// A note if offsets name objects, so that seeks and runs of a replay differ from those of the recorded system.
pub(crate) fn note_of_places(meta: &Meta) -> Option<String> {
    let text = "offsets name objects, so seeks and runs differ from the recorded system";
    (!meta.address_space.has_distances()).then(|| text.to_owned())
}

/// The error that addresses of several devices have different meanings.
fn several_devices(one: u32, other: u32, meta: &Meta) -> TraceError {
    let name = |device: u32| &meta.devices[device as usize].name;
    let message = format!(
        "its requests went to several devices, such as `{}` and `{}`: choose one with the step device=NAME, \
         concatenate them with stack=SIZE, or place each with map",
        name(one),
        name(other)
    );
    TraceError::of_file(&meta.origin[0].file, message)
}
